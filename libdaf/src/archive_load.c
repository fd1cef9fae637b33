/* Reading the central directory of an archive.
 *
 * Beside a writer in another process the end of the file is, for moments, not the end of an archive; so the directory
 * counts only when the file is the same before and after it was read, and is else read again. A file that is at rest
 * and ends in no directory was left by a killed writer (or is damaged): archive_recover. What had to be recovered
 * while the file was hot may be what a writer is just doing: daf__archive_refresh looks again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "archive.h"
#include "error.h"

enum { PATIENCE_SECONDS = 60, PAUSE_NS = 2000000, HOT_SECONDS = 2 };

/* ---- the whole file */

static int whole_read(daf__file *f, void *data, size_t bytes, uint64_t offset, daf_error *err) {
    daf__archive_whole *w = (daf__archive_whole *)f;
    int rc = offset > f->size || bytes > f->size - offset ? DAF__SHORT_READ
                                                          : daf__read_all(w->io, w->fd, data, bytes, offset);
    if (rc == DAF__SHORT_READ)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: ends before byte %llu", f->where,
                         (unsigned long long)offset + bytes);
    return rc ? daf__fail(err, DAF_ERR_IO, rc, offset, "%s: cannot read", f->where) : 0;
}

static const daf__file_ops whole_ops = {.read = whole_read};

int daf__archive_look(daf__archive_whole *ret, const daf_io *io, int fd, const char *path, daf_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return daf__fail(err, DAF_ERR_IO, errno, 0, "%s: cannot look at", path);
    *ret = (daf__archive_whole){
        .base = {.ops = &whole_ops, .size = (uint64_t)st.st_size, .where = (char *)(uintptr_t)path},
        .io = io,
        .fd = fd,
        .changed_s = (int64_t)st.st_mtim.tv_sec,
        .changed_ns = (int64_t)st.st_mtim.tv_nsec};
    return 0;
}

/* ---- entries */

void daf__archive_directory_free(daf__archive_directory *d) {
    for (uint32_t i = d->n_committed; i < d->n; i++) {
        daf__staged_release(d->entries[i].staged);
        free(d->entries[i].name);
    }
    free(d->entries);
    daf__archive_names_free(&d->names);
    daf__buf_free(&d->central);
    daf__buf_free(&d->comment);
    daf__buf_free(&d->raw_tail);
    *d = (daf__archive_directory){0};
}

const char *daf__archive_plain_name(const char *name, size_t *bytes) {
    size_t n = *bytes;
    while (n >= 2 && name[0] == '.' && name[1] == '/') {
        name += 2;
        n -= 2;
    }
    if (n > 0 && (name[n - 1] == '/' || memchr(name, 0, n)))
        n = 0;
    *bytes = n;
    return name;
}

const char *daf__archive_entry_name(const daf__archive_directory *d, const daf__archive_entry *e) {
    return e->name ? e->name : (const char *)d->central.data + e->central_at + DAF__ZIP_CENTRAL_BYTES;
}

int daf__archive_add_entry(daf__archive_directory *d, const daf__zip_entry *e, uint64_t central_at,
                           uint32_t central_bytes, daf_error *err) {
    if (d->n == d->capacity) {
        uint32_t capacity = d->capacity ? 2 * d->capacity : 64;
        daf__archive_entry *grown =
            capacity > d->capacity ? realloc(d->entries, capacity * sizeof *grown) : NULL;
        if (!grown)
            return daf__no_memory(err);
        d->entries = grown;
        d->capacity = capacity;
    }
    size_t bytes = e->name_bytes;
    const char *name = daf__archive_plain_name((const char *)e->name, &bytes);
    int rc = bytes ? daf__archive_names_set(&d->names, name, bytes, d->n, err) : 0;
    if (rc)
        return rc;
    d->entries[d->n++] = (daf__archive_entry){.offset = e->offset,
                                              .packed_bytes = e->packed_bytes,
                                              .raw_bytes = e->raw_bytes,
                                              .central_at = central_at,
                                              .central_bytes = central_bytes,
                                              .crc = e->crc,
                                              .flags = e->flags,
                                              .method = e->method,
                                              .name_bytes = e->name_bytes};
    return 0;
}

static int check_entry(const daf__zip_entry *e, uint64_t limit, const char *where, daf_error *err) {
    if (e->flags & DAF__ZIP_ENCRYPTED_FLAG)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, e->offset,
                         "%s: the entry \"%.*s\" is encrypted, which is not supported", where, e->name_bytes,
                         (const char *)e->name);
    if (e->offset > limit || e->packed_bytes > limit - e->offset)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, e->offset,
                         "%s: the entry \"%.*s\" lies past the central directory", where, e->name_bytes,
                         (const char *)e->name);
    return 0;
}

