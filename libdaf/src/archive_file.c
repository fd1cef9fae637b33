/* Entries as files. What is stored is read in place, and mapped when its data are aligned; anything else is decoded
 * when it is first read, since those who read first look at the size. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "archive.h"
#include "archive_decode.h"
#include "base/bytes.h"
#include "error.h"

enum { REGION_HEADROOM = 64 << 20 };

typedef struct entry_file {
    daf__file base;
    daf__archive *archive;
    daf__archive_entry entry; /* its `staged` is held */
    char *name;               /* in the archive */
    uint64_t data;            /* where the data begin */
    pthread_mutex_t lock;     /* of `decoded`: chunks may be read by several threads */
    bool is_decoded;
    daf__buf decoded;
} entry_file;

void daf__staged_release(daf__staged *s) {
    if (!s || atomic_fetch_sub(&s->n_users, 1) != 1)
        return;
    if (s->fd >= 0)
        s->io->close(s->io->context, s->fd);
    daf__buf_free(&s->memory);
    free(s);
}

int daf__archive_locate(uint64_t *ret, daf__file *f, const daf__archive_entry *e, const char *name,
                        daf_error *err) {
    uint8_t local[DAF__ZIP_LOCAL_BYTES];
    int rc = f->ops->read(f, local, sizeof local, e->offset, err);
    if (rc)
        return rc;
    size_t width = daf__zip_local_bytes(local);
    if (width == 0)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, e->offset,
                         "%s: no local header of the entry \"%.300s\" at byte %llu", f->where, name,
                         (unsigned long long)e->offset);
    if (width > f->size - e->offset || e->packed_bytes > f->size - e->offset - width)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, e->offset,
                         "%s: the entry \"%.300s\" goes past the end of the file", f->where, name);
    *ret = e->offset + width;
    return 0;
}

/* ---- reading */

static bool is_stored(const daf__archive_entry *e) {
    return e->method == DAF__ZIP_STORED && e->packed_bytes == e->raw_bytes;
}

static int read_staged(entry_file *f, void *data, size_t bytes, uint64_t offset, daf_error *err) {
    const daf__staged *s = f->entry.staged;
    if (s->fd < 0) {
        memcpy(data, s->memory.data + offset, bytes);
        return 0;
    }
    int rc = daf__read_all(s->io, s->fd, data, bytes, offset);
    return rc ? daf__fail(err, DAF_ERR_IO, rc > 0 ? rc : 0, offset, "%s: cannot read what was staged",
                          f->base.where)
              : 0;
}

/* The lock is held. */
static int decode_locked(entry_file *f, daf_error *err) {
    daf__archive_whole w;
    if (f->is_decoded)
        return 0;
    int rc = daf__archive_look(&w, f->archive->io, f->archive->fd, f->archive->path, err);
    if (rc == 0)
        rc = daf__archive_decode(&f->decoded, &w.base, f->data, &f->entry, f->name, err);
    f->is_decoded = rc == 0;
    return rc;
}

static int decode(entry_file *f, daf_error *err) {
    pthread_mutex_lock(&f->lock);
    int rc = decode_locked(f, err);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

/* Whoever reads on after this decodes once more. */
static int entry_take(daf__file *base, daf__buf *ret, daf_error *err) {
    entry_file *f = (entry_file *)base;
    if (f->entry.staged || is_stored(&f->entry))
        return 0;
    pthread_mutex_lock(&f->lock);
    int rc = decode_locked(f, err);
    if (rc == 0) {
        *ret = f->decoded;
        f->decoded = (daf__buf){0};
        f->is_decoded = false;
    }
    pthread_mutex_unlock(&f->lock);
    return rc;
}

static int entry_read(daf__file *base, void *data, size_t bytes, uint64_t offset, daf_error *err) {
    entry_file *f = (entry_file *)base;
    const daf__archive *a = f->archive;
    if (offset > base->size || bytes > base->size - offset)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: ends at byte %llu", base->where,
                         (unsigned long long)base->size);
    if (bytes == 0 && is_stored(&f->entry))
        return 0;
    if (f->entry.staged)
        return read_staged(f, data, bytes, offset, err);
    if (!is_stored(&f->entry)) {
        int rc = decode(f, err);
        if (rc == 0 && bytes)
            memcpy(data, f->decoded.data + offset, bytes);
        return rc;
    }
    int rc = daf__read_all(a->io, a->fd, data, bytes, f->data + offset);
    if (rc == DAF__SHORT_READ)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: became shorter while it was read",
                         base->where);
    return rc ? daf__fail(err, DAF_ERR_IO, rc, offset, "%s: cannot read", base->where) : 0;
}

/* ---- views */

void daf__archive_region_release(void *region) {
    daf__archive_region *r = region;
    if (!r || atomic_fetch_sub(&r->n_users, 1) != 1)
        return;
    munmap((void *)(uintptr_t)r->data, r->bytes);
    free(r);
}

/* Maps the file, and more behind it for what will be appended: nobody touches a page before data are there. The lock
 * is held. */
