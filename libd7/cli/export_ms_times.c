#include "export_ms_times.h"

#include <stdbool.h>
#include <stdlib.h>

enum { BLOCK_ITEMS = 2048 };

struct ms_times {
    d7_reader *reader;
    uint32_t dataset_id;
    uint64_t n;              /* milliseconds */
    uint64_t now;            /* the millisecond of the rows before next_row */
    uint64_t next, next_row; /* the one that begins after it, and with which row; n and UINT64_MAX: none */
    uint64_t first;          /* of the values that are here */
    size_t have;
    uint64_t values[BLOCK_ITEMS]; /* [have] UINT64_MAX: lost */
    int64_t *times;               /* room for `cap` */
    size_t cap;
    bool failed;
};

/* A value, through a block of them. */
static uint64_t value_at(ms_times *t, uint64_t ms) {
    d7_error err;
    if (ms >= t->first && ms - t->first < t->have)
        return t->values[ms - t->first];
    t->first = ms / BLOCK_ITEMS * BLOCK_ITEMS;
    t->have = t->n - t->first < BLOCK_ITEMS ? (size_t)(t->n - t->first) : BLOCK_ITEMS;
    int rc = d7_reader_read(t->reader, t->dataset_id, t->first, t->have, t->values, &err);
    for (size_t i = 0; rc == D7_ERR_CORRUPT && i < t->have; i++)
        if (d7_reader_read(t->reader, t->dataset_id, t->first + i, 1, &t->values[i], &err) != 0)
            t->values[i] = UINT64_MAX;
    t->failed |= rc != 0 && rc != D7_ERR_CORRUPT;
    return t->values[ms - t->first];
}

static void find_next(ms_times *t) {
    for (t->next++; t->next < t->n && !t->failed; t->next++) {
        t->next_row = value_at(t, t->next);
        if (t->next_row != UINT64_MAX)
            return;
    }
    t->next_row = UINT64_MAX;
}

ms_times *ms_times_new(d7_reader *r) {
    d7_dataset_info info;
    uint32_t id;
    if (d7_reader_find_role(r, D7_ROLE_MS, &id) != 0 || d7_reader_dataset(r, id, &info) != 0 ||
        info.items == 0 || (info.type != D7_UINT64 && info.type != D7_INT64))
        return NULL;
    ms_times *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->reader = r;
    t->dataset_id = id;
    t->n = info.items;
    find_next(t);
    return t;
}

const int64_t *ms_times_of(ms_times *t, uint64_t row, size_t n) {
    if (n > t->cap) {
        int64_t *times = realloc(t->times, n * sizeof *times);
        if (!times)
            return NULL;
        t->times = times;
        t->cap = n;
    }
    for (size_t i = 0; i < n && !t->failed; i++) {
        while (row + i >= t->next_row && !t->failed) {
            t->now = t->next;
            find_next(t);
        }
        t->times[i] = (int64_t)t->now;
    }
    return t->failed ? NULL : t->times;
}

uint64_t ms_times_count(const ms_times *t) {
    return t->n;
}

void ms_times_free(ms_times *t) {
    if (t)
        free(t->times);
    free(t);
}