static int parse_central(daf__archive_directory *d, uint64_t n_entries, const char *where, daf_error *err) {
    size_t at = 0;
    while (at < d->central.size && d->n < n_entries) {
        daf__zip_entry e;
        size_t width = daf__zip_parse_central(d->central.data + at, d->central.size - at, &e);
        if (width == 0)
            return daf__fail(err, DAF_ERR_CORRUPT, 0, d->offset + at,
                             "%s: no entry of a central directory at byte %llu", where,
                             (unsigned long long)d->offset + at);
        int rc = check_entry(&e, d->offset, where, err);
        if (rc == 0)
            rc = daf__archive_add_entry(d, &e, at, (uint32_t)width, err);
        if (rc)
            return rc;
        at += width;
    }
    if (d->n != n_entries || at != d->central.size)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, d->offset,
                         "%s: the central directory does not hold the %llu entries that its end tells of",
                         where, (unsigned long long)n_entries);
    d->n_committed = d->n;
    return 0;
}

int daf__archive_read_central(daf__archive_directory *ret, daf__file *f, const daf__zip_directory *z,
                              daf_error *err) {
    daf__archive_directory d = {.offset = z->offset};
    int rc = z->bytes > SIZE_MAX / 4 || z->n_entries >= DAF__NO_ENTRY
                 ? daf__no_memory(err)
                 : daf__archive_names_init(&d.names, err);
    if (rc)
        return rc;
    uint8_t *to = daf__buf_reserve(&d.central, (size_t)z->bytes);
    uint8_t *comment = daf__buf_reserve(&d.comment, z->comment_bytes);
    uint64_t comment_at = z->end_offset + DAF__ZIP_PLAIN_END_BYTES;
    if (!to || !comment)
        rc = daf__no_memory(err);
    if (rc == 0 && z->bytes)
        rc = f->ops->read(f, to, (size_t)z->bytes, z->offset, err);
    d.central.size = (size_t)z->bytes;
    if (rc == 0 && z->comment_bytes)
        rc = f->ops->read(f, comment, z->comment_bytes, comment_at, err);
    d.comment.size = z->comment_bytes;
    d.end = comment_at + z->comment_bytes;
    if (rc == 0)
        rc = parse_central(&d, z->n_entries, f->where, err);
    if (rc) {
        daf__archive_directory_free(&d);
        return rc;
    }
    *ret = d;
    return 0;
}

/* ---- loading */

static int load_once(daf__archive_directory *ret, daf__archive_whole *w, bool thoroughly, daf_error *err) {
    daf__zip_directory z;
    daf__archive_directory d;
    int rc = daf__zip_find_directory(&w->base, &z, err);
    if (rc == 0)
        rc = daf__archive_read_central(&d, &w->base, &z, err);
    if (rc)
        return rc;
    rc = daf__archive_take_mark(&d, err);
    if (rc == 0)
        rc = daf__archive_roll_back(&d, &w->base, thoroughly, err);
    if (rc) {
        daf__archive_directory_free(&d);
        return rc;
    }
    *ret = d;
    return 0;
}

static bool same_file(const daf__archive_whole *a, const daf__archive_whole *b) {
    return a->base.size == b->base.size && a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}

static void remember(daf__archive_directory *d, const daf__archive_whole *w) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    d->file_bytes = w->base.size;
    d->changed_s = w->changed_s;
    d->changed_ns = w->changed_ns;
    d->hot = d->recovered && (int64_t)now.tv_sec - w->changed_s < HOT_SECONDS;
}

static int64_t seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec;
}

static bool is_torn(int rc) {
    return rc == DAF_ERR_CORRUPT || rc == DAF_ERR_TRUNCATED;
}

/* What half an append says may look like anything. */
static bool may_be_torn(int rc) {
    return is_torn(rc) || rc == DAF_ERR_UNSUPPORTED;
}

/* One attempt at the file that *w names. *ret_same: the file was at rest meanwhile; only then what came of it counts. */
static int load_between(daf__archive_directory *ret, daf__archive_whole *w, bool search,
                        daf__archive_load_how how, bool *ret_same, daf_error *err) {
    daf__archive_whole after;
    daf_error lost;
    int rc = daf__archive_look(w, w->io, w->fd, w->base.where, err);
    if (rc)
        return rc;
    rc = search ? daf__archive_search(ret, &w->base, err) : load_once(ret, w, how == DAF__LOAD_ALONE, err);
    int looked = daf__archive_look(&after, w->io, w->fd, w->base.where, rc ? &lost : err);
    *ret_same = looked == 0 && same_file(w, &after);
    if (rc == 0 && !*ret_same)
        daf__archive_directory_free(ret);
    if (rc == 0 && looked)
        return looked;
    return rc;
}

