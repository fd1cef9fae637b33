/* Batches into pages, pages into the pool and on to the writer. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "ingest.pb-c.h"
#include "log.h"
#include "run.h"

/* ---- pages ---- */

void pd_run__release(pd_run *run, pd_page *page) {
    if (pd_ring_release(&run->engine->ring, &page->slot))
        run->engine->room_came = true;
}

/* Photons of a page: 0 in those of other columns. */
static uint64_t page_photons(const pd_page *page) {
    return page->column == pd_run_photon_column(page->run) ? page->n_items : 0;
}

static void page_count_written(pd_page *page) {
    pd_run *run = page->run;
    pd_stages *stages = &run->engine->stages;
    uint64_t n = page_photons(page);
    page->written = true;
    if (page->task.task.result != 0) {
        pd_stage_drop(stages, PD_STAGE_WRITER, PD_CAUSE_FAILED, n);
        return;
    }
    pd_stage_out(stages, PD_STAGE_WRITER, n);
    if (run->state == PD_RUN_FAILED || run->turning)
        return; /* all that it had in the ring was given up */
    pd_stage_out(stages, PD_STAGE_RING, n);
    run->photons_paged += n;
}

static void page_written(pd_event *event) {
    pd_page *page = pd_container_of(event, pd_page, task.task.event);
    pd_run *run = page->run;
    page_count_written(page);
    pd_run__back(run, &page->task.task);
    pd_run__release(run, page);
    pd_run__progress(run);
}

/* The pool: a pure function from the slot's values to its encoded buffer. */
static void page_encode(uv_work_t *work) {
    pd_page *page = pd_container_of(work, pd_page, work);
    const pd_column *column = &page->run->columns[page->column];
    page->encode_result =
        d7_page_encode(page->column, column->dataset.type, page->slot.raw, page->n_items, page->slot.encoded,
                       page->run->engine->ring.encoded_bytes, &page->task.bytes);
}

static void page_encoded(uv_work_t *work, int status) {
    (void)status; /* jobs are never cancelled */
    pd_page *page = pd_container_of(work, pd_page, work);
    pd_run *run = page->run;
    run->n_encoding--;
    pd_slot_move(&page->slot, PD_SLOT_ENCODED);
    if (page->given_up || page->encode_result != 0)
        pd_stage_drop(&run->engine->stages, PD_STAGE_ENCODER, PD_CAUSE_FAILED, page_photons(page));
    else
        pd_stage_out(&run->engine->stages, PD_STAGE_ENCODER, page_photons(page));
    if (page->given_up) {
        pd_run__release(run, page);
    } else if (page->encode_result != 0) {
        page->order.ready = true;
        pd_run__fail(run, d7_error_text(page->encode_result));
    } else {
        pd_count(&run->engine->counters.pages_encoded, 1);
        page->order.ready = true;
        pd_run__flush(run);
    }
    pd_run__progress(run);
}

void pd_run__page_to_writer(pd_page *page) {
    pd_slot_move(&page->slot, PD_SLOT_WRITING);
    pd_stage_in(&page->run->engine->stages, PD_STAGE_WRITER, page_photons(page));
}

static pd_page *page_begin(pd_run *run, uint32_t c) {
    pd_column *column = &run->columns[c];
    pd_page *page = (pd_page *)(void *)pd_ring_take(&run->engine->ring, &run->quota);
    page->run = run;
    page->column = c;
    page->n_items = 0;
    page->first_item = column->items;
    page->first_photon = run->part->first_photon;
    page->sealed = page->written = page->given_up = false;
    page->next_held = NULL;
    column->filling = page;
    pd_run_summary_hold(run, page);
    return page;
}

void pd_run__part_repeat(pd_run *run, uint32_t c) {
    pd_column *column = &run->columns[c];
    if (!column->part_repeats)
        return;
    column->part_repeats = false;
    column->items--;
    pd_page *page = page_begin(run, c);
    memset(page->slot.raw, 0, column->item_bytes); /* it began with the part or before */
    page->n_items = 1;
    column->items++;
}

