#include "transfer_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "result.h"
#include "transfer_records.h"

/* ---- sets ---- */

static column_set set_of(const char *name) {
    d7_group group = d7_group_of(name);
    return d7_role_of(name) == D7_ROLE_MS ? SET_MS
           : group == D7_GROUP_PHOTONS    ? SET_PHOTONS
           : group == D7_GROUP_TAGS       ? SET_TAGS
                                          : SET_OWN;
}

/* Datasets of no group, all of one length, are rows too. */
static void join_equal(transfer_input *in) {
    d7_dataset_info info;
    uint64_t items = UINT64_MAX;
    for (uint32_t i = 0; i < in->n_datasets; i++) {
        if (in->sets[i] == SET_MS || d7_reader_dataset(in->reader, i, &info) != 0)
            return;
        if (items != UINT64_MAX && items != info.items)
            return;
        items = info.items;
    }
    for (uint32_t i = 0; i < in->n_datasets; i++)
        in->sets[i] = SET_PHOTONS;
}

static int sort_datasets(transfer_input *in) {
    d7_dataset_info info;
    in->n_datasets = (uint32_t)d7_reader_n_datasets(in->reader);
    in->ms = D7_NO_DATASET;
    in->sets = calloc(in->n_datasets + 1u, sizeof *in->sets);
    if (!in->sets)
        return command_fail(in->self, "out of memory");
    for (uint32_t i = 0; i < in->n_datasets && d7_reader_dataset(in->reader, i, &info) == 0; i++) {
        in->sets[i] = set_of(info.name);
        in->grouped |= in->sets[i] == SET_PHOTONS || in->sets[i] == SET_TAGS;
        if (in->sets[i] != SET_MS)
            continue;
        if (info.type != D7_UINT64 && info.type != D7_INT64)
            return command_fail(in->self,
                                "%s: dataset %s is of type %s, not uint64: its milliseconds cannot be told",
                                in->path, info.name, d7_type_name(info.type));
        in->ms = i;
    }
    if (!in->grouped)
        join_equal(in);
    return 0;
}

int input_open(transfer_input *ret, const command *self, const char *path, const input_options *options) {
    *ret = (transfer_input){.self = self, .path = path, .skip_damaged = options->skip_damaged};
    ret->executor = (d7_executor){options->pool, cli_pool_submit, cli_pool_wait};
    int code = command_open(self, path, options->unframed, options->pool, &ret->reader);
    if (code != 0)
        return code;
    ret->trimmed = d7_reader_state(ret->reader) != D7_STATE_CLOSED || ret->skip_damaged;
    code = options->count ? input_count(ret) : 0;
    if (code == 0)
        code = sort_datasets(ret);
    if (code != 0)
        input_close(ret);
    return code;
}

static int stopped(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx, (void)done, (void)total;
    return cli_stopped;
}

int input_count(const transfer_input *in) {
    d7_error err;
    int rc = d7_reader_check(in->reader, stopped, NULL, &err);
    return rc == 0                  ? 0
           : rc == D7_ERR_CANCELLED ? command_stopped_code(in->self)
                                    : command_fail(in->self, "%s", err.text);
}

int input_compare(const transfer_input *in) {
    return command_compare(in->self, in->reader);
}

void input_close(transfer_input *in) {
    d7_reader_free(in->reader);
    free(in->sets);
    in->reader = NULL;
    in->sets = NULL;
}

/* ---- lengths ---- */

static uint64_t all_items(const transfer_input *in, uint32_t dataset_id) {
    d7_dataset_info info;
    return d7_reader_dataset(in->reader, dataset_id, &info) == 0 ? info.items : 0;
}

bool input_has(const transfer_input *in, column_set set) {
    for (uint32_t i = 0; i < in->n_datasets; i++)
        if (in->sets[i] == set)
            return true;
    return false;
}

uint64_t input_rows(const transfer_input *in, column_set set) {
    uint64_t shortest = UINT64_MAX;
    if (in->grouped && (set == SET_PHOTONS || set == SET_TAGS))
        return d7_reader_group_items(in->reader, set == SET_TAGS ? D7_GROUP_TAGS : D7_GROUP_PHOTONS);
    for (uint32_t i = 0; i < in->n_datasets; i++)
        if (in->sets[i] == set && all_items(in, i) < shortest)
            shortest = all_items(in, i);
    return shortest == UINT64_MAX ? 0 : shortest;
}

set_lengths input_lengths(const transfer_input *in) {
    set_lengths lengths = {.ms = in->ms == D7_NO_DATASET ? 0 : all_items(in, in->ms)};
    for (column_set set = SET_PHOTONS; set < N_SETS; set++)
        lengths.rows[set] = input_rows(in, set);
    if (in->trimmed && in->ms != D7_NO_DATASET && input_has(in, SET_PHOTONS))
        lengths.ms = milliseconds_within(in->reader, in->ms, input_rows(in, SET_PHOTONS));
    return lengths;
}

