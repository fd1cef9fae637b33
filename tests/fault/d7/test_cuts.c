/* Files cut at every byte. Only a cut inside the header keeps a file from opening. Otherwise exactly the whole pages are
 * there, with their values; what follows the last whole entry is told; nothing is invented.
 *
 * Of long files every byte near the ends of entries and blocks, and a sample of the others; with D7_FAULT_LONG in the
 * environment every byte. */
#include "base/crc32c.h"
#include "probe.h"
#include "testing.h"

/* HEAD_BYTES of an entry tell of which dataset it is a page. */
enum { NEAR = 12, HEAD_BYTES = 24 };

/* Of the cuts in between, one of so many more is tried. */
#ifndef CUT_SHARE
#define CUT_SHARE 1
#endif

static bool long_form(void) {
    return getenv("D7_FAULT_LONG") != NULL;
}

static bool near(size_t cut, size_t edge) {
    return cut + NEAR >= edge && cut <= edge + NEAR;
}

/* Is the cut close to something, so that it and its neighbours are all tried? */
static bool near_an_edge(const specimen *s, size_t cut) {
    for (size_t i = 0; i < s->n_entries; i++)
        if (near(cut, s->entries[i].offset) || near(cut, s->entries[i].end))
            return true;
    return near(cut % D7_BLOCK_BYTES, 0) || near(cut % D7_BLOCK_BYTES, D7_BLOCK_BYTES) || cut + NEAR > s->n;
}

static size_t next_cut(const specimen *s, size_t cut) {
    size_t stride = CUT_SHARE * (s->n > 100000 ? 211 : s->n > 20000 ? 31 : 5);
    if (long_form() || near_an_edge(s, cut))
        return cut + 1;
    for (size_t i = 1; i < stride; i++)
        if (near_an_edge(s, cut + i))
            return cut + i;
    return cut + stride;
}

/* What the rest of a file tells after a cut. */
typedef struct expected {
    uint64_t tail;     /* where the entry begins that the cut tore; UINT64_MAX: none */
    bool clean;        /* nothing is wrong */
    bool global_index; /* there, and whole, without an epilogue */
} expected;

static expected expect(const specimen *s, size_t cut) {
    expected x = {.tail = UINT64_MAX, .clean = true};
    for (size_t i = 0; i < s->n_entries; i++) {
        const specimen_entry *e = &s->entries[i];
        if (e->end <= cut)
            x.global_index = e->offset >= s->global_index;
        else if (e->offset < cut && x.tail == UINT64_MAX)
            x.tail = e->offset;
    }
    if (cut < s->n)
        x.clean = x.tail == UINT64_MAX && !x.global_index;
    return x;
}

static void check_found(probe *p, const specimen *s, size_t cut, probe_mode mode, const bool *found) {
    uint64_t listed = 0; /* all before is listed by an island that stands at its place, and is whole */
    for (size_t i = 0, block = 0; i < s->n_entries; i++) {
        const specimen_entry *e = &s->entries[i];
        if (e->kind == SPECIMEN_INDEX && e->end <= cut && e->offset < s->global_index &&
            e->offset / D7_BLOCK_BYTES > block) {
            block = e->offset / D7_BLOCK_BYTES;
            listed = i > 1 ? e->offset : 0;
        }
    }
    for (size_t i = 0; i < s->n_entries; i++) {
        const specimen_entry *e = &s->entries[i];
        if (e->kind != SPECIMEN_PAGE)
            continue;
        probe_require(p, !found[i] || e->end <= cut, "the page at byte %llu is not whole",
                      (unsigned long long)e->offset);
        bool must = mode == PROBE_QUICK && !(s->closed && cut == s->n) ? e->offset < listed : e->end <= cut;
        probe_require(p, !must || found[i], "the page at byte %llu is whole and not found",
                      (unsigned long long)e->offset);
    }
}

