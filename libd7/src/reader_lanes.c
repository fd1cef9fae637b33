/* Whole pages decoded by several threads.
 *
 *   tasks, in file order:  [ group ][ group ][ group ] ...     each one stretch of the file, read at once
 *                              \       |       /
 *                          lane 0 (the caller's thread), lane 1, ... take the next group until none is left
 *
 * A lane has its own window into the file and its own room for an entry of several fragments; it shares
 * nothing that is written but the number of the next group. Memory is the calling thread's alone: what does
 * not fit the room that it gave the lanes beforehand is left undone, and so is every page that is not as it
 * should be. */
#include <stdatomic.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "reader_pages.h"

enum {
    LANES_DEFAULT = 4,
    GROUP_BYTES = 192 * 1024, /* of the file, which then is in the nearer caches when it is decoded */
    WINDOW_BYTES = 256 * 1024,
    GAP_BYTES = 16 * 1024,    /* more than that between two pages is not worth reading */
    ROOM_BYTES_MAX = 64 << 20 /* for entries, in all lanes */
};

typedef struct group {
    size_t first, n; /* of the tasks */
    uint64_t end;    /* where the last one is thought to end in the file */
} group;

typedef struct lane {
    struct d7__lanes *all;
    d7__source source; /* the reader's file, another window */
    d7__framing framing;
    size_t usual_bytes; /* a little more than the last page took in the file; 0: there was none */
    d7_error failure;   /* for the task that met it; the lane then ends */
} lane;

struct d7__lanes {
    d7_reader *reader;
    size_t entry_bytes; /* the most that a usual page has when it is encoded */
    d7__page_task tasks[D7__TASKS_MAX];
    group groups[D7__TASKS_MAX];
    size_t n_groups;
    atomic_size_t next_group;
    lane lanes[D7_READER_LANES_MAX];
};

static size_t usual_entry_bytes(const d7_reader *r) {
    size_t most = 1;
    for (size_t i = 0; i < r->header.n_datasets; i++) {
        size_t bytes = d7_page_bound(r->header.datasets[i].type, r->datasets[i].items_per_page);
        most = bytes > most ? bytes : most;
    }
    return most < D7_ENTRY_BYTES_MAX ? most : D7_ENTRY_BYTES_MAX;
}

/* All that a reading needs and the pages do not decide, so that later ones take no memory. */
static int start_lanes(d7_reader *r) {
    size_t entry_bytes = usual_entry_bytes(r);
    r->page.n = r->page_items = r->framing.entry.n = 0;
    if (d7__buffer_reserve(&r->alloc, &r->page, r->header.bytes_per_page) != 0 ||
        d7__buffer_reserve(&r->alloc, &r->framing.entry, entry_bytes) != 0)
        return D7_ERR_NOMEM;
    r->lanes = d7__new(&r->alloc, sizeof *r->lanes);
    if (!r->lanes)
        return D7_ERR_NOMEM;
    r->lanes->entry_bytes = entry_bytes;
    return 0;
}

d7__page_task *d7__lanes_tasks(d7_reader *r) {
    return r->lanes || start_lanes(r) == 0 ? r->lanes->tasks : NULL;
}

void d7__lanes_free(d7_reader *r) {
    for (size_t i = 0; r->lanes && i < D7_READER_LANES_MAX; i++) {
        d7__release(&r->alloc, r->lanes->lanes[i].source.window.data);
        d7__release(&r->alloc, r->lanes->lanes[i].framing.entry.data);
    }
    d7__release(&r->alloc, r->lanes);
    r->lanes = NULL;
}

/* ---- groups ---- */

static bool is_whole(const d7__page_task *t) {
    return t->items && t->end - t->from == t->items && !t->condemned;
}

/* Puts the tasks into groups of pages that are near each other. */
static void make_groups(struct d7__lanes *all, size_t n) {
    const d7__page_task *tasks = all->tasks;
    group *g = NULL;
    all->n_groups = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t offset = tasks[i].offset, guess = d7__frame_bound(all->entry_bytes);
        uint64_t next = i + 1 < n ? tasks[i + 1].offset - offset : guess;
        if (!is_whole(&tasks[i])) {
            g = NULL;
            continue;
        }
        if (!g || offset > g->end || offset - tasks[g->first].offset >= GROUP_BYTES) {
            g = &all->groups[all->n_groups++];
            *g = (group){.first = i};
        }
        g->n++;
        g->end = offset + (next <= guess + GAP_BYTES ? next : guess);
    }
}

/* ---- lanes ---- */

