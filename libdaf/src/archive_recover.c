/* Archives that a killed writer left, ours or another (specification section 12).
 *
 *   the copy of the directory, made before an append (archive_commit), is at the end: the append did not happen
 *   entries at the end of the directory whose header or data are not there: they did not happen
 *   zeros, or what is no directory, behind the end records: the file ends with the end records
 *   no end records at all: the local headers, one behind the other, tell what is there
 *
 * All this is worked out in memory; a writable open then brings the file in line (daf__archive_repair).
 */
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "archive_decode.h"
#include "archive_mark.h"
#include "base/bytes.h"
#include "error.h"

enum {
    PIECE = 1 << 20,
    LARGE_ENTRY = 64 << 20,
    LAST_BYTES = 4096,
    LOCAL_SHAPE = 45,
    CENTRAL_SHAPE_FIELD_BYTES = DAF__ZIP_CENTRAL_EXTRA_BYTES - 4,
    MAX_LOCAL_BYTES = DAF__ZIP_LOCAL_BYTES + 2 * 65535,
    MAX_TRIES = 64 /* of directories that are read whole: a file may be full of what looks like an end */
};
#define END_SIGNATURE "PK\5\6"
#define CENTRAL_SIGNATURE "PK\1\2"

/* ---- the copy of the directory */

static bool find_comment(const daf__buf *tail, size_t *at) {
    for (size_t i = tail->size; i >= DAF__ZIP_PLAIN_END_BYTES; i--) {
        *at = i;
        const uint8_t *p = tail->data + i - DAF__ZIP_PLAIN_END_BYTES;
        if (memcmp(p, END_SIGNATURE, 4) == 0 && i + bytes_load16(p + 20) == tail->size)
            return true;
    }
    return false;
}

/* Nothing that the directory lists may lie where it is to be put, and what is put there must end before the copy. */
static bool is_sound_mark(const daf__archive_directory *d, uint64_t offset, const daf__buf *tail) {
    if (offset > d->offset || d->central.size + tail->size > d->offset - offset)
        return false;
    for (uint32_t i = 0; i < d->n_committed; i++)
        if (d->entries[i].offset + d->entries[i].packed_bytes > offset)
            return false;
    return true;
}

int daf__archive_take_mark(daf__archive_directory *d, daf_error *err) {
    const daf__buf *c = &d->comment;
    daf__buf tail = {0};
    size_t at;
    if (c->size < DAF__MARK_BYTES || memcmp(c->data, DAF__MARK_TEXT, DAF__MARK_TEXT_BYTES) != 0)
        return 0;
    daf__buf_append(&tail, c->data + DAF__MARK_BYTES, c->size - DAF__MARK_BYTES);
    int rc = daf__buf_check(&tail, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < tail.size; i++)
        tail.data[i] ^= DAF__MARK_MASK;
    uint64_t offset = bytes_load64(c->data + DAF__MARK_TEXT_BYTES);
    if (!is_sound_mark(d, offset, &tail) || !find_comment(&tail, &at)) {
        daf__buf_free(&tail);
        return 0; /* somebody's comment that happens to begin so */
    }
    d->comment.size = 0;
    daf__buf_append(&d->comment, tail.data + at, tail.size - at);
    daf__buf_free(&d->raw_tail);
    d->raw_tail = tail;
    d->offset = offset;
    d->recovered = d->misplaced = true;
    return daf__buf_check(&d->comment, err);
}

/* ---- entries that did not happen */

/* Written by an append of this protocol: nothing else is ever cut off. */
static bool is_own_central(const uint8_t *p, const daf__archive_entry *e) {
    const uint8_t *extra = p + DAF__ZIP_CENTRAL_BYTES + e->name_bytes;
    return e->method == DAF__ZIP_STORED && bytes_load16(p + 6) == LOCAL_SHAPE &&
           bytes_load16(p + 30) >= DAF__ZIP_CENTRAL_EXTRA_BYTES && bytes_load16(extra) == 1 &&
           bytes_load16(extra + 2) == CENTRAL_SHAPE_FIELD_BYTES;
}

static bool all_zero(const uint8_t *p, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if (p[i])
            return false;
    return true;
}

/* Data are written from front to back into a file that was filled with zeros, so of large ones a reader takes a last
 * piece that is not zero for all of them. */
