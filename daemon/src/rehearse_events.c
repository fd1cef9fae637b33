#include "rehearse_events.h"

#include <d7/d7.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS_BLOCKS = 8, /* made at the beginning; they come again in turn */
    EVENTS_CHANNELS = 8,
    EVENTS_MS_MAX = 100000 /* items of an index in one batch */
};

#define EVENTS_PS_PER_S 1e12

typedef struct events_column {
    pd_role role;
    d7_type type;
    uint8_t *blocks[EVENTS_BLOCKS]; /* [per_batch] each; of stamps: from 0 on */
    double spans[EVENTS_BLOCKS];    /* stamps: how long a block is */
    void *batch;                    /* stamps and indices: as they are sent */
} events_column;

struct pd_rehearse_events {
    events_column *columns; /* [n] */
    const void **given;     /* [n] */
    uint64_t *counts;       /* [n] */
    size_t n;
    double rate_hz;
    uint64_t per_batch;
    uint64_t sent;  /* events */
    uint64_t ms;    /* items of the index */
    double now_ps;  /* where the stamps are */
    unsigned block; /* the next one */
    uint64_t random;
};

/* ---- one value ---- */

/* Even in (0, 1). */
static double events_part(pd_rehearse_events *e) {
    e->random ^= e->random << 13;
    e->random ^= e->random >> 7;
    e->random ^= e->random << 17;
    return ((double)(e->random >> 11) + 0.5) / 9007199254740992.0;
}

static double events_wait(pd_rehearse_events *e) {
    return -log(events_part(e));
}

static double events_normal(pd_rehearse_events *e) {
    return sqrt(2 * events_wait(e)) * cos(6.283185307179586 * events_part(e));
}

static double events_value(pd_rehearse_events *e, pd_role role) {
    switch (role) {
    case PD_ROLE_POSITION_X:
    case PD_ROLE_POSITION_Y:
        return fmin(fmax(2048 + 600 * events_normal(e), 0), 4095);
    case PD_ROLE_MICRO_TIME:
        return fmin(fmax(855 + 3 * events_normal(e) + 240 * events_wait(e), 0), 4095);
    case PD_ROLE_CHANNEL:
        return floor(EVENTS_CHANNELS * events_part(e));
    default:
        return floor(256 * events_part(e));
    }
}

static bool events_rise(pd_role role) {
    return role == PD_ROLE_TIME_STAMP || role == PD_ROLE_START || role == PD_ROLE_STOP;
}

/* Item i of a column becomes `value`, as far as the type holds it. */
static void events_store(void *to, d7_type type, uint64_t i, double value) {
    uint64_t whole = (uint64_t)value;
    uint8_t byte = (uint8_t)(whole > 127 && type == D7_INT8 ? 127 : whole > 255 ? 255 : whole);
    uint16_t two = (uint16_t)(whole & 0x7FFF);
    uint32_t four = (uint32_t)(whole & 0x7FFFFFFF);
    float single = (float)value;
    size_t bytes = d7_type_size(type);
    const void *from = type == D7_FLOAT    ? (const void *)&single
                       : type == D7_DOUBLE ? (const void *)&value
                       : bytes == 1        ? (const void *)&byte
                       : bytes == 2        ? (const void *)&two
                       : bytes == 4        ? (const void *)&four
                                           : (const void *)&whole;
    memcpy((uint8_t *)to + i * bytes, from, bytes);
}

/* ---- columns ---- */

static void column_fill(pd_rehearse_events *e, events_column *c, unsigned block) {
    double at = 0;
    for (uint64_t i = 0; i < e->per_batch; i++) {
        if (events_rise(c->role))
            at += events_wait(e) * EVENTS_PS_PER_S / e->rate_hz;
        events_store(c->blocks[block], c->type, i, events_rise(c->role) ? at : events_value(e, c->role));
    }
    c->spans[block] = at;
}

