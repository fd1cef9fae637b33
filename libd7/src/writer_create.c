/* Creation of a file: everything that needs no file first, then the file, its lock, and its first bytes. A
 * file that is there already is touched only when the caller wants it replaced and no writer holds it; one
 * that was made here is removed again when something fails. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "codec.h"
#include "error.h"
#include "reader.h"
#include "writer.h"

void d7_writer_options_init(d7_writer_options *options) {
    *options = (d7_writer_options){
        .index_step = D7_INDEX_STEP_DEFAULT,
        .bytes_per_page = D7_PAGE_BYTES_DEFAULT,
        .mode = 0666,
        .buffer_bytes = 1024 * 1024,
    };
}

static bool page_fits(d7_type type, uint32_t bytes_per_page) {
    return d7_page_bound(type, d7_items_per_page(type, bytes_per_page)) <= D7_ENTRY_BYTES_MAX;
}

uint32_t d7_writable_page_bytes(const d7_dataset *datasets, size_t n, uint32_t bytes_per_page) {
    for (size_t i = 0; i < n; i++)
        if (!page_fits(datasets[i].type, bytes_per_page))
            return D7_PAGE_BYTES_DEFAULT;
    return bytes_per_page;
}

static int create_check_datasets(const char *path, const d7_dataset *datasets, size_t n,
                                 uint32_t bytes_per_page, d7_error *err) {
    if (!datasets || n == 0 || n > D7_DATASETS_MAX)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: a file takes 1 to %u datasets, not %zu", path,
                        D7_DATASETS_MAX, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = datasets[i].name;
        if (!name || !*name || !common_utf8_valid(name, strlen(name)))
            return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: the name of dataset %zu is %s", path, i,
                            name && *name ? "not valid UTF-8" : "missing");
        if (d7_items_per_page(datasets[i].type, bytes_per_page) == 0)
            return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: dataset %.100s has no element type", path,
                            name);
        if (!page_fits(datasets[i].type, bytes_per_page))
            return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET,
                            "%s: pages of %u bytes could be over 16 MiB when dataset %.100s is encoded", path,
                            bytes_per_page, name);
    }
    return 0;
}

static int create_check_names(const d7_writer *w, const d7_dataset *datasets, d7_error *err) {
    d7__names seen = {0};
    int rc = 0;
    for (size_t i = 0; i < w->n_datasets && rc == 0; i++) {
        const char *name = datasets[i].name;
        if (d7__names_find(&seen, name, strlen(name)) != SIZE_MAX)
            rc = d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: two datasets are called %.100s", w->path,
                          name);
        else if (d7__names_reserve(&w->alloc, &seen) != 0)
            rc = d7__writer_no_memory(w, err);
        else
            d7__names_add(&seen, name, strlen(name), (uint32_t)i);
    }
    d7__names_free(&w->alloc, &seen);
    return rc;
}

static int create_check_options(const char *path, const d7_writer_options *o, d7_error *err) {
    if (o->index_step < 1 || o->index_step > D7_INDEX_STEP_MAX)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: index_step is 1 to %u blocks, not %u", path,
                        D7_INDEX_STEP_MAX, o->index_step);
    if (o->bytes_per_page < D7_PAGE_BYTES_MIN || o->bytes_per_page > D7_PAGE_BYTES_MAX)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: bytes_per_page is %u to %u, not %u", path,
                        D7_PAGE_BYTES_MIN, D7_PAGE_BYTES_MAX, o->bytes_per_page);
    if (o->n_attributes && !o->attributes)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: attributes are missing", path);
    return 0;
}

int d7__writer_prepare(d7_writer *w, const char *path, const d7_dataset *datasets, size_t n,
                       const d7_writer_options *o, d7_error *err) {
    w->io = o->io ? *o->io : *d7_io_system();
    w->has_executor = o->executor != NULL;
    if (w->has_executor)
        w->executor = *o->executor;
    w->buffer_bytes = o->buffer_bytes;
    w->index_step = o->index_step;
    w->next_island = o->index_step;
    w->index_run = true;
    w->bytes_per_page = o->bytes_per_page;
    w->attributes.alloc = &w->alloc;
    w->path = d7__new(&w->alloc, strlen(path) + 1);
    w->datasets = d7__new(&w->alloc, n * sizeof *w->datasets);
    if (!w->path || !w->datasets)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    memcpy(w->path, path, strlen(path) + 1);
    w->out = (d7__out){.io = &w->io, .alloc = &w->alloc, .path = w->path};
    w->n_datasets = n;
    for (size_t i = 0; i < n; i++) {
        w->datasets[i].type = datasets[i].type;
        w->datasets[i].items_per_page = d7_items_per_page(datasets[i].type, o->bytes_per_page);
    }
    int rc = create_check_names(w, datasets, err);
    for (size_t i = 0; i < o->n_attributes && rc == 0; i++) {
        d7_attribute a;
        rc = d7__attribute_check(path, o->attributes[i].key, o->attributes[i].value, &a, err);
        if (rc == 0 && d7__writer_keep_attribute(w, &a, 0) != 0)
            rc = d7__writer_no_memory(w, err);
    }
    return rc;
}

/* Header, and the attributes known at creation. */
static int create_frame_start(d7_writer *w, const d7_dataset *datasets, const d7_reader *like,
                              d7_error *err) {
    uint8_t *header;
    size_t bytes;
    int rc = like ? d7__header_pack_like(&w->alloc, &like->header, datasets, w->n_datasets, w->index_step,
                                         w->bytes_per_page, &header, &bytes)
                  : d7__header_pack(&w->alloc, datasets, w->n_datasets, w->index_step, w->bytes_per_page,
                                    &header, &bytes);
    if (rc == D7_ERR_LIMIT)
        return d7__fail(err, rc, 0, D7_NO_OFFSET,
                        "%s: the names of the datasets do not fit a header of 16 MiB", w->path);
    if (rc == 0) {
        rc = d7__out_reserve(&w->out, 1, bytes);
        if (rc == 0)
            d7__out_entry(&w->out, header, bytes);
        d7__release(&w->alloc, header);
    }
    if (rc == 0 && w->attributes.n) {
        d7__index_content content = {.attributes = w->attributes.items, .n_attributes = w->attributes.n};
        uint64_t offset;
        rc = d7__writer_put_index(w, &content, &offset);
    }
    if (rc != 0)
        return d7__writer_no_memory(w, err);
    w->warnings |= w->n_datasets > 128 ? D7_WARN_MANY_DATASETS : 0;
    w->warnings |= bytes + 2 > D7_BLOCK_BYTES ? D7_WARN_LONG_HEADER : 0;
    w->warnings |= w->bytes_per_page != D7_PAGE_BYTES_DEFAULT ? D7_WARN_PAGE_BYTES : 0;
    return 0;
}

