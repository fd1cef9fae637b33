#include "history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct run_part *last_part(history *h) {
    return &h->run.parts[h->run.n_parts - 1];
}

static uint64_t pick(history *h, uint64_t n) {
    return disk_random(h->run.disk, n);
}

static bool chance(history *h, unsigned per_mille) {
    return disk_chance(h->run.disk, per_mille);
}

/* ---- life ---- */

static void step_batch(history *h) {
    static const uint32_t sizes[] = {1, 1, 5, 60, 400, 1500};
    uint64_t batch = h->recorder.batch + 1;
    if (batch >= RECORDER_BATCHES_MAX)
        return;
    uint32_t count = h->run.counts[batch];
    if (count == 0 || chance(h, 300))
        count = sizes[pick(h, sizeof sizes / sizeof *sizes)];
    if (recorder_append(&h->recorder, count) != 0 && !disk_dead(h->run.disk))
        run_wrong(&h->run, "a batch cannot be written");
    h->counts.batches++;
}

static void check_slot_result(history *h, int rc) {
    if (rc != 0 && rc != D7_ERR_NOSPACE && !disk_dead(h->run.disk))
        run_wrong(&h->run, "a slot cannot be written");
    h->counts.slots += rc == 0;
}

static void step_begin_sync(history *h) {
    int rc = recorder_begin_sync(&h->recorder);
    check_slot_result(h, rc);
    if (rc != 0)
        return;
    h->in_flight = h->synced = true;
    h->flight_batch = h->recorder.batch;
    h->sync[0] = h->sync[1] = SYNC_WAITS;
}

/* A part whose sync failed is left as it is; the producer sends again from what was durable on. */
static void step_next_part(history *h) {
    uint64_t durable = d7_tail_durable_sequence(h->recorder.tail);
    h->counts.parts++;
    recorder_free(&h->recorder);
    recorder_create(&h->recorder, &h->run, durable);
}

/* One of the two syncs begins, or ends. */
static void step_sync(history *h) {
    unsigned i = (unsigned)pick(h, 2);
    const char *path = i == 0 ? last_part(h)->path : last_part(h)->tail_path;
    bool may_fail = h->design != DESIGN_TWO_SLOTS && h->run.n_parts < RECORDER_PARTS_MAX - 1;
    if (h->sync[i] == SYNC_ENDED)
        return;
    if (h->sync[i]++ == SYNC_WAITS) {
        disk_begin_sync(h->run.disk, path);
        return;
    }
    bool good = !(may_fail && chance(h, 30));
    disk_finish_sync(h->run.disk, path, good);
    h->synced &= good;
    if (h->sync[0] != SYNC_ENDED || h->sync[1] != SYNC_ENDED)
        return;
    h->in_flight = false;
    h->counts.syncs++;
    h->counts.failed_syncs += !h->synced;
    if (recorder_finish_sync(&h->recorder, h->flight_batch, h->synced) != 0) {
        if (h->synced)
            run_wrong(&h->run, "a sync that succeeded failed");
        disk_set_faults(h->run.disk, &(disk_faults){.dies_after = -1});
        step_next_part(h);
    }
}

/* Somebody reads along. */
static bool peek(history *h, uint64_t *ret_sequence) {
    d7_tail_reader *reader;
    const d7_tail_slot *slot;
    d7_reader_options options = {.io = disk_io(h->run.disk)};
    if (d7_tail_reader_open(&reader, last_part(h)->path, &options, NULL) != 0)
        return false;
    bool found = d7_tail_reader_peek(reader, &slot, NULL) == 0;
    if (found)
        *ret_sequence = slot->sequence;
    d7_tail_reader_free(reader);
    h->counts.peeks += found;
    return found;
}

static void step_peek(history *h) {
    uint64_t sequence = 0;
    if (disk_dead(h->run.disk))
        return;
    if (!peek(h, &sequence) || sequence < h->run.acknowledged || sequence > h->recorder.batch)
        run_wrong(&h->run, "a reader beside the writer sees something else");
}

