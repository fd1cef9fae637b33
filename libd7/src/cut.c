#include "cut.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

enum { NUMBER_MAX = 9999, SUFFIX_BYTES = 16 };

typedef struct copying {
    const d7__tail_file *to;
    uint64_t begin;
    uint8_t *other; /* comparing: what the copy holds */
} copying;

static int copy_piece(void *ctx, const uint8_t *data, size_t bytes, uint64_t offset, d7_error *err) {
    const copying *c = ctx;
    return d7__tail_file_write(c->to, data, bytes, offset - c->begin, err);
}

static int compare_piece(void *ctx, const uint8_t *data, size_t bytes, uint64_t offset, d7_error *err) {
    const copying *c = ctx;
    int rc = d7__tail_file_read(c->to, c->other, bytes, offset - c->begin, err);
    if (rc == 0 && memcmp(c->other, data, bytes) != 0)
        rc = D7_ERR_EXISTS;
    return rc;
}

/* Is the copy that is there already of these very bytes? */
static int cut_compare(const d7__cut *cut, const d7__tail_file *copy, bool *ret_same, d7_error *err) {
    copying c = {.to = copy, .begin = cut->begin, .other = cut->chunk + D7__TAIL_CHUNK_BYTES};
    uint64_t size;
    int rc = d7__tail_file_size(copy, &size, err);
    if (rc == 0 && size != cut->end - cut->begin)
        rc = D7_ERR_EXISTS;
    if (rc == 0)
        rc = d7__tail_file_each(cut->from, cut->begin, cut->end, cut->chunk, compare_piece, &c, err);
    *ret_same = rc == 0;
    return rc == D7_ERR_EXISTS || rc == D7_ERR_TRUNCATED ? 0 : rc;
}

static int cut_copy(const d7__cut *cut, const d7__tail_file *copy, d7_error *err) {
    copying c = {.to = copy, .begin = cut->begin};
    return d7__tail_file_each(cut->from, cut->begin, cut->end, cut->chunk, copy_piece, &c, err);
}

/* Opens a copy, new or, where there is one, for comparing. D7_ERR_EXISTS: what is there cannot be opened, as a link. */
static int cut_open(const d7__cut *cut, const char *path, d7__tail_file *copy, bool *ret_made,
                    d7_error *err) {
    int flags = D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE;
    int rc = d7__tail_file_open(copy, cut->from->io, path, flags, cut->mode, err);
    *ret_made = rc == 0;
    if (rc == D7_ERR_EXISTS && d7__tail_file_open(copy, cut->from->io, path, D7_IO_WRITE, 0, err) == 0)
        rc = 0;
    return rc;
}

/* Makes the copy at `path` hold the bytes; *ret_done: or else it holds something else. */
static int cut_keep_as(const d7__cut *cut, const char *path, bool *ret_done, d7_error *err) {
    d7__tail_file copy = {0};
    bool made;
    int rc = cut_open(cut, path, &copy, &made, err);
    *ret_done = rc == 0 && made;
    if (rc != 0)
        return rc == D7_ERR_EXISTS ? 0 : rc;
    if (!made)
        rc = cut_compare(cut, &copy, ret_done, err);
    if (rc == 0 && *ret_done)
        rc = cut_copy(cut, &copy, err); /* also when it is there: an earlier sync of it may have failed */
    if (rc == 0 && *ret_done)
        rc = d7__tail_file_sync(&copy, err);
    d7__tail_file_close(&copy);
    if (rc != 0 && made && cut->from->io->remove)
        cut->from->io->remove(cut->from->io->ctx, path);
    return rc;
}

int d7__cut_sync_folder(const d7_io *io, const char *path, d7_error *err) {
    int rc = io->sync_directory ? io->sync_directory(io->ctx, path) : 0;
    return rc < 0 ? d7__fail(err, D7_ERR_IO, -rc, D7_NO_OFFSET, "%s: syncing its folder failed", path) : 0;
}

static int cut_keep(const d7__cut *cut, const char *file, char *path, size_t cap, uint32_t *ret_number,
                    d7_error *err) {
    for (uint32_t n = 0; n <= NUMBER_MAX; n++) {
        bool done;
        snprintf(path, cap, "%s.cut.%" PRIu32, file, n);
        int rc = cut_keep_as(cut, path, &done, err);
        if (rc == 0 && done)
            rc = d7__cut_sync_folder(cut->from->io, path, err);
        if (rc != 0)
            return rc;
        if (done) {
            *ret_number = n;
            return 0;
        }
    }
    return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET, "%s: there are %d copies of cut bytes beside it",
                    cut->from->path, NUMBER_MAX + 1);
}

int d7__cut_keep(const d7__cut *cut, uint32_t *ret_number, d7_error *err) {
    char *file = d7__beside(cut->from->io, cut->alloc, cut->from->path, "");
    size_t cap = file ? strlen(file) + SUFFIX_BYTES : 0;
    char *path = file ? d7__new(cut->alloc, cap) : NULL;
    int rc = path ? cut_keep(cut, file, path, cap, ret_number, err)
                  : d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", cut->from->path);
    d7__release(cut->alloc, path);
    d7__release(cut->alloc, file);
    return rc;
}
