#include "link.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t client__socket_send(int fd, const struct iovec *pieces, size_t n) {
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = n};
    ssize_t sent;
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent;
}

ssize_t client__socket_receive(int fd, void *to, size_t cap) {
    ssize_t n;
    do
        n = recv(fd, to, cap, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
}

ssize_t client__link_send(client_link *link, const struct iovec *pieces, size_t n) {
    return link->tls ? client__tls_send(link->tls, pieces, n) : client__socket_send(link->fd, pieces, n);
}

ssize_t client__link_receive(client_link *link, void *to, size_t cap) {
    return link->tls ? client__tls_receive(link->tls, to, cap) : client__socket_receive(link->fd, to, cap);
}

void client__link_shutdown(client_link *link) {
    if (link->fd >= 0)
        shutdown(link->fd, SHUT_RDWR);
}

void client__link_close(client_link *link) {
    client__tls_end(link->tls);
    link->tls = NULL;
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}
