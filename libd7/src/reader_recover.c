/* A file without a valid epilogue, or one whose epilogue is not to be trusted: its islands say where pages
 * are, and a scan finds those that no island lists.
 *
 *   header | early attributes | pages island | pages island | ... | pages that no island lists | torn entry
 *
 * An island lists every page since the one before. So when the first page that it lists does not begin right
 * where the last island ended, an island is missing or damaged in between, and that hole is scanned. Source:
 * the D7 specification, section 5. */
#include <inttypes.h>

#include "codec.h"
#include "error.h"
#include "reader.h"

typedef struct recovery {
    d7_reader *reader;
    uint64_t covered;    /* all that begins before is known */
    uint64_t first_page; /* offset of the file's first page, 0: not known yet */
    uint64_t last_index; /* offset of an index of pages that no page follows, 0: there is none */
    uint64_t leftover;   /* offset of a global index without an epilogue, 0: there is none */
    bool epilogue_seen;
    bool quick;
} recovery;

enum { SCAN_WINDOW_BYTES = 1 << 20, HOP_WINDOW_BYTES = 4 * D7_BLOCK_BYTES };

static void add(d7_reader *r, d7_problem_code code, uint64_t offset, const char *text) {
    d7_problem p = d7__problem(code, offset, "%s", text);
    d7__problems_add(&r->problems, &p);
}

/* The end of the file cut an entry: damage, unless the one who is writing it is still there. */
static void add_torn(d7_reader *r, uint64_t offset) {
    d7_problem p = d7__problem(r->held ? D7_PROBLEM_BEING_WRITTEN : D7_PROBLEM_TORN_TAIL, offset,
                               "the entry that begins here is not complete: the file ends at byte %" PRIu64,
                               r->source.size);
    d7__problems_add(&r->problems, &p);
}

/* A global index in a file without an epilogue: the one who wrote it did not come to the end. It is known by
 * its marker, by listing the first page a second time, or by standing last, where no island can be due yet.
 */
static void check_leftover(recovery *v, const d7__entry *entry, const d7__index_seen *seen) {
    bool again = v->first_page && seen->first_page == v->first_page && v->covered > v->first_page;
    if (!v->leftover && (seen->has_marker || (seen->has_pages && again)))
        v->leftover = entry->offset;
    if (seen->has_pages)
        v->last_index = entry->offset;
}

static void report_leftover(const recovery *v) {
    d7_reader *r = v->reader;
    uint64_t offset = v->leftover;
    if (!offset && v->last_index / D7_BLOCK_BYTES < r->header.index_step)
        offset = v->last_index;
    if (offset && !v->epilogue_seen && !r->held && r->state == D7_STATE_OPEN)
        add(r, D7_PROBLEM_NO_EPILOGUE, offset, "a global index without an epilogue after it");
}

static int take_entry(recovery *v, const d7__entry *entry) {
    d7_reader *r = v->reader;
    d7__kind kind;
    d7__cursor body;
    d7__index_seen seen;
    uint64_t dataset_id, index_offset;
    if (!d7__entry_kind(entry->data, entry->bytes, &kind, &body))
        kind = D7__KIND_NONE;
    switch (kind) {
    case D7__KIND_DATA:
        if (!d7__page_dataset(body, &dataset_id))
            break;
        v->first_page = v->first_page ? v->first_page : entry->offset;
        v->last_index = 0;
        return d7__reader_found_page(r, dataset_id, entry->offset);
    case D7__KIND_INDEX: {
        int rc = d7__reader_take_index(r, entry, body, &seen);
        check_leftover(v, entry, &seen);
        return rc;
    }
    case D7__KIND_EPILOGUE:
        if (!d7__epilogue_unpack(body, &index_offset))
            break;
        v->epilogue_seen = true;
        if (r->state == D7_STATE_OPEN && entry->next < r->source.size)
            add(r, D7_PROBLEM_TRAILING_BYTES, entry->next, "the file goes on after its epilogue");
        return 0;
    case D7__KIND_HEADER:
        add(r, D7_PROBLEM_HEADER_PLACE, entry->offset, "a header that does not begin the file");
        return 0;
    default:
        break;
    }
    add(r, D7_PROBLEM_BAD_ENTRY, entry->offset, "the entry is no message of this format");
    return 0;
}

