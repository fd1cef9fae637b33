#include "service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "log.h"

/* The manager's socket queues hundreds of messages; they are sent at most a few times a second. */
static void service_notify(const char *state) {
    int sent = sd_notify(0, state);
    if (sent < 0)
        pd_log(PD_LOG_DEBUG, "the service manager could not be told: %s", strerror(-sent));
}

void pd_service_ready(void) {
    service_notify("READY=1");
}

void pd_service_reloading(void) {
    struct timespec now;
    char state[80];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    service_notify(state);
}

void pd_service_stopping(void) {
    service_notify("STOPPING=1");
}

void pd_service_status(const char *text) {
    char state[512];
    snprintf(state, sizeof state, "STATUS=%s", text);
    service_notify(state);
}

void pd_service_alive(void) {
    service_notify("WATCHDOG=1");
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
