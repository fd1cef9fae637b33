/* What the values of a recording must be: positions and micro times within their bits, milliseconds that do
 * not go back and point at photons that there are, columns of equal length. None of this is a rule of the
 * format: what breaks it is reported as D7_DATA. Source: the D7 specification, section 6. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "verify.h"

enum { MS_PIECE = 512 };
static const char position_bits[] = "/photons/PositionBits", tac_bits[] = "/photons/TacBits";

/* ---- what is asked ---- */

/* The value of an attribute that says a number of bits; 0 where it is missing or says none. */
static unsigned attribute_bits(d7__verifier *v, const char *key) {
    const char *text = d7_reader_find_attribute(v->r, key);
    if (!text)
        return 0;
    char *end;
    errno = 0;
    unsigned long bits = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
    if (bits >= 1 && bits <= 64 && errno == 0 && !*end)
        return (unsigned)bits;
    d7_problem p = d7__problem(D7_PROBLEM_ATTRIBUTE_VALUE, D7_NO_OFFSET,
                               "%s is \"%.40s\", which is no number of bits", key, text);
    d7__problems_add(&v->r->problems, &p);
    return 0;
}

static bool is_integer(d7_type type) {
    return type != D7_FLOAT && type != D7_DOUBLE;
}

void d7__verify_learn_columns(d7__verifier *v) {
    const d7_reader *r = v->r;
    unsigned position = attribute_bits(v, position_bits), tac = attribute_bits(v, tac_bits);
    for (size_t i = 0; i < r->header.n_datasets; i++) {
        d7__column *c = &v->columns[i];
        d7_type type = r->header.datasets[i].type;
        d7_role role = is_integer(type) ? d7_role_of(r->header.datasets[i].name) : D7_ROLE_OTHER;
        c->is_ms = role == D7_ROLE_MS;
        c->bits = role == D7_ROLE_X || role == D7_ROLE_Y ? position : role == D7_ROLE_MICRO_TIME ? tac : 0;
        c->bits_from = role == D7_ROLE_MICRO_TIME ? tac_bits : position_bits;
        if (c->bits >= 8 * d7_type_size(type))
            c->bits = 0;
    }
}

/* ---- values of a page ---- */

static uint64_t load(const uint8_t *values, size_t i, size_t size) {
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (size) {
    case 1:
        return values[i];
    case 2:
        memcpy(&v16, values + 2 * i, sizeof v16);
        return v16;
    case 4:
        memcpy(&v32, values + 4 * i, sizeof v32);
        return v32;
    default:
        memcpy(&v64, values + 8 * i, sizeof v64);
        return v64;
    }
}

/* The bits that any of the values has: a word of several values at a time, whatever their size. */
static uint64_t all_bits(const uint8_t *values, size_t n, size_t size) {
    uint64_t all[4] = {0}, word[4];
    size_t bytes = n * size, at = 0;
    for (; bytes - at >= sizeof word; at += sizeof word) {
        memcpy(word, values + at, sizeof word);
        for (size_t k = 0; k < 4; k++)
            all[k] |= word[k];
    }
    memset(word, 0, sizeof word);
    memcpy(word, values + at, bytes - at);
    uint64_t sum = all[0] | all[1] | all[2] | all[3] | word[0] | word[1] | word[2] | word[3];
    for (unsigned width = 64; width > 8 * size; width /= 2)
        sum |= sum >> width / 2;
    return size == 8 ? sum : sum & ((UINT64_C(1) << 8 * size) - 1);
}

/* Wrong values of one page. */
typedef struct wrong {
    size_t first, last, n;
} wrong;

static void add_wrong(wrong *w, size_t i) {
    if (w->n++ == 0)
        w->first = i;
    w->last = i;
}

static void report_wrong(d7__verifier *v, const char *kind, size_t page, const wrong *w, d7_problem *p,
                         uint32_t ds, uint64_t first) {
    p->dataset_id = ds;
    p->first_item = first + w->first;
    p->n_items = w->last - w->first + 1;
    d7__verify_fault(v, D7__FAULT_VALUES, kind, page, p, w->n);
}

static void check_bits(d7__verifier *v, uint32_t ds, size_t page, uint64_t first, const uint8_t *values,
                       size_t n) {
    static const char kind[] = "bits";
    const d7__column *c = &v->columns[ds];
    size_t size = d7_type_size(v->r->header.datasets[ds].type);
    uint64_t largest = (UINT64_C(1) << c->bits) - 1;
    if (all_bits(values, n, size) <= largest)
        return;
    wrong w = {0};
    for (size_t i = 0; i < n; i++)
        if (load(values, i, size) > largest)
            add_wrong(&w, i);
    d7_problem p =
        d7__problem(D7_PROBLEM_VALUE_RANGE, d7__map_offset(&v->r->datasets[ds], page),
                    "item %" PRIu64 " is %" PRIu64 ", but the largest value of %s (%u) is %" PRIu64,
                    first + w.first, load(values, w.first, size), c->bits_from, c->bits, largest);
    report_wrong(v, kind, page, &w, &p, ds, first);
}