void pd_run__refill(pd_run *run, uint32_t c, const d7_tail_slot *slot, uint32_t n_items) {
    pd_column *column = &run->columns[c];
    column->items -= n_items;
    pd_page *page = page_begin(run, c);
    /* it was checked that there are so many */
    int failed = d7_tail_slot_values(slot, c, 0, n_items, page->slot.raw);
    assert(failed == 0);
    (void)failed;
    page->n_items = n_items;
    column->items += n_items;
    pd_stage_in(&run->engine->stages, PD_STAGE_RING, page_photons(page));
}

/* Takes no more: into the run's order, and to the pool. */
static void page_seal(pd_run *run, pd_column *column) {
    pd_page *page = column->filling;
    column->filling = NULL;
    page->sealed = true;
    page->task = (pd_page_task){
        .task = {.event.happened = page_written, .kind = PD_TASK_PAGE},
        .dataset = page->column,
        .entry = page->slot.encoded,
        .n_items = page->n_items,
    };
    pd_run__order(run, &page->order, &page->task.task, false);
    pd_slot_move(&page->slot, PD_SLOT_ENCODING);
    pd_stage_in(&run->engine->stages, PD_STAGE_ENCODER, page_photons(page));
    run->n_encoding++;
    int failed = uv_queue_work(run->engine->loop, &page->work, page_encode, page_encoded);
    assert(failed == 0); /* it only fails without a function to call */
    (void)failed;
    pd_run_summary_sealed(run, page);
}

void pd_run__seal_all(pd_run *run) {
    for (uint32_t c = 0; c < run->n_columns; c++)
        if (run->columns[c].filling)
            page_seal(run, &run->columns[c]);
}

void pd_run__give_up(pd_run *run) {
    for (uint32_t c = 0; c < run->n_columns; c++) {
        if (run->columns[c].filling)
            pd_run__release(run, run->columns[c].filling);
        run->columns[c].filling = NULL;
    }
    for (pd_link *link = pd_list_take(&run->order); link;) {
        pd_order *order = pd_container_of(link, pd_order, link);
        link = link->next;
        if (order->task->kind == PD_TASK_ATTRIBUTES) {
            pd_run__attributes_release(pd_container_of(order, pd_run_attributes_item, order));
        } else if (order->task->kind == PD_TASK_PAGE) {
            pd_page *page = pd_container_of(order, pd_page, order);
            if (order->ready)
                pd_run__release(run, page);
            else
                page->given_up = true;
        } else if (order->task->kind == PD_TASK_MARK) {
            pd_container_of(order, pd_run_mark, order)->out = false;
        }
    }
}

/* ---- batches ---- */

static pd_taken refuse(pd_refusal *why, int code, const wire_batch *batch, const char *field,
                       const char *text) {
    pd_refuse(why, code, field, text);
    why->sequence = batch->sequence;
    return PD_REFUSED;
}

static pd_taken refuse_column(pd_refusal *why, const pd_run *run, uint32_t c, const wire_batch *batch) {
    const pd_column *column = &run->columns[c];
    snprintf(why->field, sizeof why->field, "batch.columns[%u]", c);
    snprintf(why->text, sizeof why->text, "%s has %zu bytes, %" PRIu64 " items of %u bytes are announced",
             column->dataset.name, batch->columns[c].bytes, batch->counts[column->group], column->item_bytes);
    why->code = PHOTON__ERROR_CODE__ERROR_BAD_BATCH;
    why->sequence = batch->sequence;
    return PD_REFUSED;
}

/* Counts and columns against the run and against each other. */
static pd_taken batch_check(const pd_run *run, const wire_batch *batch, pd_refusal *why) {
    if (batch->n_counts != run->n_groups)
        return refuse(why, PHOTON__ERROR_CODE__ERROR_BAD_BATCH, batch, "batch.counts",
                      "not one count per group of the run");
    if (batch->n_columns != run->n_columns)
        return refuse(why, PHOTON__ERROR_CODE__ERROR_BAD_BATCH, batch, "batch.columns",
                      "not one column per dataset of the run");
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < run->n_groups; g++) {
        if (batch->counts[g] > run->batch_bytes)
            return refuse(why, PHOTON__ERROR_CODE__ERROR_LIMIT, batch, "batch.counts",
                          "more items than a batch may hold");
        bytes += batch->counts[g] * run->groups[g].item_bytes;
    }
    if (bytes > run->batch_bytes)
        return refuse(why, PHOTON__ERROR_CODE__ERROR_LIMIT, batch, "batch.columns",
                      "more column bytes than Opened.batch_bytes");
    for (uint32_t c = 0; c < run->n_columns; c++)
        if (batch->columns[c].bytes != batch->counts[run->columns[c].group] * run->columns[c].item_bytes)
            return refuse_column(why, run, c, batch);
    return PD_TAKEN;
}

