#include "merge_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

/* ---- looking into the parts ---- */

/* Where it begins: a first part of a recording may say only that it is number 0. Returns false when memory runs out. */
static bool read_place(merge_part *part, const attribute_list *list) {
    const char *cut = attribute_value(list, "photond.cut");
    static const char *const keys[N_SETS] = {NULL, "photond.first_photon", "photond.first_tag",
                                             "photond.first_ms"};
    part->mark = records_mark(list);
    part->has_number = records_number(list, "photond.part", &part->number);
    for (unsigned set = SET_PHOTONS; set < N_SETS; set++)
        part->knows[set] =
            records_number(list, keys[set], &part->first[set]) || (part->has_number && part->number == 0);
    part->cut = cut ? strdup(cut) : NULL;
    return part->cut || !cut;
}

static int match_datasets(const transfer_input *in, const d7_dataset *datasets, size_t n, uint32_t *ids) {
    d7_dataset_info info;
    for (size_t i = 0; i < n; i++)
        if (d7_reader_find_dataset(in->reader, datasets[i].name, &ids[i]) != 0 ||
            d7_reader_dataset(in->reader, ids[i], &info) != 0 || info.type != datasets[i].type)
            return command_fail(in->self, "%s: there is no dataset %s of type %s as in the first part",
                                in->path, datasets[i].name, d7_type_name(datasets[i].type));
    if (in->n_datasets == n)
        return 0;
    return command_fail(in->self, "%s: there are %" PRIu32 " datasets, in the first part %zu", in->path,
                        in->n_datasets, n);
}

static void read_lengths(merge_part *part, const transfer_input *in) {
    d7_dataset_info info;
    set_lengths lengths = input_lengths(in);
    for (uint32_t i = 0; i < in->n_datasets && d7_reader_dataset(in->reader, i, &info) == 0; i++) {
        uint64_t items = input_items(in, &lengths, i);
        column_set set = in->sets[i];
        part->bytes += items * d7_type_size(info.type);
        if (set == SET_OWN)
            continue;
        part->rows[set] = set == SET_MS ? items : lengths.rows[set];
        part->ragged |= in->grouped && set != SET_MS && items && items != part->rows[set];
    }
}

static int look_into(const merge_parts *m, merge_part *part, const transfer_input *in) {
    attribute_list list = {0};
    bool *wanted = malloc(in->n_datasets + 1u);
    if (!wanted)
        return command_fail(m->self, "out of memory");
    memset(wanted, 1, in->n_datasets + 1u);
    transfer_cut all = cut_of_all();
    int code = input_compare(in);
    if (code == 0)
        code = input_judge(in, wanted, &all);
    if (code == 0)
        code = input_attributes(in, &list);
    if (code == 0) {
        input_tell_trimmed(in, wanted);
        read_lengths(part, in);
        if (!read_place(part, &list))
            code = command_fail(m->self, "out of memory");
    }
    free(wanted);
    attribute_free(&list);
    return code;
}

int merge_survey(merge_parts *m) {
    int code = 0;
    for (size_t i = 0; i < m->n && code == 0; i++) {
        transfer_input in;
        code = input_open(&in, m->self, m->parts[i].path, &m->options);
        if (code != 0)
            return code;
        code = look_into(m, &m->parts[i], &in);
        input_close(&in);
    }
    return code;
}

int merge_open(const merge_parts *m, const merge_part *part, const d7_dataset *datasets, size_t n,
               transfer_input *ret, uint32_t *ids) {
    int code = input_open(ret, m->self, part->path, &m->options);
    if (code != 0)
        return code;
    merge_part now = {0};
    code = match_datasets(ret, datasets, n, ids);
    if (code == 0) {
        read_lengths(&now, ret);
        if (memcmp(now.rows, part->rows, sizeof now.rows) != 0)
            code = command_fail(m->self, "%s: has changed meanwhile", part->path);
    }
    if (code != 0)
        input_close(ret);
    return code;
}

/* ---- order ---- */

