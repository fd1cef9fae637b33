/* TLS over memory BIOs. What is written is encrypted at once and counts as sent but for its last byte as long as the socket has
 * not taken all of it: so the caller, who comes back for that byte when the socket takes more, comes back for the rest too. */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

enum { TLS_REASON_BYTES = 160, TLS_WRITE_BYTES = 65536, TLS_READ_BYTES = 8192 };

struct client_tls_trust {
    SSL_CTX *ssl;
};

struct client_tls {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    int fd;        /* borrowed */
    bool owed;     /* the last byte written was encrypted, but not said to be sent */
};

static const char *tls_reason(char text[TLS_REASON_BYTES]) {
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    snprintf(text, TLS_REASON_BYTES, "%s", reason ? reason : "unknown error");
    ERR_clear_error();
    return text;
}

/* ---- whom to trust, what to show ---- */

static int trust_fail(const char *option, const char *path, photon_client_error *err) {
    char reason[TLS_REASON_BYTES];
    return client__error(err, PHOTON_CLIENT_ERR_ARG, "options.%s: '%s' cannot be used: %s", option, path,
                         tls_reason(reason));
}

static int trust_load(SSL_CTX *ssl, const photon_client_options *o, photon_client_error *err) {
    const char *key = o->key_file ? o->key_file : o->certificate_file;
    if (o->ca_file && SSL_CTX_load_verify_file(ssl, o->ca_file) != 1)
        return trust_fail("ca_file", o->ca_file, err);
    if (!o->ca_file && SSL_CTX_set_default_verify_paths(ssl) != 1)
        return trust_fail("ca_file", "the system's certificates", err);
    if (o->certificate_file && SSL_CTX_use_certificate_chain_file(ssl, o->certificate_file) != 1)
        return trust_fail("certificate_file", o->certificate_file, err);
    if (key && SSL_CTX_use_PrivateKey_file(ssl, key, SSL_FILETYPE_PEM) != 1)
        return trust_fail("key_file", key, err);
    return 0;
}