static int column_make(pd_rehearse_events *e, events_column *c, const pd_dataset *dataset) {
    size_t bytes = d7_type_size(dataset->type);
    bool index = dataset->role == PD_ROLE_MS_INDEX;
    *c = (events_column){.role = dataset->role, .type = dataset->type};
    if (index || events_rise(c->role)) {
        c->batch = calloc(index ? EVENTS_MS_MAX : e->per_batch, bytes);
        if (!c->batch)
            return -1;
    }
    for (unsigned b = 0; b < EVENTS_BLOCKS && !index; b++) {
        c->blocks[b] = calloc(e->per_batch, bytes);
        if (!c->blocks[b])
            return -1;
        column_fill(e, c, b);
    }
    return 0;
}

int pd_rehearse_events_make(pd_rehearse_events **ret, const pd_profile *profile, double rate_hz,
                            uint64_t per_batch, pd_error *err) {
    pd_rehearse_events *e = calloc(1, sizeof *e);
    bool made = e != NULL;
    if (made) {
        *e = (pd_rehearse_events){.n = profile->n_datasets,
                                  .columns = calloc(profile->n_datasets, sizeof *e->columns),
                                  .given = calloc(profile->n_datasets, sizeof *e->given),
                                  .counts = calloc(profile->n_datasets, sizeof *e->counts),
                                  .rate_hz = rate_hz,
                                  .per_batch = per_batch,
                                  .random = 88172645463325252u};
        made = e->columns && e->given && e->counts;
    }
    for (size_t i = 0; made && i < profile->n_datasets; i++)
        made = column_make(e, &e->columns[i], &profile->datasets[i]) == 0;
    if (!made) {
        pd_rehearse_events_free(e);
        return pd_error_set(err, "out of memory for the events of the rehearsal");
    }
    *ret = e;
    return 0;
}

void pd_rehearse_events_free(pd_rehearse_events *e) {
    if (!e)
        return;
    for (size_t i = 0; e->columns && i < e->n; i++) {
        for (unsigned b = 0; b < EVENTS_BLOCKS; b++)
            free(e->columns[i].blocks[b]);
        free(e->columns[i].batch);
    }
    free(e->columns);
    free(e->given);
    free(e->counts);
    free(e);
}

/* ---- batches ---- */

/* The first photon of each millisecond that ends in this batch. */
static uint64_t column_index(pd_rehearse_events *e, const events_column *c, uint64_t n) {
    double per_ms = e->rate_hz / 1000;
    uint64_t items = 0;
    while (items < EVENTS_MS_MAX && (double)(e->ms + items) * per_ms < (double)(e->sent + n)) {
        events_store(c->batch, c->type, items, ceil((double)(e->ms + items) * per_ms));
        items++;
    }
    return items;
}

static void column_move(const pd_rehearse_events *e, const events_column *c, uint64_t n) {
    const uint64_t *from = (const uint64_t *)(const void *)c->blocks[e->block];
    uint64_t *to = c->batch, by = (uint64_t)e->now_ps;
    if (d7_type_size(c->type) != sizeof *to || c->type == D7_DOUBLE) {
        memcpy(c->batch, c->blocks[e->block], n * d7_type_size(c->type));
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        to[i] = from[i] + by;
}

void pd_rehearse_events_next(pd_rehearse_events *e, uint64_t n, const void *const **ret_columns,
                             const uint64_t **ret_counts) {
    uint64_t ms = 0;
    double span = 0;
    for (size_t i = 0; i < e->n; i++) {
        const events_column *c = &e->columns[i];
        bool index = c->role == PD_ROLE_MS_INDEX;
        e->counts[i] = index ? column_index(e, c, n) : n;
        ms = index ? e->counts[i] : ms;
        if (events_rise(c->role))
            column_move(e, c, n);
        span = fmax(span, c->spans[e->block]);
        e->given[i] = c->batch ? c->batch : c->blocks[e->block];
    }
    e->sent += n;
    e->ms += ms;
    e->now_ps += span;
    e->block = (e->block + 1) % EVENTS_BLOCKS;
    *ret_columns = e->given;
    *ret_counts = e->counts;
}

double pd_rehearse_bytes_per_s(const pd_profile *profile, double rate_hz) {
    double bytes = 0;
    for (size_t i = 0; i < profile->n_datasets; i++) {
        const pd_dataset *d = &profile->datasets[i];
        bytes += (double)d7_type_size(d->type) * (d->role == PD_ROLE_MS_INDEX ? 1000 : rate_hz);
    }
    return bytes;
}
