#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "error.h"

enum { OUT_BUFFER_BYTES = 1 << 18 };

void daf__file_close(daf__file *f) {
    if (f)
        f->ops->close(f);
}

uint32_t daf__file_add_crc(const daf__file *f, uint32_t crc, const void *data, size_t bytes) {
    return f->has_crc ? (uint32_t)crc32_z(crc, data, bytes) : 0;
}

int daf__file_check_crc(const daf__file *f, uint32_t crc, daf_error *err) {
    if (!f->has_crc || crc == f->crc)
        return 0;
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: its checksum (CRC-32) does not match", f->where);
}

int daf__file_read_whole(daf__file *f, daf__buf *ret, uint64_t limit, daf_error *err) {
    if (f->size > limit)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: %llu bytes are more than the limit of %llu", f->where,
                         (unsigned long long)f->size, (unsigned long long)limit);
    daf__buf b = {0};
    int rc = f->ops->take ? f->ops->take(f, &b, err) : 0;
    if (rc)
        return rc;
    bool taken = b.data != NULL;
    uint8_t *to = daf__buf_reserve(&b, (size_t)f->size - b.size + 1);
    if (!to)
        rc = daf__no_memory(err);
    else if (!taken)
        rc = f->ops->read(f, to, (size_t)f->size, 0, err);
    if (rc == 0 && !taken)
        rc = daf__file_check_crc(f, daf__file_add_crc(f, 0, to, (size_t)f->size), err);
    if (rc) {
        daf__buf_free(&b);
        return rc;
    }
    b.size = (size_t)f->size;
    b.data[b.size] = 0; /* one NUL behind the content, for those who parse it as text */
    *ret = b;
    return 0;
}

void daf__unmap(daf__map *map) {
    if (map->owner && map->release)
        map->release(map->owner);
    else if (map->owner)
        munmap(map->owner, map->owner_bytes);
    *map = (daf__map){0};
}

int daf__out_flush(daf__out *out, daf_error *err) {
    if (out->pending.size == 0)
        return 0;
    uint64_t offset = out->size - out->pending.size;
    int rc = out->ops->write(out, out->pending.data, out->pending.size, offset, err);
    if (rc == 0)
        out->pending.size = 0;
    return rc;
}

int daf__out_append(daf__out *out, const void *data, size_t bytes, daf_error *err) {
    if (out->pending.size + bytes > OUT_BUFFER_BYTES) {
        int rc = daf__out_flush(out, err);
        if (rc)
            return rc;
    }
    if (bytes > OUT_BUFFER_BYTES) {
        int rc = out->ops->write(out, data, bytes, out->size, err);
        if (rc == 0)
            out->size += bytes;
        return rc;
    }
    daf__buf_append(&out->pending, data, bytes);
    if (out->pending.failed)
        return daf__no_memory(err);
    out->size += bytes;
    return 0;
}

int daf__out_patch(daf__out *out, uint64_t offset, const void *data, size_t bytes, daf_error *err) {
    int rc = daf__out_flush(out, err);
    return rc ? rc : out->ops->write(out, data, bytes, offset, err);
}

void daf__out_discard(daf__out *out) {
    if (!out)
        return;
    daf__buf_free(&out->pending);
    out->ops->discard(out);
}

int daf__file_copy(daf__file *f, daf__out *out, daf_error *err) {
    daf__buf piece = {0};
    uint8_t *bytes = daf__buf_reserve(&piece, OUT_BUFFER_BYTES);
    uint32_t crc = 0;
    int rc = bytes ? 0 : daf__no_memory(err);
    for (uint64_t at = 0; at < f->size && rc == 0;) {
        size_t n = f->size - at < OUT_BUFFER_BYTES ? (size_t)(f->size - at) : OUT_BUFFER_BYTES;
        rc = f->ops->read(f, bytes, n, at, err);
        crc = rc ? crc : daf__file_add_crc(f, crc, bytes, n);
        if (rc == 0)
            rc = daf__out_append(out, bytes, n, err);
        at += n;
    }
    daf__buf_free(&piece);
    return rc ? rc : daf__file_check_crc(f, crc, err);
}

static int add_step(daf__change *c, daf__step_kind kind, const char *key, daf__out *out, daf_error *err) {
    if (c->n_steps == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 8;
        daf__step *steps = realloc(c->steps, capacity * sizeof *steps);
        if (!steps)
            return daf__no_memory(err);
        c->steps = steps;
        c->capacity = capacity;
    }
    char *copy = strdup(key);
    if (!copy)
        return daf__no_memory(err);
    c->steps[c->n_steps++] = (daf__step){.kind = kind, .key = copy, .out = out};
    return 0;
}

int daf__change_put(daf__change *c, const char *key, daf__out *out, daf_error *err) {
    int rc = add_step(c, DAF__STEP_PUT, key, out, err);
    if (rc)
        daf__out_discard(out);
    return rc;
}

int daf__change_remove(daf__change *c, const char *key, daf_error *err) {
    return add_step(c, DAF__STEP_REMOVE, key, NULL, err);
}

int daf__change_make_folder(daf__change *c, const char *key, daf_error *err) {
    return add_step(c, DAF__STEP_MAKE_FOLDER, key, NULL, err);
}

void daf__change_free(daf__change *c) {
    for (size_t i = 0; i < c->n_steps; i++) {
        daf__out_discard(c->steps[i].out);
        free(c->steps[i].key);
    }
    free(c->steps);
    *c = (daf__change){0};
}

const char *daf__store_full_path(const daf__store *s) {
    return s->full_path ? s->full_path : s->path;
}

int daf__store_has(daf__store *s, bool *ret, const char *key, daf_error *err) {
    daf__stamp stamp;
    daf_error details;
    int rc = s->ops->stamp(s, &stamp, key, &details);
    if (rc && rc != DAF_ERR_MISSING)
        return daf__pass(err, &details);
    *ret = rc == 0;
    return 0;
}

int daf__store_read(daf__store *s, daf__buf *ret, daf__stamp *stamp, const char *key, uint64_t limit,
                    daf_error *err) {
    daf__file *f;
    int rc = s->ops->open(s, &f, key, err);
    if (rc)
        return rc;
    rc = daf__file_read_whole(f, ret, limit, err);
    if (rc == 0 && stamp)
        *stamp = f->stamp;
    daf__file_close(f);
    return rc;
}

int daf__unwritable_create(daf__store *s, daf__out **ret, daf_error *err) {
    (void)ret;
    return daf__fail(err, DAF_ERR_READ_ONLY, 0, 0, "%s: %s", s->path, s->unwritable);
}

int daf__unwritable_apply(daf__store *s, daf__change *c, daf_error *err) {
    (void)c;
    return daf__unwritable_create(s, NULL, err);
}

int daf__unwritable_settle(daf__store *s, daf_error *err) {
    (void)s;
    (void)err;
    return 0;
}

const char *daf__store_where(char text[DAF__WHERE_TEXT], const daf__store *s, const char *key) {
    snprintf(text, DAF__WHERE_TEXT, "%s/%s", s->path, key);
    return text;
}

bool daf__stamps_equal(const daf__stamp *a, const daf__stamp *b) {
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}
