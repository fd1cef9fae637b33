/* One page: is it where the map says, is it whole, is it as long as it should be, and is it in the form that
 * writers use? Faults of many pages in a row make one problem, so that a file of another writer does not fill
 * the screen. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "reader_pages.h"
#include "verify.h"

/* ---- runs ---- */

static void end_run(d7__verifier *v, d7__run *run) {
    d7_problem *p = &run->problem;
    size_t used = strlen(p->text), room = sizeof p->text - used;
    if (!run->kind)
        return;
    if (run->n_values > 1)
        snprintf(p->text + used, room, "; such values: %" PRIu64, run->n_values);
    else if (run->n_values == 0 && run->n_pages > 1)
        snprintf(p->text + used, room, "; so it is with %" PRIu64 " pages after it", run->n_pages - 1);
    d7__problems_add(&v->r->problems, p);
    run->kind = NULL;
}

void d7__verify_end_runs(d7__verifier *v) {
    for (size_t i = 0; i < v->r->header.n_datasets; i++)
        for (size_t k = 0; v->columns[i].runs && k < D7__N_FAULTS; k++)
            end_run(v, &v->columns[i].runs[k]);
}

void d7__verify_fault(d7__verifier *v, d7__fault fault, const char *kind, size_t page,
                      const d7_problem *problem, uint64_t n_values) {
    d7__column *c = &v->columns[problem->dataset_id];
    if (!c->runs)
        c->runs = d7__new(&v->r->alloc, D7__N_FAULTS * sizeof *c->runs);
    if (!c->runs) {
        d7__problems_add(&v->r->problems, problem);
        return;
    }
    d7__run *run = &c->runs[fault];
    if (run->kind == kind && run->last_page + 1 == page) {
        run->problem.n_items = problem->first_item + problem->n_items - run->problem.first_item;
    } else {
        end_run(v, run);
        *run = (d7__run){.problem = *problem, .kind = kind};
    }
    run->last_page = page;
    run->n_pages++;
    run->n_values += n_values;
}

/* ---- form ---- */

/* What is unusual about a page that decodes; NULL: nothing. Unknown fields are not. */
static const char *unusual_form(d7__cursor body, d7_type type) {
    bool has_dataset = false, has_seed = false, has_payload = false;
    while (body.at < body.end) {
        d7__field f;
        if (!d7__get_field(&body, &f))
            return NULL;
        if (f.number == 1 && (has_seed || has_payload))
            return "the fields of the page are out of order";
        has_dataset |= f.number == 1;
        if (f.number == 3 && has_payload)
            return "the fields of the page are out of order";
        has_seed |= f.number == 3;
        if (f.number < 4 || f.number > 8)
            continue;
        if (f.number != d7__payload_field(type))
            return "the values of the page are in another field than they should be";
        if (f.wire_type != D7__BYTES)
            return "the differences in the page are not packed";
        if (has_payload)
            return "the values of the page are in several pieces";
        has_payload = true;
    }
    if (!has_dataset)
        return "the page leaves out its dataset's number, which some readers need";
    if (!d7__payload_is_raw(type) && !has_seed)
        return "the page leaves out its first value, which some readers need";
    return has_payload ? NULL : "the page has no field for its differences: some readers lose its only item";
}

static void check_form(d7__verifier *v, uint32_t ds, size_t page, const d7__entry *entry,
                       const d7_problem *where) {
    d7__kind kind;
    d7__cursor body;
    if (!d7__entry_kind(entry->data, entry->bytes, &kind, &body) || kind != D7__KIND_DATA)
        return;
    const char *unusual = unusual_form(body, v->r->header.datasets[ds].type);
    if (!unusual)
        return;
    d7_problem p = d7__problem(D7_PROBLEM_PAGE_FORM, where->offset, "%s", unusual);
    p.dataset_id = ds;
    p.first_item = where->first_item;
    p.n_items = where->n_items;
    d7__verify_fault(v, D7__FAULT_FORM, unusual, page, &p, 0);
}

/* ---- length and values ---- */

static bool is_unexpected(const d7__reader_dataset *d, size_t page, size_t n) {
    return page + 1 < d->n_pages ? n != d->items_per_page : n > d->items_per_page;
}

static void check_length(d7__verifier *v, uint32_t ds, size_t page, const d7_problem *where) {
    const d7__reader_dataset *d = &v->r->datasets[ds];
    static const char unexpected[] = "length";
    uint64_t n = where->n_items;
    if (!is_unexpected(d, page, (size_t)n))
        return;
    d7_problem p = d7__problem(D7_PROBLEM_PAGE_LENGTH, where->offset,
                               "the page holds %" PRIu64 " items, not %zu", n, d->items_per_page);
    p.dataset_id = ds;
    p.first_item = where->first_item;
    p.n_items = n;
    d7__verify_fault(v, D7__FAULT_LENGTH, unexpected, page, &p, 0);
}