/* While it changes it is read again: a writer is in the midst of an append, and only the file of a writer that was killed is
 * to be searched. */
int daf__archive_load(daf__archive_directory *ret, const daf_io *io, int fd, const char *path,
                      daf__archive_load_how how, daf_error *err) {
    static const struct timespec pause = {.tv_nsec = PAUSE_NS};
    daf__archive_whole w = {.base = {.where = (char *)(uintptr_t)path}, .io = io, .fd = fd};
    daf__archive_directory d;
    daf_error torn = {0}, details;
    int rc = 0;
    bool search = false, same = false;
    int64_t until = seconds_now() + PATIENCE_SECONDS;
    for (unsigned at_rest = 0; rc || !same;) {
        rc = load_between(&d, &w, search, how, &same, &details);
        if (rc && !may_be_torn(rc) && (same || rc == DAF_ERR_NOMEM))
            return daf__pass(err, &details);
        if (rc && same && search)
            return daf__pass(err, &torn);
        if (!same && seconds_now() > until)
            return daf__fail(err, DAF_ERR_IO, 0, 0, "%s: changes faster than it can be read", path);
        if (rc && same)
            torn = details;
        at_rest = rc && same ? at_rest + 1 : 0;
        search = rc && same && at_rest >= (unsigned)how;
        if (search && !is_torn(rc))
            return daf__pass(err, &details);
        if (rc && !search)
            nanosleep(&pause, NULL);
    }
    remember(&d, &w);
    *ret = d;
    return 0;
}

int daf__archive_refresh(daf__archive *a, daf_error *err) {
    daf__archive_whole now;
    daf__archive_directory fresh, *d = &a->directory;
    if (a->writable)
        return 0;
    int rc = daf__archive_look(&now, a->io, a->fd, a->path, err);
    if (rc)
        return rc;
    bool same =
        now.base.size == d->file_bytes && now.changed_s == d->changed_s && now.changed_ns == d->changed_ns;
    if (same && !d->hot)
        return 0;
    daf_error details;
    rc =
        daf__archive_load(&fresh, a->io, a->fd, a->path, same ? DAF__LOAD_AGAIN : DAF__LOAD_BESIDE, &details);
    if (is_torn(rc))
        return 0; /* what was read before is still there */
    if (rc)
        return daf__pass(err, &details);
    daf__archive_directory_free(d);
    *d = fresh;
    return 0;
}

/* ---- leaving entries out */

int daf__archive_keep(daf__archive_directory *d, bool (*keep)(void *context, uint32_t entry), void *context,
                      daf_error *err) {
    daf__archive_directory kept = {.offset = d->offset};
    int rc = daf__archive_names_init(&kept.names, err);
    for (uint32_t i = 0; i < d->n_committed && rc == 0; i++) {
        const daf__archive_entry *e = &d->entries[i];
        if (!keep(context, i))
            continue;
        uint64_t at = kept.central.size;
        daf__zip_entry z;
        daf__buf_append(&kept.central, d->central.data + e->central_at, e->central_bytes);
        rc = daf__buf_check(&kept.central, err);
        if (rc == 0 && daf__zip_parse_central(kept.central.data + at, kept.central.size - at, &z) > 0)
            rc = daf__archive_add_entry(&kept, &z, at, e->central_bytes, err);
    }
    kept.n_committed = kept.n;
    for (uint32_t i = d->n_committed; i < d->n && rc == 0; i++) {
        daf__archive_entry *e = &d->entries[i];
        daf__zip_entry z = {.name = (const uint8_t *)e->name, .name_bytes = e->name_bytes};
        rc = daf__archive_add_entry(&kept, &z, 0, 0, err);
        if (rc == 0)
            kept.entries[kept.n - 1] = *e;
    }
    if (rc) {
        kept.n = kept.n_committed = 0; /* what is staged stays with the old one */
        daf__archive_directory_free(&kept);
        return rc;
    }
    free(d->entries);
    daf__archive_names_free(&d->names);
    daf__buf_free(&d->central);
    d->entries = kept.entries;
    d->n = kept.n;
    d->n_committed = kept.n_committed;
    d->capacity = kept.capacity;
    d->names = kept.names;
    d->central = kept.central;
    return 0;
}
