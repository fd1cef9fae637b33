/* The append protocol (specification section 12): the new entries go where the directory was, and the new directory
 * behind them. So that the file is a whole archive in every moment, with the old content or with the new:
 *
 *   1  the old directory is copied behind where the new file will end, with end records of its own: from now on the
 *      file ends in this copy, and is the old archive (with a gap in it)
 *   2  the new directory and its end records are written
 *   3  local headers and data of the new entries, from the first to the last
 *   4  the file is cut before the copy: this is the commit
 *
 * What is left are the bytes that the specification tells of. A writer killed before 1 is done leaves the old end
 * records before the end of the file; killed later, the copy, whose comment tells where the directory was. Other
 * readers need to know nothing of it. Readers beside the writer see the old archive until the cut.
 *
 * The same steps without new entries take entries out of the directory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "archive_mark.h"
#include "base/bytes.h"
#include "error.h"

enum { COPY_BYTES = 1 << 18 };

typedef struct commit {
    daf__archive *a;
    const daf__archive_settings *settings;
    daf__archive_directory *d; /* its staged entries are to be committed */
    daf__buf central;          /* what the new directory holds */
    uint32_t n_kept;           /* entries of the old one in it */
    uint64_t *offsets;         /* of the staged ones */
    uint64_t directory_offset, end;
} commit;

static int io_failed(const commit *c, int failed, uint64_t offset, const char *verb, daf_error *err) {
    return daf__fail(err, DAF_ERR_IO, failed > 0 ? failed : 0, offset, "%s: cannot %s", c->a->path, verb);
}

static int write_at(const commit *c, const void *data, size_t bytes, uint64_t offset, daf_error *err) {
    int rc = daf__write_all(c->a->io, c->a->fd, data, bytes, offset);
    return rc ? io_failed(c, rc, offset, "write", err) : 0;
}

static int cut(const commit *c, uint64_t bytes, daf_error *err) {
    int rc;
    do
        rc = c->a->io->truncate(c->a->io->context, c->a->fd, (off_t)bytes);
    while (rc != 0 && errno == EINTR);
    return rc ? io_failed(c, errno, bytes, "cut the file", err) : 0;
}

static int sync_file(const commit *c, daf_error *err) {
    if (!c->settings->sync || c->a->io->sync(c->a->io->context, c->a->fd) == 0)
        return 0;
    return io_failed(c, errno, 0, "sync", err);
}

/* ---- directories */

/* A directory as it stands in a file: entries, end records, comment. */
static int render(daf__buf *ret, const daf__buf *central, uint64_t n_entries, uint64_t offset,
                  const daf__buf *comment, daf_error *err) {
    uint8_t end[DAF__ZIP_END_BYTES];
    daf__zip_put_end(end, n_entries, central->size, offset);
    bytes_store16(end + sizeof end - 2, (uint16_t)comment->size);
    daf__buf_append(ret, central->data, central->size);
    daf__buf_append(ret, end, sizeof end);
    daf__buf_append(ret, comment->data, comment->size);
    return daf__buf_check(ret, err);
}

static int render_copy(daf__buf *ret, const daf__archive_directory *d, uint64_t at, const daf__buf *tail,
                       daf_error *err) {
    daf__buf mark = {0};
    uint8_t offset[8];
    if (tail->size <= DAF__MARK_MAX_TAIL) {
        bytes_store64(offset, d->offset);
        daf__buf_append(&mark, DAF__MARK_TEXT, DAF__MARK_TEXT_BYTES);
        daf__buf_append(&mark, offset, sizeof offset);
        daf__buf_append(&mark, tail->data, tail->size);
        for (size_t i = DAF__MARK_BYTES; !mark.failed && i < mark.size; i++)
            mark.data[i] ^= DAF__MARK_MASK;
    }
    int rc = daf__buf_check(&mark, err);
    if (rc == 0)
        rc = render(ret, &d->central, d->n_committed, at, &mark, err);
    daf__buf_free(&mark);
    return rc;
}

/* ---- the plan */

/* Which committed entries stay. */
typedef struct filter {
    const daf__archive_directory *d;
    bool (*keep)(void *context, uint32_t entry);
    void *context;
} filter;

