/* Rates by time stamps: of tags, of photons, of start or stop. Times count from the first stamp of the file. */
#include <inttypes.h>
#include <math.h>

#include "rate_bins.h"

enum { LOOK_MAX = 4096, PAGE_ITEMS = 2048 };

typedef struct stamp_walk {
    rate *r;
    d7_type type, channel_type;
    double unit_ps;
    uint64_t zero;          /* the first stamp */
    uint64_t low_ps, count; /* events of the current bin, of all channels together */
} stamp_walk;

static uint64_t time_of(const stamp_walk *w, uint64_t stamp) {
    return w->unit_ps == 1 ? stamp - w->zero : (uint64_t)llround((double)(stamp - w->zero) * w->unit_ps);
}

static void restart(void *ctx) {
    stamp_walk *w = ctx;
    rate_clear(w->r);
}

static void add_one(stamp_walk *w, size_t curve, uint64_t stamp) {
    if (stamp < w->zero)
        w->r->unplaced++;
    else
        rate_add(w->r, curve, time_of(w, stamp), 1);
}

/* Stamps mostly rise: those of one bin are counted in one piece. */
static void take_all(void *ctx, const d7_chunk *chunk) {
    stamp_walk *w = ctx;
    rate *r = w->r;
    uint64_t low = 0, high = 0, n = 0;
    for (size_t i = 0; i < chunk->n; i++) {
        uint64_t stamp = ((const uint64_t *)chunk->values[0])[i];
        if (w->unit_ps != 1 || stamp < w->zero) {
            add_one(w, 0, stamp);
            continue;
        }
        uint64_t time = stamp - w->zero;
        if (time < low || time >= high) {
            if (n)
                rate_add(r, 0, low, n);
            n = 0;
            low = time < r->start_ps ? time : time - (time - r->start_ps) % r->bin_ps;
            high = time < r->start_ps ? time + 1 : low + r->bin_ps;
        }
        n++;
    }
    if (n)
        rate_add(r, 0, low, n);
}

static void take_channels(void *ctx, const d7_chunk *chunk) {
    stamp_walk *w = ctx;
    rate *r = w->r;
    for (size_t i = 0; i < chunk->n; i++) {
        uint64_t channel = view_value(w->channel_type, chunk->values[1], i);
        for (size_t k = 0; k < r->n_channels; k++)
            if (r->channels[k] == channel)
                add_one(w, k, ((const uint64_t *)chunk->values[0])[i]);
    }
}

/* The first of a page's worth of stamps from `item` on, or the largest of those up to it: stamps need not be in order. */
static int read_stamp(rate *r, uint32_t id, uint64_t item, bool back, uint64_t *ret) {
    uint64_t stamps[PAGE_ITEMS] = {0}, from = back && item >= PAGE_ITEMS ? item + 1 - PAGE_ITEMS
                                              : back                     ? 0
                                                                         : item;
    size_t n = (size_t)(item + 1 - from);
    d7_error err;
    int rc = d7_reader_read(r->v.reader, id, from, n, stamps, &err);
    if (rc != 0)
        return rc == D7_ERR_CORRUPT ? rc : command_fail(r->v.self, "%s", err.text);
    *ret = stamps[0];
    for (size_t i = 1; i < n; i++)
        *ret = stamps[i] > *ret ? stamps[i] : *ret;
    return 0;
}

/* A readable stamp near an item of [0, end): at or after it, or, going back, before it; past damaged pages. */
static int find_stamp(rate *r, uint32_t id, uint64_t item, uint64_t end, bool back, uint64_t *ret) {
    int code = D7_ERR_CORRUPT;
    for (uint64_t i = 0; i < LOOK_MAX && code == D7_ERR_CORRUPT && item < end; i++) {
        code = read_stamp(r, id, item, back, ret);
        if (back && item < PAGE_ITEMS)
            break;
        item = back ? item - PAGE_ITEMS : item + PAGE_ITEMS;
    }
    return code == D7_ERR_CORRUPT
               ? command_fail(r->v.self, "%s: there are no time stamps that can be read", r->v.path)
               : code;
}

/* The times between which events are asked for. */
static int find_times(stamp_walk *w, uint32_t id, uint64_t *ret_start, uint64_t *ret_end) {
    rate *r = w->r;
    view *v = &r->v;
    uint64_t first, last;
    if (v->from >= v->to) {
        *ret_start = *ret_end = 0;
        return 0;
    }
    int code = find_stamp(r, id, 0, v->to, false, &w->zero);
    if (code == 0)
        code = find_stamp(r, id, v->from, v->to, false, &first);
    if (code == 0)
        code = find_stamp(r, id, v->to - 1, v->to, true, &last);
    if (code != 0)
        return code;
    *ret_start = v->from_end.is_time               ? v->from_end.time_ps
                 : v->from == 0 || first < w->zero ? 0
                                                   : time_of(w, first);
    *ret_end = last < w->zero ? *ret_start + 1 : time_of(w, last) + 1;
    if (v->to_end.is_time && v->to_end.time_ps < *ret_end + r->bin_ps)
        *ret_end = v->to_end.time_ps > *ret_end ? v->to_end.time_ps : *ret_end;
    return 0;
}

static int find_channels(stamp_walk *w, uint32_t *ret_id) {
    d7_dataset_info info;
    int code = view_need(&w->r->v, D7_ROLE_CHANNEL, "/tags/channel", ret_id);
    if (code == 0 && d7_reader_dataset(w->r->v.reader, *ret_id, &info) == 0)
        w->channel_type = info.type;
    return code;
}

int rate_by_stamps(rate *r, uint32_t dataset_id, double unit_ps) {
    view *v = &r->v;
    stamp_walk w = {.r = r, .unit_ps = unit_ps};
    uint64_t start = 0, end = 0;
    uint32_t ids[2] = {dataset_id};
    d7_dataset_info info;
    if (d7_reader_dataset(v->reader, dataset_id, &info) != 0 || d7_type_size(info.type) != 8 ||
        info.type == D7_DOUBLE)
        return command_fail(v->self, "%s: time stamps are not whole numbers of 64 bits", v->path);
    v->used[v->n_used++] = dataset_id;
    w.type = info.type;
    int code = r->n_channels ? find_channels(&w, &ids[1]) : 0;
    if (code == 0)
        code = find_times(&w, dataset_id, &start, &end);
    if (code == 0)
        code = rate_make_bins(r, start, end, 1000);
    if (code != 0)
        return code;
    return view_rows(v, ids, r->n_channels ? 2 : 1, v->from, view_end_of_range(v), restart,
                     r->n_channels ? take_channels : take_all, &w);
}