/* The first page of unexpected length: only all of them together tell whether it is damaged. */
static int judge_lengths(d7__verifier *v, uint32_t ds, size_t page, d7_error *err) {
    v->lengths_judged = true;
    int rc = d7__count_pages(v->r, err);
    return rc != 0 ? rc : d7__reader_check_page(v->r, ds, page, NULL, err);
}

/* Reading other pages ends the entry's life, so it is found again. */
static int find_again(d7__verifier *v, uint64_t offset, d7__entry *entry, bool *ret_there, d7_error *err) {
    d7__found found;
    int rc = d7__entry_at(&v->r->framing, offset, &found, entry, err);
    *ret_there = rc == 0 && found == D7__FOUND_ENTRY;
    return rc;
}

/* A page of the map. `entry` is NULL where the walk did not come to it: then it is damaged, or lies where no
 * walk comes. */
static int look_into(d7__verifier *v, uint32_t ds, size_t page, const d7__entry *entry, d7_error *err) {
    d7_reader *r = v->r;
    d7__column *c = &v->columns[ds];
    uint64_t offset = d7__map_offset(&r->datasets[ds], page);
    d7__entry again;
    bool there = entry != NULL;
    r->page_items = 0;
    int rc = d7__reader_check_page(r, ds, page, entry, err);
    if (rc == 0 && !v->lengths_judged && r->page_items &&
        is_unexpected(&r->datasets[ds], page, r->page_items)) {
        rc = judge_lengths(v, ds, page, err);
        if (rc == 0 && entry)
            rc = find_again(v, offset, &again, &there, err);
        entry = there ? &again : NULL;
    }
    if (rc != 0)
        return rc;
    v->place.dataset_id = ds;
    v->place.first_item = c->items;
    v->place.n_items = r->page_items;
    c->unknown_end = d7__page_is_damaged(&r->datasets[ds], page);
    if (c->unknown_end) {
        v->place.n_items = r->datasets[ds].items_per_page;
        c->items += v->place.n_items;
        return 0;
    }
    d7_problem where = {.offset = offset, .first_item = c->items, .n_items = r->page_items};
    check_length(v, ds, page, &where);
    if (entry)
        check_form(v, ds, page, entry, &where);
    d7__verify_values(v, ds, page, c->items, r->page.data, r->page_items);
    c->items += r->page_items;
    return 0;
}

int d7__verify_passed(d7__verifier *v, uint32_t ds, uint64_t offset, d7_error *err) {
    const d7__reader_dataset *d = &v->r->datasets[ds];
    d7__column *c = &v->columns[ds];
    int rc = 0;
    for (; c->cursor < d->n_pages && d7__map_offset(d, c->cursor) < offset && rc == 0; c->cursor++)
        rc = look_into(v, ds, c->cursor, NULL, err);
    return rc;
}

/* A page of which the reader cannot tell the items' numbers: damage in it is told all the same. */
static int check_unplaced(d7__verifier *v, uint32_t ds, const d7__entry *entry, d7_error *err) {
    d7_reader *r = v->r;
    d7_type type = r->header.datasets[ds].type;
    d7_error reason;
    uint32_t id;
    size_t n;
    int rc = d7_page_count(type, entry->data, entry->bytes, &id, &n, &reason);
    if (rc == 0 && n > D7_PAGE_BYTES_MAX / d7_type_size(type))
        rc = d7__fail(&reason, D7_ERR_CORRUPT, 0, entry->offset, "it holds more items than the largest page");
    r->page.n = r->page_items = 0;
    if (rc == 0 && d7__buffer_reserve(&r->alloc, &r->page, n * d7_type_size(type)) != 0)
        return d7__reader_no_memory(r, err);
    if (rc == 0)
        rc = d7_page_decode(type, entry->data, entry->bytes, r->page.data, n, &id, &n, &reason);
    if (rc != 0)
        d7__verify_report(v, D7_PROBLEM_BAD_PAGE, entry->offset, ds, reason.text);
    return 0;
}

int d7__verify_page(d7__verifier *v, const d7__entry *entry, uint64_t dataset_id, d7_error *err) {
    if (!d7__reader_knows_dataset(v->r, dataset_id, entry->offset))
        return 0;
    uint32_t ds = (uint32_t)dataset_id;
    const d7__reader_dataset *d = &v->r->datasets[ds];
    d7__column *c = &v->columns[ds];
    uint64_t offset = entry->offset;
    v->place.dataset_id = ds;
    bool there = d7__map_has(d, offset);
    if (v->r->unplaced_from && offset + !there >= v->r->unplaced_from)
        return check_unplaced(v, ds, entry, err);
    if (!there) {
        d7__verify_report(v, D7_PROBLEM_UNLISTED_PAGE, offset, ds, "no index lists this page");
        return 0;
    }
    d7__entry again = *entry;
    if (c->cursor < d->n_pages && d7__map_offset(d, c->cursor) < offset) {
        int rc = d7__verify_passed(v, ds, offset, err);
        if (rc == 0)
            rc = find_again(v, offset, &again, &there, err);
        if (rc != 0)
            return rc;
    }
    return look_into(v, ds, c->cursor++, there ? &again : NULL, err);
}