static bool stays(void *context, uint32_t entry) {
    const filter *f = context;
    return !f->d->entries[entry].leaving && (!f->keep || f->keep(f->context, entry));
}

static int keep_some(commit *c, filter *f, daf_error *err) {
    const daf__archive_directory *d = c->d;
    for (uint32_t i = 0; i < d->n_committed; i++) {
        if (!stays(f, i))
            continue;
        daf__buf_append(&c->central, d->central.data + d->entries[i].central_at, d->entries[i].central_bytes);
        c->n_kept++;
    }
    return daf__buf_check(&c->central, err);
}

static daf__zip_entry zip_entry(const daf__archive_entry *e, uint64_t offset) {
    return (daf__zip_entry){.name = (const uint8_t *)e->name,
                            .name_bytes = e->name_bytes,
                            .flags = e->flags,
                            .method = e->method,
                            .crc = e->crc,
                            .packed_bytes = e->packed_bytes,
                            .raw_bytes = e->raw_bytes,
                            .offset = offset};
}

/* Gives the staged entries their places. */
static int place(commit *c, daf_error *err) {
    const daf__archive_directory *d = c->d;
    uint64_t at = d->offset;
    c->offsets = malloc((d->n - d->n_committed + 1) * sizeof *c->offsets);
    if (!c->offsets)
        return daf__no_memory(err);
    for (uint32_t i = d->n_committed; i < d->n; i++) {
        const daf__archive_entry *e = &d->entries[i];
        daf__zip_entry z = zip_entry(e, at);
        c->offsets[i - d->n_committed] = at;
        uint8_t *to = daf__buf_reserve(&c->central, (size_t)DAF__ZIP_CENTRAL_BYTES + e->name_bytes +
                                                        DAF__ZIP_CENTRAL_EXTRA_BYTES);
        if (!to)
            return daf__no_memory(err);
        c->central.size += daf__zip_put_central(to, &z);
        at = daf__zip_aligned_data(at, e->name_bytes) + e->packed_bytes;
    }
    c->directory_offset = at;
    c->end = at + c->central.size + DAF__ZIP_END_BYTES + d->comment.size;
    if ((d->n > d->n_committed && c->end > c->settings->max_bytes) || c->end < at || c->end > INT64_MAX / 2)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0,
                         "%s: would grow to %llu bytes, past the limit of %llu (DAF_ZIP_MAX_FILE_SIZE)",
                         c->a->path, (unsigned long long)c->end, (unsigned long long)c->settings->max_bytes);
    return 0;
}

/* ---- the steps */

static int copy_staged(const commit *c, const daf__staged *s, uint64_t to, daf_error *err) {
    if (s->fd < 0)
        return s->bytes ? write_at(c, s->memory.data, (size_t)s->bytes, to, err) : 0;
    uint8_t *piece = malloc(COPY_BYTES);
    int rc = piece ? 0 : daf__no_memory(err);
    for (uint64_t at = 0; at < s->bytes && rc == 0;) {
        size_t n = s->bytes - at < COPY_BYTES ? (size_t)(s->bytes - at) : COPY_BYTES;
        int failed = daf__read_all(s->io, s->fd, piece, n, at);
        rc = failed ? io_failed(c, failed, at, "read what is to become an entry", err)
                    : write_at(c, piece, n, to + at, err);
        at += n;
    }
    free(piece);
    return rc;
}

static int write_entry(const commit *c, uint32_t i, daf_error *err) {
    const daf__archive_entry *e = &c->d->entries[i];
    daf__zip_entry z = zip_entry(e, c->offsets[i - c->d->n_committed]);
    uint8_t *local = malloc((size_t)DAF__ZIP_LOCAL_BYTES + e->name_bytes + DAF__ZIP_LOCAL_EXTRA_BYTES +
                            DAF__ZIP_MAX_PADDING);
    if (!local)
        return daf__no_memory(err);
    size_t bytes = daf__zip_put_aligned_local(local, &z);
    int rc = write_at(c, local, bytes, z.offset, err);
    free(local);
    return rc ? rc : copy_staged(c, e->staged, z.offset + bytes, err);
}

