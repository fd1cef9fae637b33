/* What the checksums beside the file (checksums.h) say of its entries, as problems. */
#include <inttypes.h>

#include "error.h"
#include "verify.h"

static int check_header(d7__verifier *v, d7_error *err) {
    d7__found found;
    d7__entry header;
    int rc = d7__entry_at(&v->r->framing, 0, &found, &header, err);
    if (rc != 0 || found != D7__FOUND_ENTRY)
        return rc;
    v->place = d7__problem(D7_PROBLEM_CHECKSUM, 0, "%s", "");
    rc = d7__verify_sum(v, &header, err);
    return rc != 0 ? rc : d7__verify_sum_place(v, err);
}

int d7__verify_sums_begin(d7__verifier *v, d7_error *err) {
    d7_error failure;
    int rc = d7__sums_compare_begin(&v->sums.compare, &v->r->io, &v->r->alloc, v->r->source.path, &failure);
    if (rc == D7_ERR_NOMEM)
        return d7__reader_no_memory(v->r, err);
    if (rc == D7_ERR_NOTFOUND)
        return 0;
    if (rc != 0) {
        d7__verify_report(v, D7_PROBLEM_CHECKSUM_FILE, D7_NO_OFFSET, D7_NO_DATASET, failure.text);
        return 0;
    }
    v->sum.has_checksums = true;
    return check_header(v, err);
}

int d7__verify_sum(d7__verifier *v, const d7__entry *entry, d7_error *err) {
    return d7__sums_compare_entry(&v->sums.compare, entry, &v->sums.differs, err);
}

int d7__verify_sum_place(d7__verifier *v, d7_error *err) {
    d7__sum_check *c = &v->sums;
    if (!c->differs)
        return 0;
    c->differs = false;
    if (c->compare.n_differ > D7__PROBLEMS_KEPT)
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

static void report_file(d7__verifier *v, uint64_t offset, const char *what, uint64_t n) {
    d7_problem p = d7__sums_problem(&v->sums.compare, offset, what, n);
    d7__problems_add(&v->r->problems, &p);
}

/* Of a file that is being written, the last entries have no checksums yet, or the other way round. */
static void report_gaps(d7__verifier *v) {
    const d7__sums_compare *c = &v->sums.compare;
    if (c->n_absent)
        report_file(v, c->first_absent, "entries that it has and the file does not", c->n_absent);
    if (c->n_uncovered)
        report_file(v, c->first_uncovered, "entries that it does not have", c->n_uncovered);
}

int d7__verify_sums_end(d7__verifier *v, d7_error *err) {
    d7__sums_compare *c = &v->sums.compare;
    d7__sums_verdict verdict;
    int rc = d7__sums_compare_end(c, v->r->state == D7_STATE_CLOSED, &verdict, err);
    if (rc != 0 || !c->there)
        return rc;
    v->sum.checked_entries = c->n_agree;
    d7__sums_tell(c, v->r->held, verdict, &v->r->problems);
    if (verdict != D7__SUMS_COUNT)
        return 0;
    for (size_t i = 0; i < v->sums.n_kept; i++)
        d7__problems_add(&v->r->problems, &v->sums.differ[i]);
    if (!v->r->held)
        report_gaps(v);
    return 0;
}

void d7__verify_sums_free(d7__verifier *v) {
    d7__release(&v->r->alloc, v->sums.differ);
    d7__sums_close(&v->sums.compare.reader);
}
