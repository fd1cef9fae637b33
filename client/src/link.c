#include "link.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t client__link_send(client_link *link, const struct iovec *pieces, size_t n) {
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = n};
    ssize_t sent;
    if (link->tls)
        return client__tls_send(link->tls, pieces, n);
    do
        sent = sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent;
}

ssize_t client__link_receive(client_link *link, void *to, size_t cap) {
    ssize_t n;
    if (link->tls)
        return client__tls_receive(link->tls, to, cap);
    do
        n = recv(link->fd, to, cap, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n;
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
