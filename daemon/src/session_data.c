/* Batches, attributes, acknowledgements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "session.h"

#define CODE(name) PHOTON__ERROR_CODE__ERROR_##name

/* ---- acknowledgements ---- */

uint64_t pd_session__in_flight_bytes(const pd_config *config) {
    uint64_t quarter = config->ring_bytes / 4;
    return quarter < config->batch_bytes ? config->batch_bytes : quarter;
}

void pd_session__ack_due(pd_session *s, pd_attachment *a) {
    a->ack_due = true;
    pd_connection_due(s->connection);
}

/* Those ranges of dropped numbers that this client was not told. */
static size_t ack_ranges(const pd_run *run, uint64_t told, Photon__Range ret[PD_DROP_RANGES]) {
    const pd_run_drop *d = &run->dropped;
    size_t n = 0;
    for (uint64_t i = d->n_ranges > PD_DROP_RANGES ? d->n_ranges - PD_DROP_RANGES : 0; i < d->n_ranges; i++) {
        const pd_drop_range *r = &d->ranges[i % PD_DROP_RANGES];
        if (r->last <= told)
            continue;
        ret[n] = (Photon__Range)PHOTON__RANGE__INIT;
        ret[n].first = r->first > told ? r->first : told + 1;
        ret[n++].last = r->last;
    }
    return n;
}

/* The run remembers so many ranges: they are told before any is forgotten. */
static void ack_dropped(pd_session *s, pd_attachment *a) {
    Photon__Range ranges[PD_DROP_RANGES];
    if (ack_ranges(a->run, a->told_dropped, ranges) == PD_DROP_RANGES)
        pd_session__ack_now(s, a, uv_hrtime());
    else
        pd_session__ack_due(s, a);
}

void pd_session__ack_now(pd_session *s, pd_attachment *a, uint64_t now_ns) {
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Ack ack = PHOTON__ACK__INIT;
    Photon__Range ranges[PD_DROP_RANGES], *pointers[PD_DROP_RANGES];
    ack.n_dropped = ack_ranges(a->run, a->told_dropped, ranges);
    ack.dropped = pointers;
    for (size_t i = 0; i < ack.n_dropped; i++) {
        pointers[i] = &ranges[i];
        a->told_dropped = ranges[i].last;
    }
    uint64_t most = pd_session__in_flight_bytes(s->runs->engine->config);
    uint64_t credit = pd_run_credit(a->run);
    ack.run = a->handle;
    ack.received = a->run->received;
    ack.durable = a->run->durable;
    ack.credit_bytes = credit < most ? credit : most;
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_ACK;
    message.ack = &ack;
    a->ack_due = false;
    a->last_ack_ns = now_ns;
    pd_session__send(s, &message);
}

bool pd_session_acknowledge(pd_session *s, uint64_t now_ns) {
    bool later = false;
    for (size_t i = 0; i < s->n_attached; i++) {
        pd_attachment *a = &s->attached[i];
        if (!a->ack_due || a->handle == 0)
            continue;
        if (now_ns - a->last_ack_ns >= PD_ACK_INTERVAL_NS)
            pd_session__ack_now(s, a, now_ns);
        else
            later = true;
    }
    return later;
}

/* ---- refusals ---- */

/* Whether the connection can go on after such a refusal: a client that counts or adds up wrongly cannot be trusted
 * with what follows. */
static bool refusal_ends(int code) {
    return code == CODE(BAD_BATCH) || code == CODE(CHECKSUM) || code == CODE(LIMIT);
}

static pd_heard data_refuse(pd_session *s, const pd_attachment *a, const pd_refusal *why, bool ends,
                            uint64_t offset) {
    if (ends)
        pd_count(&s->runs->engine->counters.connection_errors, 1);
    return pd_session_complain(s, &(pd_complaint){.code = why->code,
                                                  .scope = ends ? PHOTON__ERROR_SCOPE__SCOPE_CONNECTION
                                                                : PHOTON__ERROR_SCOPE__SCOPE_BATCH,
                                                  .run = a->handle,
                                                  .sequence = why->sequence,
                                                  .field = why->field,
                                                  .offset = offset,
                                                  .text = why->text});
}