static void life(history *h) {
    h->counts.lives++;
    disk_faults faults = {.dies_after = chance(h, 300) ? (long)pick(h, 60) : -1,
                          .no_room_per_mille = chance(h, 200) ? 50 : 0,
                          .transfer_max = chance(h, 200) ? 700 : 0};
    if (h->design == DESIGN_TWO_SLOTS)
        faults.transfer_max = 0;
    disk_set_faults(h->run.disk, &faults);
    h->in_flight = false;
    uint64_t steps = 1 + pick(h, 90);
    for (uint64_t i = 0; i < steps && !h->run.wrong && !disk_dead(h->run.disk); i++) {
        uint64_t what = pick(h, 100);
        if (what < 45)
            step_batch(h);
        else if (what < 65)
            check_slot_result(h, recorder_mark_slot(&h->recorder));
        else if (h->in_flight)
            step_sync(h);
        else
            step_begin_sync(h);
        if (h->design == DESIGN_FULL && chance(h, 20))
            step_peek(h);
    }
}

/* ---- copies ---- */

static copy copy_of(const history *h, const char *path) {
    copy c = {0};
    const uint8_t *now = disk_content(h->run.disk, path, &c.bytes);
    if (now) {
        c.data = malloc(c.bytes + 1);
        if (!c.data)
            abort();
        memcpy(c.data, now, c.bytes);
    }
    return c;
}

/* Does the file hold what the copy holds from `from` on? */
static bool same(const copy *c, const history *h, const char *path, size_t from) {
    size_t bytes = 0;
    const uint8_t *now = disk_content(h->run.disk, path, &bytes);
    return now && c->data && bytes == c->bytes - from && memcmp(now, c->data + from, bytes) == 0;
}

static bool is_there(const history *h, const char *path) {
    size_t bytes;
    return disk_content(h->run.disk, path, &bytes) != NULL;
}

/* ---- crash and recovery ---- */

static void crash(history *h) {
    if (chance(h, 600)) {
        h->counts.power_cuts++;
        disk_power_cut(h->run.disk);
    } else {
        h->counts.kills++;
        disk_kill(h->run.disk);
    }
}

static int recover_part(history *h, unsigned part, d7_tail **ret_tail, d7_tail_recovery *ret_recovery) {
    d7_tail_recover_options options;
    d7_tail_recover_options_init(&options);
    options.io = disk_io(h->run.disk);
    options.file_id = run_file_id;
    if (h->design != DESIGN_NO_LIMIT && part + 1 < h->run.n_parts)
        options.sequence_limit = h->run.parts[part + 1].first_sequence;
    return d7_tail_recover(ret_tail, h->run.parts[part].path, &options, ret_recovery, NULL);
}

/* What was cut must lie beside the file, and stay there. */
static void check_cut(history *h, unsigned part, const copy *before, const d7_tail_recovery *recovery) {
    char path[64];
    snprintf(path, sizeof path, "%s.cut.%" PRIu32, h->run.parts[part].path, recovery->cut_number);
    if (recovery->cut_bytes != before->bytes - recovery->length ||
        (recovery->cut_bytes && !same(before, h, path, (size_t)recovery->length)))
        run_wrong(&h->run, "what was cut was not kept");
    if (recovery->cut_bytes && h->n_cuts < HISTORY_CUTS_MAX) {
        h->counts.cut++;
        h->cuts[h->n_cuts].content = copy_of(h, path);
        memcpy(h->cuts[h->n_cuts++].path, path, sizeof path);
    }
}

static void check_cuts_kept(history *h) {
    for (size_t i = 0; i < h->n_cuts; i++) {
        if (!same(&h->cuts[i].content, h, h->cuts[i].path, 0))
            run_wrong(&h->run, "what was cut and kept is gone");
        free(h->cuts[i].content.data);
    }
}

