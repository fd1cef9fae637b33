/* Attributes that come during a run: sequenced like batches, and as durable. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingest.pb-c.h"
#include "log.h"
#include "run.h"
#include "wire/names.h"

void pd_run__attributes_release(pd_run_attributes_item *item) {
    if (--item->holders > 0)
        return;
    item->run->attribute_bytes -= item->bytes;
    item->run->engine->room_came = true;
    free(item);
}

static void attributes_back(pd_event *event) {
    pd_run_attributes_item *item = pd_container_of(event, pd_run_attributes_item, task.task.event);
    pd_run *run = item->run;
    pd_run__back(run, &item->task.task);
    pd_run__attributes_release(item);
    pd_run__progress(run);
}

static size_t attributes_text_bytes(const pd_attribute *attributes, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(attributes[i].key) + strlen(attributes[i].value) + 2;
    return bytes;
}

/* One block: the item, the array, the texts. */
static pd_run_attributes_item *attributes_copy(const pd_attribute *attributes, size_t n) {
    pd_run_attributes_item *item =
        malloc(sizeof *item + n * sizeof *attributes + attributes_text_bytes(attributes, n));
    if (!item)
        return NULL;
    memset(item, 0, sizeof *item);
    pd_attribute *copies = (pd_attribute *)(item + 1);
    char *text = (char *)(copies + n);
    for (size_t i = 0; i < n; i++) {
        copies[i].key = text;
        text = stpcpy(text, attributes[i].key) + 1;
        copies[i].value = text;
        text = stpcpy(text, attributes[i].value) + 1;
    }
    item->task.attributes = copies;
    item->task.n = n;
    return item;
}

static void attributes_queue(pd_run *run, pd_run_attributes_item *item, bool exported) {
    item->run = run;
    item->holders = 1;
    run->attribute_bytes += item->bytes;
    item->task.task = (pd_task){.event.happened = attributes_back, .kind = PD_TASK_ATTRIBUTES};
    if (run->summary.summary && exported) {
        item->holders++;
        pd_list_push(&run->summary.attributes, &item->summary_link);
        run->summary.changed = true;
    }
    pd_run__order(run, &item->order, &item->task.task, true);
}

static pd_taken attributes_refuse(pd_refusal *why, int code, uint64_t sequence, size_t i, const char *text) {
    why->code = code;
    why->sequence = sequence;
    snprintf(why->field, sizeof why->field, "attributes.attributes[%zu]", i);
    snprintf(why->text, sizeof why->text, "%s", text);
    return PD_REFUSED;
}

/* Attributes on their way take memory that no ring bounds: there may be as much of them as a run may have, and more
 * waits. One message always may be under way. */
static bool attributes_fit(const pd_run *run, uint64_t bytes) {
    return run->attribute_bytes == 0 ||
           run->attribute_bytes + bytes <= run->engine->config->max_run_attribute_bytes;
}

/* The values that others replace are kept until these are durable: they may have to be gone back to. */
static bool attributes_may_change(pd_run *run) {
    if (run->kept.change_bytes <= run->engine->config->max_run_attribute_bytes)
        return true;
    pd_run_make_durable(run);
    return false;
}

pd_taken pd_run_attributes(pd_run *run, uint64_t sequence, const pd_attribute *attributes, size_t n,
                           pd_refusal *why) {
    const pd_config *config = run->engine->config;
    pd_taken taken = pd_run__sequence(run, "attributes", sequence, why);
    if (taken != PD_TAKEN)
        return taken;
    for (size_t i = 0; i < n; i++) {
        const char *fault = pd_attribute_fault(config, &attributes[i]);
        if (fault)
            return attributes_refuse(why, PHOTON__ERROR_CODE__ERROR_BAD_ATTRIBUTE, sequence, i, fault);
    }
    return pd_run__take_attributes(run, sequence, attributes, n, "attributes.attributes[0]", why);
}

