#include "probe.h"

#include "base/crc32c.h"
#include "testing.h"

enum { FIXED_BYTES = 64 * 1024 * 1024, PAGE_BYTES = 16 };

void probe_init(probe *p) {
    *p = (probe){.what = "?"};
    p->io = memio_table(&p->file);
    p->alloc = memcount_table(&p->memory);
}

void probe_free(probe *p) {
    assert_int_equal(p->memory.outstanding, 0);
    assert_null(p->file.opened_memory);
    memio_free(&p->file);
}

d7_reader *probe_open(probe *p, probe_mode mode, d7_error *err) {
    d7_reader_options o;
    d7_reader *r = NULL;
    d7_reader_options_init(&o);
    o.io = &p->io;
    o.alloc = &p->alloc;
    o.recover = mode == PROBE_RECOVER;
    o.quick = mode == PROBE_QUICK;
    o.full = mode == PROBE_FULL;
    p->memory.peak = p->memory.bytes;
    *err = (d7_error){0};
    int rc = d7_reader_open(&r, "memory", &o, err);
    if (rc == 0) {
        probe_require(p, r != NULL, "no reader and no error");
        return r;
    }
    probe_require(p, r == NULL && err->code == rc, "error %d, in the struct %d", rc, err->code);
    probe_require(p, strstr(err->text, "memory: "), "the text does not name the file: %s", err->text);
    probe_require(p, p->memory.outstanding == 0 && !p->file.opened_memory, "a failed opening leaks");
    return NULL;
}

static void getters(probe *p, d7_reader *r) {
    uint32_t version[3];
    d7_attribute a;
    d7_problem problem;
    d7_reader_version(r, version);
    probe_require(p, d7_reader_file_bytes(r) == p->file.n, "wrong length of the file");
    probe_require(p, d7_reader_index_step(r) >= 1 && d7_reader_index_step(r) <= D7_INDEX_STEP_MAX,
                  "index step");
    probe_require(p,
                  d7_reader_bytes_per_page(r) >= D7_PAGE_BYTES_MIN &&
                      d7_reader_bytes_per_page(r) <= D7_PAGE_BYTES_MAX,
                  "bytes of a page");
    for (size_t i = 0; d7_reader_attribute(r, i, &a) == 0; i++)
        probe_require(p, strlen(a.key) <= a.key_bytes && strlen(a.value) <= a.value_bytes, "attribute %zu",
                      i);
    for (size_t i = 0; d7_reader_problem(r, i, &problem) == 0; i++) {
        probe_require(p, d7_problem_name(problem.code) && problem.text[0], "problem %zu has no name or text",
                      i);
        probe_require(p, problem.dataset_id == D7_NO_DATASET || problem.dataset_id < d7_reader_n_datasets(r),
                      "problem %zu is of dataset %u", i, problem.dataset_id);
    }
}

static bool same_page(const d7_page_info *a, const d7_page_info *b) {
    return a->offset == b->offset && a->first_item == b->first_item && a->n_items == b->n_items;
}

/* Reads one page of the map. Meanwhile the reader may learn that it is of another length, and that other pages are. */
static uint64_t read_page(probe *p, d7_reader *r, uint32_t ds, uint64_t number, d7_page_info *page,
                          uint8_t **values, int *ret_rc) {
    d7_dataset_info info;
    d7_page_info after = {0};
    d7_error err = {0};
    *values = NULL;
    for (int attempt = 0; attempt == 0 || !same_page(page, &after); attempt++) {
        free(*values);
        probe_require(p, attempt < 3 && d7_reader_page(r, ds, number, page) == 0,
                      "a page that comes and goes");
        assert_int_equal(d7_reader_dataset(r, ds, &info), 0);
        probe_require(p, page->first_item + page->n_items <= info.items,
                      "a page past the end of its dataset");
        probe_require(p, page->n_items * d7_type_size(info.type) <= D7_PAGE_BYTES_MAX,
                      "a page of absurd length");
        size_t n = (size_t)page->n_items;
        *values = calloc(n + 1, 8);
        *ret_rc = d7_reader_read(r, ds, page->first_item, n, *values, &err);
        assert_int_equal(d7_reader_page(r, ds, number, &after), 0);
    }
    probe_require(p, *ret_rc == 0 || (*ret_rc == D7_ERR_CORRUPT && strstr(err.text, "memory: ")),
                  "read: %d, %s", *ret_rc, err.text);
    uint32_t sum = common_crc32c((uint32_t)*ret_rc, &page->offset, sizeof page->offset);
    return *ret_rc == 0 ? common_crc32c(sum, *values, (size_t)page->n_items * d7_type_size(info.type)) : sum;
}

static bool touched(const specimen_entry *e, const probe_damage *damage) {
    return damage && e->offset < damage->to && e->end > damage->from;
}

static uint64_t check_page(probe *p, d7_reader *r, uint32_t ds, uint64_t number, const specimen *truth,
                           const probe_damage *damage, bool *found) {
    d7_page_info page;
    uint8_t *values;
    int rc;
    uint64_t sum = read_page(p, r, ds, number, &page, &values, &rc);
    const specimen_entry *e = truth ? specimen_page_at(truth, page.offset) : NULL;
    if (e && !touched(e, damage) && e->dataset_id == ds) {
        probe_require(p, rc == 0, "dataset %u, page %llu at byte %llu is whole and cannot be read", ds,
                      (unsigned long long)number, (unsigned long long)page.offset);
        probe_require(p, page.n_items == e->n_items, "dataset %u, page at byte %llu: %llu items, not %zu", ds,
                      (unsigned long long)page.offset, (unsigned long long)page.n_items, e->n_items);
        probe_require(p, memcmp(values, e->values, e->n_items * specimen_item_bytes(truth, e)) == 0,
                      "dataset %u, page at byte %llu: wrong values", ds, (unsigned long long)page.offset);
        found[e - truth->entries] = true;
    }
    free(values);
    return sum;
}

uint64_t probe_read(probe *p, d7_reader *r, const specimen *truth, const probe_damage *damage, bool *found) {
    d7_page_info page;
    uint64_t sum = 0;
    getters(p, r);
    size_t n = d7_reader_n_datasets(r);
    for (uint32_t ds = 0; ds < n && ds < 256; ds++)
        for (uint64_t i = 0; d7_reader_page(r, ds, i, &page) == 0; i++)
            sum = sum * 31 + check_page(p, r, ds, i, truth, damage, found);
    getters(p, r);
    return sum;
}

void probe_close(probe *p, d7_reader *r) {
    size_t bound = FIXED_BYTES + PAGE_BYTES * (size_t)d7_reader_pages(r);
    probe_require(p, p->memory.peak <= bound, "%zu bytes of memory, over %zu", p->memory.peak, bound);
    d7_reader_free(r);
    probe_require(p, p->memory.outstanding == 0, "%ld pieces of memory leak", p->memory.outstanding);
}
