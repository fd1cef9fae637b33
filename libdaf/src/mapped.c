#include "mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/uio.h>
#include <unistd.h>

#include "error.h"
#include "indices.h"

enum { MAX_PARTS = 256, MAX_AT_ONCE = 1 << 30, MAX_IN_PIPE = 1 << 16 };

/* ---- copying, by the kernel, to which a page that is gone is an error; each returns 0 or an errno */

typedef int (*fetch)(uint8_t *to, const struct iovec *parts, size_t n, size_t bytes);

static int through(const int ends[2], uint8_t *to, const uint8_t *from, size_t bytes) {
    while (bytes > 0) {
        ssize_t n = write(ends[1], from, bytes < MAX_IN_PIPE ? bytes : MAX_IN_PIPE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : EIO;
        from += n;
        bytes -= (size_t)n;
        while (n > 0) {
            ssize_t got = read(ends[0], to, (size_t)n);
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0)
                return got < 0 ? errno : EIO;
            to += got;
            n -= got;
        }
    }
    return 0;
}

static int fetch_by_pipe(uint8_t *to, const struct iovec *parts, size_t n, size_t bytes) {
    int ends[2], rc = 0;
    (void)bytes;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return errno;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = through(ends, to, parts[i].iov_base, parts[i].iov_len);
        to += parts[i].iov_len;
    }
    close(ends[0]);
    close(ends[1]);
    return rc;
}

static int fetch_at_once(uint8_t *to, const struct iovec *parts, size_t n, size_t bytes) {
    struct iovec whole = {.iov_base = to, .iov_len = bytes};
    ssize_t got = process_vm_readv(getpid(), &whole, 1, parts, n, 0);
    if (got < 0 && (errno == ENOSYS || errno == EPERM))
        return fetch_by_pipe(to, parts, n, bytes);
    if (got < 0)
        return errno;
    return (size_t)got == bytes ? 0 : EFAULT;
}

static int copy_pieces(uint8_t *to, const daf__pieces *p, fetch by) {
    struct iovec parts[MAX_PARTS];
    uint64_t piece = 0;
    size_t offset = 0;
    int rc = 0;
    while (rc == 0 && p->bytes && piece < p->n) {
        size_t n = 0, bytes = 0;
        for (; n < MAX_PARTS && piece < p->n && bytes < MAX_AT_ONCE; n++) {
            size_t left = p->bytes - offset, room = MAX_AT_ONCE - bytes;
            const uint8_t *from = (const uint8_t *)p->from + (size_t)piece * p->stride + offset;
            parts[n] =
                (struct iovec){.iov_base = (void *)(uintptr_t)from, .iov_len = left < room ? left : room};
            bytes += parts[n].iov_len;
            offset = left <= room ? 0 : offset + room;
            piece += left <= room;
        }
        rc = by(to, parts, n, bytes);
        to += bytes;
    }
    return rc;
}

static int tell(int failed, daf_error *err) {
    if (failed == EFAULT)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, 0,
                         "the file that the values are a view of has become shorter");
    return failed ? daf__fail(err, DAF_ERR_IO, failed, 0, "cannot copy from the view of a file") : 0;
}

int daf__mapped_copy(void *to, const daf__pieces *p, daf_error *err) {
    return tell(copy_pieces(to, p, fetch_at_once), err);
}

int daf__mapped_copy_by_pipe(void *to, const daf__pieces *p, daf_error *err) {
    return tell(copy_pieces(to, p, fetch_by_pipe), err);
}

/* ---- sparse content */

/* Copies n elements of a part, from number `first` on. */
static int copy_part(daf__content *to, const daf__content *c, daf__part part, uint64_t first, uint64_t n,
                     size_t width, daf_error *err) {
    int rc = daf__content_own(to, part, n, width, err);
    const daf__pieces p = {
        .from = (const uint8_t *)c->data[part] + (size_t)first * width, .bytes = width * (size_t)n, .n = 1};
    return rc ? rc : daf__mapped_copy(to->owned[part], &p, err);
}

static int was_changed(daf_error *err) {
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0,
                     "the file that the indices are a view of was changed: they are against the rules now");
}

/* The pointers are made to begin with 1. *first: the number of the first stored value. */
static int copy_pointers(daf__content *to, const daf__content *c, uint64_t column, uint64_t *first,
                         daf_error *err) {
    uint64_t block[DAF__INDEX_BLOCK], before = 1;
    int rc = copy_part(to, c, DAF__POINTERS, column, to->columns + 1, daf_type_bytes(c->index_type), err);
    if (rc)
        return rc;
    *first = daf__index_at(c->index_type, to->owned[DAF__POINTERS], 0) - 1;
    for (uint64_t j = 0; j <= to->columns; j += DAF__INDEX_BLOCK) {
        uint64_t left = to->columns + 1 - j;
        size_t n = left < DAF__INDEX_BLOCK ? (size_t)left : DAF__INDEX_BLOCK;
        daf__indices_widen(block, c->index_type, to->owned[DAF__POINTERS], j, n);
        for (size_t i = 0; i < n; i++) {
            if (block[i] < before || block[i] > c->nnz + 1)
                return was_changed(err);
            before = block[i];
            block[i] -= *first;
        }
        daf__indices_narrow(to->owned[DAF__POINTERS], c->index_type, j, block, n);
        to->nnz = block[n - 1] - 1;
    }
    return 0;
}

static int copy_values(daf__content *to, const daf__content *c, uint64_t first, daf_error *err) {
    if (c->type == DAF_STRING)
        to->data[DAF__VALUES] = (const char *const *)c->data[DAF__VALUES] + first;
    else if (c->data[DAF__VALUES])
        return copy_part(to, c, DAF__VALUES, first, to->nnz, daf_type_bytes(c->type), err);
    return 0;
}

int daf__mapped_columns(daf__content *ret, const daf__content *c, const daf_range *range, daf_error *err) {
    daf__content part = {.kind = c->kind,
                         .type = c->type,
                         .rows = c->rows,
                         .columns = c->kind == DAF__MATRIX ? range->n_columns : c->columns,
                         .sparse = true,
                         .index_type = c->index_type,
                         .nnz = c->nnz};
    daf__rule_breach breach;
    uint64_t first = 0;
    int rc = c->kind == DAF__MATRIX ? copy_pointers(&part, c, range->first_column, &first, err) : 0;
    if (rc == 0)
        rc = copy_part(&part, c, DAF__INDICES, first, part.nnz, daf_type_bytes(c->index_type), err);
    if (rc == 0)
        rc = copy_values(&part, c, first, err);
    if (rc == 0 && !daf__content_obeys(&part, &breach))
        rc = was_changed(err);
    if (rc)
        daf__content_free(&part);
    else
        *ret = part;
    return rc;
}
