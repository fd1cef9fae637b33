/* How fast whole columns are read through the public API.
 *
 *   read_bench write OUT REPEAT COLUMN...         columns x.u16, time.u64, channel.u8, that many times over, into a file
 *                                                 (datasets are named so, or as NAME=COLUMN says)
 *   read_bench read FILE THREADS                  all datasets side by side, by d7_columns_next()
 *   read_bench read-one-by-one FILE THREADS       each dataset in pieces of 16 M items, by d7_reader_read()
 *
 * Reading prints "VALUES SECONDS CHECKSUM PEAK": the time is that of opening, reading and adding up all
 * values, which the checksum is; the peak is the program's memory in KB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cli/pool.h"
#include "d7/d7.h"

enum { COLUMNS_MAX = 16, PIECE = 16 << 20, BATCH = 8192 };

static void die(const char *what, const char *why) {
    fprintf(stderr, "read_bench: %s: %s\n", what, why);
    exit(2);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- writing ---- */

typedef struct column {
    d7_type type;
    size_t size, n;
    uint8_t *values;
} column;

static column load(const char *path) {
    const char *dot = strrchr(path, '.');
    column c = {.type = !dot                       ? D7_UINT8
                        : strcmp(dot, ".u16") == 0 ? D7_UINT16
                        : strcmp(dot, ".u64") == 0 ? D7_UINT64
                                                   : D7_UINT8};
    c.size = d7_type_size(c.type);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        die(path, "cannot be read");
    long bytes = ftell(f);
    rewind(f);
    c.values = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (!c.values || fread(c.values, 1, (size_t)bytes, f) != (size_t)bytes)
        die(path, "cannot be read");
    fclose(f);
    c.n = (size_t)bytes / c.size / BATCH * BATCH;
    return c;
}

static void write_file(const char *out, int repeat, char **paths, int n) {
    d7_dataset datasets[COLUMNS_MAX];
    column columns[COLUMNS_MAX];
    d7_writer_options options;
    d7_writer *w;
    d7_error err;
    d7_writer_options_init(&options);
    options.overwrite = true;
    for (int i = 0; i < n; i++) {
        char *equals = strchr(paths[i], '=');
        columns[i] = load(equals ? equals + 1 : paths[i]);
        if (equals)
            *equals = '\0';
        datasets[i] = (d7_dataset){.name = paths[i], .type = columns[i].type};
    }
    if (d7_writer_create(&w, out, datasets, (size_t)n, &options, &err) != 0)
        die(out, err.text);
    for (int k = 0; k < repeat; k++)
        for (size_t from = 0; from < columns[0].n; from += BATCH)
            for (int i = 0; i < n; i++)
                if (d7_writer_append(w, (uint32_t)i, columns[i].values + from * columns[i].size, BATCH, &err))
                    die(out, err.text);
    if (d7_writer_close(w, &err) != 0)
        die(out, err.text);
    d7_writer_free(w);
}

/* ---- reading ---- */

typedef struct reading {
    d7_reader *reader;
    uint32_t ids[COLUMNS_MAX];
    d7_dataset_info infos[COLUMNS_MAX];
    size_t n;
    uint64_t values, sum;
} reading;

static uint64_t add_up(d7_type type, const void *values, size_t n) {
    uint64_t sum = 0;
    if (type == D7_UINT16)
        for (size_t i = 0; i < n; i++)
            sum += ((const uint16_t *)values)[i];
    else if (type == D7_UINT64)
        for (size_t i = 0; i < n; i++)
            sum += ((const uint64_t *)values)[i];
    else
        for (size_t i = 0; i < n; i++)
            sum += ((const uint8_t *)values)[i];
    return sum;
}

static void side_by_side(reading *b) {
    d7_columns *c;
    d7_chunk chunk;
    d7_error err;
    int rc = d7_columns_open(&c, b->reader, b->ids, b->n, NULL, &err);
    while (rc == 0 && (rc = d7_columns_next(c, &chunk, &err)) == 0 && chunk.n)
        for (size_t i = 0; i < b->n; i++) {
            b->values += chunk.n;
            b->sum += add_up(b->infos[i].type, chunk.values[i], chunk.n);
        }
    if (rc != 0)
        die("reading", err.text);
    d7_columns_free(c);
}

static void one_by_one(reading *b) {
    uint8_t *out = malloc((size_t)PIECE * 8);
    d7_error err;
    for (size_t i = 0; i < b->n; i++)
        for (uint64_t from = 0, n; from < b->infos[i].items; from += n) {
            n = b->infos[i].items - from < PIECE ? b->infos[i].items - from : PIECE;
            if (!out || d7_reader_read(b->reader, b->ids[i], from, (size_t)n, out, &err) != 0)
                die("reading", err.text);
            b->values += n;
            b->sum += add_up(b->infos[i].type, out, (size_t)n);
        }
    free(out);
}

static reading open_and_read(const char *path, bool columns, unsigned threads, const d7_executor *executor) {
    reading b = {0};
    d7_reader_options options;
    d7_error err;
    d7_reader_options_init(&options);
    options.executor = executor;
    options.lanes = threads;
    if (d7_reader_open(&b.reader, path, &options, &err) != 0)
        die(path, err.text);
    b.n = d7_reader_n_datasets(b.reader);
    if (b.n > COLUMNS_MAX)
        die(path, "too many datasets");
    for (uint32_t i = 0; i < b.n; i++) {
        b.ids[i] = i;
        if (d7_reader_dataset(b.reader, i, &b.infos[i]) != 0)
            die(path, "no dataset");
    }
    (columns ? side_by_side : one_by_one)(&b);
    d7_reader_free(b.reader);
    return b;
}

static void read_file(const char *path, bool columns, unsigned threads) {
    cli_pool *pool = threads > 1 ? cli_pool_new(threads - 1) : NULL;
    d7_executor executor = {.ctx = pool, .submit = cli_pool_submit, .wait = cli_pool_wait};
    double start = now();
    reading b = open_and_read(path, columns, threads, pool ? &executor : NULL);
    double seconds = now() - start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%llu %.4f %llu %ld\n", (unsigned long long)b.values, seconds, (unsigned long long)b.sum,
           usage.ru_maxrss);
    cli_pool_free(pool);
}

int main(int argc, char **argv) {
    if (argc > 4 && argc - 4 <= COLUMNS_MAX && strcmp(argv[1], "write") == 0)
        write_file(argv[2], atoi(argv[3]), argv + 4, argc - 4);
    else if (argc == 4 && strncmp(argv[1], "read", 4) == 0)
        read_file(argv[2], strcmp(argv[1], "read") == 0, (unsigned)atoi(argv[3]));
    else
        die("usage", "write OUT REPEAT COLUMN... | read FILE THREADS | read-one-by-one FILE THREADS");
    return 0;
}
