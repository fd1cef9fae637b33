#include "level.h"

#include "reader.h"

void d7__level_begin(d7__level *l, const d7_reader *r, d7_group group) {
    *l = (d7__level){0};
    for (uint32_t ds = 0; ds < r->header.n_datasets && l->n < D7__LEVEL_COLUMNS; ds++) {
        if (d7_group_of(r->header.datasets[ds].name) != group)
            continue;
        l->items[l->n] = r->datasets[ds].items_per_page;
        l->ids[l->n++] = ds;
    }
}

void d7__level_drop_empty(d7__level *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (l->pages[i] == 0)
            continue;
        l->ids[n] = l->ids[i];
        l->items[n] = l->items[i];
        l->pages[n++] = l->pages[i];
    }
    l->n = n;
}

void d7__level_count(d7__level *l, uint32_t ds) {
    for (size_t i = 0; i < l->n; i++)
        l->pages[i] += l->ids[i] == ds;
}

/* Some items that a page has no room for yet may wait for the next. */
void d7__level_look(d7__level *l) {
    uint64_t least = 0, most = UINT64_MAX;
    for (size_t i = 0; i < l->n; i++) {
        uint64_t items = l->pages[i] * l->items[i], end = items + l->items[i] - 1;
        least = items > least ? items : least;
        most = end < most ? end : most;
    }
    l->since++;
    if (l->n > 1 && least <= most) {
        l->reached = true;
        l->since = 0;
    }
    l->longest = l->since > l->longest ? l->since : l->longest;
}