int client__tls_trust(client_tls_trust **ret, const photon_client_options *options,
                      photon_client_error *err) {
    ERR_clear_error();
    client_tls_trust *trust = calloc(1, sizeof *trust);
    if (trust)
        trust->ssl = SSL_CTX_new(TLS_client_method());
    if (!trust || !trust->ssl || SSL_CTX_set_min_proto_version(trust->ssl, TLS1_2_VERSION) != 1) {
        client__tls_trust_free(trust);
        return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "TLS cannot be set up");
    }
    SSL_CTX_set_verify(trust->ssl, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(trust->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(trust->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    int rc = trust_load(trust->ssl, options, err);
    if (rc != 0)
        client__tls_trust_free(trust);
    else
        *ret = trust;
    return rc;
}

void client__tls_trust_free(client_tls_trust *trust) {
    if (!trust)
        return;
    SSL_CTX_free(trust->ssl);
    free(trust);
}

/* ---- the socket ---- */

/* Returns 0: all has gone; 1: the socket is full; -1 and errno. */
static int tls_flush(client_tls *tls) {
    char *data = NULL;
    size_t bytes;
    while ((bytes = (size_t)BIO_get_mem_data(tls->out, &data)) > 0) {
        const struct iovec piece = {.iov_base = data, .iov_len = bytes};
        ssize_t n = client__socket_send(tls->fd, &piece, 1);
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 1 : -1;
        for (size_t left = (size_t)n, took = 0; left > 0; left -= took) {
            uint8_t gone[4096];
            if (BIO_read_ex(tls->out, gone, left < sizeof gone ? left : sizeof gone, &took) != 1)
                return -1;
        }
    }
    return 0;
}

/* Returns 1: bytes have come; 0: the end; -1 and errno. */
static int tls_fill(client_tls *tls) {
    uint8_t data[TLS_READ_BYTES];
    size_t written = 0;
    ssize_t n = client__socket_receive(tls->fd, data, sizeof data);
    if (n <= 0)
        return (int)n;
    errno = ENOMEM;
    return BIO_write_ex(tls->in, data, (size_t)n, &written) == 1 && written == (size_t)n ? 1 : -1;
}

/* ---- the handshake ---- */

static int tls_expect(client_tls *tls, const char *host) {
    struct in6_addr number;
    X509_VERIFY_PARAM *param = SSL_get0_param(tls->ssl);
    if (inet_pton(AF_INET, host, &number) == 1 || inet_pton(AF_INET6, host, &number) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1 ? 0 : -1;
    return SSL_set1_host(tls->ssl, host) == 1 && SSL_set_tlsext_host_name(tls->ssl, host) == 1 ? 0 : -1;
}

static client_tls *tls_create(const client_tls_trust *trust, int fd, const char *host) {
    client_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return NULL;
    tls->fd = fd;
    tls->ssl = SSL_new(trust->ssl);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        client__tls_end(tls);
        return NULL;
    }
    BIO_set_mem_eof_return(tls->in, -1); /* empty is not the end */
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_connect_state(tls->ssl);
    if (tls_expect(tls, host) == 0)
        return tls;
    client__tls_end(tls);
    return NULL;
}

/* What a failed handshake came to. A certificate that is not to be trusted will not be later. */
static int tls_handshake_failed(const client_tls *tls, const char *address_text, photon_client_error *err) {
    char reason[TLS_REASON_BYTES];
    long verified = SSL_get_verify_result(tls->ssl);
    if (verified != X509_V_OK)
        return client__error(err, PHOTON_CLIENT_ERR_PROTOCOL,
                             "the certificate of %s is not to be trusted: %s", address_text,
                             X509_verify_cert_error_string(verified));
    return client__error(err, PHOTON_CLIENT_ERR_PROTOCOL, "%s does not speak TLS with us: %s", address_text,
                         tls_reason(reason));
}

static int tls_handshake(client_tls *tls, int wake_fd, const char *address_text, uint64_t deadline_ns,
                         photon_client_error *err) {
    for (;;) {
        ERR_clear_error();
        int done = SSL_do_handshake(tls->ssl), why = SSL_get_error(tls->ssl, done), full = tls_flush(tls);
        if (done == 1 && full == 0)
            return 0;
        if (done != 1 && why != SSL_ERROR_WANT_READ)
            return tls_handshake_failed(tls, address_text, err);
        int rc = client__dial_wait(tls->fd, wake_fd, full > 0, address_text, deadline_ns, err);
        if (rc != 0)
            return rc;
        int came = tls_fill(tls);
        if (came == 0 || (came < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
            return client__os_error(err, PHOTON_CLIENT_ERR_LOST, came == 0 ? 0 : errno,
                                    "%s closed the connection in TLS's handshake", address_text);
    }
}

int client__tls_begin(client_tls **ret, const client_tls_trust *trust, int fd, int wake_fd, const char *host,
                      const char *address_text, uint64_t deadline_ns, photon_client_error *err) {
    client_tls *tls = tls_create(trust, fd, host);
    if (!tls)
        return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for TLS");
    int rc = tls_handshake(tls, wake_fd, address_text, deadline_ns, err);
    if (rc != 0)
        client__tls_end(tls);
    else
        *ret = tls;
    return rc;
}

void client__tls_end(client_tls *tls) {
    if (!tls)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

/* ---- bytes ---- */

/* Encrypts the beginning of the pieces. Returns how many bytes, 0 when that fails. */
static size_t tls_encrypt(client_tls *tls, const struct iovec *pieces, size_t n) {
    size_t total = 0;
    for (size_t i = 0; i < n && total < TLS_WRITE_BYTES; i++) {
        const uint8_t *data = pieces[i].iov_base;
        size_t want =
            pieces[i].iov_len < TLS_WRITE_BYTES - total ? pieces[i].iov_len : TLS_WRITE_BYTES - total;
        for (size_t done = 0, took = 0; done < want; done += took, total += took)
            if (SSL_write_ex(tls->ssl, data + done, want - done, &took) != 1)
                return 0;
    }
    return total;
}

ssize_t client__tls_send(client_tls *tls, const struct iovec *pieces, size_t n) {
    ERR_clear_error();
    int full = tls_flush(tls);
    size_t bytes = 0;
    if (full == 0 && tls->owed) {
        tls->owed = false;
        return 1;
    }
    if (full == 0) {
        bytes = tls_encrypt(tls, pieces, n);
        errno = EPROTO;
        full = bytes > 0 ? tls_flush(tls) : -1;
        tls->owed = full > 0;
    }
    if (full > 0)
        errno = EAGAIN;
    if (full == 0)
        return (ssize_t)bytes;
    return full > 0 && bytes > 1 ? (ssize_t)bytes - 1 : -1;
}

/* An alert of the server's is its refusal of us: of our certificate, mostly. */
static int tls_errno(void) {
    unsigned long code = ERR_peek_error();
    ERR_clear_error();
    return ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET ? EACCES : EPROTO;
}

ssize_t client__tls_receive(client_tls *tls, void *to, size_t cap) {
    size_t total = 0, n = 0;
    int came = tls_fill(tls), why = came < 0 ? errno : 0;
    bool ended = came == 0 || (came < 0 && why != EAGAIN && why != EWOULDBLOCK);
    ERR_clear_error();
    int result;
    while (total < cap && (result = SSL_read_ex(tls->ssl, (uint8_t *)to + total, cap - total, &n)) == 1)
        total += n;
    if (total > 0)
        return (ssize_t)total;
    int state = SSL_get_error(tls->ssl, 0);
    (void)tls_flush(tls);
    if (state == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (state != SSL_ERROR_WANT_READ) {
        errno = tls_errno();
        return -1;
    }
    if (came == 0)
        return 0;
    errno = ended ? why : EAGAIN;
    return -1;
}
