#include "repairing.h"

#include <limits.h>

#include "testing.h"

const char source_path[] = "run.photons", out_path[] = "out.photons";
static const char sums_path[] = "run.photons.crc";

static const d7_dataset datasets[N_COLUMNS] = {{"/photons/x", D7_UINT16},
                                               {"/photons/y", D7_UINT16},
                                               {"/photons/aat", D7_UINT64},
                                               {"/photons/ms", D7_UINT64},
                                               {"/other", D7_UINT8}};

/* ---- making ---- */

static void fill(recording *r) {
    uint64_t rng = 5 + r->n, aat = 0;
    for (size_t i = 0; i < r->n; i++) {
        r->x[i] = (uint16_t)(testing_random(&rng) & 0xFFF);
        r->y[i] = (uint16_t)(testing_random(&rng) & 0xFFF);
        r->aat[i] = aat += testing_random(&rng) % 1000;
        r->other[i] = (uint8_t)i;
        r->ms[i] = MS_PHOTONS * i + i % 7;
    }
    r->items[COLUMN_X] = r->items[COLUMN_Y] = r->items[COLUMN_AAT] = r->n;
    r->items[COLUMN_MS] = r->n / MS_PHOTONS;
    r->items[COLUMN_OTHER] = r->n / 3;
}

static const void *values_of(const recording *r, uint32_t column, size_t from) {
    const void *const at[N_COLUMNS] = {r->x + from, r->y + from, r->aat + from, r->ms + from,
                                       r->other + from};
    return at[column];
}

static void append_turn(recording *r, d7_writer *w, size_t from, size_t to) {
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        size_t share = c == COLUMN_MS ? MS_PHOTONS : c == COLUMN_OTHER ? 3 : 1;
        size_t a = from / share, b = to / share;
        if (d7_writer_append(w, c, values_of(r, c, a), b - a, &r->err) != 0)
            fail_msg("append: %s", r->err.text);
    }
}

static void put_attributes(recording *r, d7_writer *w) {
    char marker[100];
    snprintf(marker, sizeof marker, "{\"text\": \"\\\"item\\\": 1\", \"item\": %zu}", r->n / 2);
    assert_int_equal(
        d7_writer_set_attribute(w, "photond.gap.00000002", "{\"item\":100,\"count\":5}", &r->err), 0);
    assert_int_equal(d7_writer_set_attribute(w, "photond.marker.00000000", marker, &r->err), 0);
}

static uint8_t *copy_of(const recording *r, const char *path, size_t *ret_bytes) {
    const uint8_t *bytes = disk_content(r->disk, path, ret_bytes);
    uint8_t *copy = malloc(*ret_bytes);
    memcpy(copy, bytes, *ret_bytes);
    return copy;
}

recording *recording_make(size_t n, size_t turn, uint32_t index_step, bool close) {
    static const d7_attribute early = {.key = "a", .value = "set at the start"};
    recording *r = calloc(1, sizeof *r);
    d7_writer_options o;
    d7_writer *w;
    r->disk = disk_new(1);
    r->n = n;
    fill(r);
    d7_writer_options_init(&o);
    o.io = disk_io(r->disk);
    o.index_step = index_step;
    o.bytes_per_page = 256;
    o.attributes = &early;
    o.n_attributes = 1;
    o.checksums = true;
    if (d7_writer_create(&w, source_path, datasets, N_COLUMNS, &o, &r->err) != 0)
        fail_msg("create: %s", r->err.text);
    put_attributes(r, w);
    for (size_t at = 0; at < n; at += turn)
        append_turn(r, w, at, at + turn < n ? at + turn : n);
    assert_int_equal(close ? d7_writer_close(w, &r->err) : d7_writer_flush(w, &r->err), 0);
    d7_writer_free(w);
    r->bytes = copy_of(r, source_path, &r->n_bytes);
    r->sums = copy_of(r, sums_path, &r->n_sums);
    put_source(r, r->bytes, r->n_bytes);
    return r;
}

void recording_free(recording *r) {
    disk_free(r->disk);
    free(r->bytes);
    free(r->sums);
    free(r);
}

void put_source(recording *r, const void *bytes, size_t n) {
    disk_free(r->disk); /* a disk keeps the names it had */
    r->disk = disk_new(1);
    disk_put(r->disk, source_path, bytes, n);
}

void put_checksums(recording *r) {
    disk_put(r->disk, sums_path, r->sums, r->n_sums);
}

bool exists_on(const recording *r, const char *path) {
    size_t n;
    return disk_content(r->disk, path, &n) != NULL;
}

/* ---- repairing ---- */

d7_reader *open_on(recording *r, const char *path) {
    d7_reader_options o;
    d7_reader *f;
    d7_reader_options_init(&o);
    o.io = disk_io(r->disk);
    if (d7_reader_open(&f, path, &o, &r->err) != 0)
        fail_msg("open: %s", r->err.text);
    return f;
}

d7_page_info page_at(recording *r, uint32_t column, uint64_t item) {
    d7_reader *f = open_on(r, source_path);
    d7_page_info page;
    uint64_t number;
    assert_int_equal(d7_reader_find_page(f, column, item, &number), 0);
    assert_int_equal(d7_reader_page(f, column, number, &page), 0);
    d7_reader_free(f);
    return page;
}

d7_repair_options repair_options(const recording *r) {
    d7_repair_options o;
    d7_repair_options_init(&o);
    o.io = disk_io(r->disk);
    return o;
}