/* No page that was not written, and every dataset's items are a beginning of what was written. */
static void check_nothing_invented(probe *p, d7_reader *r, const specimen *s, const bool *found) {
    uint64_t items[256] = {0}, pages = 0;
    d7_dataset_info info;
    for (size_t i = 0; i < s->n_entries; i++)
        if (found[i]) {
            probe_require(p, s->entries[i].first_item == items[s->entries[i].dataset_id],
                          "a page is passed over");
            items[s->entries[i].dataset_id] += s->entries[i].n_items;
            pages++;
        }
    probe_require(p, d7_reader_pages(r) == pages, "%llu pages, not %llu",
                  (unsigned long long)d7_reader_pages(r), (unsigned long long)pages);
    for (uint32_t i = 0; i < s->n_datasets; i++) {
        assert_int_equal(d7_reader_dataset(r, i, &info), 0);
        probe_require(p, info.items == items[i], "dataset %u: %llu items, not %llu", i,
                      (unsigned long long)info.items, (unsigned long long)items[i]);
    }
}

static bool has_problem(d7_reader *r, d7_problem_code code, uint64_t offset) {
    d7_problem problem;
    for (size_t i = 0; d7_reader_problem(r, i, &problem) == 0; i++)
        if (problem.code == code && (offset == UINT64_MAX || problem.offset == offset))
            return true;
    return false;
}

/* A torn page whose beginning is there is told with its dataset and its first item. */
static void check_torn(probe *p, d7_reader *r, const specimen *s, uint64_t tail, size_t cut) {
    d7_problem problem;
    const specimen_entry *page = specimen_page_at(s, tail);
    probe_require(p, has_problem(r, D7_PROBLEM_TORN_TAIL, tail), "the torn entry at byte %llu is not told",
                  (unsigned long long)tail);
    bool has_head = page && strcmp(s->name, "other_writer") != 0 && /* whose fields are in any order */
                    tail + HEAD_BYTES <= cut && tail % D7_BLOCK_BYTES + HEAD_BYTES <= D7_BLOCK_BYTES;
    for (size_t i = 0; d7_reader_problem(r, i, &problem) == 0; i++)
        if (problem.code == D7_PROBLEM_TORN_TAIL && (has_head || problem.dataset_id != D7_NO_DATASET))
            probe_require(
                p, page && problem.dataset_id == page->dataset_id && problem.first_item == page->first_item,
                "the torn page is told as items of another place");
}

static void check_told(probe *p, d7_reader *r, const specimen *s, size_t cut, probe_mode mode) {
    expected x = expect(s, cut);
    if (mode == PROBE_QUICK)
        return;
    if (x.tail != UINT64_MAX && x.tail + 2 <= cut)
        check_torn(p, r, s, x.tail, cut);
    if (x.global_index && cut < s->n)
        probe_require(p, has_problem(r, D7_PROBLEM_NO_EPILOGUE, UINT64_MAX),
                      "a file that was not closed to the end");
    probe_require(p, (d7_reader_n_damages(r) == 0) == x.clean, "%llu damages",
                  (unsigned long long)d7_reader_n_damages(r));
}

static void check_verify(probe *p, d7_reader *r, const specimen *s, size_t cut) {
    d7_verify_summary sum;
    d7_error err;
    probe_require(p, d7_reader_verify(r, NULL, NULL, NULL, NULL, &sum, &err) == 0, "verify: %s", err.text);
    probe_require(p, (sum.damages == 0) == expect(s, cut).clean, "verify: %llu damages",
                  (unsigned long long)sum.damages);
}

