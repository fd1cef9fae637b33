/* Records: JSON attributes, numbered, that speak of places in the data. Markers and gaps that a client tells are sequenced
 * like batches. Those of the daemon (what the hardware lost, that the run was gone on with after a crash, pairs of clocks)
 * attach to the number at which they arise and go with the next mark.
 *
 *   photond.marker.N  {group, item, text, utc}
 *   photond.gap.N     {group, item, count, cause, monotonic, utc}: `item` is the first one after the gap
 *   photond.clock.N   {instrument, monotonic, utc}
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "ingest.pb-c.h"
#include "run.h"
#include "wire/names.h"

enum {
    RECORDS_LOSSES_MAX = 1000, /* gaps of the hardware: later ones are added to the last */
    RECORDS_NOTES_MAX = 10000, /* markers of a run with which the daemon adds another */
    RECORDS_GAPS_MAX = 10000,  /* records of gaps of a run with which the daemon adds another of most kinds */
    RECORDS_NOTE_BYTES = 2000,
    RECORDS_KEY_BYTES = 40
};

#define RECORDS_CLOCK_NS UINT64_C(60000000000)

static const char *const record_names[PD_RECORD_KINDS] = {"marker", "gap", "clock"};

static void record_key(char key[RECORDS_KEY_BYTES], pd_record_kind kind, uint64_t number) {
    snprintf(key, RECORDS_KEY_BYTES, "photond.%s.%08" PRIu64, record_names[kind], number);
}

/* A group of one dataset that has no other name is told as that dataset. */
static const char *record_unit(const pd_run *run, const pd_group *group) {
    const char *dataset = run->columns[group->columns[0]].dataset.name;
    return group->n_columns == 1 && strcmp(dataset, group->name) == 0 ? "dataset" : "group";
}

/* Those that d7 merge moves on when it puts parts together; items of other groups stay those of the run. One that came
 * before the part is told as its first. */
uint64_t pd_run__record_item(const pd_run *run, const pd_group *group, uint64_t item) {
    bool counts = strcmp(group->name, "photons") == 0 || strcmp(group->name, "tags") == 0 ||
                  strcmp(record_unit(run, group), "dataset") == 0;
    uint64_t before = counts ? run->columns[group->columns[0]].part_row : 0;
    return item > before ? item - before : 0;
}

void pd_run__records_part(pd_run *run) {
    run->n_losses = run->dropped.n_records = 0;
    run->last_clock_ns = 0;
}

/* NULL: out of memory. */
static json_t *marker_json(const pd_run *run, const pd_group *group, uint64_t item, const char *text,
                           uint64_t utc_ns) {
    return json_pack("{s:s, s:I, s:s, s:I}", record_unit(run, group), group->name, "item",
                     (json_int_t)pd_run__record_item(run, group, item), "text", text, "utc",
                     (json_int_t)utc_ns);
}

json_t *pd_run__gap_json(const pd_run *run, const pd_group *group, uint64_t item, uint64_t count,
                         const char *cause, uint64_t utc_ns) {
    return json_pack("{s:s, s:I, s:I, s:s, s:I, s:I}", record_unit(run, group), group->name, "item",
                     (json_int_t)pd_run__record_item(run, group, item), "count",
                     (json_int_t)(count & INT64_MAX), "cause", cause, "monotonic", (json_int_t)uv_hrtime(),
                     "utc", (json_int_t)utc_ns);
}

/* ---- told by a client ---- */

static pd_taken record_refuse(pd_refusal *why, const pd_told *told, const char *name, const char *field,
                              const char *text) {
    why->code = PHOTON__ERROR_CODE__ERROR_BAD_ATTRIBUTE;
    why->sequence = told->sequence;
    snprintf(why->field, sizeof why->field, "%s.%s", name, field);
    snprintf(why->text, sizeof why->text, "%s", text);
    return PD_REFUSED;
}

static const pd_group *record_group(const pd_run *run, const char *name) {
    for (uint32_t g = 0; g < run->n_groups; g++)
        if (strcmp(run->groups[g].name, name) == 0)
            return &run->groups[g];
    return *name ? NULL : &run->groups[0];
}

