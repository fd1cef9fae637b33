/* SciPy's file of a sparse matrix in compressed columns or rows: a ZIP archive of NumPy arrays, stored or deflated. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "cli/npy.h"
#include "input.h"

enum { END_BYTES = 22, CENTRAL_BYTES = 46, LOCAL_BYTES = 30, STORED = 0, DEFLATED = 8 };
#define END_SIGNATURE 0x06054B50u
#define CENTRAL_SIGNATURE 0x02014B50u
#define LOCAL_SIGNATURE 0x04034B50u

/* A member, unpacked. */
typedef struct member {
    uint8_t *data;
    size_t bytes;
    cli_npy_array array; /* not of `format` */
} member;

typedef enum member_name { M_DATA, M_INDICES, M_INDPTR, M_SHAPE, M_FORMAT, N_MEMBERS } member_name;
static const char *const member_names[N_MEMBERS] = {"data.npy", "indices.npy", "indptr.npy", "shape.npy",
                                                    "format.npy"};

static int damaged(const input *in, const char *what) {
    return input_fail(in, "is no npz file of a sparse matrix: %s", what);
}

/* ---- the archive */

typedef struct central {
    const uint8_t *name;
    size_t name_bytes;
    unsigned method;
    uint32_t crc;
    uint64_t packed_bytes, raw_bytes, offset;
} central;

/* The values whose fields of 32 bits are full are in the extra field of ZIP64, in this order. */
static void take_zip64(central *c, const uint8_t *extra, size_t bytes) {
    uint64_t *const wide[] = {&c->raw_bytes, &c->packed_bytes, &c->offset};
    while (bytes >= 4) {
        size_t length = bytes_load16(extra + 2);
        if (length > bytes - 4)
            return;
        const uint8_t *p = extra + 4, *end = p + length;
        for (size_t i = 0; i < 3 && bytes_load16(extra) == 1; i++)
            if (*wide[i] == UINT32_MAX && end - p >= 8) {
                *wide[i] = bytes_load64(p);
                p += 8;
            }
        extra += 4 + length;
        bytes -= 4 + length;
    }
}

/* The entry at `at`; returns where the next one is, or NULL when there is none. */
static const uint8_t *next_entry(const input *in, const uint8_t *at, central *ret) {
    const uint8_t *end = (const uint8_t *)in->content + in->bytes;
    if (end - at < CENTRAL_BYTES || bytes_load32(at) != CENTRAL_SIGNATURE)
        return NULL;
    size_t name = bytes_load16(at + 28), extra = bytes_load16(at + 30), comment = bytes_load16(at + 32);
    if ((size_t)(end - at) < CENTRAL_BYTES + name + extra + comment)
        return NULL;
    *ret = (central){.name = at + CENTRAL_BYTES,
                     .name_bytes = name,
                     .method = bytes_load16(at + 10),
                     .crc = bytes_load32(at + 16),
                     .packed_bytes = bytes_load32(at + 20),
                     .raw_bytes = bytes_load32(at + 24),
                     .offset = bytes_load32(at + 42)};
    take_zip64(ret, at + CENTRAL_BYTES + name, extra);
    return at + CENTRAL_BYTES + name + extra + comment;
}

static bool inflate_to(uint8_t *to, size_t raw_bytes, const uint8_t *from, size_t bytes) {
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)from, .next_out = to};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return false;
    size_t in_left = bytes, out_left = raw_bytes;
    int rc = Z_OK;
    while (rc == Z_OK) { /* zlib counts in 32 bits */
        uInt in_now = in_left < 1 << 30 ? (uInt)in_left : 1 << 30;
        uInt out_now = out_left < 1 << 30 ? (uInt)out_left : 1 << 30;
        z.avail_in = in_now;
        z.avail_out = out_now;
        rc = inflate(&z, Z_NO_FLUSH);
        in_left -= in_now - z.avail_in;
        out_left -= out_now - z.avail_out;
        if (rc == Z_OK && in_now == z.avail_in && out_now == z.avail_out)
            break;
    }
    inflateEnd(&z);
    return rc == Z_STREAM_END && out_left == 0;
}

