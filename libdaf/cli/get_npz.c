/* SciPy's file of a sparse matrix: a ZIP archive of NumPy arrays, in compressed columns; what is stored in the other layout,
 * in compressed rows. The archive is made in a file without a name, since its writer goes back in it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/npy.h"
#include "cli/zip_writer.h"
#include "get.h"

typedef struct npz {
    const cli_command *self;
    zip_writer *zip;
    const daf_sparse *sparse;
    const daf_csc *csc;
    bool wide; /* indices of 64 bits */
} npz;

/* A member with the header of an array; its values follow. */
static int begin_member(npz *z, const char *name, char kind, size_t bytes, const uint64_t *shape,
                        size_t rank) {
    char *head = NULL;
    size_t head_bytes = 0;
    FILE *memory = open_memstream(&head, &head_bytes);
    if (!memory)
        return -ENOMEM;
    cli_npy_header(memory, kind, bytes, shape, rank, false);
    int rc = fclose(memory) == 0 ? zip_begin(z->zip, name) : -ENOMEM;
    if (rc == 0)
        rc = zip_write(z->zip, head, head_bytes);
    free(head);
    return rc;
}

/* Little-endian, whatever the host is. */
static int write_numbers(npz *z, const void *values, uint64_t n, size_t width) {
    enum { PIECE = 1 << 12 };
    uint8_t bytes[PIECE * 8];
    int rc = 0;
    for (uint64_t done = 0; done < n && rc == 0; done += PIECE) {
        size_t k = n - done < PIECE ? (size_t)(n - done) : PIECE;
        bytes_copy_le(bytes, (const uint8_t *)values + done * width, k, width);
        rc = zip_write(z->zip, bytes, k * width);
    }
    return rc;
}

static int write_indices(npz *z, const char *name, uint64_t n, bool starts) {
    enum { PIECE = 1 << 12 };
    int32_t narrow[PIECE];
    int64_t wide[PIECE];
    int rc = begin_member(z, name, 'i', z->wide ? sizeof *wide : sizeof *narrow, &n, 1);
    for (uint64_t done = 0; done < n && rc == 0;) {
        size_t k = 0;
        for (; k < PIECE && done < n; k++, done++) {
            uint64_t v = starts ? daf_sparse_start(z->sparse, done) : daf_sparse_index(z->sparse, done);
            narrow[k] = (int32_t)v;
            wide[k] = (int64_t)v;
        }
        rc = z->wide ? write_numbers(z, wide, k, sizeof *wide) : write_numbers(z, narrow, k, sizeof *narrow);
    }
    return rc ? rc : zip_end(z->zip);
}

static int write_values(npz *z) {
    const daf_csc *c = z->csc;
    size_t width = daf_type_bytes(c->type);
    int rc = begin_member(z, "data.npy", type_letter(c->type), width, &c->nnz, 1);
    if (rc == 0 && c->values)
        rc = write_numbers(z, c->values, c->nnz, width);
    for (uint64_t i = 0; i < c->nnz && rc == 0 && !c->values; i++)
        rc = zip_write(z->zip, "\1", 1);
    return rc ? rc : zip_end(z->zip);
}

/* An array of three bytes: 'csc' or 'csr'. The header of such a kind is not among those that are written elsewhere. */
static int write_format(npz *z, bool transposed) {
    static const char dictionary[] = "{'descr': '|S3', 'fortran_order': False, 'shape': (), }";
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\1\0\x76\0", 10);
    memcpy(head + 10, dictionary, sizeof dictionary - 1);
    head[sizeof head - 1] = '\n';
    int rc = zip_begin(z->zip, "format.npy");
    if (rc == 0)
        rc = zip_write(z->zip, head, sizeof head);
    if (rc == 0)
        rc = zip_write(z->zip, transposed ? "csr" : "csc", 3);
    return rc ? rc : zip_end(z->zip);
}

