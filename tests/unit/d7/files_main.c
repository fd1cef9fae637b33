/* Whole files, written and read by the library, as a program of its own for processors that the build does not run on. What it
 * prints is the same on all of them:
 *
 *   files_main FILE...     the bytes of files and pages that it writes; what it reads in these and in its own
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "memio.h"
#include "random.h"
#include "specimen.h"

static void print_sum(const char *what, const char *name, const void *data, size_t n) {
    printf("%s %s %zu bytes %08x\n", what, name, n, common_crc32c(0, data, n));
}

/* Values that are in the host's order in memory, as numbers. */
static void print_values(d7_type type, const uint8_t *values, size_t n) {
    size_t size = d7_type_size(type);
    uint8_t *little = malloc(n * size + 1);
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = 0;
        uint16_t v16;
        uint32_t v32;
        memcpy(&v16, values + i * size, size == 2 ? 2 : 0);
        memcpy(&v32, values + i * size, size == 4 ? 4 : 0);
        memcpy(&x, values + i * size, size == 8 ? 8 : 0);
        x = size == 1 ? values[i] : size == 2 ? v16 : size == 4 ? v32 : x;
        for (size_t b = 0; b < size; b++)
            little[i * size + b] = (uint8_t)(x >> 8 * b);
    }
    sum = common_crc32c(sum, little, n * size);
    printf(" %s %zu items %08x\n", d7_type_name(type), n, sum);
    free(little);
}

static void print_problems(void *ctx, const d7_problem *p) {
    (void)ctx;
    printf("  %s at %" PRIu64 ", dataset %" PRIu32 ", items from %" PRIu64 ": %s\n", d7_problem_name(p->code),
           p->offset, p->dataset_id, p->first_item, p->text);
}

static void print_dataset(d7_reader *r, uint32_t ds) {
    d7_dataset_info info;
    d7_error err = {0};
    if (d7_reader_dataset(r, ds, &info) != 0)
        return;
    uint8_t *values = calloc((size_t)info.items + 1, 8);
    int rc = d7_reader_read(r, ds, 0, (size_t)info.items, values, &err);
    printf(" %s %" PRIu64 " pages, read %s", info.name, info.pages, d7_error_name(rc));
    print_values(info.type, values, rc == 0 ? (size_t)info.items : 0);
    free(values);
}

static void read_file(const char *name, const uint8_t *data, size_t n, bool recover) {
    memio file = {0};
    d7_io io = memio_table(&file);
    d7_reader_options o;
    d7_reader *r = NULL;
    d7_error err = {0};
    d7_verify_summary sum;
    d7_attribute a;
    memio_set(&file, data, n);
    d7_reader_options_init(&o);
    o.io = &io;
    o.recover = recover;
    int rc = d7_reader_open(&r, name, &o, &err);
    printf("read %s: %s %s\n", name, d7_error_name(rc), err.text);
    for (uint32_t i = 0; r && i < d7_reader_n_datasets(r); i++)
        print_dataset(r, i);
    for (size_t i = 0; r && d7_reader_attribute(r, i, &a) == 0; i++)
        printf(" %s = %08x\n", a.key, common_crc32c(0, a.value, a.value_bytes));
    if (r && !recover && d7_reader_verify(r, print_problems, NULL, NULL, NULL, &sum, &err) == 0)
        printf(" %" PRIu64 " entries, %" PRIu64 " damages\n", sum.entries, sum.damages);
    d7_reader_free(r);
    memio_free(&file);
}

static void made_files(void) {
    specimen *s;
    for (size_t i = 0; (s = specimen_make(i)); i++) {
        print_sum("written", s->name, s->bytes, s->n);
        read_file(s->name, s->bytes, s->n, false);
        read_file(s->name, s->bytes, s->n * 2 / 3, true);
        specimen_free(s);
    }
}

/* Slots of a tail with all types in them, there and back. */
static void tails(void) {
    enum { N = 5 };
    uint64_t rng = 3;
    static uint64_t room[D7_N_TYPES][N];
    d7_type types[D7_N_TYPES];
    d7_tail_dataset datasets[D7_N_TYPES];
    static uint8_t slot[1 << 20];
    size_t bytes = 0;
    for (int t = 0; t < D7_N_TYPES; t++) {
        types[t] = (d7_type)t;
        for (size_t i = 0; i < N; i++)
            specimen_store(types[t], (uint8_t *)room[t] + i * d7_type_size(types[t]), testing_random(&rng));
        datasets[t] = (d7_tail_dataset){.type = types[t], .items = N, .n_partial = N, .partial = room[t]};
    }
    d7_tail_layout layout = {
        .bytes_per_page = 16384, .types = types, .n_datasets = D7_N_TYPES, .attribute_bytes = 1000};
    d7_tail_identity identity = {
        .part = 3, .first_sequence = 1u << 20, .head_bytes = 99, .head_crc32c = 0x12345678};
    d7_tail_claim claim = {.generation = 7, .length = 123456789012, .base = 1000, .crc32c = 0x9abcdef0};
    d7_tail_mark mark = {.sequence = 12345,
                         .producer = "camera",
                         .epoch = 5,
                         .clock = {true, -77, 1000000007, 1700000000000000000},
                         .datasets = datasets,
                         .n_datasets = D7_N_TYPES,
                         .attributes =
                             &(d7_attribute){.key = "k", .value = "v", .key_bytes = 1, .value_bytes = 1},
                         .n_attributes = 1};
    d7_error err = {0};
    int rc = d7_tail_slot_encode(&layout, &identity, &claim, &mark, slot, sizeof slot, &bytes, &err);
    printf("slot %s %s\n", d7_error_name(rc), err.text);
    print_sum("written", "slot", slot, bytes);
    d7_tail_slot got;
    if (rc != 0 || d7_tail_slot_decode(slot, bytes, &got, &err) != 0)
        return;
    printf(" sequence %" PRIu64 " of %s, length %" PRIu64 ", instrument %" PRId64 "\n", got.sequence,
           got.producer, got.claim.length, got.clock.instrument);
    for (size_t i = 0; i < got.n_datasets; i++) {
        static uint64_t values[N];
        if (d7_tail_slot_values(&got, i, 0, N, values) == 0)
            print_values(types[i], (const uint8_t *)values, N);
    }
}

static void given_file(const char *path) {
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t n = f ? fread(data, 1, sizeof data, f) : 0;
    if (f)
        fclose(f);
    read_file(name, data, n, false);
}

int main(int argc, char **argv) {
    fprintf(stderr, "%s\n", BYTES_HOST_IS_LITTLE ? "little-endian" : "big-endian");
    made_files();
    tails();
    for (int i = 1; i < argc; i++)
        given_file(argv[i]);
    return 0;
}
