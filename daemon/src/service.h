/* What the service manager is told, when one started the daemon and asked to be told (the protocol of sd_notify(3)), and the
 * sockets that it handed over (sd_listen_fds(3)). Without one, all of this does nothing. A manager that does not read what it
 * is told is not waited for; for READY=1 a second. Threads: pd_service_status() any, the rest the loop's.
 */
#ifndef PD_SERVICE_H
#define PD_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* READY=1: listening, and what lay in the data folder has been looked through. Also ends a reload. */
void pd_service_ready(void);

/* RELOADING=1, with the time that Type=notify-reload wants. */
void pd_service_reloading(void);

/* STOPPING=1. */
void pd_service_stopping(void);

/* STATUS=text, one line. */
void pd_service_status(const char *text);

/* WATCHDOG=1: all is alive. */
void pd_service_alive(void);

/* Within how long the manager wants a sign of life; 0: it wants none. */
uint64_t pd_service_watchdog_ms(void);

/* ---- sockets ---- */

enum { PD_PASSED_MAX = 32, PD_PASSED_NAME_BYTES = 64 };

/* A listening socket that the manager made: its descriptor is ours, its name in the file system the manager's. */
typedef struct pd_passed_socket {
    int fd;                          /* -1: taken by somebody */
    char name[PD_PASSED_NAME_BYTES]; /* FileDescriptorName=, or the unit's name */
} pd_passed_socket;

typedef struct pd_passed {
    size_t n;
    pd_passed_socket sockets[PD_PASSED_MAX];
} pd_passed;

/* The sockets, once in the life of the process. Returns 0; -1 with err: something was passed that is no listening stream
 * socket, or too many. */
PD_MUST_USE int pd_service_sockets(pd_passed *ret, pd_error *err);

/* Takes the one for photonctl out of them: the one named "control", else a Unix socket at `path` ("": none). Returns its
 * descriptor, or -1 when there is none. */
int pd_service_control_socket(pd_passed *passed, const char *path);

#endif