static int has_data(bool *ret, daf__file *f, uint64_t at, const daf__archive_entry *e, bool thoroughly,
                    daf_error *err) {
    uint8_t last[LAST_BYTES];
    uint32_t crc;
    int rc = 0;
    if (!thoroughly && e->packed_bytes > LARGE_ENTRY) {
        rc = f->ops->read(f, last, sizeof last, at + e->packed_bytes - sizeof last, err);
        *ret = rc == 0 && !all_zero(last, sizeof last);
        if (rc || *ret)
            return rc;
    }
    rc = daf__archive_crc(&crc, f, at, e->packed_bytes, err);
    *ret = rc == 0 && crc == e->crc;
    return rc;
}

/* Whether the whole local header of an entry without data was written: its extra field is what comes last. */
static int is_whole_local(bool *ret, daf__file *f, uint64_t at, size_t width, daf_error *err) {
    daf__zip_entry e;
    uint8_t *local = malloc(width);
    if (!local)
        return daf__no_memory(err);
    int rc = f->ops->read(f, local, width, at, err);
    *ret = rc == 0 && daf__zip_parse_local(local, width, &e) > 0 && daf__archive_is_own_local(local, &e) &&
           e.packed_bytes == 0 && e.raw_bytes == 0;
    free(local);
    return rc;
}

/* A local header under another name is one that was torn, unless the data are there: then the name is damaged, in the header
 * or in the directory. */
static int has_happened(bool *ret, const daf__archive_directory *d, daf__file *f, const daf__archive_entry *e,
                        bool thoroughly, daf_error *err) {
    uint8_t local[DAF__ZIP_LOCAL_BYTES];
    char name[65536];
    *ret = e->method != DAF__ZIP_STORED;
    if (*ret)
        return 0;
    uint64_t limit = f->size < d->offset ? f->size : d->offset;
    if (e->offset > limit || limit - e->offset < (uint64_t)DAF__ZIP_LOCAL_BYTES + e->name_bytes)
        return 0;
    int rc = f->ops->read(f, local, sizeof local, e->offset, err);
    if (rc == 0)
        rc = f->ops->read(f, name, e->name_bytes, e->offset + sizeof local, err);
    if (rc)
        return rc;
    size_t width = daf__zip_local_bytes(local);
    if (width == 0 || width > limit - e->offset || e->packed_bytes > limit - e->offset - width)
        return 0;
    bool named = bytes_load16(local + 26) == e->name_bytes &&
                 memcmp(name, daf__archive_entry_name(d, e), e->name_bytes) == 0;
    if (!named && e->packed_bytes == 0)
        return is_whole_local(ret, f, e->offset, width, err);
    return has_data(ret, f, e->offset + width, e, thoroughly || !named, err);
}

static bool is_before(void *context, uint32_t entry) {
    return entry < *(uint32_t *)context;
}

int daf__archive_roll_back(daf__archive_directory *d, daf__file *f, bool thoroughly, daf_error *err) {
    uint32_t n = d->n_committed;
    uint64_t end = d->offset;
    while (n > 0) {
        const daf__archive_entry *e = &d->entries[n - 1];
        bool happened;
        int rc = has_happened(&happened, d, f, e, thoroughly, err);
        if (rc)
            return rc;
        if (happened || !is_own_central(d->central.data + e->central_at, e) ||
            daf__zip_aligned_data(e->offset, e->name_bytes) + e->packed_bytes != end)
            break;
        end = e->offset;
        n--;
    }
    if (n == d->n_committed)
        return 0;
    int rc = daf__archive_keep(d, is_before, &n, err);
    if (rc)
        return rc;
    d->offset = end;
    d->recovered = d->misplaced = true;
    daf__buf_free(&d->raw_tail);
    return 0;
}

/* ---- end records somewhere before the end of the file */

/* Under the names that the directory has: another's beginning may have been written into one of them. */
static int has_local_headers(const daf__archive_directory *d, daf__file *f, bool *ret, daf_error *err) {
    char name[UINT16_MAX + 1];
    *ret = true;
    for (uint32_t i = 0; i < d->n_committed && *ret; i++) {
        const daf__archive_entry *e = &d->entries[i];
        uint8_t local[DAF__ZIP_LOCAL_BYTES];
        int rc = f->ops->read(f, local, sizeof local, e->offset, err);
        *ret = rc == 0 && daf__zip_local_bytes(local) > 0 && bytes_load16(local + 26) == e->name_bytes;
        if (*ret)
            rc = f->ops->read(f, name, e->name_bytes, e->offset + sizeof local, err);
        if (rc)
            return rc;
        *ret = *ret && memcmp(name, daf__archive_entry_name(d, e), e->name_bytes) == 0;
    }
    return 0;
}