uint64_t input_items(const transfer_input *in, const set_lengths *lengths, uint32_t dataset_id) {
    column_set set = in->sets[dataset_id];
    uint64_t items = all_items(in, dataset_id);
    if (dataset_id == in->ms)
        return lengths->ms;
    return in->trimmed && (set == SET_PHOTONS || set == SET_TAGS) && items ? lengths->rows[set] : items;
}

int input_ms_bounds(const transfer_input *in, uint64_t row, uint64_t *ret_first, uint64_t *ret_end) {
    d7_error err;
    uint64_t ms, first = 0;
    int rc = d7_reader_ms_of_photon(in->reader, row, &ms, &err);
    if (rc == D7_ERR_NOTFOUND) {
        *ret_first = *ret_end = 0;
        return 0;
    }
    if (rc == D7_ERR_ARG) { /* past the last photon: nothing of the milliseconds is */
        *ret_first = *ret_end = all_items(in, in->ms);
        return 0;
    }
    if (rc == 0)
        rc = d7_reader_read(in->reader, in->ms, ms, 1, &first, &err);
    if (rc != 0)
        return input_fail(in, &err);
    *ret_first = ms;
    *ret_end = first < row ? ms + 1 : ms;
    return 0;
}

/* ---- attributes ---- */

static bool writable(const d7_attribute *a) {
    return a->key_bytes && strlen(a->key) == a->key_bytes && strlen(a->value) == a->value_bytes &&
           common_utf8_valid(a->key, a->key_bytes) && common_utf8_valid(a->value, a->value_bytes);
}

/* The same text with the dataset's name in place of its number, in new memory; NULL: out of memory. */
static char *with_name(const char *json, const common_record *record, const d7_dataset_info *info) {
    char *text = NULL;
    size_t bytes;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return NULL;
    fprintf(memory, "%.*s", (int)record->number_at, json);
    (void)cli_write_json_text(memory, info->name, info->name_bytes);
    fputs(json + record->number_at + record->number_bytes, memory);
    if (fclose(memory) == 0)
        return text;
    free(text);
    return NULL;
}

/* Records that tell a dataset by its number tell its name then: in another file another dataset may have that number. */
static bool name_datasets(const transfer_input *in, attribute_list *list) {
    for (attribute_node *node = list->first; node; node = node->next) {
        common_record record;
        d7_dataset_info info;
        if (!record_has_item(node->key) || !common_record_read(node->value, strlen(node->value), &record) ||
            record.number_bytes == 0 || record.dataset_number >= in->n_datasets ||
            d7_reader_dataset(in->reader, (uint32_t)record.dataset_number, &info) != 0)
            continue;
        char *text = with_name(node->value, &record, &info);
        if (!text)
            return false;
        free(node->value);
        node->value = text;
    }
    return true;
}

int input_attributes(const transfer_input *in, attribute_list *list) {
    d7_attribute a;
    for (size_t i = 0; d7_reader_attribute(in->reader, i, &a) == 0; i++) {
        if (writable(&a)) {
            if (!attribute_put(list, NULL, a.key, a.value))
                return command_fail(in->self, "out of memory");
            continue;
        }
        command_fail(in->self, "%s: attribute %zu is no valid text%s", in->path, i,
                     in->skip_damaged ? "; it is left out" : "; --skip-damaged leaves it out");
        if (!in->skip_damaged)
            return CLI_PROBLEMS;
    }
    return name_datasets(in, list) ? 0 : command_fail(in->self, "out of memory");
}

/* ---- cuts ---- */

transfer_cut cut_of_all(void) {
    transfer_cut cut = {.own = true};
    for (unsigned i = 0; i < N_SETS; i++)
        cut.to[i] = UINT64_MAX;
    return cut;
}

item_range cut_range(const transfer_input *in, const set_lengths *lengths, const transfer_cut *cut,
                     uint32_t dataset_id) {
    column_set set = in->sets[dataset_id];
    uint64_t items = input_items(in, lengths, dataset_id);
    if (set == SET_OWN && in->grouped)
        return (item_range){0, cut->own ? items : 0};
    if (set == SET_OWN)
        set = SET_PHOTONS;
    uint64_t to = cut->to[set] < items ? cut->to[set] : items;
    return (item_range){cut->from[set] < to ? cut->from[set] : to, to};
}

/* ---- damage ---- */

int input_fail(const transfer_input *in, const d7_error *err) {
    if (err->code != D7_ERR_CORRUPT)
        return command_fail(in->self, "%s", err->text);
    command_fail(in->self,
                 "%s; --skip-damaged leaves such items out, d7 repair makes a whole file of what is good",
                 err->text);
    return CLI_PROBLEMS;
}

/* Of pages that decode, but not to what was recorded. The millisecond where a range ends counts with it. */
static bool changed_stops(const transfer_input *in, const d7_problem *p, const bool *wanted,
                          const transfer_cut *cut) {
    if (p->dataset_id >= in->n_datasets)
        return true;
    set_lengths lengths = input_lengths(in);
    item_range range = cut_range(in, &lengths, cut, p->dataset_id);
    bool ms = p->dataset_id == in->ms;
    return wanted[p->dataset_id] && p->first_item < range.to + ms &&
           p->first_item + p->n_items > range.from && (ms || !in->skip_damaged);
}

