/* What lies beside the file as its checksums (checksums.h) held against its entries, in step with the walk
 * over them.
 *
 * Only an entry that is where a record says, as long as it says, and has other bytes, has changed. Everything
 * else is the checksum file's own fault or age: torn, not kept up, left over from before a cut. And when more
 * entries differ than agree, it is another file's. So whether differences count is known at the end only. */
#include <inttypes.h>

#include "base/crc32c.h"
#include "error.h"
#include "verify.h"

/* `agrees`: whether the entry is as the one at hand says. */
static int take_next(d7__sum_check *c, bool agrees, d7_error *err) {
    c->last = c->next;
    c->last_agrees = agrees;
    int rc = d7__sums_next(&c->reader, &c->has_next, &c->next, err);
    if (rc == D7_ERR_IO) {
        c->reader.fault = "it cannot be read";
        c->has_next = false;
        rc = 0;
    }
    return rc;
}

static int check_header(d7__verifier *v, d7_error *err) {
    d7__found found;
    d7__entry header;
    int rc = d7__entry_at(&v->r->framing, 0, &found, &header, err);
    if (rc == 0 && found == D7__FOUND_ENTRY) {
        v->place = d7__problem(D7_PROBLEM_CHECKSUM, 0, "%s", "");
        rc = d7__verify_sum(v, &header, err);
        if (rc == 0)
            rc = d7__verify_sum_place(v, err);
    }
    return rc;
}

int d7__verify_sums_begin(d7__verifier *v, d7_error *err) {
    d7__sum_check *c = &v->sums;
    d7_error failure;
    int rc = d7__sums_open(&c->reader, &v->r->io, &v->r->alloc, v->r->source.path, D7_IO_READ, &failure);
    if (rc == D7_ERR_NOMEM)
        return d7__reader_no_memory(v->r, err);
    if (rc == D7_ERR_NOTFOUND)
        return 0;
    if (rc != 0) {
        d7__verify_report(v, D7_PROBLEM_CHECKSUM_FILE, D7_NO_OFFSET, D7_NO_DATASET, failure.text);
        return 0;
    }
    c->there = v->sum.has_checksums = true;
    rc = take_next(c, false, err);
    return rc != 0 ? rc : check_header(v, err);
}

static void count_place(uint64_t *n, uint64_t *first, uint64_t offset) {
    if ((*n)++ == 0)
        *first = offset;
}

int d7__verify_sum(d7__verifier *v, const d7__entry *entry, d7_error *err) {
    d7__sum_check *c = &v->sums;
    int rc = 0;
    c->differs = false;
    if (!c->there)
        return 0;
    for (; rc == 0 && c->has_next && c->next.offset < entry->offset; rc = take_next(c, false, err))
        count_place(&c->n_absent, &c->first_absent, c->next.offset);
    if (rc != 0)
        return rc;
    if (!c->has_next || c->next.offset > entry->offset) {
        count_place(&c->n_uncovered, &c->first_uncovered, entry->offset);
        return 0;
    }
    bool fits = c->next.bytes == entry->bytes;
    bool agrees = fits && c->next.crc == common_crc32c(0, entry->data, entry->bytes);
    if (!fits)
        count_place(&c->n_absent, &c->first_absent, entry->offset);
    v->sum.checked_entries += agrees;
    c->differs = fits && !agrees;
    return take_next(c, agrees, err);
}

int d7__verify_sum_place(d7__verifier *v, d7_error *err) {
    d7__sum_check *c = &v->sums;
    if (!c->differs)
        return 0;
    c->differs = false;
    if (c->n_differ++ >= D7__PROBLEMS_KEPT)
        return 0;
    if (d7__grow(&v->r->alloc, &c->differ, &c->cap_differ, c->n_kept + 1, sizeof *c->differ) != 0)
        return d7__reader_no_memory(v->r, err);
    d7_problem *p = &c->differ[c->n_kept++];
    *p = d7__problem(D7_PROBLEM_CHECKSUM, v->place.offset, "%s",
                     v->place.dataset_id == D7_NO_DATASET
                         ? "an entry's bytes are not those that were written"
                         : "the page's bytes are not those that were written");
    p->dataset_id = v->place.dataset_id;
    p->first_item = v->place.first_item;
    p->n_items = v->place.n_items;
    return 0;
}

/* ---- the end ---- */

/* The header is the same in all files of an instrument, and says little. */
static bool is_another_files(const d7__verifier *v) {
    uint64_t agree = v->sum.checked_entries ? v->sum.checked_entries - 1 : 0;
    return v->sums.n_differ > agree || (agree == 0 && v->sums.n_absent > 0);
}

/* Both the file and its checksums go up to an epilogue, each to another one: the file was written anew. */
static bool is_outdated(const d7__verifier *v) {
    const d7__sum_check *c = &v->sums;
    bool ends =
        c->last.bytes <= D7__EPILOGUE_MAX && c->last.offset > 0 && c->last.offset % D7_BLOCK_BYTES == 0;
    return v->r->state == D7_STATE_CLOSED && ends && !c->last_agrees;
}

static void report_file(d7__verifier *v, uint64_t offset, const char *what, uint64_t n) {
    d7_problem p =
        d7__problem(D7_PROBLEM_CHECKSUM_FILE, offset, "%.150s: %s: %" PRIu64, v->sums.reader.path, what, n);
    d7__problems_add(&v->r->problems, &p);
}

/* Of a file that is being written, the last entries have no checksums yet, or the other way round. */
static void report_gaps(d7__verifier *v) {
    const d7__sum_check *c = &v->sums;
    if (c->n_absent)
        report_file(v, c->first_absent, "entries that it has and the file does not", c->n_absent);
    if (c->n_uncovered)
        report_file(v, c->first_uncovered, "entries that it does not have", c->n_uncovered);
}

static int count_rest(d7__sum_check *c, d7_error *err) {
    int rc = 0;
    for (; rc == 0 && c->has_next; rc = take_next(c, false, err))
        count_place(&c->n_absent, &c->first_absent, c->next.offset);
    return rc;
}

int d7__verify_sums_end(d7__verifier *v, d7_error *err) {
    d7__sum_check *c = &v->sums;
    int rc = c->there ? count_rest(c, err) : 0;
    if (rc != 0 || !c->there)
        return rc;
    if (c->reader.fault && !v->r->held) {
        d7_problem p = d7__problem(D7_PROBLEM_CHECKSUM_FILE, D7_NO_OFFSET, "%.150s: %s", c->reader.path,
                                   c->reader.fault);
        d7__problems_add(&v->r->problems, &p);
    }
    if (c->reader.n_spoilt)
        report_file(v, 0, "blocks of it were damaged", c->reader.n_spoilt);
    if (is_another_files(v)) {
        report_file(v, D7_NO_OFFSET, "it is another file's; entries that differ", c->n_differ);
        return 0;
    }
    if (is_outdated(v)) {
        report_file(v, D7_NO_OFFSET, "the file was written anew since; entries that differ", c->n_differ);
        return 0;
    }
    for (size_t i = 0; i < c->n_kept; i++)
        d7__problems_add(&v->r->problems, &c->differ[i]);
    if (!v->r->held)
        report_gaps(v);
    return 0;
}

void d7__verify_sums_free(d7__verifier *v) {
    d7__release(&v->r->alloc, v->sums.differ);
    d7__sums_close(&v->sums.reader);
}
