#include "specimen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memio.h"
#include "random.h"

static void require(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "specimen: %s\n", what);
    abort();
}

static void *memory(size_t bytes) {
    void *made = calloc(1, bytes ? bytes : 1);
    require(made != NULL, "out of memory");
    return made;
}

/* ---- what a file holds ---- */

static unsigned number_at(const uint8_t *p) {
    return p[0] | (unsigned)p[1] << 8;
}

static void decode(specimen *s, specimen_entry *e, const uint8_t *entry, size_t bytes, uint64_t *items) {
    size_t cap = 0;
    uint32_t id = UINT32_MAX;
    /* The entry does not say its type; each counts those pages that are stored in its form. */
    for (int type = 0; type < D7_N_TYPES; type++)
        if (d7_page_count((d7_type)type, entry, bytes, &id, NULL, NULL) == 0)
            break;
    require(id < s->n_datasets, "a bad page");
    require(d7_page_count(s->types[id], entry, bytes, &id, &cap, NULL) == 0, "a page that does not count");
    e->values = memory(cap * d7_type_size(s->types[id]));
    require(d7_page_decode(s->types[id], entry, bytes, e->values, cap, &e->dataset_id, &e->n_items, NULL) ==
                0,
            "a page that does not decode");
    e->first_item = items[id];
    items[id] += e->n_items;
}

static void add_entry(specimen *s, uint64_t offset, uint64_t end, const uint8_t *entry, size_t bytes,
                      uint64_t *items) {
    specimen_entry e = {.offset = offset, .end = end, .kind = bytes ? entry[0] >> 3 : 0};
    s->entries = realloc(s->entries, (s->n_entries + 1) * sizeof e);
    require(s->entries != NULL, "out of memory");
    if (e.kind == SPECIMEN_PAGE)
        decode(s, &e, entry, bytes, items);
    s->entries[s->n_entries++] = e;
}

/* Fragments of a good file, one after the other. */
static void walk(specimen *s) {
    static uint64_t items[256];
    memset(items, 0, sizeof items);
    uint8_t *entry = memory(s->n);
    size_t n = 0, begin = SIZE_MAX;
    for (size_t at = 0; at + 2 <= s->n;) {
        if (at % D7_BLOCK_BYTES == D7_BLOCK_BYTES - 1) {
            at++;
            continue;
        }
        unsigned header = number_at(s->bytes + at), length = header & 0x3FFF;
        if (at + 2 + length > s->n)
            break;
        if (header & 0x8000) {
            begin = at;
            n = 0;
        }
        memcpy(entry + n, s->bytes + at + 2, begin == SIZE_MAX ? 0 : length);
        n += length;
        at += 2 + length;
        if (begin != SIZE_MAX && header & 0x4000) {
            add_entry(s, begin, at, entry, n, items);
            begin = SIZE_MAX;
            n = 0;
        }
    }
    free(entry);
}

/* In a closed file: the run of Index entries right before the epilogue. */
static void find_global_index(specimen *s) {
    size_t i = s->n_entries;
    s->closed = i > 0 && s->entries[i - 1].kind == SPECIMEN_EPILOGUE;
    s->global_index = UINT64_MAX;
    if (!s->closed)
        return;
    for (i--; i > 0 && s->entries[i - 1].kind == SPECIMEN_INDEX; i--)
        s->global_index = s->entries[i - 1].offset;
}

static specimen *learn(const char *name, const uint8_t *bytes, size_t n, bool whole) {
    specimen *s = memory(sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    s->n = n;
    s->bytes = memory(n);
    memcpy(s->bytes, bytes, n);
    s->global_index = UINT64_MAX;
    memio file = {0};
    d7_io io = memio_table(&file);
    d7_reader *r = NULL;
    memio_set(&file, bytes, n);
    if (whole) {
        require(d7_reader_open(&r, name, &(d7_reader_options){.io = &io}, NULL) == 0,
                "a file that does not open");
        s->n_datasets = d7_reader_n_datasets(r);
        require(s->n_datasets <= 256, "too many datasets");
        for (uint32_t i = 0; i < s->n_datasets; i++) {
            d7_dataset_info info;
            require(d7_reader_dataset(r, i, &info) == 0, "a dataset that is not there");
            s->types[i] = info.type;
        }
        walk(s);
        find_global_index(s);
    }
    d7_reader_free(r);
    memio_free(&file);
    return s;
}

void specimen_free(specimen *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->n_entries; i++)
        free(s->entries[i].values);
    free(s->entries);
    free(s->bytes);
    free(s);
}

size_t specimen_item_bytes(const specimen *s, const specimen_entry *page) {
    return d7_type_size(s->types[page->dataset_id]);
}

const specimen_entry *specimen_page_at(const specimen *s, uint64_t offset) {
    for (size_t i = 0; i < s->n_entries; i++)
        if (s->entries[i].offset == offset && s->entries[i].kind == SPECIMEN_PAGE)
            return &s->entries[i];
    return NULL;
}

