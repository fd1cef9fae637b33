#include "tokens.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "log.h"
#include "rights.h"
#include "text.h"

struct pd_tokens {
    pd_token *items; /* [n] */
    size_t n, cap;
};

enum { TOKEN_SECRET_BYTES = 32 };

static bool token_name_is_right(const char *name) {
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return n >= 1 && n <= PD_TOKEN_NAME_BYTES && name[n] == 0;
}

static int token_check_name(const char *name, pd_error *err) {
    return token_name_is_right(name)
               ? 0
               : pd_error_set(err, "a name is 1 to %d of A-Z a-z 0-9 . _ -", PD_TOKEN_NAME_BYTES);
}

/* Patterns with a comma between any two, none of them empty. */
static int token_check_instances(const char *patterns, pd_error *err) {
    size_t n = strlen(patterns);
    if (n < 1 || n > PD_TOKEN_INSTANCES_BYTES)
        return pd_error_set(err, "patterns of instances take 1 to %d bytes", PD_TOKEN_INSTANCES_BYTES);
    for (const char *at = patterns; *at; at++)
        if ((uint8_t)*at <= ' ' || *at == 127)
            return pd_error_set(err, "patterns of instances hold no spaces; ? stands for one");
    if (patterns[0] == ',' || patterns[n - 1] == ',' || strstr(patterns, ",,"))
        return pd_error_set(err, "\"%.100s\" has an empty pattern", patterns);
    return 0;
}

static int token_parse(char *line, pd_token *token, pd_error *err) {
    char *rights = strchr(line, ' '), *hash = rights ? strchr(rights + 1, ' ') : NULL;
    if (!hash)
        return pd_error_set(err, "a line is NAME RIGHTS SHA256 [INSTANCES], with single spaces");
    *rights++ = *hash++ = 0;
    char *instances = strchr(hash, ' ');
    if (instances) {
        *instances++ = 0;
        if (token_check_instances(instances, err) != 0)
            return -1;
        memcpy(token->instances, instances, strlen(instances) + 1);
    }
    if (token_check_name(line, err) != 0)
        return -1;
    if (pd_rights_parse(rights, &token->rights, err) != 0)
        return -1;
    if (pd_text_unhex(token->hash, sizeof token->hash, hash) != 0)
        return pd_error_set(err, "a hash is 64 hexadecimal digits");
    memcpy(token->name, line, strlen(line) + 1);
    return 0;
}

static int tokens_add(pd_tokens *tokens, char *line, pd_error *err) {
    pd_token token = {.name = ""};
    if (token_parse(line, &token, err) != 0)
        return -1;
    for (size_t i = 0; i < tokens->n; i++)
        if (strcmp(tokens->items[i].name, token.name) == 0)
            return pd_error_set(err, "the name %s is there twice", token.name);
    if (tokens->n == PD_TOKENS_MAX)
        return pd_error_set(err, "more than %d tokens", PD_TOKENS_MAX);
    if (tokens->n == tokens->cap) {
        size_t cap = tokens->cap ? 2 * tokens->cap : 16;
        pd_token *items = realloc(tokens->items, cap * sizeof *items);
        if (!items)
            return pd_error_set(err, "out of memory");
        tokens->items = items;
        tokens->cap = cap;
    }
    tokens->items[tokens->n++] = token;
    return 0;
}

static int tokens_read_lines(pd_tokens *tokens, FILE *f, pd_error *err) {
    char line[PD_TOKEN_LINE_BYTES];
    for (unsigned number = 1; fgets(line, sizeof line, f); number++) {
        size_t n = strcspn(line, "\n");
        if (line[n] == 0 && !feof(f))
            return pd_error_set(err, "line %u: too long, or with a NUL", number);
        line[n] = 0;
        if (n > 0 && line[n - 1] == '\r')
            line[n - 1] = 0;
        if (line[0] == 0 || line[0] == '#')
            continue;
        if (tokens_add(tokens, line, err) != 0)
            return pd_error_prefix(err, "line %u", number);
    }
    return ferror(f) ? pd_error_set(err, "cannot be read: %s", strerror(errno)) : 0;
}