static json_t *told_json(const pd_run *run, pd_record_kind kind, const pd_told *told, const pd_group *group) {
    return kind == PD_RECORD_MARKER
               ? marker_json(run, group, told->item, told->text, told->utc_ns)
               : pd_run__gap_json(run, group, told->item, told->count, told->text, told->utc_ns);
}

pd_taken pd_run_told(pd_run *run, pd_record_kind kind, const pd_told *told, pd_refusal *why) {
    const char *name = record_names[kind], *text_field = kind == PD_RECORD_MARKER ? "text" : "cause";
    pd_taken taken = pd_run__sequence(run, name, told->sequence, why);
    if (taken != PD_TAKEN)
        return taken;
    const pd_group *group = record_group(run, told->group);
    if (!group)
        return record_refuse(why, told, name, "group", "the run has no such group");
    if (told->item > INT64_MAX || told->count > INT64_MAX || told->utc_ns > INT64_MAX)
        return record_refuse(why, told, name, "item", "a number of over 63 bits");
    if (strlen(told->text) > run->engine->config->max_attribute_bytes / 8)
        return record_refuse(why, told, name, text_field, "longer than an eighth of Limits.attribute_bytes");
    const char *fault = wire_attribute_fault(name, told->text);
    if (fault)
        return record_refuse(why, told, name, text_field, fault);
    char key[RECORDS_KEY_BYTES];
    record_key(key, kind, run->n_records[kind]);
    char *text = pd_run__json_text(told_json(run, kind, told, group));
    taken = text ? pd_run__take_attributes(run, told->sequence, &(pd_attribute){key, text}, 1, name, why)
                 : record_refuse(why, told, name, text_field, "out of memory");
    free(text);
    run->n_records[kind] += taken == PD_TAKEN;
    return taken;
}

/* ---- the daemon's own ---- */

int pd_run__record(pd_run *run, pd_record_kind kind, uint64_t number, json_t *json) {
    char key[RECORDS_KEY_BYTES];
    char *text = pd_run__json_text(json);
    record_key(key, kind, number);
    int failed = text ? pd_run__own_attribute(run, key, text) : -1;
    free(text);
    return failed;
}

/* A new one. */
static int record_add(pd_run *run, pd_record_kind kind, json_t *json) {
    int failed = pd_run__record(run, kind, run->n_records[kind], json);
    run->n_records[kind] += failed == 0;
    return failed;
}

int pd_run_note(pd_run *run, const char *text, pd_error *err) {
    const pd_group *group = &run->groups[0];
    const char *fault = wire_attribute_fault("note", text);
    if (run->turning)
        return pd_error_set(err, "run %s begins a new file at this moment: say it again", run->name);
    if (fault || !*text || strlen(text) > RECORDS_NOTE_BYTES)
        return pd_error_set(err, "the note: %s",
                            fault    ? fault
                            : !*text ? "it is empty"
                                     : "longer than 2000 bytes");
    if (run->n_records[PD_RECORD_MARKER] >= RECORDS_NOTES_MAX)
        return pd_error_set(err, "run %s has %d notes and markers, more are not allowed", run->name,
                            RECORDS_NOTES_MAX);
    json_t *json = marker_json(run, group, group->items, text, pd_utc_ns());
    return record_add(run, PD_RECORD_MARKER, json) == 0 ? 0 : pd_error_set(err, "out of memory");
}

void pd_run__lost(pd_run *run, uint64_t item, uint64_t count) {
    if (run->loss_count == 0)
        run->loss_item = item;
    run->loss_count = count > UINT64_MAX - run->loss_count ? UINT64_MAX : run->loss_count + count;
}

