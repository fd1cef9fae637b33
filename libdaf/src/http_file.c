/* A payload on a server. The first request tells the size and gets the end (of a shard) or the beginning (of others); what
 * it got is kept, everything else is got as it is read. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "http_store.h"
#include "zip.h"

enum { FIRST_BYTES = 1 << 20 };

typedef struct http_file {
    daf__file base;
    daf__http_client *client; /* borrowed from the store */
    char *key;
    char version[DAF__HTTP_VERSION_TEXT];
    daf__buf kept; /* some bytes of the file, */
    uint64_t kept_at;
} http_file;

static int check_unchanged(const http_file *f, const daf__http_answer *a, daf_error *err) {
    if (a->total == f->base.size && strcmp(a->version, f->version) == 0)
        return 0;
    return daf__fail(err, DAF_ERR_IO, 0, 0, "%s: was changed while it was read", f->base.where);
}

/* Gets bytes that are not kept. A server without ranges sends all of the file: then that is kept. */
static int fetch(http_file *f, uint8_t *to, size_t bytes, uint64_t offset, daf_error *err) {
    daf__http_range range = {.part = DAF__HTTP_FROM, .first = offset, .bytes = bytes};
    daf__http_answer a;
    int rc = daf__http_get(f->client, &a, f->key, &range, err);
    if (rc)
        return rc;
    rc = check_unchanged(f, &a, err);
    if (rc == 0 && (a.first > offset || a.body.size < offset - a.first + bytes))
        rc = daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: became shorter while it was read",
                       f->base.where);
    if (rc == 0)
        memcpy(to, a.body.data + (offset - a.first), bytes);
    if (rc == 0 && a.body.size == f->base.size) {
        daf__buf_free(&f->kept);
        f->kept = a.body;
        f->kept_at = 0;
        return 0;
    }
    daf__buf_free(&a.body);
    return rc;
}

static int http_read(daf__file *base, void *data, size_t bytes, uint64_t offset, daf_error *err) {
    http_file *f = (http_file *)base;
    uint8_t *to = data;
    if (offset > base->size || bytes > base->size - offset)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: ends at byte %" PRIu64, base->where,
                         base->size);
    if (offset >= f->kept_at && offset - f->kept_at < f->kept.size) {
        uint64_t at = offset - f->kept_at, there = f->kept.size - at;
        size_t n = there < bytes ? (size_t)there : bytes;
        memcpy(to, f->kept.data + at, n);
        to += n;
        offset += n;
        bytes -= n;
    }
    return bytes ? fetch(f, to, bytes, offset, err) : 0;
}

static int http_map(daf__file *f, daf__map *ret, daf_error *err) {
    (void)ret;
    return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: cannot be mapped", f->where);
}

static void http_close(daf__file *base) {
    http_file *f = (http_file *)base;
    daf__buf_free(&f->kept);
    free(f->key);
    free(base->where);
    free(f);
}

static bool is_shard(const char *key) {
    size_t n = strlen(key);
    return n > 4 && strcmp(key + n - 4, ".zip") == 0;
}

int daf__http_file_open(daf__http_client *c, daf__file **ret, const char *key, uint32_t gap_bytes,
                        daf_error *err) {
    static const daf__file_ops ops = {.read = http_read, .map = http_map, .close = http_close};
    daf__http_range end = {.part = DAF__HTTP_LAST, .bytes = DAF__ZIP_END_BYTES},
                    beginning = {.part = DAF__HTTP_FROM, .bytes = FIRST_BYTES};
    daf__http_answer a;
    daf__http_range nothing = {.part = DAF__HTTP_WHOLE, .bytes = 0};
    daf_error details;
    int rc = daf__http_get(c, &a, key, is_shard(key) ? &end : &beginning, &details);
    if (rc == DAF_ERR_TRUNCATED && daf__http_get(c, &a, key, &nothing, NULL) == 0)
        rc = 0; /* an empty file has no parts */
    if (rc)
        return daf__pass(err, &details);
    http_file *f = calloc(1, sizeof *f);
    char *where = NULL, *copy = strdup(key);
    if (!f || !copy || asprintf(&where, "%s/%s", daf__http_shown_url(c), key) < 0) {
        free(f);
        free(copy);
        daf__buf_free(&a.body);
        return daf__no_memory(err);
    }
    *f = (http_file){.base = {.ops = &ops, .size = a.total, .where = where, .gap_bytes = gap_bytes},
                     .client = c,
                     .key = copy,
                     .kept = a.body,
                     .kept_at = a.first};
    memcpy(f->version, a.version, sizeof f->version);
    *ret = &f->base;
    return 0;
}