static void cut_at(probe *p, const specimen *s, size_t cut, probe_mode mode) {
    static bool found[4096];
    d7_error err;
    memset(found, 0, sizeof found);
    assert_true(s->n_entries < sizeof found);
    snprintf(p->what, sizeof p->what, "%s, cut at byte %zu of %zu, mode %d", s->name, cut, s->n, (int)mode);
    p->file.n = cut;
    d7_reader *r = probe_open(p, mode, &err);
    if (!r) {
        probe_require(p, cut < s->entries[0].end, "does not open: %s", err.text);
        assert_int_equal(err.code, D7_ERR_TRUNCATED);
        return;
    }
    probe_require(p, cut >= s->entries[0].end, "opens without its header");
    assert_int_equal(d7_reader_state(r), s->closed && cut == s->n ? D7_STATE_CLOSED : D7_STATE_OPEN);
    probe_read(p, r, s, NULL, found);
    check_found(p, s, cut, mode, found);
    check_nothing_invented(p, r, s, found);
    check_told(p, r, s, cut, mode);
    if (mode == PROBE_PLAIN)
        check_verify(p, r, s, cut);
    probe_close(p, r);
}

static void cut_everywhere(const specimen *s) {
    probe p;
    size_t cuts = 0;
    probe_init(&p);
    memio_set(&p.file, s->bytes, s->n);
    for (size_t cut = 0; cut <= s->n;
         cut = cut < s->n && next_cut(s, cut) > s->n ? s->n : next_cut(s, cut), cuts++)
        for (int mode = 0; mode < PROBE_N_MODES; mode++)
            cut_at(&p, s, cut, (probe_mode)mode);
    probe_free(&p);
    print_message("%s: %zu cuts\n", s->name, cuts);
}

static void made_files(void **state) {
    (void)state;
    specimen *s;
    for (size_t i = 0; (s = specimen_make(i)); i++) {
        cut_everywhere(s);
        specimen_free(s);
    }
}

static void fixtures(void **state) {
    (void)state;
    static const char *const names[] = {"minimal", "other_writer", "spare_0",
                                        "spare_1", "spare_2",      "attributes_early"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        specimen *s = specimen_fixture(names[i], true);
        cut_everywhere(s);
        specimen_free(s);
    }
}

/* One reader follows a file that is written in random pieces, up to its end, and then loses them again: after each refresh it
 * knows what a reader that opens the file anew would. */
static void follow(const specimen *s, probe_mode mode, uint64_t seed) {
    static bool found[4096];
    probe p;
    d7_error err;
    probe_init(&p);
    memio_set(&p.file, s->bytes, s->n);
    size_t at = (size_t)s->entries[0].end, most = s->n / 12 + 2;
    bool growing = true;
    p.file.n = at;
    d7_reader *r = probe_open(&p, mode, &err);
    assert_non_null(r);
    for (int i = 0; growing || i < 60; i++) {
        size_t step = 1 + (size_t)(testing_random(&seed) % (testing_random(&seed) % 3 ? most : 40));
        if (growing)
            at = at + step < s->n ? at + step : s->n;
        else
            at = at > s->entries[0].end + step ? at - step : (size_t)s->entries[0].end;
        growing = growing && at < s->n;
        snprintf(p.what, sizeof p.what, "%s, mode %d, refreshed at byte %zu", s->name, (int)mode, at);
        p.file.n = at;
        probe_require(&p, d7_reader_refresh(r, NULL, &err) == 0, "%s", err.text);
        memset(found, 0, sizeof found);
        probe_read(&p, r, s, NULL, found);
        check_found(&p, s, at, mode, found);
        check_nothing_invented(&p, r, s, found);
        check_told(&p, r, s, at, mode);
    }
    probe_close(&p, r);
    probe_free(&p);
}

static void followed_files(void **state) {
    (void)state;
    specimen *s;
    for (size_t i = 0; (s = specimen_make(i)); i++) {
        for (uint64_t seed = 1; seed < 16 / CUT_SHARE + 2; seed++)
            for (int mode = 0; mode < PROBE_N_MODES; mode++)
                if (mode != PROBE_QUICK)
                    follow(s, (probe_mode)mode, seed);
        specimen_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(followed_files), cmocka_unit_test(made_files),
                                       cmocka_unit_test(fixtures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
