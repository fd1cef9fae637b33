/* The bytes of one connection: the only code that reads and writes its socket. Not thread-safe: all calls are made
 * under the client's lock, or by the one thread that sets the connection up. */
#ifndef CLIENT_LINK_H
#define CLIENT_LINK_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "tls.h"

typedef struct client_link {
    int fd;          /* -1: none */
    client_tls *tls; /* NULL: without */
} client_link;

/* Without waiting: how many bytes went; -1 and errno, EAGAIN when none goes now. */
ssize_t client__link_send(client_link *link, const struct iovec *pieces, size_t n);

/* Without waiting: how many bytes came, 0 at the end of the stream; -1 and errno, EAGAIN when there are none now. */
ssize_t client__link_receive(client_link *link, void *to, size_t cap);

/* The same on the socket itself, beneath TLS. */
ssize_t client__socket_send(int fd, const struct iovec *pieces, size_t n);
ssize_t client__socket_receive(int fd, void *to, size_t cap);

/* Ends both directions: whoever waits for the socket wakes. */
void client__link_shutdown(client_link *link);
void client__link_close(client_link *link);

#endif
