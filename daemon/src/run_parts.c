/* Parts: a run may go on in a new file, which stands alone as the one before does.
 *
 * A part begins between two messages. All pages of the old one are sealed, its last attributes and its close take their
 * place in the run's order, and what comes from then on is the new part's. Its file is asked for at that moment; until it is
 * there (named, and on the disk with its tail) everything behind waits in the ring, the old file's close included: so at no
 * moment is there a run without an open file. What the new file holds is durable only once the old one is closed.
 *
 * The new file begins with all attributes of the run as they stand. Its indices of photons, of milliseconds and of records
 * count from its own first ones; the attributes photond.first_... tell which these are in the run. The millisecond that is
 * under way stands in both files. */
#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "run.h"

enum {
    PARTS_INDEX_MARGIN = 1 << 20, /* that is left of the largest index, for what is on its way */
    PARTS_INDEX_LEAST =
        256 << 20, /* column bytes that a part has at least, whatever its index holds of attributes */
    PARTS_OWN_ATTRIBUTES = 10,
    PARTS_RETRY_MS = 500, /* between attempts at a new file */
    PARTS_ATTEMPTS = 20   /* but for a full disk */
};

#define NS_PER_MS 1000000u

/* ---- when ---- */

bool pd_run__part_may_begin(const pd_run *run) {
    const pd_run_part *other = &run->parts[run->part == &run->parts[0]];
    return run->state == PD_RUN_RUNNING && !run->turning && run->part->file && !other->in_use &&
           run->received > run->part->first_sequence && run->dropped.owed == 0;
}

static bool part_is_full(const pd_run *run) {
    uint64_t most = run->engine->config->part_max_bytes;
    uint64_t received = run->received_bytes - run->part->began_bytes;
    return (most && pd_file_written(run->part->file) >= most) ||
           (pd_file_index_bytes(run->part->file) >= D7_INDEX_BODY_MAX - PARTS_INDEX_MARGIN &&
            received >= PARTS_INDEX_LEAST);
}

bool pd_run__part_is_due(const pd_run *run) {
    uint64_t most_ms = run->engine->config->part_max_ms;
    return run->part_wanted ||
           (run->part->file &&
            (part_is_full(run) || (most_ms && (uv_hrtime() - run->part->began_ns) / NS_PER_MS >= most_ms)));
}

/* ---- what the file says of its place ---- */

typedef struct part_words {
    char sequence[24], photon[24], ms[24], tag[24], lost[24], dropped[24], owed[24];
    char *items;
} part_words;

static char *part_items(const pd_run *run) {
    json_t *list = json_array();
    for (uint32_t c = 0; list && c < run->n_columns; c++)
        json_array_append_new(list, json_integer((json_int_t)run->columns[c].items));
    return pd_run__json_text(list);
}

static void part_number(char text[24], uint64_t number) {
    snprintf(text, 24, "%" PRIu64, number);
}

/* As d7 split says it, by the names that libd7 knows. */
static size_t part_place(const pd_run *run, part_words *w, pd_attribute *out) {
    size_t n = 0;
    for (uint32_t c = 0; c < run->n_columns; c++) {
        const pd_column *column = &run->columns[c];
        const char *name = column->dataset.name;
        d7_group group = d7_group_of(name);
        if (d7_role_of(name) == D7_ROLE_MS && !*w->ms) {
            part_number(w->ms, column->part_row);
            out[n++] = (pd_attribute){"photond.first_ms", w->ms};
        } else if (group == D7_GROUP_PHOTONS && !*w->photon) {
            part_number(w->photon, column->part_row);
            out[n++] = (pd_attribute){"photond.first_photon", w->photon};
        } else if (group == D7_GROUP_TAGS && !*w->tag) {
            part_number(w->tag, column->part_row);
            out[n++] = (pd_attribute){"photond.first_tag", w->tag};
        }
    }
    return n;
}