static int write_new(const commit *c, daf_error *err) {
    daf__buf directory = {0};
    uint64_t n_entries = (uint64_t)c->n_kept + (c->d->n - c->d->n_committed);
    int rc = render(&directory, &c->central, n_entries, c->directory_offset, &c->d->comment, err);
    if (rc == 0)
        rc = write_at(c, directory.data, directory.size, c->directory_offset, err);
    daf__buf_free(&directory);
    for (uint32_t i = c->d->n_committed; i < c->d->n && rc == 0; i++)
        rc = write_entry(c, i, err);
    if (rc == 0)
        rc = sync_file(c, err);
    return rc;
}

/* Puts back what the steps have overwritten. When that fails too, the copy is what remains. */
static void undo(const commit *c, uint64_t file_bytes, const daf__buf *tail, bool overwritten) {
    const daf__archive_directory *d = c->d;
    int rc = 0;
    if (overwritten) {
        rc = write_at(c, d->central.data, d->central.size, d->offset, NULL);
        if (rc == 0)
            rc = write_at(c, tail->data, tail->size, d->offset + d->central.size, NULL);
    }
    if (rc == 0)
        rc = cut(c, file_bytes, NULL);
    c->a->broken = rc != 0;
}

static int read_tail(const commit *c, daf__buf *ret, uint64_t *file_bytes, daf_error *err) {
    daf__archive_whole w;
    const daf__archive_directory *d = c->d;
    uint64_t from = d->offset + d->central.size;
    int rc = daf__archive_look(&w, c->a->io, c->a->fd, c->a->path, err);
    if (rc)
        return rc;
    uint8_t *to = w.base.size < from ? NULL : daf__buf_reserve(ret, (size_t)(w.base.size - from));
    if (!to)
        return w.base.size < from
                   ? daf__fail(err, DAF_ERR_TRUNCATED, 0, from, "%s: became shorter", c->a->path)
                   : daf__no_memory(err);
    rc = w.base.ops->read(&w.base, to, (size_t)(w.base.size - from), from, err);
    ret->size = (size_t)(w.base.size - from);
    *file_bytes = w.base.size;
    return rc;
}

static int take_steps(const commit *c, daf_error *err) {
    daf__buf tail = {0}, copy = {0};
    uint64_t file_bytes = 0;
    bool overwritten = false;
    int rc = read_tail(c, &tail, &file_bytes, err);
    uint64_t copy_at = file_bytes > c->end ? file_bytes : c->end;
    if (rc == 0)
        rc = render_copy(&copy, c->d, copy_at, &tail, err);
    bool begun = rc == 0;
    if (rc == 0)
        rc = write_at(c, copy.data, copy.size, copy_at, err);
    if (rc == 0)
        rc = sync_file(c, err);
    if (rc == 0) {
        overwritten = true;
        rc = write_new(c, err);
    }
    if (rc == 0)
        rc = cut(c, c->end, err);
    if (rc && begun)
        undo(c, file_bytes, &tail, overwritten);
    daf__buf_free(&tail);
    daf__buf_free(&copy);
    return rc;
}

/* ---- the directory in memory */

/* The staged entries are as those that were read from the file. */
static void take_over(commit *c) {
    daf__archive_directory *d = c->d;
    uint64_t at = d->central.size;
    for (uint32_t i = d->n_committed; i < d->n; i++) {
        daf__archive_entry *e = &d->entries[i];
        e->offset = c->offsets[i - d->n_committed];
        e->central_at = at;
        e->central_bytes = (uint32_t)DAF__ZIP_CENTRAL_BYTES + e->name_bytes + DAF__ZIP_CENTRAL_EXTRA_BYTES;
        at += e->central_bytes;
        daf__staged_release(e->staged);
        free(e->name);
        e->staged = NULL;
        e->name = NULL;
        e->owner = NULL;
    }
    daf__buf_free(&d->central);
    d->central = c->central;
    c->central = (daf__buf){0};
    d->n_committed = d->n;
    d->n_in_memory = d->n_staged_files = 0;
    d->offset = c->directory_offset;
}