static void check_again(history *h, unsigned part) {
    const struct run_part *p = &h->run.parts[part];
    copy file = copy_of(h, p->path), tail = copy_of(h, p->tail_path);
    d7_tail *again = NULL;
    d7_tail_recovery recovery = {0};
    h->counts.again++;
    if (recover_part(h, part, &again, &recovery) != 0 || recovery.cut_bytes != 0 || recovery.n_rejected != 0)
        run_wrong(&h->run, "a second recovery came to something else");
    d7_tail_free(again);
    if (!same(&file, h, p->path, 0) || !same(&tail, h, p->tail_path, 0))
        run_wrong(&h->run, "a second recovery changed something");
    free(file.data);
    free(tail.data);
}

static void check_slot(history *h, unsigned part, const d7_tail_slot *slot) {
    bool last = part + 1 == h->run.n_parts;
    if (last && slot->sequence < h->run.acknowledged)
        run_wrong(&h->run, "acknowledged batches lost");
    if (!last && slot->sequence != h->run.parts[part + 1].first_sequence)
        run_wrong(&h->run, "a part does not end where the next one begins");
    run_check_part(&h->run, part, slot->sequence, slot);
    if (last && !h->run.wrong)
        h->run.acknowledged = slot->sequence; /* the producer is told to go on after it */
}

static void check_resumed(history *h, unsigned part, const copy *before, d7_tail *tail,
                          const d7_tail_recovery *recovery) {
    h->counts.resumed++;
    h->counts.passed_over += recovery->n_rejected > 0;
    if (h->whole.data && h->whole.bytes == before->bytes &&
        memcmp(h->whole.data, before->data, before->bytes) == 0)
        run_wrong(&h->run, "a closed file was opened again");
    check_cut(h, part, before, recovery);
    check_slot(h, part, d7_tail_recovered(tail));
    bool last = part + 1 == h->run.n_parts;
    if (chance(h, 300)) {
        d7_tail_free(tail);
        check_again(h, part);
        tail = NULL;
        if (last && recover_part(h, part, &tail, &(d7_tail_recovery){0}) != 0)
            run_wrong(&h->run, "a third recovery failed");
    }
    if (last && tail)
        recorder_resume(&h->recorder, &h->run, part, tail);
    else
        d7_tail_free(tail);
    if (last) {
        h->closing = false;
        free(h->whole.data);
        h->whole = (copy){0};
    }
}

/* A file that is closed stays closed, whatever comes. After a recovery its tail is gone for good. */
static void check_closed(history *h, unsigned part, bool recovered) {
    struct run_part *p = &h->run.parts[part];
    h->counts.closed++;
    if (!h->whole.data)
        h->whole = copy_of(h, p->path);
    disk_power_cut(h->run.disk);
    if (p->last_sequence < h->run.acknowledged)
        run_wrong(&h->run, "acknowledged batches lost");
    if (recovered && is_there(h, p->tail_path))
        run_wrong(&h->run, "the tail of a closed file is still there");
    if (!same(&h->whole, h, p->path, 0))
        run_wrong(&h->run, "a closed file is not what it was");
    run_check_part(&h->run, part, p->last_sequence, NULL);
    h->closed = true;
}

/* A part whose recovery ended well. */
static void check_recovered(history *h, unsigned part, const copy *before, d7_tail *tail,
                            const d7_tail_recovery *recovery) {
    switch (recovery->outcome) {
    case D7_TAIL_RESUMED:
        check_resumed(h, part, before, tail, recovery);
        break;
    case D7_TAIL_CLOSED:
        check_closed(h, part, true);
        break;
    case D7_TAIL_ORPHAN:
        run_wrong(&h->run, "a recovery found no file");
    }
}

