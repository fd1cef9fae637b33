/* Between the files of the rehearsal. One thread, and the process of its daemon. */
#ifndef PD_REHEARSE_PRIVATE_H
#define PD_REHEARSE_PRIVATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config.h"
#include "profile.h"

enum { REHEARSE_PATH_BYTES = 4096 };

#define REHEARSE_NAME "rehearsal" /* of the run, and its producer */

typedef struct rehearsal {
    const char *profile_name;
    double rate_hz, seconds;
    bool json;
    pd_config config;
    const pd_profile *profile;
    bool shared;                      /* a photond runs in the data folder */
    int data_fd;                      /* the data folder, and */
    char hidden[64];                  /* the name in it */
    char folder[REHEARSE_PATH_BYTES]; /* of that; */
    int lock_fd;
    char sockets[64]; /* a short path: those of sockets are */
    pid_t daemon;

    /* What came of it. */
    uint64_t asked, sent; /* events */
    double sent_s, durable_s;
    double bytes_per_event;
    json_t *status;
} rehearsal;

/* rehearse.c */
extern volatile sig_atomic_t pd_rehearse__stopped; /* by a signal */
double pd_rehearse__now(void);                     /* seconds */
void pd_rehearse__sleep(double seconds);
/* One line on standard error. Returns the exit status of what cannot be done. */
int pd_rehearse__fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* rehearse_place.c: the folders, and the daemon in them; each returns 0, or an exit status after saying why */
int pd_rehearse__place(rehearsal *r);
int pd_rehearse__daemon(rehearsal *r);
void pd_rehearse__daemon_end(rehearsal *r);
void pd_rehearse__place_remove(rehearsal *r);
void pd_rehearse__socket(const rehearsal *r, const char *name, char path[128]);
json_t *pd_rehearse__status(const rehearsal *r); /* of the daemon; NULL: it does not answer */

/* rehearse_send.c: the events; likewise */
int pd_rehearse__send(rehearsal *r);

/* rehearse_tell.c: what came of it. Returns the exit status */
int pd_rehearse__tell(rehearsal *r);

#endif