static int compare(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static int compare_firsts(const merge_part *a, const merge_part *b, column_set set) {
    return a->knows[set] && b->knows[set] ? compare(a->first[set], b->first[set]) : 0;
}

/* Of parts that begin with the same photon all but one are without any. The last tells the millisecond that it shares with those
 * before, which an empty one does not have. */
static int compare_places(const void *left, const void *right) {
    const merge_part *a = left, *b = right;
    int order = 0;
    for (column_set set = SET_PHOTONS; set < N_SETS && order == 0; set++)
        order = set == SET_MS ? 0 : compare_firsts(a, b, set);
    if (order == 0 && a->has_number && b->has_number)
        order = compare(a->number, b->number);
    if (order == 0)
        order = compare_firsts(a, b, SET_MS);
    return order ? order : compare(a->given, b->given);
}

/* Do all of them tell where they begin? */
static bool all_know(const merge_parts *m) {
    for (size_t i = 0; i < m->n; i++) {
        const merge_part *p = &m->parts[i];
        if (!p->has_number && !p->knows[SET_PHOTONS] && !p->knows[SET_TAGS])
            return false;
    }
    return true;
}

static void sort(merge_parts *m) {
    qsort(m->parts, m->n, sizeof *m->parts, compare_places);
    bool moved = false;
    for (size_t i = 0; i < m->n; i++)
        moved |= m->parts[i].given != i;
    if (moved)
        command_fail(m->self, "the parts are put in the order that they tell, which is not the order given");
}

/* ---- does one follow the other? ---- */

static const char *set_name(column_set set) {
    return set == SET_TAGS ? "tags" : set == SET_MS ? "milliseconds" : "photons";
}

/* The part says that it begins with `first`, and those before end before `expected`. */
static int misplaced(const merge_parts *m, size_t i, column_set set, uint64_t expected) {
    const merge_part *part = &m->parts[i], *before = &m->parts[i - 1];
    uint64_t first = part->first[set];
    if (first > expected)
        return command_fail(m->self,
                            "%s: %s %" PRIu64 " to %" PRIu64
                            " are missing between %s and this part; --force merges all "
                            "the same",
                            part->path, set_name(set), expected, first - 1, before->path);
    return command_fail(m->self,
                        "%s: begins with %s %" PRIu64 ", which %s has too or comes after; --force merges all "
                        "the same, in the order given",
                        part->path, set_name(set), first, before->path);
}

/* The milliseconds of a part may begin with the one that the part before ends in. */
static int check_ms(const merge_parts *m, size_t i, uint64_t expected) {
    merge_part *part = &m->parts[i];
    if (part->first[SET_MS] > expected || expected - part->first[SET_MS] > 1 || part->rows[SET_MS] == 0)
        return part->first[SET_MS] == expected ? 0 : misplaced(m, i, SET_MS, expected);
    part->repeated_ms = expected - part->first[SET_MS];
    return 0;
}

static int check_place(const merge_parts *m, size_t i, column_set set, uint64_t expected) {
    if (set == SET_MS)
        return check_ms(m, i, expected);
    return m->parts[i].first[set] == expected ? 0 : misplaced(m, i, set, expected);
}

/* Does it tell the very place that the one before it tells? Parts without photons may begin there all the same, but each has
 * a number of its own. */
static bool is_same_part(const merge_part *a, const merge_part *b) {
    if ((!a->has_number && !a->cut) || a->has_number != b->has_number || a->number != b->number ||
        (a->cut == NULL) != (b->cut == NULL) || (a->cut && strcmp(a->cut, b->cut) != 0))
        return false;
    for (unsigned set = SET_PHOTONS; set < N_SETS; set++)
        if (a->knows[set] != b->knows[set] || a->first[set] != b->first[set])
            return false;
    return true;
}

/* Is there a set of columns of which both tell where they begin? */
static bool both_know(const merge_part *a, const merge_part *b) {
    bool know = false;
    for (unsigned set = SET_PHOTONS; set < N_SETS; set++)
        know |= a->knows[set] && b->knows[set] && (a->rows[set] || b->rows[set]);
    return know;
}

/* Where nothing else tells, the numbers of the parts do: they go up one by one. */
static int check_number(const merge_parts *m, size_t i) {
    const merge_part *part = &m->parts[i], *before = &m->parts[i - 1];
    if (!part->has_number || !before->has_number || both_know(before, part))
        return 0;
    uint64_t last = before->number + before->mark.last - before->mark.number;
    if (part->number == last + 1)
        return 0;
    return command_fail(m->self,
                        "%s: is part %" PRIu64 " of a recording, and %s part %" PRIu64
                        ": %s; --force merges all the same, in the order given",
                        part->path, part->number, before->path, last,
                        part->number > last ? "what is between them is missing"
                                            : "nothing tells which comes first");
}

/* Counts what comes before each part. A part that tells where it begins is held against the one before that does. */
static int place_parts(merge_parts *m) {
    uint64_t expected[N_SETS] = {0}, base[N_SETS] = {0};
    bool known[N_SETS] = {false};
    for (size_t i = 0; i < m->n; i++) {
        merge_part *part = &m->parts[i];
        if (i > 0 && !m->force && is_same_part(&m->parts[i - 1], part))
            return command_fail(m->self, "%s: is the same part as %s; --force merges all the same",
                                part->path, m->parts[i - 1].path);
        for (column_set set = SET_PHOTONS; set < N_SETS; set++) {
            part->base[set] = base[set];
            bool counts = part->knows[set] && !m->force;
            int code = counts && known[set] ? check_place(m, i, set, expected[set]) : 0;
            if (code != 0)
                return code;
            uint64_t fresh = part->rows[set] - (set == SET_MS ? part->repeated_ms : 0);
            expected[set] = counts && !known[set] ? part->first[set] + fresh : expected[set] + fresh;
            known[set] |= counts;
            base[set] += fresh;
        }
        int code = i > 0 && !m->force ? check_number(m, i) : 0;
        if (code != 0)
            return code;
    }
    return 0;
}

/* Where the parts begin tells what is missing in between; that none is missing before and after, the marks of a split do. */
static int check_whole(const merge_parts *m) {
    const merge_part *first = &m->parts[0], *last = &m->parts[m->n - 1];
    if (first->mark.number > 1)
        return command_fail(
            m->self,
            "%s: is part %" PRIu64
            " of what was split, and those before it are missing; --partial merges all the same",
            first->path, first->mark.number);
    if (last->mark.number && !last->mark.of)
        return command_fail(
            m->self,
            "%s: is not the last part of what was split, and those after it are missing; --partial "
            "merges all the same",
            last->path);
    return 0;
}

int merge_order(merge_parts *m) {
    if (!m->force && all_know(m))
        sort(m);
    for (size_t i = 0; i + 1 < m->n; i++)
        if (m->parts[i].ragged) {
            command_fail(
                m->self,
                "%s: its columns have unequal lengths, so that what follows would not belong together; "
                "d7 repair trims them",
                m->parts[i].path);
            return CLI_PROBLEMS;
        }
    int code = place_parts(m);
    return code == 0 && !m->force && !m->partial ? check_whole(m) : code;
}

void merge_free(merge_parts *m) {
    for (size_t i = 0; m->parts && i < m->n; i++)
        free(m->parts[i].cut);
    free(m->parts);
    m->parts = NULL;
}
