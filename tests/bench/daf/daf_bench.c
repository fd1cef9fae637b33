/* Writes a raw UInt32 image as a packed matrix, or reads one, so many times; prints seconds of each time.
 *   daf_bench write PATH RAW ROWS COLUMNS CODEC CHUNK_KB THREADS TIMES
 *   daf_bench read PATH RAW ROWS COLUMNS CODEC CHUNK_KB THREADS TIMES      (compares with RAW, outside of the time) */
#include <daf/daf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/pool.h"

typedef struct setup {
    const char *path;
    uint32_t *image;
    uint64_t rows, columns;
    daf_set_options how;
    daf_options options;
} setup;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int load(setup *s, const char *raw) {
    size_t n = (size_t)(s->rows * s->columns);
    s->image = malloc(n * sizeof *s->image);
    FILE *f = fopen(raw, "rb");
    int good = s->image && f && fread(s->image, sizeof *s->image, n, f) == n;
    if (f)
        fclose(f);
    return good ? 0 : -1;
}

static int write_image(setup *s, daf_error *e) {
    daf *d;
    int rc = daf_open(&d, s->path, "w+", &s->options, e);
    if (rc)
        return rc;
    rc = daf_set_matrix(d, "r", "c", "image", DAF_UINT32, s->image, s->rows * s->columns, &s->how, e);
    if (rc) {
        daf_free(d);
        return rc;
    }
    return daf_close(d, e);
}

static int read_image(setup *s, daf_array **ret, daf_error *e) {
    daf *d;
    int rc = daf_open(&d, s->path, "r", &s->options, e);
    if (rc)
        return rc;
    rc = daf_get_matrix(d, ret, "r", "c", "image", e);
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

static int once(setup *s, int writing, daf_error *e) {
    daf_array *a = NULL;
    double start = now();
    int rc = writing ? write_image(s, e) : read_image(s, &a, e);
    if (rc == 0)
        printf("%.6f\n", now() - start);
    if (rc == 0 && a && memcmp(daf_array_values(a), s->image, (size_t)(s->rows * s->columns) * 4) != 0) {
        snprintf(e->text, sizeof e->text, "other values were read than written");
        rc = -1;
    }
    daf_array_free(a);
    return rc;
}

int main(int argc, char **argv) {
    daf_error e = {0};
    if (argc != 10)
        return 2;
    setup s = {.path = argv[2], .rows = strtoull(argv[4], NULL, 10), .columns = strtoull(argv[5], NULL, 10)};
    int writing = strcmp(argv[1], "write") == 0;
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