/* Slots that `n` more items of a column begin. */
static uint32_t column_new_pages(const pd_column *column, uint64_t n) {
    uint64_t there = column->filling ? column->page_items - column->filling->n_items : 0;
    n += column->part_repeats;
    if (n <= there)
        return 0;
    return (uint32_t)((n - there + column->page_items - 1) / column->page_items);
}

static bool batch_fits(pd_run *run, const wire_batch *batch) {
    uint32_t slots = 0;
    if (run->dropped.allowed && !pd_run__drop_may_end(run))
        return false;
    for (uint32_t c = 0; c < run->n_columns; c++)
        slots += column_new_pages(&run->columns[c], batch->counts[run->columns[c].group]);
    return slots <= pd_ring_available(&run->engine->ring, &run->quota) && pd_run__has_room(run, slots, 0);
}

/* The page takes *ret_k more items, of n at most: where they belong. There must be room. */
static uint8_t *page_extend(pd_run *run, uint32_t c, uint64_t n, uint64_t *ret_k) {
    pd_column *column = &run->columns[c];
    pd_page *page = column->filling ? column->filling : page_begin(run, c);
    uint64_t room = column->page_items - page->n_items;
    uint64_t k = n < room ? n : room;
    uint8_t *to = page->slot.raw + (size_t)page->n_items * column->item_bytes;
    page->n_items += (uint32_t)k;
    column->items += k;
    *ret_k = k;
    return to;
}

static void page_seal_if_full(pd_run *run, pd_column *column) {
    if (column->filling->n_items == column->page_items)
        page_seal(run, column);
}

static void column_append(pd_run *run, uint32_t c, const uint8_t *data, uint64_t n) {
    pd_column *column = &run->columns[c];
    while (n > 0) {
        uint64_t k;
        uint8_t *to = page_extend(run, c, n, &k);
        bytes_copy_le(to, data, (size_t)k, column->item_bytes);
        if (column->dataset.role == PD_ROLE_MS_INDEX && pd_rebase_any(&run->rebase))
            pd_rebase_values(&run->rebase, column->dataset.type, to, (size_t)k);
        data += k * column->item_bytes;
        n -= k;
        page_seal_if_full(run, column);
    }
}

void pd_run__append_index(pd_run *run, uint32_t c, uint64_t index, uint64_t n) {
    pd_column *column = &run->columns[c];
    if (n > 0)
        pd_run__part_repeat(run, c);
    run->groups[column->group].items += n;
    while (n > 0) {
        uint64_t k;
        uint8_t *to = page_extend(run, c, n, &k);
        pd_rebase_fill(column->dataset.type, to, (size_t)k, index);
        n -= k;
        page_seal_if_full(run, column);
    }
}

