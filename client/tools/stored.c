#include "stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "split.h"

#define NS_PER_MS 1000000

/* Items of the other groups in a chunk, at most. */
enum { STORED_OTHERS_AT_ONCE = 65536, STORED_LOOK_ITEMS = 256 /* less than a page */ };

typedef struct send_stored {
    const send_stored_kind *kind;
    void *own;
    uint64_t lengths[SEND_DATASETS_MAX]; /* by group */
    uint64_t done[SEND_DATASETS_MAX];    /* by group */
    uint64_t at_once;                    /* items in a chunk, at most: less and less before damage */
    bool cut;                            /* fewer events than there are: the ms index ends with them */
} send_stored;

static uint64_t stored_least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t stored_left(const send_stored *t, size_t group) {
    return t->lengths[group] - t->done[group];
}

static uint64_t stored_others_at_once(const send_stored *t) {
    return stored_least(t->at_once, STORED_OTHERS_AT_ONCE);
}

/* ---- which events have happened */

/* By the index of milliseconds: the photons before the millisecond that is under way. */
static int stored_due_by_ms(send_stored *t, size_t ms, size_t ms_group, int64_t until_ns, uint64_t events,
                            uint64_t *due, send_fault *fault) {
    uint64_t k = (uint64_t)(until_ns / NS_PER_MS);
    *due = events;
    if (k >= t->lengths[ms_group])
        return 0;
    const uint64_t *first = t->kind->fetch(t->own, ms, k, 1, fault);
    if (!first)
        return -1;
    *due = *first < events ? *first : events;
    return 0;
}

/* By the time stamps of the next n events. */
static int stored_due_by_stamp(const send_source *s, send_stored *t, size_t stamp, int64_t until_ns,
                               uint64_t n, uint64_t *due, send_fault *fault) {
    const photon_client_time_base *base = &s->time_base;
    const uint64_t *begin = t->kind->fetch(t->own, stamp, 0, 1, fault);
    if (!begin)
        return -1;
    double tick_ns = 1e-3;
    if (base->tick_ps_numerator && base->tick_ps_denominator)
        tick_ns = 1e-3 * (double)base->tick_ps_numerator / (double)base->tick_ps_denominator;
    uint64_t bound = *begin + (uint64_t)((double)until_ns / tick_ns);
    const uint64_t *stamps = t->kind->fetch(t->own, stamp, t->done[s->event_group], (size_t)n, fault);
    if (!stamps)
        return -1;
    *due = t->done[s->event_group] + client__items_below(stamps, n, bound);
    return 0;
}

/* How many of the next n events happened by then. */
static int stored_due(const send_source *s, send_stored *t, int64_t until_ns, uint64_t *n,
                      send_fault *fault) {
    size_t g = s->event_group, ms = send_find_role(s, PHOTON_CLIENT_ROLE_MS_INDEX);
    size_t stamp = send_find_role(s, PHOTON_CLIENT_ROLE_TIME_STAMP);
    uint64_t due = 0;
    int rc;
    if (until_ns == SEND_NO_TIME || *n == 0)
        return 0;
    if (ms != SEND_DATASETS_MAX)
        rc = stored_due_by_ms(t, ms, s->group_of[ms], until_ns, t->lengths[g], &due, fault);
    else
        rc = stored_due_by_stamp(s, t, stamp, until_ns, *n, &due, fault);
    if (rc == 0)
        *n = due > t->done[g] ? stored_least(due - t->done[g], *n) : 0;
    return rc;
}

/* ---- what goes with them */

/* The items of the ms index that point at events sent by then. */
static int stored_index(const send_source *s, send_stored *t, size_t ms, uint64_t events_then, uint64_t *n,
                        send_fault *fault) {
    size_t g = s->group_of[ms];
    uint64_t most = stored_least(stored_left(t, g), stored_others_at_once(t));
    *n = 0;
    if (most == 0)
        return 0;
    const uint64_t *items = t->kind->fetch(t->own, ms, t->done[g], (size_t)most, fault);
    if (!items)
        return -1;
    if (events_then != t->lengths[s->event_group] || t->cut)
        most = client__items_below(items, most, events_then);
    *n = most;
    return 0;
}