static int new_region(daf__archive *a, uint64_t file_bytes, daf_error *err) {
    daf__archive_region *r = malloc(sizeof *r);
    if (!r)
        return daf__no_memory(err);
    uint64_t headroom = !a->writable ? 0 : file_bytes > REGION_HEADROOM ? file_bytes : REGION_HEADROOM;
    void *data = MAP_FAILED;
    for (; data == MAP_FAILED && file_bytes <= SIZE_MAX / 4; headroom = 0) {
        *r = (daf__archive_region){.bytes = (size_t)(file_bytes + headroom)};
        data = mmap(NULL, r->bytes, PROT_READ, MAP_SHARED, a->fd, 0);
        if (headroom == 0)
            break;
    }
    if (data == MAP_FAILED) {
        free(r);
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: cannot be mapped", a->path);
    }
    r->data = data;
    atomic_init(&r->n_users, 1);
    daf__archive_region_release(a->region);
    a->region = r;
    return 0;
}

static int entry_map(daf__file *base, daf__map *ret, daf_error *err) {
    entry_file *f = (entry_file *)base;
    daf__archive *a = f->archive;
    daf__archive_whole w;
    if (f->entry.staged || !is_stored(&f->entry) || f->data % DAF__ZIP_ALIGNMENT != 0)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: cannot be mapped in place", base->where);
    int rc = daf__archive_look(&w, a->io, a->fd, a->path, err);
    if (rc)
        return rc;
    if (f->data + base->size > w.base.size)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, 0, "%s: became shorter", base->where);
    pthread_mutex_lock(&a->lock);
    if (!a->region || f->data + base->size > a->region->bytes)
        rc = new_region(a, w.base.size, err);
    if (rc == 0) {
        atomic_fetch_add(&a->region->n_users, 1);
        *ret = (daf__map){
            .data = a->region->data + f->data, .owner = a->region, .release = daf__archive_region_release};
    }
    pthread_mutex_unlock(&a->lock);
    return rc;
}

static void entry_close(daf__file *base) {
    entry_file *f = (entry_file *)base;
    daf__staged_release(f->entry.staged);
    daf__archive_release(f->archive);
    daf__buf_free(&f->decoded);
    pthread_mutex_destroy(&f->lock);
    free(f->name);
    free(base->where);
    free(f);
}

static const daf__file_ops entry_ops = {
    .read = entry_read, .take = entry_take, .map = entry_map, .close = entry_close};

/* ---- opening */

daf__stamp daf__archive_stamp(const daf__archive *a, const daf__archive_entry *e) {
    return (daf__stamp){.device = a->device,
                        .inode = a->inode,
                        .bytes = e->raw_bytes,
                        .changed_s = e->crc,
                        .changed_ns = e->staged ? -1 : (int64_t)e->offset};
}

static int check_sizes(const entry_file *f, daf_error *err) {
    const daf__archive_entry *e = &f->entry;
    return daf__archive_can_hold(e)
               ? 0
               : daf__fail(err, DAF_ERR_CORRUPT, 0, e->offset,
                           "%s: cannot be decoded: %llu bytes are said to hold %llu", f->base.where,
                           (unsigned long long)e->packed_bytes, (unsigned long long)e->raw_bytes);
}

static int prepare(entry_file *f, bool skips_overlaps, daf_error *err) {
    daf__archive_whole w;
    if (f->entry.staged)
        return 0;
    if (skips_overlaps && f->entry.overlaps)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, f->entry.offset, "%s: runs into another entry",
                         f->base.where);
    int rc = daf__archive_check_method(&f->entry, f->name, err);
    if (rc == 0)
        rc = check_sizes(f, err);
    if (rc == 0)
        rc = daf__archive_look(&w, f->archive->io, f->archive->fd, f->archive->path, err);
    return rc ? rc : daf__archive_locate(&f->data, &w.base, &f->entry, f->name, err);
}

int daf__archive_file_open(daf__archive_store *s, daf__file **ret, const char *key, daf_error *err) {
    entry_file *f = calloc(1, sizeof *f);
    if (!f)
        return daf__no_memory(err);
    int rc = daf__archive_find(s, &f->entry, &f->name, key, err);
    if (rc) {
        free(f);
        return rc;
    }
    f->archive = s->archive;
    daf__archive_retain(f->archive);
    pthread_mutex_init(&f->lock, NULL);
    f->base = (daf__file){.ops = &entry_ops,
                          .stamp = daf__archive_stamp(s->archive, &f->entry),
                          .size = f->entry.raw_bytes,
                          .has_crc = !f->entry.staged && is_stored(&f->entry),
                          .crc = f->entry.crc};
    if (asprintf(&f->base.where, "%s/%s", s->base.path, key) < 0) {
        f->base.where = NULL;
        rc = daf__no_memory(err);
    }
    if (rc == 0)
        rc = prepare(f, s->skips_overlaps, err);
    if (rc) {
        entry_close(&f->base);
        return rc;
    }
    *ret = &f->base;
    return 0;
}