pd_taken pd_run__take_attributes(pd_run *run, uint64_t sequence, const pd_attribute *attributes, size_t n,
                                 const char *field, pd_refusal *why) {
    uint64_t bytes = pd_attributes_bytes(attributes, n) + sizeof(pd_run_attributes_item);
    if (!attributes_fit(run, bytes) || !attributes_may_change(run) || !pd_run__has_room(run, 0, bytes))
        return PD_NO_ROOM;
    pd_run_attributes_item *item = attributes_copy(attributes, n);
    int failed = item ? pd_attribute_sizes_set(&run->attribute_sizes, attributes, n,
                                               run->engine->config->max_run_attribute_bytes)
                      : 0;
    bool kept = item && !failed && pd_kept_attributes_set(&run->kept, sequence, attributes, n) == 0;
    if (!kept) {
        free(item);
        pd_refuse(why, failed ? PHOTON__ERROR_CODE__ERROR_LIMIT : PHOTON__ERROR_CODE__ERROR_NO_ROOM, field,
                  failed ? "the run's attributes would be larger than is allowed" : "out of memory");
        why->sequence = sequence;
        return PD_REFUSED;
    }
    item->bytes = bytes;
    run->received = sequence;
    attributes_queue(run, item, strncmp(attributes[0].key, "photond.", 8) != 0);
    pd_run__mark_due(run);
    pd_run__flush(run);
    pd_run__stop_check(run);
    return PD_TAKEN;
}

int pd_run__own_attribute(pd_run *run, const char *key, const char *value) {
    pd_run_attributes_item *item = attributes_copy(&(pd_attribute){key, value}, 1);
    if (!item)
        return -1;
    attributes_queue(run, item, false);
    return 0;
}

static void attributes_renew(pd_run *run, const pd_attribute *attributes, size_t n, const char *key,
                             const char *value) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(attributes[i].key, key) == 0 && strcmp(attributes[i].value, value) == 0)
            return;
    if (pd_run__own_attribute(run, key, value) != 0)
        pd_log(PD_LOG_WARNING, "run %s: out of memory: the file keeps the %s of before the restart",
               run->name, key);
}

void pd_run__made_by(pd_run *run, const pd_attribute *attributes, size_t n) {
    attributes_renew(run, attributes, n, "photond.software", PD_SOFTWARE);
    attributes_renew(run, attributes, n, "photond.configuration", run->engine->configuration);
}

/* No millisecond that the part before ends in was written, for want of a batch: nor does it begin with that one. */
static void last_place(pd_run *run) {
    char text[24];
    for (uint32_t c = 0; c < run->n_columns; c++) {
        if (!run->columns[c].part_repeats)
            continue;
        snprintf(text, sizeof text, "%" PRIu64, run->columns[c].items);
        if (pd_run__own_attribute(run, "photond.first_ms", text) != 0)
            pd_log(PD_LOG_WARNING,
                   "run %s: out of memory: its last file says of milliseconds what is not in it", run->name);
    }
}

void pd_run__last_attributes(pd_run *run) {
    if (pd_run__records(run, true) != 0)
        pd_log(PD_LOG_ERROR, "run %s: out of memory: the file does not say all that was dropped", run->name);
    last_place(run);
    if (run->lost_before == 0)
        return;
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, run->lost_before);
    pd_run_attributes_item *item = attributes_copy(&(pd_attribute){"photond.lost_before", text}, 1);
    if (item)
        attributes_queue(run, item, true);
    else
        pd_log(PD_LOG_WARNING,
               "run %s: out of memory: the file does not say that the hardware lost %s events", run->name,
               text);
}

const char *pd_attribute_fault(const pd_config *config, const pd_attribute *attribute) {
    if (strlen(attribute->key) + strlen(attribute->value) > config->max_attribute_bytes)
        return "key and value are longer than Limits.attribute_bytes";
    if (strncmp(attribute->key, "photond.", 8) == 0)
        return "keys that begin with photond. are the daemon's own";
    if (strcmp(attribute->key, D7_MARKER_KEY) == 0)
        return "this key is the file format's own";
    return wire_attribute_fault(attribute->key, attribute->value);
}
