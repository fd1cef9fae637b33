/* A listening address. Thread: the loop's.
 */
#ifndef PD_LISTENER_H
#define PD_LISTENER_H

#include <uv.h>

#include "server.h"
#include "wire/address.h"

typedef struct pd_listener {
    pd_server *server;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    wire_address address; /* as bound: with the port that port 0 became */
    int unix_fd;          /* -1 for TCP, and for a socket that was passed */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } reject; /* takes what there is no memory to talk to, so that the next one is heard */
    bool rejecting, reject_more;
} pd_listener;

/* Listens at an address of the configuration. TCP without TLS on other than loopback addresses needs
 * allow_insecure_remote. The listener
 * must stay where it is until the loop has run dry. Returns 0, or -1 with err. */
PD_MUST_USE int pd_listener_start(pd_listener *listener, pd_server *server, const char *address,
                                  pd_error *err);

/* Takes over a listening socket that the service manager made; `name` is what it calls it. The same rules for addresses hold,
 * but its name in the file system stays. The descriptor is the listener's on success. Returns 0, or -1 with err. */
PD_MUST_USE int pd_listener_adopt(pd_listener *listener, pd_server *server, int fd, const char *name,
                                  pd_error *err);

/* Stops, and removes a Unix socket's file. */
void pd_listener_close(pd_listener *listener);

#endif
