/* Files with one bit changed, one block zeroed, one length field wrong: nothing crashes, memory stays bounded, reading is
 * the same each time, and what the damage has not touched is found and reads as it was written. D7 has no checksums:
 * what a changed bit makes of the page that it is in nobody can know, but nowhere else may a value change.
 *
 * Every bit of small files, a sample of larger ones; with D7_FAULT_LONG in the environment every bit of all. */
#include "probe.h"
#include "testing.h"

typedef enum kind { FLIP, ZEROED, LENGTH } kind;

typedef struct damaged {
    probe p;
    const specimen *s;
    bool whole; /* what the undamaged file holds is known */
    kind kind;
    probe_damage at;
} damaged;

/* One of so many flips and lengths is tried. */
#ifndef FLIP_SHARE
#define FLIP_SHARE 1
#endif

static bool long_form(void) {
    return getenv("D7_FAULT_LONG") != NULL;
}

static bool overlaps(const damaged *d, const specimen_entry *e) {
    return e->offset < d->at.to && e->end > d->at.from;
}

static bool touches_header(const damaged *d) {
    return d->s->n_entries == 0 || d->at.from < d->s->entries[0].end;
}

/* Does it begin where a scan has lost its way? It finds the way again at the next block. */
static bool in_the_dark(const damaged *d, const specimen_entry *e) {
    return e->offset >= d->at.from && e->offset / D7_BLOCK_BYTES == d->at.from / D7_BLOCK_BYTES;
}

static bool index_touched(const damaged *d) {
    for (size_t i = 0; i < d->s->n_entries; i++)
        if (d->s->entries[i].kind == SPECIMEN_INDEX && (overlaps(d, &d->s->entries[i])))
            return true;
    return false;
}

/* Is the page listed by an island that the damage cannot hide? */
static bool listed(const damaged *d, size_t page) {
    size_t block = 0;
    for (size_t i = 1; i < d->s->n_entries; i++) {
        const specimen_entry *e = &d->s->entries[i];
        if (e->kind != SPECIMEN_INDEX || e->offset >= d->s->global_index ||
            e->offset / D7_BLOCK_BYTES == block)
            continue;
        block = e->offset / D7_BLOCK_BYTES;
        if (i > page)
            return block > 0 && !overlaps(d, e) && !in_the_dark(d, e);
    }
    return false;
}

/* Must this page, which the damage has not touched, be found? */
static bool must_be_found(const damaged *d, size_t i, probe_mode mode) {
    const specimen *s = d->s;
    bool index_good = s->closed && d->at.to <= s->global_index && mode == PROBE_PLAIN;
    if (index_good)
        return true;
    /* A changed bit may make an index say something else, and nothing contradicts it. */
    if (d->kind == FLIP && index_touched(d) && mode != PROBE_FULL)
        return false;
    if (mode == PROBE_QUICK)
        return !s->closed && listed(d, i);
    return !in_the_dark(d, &s->entries[i]) || listed(d, i);
}

/* Behind a hole that nothing tells of no page is given out. */
static uint64_t known_to(const d7_reader *r) {
    d7_problem problem;
    for (size_t i = 0; i < d7_reader_n_problems(r) && d7_reader_problem(r, i, &problem) == 0; i++)
        if (problem.code == D7_PROBLEM_UNPLACED)
            return problem.offset;
    return UINT64_MAX;
}

static void check_found(damaged *d, const d7_reader *r, probe_mode mode, const bool *found) {
    uint64_t end = known_to(r);
    for (size_t i = 0; i < d->s->n_entries; i++) {
        const specimen_entry *e = &d->s->entries[i];
        if (e->kind == SPECIMEN_PAGE && e->offset < end && !overlaps(d, e) && must_be_found(d, i, mode))
            probe_require(&d->p, found[i], "the page at byte %llu is whole and not found",
                          (unsigned long long)e->offset);
    }
}

/* While the global index holds, every item keeps its place, and each damaged page is told with its items. */
static void check_places(damaged *d, d7_reader *r) {
    const specimen *s = d->s;
    d7_problem problem;
    d7_page_info page;
    for (uint32_t ds = 0; ds < s->n_datasets; ds++)
        for (uint64_t i = 0; d7_reader_page(r, ds, i, &page) == 0; i++) {
            const specimen_entry *e = specimen_page_at(s, page.offset);
            probe_require(&d->p, e && e->dataset_id == ds && page.first_item == e->first_item,
                          "the page at byte %llu has moved", (unsigned long long)page.offset);
        }
    for (size_t i = 0; i < d7_reader_n_problems(r) && d7_reader_problem(r, i, &problem) == 0; i++) {
        const specimen_entry *e = specimen_page_at(s, problem.offset);
        if (problem.code == D7_PROBLEM_BAD_PAGE)
            probe_require(&d->p,
                          e && overlaps(d, e) && problem.dataset_id == e->dataset_id &&
                              problem.first_item == e->first_item &&
                              (problem.n_items == 0 || problem.n_items == e->n_items),
                          "a damaged page is told as of dataset %u, items from %llu", problem.dataset_id,
                          (unsigned long long)problem.first_item);
    }
}