/* An end record is worth reading the directory that it tells of. Archives may lie inside of archives as entries; but then
 * their directories are not where they say. */
static int is_promising(bool *ret, daf__file *f, uint64_t at, const daf__zip_directory *z, daf_error *err) {
    char signature[4];
    *ret = false;
    if (z->records_offset != z->offset + z->bytes ||
        z->comment_bytes > f->size - at - DAF__ZIP_PLAIN_END_BYTES)
        return 0;
    *ret = z->n_entries == 0 && z->offset == 0;
    if (z->n_entries == 0)
        return 0;
    int rc = f->ops->read(f, signature, sizeof signature, z->offset, err);
    *ret = rc == 0 && memcmp(signature, CENTRAL_SIGNATURE, sizeof signature) == 0;
    return rc;
}

static int try_end(daf__archive_directory *ret, daf__file *f, uint64_t at, unsigned *n_tries,
                   daf_error *err) {
    daf__zip_directory z;
    daf__archive_directory d;
    bool sound = false;
    int rc = daf__zip_directory_at(f, at, &z, err);
    if (rc == 0)
        rc = is_promising(&sound, f, at, &z, err);
    if (rc == 0 && (!sound || ++*n_tries > MAX_TRIES))
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, at, "%s: no end of this archive", f->where);
    if (rc == 0)
        rc = daf__archive_read_central(&d, f, &z, err);
    if (rc)
        return rc;
    rc = has_local_headers(&d, f, &sound, err);
    if (rc == 0 && sound) {
        *ret = d;
        return 0;
    }
    daf__archive_directory_free(&d);
    return rc ? rc : daf__fail(err, DAF_ERR_CORRUPT, 0, at, "%s: no end of this archive", f->where);
}

static bool is_fatal(int rc) {
    return rc == DAF_ERR_IO || rc == DAF_ERR_NOMEM;
}

/* From the last signature to the first. Returns DAF_ERR_TRUNCATED when there is none that is right. */
static int search_backwards(daf__archive_directory *ret, daf__file *f, daf_error *err) {
    enum { OVERLAP = 3 };
    uint8_t *piece = malloc(PIECE + OVERLAP);
    if (!piece)
        return daf__no_memory(err);
    unsigned n_tries = 0;
    int rc = DAF_ERR_TRUNCATED;
    for (uint64_t end = f->size; end > 0 && rc && !is_fatal(rc);) {
        uint64_t from = end > PIECE ? end - PIECE : 0;
        size_t bytes = (size_t)(end - from);
        bytes += f->size - end < OVERLAP ? (size_t)(f->size - end) : OVERLAP;
        int read = f->ops->read(f, piece, bytes, from, err);
        if (read)
            rc = is_fatal(read) ? read : daf__fail(err, DAF_ERR_IO, 0, from, "%s: changes", f->where);
        for (size_t i = read ? 0 : bytes; i >= 4 && rc && !is_fatal(rc); i--)
            if (piece[i - 4] == 'P' && memcmp(piece + i - 4, END_SIGNATURE, 4) == 0 &&
                f->size - (from + i - 4) >= DAF__ZIP_PLAIN_END_BYTES)
                rc = try_end(ret, f, from + i - 4, &n_tries, err);
        end = from;
    }
    free(piece);
    return rc;
}

/* ---- no end records */

/* Lists an entry as its local header tells of it. */
static int list_local(daf__archive_directory *d, const uint8_t *local, const daf__zip_entry *e,
                      daf_error *err) {
    uint64_t at = d->central.size;
    uint8_t *to = daf__buf_reserve(&d->central, (size_t)DAF__ZIP_CENTRAL_BYTES + e->name_bytes +
                                                    DAF__ZIP_CENTRAL_EXTRA_BYTES);
    if (!to)
        return daf__no_memory(err);
    size_t width = daf__zip_put_central(to, e);
    memcpy(to + 6, local + 4, 2);   /* the version needed */
    memcpy(to + 12, local + 10, 4); /* time and date */
    d->central.size += width;
    return daf__archive_add_entry(d, e, at, (uint32_t)width, err);
}

