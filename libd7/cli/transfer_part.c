#include "transfer_part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

/* ---- plan ---- */

int plan_begin(transfer_plan *ret, const transfer_input *in, const bool *wanted) {
    transfer_plan plan = {.datasets = calloc(in->n_datasets + 1u, sizeof *plan.datasets),
                          .sets = calloc(in->n_datasets + 1u, sizeof *plan.sets),
                          .ids = calloc(in->n_datasets + 1u, sizeof *plan.ids),
                          .ranges = calloc(in->n_datasets + 1u, sizeof *plan.ranges)};
    if (!plan.datasets || !plan.sets || !plan.ids || !plan.ranges) {
        plan_free(&plan);
        return command_fail(in->self, "out of memory");
    }
    d7_dataset_info info;
    for (uint32_t i = 0; i < in->n_datasets && d7_reader_dataset(in->reader, i, &info) == 0; i++) {
        if (!wanted[i])
            continue;
        plan.datasets[plan.n] = (d7_dataset){.name = info.name, .type = info.type};
        plan.sets[plan.n] = in->sets[i];
        plan.ids[plan.n++] = i;
    }
    *ret = plan;
    return 0;
}

uint64_t plan_cut(transfer_plan *plan, const transfer_input *in, const transfer_cut *cut) {
    uint64_t bytes = 0;
    set_lengths lengths = input_lengths(in);
    for (size_t i = 0; i < plan->n; i++) {
        plan->ranges[i] = cut_range(in, &lengths, cut, plan->ids[i]);
        bytes += (plan->ranges[i].to - plan->ranges[i].from) * d7_type_size(plan->datasets[i].type);
    }
    return bytes;
}

void plan_free(transfer_plan *plan) {
    free(plan->datasets);
    free(plan->sets);
    free(plan->ids);
    free(plan->ranges);
    *plan = (transfer_plan){0};
}

/* ---- attributes ---- */

/* A gap record costs about 200 bytes: more than these would make an index of attributes alone. */
enum { NEW_GAPS_MAX = 65536 };

/* The rows of a set that were left out: they stand together. */
typedef struct set_skips {
    const skipped_rows *rows; /* [n] rising */
    size_t n;
} set_skips;

typedef struct part_skips {
    const transfer_part *part;
    set_skips of[N_SETS];
} part_skips;

static part_skips sort_skips(const transfer_part *part) {
    part_skips skips = {.part = part};
    for (size_t i = 0; i < part->n_skipped; i++) {
        set_skips *of = &skips.of[part->skipped[i].set];
        if (of->n++ == 0)
            of->rows = &part->skipped[i];
    }
    return skips;
}