/* All that a page was is gone when its block is zeroed: it cannot read. */
static void check_told(damaged *d, d7_reader *r) {
    uint64_t damages = d7_reader_n_damages(r);
    for (size_t i = 0; i < d->s->n_entries; i++)
        if (overlaps(d, &d->s->entries[i]))
            probe_require(&d->p, damages > 0 || d->s->entries[i].kind == SPECIMEN_INDEX,
                          "the damage is not told");
}

static void verify(damaged *d, d7_reader *r) {
    d7_verify_summary sum;
    d7_error err;
    probe_require(&d->p, d7_reader_check(r, NULL, NULL, &err) == 0, "check: %s", err.text);
    probe_require(&d->p, d7_reader_verify(r, NULL, NULL, NULL, NULL, &sum, &err) == 0, "verify: %s",
                  err.text);
    probe_require(&d->p, d->kind == FLIP || sum.damages > 0, "verify finds no damage");
}

static void read_damaged(damaged *d, probe_mode mode) {
    static bool found[4096];
    d7_error err;
    bool known = d->whole && !touches_header(d);
    memset(found, 0, sizeof found);
    d7_reader *r = probe_open(&d->p, mode, &err);
    if (!r) {
        probe_require(&d->p, !known, "does not open: %s", err.text);
        return;
    }
    const specimen *truth = known ? d->s : NULL;
    uint64_t sum = probe_read(&d->p, r, truth, &d->at, found);
    if (known) {
        check_found(d, r, mode, found);
        if (d->kind != FLIP && d->s->closed && d->at.to <= d->s->global_index && mode == PROBE_PLAIN)
            check_places(d, r);
        if (d->kind != FLIP && mode == PROBE_PLAIN)
            check_told(d, r);
    }
    probe_require(&d->p, probe_read(&d->p, r, truth, &d->at, found) == sum, "read again, other values come");
    if (mode == PROBE_PLAIN)
        verify(d, r);
    probe_close(&d->p, r);
}

static const char *const kinds[] = {"bit changed", "block zeroed", "length changed"};

/* The file in memory is damaged in [from, to): reads it in every way, and mends it. */
static void try(damaged *d, uint64_t from, uint64_t to) {
    d->at = (probe_damage){from, to};
    for (int mode = 0; mode < PROBE_N_MODES; mode++) {
        snprintf(d->p.what, sizeof d->p.what, "%s, %s at byte %llu, mode %d", d->s->name, kinds[d->kind],
                 (unsigned long long)from, mode);
        read_damaged(d, (probe_mode)mode);
    }
    memcpy(d->p.file.data + from, d->s->bytes + from, (size_t)(to - from));
}

static void begin(damaged *d, const specimen *s, bool whole) {
    *d = (damaged){.s = s, .whole = whole};
    probe_init(&d->p);
    memio_set(&d->p.file, s->bytes, s->n);
}

static void flip(damaged *d, size_t bit) {
    d->kind = FLIP;
    d->p.file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    try(d, bit / 8, bit / 8 + 1);
}

/* Deep inside a run of zeroes, where all bytes are the same. */
static bool in_padding(const specimen *s, size_t byte) {
    for (size_t i = byte < 32 ? 0 : byte - 32; i < byte + 32; i++)
        if (i >= s->n || s->bytes[i])
            return false;
    return true;
}

static void flip_every_bit(const specimen *s, bool whole) {
    damaged d;
    size_t flips = 0;
    begin(&d, s, whole);
    for (size_t byte = 0; byte < s->n; byte += in_padding(s, byte) ? 97 : 1)
        for (size_t bit = byte % FLIP_SHARE; bit < 8; bit += FLIP_SHARE, flips++)
            flip(&d, byte * 8 + bit);
    probe_free(&d.p);
    print_message("%s: %zu flips\n", s->name, flips);
}

static void flip_some_bits(const specimen *s, bool whole, size_t n) {
    damaged d;
    uint64_t rng = 5;
    if (long_form()) {
        flip_every_bit(s, whole);
        return;
    }
    begin(&d, s, whole);
    for (size_t i = 0; i < n / FLIP_SHARE; i++)
        flip(&d, (size_t)(testing_random(&rng) % (s->n * 8)));
    for (size_t i = 0; i < s->n_entries; i += FLIP_SHARE) /* heads of entries */
        flip(&d, (size_t)(s->entries[i].offset * 8 + testing_random(&rng) % 64));
    probe_free(&d.p);
}