/* Opens the file; *ret_made tells whether it was not there before. */
static int create_open(d7_writer *w, const d7_writer_options *o, bool *ret_made, d7_error *err) {
    int flags = D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE;
    int rc = w->io.open(w->io.ctx, w->path, flags, o->mode, &w->out.file);
    *ret_made = rc == 0;
    if (rc == -EEXIST && o->overwrite)
        rc = w->io.open(w->io.ctx, w->path, D7_IO_WRITE, o->mode, &w->out.file);
    if (rc == 0)
        return 0;
    w->out.file = NULL;
    if (rc == -EEXIST)
        return d7__fail(err, D7_ERR_EXISTS, EEXIST, D7_NO_OFFSET, "%s: cannot be created", w->path);
    return d7__fail(err, rc == -ENOSPC || rc == -EDQUOT ? D7_ERR_NOSPACE : D7_ERR_IO, -rc, D7_NO_OFFSET,
                    "%s: cannot be created", w->path);
}

/* Before anything is in the file, so that nobody ever reads it who should not. */
static int create_give(const d7_writer *w, void *file, const char *path, uint32_t group, d7_error *err) {
    if (!w->io.set_group)
        return d7__fail(err, D7_ERR_UNSUPPORTED, 0, D7_NO_OFFSET,
                        "%s: files of this kind have no group to set", path);
    int rc = w->io.set_group(w->io.ctx, file, group);
    if (rc < 0)
        return d7__fail(err, D7_ERR_IO, -rc, D7_NO_OFFSET, "%s: cannot be given to group %" PRIu32, path,
                        group);
    return 0;
}

