#include "signature.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct proof_key {
    EVP_PKEY *pkey;
};

/* A key that needs a password is no good here: nobody is there to type it. */
static int no_password(char *to, int cap, int writing, void *ctx) {
    (void)to;
    (void)cap;
    (void)writing;
    (void)ctx;
    return -1;
}

static int key_fail(char why[PROOF_WHY_BYTES], const char *path, const char *what) {
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    snprintf(why, PROOF_WHY_BYTES, "%.300s: %s%s%s", path, what, reason ? ": " : "", reason ? reason : "");
    ERR_clear_error();
    return -1;
}

static int key_no_file(char why[PROOF_WHY_BYTES], const char *path) {
    snprintf(why, PROOF_WHY_BYTES, "%.300s: cannot be opened: %s", path, strerror(errno));
    return -1;
}

/* Takes `pkey` over. */
static int key_make(proof_key **ret, EVP_PKEY *pkey, const char *path, const char *what,
                    char why[PROOF_WHY_BYTES]) {
    proof_key *key = pkey ? malloc(sizeof *key) : NULL;
    if (!key) {
        int failed = key_fail(why, path, pkey ? "out of memory" : what);
        EVP_PKEY_free(pkey);
        return failed;
    }
    key->pkey = pkey;
    *ret = key;
    ERR_clear_error();
    return 0;
}

int proof_key_read_private(proof_key **ret, const char *path, char why[PROOF_WHY_BYTES]) {
    struct stat there;
    FILE *f = fopen(path, "re");
    if (!f)
        return key_no_file(why, path);
    if (fstat(fileno(f), &there) != 0 || there.st_mode & (S_IWGRP | S_IRWXO)) {
        fclose(f);
        snprintf(why, PROOF_WHY_BYTES, "%.300s: others may read it, or its group change it: chmod 0600 it",
                 path);
        return -1;
    }
    EVP_PKEY *pkey = PEM_read_PrivateKey(f, NULL, no_password, NULL);
    fclose(f);
    return key_make(ret, pkey, path, "holds no private key in PEM that can be read without a password", why);
}

static EVP_PKEY *key_of_certificate(FILE *f) {
    rewind(f);
    X509 *certificate = PEM_read_X509(f, NULL, no_password, NULL);
    EVP_PKEY *pkey = certificate ? X509_get_pubkey(certificate) : NULL;
    X509_free(certificate);
    return pkey;
}

int proof_key_read_public(proof_key **ret, const char *path, char why[PROOF_WHY_BYTES]) {
    FILE *f = fopen(path, "re");
    if (!f)
        return key_no_file(why, path);
    EVP_PKEY *pkey = PEM_read_PUBKEY(f, NULL, no_password, NULL);
    if (!pkey)
        pkey = key_of_certificate(f);
    fclose(f);
    return key_make(ret, pkey, path, "holds no public key in PEM", why);
}

void proof_key_free(proof_key *key) {
    if (!key)
        return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

/* Ed25519 and Ed448 sign the bytes themselves. */
static const EVP_MD *key_digest(const proof_key *key) {
    int kind = EVP_PKEY_get_base_id(key->pkey);
    return kind == EVP_PKEY_ED25519 || kind == EVP_PKEY_ED448 ? NULL : EVP_sha256();
}

int proof_sign(const proof_key *key, const void *data, size_t bytes,
               uint8_t signature[PROOF_SIGNATURE_BYTES_MAX], size_t *ret_bytes, char why[PROOF_WHY_BYTES]) {
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    size_t n = PROOF_SIGNATURE_BYTES_MAX;
    int failed = md && EVP_DigestSignInit(md, NULL, key_digest(key), NULL, key->pkey) == 1 &&
                         EVP_DigestSign(md, signature, &n, data, bytes) == 1
                     ? 0
                     : key_fail(why, "the key", "cannot sign");
    EVP_MD_CTX_free(md);
    *ret_bytes = failed ? 0 : n;
    return failed;
}

bool proof_signed(const proof_key *key, const void *data, size_t bytes, const uint8_t *signature, size_t n) {
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool good = md && EVP_DigestVerifyInit(md, NULL, key_digest(key), NULL, key->pkey) == 1 &&
                EVP_DigestVerify(md, signature, n, data, bytes) == 1;
    EVP_MD_CTX_free(md);
    ERR_clear_error();
    return good;
}
