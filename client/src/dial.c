#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "internal.h"

/* Waits until a connection that was begun stands. Returns 0 or the errno of its failure. */
static int dial_wait(int fd, int wake_fd, uint64_t deadline_ns) {
    struct pollfd p[2] = {{.fd = fd, .events = POLLOUT}, {.fd = wake_fd, .events = POLLIN}};
    int error = 0;
    socklen_t bytes = sizeof error;
    for (;;) {
        int ms = client__poll_ms(deadline_ns);
        int n = poll(p, 2, ms);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0 && p[1].revents)
            return ECANCELED;
        if (n > 0)
            break;
        if (ms == 0)
            return ETIMEDOUT;
    }
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

static int dial_one(int family, const struct sockaddr *address, socklen_t bytes, int wake_fd,
                    uint64_t deadline_ns, int *ret_fd) {
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int error = connect(fd, address, bytes) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR)
        error = dial_wait(fd, wake_fd, deadline_ns);
    if (error) {
        close(fd);
        return error;
    }
    *ret_fd = fd;
    return 0;
}

/* Small batches go out at once, and a host that has vanished is noticed while the connection is idle. */
static void dial_tune(int fd) {
    static const int on = 1, idle_s = 15, interval_s = 5, count = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

static int dial_tcp(const wire_address *address, int wake_fd, uint64_t deadline_ns, int *ret_fd,
                    photon_client_error *err) {
    char port[8], text[WIRE_ADDRESS_TEXT_BYTES];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list = NULL;
    snprintf(port, sizeof port, "%u", (unsigned)address->port);
    int rc = getaddrinfo(address->host, port, &hints, &list);
    if (rc != 0)
        return client__os_error(err, PHOTON_CLIENT_ERR_CONNECT, rc == EAI_SYSTEM ? errno : 0,
                                "the host of %s is not known (%s)", wire_address_text(address, text),
                                gai_strerror(rc));
    int error = EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a; a = a->ai_next) {
        error = dial_one(a->ai_family, a->ai_addr, a->ai_addrlen, wake_fd, deadline_ns, ret_fd);
        if (error == 0 || error == ECANCELED)
            break;
    }
    freeaddrinfo(list);
    if (error)
        return client__os_error(err, PHOTON_CLIENT_ERR_CONNECT, error, "%s cannot be reached",
                                wire_address_text(address, text));
    dial_tune(*ret_fd);
    return 0;
}

static int dial_unix(const wire_address *address, int wake_fd, uint64_t deadline_ns, int *ret_fd,
                     photon_client_error *err) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    _Static_assert(sizeof name.sun_path == sizeof address->path, "a path that parses fits");
    memcpy(name.sun_path, address->path, sizeof name.sun_path);
    int error = dial_one(AF_UNIX, (const struct sockaddr *)&name, sizeof name, wake_fd, deadline_ns, ret_fd);
    if (error == EAGAIN) /* a Unix socket whose queue of connections is full */
        error = ECONNREFUSED;
    if (error)
        return client__os_error(err, PHOTON_CLIENT_ERR_CONNECT, error, "unix:%s cannot be reached",
                                address->path);
    return 0;
}

int client__dial(const wire_address *address, int wake_fd, uint64_t deadline_ns, int *ret_fd,
                 photon_client_error *err) {
    if (address->kind == WIRE_ADDRESS_UNIX)
        return dial_unix(address, wake_fd, deadline_ns, ret_fd, err);
    return dial_tcp(address, wake_fd, deadline_ns, ret_fd, err);
}

int client__dial_wait(int fd, int wake_fd, bool full, const char *address_text, uint64_t deadline_ns,
                      photon_client_error *err) {
    struct pollfd p[2] = {{.fd = fd, .events = (short)(POLLIN | (full ? POLLOUT : 0))},
                          {.fd = wake_fd, .events = POLLIN}};
    int ms = client__poll_ms(deadline_ns), n = poll(p, 2, ms);
    if (n > 0 && p[1].revents)
        return client__os_error(err, PHOTON_CLIENT_ERR_CONNECT, ECANCELED, "connecting to %s was given up",
                                address_text);
    if (n == 0 && ms == 0)
        return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s did not answer in time", address_text);
    return 0;
}
