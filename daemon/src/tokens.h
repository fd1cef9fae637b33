/* Tokens: secrets that clients show in Hello. The daemon knows only their SHA-256; a token is 32 random bytes as text,
 * so that nothing slower is needed against guessing.
 *
 * The file has a token a line, `NAME RIGHTS SHA256` or `NAME RIGHTS SHA256 INSTANCES` with single spaces: the name for people
 * ([A-Za-z0-9._-], 1 to 64), the rights as "send,view", the hash as 64 hexadecimal digits, and the instances that its holder may
 * speak for: patterns with commas between them, in which * is any bytes and ? is one. Empty lines and lines that begin with
 * # are passed over.
 * Thread: any, one at a time.
 */
#ifndef PD_TOKENS_H
#define PD_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

enum {
    PD_TOKEN_HASH_BYTES = 32,
    PD_TOKEN_NAME_BYTES = 64,
    PD_TOKEN_INSTANCES_BYTES = 255,
    PD_TOKENS_MAX = 4096,
    PD_TOKEN_TEXT_BYTES = 48,
    PD_TOKEN_LINE_BYTES = 512
};

typedef struct pd_token {
    char name[PD_TOKEN_NAME_BYTES + 1];
    char instances[PD_TOKEN_INSTANCES_BYTES + 1]; /* "": any */
    unsigned rights;
    uint8_t hash[PD_TOKEN_HASH_BYTES];
} pd_token;

typedef struct pd_tokens pd_tokens;

/* Reads a file. Returns 0, or -1 with err: file, line, what is wrong. */
PD_MUST_USE int pd_tokens_read(pd_tokens **ret, const char *path, pd_error *err);
void pd_tokens_free(pd_tokens *tokens);

/* The token that a client showed; NULL when it is none. Takes as long for any: all hashes are compared, wholly. */
const pd_token *pd_tokens_find(const pd_tokens *tokens, const uint8_t *shown, size_t bytes);

/* Whether one of this very name, hash, rights and instances is there. */
bool pd_tokens_still_has(const pd_tokens *tokens, const pd_token *token);

/* Whether its holder may name this instance in Hello. */
bool pd_token_speaks_for(const pd_token *token, const char *instance);

size_t pd_tokens_count(const pd_tokens *tokens);

/* A new secret, as the client keeps it. Returns 0, or -1 with err. */
PD_MUST_USE int pd_token_make(char text[PD_TOKEN_TEXT_BYTES], pd_error *err);

/* Its line in the file, without an end. instances: NULL for any. Returns 0, or -1 with err: a bad name, bad patterns. */
PD_MUST_USE int pd_token_line(const char *name, unsigned rights, const char *instances, const char *text,
                              char line[PD_TOKEN_LINE_BYTES], pd_error *err);

#endif
