/* Detached signatures: of Ed25519 keys over the bytes themselves, of all other keys (ECDSA, RSA) over their SHA-256. The
 * openssl command makes and proves the same ones:
 *
 *   openssl pkeyutl -verify -pubin -inkey PUB.pem -rawin -in FILE -sigfile FILE.sig                  Ed25519
 *   openssl dgst -sha256 -verify PUB.pem -signature FILE.sig FILE                                    the others
 *
 * A key may be used by one thread at a time. */
#ifndef COMMON_PROOF_SIGNATURE_H
#define COMMON_PROOF_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROOF_SIGNATURE_BYTES_MAX = 2048, PROOF_WHY_BYTES = 512 };

typedef struct proof_key proof_key;

/* The private key of a PEM file, which its owner and, at most, its group may read. Returns 0; -1 with `why`, which names the file. */
int proof_key_read_private(proof_key **ret, const char *path, char why[PROOF_WHY_BYTES]);

/* The public key of a PEM file: of a public key, or of a certificate. Returns likewise. */
int proof_key_read_public(proof_key **ret, const char *path, char why[PROOF_WHY_BYTES]);

/* NULL is fine. */
void proof_key_free(proof_key *key);

/* Signs. *ret_bytes of `signature` are it. Returns 0; -1: OpenSSL cannot, with `why`. */
int proof_sign(const proof_key *key, const void *data, size_t bytes,
               uint8_t signature[PROOF_SIGNATURE_BYTES_MAX], size_t *ret_bytes, char why[PROOF_WHY_BYTES]);

/* Whether the key made this signature of these bytes. */
bool proof_signed(const proof_key *key, const void *data, size_t bytes, const uint8_t *signature, size_t n);

#endif