int repair(recording *r, bool keep_ragged, d7_repair_report *report) {
    d7_repair_options o = repair_options(r);
    o.keep_ragged = keep_ragged;
    r->err.code = INT_MAX;
    int rc = d7_repair(source_path, out_path, &o, report, &r->err);
    assert_int_equal(r->err.code, rc == 0 ? INT_MAX : rc); /* written only on failure */
    return rc;
}

/* ---- checking ---- */

uint64_t items_of(const d7_reader *f, uint32_t column) {
    d7_dataset_info info;
    assert_int_equal(d7_reader_dataset(f, column, &info), 0);
    return info.items;
}

static void check_clean(recording *r, d7_reader *f) {
    d7_verify_summary sum;
    d7_problem p;
    assert_int_equal(d7_reader_verify(f, NULL, NULL, NULL, NULL, &sum, &r->err), 0);
    for (size_t i = 0; d7_reader_problem(f, i, &p) == 0; i++)
        if (p.severity == D7_DAMAGE)
            fail_msg("damage: %s at %llu", p.text, (unsigned long long)p.offset);
    assert_int_equal(sum.damages, 0);
    assert_int_equal(sum.state, D7_STATE_CLOSED);
}

static bool gap_concerns(const d7_repair_gap *g, uint32_t column) {
    d7_group group = d7_group_of(datasets[column].name);
    return g->group == D7_GROUP_NONE ? g->dataset_id == column : g->group == group;
}

static bool is_gone(const d7_repair_report *report, uint32_t column, uint64_t item) {
    for (size_t i = 0; report && i < report->n_gaps; i++) {
        const d7_repair_gap *g = &report->gaps[i];
        if (gap_concerns(g, column) && item >= g->source_item && item - g->source_item < g->n_items)
            return true;
    }
    return false;
}

/* How many photons before this one are gone. */
static uint64_t gone_before(const d7_repair_report *report, uint64_t photon) {
    uint64_t n = 0;
    for (size_t i = 0; report && i < report->n_gaps; i++) {
        const d7_repair_gap *g = &report->gaps[i];
        if (g->group == D7_GROUP_PHOTONS && photon > g->source_item)
            n += photon - g->source_item < g->n_items ? photon - g->source_item : g->n_items;
    }
    return n;
}

static void check_values(recording *r, d7_reader *f, uint32_t column, const d7_repair_report *report) {
    uint64_t n = items_of(f, column);
    size_t bytes = d7_type_size(datasets[column].type);
    uint8_t *got = malloc((size_t)n * bytes + 1);
    assert_int_equal(d7_reader_read(f, column, 0, (size_t)n, got, &r->err), 0);
    uint64_t from = 0;
    for (uint64_t i = 0; i < n; i++, from++) {
        while (is_gone(report, column, from))
            from++;
        assert_true(from < r->items[column]);
        uint64_t want = 0, have = 0;
        memcpy(&want, values_of(r, column, (size_t)from), bytes);
        memcpy(&have, got + i * bytes, bytes);
        if (column == COLUMN_MS)
            want -= gone_before(report, want);
        if (have != want)
            fail_msg("column %u, item %llu: %llu, not %llu", column, (unsigned long long)i,
                     (unsigned long long)have, (unsigned long long)want);
    }
    free(got);
}

static void check_attributes(const d7_reader *f) {
    d7_attribute a;
    if (d7_reader_n_attributes(f) == 0)
        return;
    assert_int_equal(d7_reader_attribute(f, 0, &a), 0);
    assert_string_equal(a.key, "a");
    assert_string_equal(a.value, "set at the start");
}

void check_result(recording *r, const char *path, const d7_repair_report *report) {
    d7_reader *f = open_on(r, path);
    check_clean(r, f);
    check_attributes(f);
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        bool filled = report && report->datasets[c].filled > 0;
        if (report)
            assert_int_equal(items_of(f, c), report->datasets[c].kept + report->datasets[c].filled);
        if (!filled)
            check_values(r, f, c, report);
    }
    d7_reader_free(f);
}

static void check_page(recording *r, d7_reader *f, uint32_t column, const d7_page_info *page) {
    uint64_t values[256];
    size_t bytes = d7_type_size(datasets[column].type);
    assert_true(page->first_item + page->n_items <= r->items[column] && page->n_items * bytes <= 256);
    if (d7_reader_read(f, column, page->first_item, (size_t)page->n_items, values, &r->err) == 0)
        assert_memory_equal(values, values_of(r, column, (size_t)page->first_item), page->n_items * bytes);
}

bool check_source(recording *r) {
    d7_reader *f = open_on(r, source_path);
    d7_page_info page;
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        for (uint64_t i = 0; d7_reader_page(f, c, i, &page) == 0; i++)
            if (!page.damaged)
                check_page(r, f, c, &page);
    bool told = d7_reader_n_damages(f) > 0;
    d7_reader_free(f);
    return told;
}

void check_aligned(const d7_reader *f) {
    assert_int_equal(items_of(f, COLUMN_X), items_of(f, COLUMN_Y));
    assert_int_equal(items_of(f, COLUMN_X), items_of(f, COLUMN_AAT));
}

/* Repairs what is on the disk now; it must succeed. */
void repair_and_check(recording *r, d7_repair_report *report) {
    if (repair(r, false, report) != 0)
        fail_msg("repair: %s", r->err.text);
    if (report->outcome == D7_REPAIR_FINE) {
        assert_false(exists_on(r, out_path));
        return;
    }
    check_result(r, out_path, report);
    d7_reader *f = open_on(r, out_path);
    check_aligned(f);
    d7_reader_free(f);
}