/* As large a part of another group as of the events. */
static uint64_t stored_part(const send_source *s, const send_stored *t, size_t g, uint64_t events_then) {
    uint64_t events = t->lengths[s->event_group], to = t->lengths[g];
    if (events_then < events)
        to = stored_least(to, (uint64_t)((double)to * ((double)events_then / (double)events)));
    return to > t->done[g] ? stored_least(to - t->done[g], stored_others_at_once(t)) : 0;
}

static int stored_counts(const send_source *s, send_stored *t, const send_want *want, uint64_t *counts,
                         send_fault *fault) {
    size_t ms = send_find_role(s, PHOTON_CLIENT_ROLE_MS_INDEX), e = s->event_group;
    uint64_t n = stored_least(stored_least(want->events, t->at_once), stored_left(t, e));
    if (stored_due(s, t, want->until_ns, &n, fault) != 0)
        return -1;
    for (size_t g = 0; g < s->n_groups; g++)
        counts[g] = g == e ? n : stored_part(s, t, g, t->done[e] + n);
    if (ms != SEND_DATASETS_MAX && s->group_of[ms] != e)
        return stored_index(s, t, ms, t->done[e] + n, &counts[s->group_of[ms]], fault);
    return 0;
}

static bool stored_ended(const send_source *s, const send_stored *t) {
    for (size_t g = 0; g < s->n_groups; g++)
        if (stored_left(t, g))
            return false;
    return true;
}

static const void *stored_again(const send_source *s, size_t dataset, uint64_t from) {
    const send_stored *t = s->own;
    return t->kind->fetch(t->own, dataset, from, 1, NULL);
}

static int stored_take(send_source *s, const send_want *want, send_chunk *chunk, send_fault *fault) {
    send_stored *t = s->own;
    if (stored_counts(s, t, want, chunk->counts, fault) != 0)
        return -1;
    if (stored_ended(s, t))
        return 0;
    for (size_t i = 0; i < s->n_datasets; i++) {
        size_t g = s->group_of[i];
        chunk->columns[i] = NULL;
        if (chunk->counts[g] == 0)
            continue;
        chunk->columns[i] = t->kind->fetch(t->own, i, t->done[g], (size_t)chunk->counts[g], fault);
        if (!chunk->columns[i])
            return -1;
    }
    for (size_t g = 0; g < s->n_groups; g++)
        t->done[g] += chunk->counts[g];
    return 1;
}

/* Before damage the pieces become smaller, so that what is sound goes up to the last item. */
static int stored_next(send_source *s, const send_want *want, send_chunk *chunk, send_fault *fault) {
    send_stored *t = s->own;
    int rc;
    while ((rc = stored_take(s, want, chunk, fault)) < 0 && t->at_once > 1)
        t->at_once /= 2;
    return rc;
}

static void stored_free(send_source *s) {
    send_stored *t = s->own;
    if (t->own)
        t->kind->close(t->own);
    free(t->own);
}

/* ---- beginning */

static int stored_ragged(const send_source *s, size_t i, uint64_t length, uint64_t other, const char *what,
                         send_fault *fault) {
    bool events = s->group_of[i] == s->event_group;
    uint64_t least = stored_least(length, other);
    return send_refuse(
        fault, "%s: the columns of '%s' differ in length: '%s' has %llu items, another %llu%s%.0llu", what,
        s->datasets[i].group, s->datasets[i].name, (unsigned long long)length, (unsigned long long)other,
        events ? "; take what all have with --count " : "", (unsigned long long)(events ? least : 0));
}

/* Columns of one group have one length, or a count that all of them reach. */
static int stored_lengths(const send_source *s, send_stored *t, const uint64_t *lengths, uint64_t count,
                          const char *what, send_fault *fault) {
    for (size_t g = 0; g < s->n_groups; g++)
        t->lengths[g] = SEND_UNKNOWN;
    for (size_t i = 0; i < s->n_datasets; i++) {
        size_t g = s->group_of[i];
        uint64_t other = t->lengths[g], least = stored_least(other, lengths[i]);
        bool enough = g == s->event_group && count <= least;
        if (other != SEND_UNKNOWN && other != lengths[i] && !enough)
            return stored_ragged(s, i, lengths[i], other, what, fault);
        t->lengths[g] = least;
    }
    return 0;
}