static int unpack(const input *in, const central *c, member *ret) {
    const uint8_t *data = (const uint8_t *)in->content;
    if (c->offset > in->bytes || in->bytes - c->offset < LOCAL_BYTES ||
        bytes_load32(data + c->offset) != LOCAL_SIGNATURE)
        return damaged(in, "a member is not where it should be");
    uint64_t start =
        c->offset + LOCAL_BYTES + bytes_load16(data + c->offset + 26) + bytes_load16(data + c->offset + 28);
    if (start > in->bytes || c->packed_bytes > in->bytes - start)
        return damaged(in, "a member is cut short");
    if (c->raw_bytes / 1032 > c->packed_bytes) /* more than deflate can make of it */
        return damaged(in, "a member claims more than its data can hold");
    member m = {.data = malloc((size_t)c->raw_bytes + 1), .bytes = (size_t)c->raw_bytes};
    if (!m.data)
        return input_fail(in, "out of memory");
    bool right = c->method == STORED ? c->raw_bytes == c->packed_bytes : c->method == DEFLATED;
    if (right && c->method == STORED)
        memcpy(m.data, data + start, m.bytes);
    else
        right = right && inflate_to(m.data, m.bytes, data + start, (size_t)c->packed_bytes);
    if (right && (uint32_t)crc32_z(0, m.data, m.bytes) == c->crc) {
        *ret = m;
        return 0;
    }
    free(m.data);
    return damaged(in, "a member cannot be unpacked");
}

static const uint8_t *find_directory(const input *in) {
    const uint8_t *data = (const uint8_t *)in->content;
    for (size_t at = in->bytes < END_BYTES ? 0 : in->bytes - END_BYTES + 1; at-- > 0;) {
        if (bytes_load32(data + at) != END_SIGNATURE)
            continue;
        uint64_t offset = bytes_load32(data + at + 16);
        /* One of ZIP64 begins right before the records of its end. */
        if (offset == UINT32_MAX && at >= 76)
            offset = bytes_load64(data + at - 76 + 48);
        return offset < in->bytes ? data + offset : NULL;
    }
    return NULL;
}

static int read_members(const input *in, member members[N_MEMBERS]) {
    central c;
    int rc = 0;
    const uint8_t *at = find_directory(in);
    if (!at)
        return damaged(in, "no ZIP archive");
    while (rc == 0 && (at = next_entry(in, at, &c)))
        for (int i = 0; i < N_MEMBERS; i++)
            if (c.name_bytes == strlen(member_names[i]) &&
                memcmp(c.name, member_names[i], c.name_bytes) == 0 && !members[i].data && rc == 0)
                rc = unpack(in, &c, &members[i]);
    for (int i = 0; i < N_MEMBERS && rc == 0; i++) {
        member *m = &members[i];
        if (!m->data)
            rc = damaged(in, "an array of it is missing");
        else if (i != M_FORMAT &&
                 (cli_npy_parse(&m->array, m->data, m->bytes) != 0 || m->array.rank != 1 ||
                  m->array.shape[0] != (m->bytes - m->array.data_offset) / m->array.item_bytes))
            rc = damaged(in, "an array of it has another shape or kind than it must");
    }
    return rc;
}

/* ---- the arrays */

static uint64_t integer_at(const member *m, uint64_t i) {
    const uint8_t *p = m->data + m->array.data_offset + i * m->array.item_bytes;
    uint64_t v = 0;
    for (size_t b = 0; b < m->array.item_bytes; b++)
        v |= (uint64_t)p[m->array.big_endian ? m->array.item_bytes - 1 - b : b] << (8 * b);
    return v; /* negative ones are too large for whatever they count */
}

static void copy_value(uint8_t *to, const member *m, uint64_t i) {
    size_t width = m->array.item_bytes;
    const uint8_t *p = m->data + m->array.data_offset + i * width;
    bool swap = m->array.big_endian == (BYTES_HOST_IS_LITTLE != 0);
    for (size_t b = 0; b < width; b++)
        to[b] = p[swap ? width - 1 - b : b];
}

/* Compressed along one dimension. */
typedef struct compressed {
    uint64_t n_major, n_minor, nnz;
    uint64_t *starts, *minor; /* from 0 */
    uint8_t *values;
    size_t width;
} compressed;

static void free_compressed(compressed *c) {
    free(c->starts);
    free(c->minor);
    free(c->values);
}

static int allocate(const input *in, compressed *c) {
    c->starts = calloc((size_t)c->n_major + 2, sizeof *c->starts);
    c->minor = malloc((size_t)(c->nnz + 1) * sizeof *c->minor);
    c->values = malloc((size_t)c->nnz * c->width + 1);
    return c->starts && c->minor && c->values ? 0 : input_fail(in, "out of memory");
}

static int load(const input *in, const member m[N_MEMBERS], compressed *c) {
    uint64_t n = m[M_INDPTR].array.shape[0];
    if (n != c->n_major + 1 || m[M_INDICES].array.shape[0] != c->nnz || integer_at(&m[M_INDPTR], 0) != 0 ||
        integer_at(&m[M_INDPTR], n - 1) != c->nnz)
        return damaged(in, "its arrays contradict each other");
    int rc = allocate(in, c);
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        c->starts[i] = integer_at(&m[M_INDPTR], i);
        if (c->starts[i] > c->nnz || (i && c->starts[i] < c->starts[i - 1]))
            rc = damaged(in, "indptr does not rise to the number of values");
    }
    for (uint64_t k = 0; k < c->nnz && rc == 0; k++) {
        c->minor[k] = integer_at(&m[M_INDICES], k);
        copy_value(c->values + k * c->width, &m[M_DATA], k);
        if (c->minor[k] >= c->n_minor)
            rc = damaged(in, "an index is out of its range");
    }
    return rc;
}