/* Takes every entry that begins in [from, to). */
static int scan(recovery *v, uint64_t from, uint64_t to, d7_error *err) {
    d7_reader *r = v->reader;
    r->source.window_bytes = SCAN_WINDOW_BYTES;
    for (;;) {
        d7__found found;
        d7__entry entry;
        int rc = d7__entry_next(&r->framing, from, &found, &entry, err);
        if (rc != 0)
            return rc;
        if (found == D7__FOUND_END || entry.offset >= to)
            return 0;
        if (found == D7__FOUND_TORN) {
            add_torn(r, entry.offset);
            return 0;
        }
        if (found == D7__FOUND_BAD)
            add(r, D7_PROBLEM_BAD_FRAME, entry.offset, entry.reason);
        else if (take_entry(v, &entry) != 0)
            return d7__reader_no_memory(r, err);
        from = entry.next;
    }
}

/* The first Index entry that begins in [from, to), if any. */
static int find_index(d7_reader *r, uint64_t from, uint64_t to, bool *ret_there, d7__entry *ret_entry,
                      d7__cursor *ret_body, d7_error *err) {
    *ret_there = false;
    for (;;) {
        d7__found found;
        d7__kind kind;
        int rc = d7__entry_next(&r->framing, from, &found, ret_entry, err);
        if (rc != 0 || found == D7__FOUND_END || found == D7__FOUND_TORN || ret_entry->offset >= to)
            return rc;
        if (found == D7__FOUND_ENTRY && d7__entry_kind(ret_entry->data, ret_entry->bytes, &kind, ret_body) &&
            kind == D7__KIND_INDEX) {
            *ret_there = true;
            return 0;
        }
        from = ret_entry->next;
    }
}

/* Takes an island's entries (a long one has several, one after the other) and scans the hole before it, if
 * there is one. */
static int take_island(recovery *v, d7__entry *entry, d7__cursor body, d7_error *err) {
    d7_reader *r = v->reader;
    uint64_t before = v->covered, hole_end = entry->offset;
    for (bool there = true; there;) {
        d7__index_seen seen;
        if (d7__reader_take_index(r, entry, body, &seen) != 0)
            return d7__reader_no_memory(r, err);
        check_leftover(v, entry, &seen);
        if (seen.has_pages && seen.first_page < hole_end)
            hole_end = seen.first_page;
        v->covered = entry->next;
        int rc = find_index(r, entry->next, d7__frame_begin(entry->next) + 1, &there, entry, &body, err);
        if (rc != 0)
            return rc;
    }
    if (v->first_page == 0 && hole_end <= d7__frame_begin(before))
        v->first_page = hole_end;
    return v->quick || hole_end <= d7__frame_begin(before) ? 0 : scan(v, before, hole_end, err);
}

/* Index entries right after the header: attributes known at creation. */
static int take_early(recovery *v, d7_error *err) {
    d7_reader *r = v->reader;
    v->covered = r->data_start;
    for (;;) {
        bool there;
        d7__entry entry;
        d7__cursor body;
        d7__index_seen seen;
        int rc = find_index(r, v->covered, d7__frame_begin(v->covered) + 1, &there, &entry, &body, err);
        if (rc != 0 || !there)
            return rc;
        if (d7__reader_take_index(r, &entry, body, &seen) != 0)
            return d7__reader_no_memory(r, err);
        check_leftover(v, &entry, &seen);
        v->covered = entry.next;
    }
}

static int take_islands(recovery *v, d7_error *err) {
    d7_reader *r = v->reader;
    uint64_t step = (uint64_t)r->header.index_step * D7_BLOCK_BYTES;
    for (uint64_t hop = step; hop < r->source.size; hop += step) {
        bool there;
        d7__entry entry;
        d7__cursor body;
        if (hop < v->covered)
            continue;
        r->source.window_bytes = HOP_WINDOW_BYTES;
        int rc = find_index(r, hop, hop + step, &there, &entry, &body, err);
        if (rc == 0 && there)
            rc = take_island(v, &entry, body, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int d7__reader_recover(d7_reader *r, bool quick, d7_error *err) {
    recovery v = {.reader = r, .quick = quick};
    size_t window = r->source.window_bytes;
    int rc = take_early(&v, err);
    if (rc == 0)
        rc = take_islands(&v, err);
    if (rc == 0 && !quick)
        rc = scan(&v, v.covered, UINT64_MAX, err);
    if (rc == 0)
        report_leftover(&v);
    r->source.window_bytes = window;
    return rc;
}