int daf__archive_check_usable(const daf__archive *a, daf_error *err) {
    if (a->broken)
        return daf__fail(err, DAF_ERR_IO, 0, 0,
                         "%s: a write failed and could not be undone; close it and open it again", a->path);
    if (a->replaced)
        return daf__fail(err, DAF_ERR_IO, 0, 0,
                         "%s: was replaced by a new archive (mode w); this handle is on the old one",
                         a->path);
    return 0;
}

int daf__archive_commit(daf__archive *a, const daf__archive_settings *settings,
                        bool (*keep)(void *context, uint32_t entry), void *context, daf_error *err) {
    commit c = {.a = a, .settings = settings, .d = &a->directory};
    filter f = {.d = c.d, .keep = keep, .context = context};
    int rc = daf__archive_check_usable(a, err);
    if (rc == 0)
        rc = keep_some(&c, &f, err);
    if (rc == 0)
        rc = place(&c, err);
    if (rc == 0)
        rc = take_steps(&c, err);
    if (rc == 0 && c.n_kept < c.d->n_committed) {
        rc = daf__archive_keep(c.d, stays, &f, err);
        a->broken = rc != 0; /* the file is another than the directory in memory */
    }
    if (rc == 0) {
        take_over(&c);
        rc = sync_file(&c, err);
    }
    daf__buf_free(&c.central);
    free(c.offsets);
    return rc;
}

/* ---- repair */

/* A directory that stands nowhere in the file, or not where it should. */
static int rewrite(const commit *c, daf_error *err) {
    daf__archive_directory *d = c->d;
    daf__archive_whole w;
    daf__buf directory = {0}, tail = {0}, copy = {0};
    int rc = daf__archive_look(&w, c->a->io, c->a->fd, c->a->path, err);
    if (rc == 0)
        rc = render(&directory, &d->central, d->n_committed, d->offset, &d->comment, err);
    if (rc)
        return rc;
    d->end = d->offset + directory.size;
    uint64_t copy_at = w.base.size > d->end ? w.base.size : d->end;
    daf__buf_append(&tail, directory.data + d->central.size, directory.size - d->central.size);
    rc = daf__buf_check(&tail, err);
    if (rc == 0)
        rc = render_copy(&copy, d, copy_at, &tail, err);
    if (rc == 0)
        rc = write_at(c, copy.data, copy.size, copy_at, err);
    if (rc == 0)
        rc = sync_file(c, err);
    if (rc == 0)
        rc = write_at(c, directory.data, directory.size, d->offset, err);
    daf__buf_free(&directory);
    daf__buf_free(&tail);
    daf__buf_free(&copy);
    return rc;
}

int daf__archive_repair(daf__archive *a, bool sync, daf_error *err) {
    daf__archive_directory *d = &a->directory;
    daf__archive_settings settings = {.sync = sync, .max_bytes = UINT64_MAX};
    commit c = {.a = a, .settings = &settings, .d = d};
    daf__buf directory = {0};
    int rc = 0;
    if (!d->recovered)
        return 0;
    if (d->unclear)
        return daf__fail(
            err, DAF_ERR_CORRUPT, 0, d->unclear_at,
            "%s: its directory is damaged or cut off, and what lies at byte %llu is not what an "
            "interrupted append leaves: nothing is changed; what can be read can be copied to a new "
            "archive",
            a->path, (unsigned long long)d->unclear_at);
    if (d->misplaced && !d->raw_tail.size) {
        rc = rewrite(&c, err);
    } else if (d->misplaced) {
        daf__buf_append(&directory, d->central.data, d->central.size);
        daf__buf_append(&directory, d->raw_tail.data, d->raw_tail.size);
        rc = daf__buf_check(&directory, err);
        if (rc == 0)
            rc = write_at(&c, directory.data, directory.size, d->offset, err);
        if (rc == 0)
            rc = sync_file(&c, err);
        d->end = d->offset + directory.size;
    }
    if (rc == 0 && d->end)
        rc = cut(&c, d->end, err);
    if (rc == 0)
        rc = sync_file(&c, err);
    if (rc == 0)
        d->recovered = d->misplaced = false;
    daf__buf_free(&directory);
    daf__buf_free(&d->raw_tail);
    return rc;
}