static bool is_small(const specimen *s) {
    return strncmp(s->name, "small", 5) == 0;
}

static void flips_in_made_files(void **state) {
    (void)state;
    specimen *s;
    for (size_t i = 0; (s = specimen_make(i)); i++) {
        if (is_small(s))
            flip_every_bit(s, true);
        else
            flip_some_bits(s, true, 150);
        specimen_free(s);
    }
}

typedef struct fixture {
    const char *name;
    bool whole, every_bit;
} fixture;

static const fixture fixtures[] = {
    {"minimal", true, true},
    {"other_writer", true, true},
    {"header_only", true, true},
    {"cut_in_header", false, true},
    {"all_types", true, false},
    {"attributes", true, false},
    {"attributes_early", true, false},
    {"attributes_open", true, false},
    {"bad_fragment_length", false, false},
    {"bad_signature", false, false},
    {"bad_varints", false, false},
    {"cut_0", true, false},
    {"cut_1", true, false},
    {"cut_2", true, false},
    {"cut_3", true, false},
    {"cut_4", true, false},
    {"cut_in_epilogue", false, false},
    {"cut_in_global_index", false, false},
    {"epilogue_points_nowhere", false, false},
    {"items_8191", true, false},
    {"items_8192", true, false},
    {"items_8193", true, false},
    {"lincam_islands", true, false},
    {"open", true, false},
    {"spare_0", true, false},
    {"spare_1", true, false},
    {"spare_2", true, false},
    {"unframed", false, false},
    {"zeroed_block", false, false},
};

static void flips_in_fixtures(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        specimen *s = specimen_fixture(fixtures[i].name, fixtures[i].whole);
        if (fixtures[i].every_bit)
            flip_every_bit(s, fixtures[i].whole);
        else
            flip_some_bits(s, fixtures[i].whole, 25);
        specimen_free(s);
    }
}

/* ---- blocks ---- */

static void zero_blocks(const specimen *s, bool whole) {
    damaged d;
    begin(&d, s, whole);
    d.kind = ZEROED;
    for (size_t block = 0; block * D7_BLOCK_BYTES < s->n; block++) {
        size_t from = block * D7_BLOCK_BYTES, n = s->n - from < D7_BLOCK_BYTES ? s->n - from : D7_BLOCK_BYTES;
        memset(d.p.file.data + from, 0, n);
        if (memcmp(d.p.file.data + from, s->bytes + from, n) != 0)
            try(&d, from, from + n);
    }
    probe_free(&d.p);
}

static void each_block_zeroed(void **state) {
    (void)state;
    specimen *s;
    for (size_t i = 0; (s = specimen_make(i)); i++) {
        zero_blocks(s, true);
        specimen_free(s);
    }
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        s = specimen_fixture(fixtures[i].name, fixtures[i].whole);
        if (fixtures[i].whole)
            zero_blocks(s, true);
        specimen_free(s);
    }
}

/* ---- lengths ---- */

static void set_length(damaged *d, size_t at, unsigned length) {
    uint8_t *p = d->p.file.data + at;
    unsigned before = p[0] | (unsigned)p[1] << 8, after = (before & 0xC000) | (length & 0x3FFF);
    d->kind = LENGTH;
    p[0] = (uint8_t)after;
    p[1] = (uint8_t)(after >> 8);
    if (after != before)
        try(d, at, at + 2);
}

/* The header of every fragment that belongs to an entry. */
static void wrong_lengths(const specimen *s) {
    damaged d;
    uint64_t rng = 9;
    begin(&d, s, true);
    for (size_t i = 0; i < s->n_entries; i++)
        for (size_t at = (size_t)s->entries[i].offset; at < s->entries[i].end;) {
            unsigned length = (s->bytes[at] | (unsigned)s->bytes[at + 1] << 8) & 0x3FFF;
            unsigned room = D7_BLOCK_BYTES - 2 - (unsigned)(at % D7_BLOCK_BYTES);
            const unsigned lengths[] = {0,
                                        1,
                                        length - 1,
                                        length + 1,
                                        room,
                                        0x3FFF,
                                        (unsigned)testing_random(&rng),
                                        (unsigned)(testing_random(&rng) % (room + 1))};
            for (size_t k = i % FLIP_SHARE; k < sizeof lengths / sizeof *lengths; k += FLIP_SHARE)
                set_length(&d, at, lengths[k]);
            at += 2 + length;
        }
    probe_free(&d.p);
}

static void each_length_wrong(void **state) {
    (void)state;
    specimen *s;
    for (size_t i = 0; (s = specimen_make(i)); i++) {
        wrong_lengths(s);
        specimen_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flips_in_made_files),
        cmocka_unit_test(flips_in_fixtures),
        cmocka_unit_test(each_block_zeroed),
        cmocka_unit_test(each_length_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