/* What a row is in the file: less what was left out before it. */
static uint64_t less_skipped(const set_skips *skips, uint64_t row) {
    size_t low = 0, high = skips->n;
    while (low < high) { /* ends with those before `low` beginning before the row */
        size_t middle = low + (high - low) / 2;
        if (skips->rows[middle].first < row)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return row;
    const skipped_rows *last = &skips->rows[low - 1];
    return row - last->before - (last->n < row - last->first ? last->n : row - last->first);
}

/* ctx: of a part. Records are cut already: their items count from the beginning of the cut. */
static bool map_skipped(void *ctx, d7_group group, const common_record *own, uint64_t item,
                        uint64_t *ret_item) {
    const part_skips *skips = ctx;
    if (own && group == D7_GROUP_NONE) {
        *ret_item = item;
        return true;
    }
    column_set set = group == D7_GROUP_TAGS ? SET_TAGS : SET_PHOTONS;
    uint64_t from = skips->part->cut.from[set];
    *ret_item = less_skipped(&skips->of[set], item + from) - from;
    return true;
}

static bool add_gaps(const transfer_part *part, attribute_list *list) {
    uint64_t number = part->n_skipped ? records_next_gap(list) : 0;
    bool good = true;
    for (size_t i = 0, n = 0; i < part->n_skipped && n < NEW_GAPS_MAX && good; i++) {
        const skipped_rows *s = &part->skipped[i];
        if (s->set == SET_OWN)
            continue;
        good = records_add_gap(list, number++, s->set == SET_TAGS ? D7_GROUP_TAGS : D7_GROUP_PHOTONS,
                               s->first - s->before - part->cut.from[s->set], s->n, "damaged pages left out");
        n++;
    }
    return good;
}

/* The attributes of the file that is made. */
static int part_attributes(transfer_part *part, attribute_list *list) {
    int code = input_attributes(part->in, list);
    if (code != 0)
        return code;
    part_skips skips = sort_skips(part);
    bool good = cut_records(part->in, &part->cut, list) &&
                input_map_records(part->in, list, map_skipped, &skips) && add_gaps(part, list) &&
                (!part->is_cut || records_begin_cut(list, &part->place));
    return good ? 0 : command_fail(part->self, "out of memory");
}

/* Takes out what may change until the end is known: the first record, or whether the part is the last, and all after it,
 * since their order counts. */
static void keep_certain(attribute_list *list) {
    const attribute_node *node = list->first;
    while (node && !record_has_item(node->key) && strcmp(node->key, "photond.cut") != 0)
        node = node->next;
    while (node) {
        const attribute_node *next = node->next;
        attribute_remove(list, attribute_find(list, node->key));
        node = next;
    }
}

/* Sets what the file does not say yet. */
static int set_rest(const transfer_part *part, d7_writer *w, const attribute_list *early,
                    const attribute_list *all) {
    d7_error err;
    for (const attribute_node *node = all->first; node; node = node->next) {
        const char *value = attribute_value(early, node->key);
        if (value && strcmp(value, node->value) == 0)
            continue;
        if (d7_writer_set_attribute(w, node->key, node->value, &err) != 0)
            return command_fail(part->self, "%s", err.text);
    }
    return 0;
}

/* ---- the file ---- */

static uint32_t page_bytes(const transfer_part *part) {
    return output_page_bytes(part->in->reader, part->plan->datasets, part->plan->n);
}

static int move(transfer_part *part, d7_writer *w) {
    mover m;
    int code = mover_begin(&m, part->self, w, part->plan->datasets, part->plan->sets, part->plan->n,
                           page_bytes(part), part->bar);
    if (code != 0)
        return code;
    m.done_bytes = part->done_bytes;
    move_source source = {.in = part->in,
                          .ids = part->plan->ids,
                          .ranges = part->plan->ranges,
                          .first_row = part->cut.from[SET_PHOTONS],
                          .last = true,
                          .max_bytes = part->max_bytes};
    code = mover_move(&m, &source);
    part->done_bytes = m.done_bytes;
    part->end_row = source.end_row;
    part->skipped = source.skipped;
    part->n_skipped = source.n_skipped;
    mover_free(&m);
    return code;
}

/* A part with a limit ends where the limit said. Returns 0, or an exit code when not even one page fits. */
static int end_at(transfer_part *part) {
    column_set set = input_has(part->in, SET_PHOTONS) ? SET_PHOTONS : SET_TAGS;
    if (part->max_bytes == 0)
        return 0;
    part->place.last = part->end_row >= input_rows(part->in, set);
    if (part->place.last)
        return 0;
    if (part->end_row == part->cut.from[set])
        return command_fail(part->self,
                            "%s: %" PRIu64
                            " bytes do not hold a page of each dataset and the attributes; a part must "
                            "be larger",
                            part->path, part->max_bytes);
    part->cut.to[set] = part->end_row;
    return 0;
}

static int fill(transfer_part *part, transfer_output *out, const attribute_list *early) {
    attribute_list all = {0};
    int code = move(part, out->writer);
    if (code == 0)
        code = end_at(part);
    if (code == 0)
        code = part_attributes(part, &all);
    if (code == 0)
        code = set_rest(part, out->writer, early, &all);
    attribute_free(&all);
    return code;
}

static int make(transfer_part *part, attribute_list *early) {
    int code = part_attributes(part, early);
    if (code != 0)
        return code;
    if (part->max_bytes)
        keep_certain(early);
    transfer_output out;
    output_options o = {.path = part->path,
                        .overwrite = part->overwrite,
                        .like = part->in->reader,
                        .page_bytes = page_bytes(part),
                        .datasets = part->plan->datasets,
                        .n_datasets = part->plan->n,
                        .attributes = early,
                        .quiet = part->is_cut && part->place.part > 0,
                        .executor = part->in->executor.ctx ? &part->in->executor : NULL};
    code = output_begin(&out, part->self, &o);
    if (code != 0)
        return code;
    code = fill(part, &out, early);
    if (code == 0)
        code = output_end(&out, &part->file_bytes);
    else
        output_drop(&out);
    return code;
}

int part_make(transfer_part *part) {
    attribute_list early = {0};
    part_free(part);
    plan_cut(part->plan, part->in, &part->cut);
    int code = make(part, &early);
    attribute_free(&early);
    return code;
}

void part_free(transfer_part *part) {
    free(part->skipped);
    part->skipped = NULL;
    part->n_skipped = 0;
}

/* ---- what was left out ---- */

static const char *skipped_name(const transfer_part *part, const skipped_rows *s) {
    d7_dataset_info info;
    return s->set == SET_TAGS                                               ? "tags"
           : s->set == SET_PHOTONS && part->in->grouped                     ? "photons"
           : d7_reader_dataset(part->in->reader, s->dataset_id, &info) == 0 ? info.name
                                                                            : "items";
}

void part_tell_skipped(const transfer_part *part) {
    for (size_t i = 0; i < part->n_skipped; i++) {
        const skipped_rows *s = &part->skipped[i];
        command_fail(part->self, "%s: left out, because of a damaged page: %s %" PRIu64 " to %" PRIu64,
                     part->in->path, skipped_name(part, s), s->first, s->first + s->n - 1);
    }
    if (part->n_skipped > NEW_GAPS_MAX)
        command_fail(part->self, "%s: the result has gap records of the first %d of these places only",
                     part->in->path, NEW_GAPS_MAX);
}

void part_print_skipped(const transfer_part *part) {
    printf("[");
    for (size_t i = 0; i < part->n_skipped; i++) {
        const skipped_rows *s = &part->skipped[i];
        printf("%s{\"what\": ", i ? ", " : "");
        cli_write_json_string(stdout, skipped_name(part, s));
        printf(", \"first\": %" PRIu64 ", \"items\": %" PRIu64 "}", s->first, s->n);
    }
    printf("]");
}