static bool stored_is_timed(const send_source *s) {
    size_t ms = send_find_role(s, PHOTON_CLIENT_ROLE_MS_INDEX),
           stamp = send_find_role(s, PHOTON_CLIENT_ROLE_TIME_STAMP);
    if (ms != SEND_DATASETS_MAX && s->datasets[ms].type == PHOTON_CLIENT_UINT64)
        return true;
    return stamp != SEND_DATASETS_MAX && s->datasets[stamp].type == PHOTON_CLIENT_UINT64 &&
           s->group_of[stamp] == s->event_group;
}

/* The items of the ms index that point at events that are taken; no page past them is looked at. */
static int stored_cut_index(const send_source *s, send_stored *t, size_t ms, send_fault *fault) {
    size_t g = s->group_of[ms];
    uint64_t events = t->lengths[s->event_group], from = 0, below = STORED_LOOK_ITEMS;
    while (from < t->lengths[g] && below == STORED_LOOK_ITEMS) {
        uint64_t n = stored_least(t->lengths[g] - from, STORED_LOOK_ITEMS);
        const uint64_t *items = t->kind->fetch(t->own, ms, from, (size_t)n, fault);
        if (!items)
            return -1;
        below = client__items_below(items, n, events);
        from += below;
    }
    t->lengths[g] = from;
    return 0;
}

/* Nothing is fetched past what is asked for. What can be found out without reading twice is found out here: the
 * beginning of each dataset, which is kept for the first chunk. */
static int stored_look(const send_source *s, send_stored *t, send_fault *fault) {
    size_t ms = send_find_role(s, PHOTON_CLIENT_ROLE_MS_INDEX);
    if (t->cut && ms != SEND_DATASETS_MAX && s->group_of[ms] != s->event_group &&
        stored_cut_index(s, t, ms, fault) != 0)
        return -1;
    for (size_t i = 0; i < s->n_datasets; i++) {
        uint64_t length = t->lengths[s->group_of[i]];
        if (t->kind->ask && t->kind->ask(t->own, i, length, fault) != 0)
            return -1;
        if (length && !t->kind->fetch(t->own, i, 0, (size_t)stored_least(length, t->at_once), fault))
            return -1;
    }
    return 0;
}

/* The datasets and their lengths are known. */
static int stored_settle(send_source *s, const uint64_t *lengths, uint64_t count, const char *what,
                         send_fault *fault) {
    send_stored *t = s->own;
    send_settle_events(s, NULL);
    if (stored_lengths(s, t, lengths, count, what, fault) != 0)
        return -1;
    send_settle_events(s, t->lengths);
    send_settle_time(s);
    size_t e = s->event_group, ms = send_find_role(s, PHOTON_CLIENT_ROLE_MS_INDEX);
    if (ms != SEND_DATASETS_MAX && s->datasets[ms].type != PHOTON_CLIENT_UINT64)
        return send_refuse(fault, "%s: '%s' has to be of type uint64", what, s->datasets[ms].name);
    t->cut = count < t->lengths[e];
    t->lengths[e] = stored_least(t->lengths[e], count);
    s->n_events = t->lengths[e];
    s->timed = stored_is_timed(s);
    t->at_once = t->kind->events_at_once;
    if (stored_look(s, t, fault) == 0)
        return 0;
    size_t told = strlen(fault->text);
    snprintf(fault->text + told, sizeof fault->text - told,
             "; nothing was sent: --count can ask for what is before");
    return -1;
}

send_source *send_stored_open(const send_stored_kind *kind, const void *arguments, const char *what,
                              uint64_t count, send_fault *fault) {
    uint64_t lengths[SEND_DATASETS_MAX];
    send_source *s = send_source_make(sizeof(send_stored), fault);
    if (!s)
        return NULL;
    send_stored *t = s->own;
    s->free = stored_free;
    s->next = stored_next;
    s->again = kind->lasting ? stored_again : NULL;
    t->kind = kind;
    t->own = calloc(1, kind->own_bytes);
    int rc = t->own ? kind->open(s, t->own, arguments, lengths, fault) : send_refuse(fault, "no memory");
    if (rc == 0)
        rc = stored_settle(s, lengths, count, what, fault);
    if (rc != 0) {
        send_source_free(s);
        return NULL;
    }
    return s;
}