/* Compressed along the other dimension, in order there. The old one is freed. */
static int turn(const input *in, compressed *c) {
    compressed to = {.n_major = c->n_minor, .n_minor = c->n_major, .nnz = c->nnz, .width = c->width};
    int rc = allocate(in, &to);
    if (rc) {
        free_compressed(&to);
        return rc;
    }
    for (uint64_t k = 0; k < c->nnz; k++)
        to.starts[c->minor[k] + 2]++;
    for (uint64_t i = 2; i < to.n_major + 2; i++)
        to.starts[i] += to.starts[i - 1];
    for (uint64_t major = 0; major < c->n_major; major++)
        for (uint64_t k = c->starts[major]; k < c->starts[major + 1]; k++) {
            uint64_t at = to.starts[c->minor[k] + 1]++;
            to.minor[at] = major;
            memcpy(to.values + at * c->width, c->values + k * c->width, c->width);
        }
    free_compressed(c);
    *c = to;
    return 0;
}

static int refuse_twice(const input *in, const compressed *c) {
    for (uint64_t major = 0; major < c->n_major; major++)
        for (uint64_t k = c->starts[major] + 1; k < c->starts[major + 1]; k++)
            if (c->minor[k] == c->minor[k - 1])
                return input_fail(in, "a place has two values, at row %" PRIu64 " and column %" PRIu64,
                                  c->minor[k], major);
    return 0;
}

/* Takes over the columns, with indices from 1. */
static void give(input *in, compressed *c) {
    for (uint64_t i = 0; i <= c->n_major; i++)
        c->starts[i]++;
    for (uint64_t k = 0; k < c->nnz; k++)
        c->minor[k]++;
    in->is_sparse = true;
    in->rows = c->n_minor;
    in->columns = c->n_major;
    in->csc = (daf_csc){.type = in->type,
                        .index_type = DAF_UINT64,
                        .rows = c->n_minor,
                        .columns = c->n_major,
                        .nnz = c->nnz,
                        .colptr = c->starts,
                        .indices = c->minor,
                        .values = c->values};
}

static int parse_members(input *in, const member m[N_MEMBERS]) {
    const char *format = m[M_FORMAT].bytes >= 3 ? (const char *)m[M_FORMAT].data + m[M_FORMAT].bytes - 3 : "";
    bool rows_first = strncmp(format, "csr", 3) == 0;
    daf_type type;
    if (!rows_first && strncmp(format, "csc", 3) != 0)
        return damaged(in, "neither in compressed columns (csc) nor rows (csr)");
    if (input_npy_type(&m[M_DATA].array, &type) != 0 || m[M_SHAPE].array.shape[0] != 2)
        return damaged(in, "values of an unknown type, or another shape than of two dimensions");
    if (in->typed && type != in->type)
        return input_fail(in, "holds %s, not %s", daf_type_name(type), daf_type_name(in->type));
    in->type = type;
    uint64_t rows = integer_at(&m[M_SHAPE], 0), columns = integer_at(&m[M_SHAPE], 1);
    compressed c = {.n_major = rows_first ? rows : columns,
                    .n_minor = rows_first ? columns : rows,
                    .nnz = m[M_DATA].array.shape[0],
                    .width = m[M_DATA].array.item_bytes};
    if (c.n_minor > (uint64_t)1 << 40 || c.n_major > (uint64_t)1 << 40)
        return damaged(in, "an impossible shape");
    int rc = load(in, m, &c);
    if (rc == 0)
        rc = turn(in, &c);
    if (rc == 0 && !rows_first) /* in order now */
        rc = turn(in, &c);
    if (rc == 0)
        rc = refuse_twice(in, &c);
    if (rc == 0 && in->rank == 1 && c.n_major != 1)
        rc = input_fail(in, "%" PRIu64 " columns, but a vector is one", c.n_major);
    if (rc)
        free_compressed(&c);
    else
        give(in, &c);
    return rc;
}

int input_parse_npz(input *in) {
    member members[N_MEMBERS] = {{.data = NULL}};
    int rc = read_members(in, members);
    if (rc == 0)
        rc = parse_members(in, members);
    for (int i = 0; i < N_MEMBERS; i++)
        free(members[i].data);
    return rc;
}