/* The client's attributes as they stand, then where the file begins. */
static int part_ask(pd_run *run) {
    char name[PD_PART_NAME_BYTES + 1];
    part_words w = {.items = part_items(run)};
    pd_attribute *list = calloc(run->kept.n + PARTS_OWN_ATTRIBUTES, sizeof *list);
    int failed = -1;
    if (w.items && list) {
        size_t n = run->kept.n;
        if (n > 0)
            memcpy(list, run->kept.list, n * sizeof *list);
        part_number(w.sequence, run->part->first_sequence);
        list[n++] = (pd_attribute){"photond.first_sequence", w.sequence};
        list[n++] = (pd_attribute){"photond.first_items", w.items};
        n += part_place(run, &w, list + n);
        if (run->lost_before > 0) {
            part_number(w.lost, run->lost_before);
            list[n++] = (pd_attribute){"photond.lost_before", w.lost};
        }
        if (run->dropped.photons > 0) {
            part_number(w.dropped, run->dropped.photons);
            list[n++] = (pd_attribute){"photond.dropped_before", w.dropped};
        }
        if (run->dropped.owed > 0) {
            part_number(w.owed, run->dropped.owed);
            list[n++] = (pd_attribute){"photond.owed_ms", w.owed};
        }
        if (run->part->instead)
            list[n++] = (pd_attribute){"photond.instead", "1"};
        failed = pd_run__ask_for_file(run, pd_datadir_part_name(name, run->name, run->part->number), false,
                                      list, n);
    }
    free(w.items);
    free(list);
    return failed;
}

/* ---- its file ---- */

static void part_ask_again(uv_timer_t *timer) {
    pd_run *run = timer->data;
    if ((run->turning && !run->reopening) || run->state == PD_RUN_FAILED || run->state == PD_RUN_ENDED)
        return;
    if (part_ask(run) != 0)
        pd_run__fail(run, "out of memory for its next file");
    pd_run__progress(run);
}

/* A full disk is a pause, and what else keeps a file from being made may pass (descriptors of other programs). */
static void part_refused(pd_run *run, const pd_open_task *open) {
    pd_run_part *part = run->part;
    if (part->instead && open->outcome != PD_OPEN_TAKEN) {
        pd_error why = {""};
        pd_error_set(&why, "%s; and its next file cannot be made: %s", run->turn_why.text, open->why.text);
        pd_run__fail(run, why.text);
        return;
    }
    bool waits = open->outcome == PD_OPEN_NOROOM && !run->engine->stopping;
    if (part->attempts == 0)
        pd_log(PD_LOG_WARNING, "run %s: its next file cannot be made, it is tried again: %s", run->name,
               open->why.text);
    if (open->outcome == PD_OPEN_TAKEN) {
        part->number++;
        part->displaces = false;
    }
    part->attempts += !waits;
    if (part->attempts > PARTS_ATTEMPTS)
        pd_run__fail(run, open->why.text);
    else
        uv_timer_start(&run->part_timer, part_ask_again, open->outcome == PD_OPEN_TAKEN ? 0 : PARTS_RETRY_MS,
                       0);
}

void pd_run__part_opened(pd_run *run, const pd_open_task *open) {
    bool waited_for = run->state != PD_RUN_FAILED && (!run->turning || run->reopening);
    if (open->outcome != PD_OPEN_DONE && waited_for) {
        part_refused(run, open);
    } else if (open->outcome == PD_OPEN_DONE) {
        run->part->file = open->task.file;
        run->engine->room_came = true;
        pd_run__hold(run, run->part->number, true);
        if (run->before)
            pd_run__hold(run, run->before->number, false);
        pd_log(PD_LOG_INFO, "run %s: goes on in %s.photons after batch %" PRIu64, run->name, open->given_name,
               run->part->first_sequence);
        if (run->reopening)
            pd_run__turn_over(run);
    }
    if (run->state != PD_RUN_FAILED)
        pd_run__flush(run);
    pd_run__mark_due(run);
    pd_run__progress(run);
}

