/* States of a client:
 *
 *   reading -> answering -> reading     a whole line came: no more is read until its answer has been
 *                                       written
 *      \____________\___-> closing      end of input, error, a line too long, idle, or the control closes
 *
 * While a client is answered it is not read from: one that does not read its answers holds up nobody,
 * and its idle timer runs on. One that closes its half after the request still gets the answer.
 */
#include "control.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "text.h"
#include "unix_socket.h"

enum { CONTROL_BACKLOG = 16, CONTROL_FIRST_BYTES = 1024 };
#define CONTROL_IDLE_MS UINT64_C(60000)

typedef struct control_client {
    uv_pipe_t pipe;
    uv_timer_t idle;
    uv_write_t write;
    pd_control *control;
    struct control_client *next;
    char *input; /* [input_cap] */
    size_t input_bytes, input_cap;
    size_t line_bytes; /* of the line that is being answered, with its end */
    char *answer;
    unsigned rights;
    bool refused; /* to be closed after the answer */
    bool closing;
    unsigned n_handles; /* not yet closed */
} control_client;

struct pd_control {
    uv_pipe_t listener;
    pd_control_options options;
    char *path;
    control_client *clients;
    size_t n_clients;
    bool closing;
    bool listener_open;
    void (*closed)(void *user);
    void *closed_user;
};

/* ---- answers ---- */

/* The sentence may hold pieces of the request. */
static json_t *control_refuse(const char *code, const char *sentence) {
    char safe[sizeof((pd_error *)0)->text];
    pd_text_escape(safe, sizeof safe, sentence);
    return json_pack("{s:b, s:s, s:s}", "ok", 0, "code", code, "error", safe);
}

static const pd_control_command *control_find(const pd_control_command *commands, size_t n,
                                              const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static json_t *control_refuse_unknown(const pd_control_command *commands, size_t n, const char *name) {
    json_t *reply = control_refuse("unknown_command", "there is no such command");
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(commands[i].name));
    json_object_set_new(reply, "command", json_string(name));
    json_object_set_new(reply, "commands", list);
    return reply;
}

static json_t *control_run(const pd_control_command *commands, size_t n, void *user, unsigned rights,
                           const json_t *request) {
    const char *name = json_string_value(json_object_get(request, "command"));
    if (!name)
        return control_refuse("bad_request", "a request is an object with the member \"command\", a string");
    const pd_control_command *command = control_find(commands, n, name);
    if (!command)
        return control_refuse_unknown(commands, n, name);
    if (command->needs & ~rights)
        return control_refuse("not_authorized", "this user may not do that (control_users, view_users)");
    pd_error err = {.text = ""};
    json_t *reply = command->run(user, request, &err);
    if (!reply)
        return control_refuse("failed", err.text[0] ? err.text : "out of memory");
    json_object_set_new(reply, "ok", json_true());
    return reply;
}

char *pd_control_answer(const pd_control_command *commands, size_t n_commands, void *user, unsigned rights,
                        const char *line, size_t line_bytes, size_t *bytes) {
    json_error_t why;
    json_t *request = json_loadb(line, line_bytes, JSON_REJECT_DUPLICATES, &why);
    json_t *reply = request ? control_run(commands, n_commands, user, rights, request)
                            : control_refuse("bad_request", why.text);
    json_t *id = json_object_get(request, "id");
    if (reply && id)
        json_object_set(reply, "id", id);
    json_decref(request);
    char *text = reply ? json_dumps(reply, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
    json_decref(reply);
    if (!text)
        return NULL;
    *bytes = strlen(text) + 1;
    char *ended = realloc(text, *bytes + 1);
    if (!ended) {
        free(text);
        return NULL;
    }
    memcpy(ended + *bytes - 1, "\n", 2);
    return ended;
}

/* ---- closing ---- */

static void control_finish(pd_control *c) {
    if (!c->closing || c->listener_open || c->clients)
        return;
    void (*closed)(void *) = c->closed;
    void *user = c->closed_user;
    free(c->path);
    free(c);
    if (closed)
        closed(user);
}

static void control_client_closed(uv_handle_t *handle) {
    control_client *k = handle->data;
    pd_control *c = k->control;
    if (--k->n_handles)
        return;
    for (control_client **at = &c->clients; *at; at = &(*at)->next) {
        if (*at == k) {
            *at = k->next;
            break;
        }
    }
    c->n_clients--;
    free(k->answer);
    free(k->input);
    free(k);
    control_finish(c);
}

static void control_client_close(control_client *k) {
    if (k->closing)
        return;
    k->closing = true;
    uv_close((uv_handle_t *)&k->pipe, control_client_closed);
    uv_close((uv_handle_t *)&k->idle, control_client_closed);
}

/* ---- a client ---- */

static void control_serve(control_client *k);

static void control_idle(uv_timer_t *timer) {
    control_client_close(timer->data);
}

/* From now on the client has its time for the next request. */
static void control_next(control_client *k) {
    if (uv_timer_start(&k->idle, control_idle, CONTROL_IDLE_MS, 0) != 0)
        control_client_close(k);
    else
        control_serve(k);
}

static void control_written(uv_write_t *write, int status) {
    control_client *k = write->data;
    free(k->answer);
    k->answer = NULL;
    if (status != 0 || k->closing || k->refused) {
        control_client_close(k);
        return;
    }
    k->input_bytes -= k->line_bytes;
    memmove(k->input, k->input + k->line_bytes, k->input_bytes);
    control_next(k);
}

static void control_send(control_client *k, char *answer, size_t bytes) {
    uv_buf_t buf = uv_buf_init(answer, (unsigned)bytes);
    k->answer = answer;
    k->write.data = k;
    if (!answer || uv_write(&k->write, (uv_stream_t *)&k->pipe, &buf, 1, control_written) != 0)
        control_client_close(k);
}

static void control_refuse_line(control_client *k, const char *code, const char *sentence) {
    json_t *reply = control_refuse(code, sentence);
    char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;
    json_decref(reply);
    k->refused = true;
    control_send(k, text, text ? strlen(text) : 0);
}

static void control_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
    control_client *k = handle->data;
    (void)suggested;
    if (k->input_bytes == k->input_cap && k->input_cap < PD_CONTROL_LINE_MAX) {
        size_t cap = k->input_cap ? 4 * k->input_cap : CONTROL_FIRST_BYTES;
        char *input = realloc(k->input, cap);
        if (input) {
            k->input = input;
            k->input_cap = cap;
        }
    }
    *buf = uv_buf_init(k->input + k->input_bytes, (unsigned)(k->input_cap - k->input_bytes));
}

