/* Writes a raw UInt32 image as a packed matrix, or reads one, so many times; prints seconds of each time.
 *   daf_bench write PATH RAW ROWS COLUMNS CODEC CHUNK_KB THREADS TIMES
 *   daf_bench read PATH RAW ROWS COLUMNS CODEC CHUNK_KB THREADS TIMES      (compares with RAW, outside of the time)
 * With sparse-write and sparse-read a sparse matrix, of which RAW holds the column pointers, the row indices (both UInt32,
 * from 1) and the values. */
#include <daf/daf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/pool.h"

typedef struct setup {
    const char *path;
    uint32_t *image;
    int sparse;
    daf_csc csc; /* sparse: what lies in the image */
    uint64_t rows, columns;
    daf_set_options how;
    daf_options options;
} setup;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t words_of(const setup *s, const char *raw) {
    struct stat st;
    if (!s->sparse)
        return (size_t)(s->rows * s->columns);
    return stat(raw, &st) == 0 ? (size_t)st.st_size / sizeof *s->image : 0;
}

static int load(setup *s, const char *raw) {
    size_t n = words_of(s, raw);
    s->image = malloc(n * sizeof *s->image);
    FILE *f = fopen(raw, "rb");
    int good = s->image && f && fread(s->image, sizeof *s->image, n, f) == n;
    if (f)
        fclose(f);
    s->csc = (daf_csc){.type = DAF_UINT32,
                       .index_type = DAF_UINT32,
                       .rows = s->rows,
                       .columns = s->columns,
                       .nnz = s->sparse ? (n - s->columns - 1) / 2 : 0,
                       .colptr = s->image};
    s->csc.indices = s->image + (s->sparse ? s->columns + 1 : 0);
    s->csc.values = s->image + (s->sparse ? s->columns + 1 + s->csc.nnz : 0);
    return good ? 0 : -1;
}

static int write_image(setup *s, daf_error *e) {
    daf *d;
    int rc = daf_open(&d, s->path, "w+", &s->options, e);
    if (rc)
        return rc;
    rc = s->sparse
             ? daf_set_sparse_matrix(d, "r", "c", "image", &s->csc, &s->how, e)
             : daf_set_matrix(d, "r", "c", "image", DAF_UINT32, s->image, s->rows * s->columns, &s->how, e);
    if (rc) {
        daf_free(d);
        return rc;
    }
    return daf_close(d, e);
}

typedef struct got {
    daf_array *dense;
    daf_sparse *sparse;
} got;

static int read_image(setup *s, got *ret, daf_error *e) {
    daf *d;
    int rc = daf_open(&d, s->path, "r", &s->options, e);
    if (rc)
        return rc;
    rc = s->sparse ? daf_get_sparse_matrix(d, &ret->sparse, "r", "c", "image", e)
                   : daf_get_matrix(d, &ret->dense, "r", "c", "image", e);
    daf_free(d);
    return rc;
}

static int add_axes(setup *s, daf_error *e) {
    daf *d;
    int rc = daf_open(&d, s->path, "w", NULL, e);
    if (rc == 0)
        rc = daf_add_axis_integers(d, "r", 0, 1, s->rows, e);
    if (rc == 0)
        rc = daf_add_axis_integers(d, "c", 0, 1, s->columns, e);
    daf_free(rc ? NULL : d);
    return rc;
}

static int is_equal(const setup *s, const got *g) {
    const daf_csc *a = &s->csc, *b = g->sparse ? daf_sparse_csc(g->sparse) : NULL;
    if (g->dense)
        return memcmp(daf_array_values(g->dense), s->image, (size_t)(s->rows * s->columns) * 4) == 0;
    size_t bytes = (size_t)a->nnz * 4;
    return b->nnz == a->nnz && b->index_type == a->index_type && memcmp(a->indices, b->indices, bytes) == 0 &&
           memcmp(a->values, b->values, bytes) == 0 &&
           memcmp(a->colptr, b->colptr, (size_t)(a->columns + 1) * 4) == 0;
}

static int once(setup *s, int writing, daf_error *e) {
    got g = {NULL, NULL};
    double start = now();
    int rc = writing ? write_image(s, e) : read_image(s, &g, e);
    if (rc == 0)
        printf("%.6f\n", now() - start);
    if (rc == 0 && !writing && !is_equal(s, &g)) {
        snprintf(e->text, sizeof e->text, "other values were read than written");
        rc = -1;
    }
    daf_array_free(g.dense);
    daf_sparse_free(g.sparse);
    return rc;
}

int main(int argc, char **argv) {
    daf_error e = {0};
    if (argc != 10)
        return 2;
    setup s = {.path = argv[2], .rows = strtoull(argv[4], NULL, 10), .columns = strtoull(argv[5], NULL, 10)};
    s.sparse = strncmp(argv[1], "sparse-", 7) == 0;
    int writing = strcmp(argv[1] + (s.sparse ? 7 : 0), "write") == 0;
    daf_set_options_init(&s.how);
    daf_options_init(&s.options);
    s.how.packing = DAF_PACK_LARGE;
    s.how.overwrite = true;
    s.how.target_chunk_kb = (uint32_t)strtoul(argv[7], NULL, 10);
    unsigned threads = (unsigned)strtoul(argv[8], NULL, 10);
    cli_pool *pool = cli_pool_new(threads);
    daf_executor x = {
        .context = pool, .submit = cli_pool_submit, .wait = cli_pool_wait, .n_threads = threads};
    s.options.executor = threads > 1 ? &x : NULL;
    int rc = daf_codec_parse(&s.how.codec, argv[6]);
    if (rc || load(&s, argv[3]) != 0)
        return 2;
    if (writing)
        rc = add_axes(&s, &e);
    for (long i = strtol(argv[9], NULL, 10); i > 0 && rc == 0; i--)
        rc = once(&s, writing, &e);
    if (rc)
        fprintf(stderr, "%s\n", e.text);
    cli_pool_free(pool);
    free(s.image);
    return rc ? 1 : 0;
}