/* Returns false when it came to no end, by a crash that has happened then or by a sync that failed. */
static bool recover_one(history *h, unsigned part) {
    copy before = copy_of(h, h->run.parts[part].path);
    uint64_t peeked = 0;
    bool peekable = part + 1 == h->run.n_parts && peek(h, &peeked);
    d7_tail *tail = NULL;
    d7_tail_recovery recovery = {0};
    disk_faults faults = {.dies_after = chance(h, 500) ? (long)pick(h, 16) : -1,
                          .sync_per_mille = chance(h, 100) ? 300 : 0,
                          .transfer_max = chance(h, 200) ? 5000 : 0};
    disk_set_faults(h->run.disk, &faults);
    int rc = recover_part(h, part, &tail, &recovery);
    bool dead = disk_dead(h->run.disk), ended = rc == 0;
    disk_set_faults(h->run.disk, &(disk_faults){.dies_after = -1});
    h->counts.recoveries++;
    if (peekable && ended && tail && d7_tail_recovered(tail)->sequence != peeked)
        run_wrong(&h->run, "a reader saw something else than the recovery");
    if (dead && tail) {
        /* Death came after the last step. */
        d7_tail_free(tail);
        ended = false;
    }
    if (dead)
        crash(h);
    else if (ended)
        check_recovered(h, part, &before, tail, &recovery);
    else if (rc != D7_ERR_IO || !faults.sync_per_mille)
        run_wrong(&h->run, rc == D7_ERR_CORRUPT ? "no slot is true" : "a recovery failed");
    h->counts.cut_short += !ended;
    free(before.data);
    return ended && !dead;
}

static void recover_all(history *h) {
    for (unsigned part = 0; part < h->run.n_parts && !h->run.wrong;) {
        bool last = part + 1 == h->run.n_parts;
        if (last && h->closing && !is_there(h, h->run.parts[part].tail_path)) {
            check_closed(h, part, false);
            return;
        }
        part = recover_one(h, part) ? part + 1 : 0;
    }
}

/* ---- histories ---- */

static void close_run(history *h) {
    disk_faults faults = {.dies_after = chance(h, 700) ? (long)pick(h, 14) : -1,
                          .sync_per_mille = chance(h, 300) ? 500 : 0};
    h->closing = true;
    last_part(h)->last_sequence = h->recorder.batch;
    disk_set_faults(h->run.disk, &faults);
    int rc = recorder_close(&h->recorder);
    if (rc == 0)
        h->run.acknowledged = h->recorder.batch;
    else if (!disk_dead(h->run.disk) && !faults.sync_per_mille)
        run_wrong(&h->run, "the run cannot be closed");
    if (h->recorder.ended)
        h->whole = copy_of(h, last_part(h)->path);
}

static void history_live(history *h) {
    bool plain = h->design == DESIGN_TWO_SLOTS;
    for (int lives = 0; lives < 5 && !h->run.wrong && !h->closed; lives++) {
        life(h);
        if (lives > 1 && !plain && !disk_dead(h->run.disk) && !h->in_flight && chance(h, 500))
            close_run(h);
        recorder_free(&h->recorder);
        crash(h);
        if (!plain)
            recover_all(h);
        else if (recorder_plain_recover(&h->recorder, &h->run, 0) != 0)
            run_wrong(&h->run, "no slot is true");
    }
}

static void counts_add(history_counts *to, const history_counts *more) {
    unsigned long *a = (unsigned long *)to;
    const unsigned long *b = (const unsigned long *)more;
    for (size_t i = 0; i < sizeof *to / sizeof *a; i++)
        a[i] += b[i];
}

const char *history_run(history *h, model_design design, uint64_t seed, history_counts *counts) {
    memset(h, 0, sizeof *h);
    h->design = design;
    h->run.disk = disk_new(seed);
    recorder_plain = design == DESIGN_TWO_SLOTS;
    recorder_create(&h->recorder, &h->run, 0);
    history_live(h);
    check_cuts_kept(h);
    recorder_free(&h->recorder);
    free(h->whole.data);
    disk_free(h->run.disk);
    if (counts)
        counts_add(counts, &h->counts);
    return h->run.wrong;
}
