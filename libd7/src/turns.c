#include "turns.h"

#include "codec.h"
#include "reader_pages.h"

/* Fewer turns show no habit; and after so many without fail nothing but their ends counts. */
enum { TURNS_MIN = 3, TURNS_STRICT = 8 };

void d7__turns_begin(d7__turns *t, const d7_reader *r, d7_group group) {
    *t = (d7__turns){0};
    d7__level_begin(&t->level, r, group);
    for (size_t i = 0; i < t->level.n; i++)
        t->level.pages[i] = r->datasets[t->level.ids[i]].n_pages;
    t->irregular = t->level.n < 2;
}

/* The most items of which a column has pages. */
static uint64_t most_items(const d7__level *l) {
    uint64_t most = 0;
    for (size_t i = 0; i < l->n; i++)
        most = l->pages[i] * l->items[i] > most ? l->pages[i] * l->items[i] : most;
    return most;
}

/* Can all columns be of equal lengths, if each may be `slack` pages longer? */
static bool is_level(const d7__turns *t, uint64_t slack) {
    const d7__level *l = &t->level;
    uint64_t least = 0, most = UINT64_MAX;
    for (size_t i = 0; i < l->n; i++) {
        uint64_t items = l->pages[i] * l->items[i], end = items + (1 + slack) * l->items[i] - 1;
        if (l->pages[i] == 0 || t->late[i])
            continue;
        least = items > least ? items : least;
        most = end < most ? end : most;
    }
    return least <= most;
}

/* Where columns come to equal lengths after all, it is something else that ends the turns of this writer. */
static void come_level(d7__turns *t) {
    t->irregular |= t->n_off > 0;
    t->n_off = t->n_far = 0;
}

static void end_turn(d7__turns *t) {
    uint64_t most = most_items(&t->level);
    for (size_t i = 0; i < t->level.n; i++)
        t->late[i] |= t->level.pages[i] == 0 && most >= t->level.items[i];
    if (is_level(t, 0)) {
        come_level(t);
        t->n_level++;
        t->level_at = t->last_at;
    } else {
        t->n_off++;
        t->n_far += !is_level(t, 1);
    }
}

void d7__turns_page(d7__turns *t, uint32_t ds, uint64_t offset, bool full) {
    d7__level *l = &t->level;
    size_t i = 0;
    while (i < l->n && l->ids[i] != ds)
        i++;
    if (i == l->n || t->irregular)
        return;
    if (t->begun && i < t->last)
        end_turn(t);
    t->irregular |= !full;
    l->pages[i]++;
    if (t->n_level < TURNS_STRICT && is_level(t, 0))
        come_level(t);
    t->begun = true;
    t->last = i;
    t->last_at = offset;
}

/* Another writer's columns may lag behind one another by a page from the first turns on. */
bool d7__turns_are_left(const d7__turns *t, size_t n) {
    return (t->n_level >= TURNS_MIN && t->n_off >= n) || (t->n_level > 0 && t->n_far >= 2);
}

/* A page that was counted to the wrong column may be a full one of its own. */
bool d7__turns_is_full(const d7_reader *r, uint32_t ds, const uint8_t *entry, size_t bytes) {
    d7_type type = r->header.datasets[ds].type;
    uint32_t id;
    size_t n;
    if (d7_page_count(type, entry, bytes, &id, &n, NULL) != 0 || n == r->datasets[ds].items_per_page)
        return true;
    for (uint32_t i = 0; i < r->header.n_datasets; i++)
        if (r->datasets[i].items_per_page == n &&
            d7__payload_field(r->header.datasets[i].type) == d7__payload_field(type))
            return true;
    return false;
}