static void check_ms(d7__verifier *v, uint32_t ds, size_t page, uint64_t first, const uint8_t *values,
                     size_t n) {
    static const char kind[] = "order";
    d7__column *c = &v->columns[ds];
    size_t size = d7_type_size(v->r->header.datasets[ds].type);
    wrong w = {0};
    uint64_t last = c->last_ms, before = 0, value = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = load(values, i, size);
        if (x < last) {
            before = w.n ? before : last;
            value = w.n ? value : x;
            add_wrong(&w, i);
        }
        c->largest_ms = x > c->largest_ms ? x : c->largest_ms;
        last = x;
    }
    c->last_ms = last;
    if (w.n == 0)
        return;
    d7_problem p =
        d7__problem(D7_PROBLEM_MS_ORDER, d7__map_offset(&v->r->datasets[ds], page),
                    "item %" PRIu64 " is %" PRIu64 ", after %" PRIu64 ": the index of a photon went back",
                    first + w.first, value, before);
    report_wrong(v, kind, page, &w, &p, ds, first);
}

void d7__verify_values(d7__verifier *v, uint32_t ds, size_t page, uint64_t first, const uint8_t *values,
                       size_t n) {
    if (v->columns[ds].bits)
        check_bits(v, ds, page, first, values, n);
    if (v->columns[ds].is_ms)
        check_ms(v, ds, page, first, values, n);
}

/* ---- the end ---- */

/* The longest column of a group; false when the file has none, or it is not known how long one is. */
static bool longest_of(const d7__verifier *v, d7_group group, uint32_t *ret_ds) {
    bool there = false;
    for (uint32_t i = 0; i < v->r->header.n_datasets; i++) {
        if (d7_group_of(v->r->header.datasets[i].name) != group)
            continue;
        if (v->columns[i].unknown_end)
            return false;
        if (!there || v->columns[i].items > v->columns[*ret_ds].items)
            *ret_ds = i;
        there = true;
    }
    return there;
}

/* A dataset that was never written to is no column. */
static void check_lengths(d7__verifier *v, d7_group group) {
    uint32_t longest = 0;
    if (!longest_of(v, group, &longest))
        return;
    for (uint32_t i = 0; i < v->r->header.n_datasets; i++) {
        uint64_t items = v->columns[i].items, most = v->columns[longest].items;
        if (d7_group_of(v->r->header.datasets[i].name) != group || items == 0 || items == most)
            continue;
        d7_problem p = d7__problem(D7_PROBLEM_RAGGED, D7_NO_OFFSET,
                                   "the column holds %" PRIu64 " items, %.100s holds %" PRIu64, items,
                                   v->r->header.datasets[longest].name, most);
        p.dataset_id = i;
        p.first_item = items;
        p.n_items = most - items;
        d7__problems_add(&v->r->problems, &p);
    }
}

/* Milliseconds that begin after the last photon: found by reading them again. */
static int find_late(d7__verifier *v, uint32_t ds, uint64_t photons, d7_error *err) {
    uint64_t buffer[MS_PIECE], first = 0, last = 0, value = 0, n_late = 0;
    size_t size = d7_type_size(v->r->header.datasets[ds].type);
    d7_dataset_info info = {0};
    d7_error failure;
    for (uint64_t at = 0; d7_reader_dataset(v->r, ds, &info) == 0 && at < info.items; at += MS_PIECE) {
        size_t n = info.items - at < MS_PIECE ? (size_t)(info.items - at) : MS_PIECE;
        int rc = d7_reader_read(v->r, ds, at, n, buffer, &failure);
        if (rc == D7_ERR_CORRUPT)
            continue;
        if (rc != 0)
            return d7__passed_on(rc, &failure, err);
        for (size_t i = 0; i < n; i++) {
            uint64_t x = load((const uint8_t *)buffer, i, size);
            if (x <= photons)
                continue;
            first = n_late ? first : at + i;
            value = n_late++ ? value : x;
            last = at + i;
        }
    }
    d7_problem p = d7__problem(D7_PROBLEM_MS_RANGE, D7_NO_OFFSET,
                               "item %" PRIu64 " is %" PRIu64 ", but there are %" PRIu64
                               " photons; such values: %" PRIu64,
                               first, value, photons, n_late);
    p.dataset_id = ds;
    p.first_item = first;
    p.n_items = last - first + 1;
    if (n_late)
        d7__problems_add(&v->r->problems, &p);
    return 0;
}

int d7__verify_columns(d7__verifier *v, d7_error *err) {
    uint32_t longest = 0;
    check_lengths(v, D7_GROUP_PHOTONS);
    check_lengths(v, D7_GROUP_TAGS);
    if (!longest_of(v, D7_GROUP_PHOTONS, &longest))
        return 0;
    uint64_t photons = v->columns[longest].items;
    int rc = 0;
    for (uint32_t i = 0; i < v->r->header.n_datasets && rc == 0; i++)
        if (v->columns[i].is_ms && v->columns[i].largest_ms > photons)
            rc = find_late(v, i, photons, err);
    return rc;
}
