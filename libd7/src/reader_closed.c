/* A file with an epilogue: its global index says where everything is. Source: the D7 specification, sections
 * 4 and 5. */
#include <inttypes.h>

#include "codec.h"
#include "error.h"
#include "reader.h"
#include "unframed.h"

/* Where an epilogue would be: at the start of the last block. */
static int epilogue_place(d7__framing *f, bool *ret_there, uint64_t *ret_at, d7_error *err) {
    uint64_t size = f->source->size;
    if (f->unframed)
        return d7__unframed_find_epilogue(f, ret_there, ret_at, err);
    *ret_at = (size - 1) - (size - 1) % D7_BLOCK_BYTES;
    *ret_there = *ret_at > 0;
    return 0;
}

int d7__find_epilogue(d7__framing *f, bool *ret_there, uint64_t *ret_at, uint64_t *ret_index, d7_error *err) {
    d7__found found;
    d7__entry entry;
    d7__kind kind;
    d7__cursor body;
    bool maybe;
    *ret_there = false;
    int rc = epilogue_place(f, &maybe, ret_at, err);
    if (rc == 0 && maybe)
        rc = d7__entry_at(f, *ret_at, &found, &entry, err);
    if (rc == 0 && maybe && found == D7__FOUND_ENTRY &&
        d7__entry_kind(entry.data, entry.bytes, &kind, &body) && kind == D7__KIND_EPILOGUE)
        *ret_there = d7__epilogue_unpack(body, ret_index);
    return rc;
}

int d7__global_index_each(d7_reader *r, uint64_t offset, uint64_t end, d7__take_index_fn *take, void *ctx,
                          bool *ret_whole, d7_error *err) {
    d7__found found;
    d7__entry entry;
    *ret_whole = false;
    if (offset < r->data_start || offset >= end)
        return 0;
    int rc = d7__entry_at(&r->framing, offset, &found, &entry, err);
    while (rc == 0 && found == D7__FOUND_ENTRY && entry.offset < end) {
        d7__kind kind;
        d7__cursor body;
        bool good;
        if (!d7__entry_kind(entry.data, entry.bytes, &kind, &body) || kind != D7__KIND_INDEX)
            return 0;
        if (take(ctx, &entry, body, &good) != 0)
            return d7__reader_no_memory(r, err);
        *ret_whole = good;
        if (!good)
            return 0;
        rc = d7__entry_next(&r->framing, entry.next, &found, &entry, err);
    }
    /* Damage here means that a part of the index is missing. */
    if (rc == 0 && found == D7__FOUND_BAD)
        *ret_whole = false;
    return rc;
}

/* An index that lists what cannot be is not to be trusted in the rest: a page less would give all that follow
 * other numbers. */
static int take_whole(void *ctx, const d7__entry *entry, d7__cursor body, bool *ret_good) {
    d7__index_seen seen;
    int rc = d7__reader_take_index(ctx, entry, body, false, &seen);
    *ret_good = !seen.malformed && !seen.impossible && !seen.odd;
    return rc;
}

void d7__reader_bad_epilogue(d7_reader *r, uint64_t at, uint64_t offset) {
    d7_problem p = d7__problem(D7_PROBLEM_BAD_EPILOGUE, at,
                               "the epilogue says that the global index is at byte %" PRIu64
                               ", where there is none that is whole",
                               offset);
    d7__problems_add(&r->problems, &p);
}

int d7__reader_closed(d7_reader *r, bool *ret_valid, d7_error *err) {
    bool there, whole;
    uint64_t at, offset;
    *ret_valid = false;
    int rc = d7__find_epilogue(&r->framing, &there, &at, &offset, err);
    if (rc == 0 && there)
        rc = d7__global_index_each(r, offset, at, take_whole, r, &whole, err);
    if (rc != 0 || !there)
        return rc;
    *ret_valid = whole;
    r->global_index = whole ? offset : 0;
    r->epilogue = whole ? at : 0;
    if (!whole) {
        d7__problems_clear(&r->problems);
        d7__reader_bad_epilogue(r, at, offset);
    }
    return 0;
}