static int is_intact(bool *ret, daf__file *f, uint64_t data, const daf__zip_entry *e, daf_error *err) {
    daf__archive_entry entry = {
        .packed_bytes = e->packed_bytes, .raw_bytes = e->raw_bytes, .crc = e->crc, .method = e->method};
    uint32_t crc = ~e->crc;
    int rc;
    if (e->method == DAF__ZIP_STORED) {
        rc = daf__archive_crc(&crc, f, data, e->packed_bytes, err);
        *ret = crc == e->crc && e->packed_bytes == e->raw_bytes;
    } else {
        rc = daf__archive_check(f, data, &entry, "", err);
        *ret = rc == 0;
    }
    return is_fatal(rc) ? rc : 0;
}

/* Reads the local header at `at`; *data 0: there is none, or it does not tell where its data end. */
static int read_local(daf__file *f, uint64_t at, uint8_t *local, daf__zip_entry *e, uint64_t *data,
                      daf_error *err) {
    *data = 0;
    if (f->size - at < DAF__ZIP_LOCAL_BYTES)
        return 0;
    int rc = f->ops->read(f, local, DAF__ZIP_LOCAL_BYTES, at, err);
    size_t width = rc ? 0 : daf__zip_local_bytes(local);
    if (rc || width == 0 || width > f->size - at)
        return rc;
    rc = f->ops->read(f, local, width, at, err);
    if (rc || daf__zip_parse_local(local, width, e) == 0 ||
        (e->flags & (DAF__ZIP_DESCRIPTOR_FLAG | DAF__ZIP_ENCRYPTED_FLAG)) ||
        e->packed_bytes > f->size - at - width)
        return rc;
    e->offset = at;
    *data = at + width;
    return 0;
}

static void set_unclear(daf__archive_directory *d, uint64_t at) {
    if (!d->unclear)
        d->unclear_at = at;
    d->unclear = true;
}

/* An entry that is damaged may say that others are its data; one that is not of ours may be anything. */
static int doubt(daf__archive_directory *d, daf__file *f, const uint8_t *local, const daf__zip_entry *e,
                 uint64_t data, daf_error *err) {
    bool holds = true;
    int rc = 0;
    if (daf__archive_is_own_local(local, e))
        rc = daf__archive_holds_entries(&holds, f, e->offset + DAF__ZIP_LOCAL_BYTES, data + e->packed_bytes,
                                        err);
    if (rc == 0 && holds)
        set_unclear(d, e->offset);
    return rc;
}

static int scan_local_headers(daf__archive_directory *ret, daf__file *f, daf_error *err) {
    daf__archive_directory d = {0};
    uint8_t *local = malloc(MAX_LOCAL_BYTES);
    int rc = local ? daf__archive_names_init(&d.names, err) : daf__no_memory(err);
    uint64_t at = 0;
    while (rc == 0) {
        daf__zip_entry e;
        uint64_t data;
        bool intact = false;
        rc = read_local(f, at, local, &e, &data, err);
        if (rc || data == 0)
            break;
        rc = is_intact(&intact, f, data, &e, err);
        if (rc == 0 && !intact)
            rc = doubt(&d, f, local, &e, data, err);
        at = data + e.packed_bytes;
        if (rc == 0 && intact) {
            rc = list_local(&d, local, &e, err);
            d.offset = at;
        }
    }
    d.n_committed = d.n;
    free(local);
    bool may_be_cut = true;
    if (rc == 0)
        rc = daf__archive_may_be_cut_behind_locals(&may_be_cut, f, at, err);
    if (!may_be_cut)
        set_unclear(&d, at);
    if (rc == 0 && d.n == 0)
        rc = daf__fail(err, DAF_ERR_TRUNCATED, 0, 0, "%s: no ZIP archive", f->where);
    if (rc) {
        daf__archive_directory_free(&d);
        return rc;
    }
    d.recovered = d.misplaced = true;
    *ret = d;
    return 0;
}

int daf__archive_search(daf__archive_directory *ret, daf__file *f, daf_error *err) {
    daf__archive_directory d;
    daf_error details;
    int rc = search_backwards(&d, f, &details);
    bool may_be_cut = true, found = rc == 0;
    if (rc && !is_fatal(rc))
        rc = scan_local_headers(&d, f, &details);
    if (rc)
        return daf__pass(err, &details);
    d.recovered = true;
    if (found)
        rc = daf__archive_may_be_cut(&may_be_cut, f, d.end, err);
    if (!may_be_cut)
        set_unclear(&d, d.end);
    if (rc == 0)
        rc = daf__archive_take_mark(&d, err);
    if (rc == 0)
        rc = daf__archive_roll_back(&d, f, true, err);
    if (rc) {
        daf__archive_directory_free(&d);
        return rc;
    }
    *ret = d;
    return 0;
}
