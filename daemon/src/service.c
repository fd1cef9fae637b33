#include "service.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "log.h"

enum { SERVICE_WAIT_MS = 1000 };

/* The manager's address: a path, or with "@" a name of no file. Returns its length; 0: there is none, or another kind. */
static socklen_t service_address(struct sockaddr_un *ret) {
    const char *name = getenv("NOTIFY_SOCKET");
    size_t n = name ? strlen(name) : 0;
    if (n < 2 || n >= sizeof ret->sun_path || (*name != '/' && *name != '@'))
        return 0;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, name, n);
    if (*name == '@')
        *ret->sun_path = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

/* A manager that does not read its notices must not hold up the loop, so sd_notify(3) cannot be used: it waits. */
static void service_notify(const char *state, unsigned wait_ms) {
    struct sockaddr_un to;
    struct timeval wait = {.tv_usec = 1000 * ((suseconds_t)wait_ms % 1000), .tv_sec = wait_ms / 1000};
    socklen_t n = service_address(&to);
    int fd = n ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (n == 0)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL | (wait_ms ? 0 : MSG_DONTWAIT),
                         (const struct sockaddr *)&to, n) < 0)
        pd_log(wait_ms ? PD_LOG_WARNING : PD_LOG_DEBUG, "the service manager could not be told %.12s: %s",
               state, strerror(errno));
    if (fd >= 0)
        close(fd);
}

void pd_service_ready(void) {
    service_notify("READY=1", SERVICE_WAIT_MS);
}

void pd_service_reloading(void) {
    struct timespec now;
    char state[80];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    service_notify(state, 0);
}

void pd_service_stopping(void) {
    service_notify("STOPPING=1", 0);
}

void pd_service_status(const char *text) {
    char state[512];
    snprintf(state, sizeof state, "STATUS=%s", text);
    service_notify(state, 0);
}

void pd_service_alive(void) {
    service_notify("WATCHDOG=1", 0);
}

uint64_t pd_service_watchdog_ms(void) {
    uint64_t us = 0;
    if (sd_watchdog_enabled(0, &us) <= 0)
        return 0;
    return us < 1000 ? 1 : us / 1000;
}

/* ---- sockets ---- */

static int service_take(pd_passed *passed, int n, char **names, pd_error *err) {
    if (n > PD_PASSED_MAX)
        return pd_error_set(err, "the service manager passed %d sockets, more than %d", n, PD_PASSED_MAX);
    for (int i = 0; i < n; i++) {
        int fd = SD_LISTEN_FDS_START + i;
        const char *name = names && names[i] ? names[i] : "unknown";
        if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
            return pd_error_set(
                err, "the service manager passed \"%.60s\", which is no listening stream socket", name);
        pd_passed_socket *socket = &passed->sockets[passed->n++];
        socket->fd = fd;
        snprintf(socket->name, sizeof socket->name, "%s", name);
    }
    return 0;
}

int pd_service_sockets(pd_passed *ret, pd_error *err) {
    char **names = NULL;
    int n = sd_listen_fds_with_names(1, &names);
    *ret = (pd_passed){0};
    int failed = n < 0 ? pd_error_set(err, "the sockets that the service manager passed cannot be taken: %s",
                                      strerror(-n))
                       : service_take(ret, n, names, err);
    for (char **name = names; name && *name; name++)
        free(*name);
    free(names);
    return failed;
}

int pd_service_control_socket(pd_passed *passed, const char *path) {
    pd_passed_socket *found = NULL;
    for (size_t i = 0; i < passed->n && !found; i++)
        if (strcmp(passed->sockets[i].name, "control") == 0)
            found = &passed->sockets[i];
    for (size_t i = 0; i < passed->n && !found && *path; i++)
        if (sd_is_socket_unix(passed->sockets[i].fd, SOCK_STREAM, 1, path, 0) > 0)
            found = &passed->sockets[i];
    if (!found)
        return -1;
    int fd = found->fd;
    found->fd = -1;
    return fd;
}
