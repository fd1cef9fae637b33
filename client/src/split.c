#include "split.h"

#include <stdbool.h>

uint64_t client__items_below(const uint64_t *values, uint64_t n, uint64_t bound) {
    uint64_t low = 0, step = 1;
    while (low + step <= n && values[low + step - 1] < bound) {
        low += step;
        step *= 2;
    }
    for (; step; step /= 2)
        if (low + step <= n && values[low + step - 1] < bound)
            low += step;
    return low;
}

static uint64_t split_bytes(const client_split *s, const uint64_t *take) {
    uint64_t bytes = 0;
    for (size_t g = 0; g < s->n_groups; g++)
        bytes += take[g] * s->row_bytes[g];
    return bytes;
}

/* Into how many batches what is left has to go, at least. */
static uint64_t split_parts(const client_split *s, const uint64_t *counts, const uint64_t *done) {
    uint64_t most_items = 0;
    double bytes = 0;
    for (size_t g = 0; g < s->n_groups; g++) {
        uint64_t left = counts[g] - done[g];
        most_items = left > most_items ? left : most_items;
        bytes += (double)left * (double)s->row_bytes[g];
    }
    uint64_t by_items = most_items ? (most_items - 1) / s->batch_items + 1 : 1;
    uint64_t by_bytes = (uint64_t)(bytes / (double)s->batch_bytes);
    if ((double)by_bytes * (double)s->batch_bytes < bytes || by_bytes == 0)
        by_bytes++;
    return by_items > by_bytes ? by_items : by_bytes;
}

/* The index items that point at photons sent by the end of this batch, as far as they fit. */
static uint64_t split_index_items(const client_split *s, const void *const *columns, const uint64_t *counts,
                                  const uint64_t *done, uint64_t photons_before, const uint64_t *take) {
    size_t g = s->index_group, p = s->photon_group;
    uint64_t left = counts[g] - done[g];
    const uint64_t *values = (const uint64_t *)columns[s->index_column] + done[g];
    bool photons_left = counts[p] > done[p];
    uint64_t items =
        photons_left ? client__items_below(values, left, photons_before + done[p] + take[p]) : left;
    return items < s->batch_items ? items : s->batch_items;
}

/* Makes room for the index items: fewer photons, and when there are none left, fewer index items. */
static void split_fit_index(const client_split *s, const void *const *columns, const uint64_t *counts,
                            const uint64_t *done, uint64_t photons_before, uint64_t *take) {
    size_t g = s->index_group, p = s->photon_group;
    for (;;) {
        take[g] = split_index_items(s, columns, counts, done, photons_before, take);
        if (split_bytes(s, take) <= s->batch_bytes)
            return;
        if (take[p] == 0)
            break;
        take[p] /= 2;
    }
    take[g] = 0;
    uint64_t used = split_bytes(s, take);
    take[g] = used < s->batch_bytes ? (s->batch_bytes - used) / s->row_bytes[g] : 0;
}

static bool split_is_empty(const client_split *s, const uint64_t *take) {
    for (size_t g = 0; g < s->n_groups; g++)
        if (take[g])
            return false;
    return true;
}

/* When even parts come out as nothing at all: one item of the first group that has one, photons before their index. */
static void split_take_one(const client_split *s, const uint64_t *counts, const uint64_t *done,
                           uint64_t *take) {
    for (size_t g = 0; g < s->n_groups; g++) {
        if (g != s->index_group && counts[g] > done[g]) {
            take[g] = 1;
            return;
        }
    }
    if (s->index_group != CLIENT_SPLIT_NO_GROUP && counts[s->index_group] > done[s->index_group])
        take[s->index_group] = 1;
}

void client__split_next(const client_split *s, const void *const *columns, const uint64_t *counts,
                        const uint64_t *done, uint64_t photons_before, uint64_t *take) {
    uint64_t parts = split_parts(s, counts, done);
    for (size_t g = 0; g < s->n_groups; g++)
        take[g] = (counts[g] - done[g]) / parts;
    if (parts > 1 && s->index_group != CLIENT_SPLIT_NO_GROUP)
        split_fit_index(s, columns, counts, done, photons_before, take);
    if (split_is_empty(s, take))
        split_take_one(s, counts, done, take);
}
