#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "control.h"
#include "ctl.h"
#include "text.h"
#include "unix_socket.h"

enum { REQUEST_ANSWER_MAX = 64 * 1024 * 1024, REQUEST_FIRST_BYTES = 65536 };

static int request_connect(const ctl_call *call, pd_error *err) {
    char path[512];
    if (pd_control_path(call->control, path, sizeof path, err) != 0)
        return -1;
    int fd = pd_unix_connect(path, err);
    struct timeval patience = {.tv_sec = (time_t)call->timeout_s};
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
                    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)) {
        pd_error_set(err, "%s: %s", path, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

static int request_send(int fd, const char *text, size_t n, pd_error *err) {
    while (n) {
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return pd_error_set(err, "the request cannot be sent: %s", strerror(errno));
        text += sent;
        n -= (size_t)sent;
    }
    return 0;
}

/* Reads up to the end of the line. Returns the line, to be freed, or NULL with err. */
static char *request_receive(int fd, size_t *bytes, pd_error *err) {
    char *text = NULL;
    size_t cap = 0, n = 0;
    for (;;) {
        if (n == cap) {
            cap = cap ? 2 * cap : REQUEST_FIRST_BYTES;
            char *larger = cap <= REQUEST_ANSWER_MAX ? realloc(text, cap) : NULL;
            if (!larger) {
                pd_error_set(err, "the answer is too long");
                break;
            }
            text = larger;
        }
        ssize_t got = recv(fd, text + n, cap - n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            bool late = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
            pd_error_set(err, "no whole answer came: %s",
                         late       ? "photond is silent"
                         : got == 0 ? "the connection was closed"
                                    : strerror(errno));
            break;
        }
        char *end = memchr(text + n, '\n', (size_t)got);
        n += (size_t)got;
        if (end) {
            *bytes = (size_t)(end - text);
            return text;
        }
    }
    free(text);
    return NULL;
}

/* `line` without its end. */
static int request_exchange(const ctl_call *call, const char *line, json_t **ret, pd_error *err) {
    int fd = request_connect(call, err);
    if (fd < 0)
        return -1;
    size_t bytes = 0;
    char *text = request_send(fd, line, strlen(line), err) == 0 && request_send(fd, "\n", 1, err) == 0
                     ? request_receive(fd, &bytes, err)
                     : NULL;
    close(fd);
    if (!text)
        return -1;
    json_error_t why;
    json_t *answer = json_loadb(text, bytes, 0, &why);
    free(text);
    if (!json_is_object(answer)) {
        json_decref(answer);
        return pd_error_set(err, "the answer is not photond's: %s", why.text);
    }
    *ret = answer;
    return 0;
}

static char *request_line(const char *command, json_t *members) {
    json_t *request = json_pack("{s:s}", "command", command);
    char *line = NULL;
    if (request && (!members || json_object_update(request, members) == 0))
        line = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    json_decref(members);
    return line;
}

int ctl_request(const ctl_call *call, const char *command, json_t *members, json_t **ret) {
    pd_error err = {""};
    json_t *answer = NULL;
    char *line = request_line(command, members);
    if (!line)
        return cli_fail(call->self, "the request cannot be made: an argument is no UTF-8");
    int failed = request_exchange(call, line, &answer, &err);
    free(line);
    if (failed)
        return cli_fail(call->self, "%s", err.text);
    if (json_is_true(json_object_get(answer, "ok"))) {
        *ret = answer;
        return CLI_OK;
    }
    const char *said = json_string_value(json_object_get(answer, "error"));
    cli_fail(call->self, "photond refused: %s", said ? said : "no reason was given");
    json_decref(answer);
    return CLI_PROBLEMS;
}
