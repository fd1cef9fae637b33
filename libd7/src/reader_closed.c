/* A file with an epilogue: its global index says where everything is. Source: the D7 specification, sections
 * 4 and 5. */
#include <inttypes.h>

#include "codec.h"
#include "error.h"
#include "reader.h"

/* The epilogue begins the last block. */
int d7__find_epilogue(d7__framing *f, bool *ret_there, uint64_t *ret_at, uint64_t *ret_index, d7_error *err) {
    uint64_t size = f->source->size, last = (size - 1) - (size - 1) % D7_BLOCK_BYTES;
    d7__found found;
    d7__entry entry;
    d7__kind kind;
    d7__cursor body;
    *ret_there = false;
    *ret_at = last;
    if (last == 0)
        return 0;
    int rc = d7__entry_at(f, last, &found, &entry, err);
    if (rc == 0 && found == D7__FOUND_ENTRY && d7__entry_kind(entry.data, entry.bytes, &kind, &body) &&
        kind == D7__KIND_EPILOGUE)
        *ret_there = d7__epilogue_unpack(body, ret_index);
    return rc;
}

/* Index entries one after the other, up to the epilogue. *ret_n: how many. */
static int read_global_index(d7_reader *r, uint64_t offset, uint64_t end, size_t *ret_n, d7_error *err) {
    d7__found found;
    d7__entry entry;
    *ret_n = 0;
    int rc = d7__entry_at(&r->framing, offset, &found, &entry, err);
    while (rc == 0 && found == D7__FOUND_ENTRY && entry.offset < end) {
        d7__kind kind;
        d7__cursor body;
        d7__index_seen seen;
        if (!d7__entry_kind(entry.data, entry.bytes, &kind, &body) || kind != D7__KIND_INDEX)
            return 0;
        if (d7__reader_take_index(r, &entry, body, &seen) != 0)
            return d7__reader_no_memory(r, err);
        if (seen.malformed) {
            *ret_n = 0;
            return 0;
        }
        ++*ret_n;
        rc = d7__entry_next(&r->framing, entry.next, &found, &entry, err);
    }
    /* Damage here means that a part of the index is missing. */
    if (rc == 0 && found == D7__FOUND_BAD)
        *ret_n = 0;
    return rc;
}

int d7__reader_closed(d7_reader *r, bool *ret_valid, d7_error *err) {
    bool there;
    uint64_t at, offset;
    *ret_valid = false;
    int rc = d7__find_epilogue(&r->framing, &there, &at, &offset, err);
    if (rc != 0 || !there)
        return rc;
    size_t n = 0;
    if (offset >= r->data_start && offset < at)
        rc = read_global_index(r, offset, at, &n, err);
    if (rc != 0)
        return rc;
    *ret_valid = n > 0;
    r->global_index = n > 0 ? offset : 0;
    r->epilogue = n > 0 ? at : 0;
    if (n == 0) {
        d7__problems_clear(&r->problems);
        d7_problem p = d7__problem(D7_PROBLEM_BAD_EPILOGUE, at,
                                   "the epilogue says that the global index is at byte %" PRIu64
                                   ", where there is none that is whole",
                                   offset);
        d7__problems_add(&r->problems, &p);
    }
    return 0;
}
