/* Whole blocks that stand where they were not written, and other damage that leaves pages good but tells wrongly which they are:
 * what a repair keeps is what was recorded, at its place. */
#include "base/bytes.h"
#include "codec.h"
#include "framing.h"
#include "messages.h"
#include "repairing.h"
#include "testing.h"

enum { TURN = 170, N_FORMS = 4, N_OTHER = 12000 };

typedef struct blocks {
    recording *r;
    uint8_t *bytes; /* room for one more than the file has */
    size_t n;       /* whole ones that are not the last */
} blocks;

/* Open and closed, an island in every block and in every third. */
static blocks start(int form) {
    blocks b = {.r = recording_make(PHOTONS_MAX, TURN, form < 2 ? 1 : 3, form % 2)};
    b.n = b.r->n_bytes / D7_BLOCK_BYTES - 2;
    b.bytes = malloc(b.r->n_bytes + D7_BLOCK_BYTES);
    assert_true(b.bytes && b.n > 6);
    return b;
}

static void end(blocks *b) {
    free(b->bytes);
    recording_free(b->r);
}

static void fresh(blocks *b) {
    memcpy(b->bytes, b->r->bytes, b->r->n_bytes);
}

static void copy_blocks(blocks *b, size_t to, size_t from, size_t n) {
    memcpy(b->bytes + to * D7_BLOCK_BYTES, b->r->bytes + from * D7_BLOCK_BYTES, n * D7_BLOCK_BYTES);
}

/* Returns the photons kept. */
static uint64_t repair_bytes(blocks *b, size_t n) {
    d7_repair_report report;
    put_source(b->r, b->bytes, n);
    repair_and_check(b->r, &report);
    uint64_t kept = report.datasets[COLUMN_X].kept;
    assert_int_equal(report.outcome, D7_REPAIR_WRITTEN);
    d7_repair_report_free(&report);
    return kept;
}

static uint64_t repair_blocks(blocks *b) {
    return repair_bytes(b, b->r->n_bytes);
}

static uint64_t a_block(const blocks *b) {
    return PHOTONS_MAX / (b->n + 3);
}

/* In an open file a block may have held the only list of the pages before. */
static uint64_t least_kept(const blocks *b, int form, size_t block, size_t n) {
    return form % 2 ? PHOTONS_MAX - (n + 3) * a_block(b) : block > 0 ? (block - 1) * a_block(b) : 0;
}

static void blocks_over_others(void **state) {
    (void)state;
    for (int form = 0; form < N_FORMS; form++) {
        blocks b = start(form);
        for (size_t n = 1; n <= 3; n += 2)
            for (size_t to = 1; to + n <= b.n; to++)
                for (size_t from = to % ONE_OF; from + n <= b.n; from += ONE_OF) {
                    if (from == to)
                        continue;
                    fresh(&b);
                    copy_blocks(&b, to, from, n);
                    assert_true(repair_blocks(&b) >= least_kept(&b, form, to, n));
                }
        end(&b);
    }
}

static void blocks_that_changed_places(void **state) {
    (void)state;
    for (int form = 0; form < N_FORMS; form++) {
        blocks b = start(form);
        for (size_t i = 1; i < b.n; i++)
            for (size_t k = i + 1 + i % ONE_OF; k < b.n; k += ONE_OF) {
                fresh(&b);
                copy_blocks(&b, i, k, 1);
                copy_blocks(&b, k, i, 1);
                assert_true(repair_blocks(&b) >= PHOTONS_MAX - 5 * a_block(&b));
            }
        end(&b);
    }
}

/* All from block `from` on stands from block `to` on. */
static uint64_t repair_shifted(blocks *b, size_t to, size_t from) {
    size_t n = b->r->n_bytes - from * D7_BLOCK_BYTES;
    fresh(b);
    memcpy(b->bytes + to * D7_BLOCK_BYTES, b->r->bytes + from * D7_BLOCK_BYTES, n);
    return repair_bytes(b, to * D7_BLOCK_BYTES + n);
}

static void blocks_twice_and_left_out(void **state) {
    (void)state;
    for (int form = 0; form < N_FORMS; form++) {
        blocks b = start(form);
        for (size_t i = 1; i < b.n; i++) {
            assert_true(repair_shifted(&b, i + 1, i) >= i * a_block(&b));
            assert_true(repair_shifted(&b, i, i + 1) >= i * a_block(&b));
        }
        end(&b);
    }
}

/* A disk gives a block of an older file: its header, its islands, its pages. */
static void blocks_of_another_file(void **state) {
    (void)state;
    recording *other = recording_make(N_OTHER, 97, 2, true);
    for (int form = 0; form < N_FORMS; form++) {
        blocks b = start(form);
        for (size_t to = 1; to < b.n; to++)
            for (size_t from = to % ONE_OF; from < other->n_bytes / D7_BLOCK_BYTES; from += ONE_OF) {
                fresh(&b);
                memcpy(b.bytes + to * D7_BLOCK_BYTES, other->bytes + from * D7_BLOCK_BYTES, D7_BLOCK_BYTES);
                assert_true(repair_blocks(&b) >= least_kept(&b, form, to, 1));
            }
        end(&b);
    }
    recording_free(other);
}

