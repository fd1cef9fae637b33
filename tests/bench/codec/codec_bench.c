/* How fast the page codec is on columns of values, for the variant that D7_KERNEL names.
 *
 *   codec_bench --kernels            the variants that this processor can run, one a line
 *   codec_bench SECONDS COLUMN...    columns of one type: x.u16 time.u64 channel.u8
 *
 * Encodes and decodes the whole pages of the columns through d7_page_encode() and d7_page_decode(), on one thread, for
 * about SECONDS each, and prints "KERNEL ENCODED DECODED BYTES": two times values/s, and bytes per value. Exit status 1:
 * what was decoded is not what was encoded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "d7/d7.h"
#include "kernels.h"

enum { PAGE_BYTES = 16384 };

typedef struct page {
    const uint8_t *values;
    uint8_t *entry;
    size_t bytes;
} page;

typedef struct work {
    d7_type type;
    page *pages; /* [n_pages] */
    size_t n_pages, items;
    uint8_t *arena; /* room for all entries */
} work;

static void die(const char *what) {
    fprintf(stderr, "codec_bench: %s\n", what);
    exit(2);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static d7_type type_of(const char *path) {
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".u16") == 0)
        return D7_UINT16;
    if (dot && strcmp(dot, ".u64") == 0)
        return D7_UINT64;
    if (dot && strcmp(dot, ".u8") == 0)
        return D7_UINT8;
    die("a column's name ends in .u8, .u16 or .u64");
    return D7_UINT8;
}

static uint8_t *load(const char *path, size_t *ret_bytes) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        die(path);
    long bytes = ftell(f);
    rewind(f);
    uint8_t *data = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (!data || fread(data, 1, (size_t)bytes, f) != (size_t)bytes)
        die(path);
    fclose(f);
    *ret_bytes = (size_t)bytes;
    return data;
}

static void add_column(work *w, const char *path) {
    size_t bytes;
    const uint8_t *data = load(path, &bytes);
    size_t n = bytes / PAGE_BYTES;
    w->pages = realloc(w->pages, (w->n_pages + n) * sizeof *w->pages);
    if (!w->pages)
        die("no memory");
    for (size_t i = 0; i < n; i++)
        w->pages[w->n_pages++] = (page){.values = data + i * PAGE_BYTES};
}

static void encode_all(work *w) {
    size_t bound = d7_page_bound(w->type, w->items);
    uint8_t *out = w->arena;
    for (size_t i = 0; i < w->n_pages; i++) {
        page *p = &w->pages[i];
        p->entry = out;
        if (d7_page_encode(1, w->type, p->values, w->items, out, bound, &p->bytes) != 0)
            die("a page was not encoded");
        out += p->bytes;
    }
}

static void decode_all(work *w, bool check) {
    static uint64_t values[PAGE_BYTES / sizeof(uint64_t)];
    for (size_t i = 0; i < w->n_pages; i++) {
        const page *p = &w->pages[i];
        uint32_t id;
        size_t n;
        d7_error err;
        if (d7_page_decode(w->type, p->entry, p->bytes, values, w->items, &id, &n, &err) != 0)
            die(err.text);
        if (check && (n != w->items || memcmp(values, p->values, PAGE_BYTES) != 0)) {
            fprintf(stderr, "codec_bench: page %zu is not what was encoded\n", i);
            exit(1);
        }
    }
}

/* Values per second of encoding or decoding everything over and over. */
static double rate(work *w, bool encode, double seconds) {
    double start = now(), passed = 0;
    size_t rounds = 0;
    for (; passed < seconds; passed = now() - start, rounds++)
        if (encode)
            encode_all(w);
        else
            decode_all(w, false);
    return (double)(rounds * w->n_pages * w->items) / passed;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--kernels") == 0) {
        for (size_t i = 0; d7__kernels_all[i]; i++)
            if (d7__kernels_all[i]->usable())
                puts(d7__kernels_all[i]->name);
        return 0;
    }
    if (argc < 3)
        die("usage: codec_bench SECONDS COLUMN... | --kernels");
    work w = {.type = type_of(argv[2])};
    w.items = d7_items_per_page(w.type, PAGE_BYTES);
    for (int i = 2; i < argc; i++) {
        if (type_of(argv[i]) != w.type)
            die("the columns are of different types");
        add_column(&w, argv[i]);
    }
    size_t bound = d7_page_bound(w.type, w.items), total = 0;
    w.arena = malloc((w.n_pages + 1) * bound);
    if (!w.arena || w.n_pages == 0)
        die("no memory, or no whole page");
    encode_all(&w);
    decode_all(&w, true);
    for (size_t i = 0; i < w.n_pages; i++)
        total += w.pages[i].bytes;
    double seconds = atof(argv[1]), encoded = rate(&w, true, seconds), decoded = rate(&w, false, seconds);
    printf("%s %.0f %.0f %.3f\n", d7__kernels_best()->name, encoded, decoded,
           (double)total / (double)(w.n_pages * w.items));
    return 0;
}
