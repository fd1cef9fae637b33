/* What `photonctl status` sees: views of everything, filled in when somebody asks, and the rates, sampled once a
 * second while a run is open. Thread: the loop's.
 */
#ifndef PD_LOOK_H
#define PD_LOOK_H

#include <jansson.h>

#include "error.h"
#include "listener.h"
#include "rate.h"
#include "server.h"
#include "status.h"
#include "wire/address.h"

typedef struct pd_look {
    pd_server *server;
    uint64_t started_ns;
    uv_timer_t timer;
    pd_rate photons, received, written;
    char (*listen_texts)[WIRE_ADDRESS_TEXT_BYTES]; /* [n_listen] */
    const char **listen;
    size_t n_listen;
} pd_look;

void pd_look_init(pd_look *look, pd_server *server);

/* The addresses as bound, as texts that live as long as the look. NULL when out of memory. */
const char **pd_look_listen(pd_look *look, const pd_listener *listeners, size_t n);

/* The control command "status"; `user` is the pd_look. */
json_t *pd_look_status(void *user, const json_t *request, pd_error *err);

/* look_stages.c: what came into each stage of the way of events, went out of it, and is in it. */
void pd_look_stages(const pd_server *server, pd_status_stage stages[PD_STAGES]);

/* The health as status tells it, and in one line what goes on: "2 runs open, 365000 photons/s, ...". `stuck` is set to why a
 * thread of the daemon counts as dead, "" when none does. */
enum { PD_LOOK_LINE_BYTES = 384 };
pd_health pd_look_line(const pd_look *look, char line[PD_LOOK_LINE_BYTES], char stuck[PD_LOOK_LINE_BYTES]);

/* Closes the timer. */
void pd_look_close(pd_look *look);
void pd_look_free(pd_look *look);

#endif