/* Zeros from the beginning of a page to that of a later one, with the island between them. */
static void zeros_between_pages(void **state) {
    (void)state;
    uint64_t rng = 11;
    for (int form = 0; form < N_FORMS; form++) {
        blocks b = start(form);
        for (int i = 0; i < 60; i++) {
            put_source(b.r, b.r->bytes, b.r->n_bytes);
            uint64_t item = testing_random(&rng) % (PHOTONS_MAX * 3 / 4), more = testing_random(&rng) % 3000;
            uint64_t from = page_at(b.r, COLUMN_X, item).offset,
                     to = page_at(b.r, COLUMN_AAT, item + more).offset;
            if (to <= from)
                continue;
            fresh(&b);
            memset(b.bytes + from, 0, (size_t)(to - from));
            uint64_t kept = repair_blocks(&b);
            assert_true(kept >= (form % 2 ? PHOTONS_MAX - 7 * a_block(&b) : 0));
        }
        end(&b);
    }
}

/* Bytes taken out of a page, or put in: its length may still lead to a page of as many items. */
static void bytes_taken_out_and_put_in(void **state) {
    (void)state;
    uint64_t rng = 13;
    for (int form = 0; form < N_FORMS; form++) {
        blocks b = start(form);
        for (int i = 0; i < 150; i++) {
            size_t n = 1 + testing_random(&rng) % 60;
            put_source(b.r, b.r->bytes, b.r->n_bytes);
            d7_page_info page = page_at(b.r, COLUMN_X, testing_random(&rng) % (PHOTONS_MAX * 3 / 4));
            uint64_t at = page.offset + 20 + testing_random(&rng) % 100, rest = b.r->n_bytes - at;
            /* What reaches the next block is no page in any case. */
            if (at % D7_BLOCK_BYTES > D7_BLOCK_BYTES - 500)
                continue;
            fresh(&b);
            if (i % 2) {
                memcpy(b.bytes + at, b.r->bytes + at + n, rest - n);
                repair_bytes(&b, b.r->n_bytes - n);
            } else {
                memcpy(b.bytes + at + n, b.r->bytes + at, rest);
                repair_bytes(&b, b.r->n_bytes + n);
            }
        }
        end(&b);
    }
}

/* The only page of y is lost and the index names it: there are no rows without y. */
static void column_that_lost_all_is_in_use(void **state) {
    (void)state;
    blocks b = {.r = recording_make(100, 100, 1, true)};
    d7_page_info page = page_at(b.r, COLUMN_Y, 0);
    d7_repair_report report;
    b.bytes = malloc(b.r->n_bytes + D7_BLOCK_BYTES);
    fresh(&b);
    memset(b.bytes + page.offset, 0, 2u + (bytes_load16(b.bytes + page.offset) & 0x3FFF));
    memset(b.bytes + b.r->n_bytes - 20, 0, 20); /* the epilogue */
    put_source(b.r, b.bytes, b.r->n_bytes);
    repair_and_check(b.r, &report);
    assert_int_equal(report.datasets[COLUMN_X].kept, 0);
    assert_true(report.datasets[COLUMN_Y].more_lost);
    d7_repair_report_free(&report);
    end(&b);
}

/* ---- lists ---- */

enum { LISTS_MAX = 64, BITS = 60 };

/* Where index entries begin, and how long they are. */
static size_t find_lists(const blocks *b, uint64_t at[LISTS_MAX], size_t bytes[LISTS_MAX]) {
    const d7_alloc alloc = d7__alloc_or_default(NULL);
    d7__source s = {0};
    d7__framing f = {.source = &s};
    size_t n = 0;
    put_source(b->r, b->r->bytes, b->r->n_bytes);
    assert_int_equal(d7__source_open(&s, source_path, disk_io(b->r->disk), &alloc, NULL), 0);
    assert_int_equal(d7__source_measure(&s, NULL), 0);
    for (uint64_t from = 0; n < LISTS_MAX;) {
        d7__found found;
        d7__entry e;
        d7__kind kind;
        d7__cursor body;
        assert_int_equal(d7__entry_next(&f, from, &found, &e, NULL), 0);
        if (found != D7__FOUND_ENTRY)
            break;
        from = e.next;
        if (!d7__entry_kind(e.data, e.bytes, &kind, &body) || kind != D7__KIND_INDEX || e.bytes < 200)
            continue;
        at[n] = e.offset;
        bytes[n++] = e.bytes;
    }
    d7__framing_free(&f);
    d7__source_close(&s);
    return n;
}

/* Every page is whole, so that none has to be lost, and none may be told for another. */
static void lists_with_a_bit_changed(void **state) {
    (void)state;
    uint64_t rng = 17, at[LISTS_MAX];
    size_t bytes[LISTS_MAX];
    for (int form = 0; form < N_FORMS; form++) {
        blocks b = start(form);
        size_t n = find_lists(&b, at, bytes);
        assert_true(n > 0);
        for (int i = 0; i < BITS; i++) {
            size_t k = testing_random(&rng) % n;
            uint64_t place =
                at[k] + 2 + testing_random(&rng) % (bytes[k] * 3 / 4); /* attributes are behind */
            fresh(&b);
            b.bytes[place] ^= (uint8_t)(1u << testing_random(&rng) % 8);
            put_source(b.r, b.bytes, b.r->n_bytes);
            d7_repair_report report;
            repair_and_check(b.r, &report);
            if (form % 2)
                assert_true(report.datasets[COLUMN_X].kept >= PHOTONS_MAX - 3 * a_block(&b));
            d7_repair_report_free(&report);
        }
        end(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_over_others),
                                       cmocka_unit_test(blocks_that_changed_places),
                                       cmocka_unit_test(blocks_twice_and_left_out),
                                       cmocka_unit_test(blocks_of_another_file),
                                       cmocka_unit_test(zeros_between_pages),
                                       cmocka_unit_test(bytes_taken_out_and_put_in),
                                       cmocka_unit_test(column_that_lost_all_is_in_use),
                                       cmocka_unit_test(lists_with_a_bit_changed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
