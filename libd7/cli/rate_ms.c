/* Rates by the index of the first photon of every millisecond. */
#include "rate_bins.h"

#include <inttypes.h>

#define MS_PS 1000000000u

typedef struct ms_walk {
    rate *r;
    bool open;          /* the file is: what its last millisecond holds is not known yet */
    uint64_t from, to;  /* photons that count */
    uint64_t there;     /* photons that an index may speak of */
    bool begun, done;   /* `ms` and `first` are known; no more photons */
    uint64_t ms, first; /* the millisecond whose end comes next, and its first photon */
    uint64_t after;     /* the last millisecond that was closed, plus 1 */
} ms_walk;

static void restart(void *ctx) {
    ms_walk *w = ctx;
    rate_clear(w->r);
    w->begun = w->done = false;
}

/* Counts photons [first, end) in a millisecond, as far as they are asked for. */
static void close_ms(ms_walk *w, uint64_t end) {
    uint64_t low = w->first > w->from ? w->first : w->from, high = end < w->to ? end : w->to;
    if (w->open && end > w->to)
        w->done = true;
    else if (high > low)
        rate_add(w->r, 0, w->ms * MS_PS, high - low);
    if (!w->done)
        w->after = w->ms + 1;
}

static void take(void *ctx, const d7_chunk *chunk) {
    ms_walk *w = ctx;
    const uint64_t *firsts = chunk->values[0];
    for (size_t i = 0; i < chunk->n && !w->done; i++) {
        uint64_t ms = chunk->first_item + i;
        w->r->odd |= firsts[i] > w->there;
        if (w->begun && firsts[i] < w->first)
            w->r->odd = true;
        else if (w->begun && ms == w->ms + 1)
            close_ms(w, firsts[i]);
        w->ms = ms;
        w->first = firsts[i];
        w->begun = true;
    }
}

/* The milliseconds that hold the photons asked for, as [*ret_first, *ret_end). */
static int find_range(rate *r, uint64_t n_ms, uint64_t *ret_first, uint64_t *ret_end) {
    view *v = &r->v;
    d7_error err;
    uint64_t first = 0, last = n_ms;
    int rc = 0;
    if (v->from_end.given && v->from < v->to)
        rc = d7_reader_ms_of_photon(v->reader, v->from, &first, &err);
    if ((rc == 0 || rc == D7_ERR_NOTFOUND) && v->to_end.given && v->from < v->to) {
        rc = d7_reader_ms_of_photon(v->reader, v->to - 1, &last, &err);
        last = rc == 0 ? last + 1 : rc == D7_ERR_NOTFOUND ? 0 : last;
    }
    if (rc != 0 && rc != D7_ERR_NOTFOUND)
        return command_fail(v->self, "%s", err.text);
    *ret_first = first;
    *ret_end = last > first ? last : first;
    return 0;
}

/* What was asked for and has no place: photons of milliseconds that cannot be read or, in an open file, are not known to be
 * whole, and those before the first. */
static void count_unplaced(rate *r) {
    uint64_t asked = r->v.to - r->v.from;
    r->unplaced = asked > r->counted ? asked - r->counted : 0;
}

static int walk(ms_walk *w, uint32_t id, uint64_t n_ms, uint64_t first, uint64_t end) {
    rate *r = w->r;
    bool to_the_end = end >= n_ms;
    int code = view_rows(&r->v, &id, 1, first, to_the_end ? UINT64_MAX : end + 1, restart, take, w);
    if (code != 0)
        return code;
    if (to_the_end && w->begun && !w->done && !w->open)
        close_ms(w, w->to);
    if (to_the_end && w->open)
        r->end_ps = w->after * MS_PS;
    count_unplaced(r);
    return 0;
}

static uint64_t longest_column(const d7_reader *reader) {
    d7_dataset_info info;
    uint64_t longest = 0;
    for (uint32_t i = 0; d7_reader_dataset(reader, i, &info) == 0; i++)
        if (d7_group_of(info.name) == D7_GROUP_PHOTONS && info.items > longest)
            longest = info.items;
    return longest;
}

/* UINT64_MAX: nobody knows. */
static uint64_t photons_there(const d7_reader *reader) {
    uint64_t longest = longest_column(reader);
    return longest && d7_reader_state(reader) == D7_STATE_CLOSED ? longest : UINT64_MAX;
}

/* Photons count as far as all their columns go. Where those end at different items the last ones are read: damage may be why. */
static int look_at_ends(rate *r) {
    view *v = &r->v;
    uint64_t item, longest = longest_column(v->reader);
    d7_dataset_info info;
    d7_error err;
    if (v->to_end.given || d7_reader_state(v->reader) != D7_STATE_CLOSED || longest <= v->to)
        return 0;
    command_fail(v->self,
                 "%s: the last %" PRIu64 " photons are not counted: some of their columns end before",
                 v->path, longest - v->to);
    for (uint32_t i = 0; d7_reader_dataset(v->reader, i, &info) == 0; i++) {
        if (d7_group_of(info.name) != D7_GROUP_PHOTONS || info.items == 0 ||
            d7_reader_read(v->reader, i, info.items - 1, 1, &item, &err) == 0)
            continue;
        if (err.code != D7_ERR_CORRUPT)
            return command_fail(v->self, "%s", err.text);
        view_note_used(v, i);
    }
    return 0;
}

int rate_by_ms(rate *r) {
    view *v = &r->v;
    uint32_t id;
    uint64_t first = 0, end = 0;
    d7_dataset_info info;
    int code = view_need(v, D7_ROLE_MS, "/photons/ms", &id);
    if (code != 0 || d7_reader_dataset(v->reader, id, &info) != 0)
        return code;
    if (info.type != D7_UINT64 && info.type != D7_INT64)
        return command_fail(v->self, "%s: dataset %s is of type %s, not uint64", v->path, info.name,
                            d7_type_name(info.type));
    if (r->bin_ps % MS_PS != 0)
        return command_fail(v->self, "%s: photons are known by the millisecond: --bin is a multiple of 1ms",
                            v->path);
    code = look_at_ends(r);
    if (code == 0)
        code = find_range(r, info.items, &first, &end);
    if (code == 0)
        code = rate_make_bins(r, first * MS_PS, end * MS_PS, MS_PS);
    if (code != 0)
        return code;
    ms_walk w = {.r = r,
                 .open = d7_reader_state(v->reader) == D7_STATE_OPEN,
                 .from = v->from,
                 .to = v->to,
                 .there = photons_there(v->reader),
                 .after = first};
    return walk(&w, id, info.items, first, end);
}
