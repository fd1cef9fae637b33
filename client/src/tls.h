/* TLS on a connection's socket. Like the link that it belongs to, used under the client's lock, or by the one thread that
 * sets the connection up. */
#ifndef CLIENT_TLS_H
#define CLIENT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "photon_client.h"

typedef struct client_tls_trust client_tls_trust; /* whom to trust, what to show */
typedef struct client_tls client_tls;             /* one connection's */

/* Reads the files of the options. Returns 0, or a code with err. */
int client__tls_trust(client_tls_trust **ret, const photon_client_options *options, photon_client_error *err);
void client__tls_trust_free(client_tls_trust *trust);

/* The handshake on a connected socket, which does not wait. Returns 0, or a code with err; ERR_TIMEOUT at the deadline. */
int client__tls_begin(client_tls **ret, const client_tls_trust *trust, int fd, int wake_fd, const char *host,
                      const char *address_text, uint64_t deadline_ns, photon_client_error *err);
void client__tls_end(client_tls *tls);

/* As sendmsg() and recv() would: bytes that went or came; -1 and errno, EAGAIN when none do now, EPROTO when the other side
 * does not speak TLS as it should. 0 of receive: the end. */
ssize_t client__tls_send(client_tls *tls, const struct iovec *pieces, size_t n);
ssize_t client__tls_receive(client_tls *tls, void *to, size_t cap);

#endif
