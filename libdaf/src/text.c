#include "text.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "utf8.h"

enum { PIECE_BYTES = 1 << 16, SHOWN_BYTES = 60 };

void daf__texts_free(daf__texts *t) {
    free(t->pool);
    free(t->next);
    *t = (daf__texts){0};
}

static uint64_t count_line_ends(const char *text, size_t bytes) {
    uint64_t n = 0;
    const char *end = text + bytes;
    for (const char *p = text; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        n++;
    return n;
}

const uint8_t *daf__texts_second_empty(const daf__buf *content) {
    const uint8_t *line = content->data, *end = line + content->size;
    unsigned n = 0;
    while (line && line < end) {
        if (*line == '\n' && ++n == 2)
            return line;
        line = memchr(line, '\n', (size_t)(end - line));
        line = line ? line + 1 : NULL;
    }
    return NULL;
}

uint64_t daf__texts_count(const daf__buf *content) {
    const char *text = (const char *)content->data;
    size_t bytes = content->size;
    return bytes == 0 ? 0 : count_line_ends(text, bytes) + (text[bytes - 1] != '\n');
}

int daf__texts_split(daf__texts *ret, daf__buf *content, const char *where, daf_error *err) {
    char *pool = (char *)content->data;
    size_t bytes = content->size;
    int rc = 0;
    size_t valid = daf__utf8_prefix(pool, bytes);
    const char *nul = memchr(pool, 0, valid);
    if (nul)
        valid = (size_t)(nul - pool);
    if (valid < bytes) {
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, valid, "%s: %s at byte %zu", where,
                       nul ? "a NUL" : "not valid UTF-8", valid);
        goto err_free_content;
    }
    if (bytes > 0 && pool[bytes - 1] != '\n')
        pool[bytes++] = '\n';
    uint64_t n = count_line_ends(pool, bytes);
    const char **next = malloc(((size_t)n + 1) * sizeof *next);
    if (!next) {
        rc = daf__no_memory(err);
        goto err_free_content;
    }
    char *p = pool;
    for (uint64_t i = 0; i < n; i++) {
        next[i] = p;
        p = memchr(p, '\n', (size_t)(pool + bytes - p));
        *p++ = 0;
    }
    next[n] = p;
    *ret = (daf__texts){.pool = pool, .next = next, .n = n};
    *content = (daf__buf){0};
    return 0;
err_free_content:
    daf__buf_free(content);
    return rc;
}

int daf__texts_gather(daf__texts *ret, const char *(*text)(const void *ctx, uint64_t i), const void *ctx,
                      uint64_t n, daf_error *err) {
    size_t bytes = 1;
    for (uint64_t i = 0; i < n; i++)
        bytes += strlen(text(ctx, i)) + 1;
    char *pool = malloc(bytes);
    const char **next = malloc(((size_t)n + 1) * sizeof *next);
    if (!pool || !next) {
        free(pool);
        free(next);
        return daf__no_memory(err);
    }
    char *to = pool;
    for (uint64_t i = 0; i < n; i++) {
        next[i] = to;
        to = stpcpy(to, text(ctx, i)) + 1;
    }
    next[n] = to;
    *ret = (daf__texts){.pool = pool, .next = next, .n = n};
    return 0;
}

static const char *text_of_array(const void *ctx, uint64_t i) {
    const char *const *texts = ctx;
    return texts[i];
}

int daf__texts_copy(daf__texts *ret, const char *const *texts, uint64_t n, daf_error *err) {
    return daf__texts_gather(ret, text_of_array, texts, n, err);
}

int daf__count_lines(daf__file *f, uint64_t *ret, daf_error *err) {
    char *piece = malloc(PIECE_BYTES);
    if (!piece)
        return daf__no_memory(err);
    uint64_t n = 0;
    char last = '\n';
    int rc = 0;
    for (uint64_t at = 0; at < f->size && rc == 0;) {
        size_t bytes = f->size - at < PIECE_BYTES ? (size_t)(f->size - at) : PIECE_BYTES;
        rc = f->ops->read(f, piece, bytes, at, err);
        if (rc)
            break;
        n += count_line_ends(piece, bytes);
        last = piece[bytes - 1];
        at += bytes;
    }
    free(piece);
    if (rc == 0)
        *ret = n + (last != '\n');
    return rc;
}

static uint64_t hash_text(const char *text) {
    uint64_t h = 0xCBF29CE484222325u;
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        h = (h ^ *p) * 0x100000001B3u;
    return h ^ h >> 29;
}

int daf__texts_find_twice(const char *const *texts, uint64_t n, uint64_t *twice, daf_error *err) {
    size_t slots = 16;
    while (slots / 2 < n) {
        if (slots > SIZE_MAX / 2 / sizeof(uint64_t))
            return daf__no_memory(err);
        slots *= 2;
    }
    uint64_t *table = calloc(slots, sizeof *table); /* index + 1 of a text; 0: free */
    if (!table)
        return daf__no_memory(err);
    uint64_t i = 0;
    for (; i < n; i++) {
        size_t at = (size_t)hash_text(texts[i]) & (slots - 1);
        while (table[at] && strcmp(texts[table[at] - 1], texts[i]) != 0)
            at = (at + 1) & (slots - 1);
        if (table[at])
            break;
        table[at] = i + 1;
    }
    free(table);
    *twice = i;
    return 0;
}

static int check_text(const char *text, uint64_t i, bool axis, daf_error *err) {
    unsigned long long number = (unsigned long long)i + 1;
    if (!text)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "text %llu is NULL", number);
    size_t bytes = strlen(text), valid = daf__utf8_prefix(text, bytes);
    if (valid < bytes)
        return daf__fail(err, DAF_ERR_VALUE, 0, valid, "text %llu is not valid UTF-8 at its byte %zu", number,
                         valid);
    const char *end = strchr(text, '\n');
    if (!end && axis)
        end = strchr(text, '\r');
    if (end)
        return daf__fail(err, DAF_ERR_VALUE, 0, (uint64_t)(end - text),
                         "text %llu holds a line end, which a text file cannot store", number);
    if (axis && bytes == 0)
        return daf__fail(err, DAF_ERR_VALUE, 0, 0, "axis entry %llu is empty", number);
    return 0;
}

int daf__texts_check(const char *const *texts, uint64_t n, bool axis, daf_error *err) {
    if (n > 0 && !texts)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "the texts are NULL");
    int rc = 0;
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = check_text(texts[i], i, axis, err);
    if (rc || !axis)
        return rc;
    uint64_t twice;
    rc = daf__texts_find_twice(texts, n, &twice, err);
    if (rc == 0 && twice < n)
        rc = daf__fail(err, DAF_ERR_VALUE, 0, 0, "axis entry %llu \"%.*s\" is given twice",
                       (unsigned long long)twice + 1, SHOWN_BYTES, texts[twice]);
    return rc;
}

int daf__texts_write(daf__out *out, const char *const *texts, uint64_t n, daf_error *err) {
    int rc = 0;
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        rc = daf__out_append(out, texts[i], strlen(texts[i]), err);
        if (rc == 0)
            rc = daf__out_append(out, "\n", 1, err);
    }
    return rc;
}