/* What is behind a hole is a hole too: it is told once for each number that is expected. */
static pd_heard data_hole(pd_session *s, pd_attachment *a, const pd_refusal *why, uint64_t offset) {
    if (a->hole_told == why->sequence)
        return PD_HEARD;
    a->hole_told = why->sequence;
    return data_refuse(s, a, why, false, offset);
}

static pd_heard data_after_close(pd_session *s, pd_attachment *a, uint64_t sequence, uint64_t offset) {
    pd_count(&s->runs->engine->counters.batches_refused, 1);
    if (a->close_refused)
        return PD_HEARD;
    a->close_refused = true;
    pd_refusal why = {.code = CODE(RUN_CLOSED), .sequence = sequence, .text = "the run is being closed"};
    return data_refuse(s, a, &why, false, offset);
}

static pd_heard data_taken(pd_session *s, pd_attachment *a, pd_taken taken, const pd_refusal *why, bool ends,
                           uint64_t offset) {
    switch (taken) {
    case PD_TAKEN:
    case PD_DUPLICATE:
        pd_session__ack_due(s, a);
        return PD_HEARD;
    case PD_DROPPED:
        ack_dropped(s, a);
        return PD_HEARD;
    case PD_NO_ROOM:
        return PD_HEARD_WAIT;
    case PD_REFUSED:
        break;
    }
    pd_count(&s->runs->engine->counters.batches_refused, 1);
    if (why->code == CODE(HOLE))
        return data_hole(s, a, why, offset);
    return data_refuse(s, a, why, ends, offset);
}

/* ---- data ---- */

/* The run that a message is for, when it takes any; else NULL, with what came of it. */
static pd_attachment *data_run(pd_session *s, uint32_t run, uint64_t sequence, const char *field,
                               uint64_t offset, pd_heard *ret_heard) {
    pd_attachment *a = pd_session__by_handle(s, run);
    if (a && a->run->state == PD_RUN_RUNNING)
        return a;
    *ret_heard =
        a ? data_after_close(s, a, sequence, offset) : pd_session__unknown_run(s, run, field, offset);
    return NULL;
}

/* Photons of a batch, as many as came, whatever it says of itself. */
static uint64_t batch_photons(pd_session *s, const wire_batch *batch) {
    const pd_attachment *a = pd_session__by_handle(s, batch->run);
    uint32_t c = a ? pd_run_photon_column(a->run) : UINT32_MAX;
    return c < batch->n_columns ? batch->columns[c].bytes / a->run->columns[c].item_bytes : 0;
}

/* One that waits is looked at again and again: it comes once. */
static void batch_count_in(pd_session *s, const wire_batch *batch) {
    if (s->batch_waits)
        return;
    s->batch_photons = batch_photons(s, batch);
    pd_stage_in(&s->runs->engine->stages, PD_STAGE_SOCKET, s->batch_photons);
}

static void batch_count_out(pd_session *s, pd_taken taken) {
    pd_stages *stages = &s->runs->engine->stages;
    s->batch_waits = taken == PD_NO_ROOM;
    if (taken == PD_TAKEN || taken == PD_DROPPED)
        pd_stage_out(stages, PD_STAGE_SOCKET, s->batch_photons);
    else if (taken != PD_NO_ROOM)
        pd_stage_drop(stages, PD_STAGE_SOCKET, taken == PD_DUPLICATE ? PD_CAUSE_DUPLICATE : PD_CAUSE_REFUSED,
                      s->batch_photons);
}

pd_heard pd_session__batch(pd_session *s, const wire_batch *batch, uint64_t offset) {
    pd_heard heard;
    pd_refusal why = {0};
    batch_count_in(s, batch);
    pd_attachment *a = data_run(s, batch->run, batch->sequence, "batch.run", offset, &heard);
    pd_taken taken = a ? pd_run_batch(a->run, batch, &why) : PD_REFUSED;
    batch_count_out(s, taken);
    return a ? data_taken(s, a, taken, &why, refusal_ends(why.code), offset) : heard;
}

