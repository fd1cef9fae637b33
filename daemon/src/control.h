/* The control socket: newline-delimited JSON over a Unix socket, on the loop.
 *
 * A request is one line, an object with "command" (and "id", which comes back with the reply); the reply
 * is one line, an object with "ok": true and what the command gives, or "ok": false, "error": a
 * sentence, "code": a word. Replies come in the order of the requests; a client that does not read its
 * replies is not read from. Limits: PD_CONTROL_LINE_MAX bytes a line, PD_CONTROL_CLIENTS_MAX clients
 * (one more is answered and closed), 60 s without a whole request.
 *
 * Threads: the loop's.
 */
#ifndef PD_CONTROL_H
#define PD_CONTROL_H

#include <jansson.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "error.h"

#define PD_CONTROL_LINE_MAX 65536u
#define PD_CONTROL_CLIENTS_MAX 32u

/* Where the control socket is when the configuration says "auto": /run/photond/control.sock for root and
 * where that folder may be written to (or, for photonctl, holds the socket), else
 * $XDG_RUNTIME_DIR/photond/control.sock. Returns 0, or -1 with err (no such place: one must be given). */
PD_MUST_USE int pd_control_auto_path(char *path, size_t cap, pd_error *err);

/* The path behind a control address: "auto", "unix:PATH". Returns 0, or -1 with err. */
PD_MUST_USE int pd_control_path(const char *address, char *path, size_t cap, pd_error *err);

/* A command. `run` returns the members of the reply (a new object, to which "ok" and "id" are added), or
 * NULL with `err` said. `request` is borrowed. */
typedef struct pd_control_command {
    const char *name;
    json_t *(*run)(void *user, const json_t *request, pd_error *err);
    unsigned needs; /* PD_RIGHT_... */
} pd_control_command;

typedef struct pd_control_options {
    const char *path; /* of the socket */
    int fd;           /* -1: it is made; else a listening one, whose name stays where it is */
    unsigned mode;    /* permission bits */
    int64_t gid;      /* group; -1: left as it is */
    const pd_control_command *commands; /* [n_commands]; must outlive the control */
    size_t n_commands;
    void *user; /* for the commands */
    /* What the process at the other end of a client's socket may do; NULL: everything. */
    unsigned (*rights)(void *user, int fd);
} pd_control_options;

typedef struct pd_control pd_control;

/* Listens. Returns 0, or -1 with err. */
PD_MUST_USE int pd_control_start(pd_control **ret, uv_loop_t *loop, const pd_control_options *options,
                                 pd_error *err);

/* Stops listening, removes the socket, closes the clients; `closed` (may be NULL) is called when all
 * handles are closed and the memory is freed. NULL is fine (closed is called at once). */
void pd_control_close(pd_control *control, void (*closed)(void *user), void *user);

/* For pd_control_answer(): a client that may do everything. */
#define PD_CONTROL_ALL_RIGHTS UINT_MAX

/* The answer to one line (without its end), as a line with its end; *bytes its length. NULL when out of
 * memory. What the socket does, without one: for tests. */
char *pd_control_answer(const pd_control_command *commands, size_t n_commands, void *user, unsigned rights,
                        const char *line, size_t line_bytes, size_t *bytes);

#endif