static void control_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
    control_client *k = stream->data;
    (void)buf;
    if (n < 0) {
        control_client_close(k);
        return;
    }
    k->input_bytes += (size_t)n;
    control_serve(k);
}

/* Answers the next whole line, or reads on. */
static void control_serve(control_client *k) {
    char *end = k->input_bytes ? memchr(k->input, '\n', k->input_bytes) : NULL;
    if (end) {
        uv_read_stop((uv_stream_t *)&k->pipe);
        k->line_bytes = (size_t)(end - k->input) + 1;
        size_t bytes = 0;
        const pd_control_options *o = &k->control->options;
        char *answer = pd_control_answer(o->commands, o->n_commands, o->user, k->rights, k->input,
                                         k->line_bytes - 1, &bytes);
        control_send(k, answer, bytes);
        return;
    }
    if (k->input_bytes == PD_CONTROL_LINE_MAX) {
        uv_read_stop((uv_stream_t *)&k->pipe);
        control_refuse_line(k, "too_long", "a request has at most 65536 bytes");
        return;
    }
    int code = uv_read_start((uv_stream_t *)&k->pipe, control_alloc, control_read);
    if (code != 0 && code != UV_EALREADY)
        control_client_close(k);
}

/* ---- listening ---- */

static unsigned control_rights(const pd_control *c, const control_client *k) {
    uv_os_fd_t fd;
    if (!c->options.rights)
        return PD_CONTROL_ALL_RIGHTS;
    return uv_fileno((const uv_handle_t *)&k->pipe, &fd) == 0 ? c->options.rights(c->options.user, fd) : 0;
}

/* A client whose handles are initialised, or NULL. */
static control_client *control_new_client(pd_control *c) {
    control_client *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    uv_loop_t *loop = c->listener.loop;
    k->control = c;
    k->pipe.data = k->idle.data = k;
    if (uv_pipe_init(loop, &k->pipe, 0) != 0) {
        free(k);
        return NULL;
    }
    uv_timer_init(loop, &k->idle);
    k->n_handles = 2;
    k->next = c->clients;
    c->clients = k;
    c->n_clients++;
    return k;
}

static void control_connection(uv_stream_t *listener, int status) {
    pd_control *c = listener->data;
    if (status != 0 || c->closing) {
        pd_log(PD_LOG_WARNING, "control: a connection could not be taken: %s", uv_strerror(status));
        return;
    }
    control_client *k = control_new_client(c);
    if (!k) {
        pd_log(PD_LOG_WARNING, "control: a connection could not be taken: out of memory");
        return;
    }
    if (uv_accept(listener, (uv_stream_t *)&k->pipe) != 0)
        control_client_close(k);
    else if (c->n_clients > PD_CONTROL_CLIENTS_MAX)
        control_refuse_line(k, "busy", "too many control connections");
    else {
        k->rights = control_rights(c, k);
        control_next(k);
    }
}

int pd_control_start(pd_control **ret, uv_loop_t *loop, const pd_control_options *options, pd_error *err) {
    bool made = options->fd < 0;
    int fd = made ? pd_unix_listen(options->path, options->mode, options->gid, err) : options->fd;
    if (fd < 0)
        return -1;
    pd_control *c = calloc(1, sizeof *c);
    char *path = strdup(options->path);
    int code = c && path ? uv_pipe_init(loop, &c->listener, 0) : UV_ENOMEM;
    if (code != 0) {
        if (made)
            unlink(options->path);
        close(fd);
        free(path);
        free(c);
        return pd_error_set(err, "control socket: %s", uv_strerror(code));
    }
    c->options = *options;
    c->options.path = c->path = path;
    c->listener.data = c;
    c->listener_open = true;
    code = uv_pipe_open(&c->listener, fd);
    if (code != 0)
        close(fd);
    else
        code = uv_listen((uv_stream_t *)&c->listener, CONTROL_BACKLOG, control_connection);
    if (code != 0) {
        pd_error_set(err, "control socket %s: %s", options->path, uv_strerror(code));
        pd_control_close(c, NULL, NULL);
        return -1;
    }
    *ret = c;
    return 0;
}

static void control_listener_closed(uv_handle_t *handle) {
    pd_control *c = handle->data;
    c->listener_open = false;
    control_finish(c);
}

void pd_control_close(pd_control *c, void (*closed)(void *user), void *user) {
    if (!c) {
        if (closed)
            closed(user);
        return;
    }
    c->closing = true;
    c->closed = closed;
    c->closed_user = user;
    if (c->options.fd < 0)
        unlink(c->path);
    for (control_client *k = c->clients; k; k = k->next)
        control_client_close(k);
    uv_close((uv_handle_t *)&c->listener, control_listener_closed);
}