int d7__writer_keep_sums(d7_writer *w, d7_error *err) {
    char *path = d7__tail_path(&w->alloc, w->path, D7_CHECKSUMS_SUFFIX);
    int rc = path ? d7__sums_writer_init(&w->sums, &w->io, &w->alloc, path) : D7_ERR_NOMEM;
    d7__release(&w->alloc, path);
    if (rc != 0)
        return d7__writer_no_memory(w, err);
    w->out.sums = &w->sums;
    return 0;
}

/* Their file, as the caller wants the file itself. */
static int create_sums(d7_writer *w, const d7_writer_options *o, bool made, d7_error *err) {
    int rc = d7__sums_create(&w->sums, o->mode, err);
    if (rc == 0 && made && o->has_group)
        rc = create_give(w, w->sums.file.file, w->sums.path, o->group, err);
    return rc;
}

void d7__writer_forget_sums(d7_writer *w) {
    char *path = w->io.remove ? d7__tail_path(&w->alloc, w->path, D7_CHECKSUMS_SUFFIX) : NULL;
    if (path)
        w->io.remove(w->io.ctx, path);
    d7__release(&w->alloc, path);
}

int d7__writer_lock(d7_writer *w, d7_locking locking, d7_error *err) {
    int rc = locking == D7_LOCK_NONE ? 0 : w->io.lock(w->io.ctx, w->out.file);
    if (rc == 0)
        return 0;
    if (rc == -EAGAIN)
        return d7__fail(err, D7_ERR_LOCKED, 0, D7_NO_OFFSET, "%s: another writer holds this file", w->path);
    if (locking == D7_LOCK_REQUIRE)
        return d7__fail(err, D7_ERR_UNSUPPORTED, -rc, D7_NO_OFFSET, "%s: the file system gives no locks",
                        w->path);
    w->warnings |= D7_WARN_UNGUARDED;
    return 0;
}

static int create_file(d7_writer *w, const d7_writer_options *o, d7_error *err) {
    bool made;
    int rc = create_open(w, o, &made, err);
    if (rc != 0)
        return rc;
    rc = d7__writer_lock(w, o->locking, err);
    if (rc == 0 && !made) {
        int cut = w->io.truncate(w->io.ctx, w->out.file, 0);
        if (cut < 0)
            rc = d7__fail(err, D7_ERR_IO, -cut, D7_NO_OFFSET, "%s: cannot be emptied", w->path);
    }
    if (rc == 0 && made && o->has_group)
        rc = create_give(w, w->out.file, w->path, o->group, err);
    if (rc == 0 && !made)
        d7__writer_forget_sums(w);
    if (rc == 0 && o->checksums)
        rc = create_sums(w, o, made, err);
    if (rc == 0)
        rc = d7__writer_drain(w, err);
    if (rc != 0 && rc != D7_ERR_LOCKED && w->io.remove && w->sums.file.file)
        w->io.remove(w->io.ctx, w->sums.path);
    if (rc != 0 && rc != D7_ERR_LOCKED && made && w->io.remove)
        w->io.remove(w->io.ctx, w->path);
    return rc;
}

int d7_writer_create(d7_writer **ret_writer, const char *path, const d7_dataset *datasets, size_t n,
                     const d7_writer_options *options, d7_error *err) {
    d7_writer_options defaults;
    d7_writer_options_init(&defaults);
    const d7_writer_options *o = options ? options : &defaults;
    if (!path || !*path)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a path is needed");
    int rc = create_check_options(path, o, err);
    if (rc == 0)
        rc = create_check_datasets(path, datasets, n, o->bytes_per_page, err);
    if (rc != 0)
        return rc;

    d7_alloc alloc = d7__alloc_or_default(o->alloc);
    d7_writer *w = d7__new(&alloc, sizeof *w);
    if (!w)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    w->alloc = alloc;
    rc = d7__writer_prepare(w, path, datasets, n, o, err);
    if (rc == 0 && o->checksums)
        rc = d7__writer_keep_sums(w, err);
    if (rc == 0)
        rc = create_frame_start(w, datasets, o->like, err);
    if (rc == 0)
        rc = create_file(w, o, err);
    if (rc != 0) {
        d7_writer_free(w);
        return rc;
    }
    *ret_writer = w;
    return 0;
}