static uint64_t saturated_sum(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Slots that a batch needs when a new part begins with it. */
static bool batch_fits_a_new_part(const pd_run *run, const wire_batch *batch) {
    uint32_t slots = 0;
    for (uint32_t c = 0; c < run->n_columns; c++) {
        const pd_column *column = &run->columns[c];
        uint64_t n = batch->counts[column->group] + 1;
        slots += (uint32_t)((n + column->page_items - 1) / column->page_items);
    }
    return slots <= pd_ring_available(&run->engine->ring, &run->quota);
}

/* What is told of a batch beside its columns. */
static void batch_note(pd_run *run, const wire_batch *batch) {
    if (batch->lost_before > 0)
        pd_run__lost(run, run->groups[0].items, batch->lost_before);
    if (batch->times_valid) {
        run->instrument_time_known = true;
        run->instrument_time = batch->last_time;
    }
    for (uint32_t g = 0; g < run->n_groups; g++)
        run->received_bytes += batch->counts[g] * run->groups[g].item_bytes;
    run->received = batch->sequence;
    run->batches++;
    run->lost_before = saturated_sum(run->lost_before, batch->lost_before);
    pd_count(&run->engine->counters.batches_received, 1);
    pd_count(&run->engine->counters.photons_received, batch->counts[run->photon_group]);
    pd_stage_in(&run->engine->stages, PD_STAGE_RING, batch->counts[run->photon_group]);
}

static void batch_store(pd_run *run, const wire_batch *batch) {
    for (uint32_t c = 0; c < run->n_columns; c++)
        pd_run__part_repeat(run, c);
    for (uint32_t c = 0; c < run->n_columns; c++)
        column_append(run, c, batch->columns[c].data, batch->counts[run->columns[c].group]);
    for (uint32_t g = 0; g < run->n_groups; g++)
        run->groups[g].items += batch->counts[g];
    pd_stage_in(&run->engine->stages, PD_STAGE_DISK, batch->counts[run->photon_group]);
    if (run->summary.summary)
        pd_stage_in(&run->engine->stages, PD_STAGE_SUMMARY, batch->counts[run->photon_group]);
    pd_run__drop_over(run);
}

pd_taken pd_run__sequence(pd_run *run, const char *message, uint64_t sequence, pd_refusal *why) {
    if (run->turning)
        return PD_NO_ROOM;
    if (sequence == run->received + 1)
        return PD_TAKEN;
    if (sequence != 0 && sequence <= run->received) {
        run->duplicates++;
        pd_count(&run->engine->counters.batches_duplicate, 1);
        return PD_DUPLICATE;
    }
    why->code = PHOTON__ERROR_CODE__ERROR_HOLE;
    why->sequence = run->received + 1;
    snprintf(why->field, sizeof why->field, "%s.sequence", message);
    snprintf(why->text, sizeof why->text, "%" PRIu64 " was expected, %" PRIu64 " came", run->received + 1,
             sequence);
    return PD_REFUSED;
}

pd_taken pd_run_batch(pd_run *run, const wire_batch *batch, pd_refusal *why) {
    assert(run->state == PD_RUN_RUNNING);
    pd_taken taken = pd_run__sequence(run, "batch", batch->sequence, why);
    if (taken != PD_TAKEN)
        return taken;
    taken = batch_check(run, batch, why);
    if (taken != PD_TAKEN)
        return taken;
    bool fits = batch_fits(run, batch);
    if (!fits && !run->dropped.allowed) {
        pd_run__held(run);
        return PD_NO_ROOM;
    }
    uint32_t crc32c = wire_batch_crc32c(batch);
    if (crc32c != batch->crc32c) {
        refuse(why, PHOTON__ERROR_CODE__ERROR_CHECKSUM, batch, "batch.crc32c", "");
        snprintf(why->text, sizeof why->text,
                 "the columns have the CRC-32C %08" PRIx32 ", the message says %08" PRIx32, crc32c,
                 batch->crc32c);
        why->sequence = batch->sequence;
        return PD_REFUSED;
    }
    if (fits)
        pd_run__goes_on(run);
    if (fits && pd_run__part_is_due(run) && pd_run__part_may_begin(run) && batch_fits_a_new_part(run, batch))
        pd_run__part_begin(run);
    batch_note(run, batch);
    if (fits)
        batch_store(run, batch);
    else
        pd_run__drop(run, batch);
    run->summary.changed = true;
    pd_run__mark_due(run);
    pd_run_summary_kick(run);
    pd_run__stop_check(run);
    return fits ? PD_TAKEN : PD_DROPPED;
}

uint64_t pd_run_photons(const pd_run *run) {
    return run->groups[run->photon_group].items + run->dropped.photons;
}

uint32_t pd_run_photon_column(const pd_run *run) {
    return run->groups[run->photon_group].columns[0];
}

uint64_t pd_run_photons_durable(const pd_run *run) {
    return run->columns[pd_run_photon_column(run)].durable_items;
}

uint64_t pd_run_photons_in_flight(const pd_run *run) {
    return run->groups[run->photon_group].items - pd_run_photons_durable(run) + run->turn_photons;
}

uint64_t pd_run_credit(const pd_run *run) {
    if (run->state != PD_RUN_RUNNING)
        return 0;
    if (run->dropped.allowed)
        return UINT64_MAX;
    return (uint64_t)pd_ring_available(&run->engine->ring, &run->quota) * PD_PAGE_BYTES;
}
