/* Checksums beside a file (checksums.h) held against its entries, in step with a walk over them.
 *
 * Only an entry that is where a record says, as long as it says, and has other bytes, has changed. Everything
 * else is the checksum file's own fault or age: torn, not kept up, left over from before a cut. And when more
 * entries differ than agree, it is another file's. So whether differences count is known at the end only. */
#include <inttypes.h>

#include "base/crc32c.h"
#include "checksums.h"
#include "messages.h"

/* `agrees`: whether the entry is as the record at hand says. */
static int take_next(d7__sums_compare *c, bool agrees, d7_error *err) {
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

int d7__sums_compare_begin(d7__sums_compare *c, const d7_io *io, const d7_alloc *alloc, const char *path,
                           d7_error *err) {
    *c = (d7__sums_compare){0};
    int rc = d7__sums_open(&c->reader, io, alloc, path, D7_IO_READ, err);
    c->there = rc == 0;
    return rc;
}

static void count_place(uint64_t *n, uint64_t *first, uint64_t offset) {
    if ((*n)++ == 0)
        *first = offset;
}

/* Records of entries before `offset`, which the file does not have. */
static int pass_over(d7__sums_compare *c, uint64_t offset, d7_error *err) {
    int rc = c->begun ? 0 : take_next(c, false, err);
    c->begun = true;
    for (; rc == 0 && c->has_next && c->next.offset < offset; rc = take_next(c, false, err))
        count_place(&c->n_absent, &c->first_absent, c->next.offset);
    return rc;
}

int d7__sums_compare_entry(d7__sums_compare *c, const d7__entry *entry, bool *ret_differs, d7_error *err) {
    *ret_differs = false;
    if (!c->there)
        return 0;
    int rc = pass_over(c, entry->offset, err);
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
    c->n_agree += agrees;
    c->n_differ += fits && !agrees;
    *ret_differs = fits && !agrees;
    return take_next(c, agrees, err);
}

/* The header is the same in all files of an instrument, and says little. */
static bool is_another_files(const d7__sums_compare *c) {
    uint64_t agree = c->n_agree ? c->n_agree - 1 : 0;
    return c->n_differ > agree || (agree == 0 && c->n_absent > 0);
}

/* Both the file and its checksums go up to an epilogue, each to another one: the file was written anew. */
static bool is_outdated(const d7__sums_compare *c, bool closed) {
    bool ends =
        c->last.bytes <= D7__EPILOGUE_MAX && c->last.offset > 0 && c->last.offset % D7_BLOCK_BYTES == 0;
    return closed && ends && !c->last_agrees;
}

int d7__sums_compare_end(d7__sums_compare *c, bool closed, d7__sums_verdict *ret_verdict, d7_error *err) {
    int rc = c->there ? pass_over(c, UINT64_MAX, err) : 0;
    if (rc != 0)
        return rc;
    *ret_verdict = is_another_files(c)      ? D7__SUMS_OF_ANOTHER_FILE
                   : is_outdated(c, closed) ? D7__SUMS_OUTDATED
                                            : D7__SUMS_COUNT;
    return 0;
}

/* ---- telling ---- */

d7_problem d7__sums_problem(const d7__sums_compare *c, uint64_t offset, const char *what, uint64_t n) {
    return d7__problem(D7_PROBLEM_CHECKSUM_FILE, offset, "%.150s: %s: %" PRIu64, c->reader.path, what, n);
}

static void tell(const d7__sums_compare *c, d7__problems *problems, uint64_t offset, const char *what,
                 uint64_t n) {
    d7_problem p = d7__sums_problem(c, offset, what, n);
    d7__problems_add(problems, &p);
}

void d7__sums_tell(const d7__sums_compare *c, bool held, d7__sums_verdict verdict, d7__problems *problems) {
    if (c->reader.fault && !held) {
        d7_problem p = d7__problem(D7_PROBLEM_CHECKSUM_FILE, D7_NO_OFFSET, "%.150s: %s", c->reader.path,
                                   c->reader.fault);
        d7__problems_add(problems, &p);
    }
    if (c->reader.n_spoilt)
        tell(c, problems, 0, "blocks of it were damaged", c->reader.n_spoilt);
    if (verdict == D7__SUMS_OF_ANOTHER_FILE)
        tell(c, problems, D7_NO_OFFSET, "it is another file's; entries that differ", c->n_differ);
    if (verdict == D7__SUMS_OUTDATED)
        tell(c, problems, D7_NO_OFFSET, "the file was written anew since; entries that differ", c->n_differ);
}

/* Entries that only one of both has are told with their place. */
int d7_reader_checksum_fault(const d7_reader *r, d7_problem *ret_problem) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(r, i, &p) == 0; i++)
        if (p.code == D7_PROBLEM_CHECKSUM_FILE && (p.offset == D7_NO_OFFSET || p.offset == 0)) {
            *ret_problem = p;
            return 0;
        }
    return D7_ERR_NOTFOUND;
}