int pd_tokens_read(pd_tokens **ret, const char *path, pd_error *err) {
    struct stat st;
    FILE *f = fopen(path, "re");
    if (!f)
        return pd_error_set(err, "%s: cannot be opened: %s", path, strerror(errno));
    pd_tokens *tokens = calloc(1, sizeof *tokens);
    int failed = tokens ? 0 : pd_error_set(err, "out of memory");
    if (!failed && fstat(fileno(f), &st) == 0 && st.st_mode & 022)
        pd_log(PD_LOG_WARNING, "%s: others may write to it, and so give themselves rights", path);
    if (!failed)
        failed = tokens_read_lines(tokens, f, err);
    fclose(f);
    if (failed) {
        pd_tokens_free(tokens);
        return pd_error_prefix(err, "%s", path);
    }
    *ret = tokens;
    return 0;
}

void pd_tokens_free(pd_tokens *tokens) {
    if (!tokens)
        return;
    free(tokens->items);
    free(tokens);
}

const pd_token *pd_tokens_find(const pd_tokens *tokens, const uint8_t *shown, size_t bytes) {
    uint8_t hash[PD_TOKEN_HASH_BYTES];
    const pd_token *found = NULL;
    SHA256(shown, bytes, hash);
    for (size_t i = 0; tokens && i < tokens->n; i++)
        if (CRYPTO_memcmp(tokens->items[i].hash, hash, sizeof hash) == 0)
            found = &tokens->items[i];
    return found;
}

bool pd_tokens_still_has(const pd_tokens *tokens, const pd_token *token) {
    for (size_t i = 0; tokens && i < tokens->n; i++) {
        const pd_token *t = &tokens->items[i];
        if (strcmp(t->name, token->name) == 0 && t->rights == token->rights &&
            strcmp(t->instances, token->instances) == 0 &&
            CRYPTO_memcmp(t->hash, token->hash, sizeof t->hash) == 0)
            return true;
    }
    return false;
}

/* Whether text is what a pattern of n bytes stands for. After a star that took too little, it takes one more. */
static bool pattern_is(const char *pattern, size_t n, const char *text) {
    const char *star_text = NULL;
    size_t at = 0, after_star = 0;
    while (*text) {
        if (at < n && pattern[at] == '*') {
            after_star = ++at;
            star_text = text;
        } else if (at < n && (pattern[at] == '?' || pattern[at] == *text)) {
            at++;
            text++;
        } else if (star_text) {
            at = after_star;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (at < n && pattern[at] == '*')
        at++;
    return at == n;
}

bool pd_token_speaks_for(const pd_token *token, const char *instance) {
    const char *at = token->instances;
    if (!*at)
        return true;
    for (;;) {
        size_t n = strcspn(at, ",");
        if (pattern_is(at, n, instance))
            return true;
        if (!at[n])
            return false;
        at += n + 1;
    }
}

size_t pd_tokens_count(const pd_tokens *tokens) {
    return tokens ? tokens->n : 0;
}

int pd_token_make(char text[PD_TOKEN_TEXT_BYTES], pd_error *err) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t secret[TOKEN_SECRET_BYTES + 1] = {0};
    if (RAND_bytes(secret, TOKEN_SECRET_BYTES) != 1)
        return pd_error_set(err, "the system gave no random bytes");
    size_t n = (size_t)snprintf(text, PD_TOKEN_TEXT_BYTES, "pht_");
    for (size_t bit = 0; bit < 8 * TOKEN_SECRET_BYTES; bit += 6) {
        unsigned pair = (unsigned)secret[bit / 8] << 8 | secret[bit / 8 + 1];
        text[n++] = digits[pair >> (10 - bit % 8) & 63];
    }
    text[n] = 0;
    OPENSSL_cleanse(secret, sizeof secret);
    return 0;
}

int pd_token_line(const char *name, unsigned rights, const char *instances, const char *text,
                  char line[PD_TOKEN_LINE_BYTES], pd_error *err) {
    uint8_t hash[PD_TOKEN_HASH_BYTES];
    char rights_text[PD_RIGHTS_TEXT_BYTES], hash_text[2 * PD_TOKEN_HASH_BYTES + 1];
    if (token_check_name(name, err) != 0 || (instances && token_check_instances(instances, err) != 0))
        return -1;
    SHA256((const uint8_t *)text, strlen(text), hash);
    pd_text_hex(hash_text, hash, sizeof hash);
    snprintf(line, PD_TOKEN_LINE_BYTES, "%s %s %s%s%s", name, pd_rights_text(rights, rights_text), hash_text,
             instances ? " " : "", instances ? instances : "");
    return 0;
}