void pd_run__part_closed(pd_run *run, pd_run_part *part) {
    run->before = NULL;
    run->n_parts_closed++;
    for (uint32_t c = 0; c < run->n_columns; c++)
        if (run->columns[c].written_items < part->ends[c])
            run->columns[c].written_items = part->ends[c];
    pd_run__part_durable(run, part);
}

/* ---- the change ---- */

static void part_place_columns(pd_run *run) {
    for (uint32_t c = 0; c < run->n_columns; c++) {
        pd_column *column = &run->columns[c];
        column->part_row = pd_dataset_part_row(&column->dataset, column->items);
        column->part_repeats = column->part_row < column->items;
    }
}

/* The next part, after what was received. */
static void part_enter(pd_run *run, pd_run_part *part, uint32_t number) {
    part->number = number;
    part->in_use = true;
    part->was_there = false;
    part->attempts = 0;
    part->first_sequence = run->received;
    part->first_photon = run->groups[run->photon_group].items;
    part->began_ns = uv_hrtime();
    part->began_bytes = run->received_bytes;
    run->part = part;
    run->marked = run->synced = run->received;
    run->synced_bytes = run->received_bytes;
    part_place_columns(run);
    pd_run__records_part(run);
    if (part_ask(run) != 0)
        pd_run__fail(run, "out of memory for its next file");
}

void pd_run__part_begin(pd_run *run) {
    pd_run_part *old = run->part, *part = &run->parts[old == &run->parts[0]];
    assert(pd_run__part_may_begin(run));
    run->part_wanted = false;
    pd_run__drop_over(run);
    pd_run__seal_all(run);
    pd_run__last_attributes(run);
    pd_run__order_close(old);
    pd_rebase_begin(&run->rebase, run->groups[run->photon_group].items - old->first_photon);
    run->before = old;
    part->instead = part->displaces = false;
    part_enter(run, part, old->number + 1);
    pd_run__flush(run);
}

void pd_run__part_instead(pd_run *run, uint32_t number, bool displaces) {
    run->before = NULL;
    run->parts[0].displaces = displaces;
    run->parts[0].instead = true;
    part_enter(run, &run->parts[0], number);
}

int pd_run_rotate(pd_run *run, uint64_t *ret_until, pd_error *err) {
    if (run->state != PD_RUN_RUNNING)
        return pd_error_set(err, "run %s is not running", run->name);
    if (run->turning)
        return pd_error_set(err, "run %s begins a new file at this moment", run->name);
    if (run->received == run->part->first_sequence)
        return pd_error_set(err, "run %s has nothing in its file yet", run->name);
    *ret_until = run->n_parts_closed + (run->before ? 2 : 1);
    run->part_wanted = true;
    if (pd_run__part_may_begin(run))
        pd_run__part_begin(run);
    return 0;
}

/* ---- a run's first file, or the one that it goes on with ---- */

int pd_run__part_init(pd_run *run, const pd_run_spec *spec) {
    for (int i = 0; i < PD_RUN_PARTS; i++) {
        run->parts[i].run = run;
        run->parts[i].ends = calloc(run->n_columns, sizeof *run->parts[i].ends);
        if (!run->parts[i].ends)
            return -1;
    }
    pd_run_part *part = run->part = &run->parts[0];
    part->in_use = true;
    part->number = spec->part;
    part->first_sequence = spec->first_sequence;
    part->began_ns = uv_hrtime();
    for (uint32_t c = 0; c < run->n_columns && spec->first_items; c++) {
        run->columns[c].items = spec->first_items[c];
        run->groups[run->columns[c].group].items = spec->first_items[c];
    }
    part->first_photon = run->groups[run->photon_group].items;
    pd_rebase_begin(&run->rebase, part->first_photon);
    part_place_columns(run);
    return 0;
}

void pd_run__part_free(pd_run *run) {
    for (int i = 0; i < PD_RUN_PARTS; i++)
        free(run->parts[i].ends);
}