static int write_shape(npz *z, bool transposed) {
    const uint64_t two = 2;
    const int64_t rows = (int64_t)z->csc->rows, columns = (int64_t)z->csc->columns;
    const int64_t shape[2] = {transposed ? columns : rows, transposed ? rows : columns};
    int rc = begin_member(z, "shape.npy", 'i', sizeof *shape, &two, 1);
    if (rc == 0)
        rc = write_numbers(z, shape, 2, sizeof *shape);
    return rc ? rc : zip_end(z->zip);
}

static int write_members(npz *z, bool transposed) {
    int rc = write_indices(z, "indices.npy", z->csc->nnz, false);
    if (rc == 0)
        rc = write_indices(z, "indptr.npy", z->csc->columns + 1, true);
    if (rc == 0)
        rc = write_format(z, transposed);
    if (rc == 0)
        rc = write_shape(z, transposed);
    if (rc == 0)
        rc = write_values(z);
    return rc ? rc : zip_finish(z->zip);
}

static int copy_to_stdout(const npz *z, FILE *from) {
    char bytes[1 << 16];
    size_t n;
    rewind(from);
    while ((n = fread(bytes, 1, sizeof bytes, from)) > 0)
        if (fwrite(bytes, 1, n, stdout) != n)
            return cli_stdout_failed();
    return ferror(from) ? cli_fail(z->self, "a temporary file: %s", strerror(errno)) : CLI_OK;
}

static int write_npz(const getting *g, const daf_sparse *sparse, bool transposed) {
    npz z = {.self = g->self, .sparse = sparse, .csc = daf_sparse_csc(sparse)};
    z.wide = z.csc->rows > INT32_MAX || z.csc->nnz > INT32_MAX || z.csc->columns > INT32_MAX;
    FILE *file = tmpfile();
    z.zip = file ? zip_new(fileno(file), 0) : NULL;
    int rc = z.zip ? write_members(&z, transposed) : -(file ? ENOMEM : errno);
    int code = rc ? cli_fail(g->self, "a temporary file: %s", strerror(-rc)) : copy_to_stdout(&z, file);
    zip_free(z.zip);
    if (file)
        fclose(file);
    return code;
}

/* ---- what is stored of the property */

/* In the layout that is stored. */
static int get_sparse(const getting *g, daf_sparse **ret, daf_error *err) {
    const target *t = g->target;
    bool swap = g->source.transposed;
    if (t->kind == TARGET_VECTOR)
        return daf_get_sparse_vector(g->d, ret, t->axis, t->name, err);
    return daf_get_sparse_matrix(g->d, ret, swap ? t->columns : t->axis, swap ? t->axis : t->columns, t->name,
                                 err);
}

static int get_part(const getting *g, daf_sparse **ret, const daf_sparse *whole, const selection *rows,
                    const selection *columns) {
    const run none = {0, 0};
    daf_error err;
    if (rows->n_runs > 1 || columns->n_runs > 1)
        return pick_sparse(ret, g->self, whole, rows, columns);
    run down = rows->n_runs ? rows->runs[0] : none, across = columns->n_runs ? columns->runs[0] : none;
    const daf_range range = {down.first, down.n, across.first, across.n};
    return daf_sparse_slice(ret, whole, &range, &err) ? command_fail(g->self, &err) : CLI_OK;
}

int get_npz(getting *g) {
    bool swap = g->source.transposed;
    daf_error err;
    daf_sparse *whole, *part = NULL;
    if (g->target->kind == TARGET_AXIS || g->source.type == DAF_STRING)
        return cli_fail(g->self, "Strings have no npz form; use text, csv or json");
    daf_reader_free(g->source.reader); /* it may hold what is now read in another form */
    g->source.reader = NULL;
    if (get_sparse(g, &whole, &err) != 0)
        return command_fail(g->self, &err);
    int code = get_part(g, &part, whole, swap ? &g->columns : &g->rows, swap ? &g->rows : &g->columns);
    if (code == CLI_OK)
        code = write_npz(g, part, swap);
    daf_sparse_free(part);
    daf_sparse_free(whole);
    return code;
}