/* At the end of what is wanted: a damaged page, whose items nobody can count, or a tail that cannot be used. */
static bool is_lost_end(const transfer_input *in, const d7_problem *p, const bool *wanted,
                        const transfer_cut *cut) {
    if (cut->to[SET_PHOTONS] != UINT64_MAX)
        return false;
    return p->code == D7_PROBLEM_TAIL ||
           (p->code == D7_PROBLEM_BAD_PAGE && p->dataset_id < in->n_datasets && wanted[p->dataset_id] &&
            p->first_item >= all_items(in, p->dataset_id));
}

bool input_lost_end(const transfer_input *in, const bool *wanted, const transfer_cut *cut) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(in->reader, i, &p) == 0; i++)
        if (is_lost_end(in, &p, wanted, cut))
            return true;
    return false;
}

/* Does it keep what is wanted from being moved? Damaged pages are met on the way, but for those at the end. */
static bool stops(const transfer_input *in, const d7_problem *p, const bool *wanted,
                  const transfer_cut *cut) {
    if (p->severity != D7_DAMAGE)
        return false;
    if (p->code == D7_PROBLEM_BAD_PAGE)
        return is_lost_end(in, p, wanted, cut) && (!in->skip_damaged || p->dataset_id == in->ms);
    if (p->code == D7_PROBLEM_TAIL)
        return is_lost_end(in, p, wanted, cut) && !in->skip_damaged;
    if (p->code == D7_PROBLEM_CHECKSUM)
        return changed_stops(in, p, wanted, cut);
    return problem_hides_pages(p) || (p->code == D7_PROBLEM_UNKNOWN_DATASET && !in->skip_damaged);
}

int input_judge(const transfer_input *in, const bool *wanted, const transfer_cut *cut) {
    int code = 0;
    bool hidden = false, changed = false;
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(in->reader, i, &p) == 0; i++) {
        if (p.severity == D7_DAMAGE)
            print_problem(stderr, in->path, &p, in->reader);
        hidden |= problem_hides_pages(&p);
        if (!stops(in, &p, wanted, cut))
            continue;
        changed |= p.code == D7_PROBLEM_CHECKSUM;
        code = CLI_PROBLEMS;
    }
    if (hidden)
        command_fail(in->self,
                     "%s: pages may be missing, so that columns would not belong together; d7 repair makes a "
                     "whole file of what is good",
                     in->path);
    else if (changed)
        command_fail(
            in->self,
            "%s: by its checksums some bytes are not what was written; --skip-damaged leaves such items out "
            "(milliseconds only as a whole, by --exclude), d7 repair makes a whole file of what is good",
            in->path);
    else if (code != 0)
        command_fail(in->self,
                     "%s: items are damaged; --skip-damaged leaves such items out (milliseconds only as a "
                     "whole, by --exclude)",
                     in->path);
    return code;
}

/* ---- records of a cut ---- */

typedef struct cut_map {
    const transfer_cut *cut;
    set_lengths lengths;
} cut_map;

/* A record before an item goes with it; one at the end of the file with the end. */
static bool map_record(void *ctx, d7_group group, const common_record *own, uint64_t item,
                       uint64_t *ret_item) {
    const cut_map *map = ctx;
    if (own && group == D7_GROUP_NONE) {
        *ret_item = item;
        return map->cut->own;
    }
    column_set set = group == D7_GROUP_TAGS ? SET_TAGS : SET_PHOTONS;
    uint64_t from = map->cut->from[set], to = map->cut->to[set], end = map->lengths.rows[set];
    bool last = to == UINT64_MAX || (end && to >= end);
    if (item < from || (item >= to && !last))
        return false;
    *ret_item = item - from;
    return true;
}

/* Datasets on their own are never cut where there are photons or tags; where there are none, all are cut as photons are. */
bool input_map_records(const transfer_input *in, attribute_list *list, record_map *map, void *ctx) {
    bool tags = in->grouped && !input_has(in, SET_PHOTONS);
    d7_group usual = tags ? D7_GROUP_TAGS : D7_GROUP_PHOTONS;
    return records_map(list, usual, in->grouped ? D7_GROUP_NONE : usual, map, ctx);
}

bool cut_records(const transfer_input *in, const transfer_cut *cut, attribute_list *list) {
    cut_map map = {cut, input_lengths(in)};
    return input_map_records(in, list, map_record, &map);
}

void input_tell_trimmed(const transfer_input *in, const bool *wanted) {
    d7_dataset_info info;
    set_lengths lengths = input_lengths(in);
    for (uint32_t i = 0; in->trimmed && i < in->n_datasets; i++) {
        bool rows = in->sets[i] == SET_PHOTONS || in->sets[i] == SET_TAGS;
        if (!wanted[i] || !rows || d7_reader_dataset(in->reader, i, &info) != 0 ||
            info.items == input_items(in, &lengths, i))
            continue;
        command_fail(in->self,
                     "%s: the last %" PRIu64 " items of %s are left out: other columns do not have them",
                     in->path, info.items - input_items(in, &lengths, i), info.name);
    }
}