/* ---- files ---- */

specimen *specimen_fixture(const char *name, bool whole) {
    static uint8_t bytes[1 << 20];
    char path[512];
    snprintf(path, sizeof path, "%s/d7/%s.photons", TEST_FIXTURES, name);
    FILE *f = fopen(path, "rb");
    require(f != NULL, path);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    require(n < sizeof bytes && !ferror(f), path);
    fclose(f);
    return learn(name, bytes, n, whole);
}

/* How a file is made: `rounds` times, so many items are appended to each dataset. */
typedef struct recipe {
    const char *name;
    const char *types; /* a digit for each dataset */
    uint32_t index_step, bytes_per_page;
    size_t rounds, items[4]; /* of dataset i: items[i % 4] */
    bool early, attributes, close;
    unsigned noise; /* bits */
} recipe;

static const recipe recipes[] = {
    {"open", "5557", 512, 256, 9, {100, 100, 100, 3}, false, true, false, 12},
    {"closed", "5557", 512, 256, 5, {100, 100, 100, 3}, true, true, true, 12},
    {"all types", "0123456789", 512, 64, 3, {19, 21, 11, 7}, true, true, true, 64},
    {"islands", "557", 1, 2048, 22, {1000, 1000, 20, 0}, true, true, false, 12},
    {"islands, closed", "557", 2, 4096, 26, {1000, 1000, 20, 0}, false, true, true, 12},
    {"entries of several blocks", "37", 1, 65536, 3, {4500, 3000, 0, 0}, false, true, true, 64},
    {"blocks filled to the end", "45", 512, 16384, 1, {16320, 3, 0, 0}, false, false, true, 7},
    {"two bytes left", "45", 512, 16384, 1, {16318, 3, 0, 0}, false, false, true, 7},
    {"small, open", "557", 512, 64, 7, {20, 20, 4, 0}, false, true, false, 12},
    {"small, closed", "0557", 512, 64, 7, {20, 20, 20, 4}, true, true, true, 12},
    {"one byte left", "45", 512, 16384, 1, {16319, 3, 0, 0}, false, false, true, 7},
};

static d7_dataset datasets_of(const recipe *how, size_t i) {
    static const char *const names[] = {"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j"};
    return (d7_dataset){names[i], (d7_type)(how->types[i] - '0')};
}

void specimen_store(d7_type type, uint8_t *to, uint64_t x) {
    size_t size = d7_type_size(type);
    uint32_t v32 = (uint32_t)x;
    uint16_t v16 = (uint16_t)x;
    uint8_t v8 = (uint8_t)x;
    memcpy(to,
           size == 1   ? (void *)&v8
           : size == 2 ? (void *)&v16
           : size == 4 ? (void *)&v32
                       : (void *)&x,
           size);
}

static void append(d7_writer *w, const recipe *how, uint32_t ds, uint64_t *rng) {
    size_t n = how->items[ds % 4], size = d7_type_size(datasets_of(how, ds).type);
    uint8_t *values = memory(n * 8);
    for (size_t i = 0; i < n; i++) {
        specimen_store(datasets_of(how, ds).type, values + i * size,
                       testing_random(rng) >> (64 - how->noise));
    }
    require(d7_writer_append(w, ds, values, n, NULL) == 0, "append");
    free(values);
}

static void record(d7_writer *w, const recipe *how) {
    uint64_t rng = 77;
    for (size_t round = 0; round < how->rounds; round++) {
        char key[16];
        snprintf(key, sizeof key, "key %zu", round % 3);
        require(!how->attributes || d7_writer_set_attribute(w, key, "value", NULL) == 0, "attribute");
        for (uint32_t ds = 0; ds < strlen(how->types); ds++)
            append(w, how, ds, &rng);
    }
    require((how->close ? d7_writer_close(w, NULL) : d7_writer_flush(w, NULL)) == 0, "the end");
}

specimen *specimen_make(size_t number) {
    if (number >= sizeof recipes / sizeof *recipes)
        return NULL;
    const recipe *how = &recipes[number];
    memio file = {0};
    d7_io io = memio_table(&file);
    d7_dataset datasets[10];
    d7_writer_options o;
    d7_writer *w = NULL;
    for (size_t i = 0; i < strlen(how->types); i++)
        datasets[i] = datasets_of(how, i);
    d7_writer_options_init(&o);
    o.io = &io;
    o.index_step = how->index_step;
    o.bytes_per_page = how->bytes_per_page;
    o.attributes = &(d7_attribute){.key = "early", .value = "bird"};
    o.n_attributes = how->early;
    require(d7_writer_create(&w, "memory", datasets, strlen(how->types), &o, NULL) == 0, "create");
    record(w, how);
    d7_writer_free(w);
    specimen *s = learn(how->name, file.data, file.n, true);
    memio_free(&file);
    return s;
}
