/* TLS between a socket's bytes and a connection's, without any input or output of its own: what came from the socket is put in,
 * plain bytes come out; plain bytes are put in, what is to be sent comes out.
 *
 * TLS 1.2 and 1.3, no renegotiation, no resumption, no compression. Memory: what was put in and not read yet (the caller does
 * not put in more before all was read), what is to be sent and was not taken yet, and OpenSSL's own of some tens of KiB.
 * Thread: the loop's.
 */
#ifndef PD_TLS_H
#define PD_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "error.h"

typedef struct pd_tls_context pd_tls_context; /* certificate, key, whom to trust */
typedef struct pd_tls pd_tls;                 /* one connection's */

/* Reads the files of the configuration (tls_certificate, tls_key, tls_client_ca, tls_client_crl). A client must have a
 * certificate when `certificate_needed`. Returns 0, or -1 with err. */
PD_MUST_USE int pd_tls_context_create(pd_tls_context **ret, const pd_config *config, bool certificate_needed,
                                      pd_error *err);
void pd_tls_context_free(pd_tls_context *context);

/* NULL when out of memory. The context may be freed before. */
pd_tls *pd_tls_create(const pd_tls_context *context);
void pd_tls_free(pd_tls *tls);

typedef enum pd_tls_status {
    PD_TLS_OK,
    PD_TLS_MORE,  /* all that was put in is used up */
    PD_TLS_END,   /* the client has said that it sends nothing more */
    PD_TLS_FAILED /* pd_tls_failure() says why; what is to be sent may hold an alert */
} pd_tls_status;

/* Bytes that came from the socket. Returns 0, or -1 when out of memory. */
int pd_tls_put(pd_tls *tls, const uint8_t *data, size_t bytes);

/* Plain bytes, as many as there are and fit: *got > 0 with OK. Carries the handshake on, too. */
pd_tls_status pd_tls_read(pd_tls *tls, uint8_t *at, size_t room, size_t *got);

/* Takes all of it, once the handshake is over; before: PD_TLS_MORE and nothing is taken. */
pd_tls_status pd_tls_write(pd_tls *tls, const uint8_t *data, size_t bytes);

/* Says that nothing more will be sent. */
void pd_tls_finish(pd_tls *tls);

/* What is to be sent. */
size_t pd_tls_to_send(const pd_tls *tls);
size_t pd_tls_take(pd_tls *tls, uint8_t *to, size_t cap);

/* The handshake is over. */
bool pd_tls_stands(const pd_tls *tls);

/* The subject of the certificate that the client showed, made safe to show. Returns false when it showed none. */
bool pd_tls_peer_name(const pd_tls *tls, char *name, size_t cap);

const char *pd_tls_failure(const pd_tls *tls);

#endif