static void records_loss(pd_run *run) {
    bool merge = run->n_losses >= RECORDS_LOSSES_MAX;
    uint64_t number = merge ? run->last_loss : run->n_records[PD_RECORD_GAP];
    uint64_t count = run->loss_count + (merge ? run->last_loss_count : 0);
    json_t *json = pd_run__gap_json(run, &run->groups[0], run->loss_item, count, "hardware", pd_utc_ns());
    if (pd_run__record(run, PD_RECORD_GAP, number, json) != 0)
        return; /* with the next mark, then */
    if (!merge) {
        run->n_records[PD_RECORD_GAP]++;
        run->n_losses++;
    }
    run->last_loss = number;
    run->last_loss_count = count;
    run->loss_count = 0;
    pd_count(&run->engine->counters.gaps, !merge);
    pd_count(&run->engine->counters.gaps_hardware, !merge);
}

void pd_run__gap(pd_run *run, atomic_uint_fast64_t *counter, const char *cause, const char *member,
                 double value) {
    pd_count(counter, 1);
    if (run->turning) /* it would be gone back over */
        return;
    if (run->n_records[PD_RECORD_GAP] >= RECORDS_GAPS_MAX)
        return;
    json_t *json = pd_run__gap_json(run, &run->groups[0], run->groups[0].items, 0, cause, pd_utc_ns());
    if (json && member)
        json_object_set_new(json, member, json_real(value));
    if (record_add(run, PD_RECORD_GAP, json) != 0)
        return;
    pd_count(&run->engine->counters.gaps, 1);
    run->sync_wanted = true;
    pd_run__mark_due(run);
}

static void records_clock(pd_run *run, uint64_t now) {
    json_t *json = json_pack("{s:I, s:I}", "monotonic", (json_int_t)now, "utc", (json_int_t)pd_utc_ns());
    if (json && run->instrument_time_known)
        json_object_set_new(json, "instrument", json_integer((json_int_t)run->instrument_time));
    (void)record_add(run, PD_RECORD_CLOCK, json);
    run->last_clock_ns = now;
}

int pd_run__records(pd_run *run, bool last) {
    uint64_t now = uv_hrtime();
    if (run->loss_count > 0)
        records_loss(run);
    if (last || run->last_clock_ns == 0 || now - run->last_clock_ns >= RECORDS_CLOCK_NS)
        records_clock(run, now);
    return pd_run__drop_records(run);
}

/* ---- after a restart ---- */

static void records_learn(pd_run *run, pd_record_kind kind, uint64_t number, const char *value) {
    if (number >= run->n_records[kind])
        run->n_records[kind] = number + 1;
    if (kind != PD_RECORD_GAP)
        return;
    json_t *json = json_loads(value, 0, NULL);
    const char *cause = json_string_value(json_object_get(json, "cause"));
    json_int_t count = json_integer_value(json_object_get(json, "count"));
    if (cause && strcmp(cause, "hardware") == 0 && count > 0) {
        run->n_losses++;
        run->lost_before += (uint64_t)count;
        run->last_loss = number;
        run->last_loss_count = (uint64_t)count;
    }
    json_decref(json);
}

void pd_run__records_resume(pd_run *run, const pd_attribute *attributes, size_t n) {
    run->lost_before = pd_attribute_number(attributes, n, "photond.lost_before");
    for (size_t i = 0; i < n; i++)
        for (int kind = 0; kind < PD_RECORD_KINDS; kind++) {
            char prefix[RECORDS_KEY_BYTES];
            int bytes = snprintf(prefix, sizeof prefix, "photond.%s.", record_names[kind]);
            const char *key = attributes[i].key;
            if (strncmp(key, prefix, (size_t)bytes) == 0 && key[bytes] >= '0' && key[bytes] <= '9')
                records_learn(run, (pd_record_kind)kind, strtoull(key + bytes, NULL, 10),
                              attributes[i].value);
        }
    pd_run__drop_resume(run, attributes, n);
    json_t *json = pd_run__gap_json(run, &run->groups[0], run->groups[0].items, 0, "restart", pd_utc_ns());
    (void)record_add(run, PD_RECORD_GAP, json);
    pd_count(&run->engine->counters.gaps_restart, 1);
    pd_count(&run->engine->counters.gaps, 1);
}