pd_heard pd_session__attributes(pd_session *s, const Photon__Attributes *m, uint64_t offset) {
    pd_heard heard;
    pd_attachment *a = data_run(s, m->run, m->sequence, "attributes.run", offset, &heard);
    if (!a)
        return heard;
    pd_refusal why = {0};
    if (m->n_attributes > s->runs->engine->config->max_attributes) {
        why = (pd_refusal){.code = CODE(LIMIT), .sequence = m->sequence, .field = "attributes.attributes"};
        snprintf(why.text, sizeof why.text, "%zu attributes, Limits.attributes allows fewer",
                 m->n_attributes);
        return data_refuse(s, a, &why, true, offset);
    }
    pd_attribute *list = calloc(m->n_attributes + 1, sizeof *list);
    if (!list) {
        why = (pd_refusal){.code = CODE(NO_ROOM), .sequence = m->sequence, .text = "out of memory"};
        return data_refuse(s, a, &why, false, offset);
    }
    for (size_t i = 0; i < m->n_attributes; i++)
        list[i] = (pd_attribute){m->attributes[i]->key, m->attributes[i]->value};
    pd_taken taken = pd_run_attributes(a->run, m->sequence, list, m->n_attributes, &why);
    free(list);
    return data_taken(s, a, taken, &why, false, offset);
}

static pd_heard data_told(pd_session *s, uint32_t run, pd_record_kind kind, const pd_told *told,
                          const char *field, uint64_t offset) {
    pd_heard heard;
    pd_attachment *a = data_run(s, run, told->sequence, field, offset, &heard);
    if (!a)
        return heard;
    pd_refusal why = {0};
    pd_taken taken = pd_run_told(a->run, kind, told, &why);
    return data_taken(s, a, taken, &why, false, offset);
}

pd_heard pd_session__marker(pd_session *s, const Photon__Marker *m, uint64_t offset) {
    pd_told told = {m->sequence, m->group, m->item, 0, m->text, m->utc_ns};
    return data_told(s, m->run, PD_RECORD_MARKER, &told, "marker.run", offset);
}

pd_heard pd_session__gap(pd_session *s, const Photon__Gap *m, uint64_t offset) {
    pd_told told = {m->sequence, m->group, m->item, m->count, m->cause, m->utc_ns};
    return data_told(s, m->run, PD_RECORD_GAP, &told, "gap.run", offset);
}

/* ---- Flush ---- */

void pd_session__flushed(pd_session *s, pd_attachment *a) {
    uint32_t done = 0;
    for (; done < a->n_flushes && a->flushes[done].sequence <= a->run->durable; done++) {
        Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
        Photon__Flushed flushed = PHOTON__FLUSHED__INIT;
        flushed.run = a->handle;
        flushed.id = a->flushes[done].id;
        flushed.durable = a->run->durable;
        message.body_case = PHOTON__SERVER_MESSAGE__BODY_FLUSHED;
        message.flushed = &flushed;
        pd_session__send(s, &message);
    }
    a->n_flushes -= done;
    memmove(a->flushes, a->flushes + done, a->n_flushes * sizeof *a->flushes);
}

pd_heard pd_session__flush(pd_session *s, const Photon__Flush *m, uint64_t offset) {
    pd_heard heard;
    pd_attachment *a = data_run(s, m->run, 0, "flush.run", offset, &heard);
    if (!a)
        return heard;
    if (a->n_flushes == PD_FLUSHES_MAX) {
        pd_refusal why = {.code = CODE(LIMIT), .field = "flush", .text = "16 are under way already"};
        return data_refuse(s, a, &why, false, offset);
    }
    a->flushes[a->n_flushes++] = (pd_flush){m->id, a->run->received};
    pd_run_make_durable(a->run);
    pd_session__flushed(s, a);
    return PD_HEARD;
}