/* Returns false when the file cannot be read. */
static bool decode_task(lane *l, d7__page_task *t) {
    const d7_reader *r = l->all->reader;
    d7__found found;
    d7__entry entry;
    uint32_t id;
    size_t n;
    int rc = d7__entry_at(&l->framing, t->offset, &found, &entry, &l->failure);
    if (rc != 0 && rc != D7_ERR_NOMEM) {
        t->failure = &l->failure;
        return false;
    }
    if (rc != 0 || found != D7__FOUND_ENTRY)
        return true;
    rc = d7_page_decode(r->header.datasets[t->dataset_id].type, entry.data, entry.bytes, t->out, t->items,
                        &id, &n, NULL);
    t->done = rc == 0 && id == t->dataset_id && n == t->items;
    l->usual_bytes = (size_t)(entry.next - entry.offset) / 16 * 17 + 64;
    return true;
}

static void run_lane(void *arg) {
    lane *l = arg;
    struct d7__lanes *all = l->all;
    size_t i;
    while ((i = atomic_fetch_add_explicit(&all->next_group, 1, memory_order_relaxed)) < all->n_groups) {
        const group *g = &all->groups[i];
        for (size_t k = g->first; k < g->first + g->n; k++) {
            d7__page_task *t = &all->tasks[k];
            uint64_t window = g->end - t->offset;
            if (g->n == 1 && l->usual_bytes && l->usual_bytes < window)
                window = l->usual_bytes;
            l->source.window_bytes = window < WINDOW_BYTES ? (size_t)window : WINDOW_BYTES;
            if (!decode_task(l, t))
                return;
        }
    }
}

static void *no_memory(void *ctx, void *old, size_t bytes) {
    (void)ctx;
    (void)old;
    (void)bytes;
    return NULL;
}

static void nothing_to_release(void *ctx, void *old) {
    (void)ctx;
    (void)old;
}

/* The reader's file as it is now, and the lane's own memory, which is not to grow on another thread. */
static int prepare_lane(d7_reader *r, lane *l) {
    static const d7_alloc none = {.resize = no_memory, .release = nothing_to_release};
    size_t entry_bytes = r->lanes->entry_bytes;
    d7__buffer window = l->source.window;
    window.n = l->framing.entry.n = 0;
    if (d7__buffer_reserve(&r->alloc, &window, WINDOW_BYTES) != 0)
        return D7_ERR_NOMEM;
    l->source.window = window;
    if (d7__buffer_reserve(&r->alloc, &l->framing.entry, entry_bytes) != 0)
        return D7_ERR_NOMEM;
    l->all = r->lanes;
    l->source = (d7__source){.io = r->source.io,
                             .alloc = &none,
                             .file = r->source.file,
                             .path = r->source.path,
                             .size = r->source.size,
                             .window = window};
    l->framing.source = &l->source;
    l->framing.unframed = r->framing.unframed;
    return 0;
}

/* As many as the caller allows, if there is work for more than one. */
static size_t lanes_to_use(const d7_reader *r) {
    size_t n = !r->has_executor || r->lanes->n_groups < 2 ? 1 : r->n_lanes ? r->n_lanes : LANES_DEFAULT;
    size_t room = ROOM_BYTES_MAX / r->lanes->entry_bytes;
    n = n < D7_READER_LANES_MAX ? n : D7_READER_LANES_MAX;
    return n < room ? n : room;
}

static void run_lanes(d7_reader *r, size_t n) {
    lane *lanes = r->lanes->lanes;
    size_t submitted = 0;
    for (size_t i = 1; i < n && i < r->lanes->n_groups; i++)
        submitted += r->executor.submit(r->executor.ctx, run_lane, &lanes[i]) == 0;
    run_lane(&lanes[0]);
    if (submitted)
        r->executor.wait(r->executor.ctx);
}

int d7__lanes_decode(d7_reader *r, size_t n, d7_error *err) {
    struct d7__lanes *all = r->lanes;
    all->reader = r;
    make_groups(all, n);
    if (all->n_groups == 0)
        return 0;
    size_t n_lanes = lanes_to_use(r);
    for (size_t i = 0; i < n_lanes; i++)
        if (prepare_lane(r, &all->lanes[i]) != 0)
            return d7__reader_no_memory(r, err);
    atomic_store_explicit(&all->next_group, 0, memory_order_relaxed);
    run_lanes(r, n_lanes);
    for (size_t i = 0; i < n_lanes; i++)
        r->source.bytes_read += all->lanes[i].source.bytes_read;
    return 0;
}
