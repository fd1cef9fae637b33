#include "tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { TLS_CERTIFICATES_BYTES = 32768, TLS_FAILURE_BYTES = 160, TLS_DEPTH = 5 };

struct pd_tls_context {
    SSL_CTX *ssl;
};

struct pd_tls {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    char failure[TLS_FAILURE_BYTES];
};

/* ---- context ---- */

static const char *tls_reason(char *text, size_t cap) {
    unsigned long code = ERR_peek_error();
    const char *reason = ERR_reason_error_string(code);
    snprintf(text, cap, "%s", reason ? reason : "unknown error");
    ERR_clear_error();
    return text;
}

static int context_fail(const char *path, const char *what, pd_error *err) {
    char reason[TLS_FAILURE_BYTES];
    return pd_error_set(err, "%s: %s: %s", path, what, tls_reason(reason, sizeof reason));
}

static int context_set_up(SSL_CTX *ssl) {
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ssl, 0);
    SSL_CTX_set_max_cert_list(ssl, TLS_CERTIFICATES_BYTES);
    SSL_CTX_set_verify_depth(ssl, TLS_DEPTH);
    return SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1 &&
                   SSL_CTX_set_cipher_list(ssl, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
               ? 0
               : -1;
}

static int context_load_own(SSL_CTX *ssl, const pd_config *config, pd_error *err) {
    if (SSL_CTX_use_certificate_chain_file(ssl, config->tls_certificate) != 1)
        return context_fail(config->tls_certificate,
                            "no certificate can be read from it (key tls_certificate)", err);
    if (SSL_CTX_use_PrivateKey_file(ssl, config->tls_key, SSL_FILETYPE_PEM) != 1)
        return context_fail(config->tls_key, "no key for the certificate can be read from it (key tls_key)",
                            err);
    return 0;
}

static int context_load_crl(SSL_CTX *ssl, const char *path, pd_error *err) {
    X509_STORE *store = SSL_CTX_get_cert_store(ssl);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) < 1)
        return context_fail(path, "no list of revoked certificates can be read from it (key tls_client_crl)",
                            err);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    return 0;
}

static int context_load_clients(SSL_CTX *ssl, const pd_config *config, bool needed, pd_error *err) {
    const char *ca = config->tls_client_ca;
    if (!*ca)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(ca);
    if (!names || SSL_CTX_load_verify_file(ssl, ca) != 1) {
        sk_X509_NAME_pop_free(names, X509_NAME_free);
        return context_fail(ca, "no certificates can be read from it (key tls_client_ca)", err);
    }
    SSL_CTX_set_client_CA_list(ssl, names);
    SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | (needed ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), NULL);
    return *config->tls_client_crl ? context_load_crl(ssl, config->tls_client_crl, err) : 0;
}

int pd_tls_context_create(pd_tls_context **ret, const pd_config *config, bool certificate_needed,
                          pd_error *err) {
    ERR_clear_error();
    pd_tls_context *context = calloc(1, sizeof *context);
    if (context)
        context->ssl = SSL_CTX_new(TLS_server_method());
    if (!context || !context->ssl || context_set_up(context->ssl) != 0) {
        pd_tls_context_free(context);
        return pd_error_set(err, "TLS cannot be set up");
    }
    if (context_load_own(context->ssl, config, err) != 0 ||
        context_load_clients(context->ssl, config, certificate_needed, err) != 0) {
        pd_tls_context_free(context);
        return -1;
    }
    *ret = context;
    return 0;
}

void pd_tls_context_free(pd_tls_context *context) {
    if (!context)
        return;
    SSL_CTX_free(context->ssl);
    free(context);
}

/* ---- a connection ---- */

pd_tls *pd_tls_create(const pd_tls_context *context) {
    pd_tls *tls = calloc(1, sizeof *tls);
    if (!tls)
        return NULL;
    tls->ssl = SSL_new(context->ssl);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        SSL_free(tls->ssl);
        free(tls);
        return NULL;
    }
    BIO_set_mem_eof_return(tls->in, -1); /* empty is not the end */
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

void pd_tls_free(pd_tls *tls) {
    if (!tls)
        return;
    SSL_free(tls->ssl);
    free(tls);
}

int pd_tls_put(pd_tls *tls, const uint8_t *data, size_t bytes) {
    size_t written = 0;
    return BIO_write_ex(tls->in, data, bytes, &written) == 1 && written == bytes ? 0 : -1;
}

static pd_tls_status tls_result(pd_tls *tls, int result) {
    char reason[TLS_FAILURE_BYTES - 32];
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_NONE:
        return PD_TLS_OK;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return PD_TLS_MORE;
    case SSL_ERROR_ZERO_RETURN:
        return PD_TLS_END;
    default:
        snprintf(tls->failure, sizeof tls->failure, "TLS: %s%s", tls_reason(reason, sizeof reason),
                 SSL_is_init_finished(tls->ssl) ? "" : ", in the handshake");
        return PD_TLS_FAILED;
    }
}

pd_tls_status pd_tls_read(pd_tls *tls, uint8_t *at, size_t room, size_t *got) {
    pd_tls_status status = PD_TLS_OK;
    *got = 0;
    if (*tls->failure)
        return PD_TLS_FAILED;
    while (*got < room && status == PD_TLS_OK) {
        size_t n = 0;
        ERR_clear_error();
        status = tls_result(tls, SSL_read_ex(tls->ssl, at + *got, room - *got, &n));
        *got += n;
    }
    return *got > 0 && !*tls->failure ? PD_TLS_OK : status;
}

pd_tls_status pd_tls_write(pd_tls *tls, const uint8_t *data, size_t bytes) {
    size_t done = 0;
    if (!SSL_is_init_finished(tls->ssl))
        return PD_TLS_MORE;
    while (done < bytes) {
        size_t n = 0;
        ERR_clear_error();
        pd_tls_status status = tls_result(tls, SSL_write_ex(tls->ssl, data + done, bytes - done, &n));
        if (status != PD_TLS_OK) { /* a memory BIO takes all there is memory for */
            if (!*tls->failure)
                snprintf(tls->failure, sizeof tls->failure, "TLS: out of memory");
            return PD_TLS_FAILED;
        }
        done += n;
    }
    return PD_TLS_OK;
}

void pd_tls_finish(pd_tls *tls) {
    ERR_clear_error();
    if (SSL_is_init_finished(tls->ssl) && !*tls->failure)
        (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

size_t pd_tls_to_send(const pd_tls *tls) {
    return BIO_ctrl_pending(tls->out);
}

size_t pd_tls_take(pd_tls *tls, uint8_t *to, size_t cap) {
    size_t n = 0;
    return BIO_read_ex(tls->out, to, cap, &n) == 1 ? n : 0;
}

bool pd_tls_stands(const pd_tls *tls) {
    return SSL_is_init_finished(tls->ssl) && !*tls->failure;
}

bool pd_tls_peer_name(const pd_tls *tls, char *name, size_t cap) {
    char raw[256] = "";
    X509 *certificate = SSL_get1_peer_certificate(tls->ssl);
    if (!certificate)
        return false;
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, raw, sizeof raw);
    X509_free(certificate);
    pd_text_escape(name, cap, raw);
    return true;
}

const char *pd_tls_failure(const pd_tls *tls) {
    return tls->failure;
}
