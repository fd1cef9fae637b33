/* d7_repair(): survey, plan, new file, verification, report. The new file is verified by the same function that judges
 * every other one, and removed when it has damage. */
#include <string.h>

#include "error.h"
#include "reader_pages.h"
#include "repair.h"

void d7_repair_options_init(d7_repair_options *options) {
    *options = (d7_repair_options){.mode = 0666};
}

/* ---- progress over several steps ---- */

enum { N_STEPS = 4 };

typedef struct steps {
    const d7_repair_options *o;
    uint64_t total; /* of one step */
    unsigned step;
} steps;

static int steps_progress(void *ctx, uint64_t done, uint64_t total) {
    const steps *s = ctx;
    if (!s->o->progress)
        return 0;
    double part = total ? (double)done / (double)total : 1;
    uint64_t here = (uint64_t)((part < 1 ? part : 1) * (double)s->total);
    return s->o->progress(s->o->progress_ctx, s->step * s->total + here, N_STEPS * s->total);
}

/* ---- the report ---- */

void d7_repair_report_free(d7_repair_report *report) {
    if (!report->alloc.release)
        return;
    d7_alloc a = report->alloc;
    for (size_t i = 0; report->datasets && i < report->n_datasets; i++)
        d7__release(&a, (void *)(uintptr_t)report->datasets[i].name);
    d7__release(&a, report->datasets);
    d7__release(&a, report->gaps);
    d7__release(&a, report->fills);
    *report = (d7_repair_report){0};
}

static void report_tail(const d7_reader *source, d7_repair_report *report) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(source, i, &p) == 0; i++)
        if (p.code == D7_PROBLEM_TAIL)
            memcpy(report->tail_fault, p.text, sizeof report->tail_fault);
}

/* What a tail that could not be used told of is lost too. */
static void report_untold(const d7_reader *source, const d7__repair_plan *p, d7_repair_report *report) {
    for (uint32_t ds = 0; *report->tail_fault && ds < report->n_datasets; ds++)
        report->datasets[ds].more_lost |= d7__tail_tells_more(source, ds, p->columns[ds].there);
}

void d7__report_checksums(const d7_reader *r, d7_repair_report *report) {
    d7_problem p;
    if (!*report->checksum_fault && d7_reader_checksum_fault(r, &p) == 0)
        memcpy(report->checksum_fault, p.text, sizeof report->checksum_fault);
}

int d7__report_start(const d7_reader *r, d7_repair_report *report) {
    *report = (d7_repair_report){.alloc = r->alloc,
                                 .source_state = d7_reader_state(r),
                                 .unframed = d7_reader_unframed(r),
                                 .unknown_from = D7_NO_OFFSET};
    report->datasets = d7__new(&r->alloc, r->header.n_datasets * sizeof *report->datasets);
    if (!report->datasets)
        return D7_ERR_NOMEM;
    report->n_datasets = r->header.n_datasets;
    for (uint32_t ds = 0; ds < r->header.n_datasets; ds++) {
        const d7__toc_item *item = &r->header.datasets[ds];
        d7_dataset_info info;
        size_t bytes;
        char *name = d7__repair_text(&r->alloc, item->name, item->name_bytes, &bytes);
        if (!name)
            return D7_ERR_NOMEM;
        report->datasets[ds] = (d7_repair_dataset){.name = name, .type = item->type};
        if (d7_reader_dataset(r, ds, &info) == 0)
            report->datasets[ds].kept = info.items;
    }
    return 0;
}

static int report_gaps(const d7__repair_plan *p, d7_repair_report *report) {
    size_t n = 0;
    for (size_t t = 0; t < p->n_takens; t++)
        n += p->takens[t].n;
    report->gaps = d7__new(&report->alloc, n * sizeof *report->gaps);
    if (!report->gaps)
        return D7_ERR_NOMEM;
    for (size_t t = 0; t < p->n_takens; t++)
        for (size_t i = 0; i < p->takens[t].n; i++) {
            const d7__range *range = &p->takens[t].ranges[i];
            report->gaps[report->n_gaps++] = (d7_repair_gap){
                .group = t == D7__TAKEN_PHOTONS ? D7_GROUP_PHOTONS
                         : t == D7__TAKEN_TAGS  ? D7_GROUP_TAGS
                                                : D7_GROUP_NONE,
                .dataset_id = t < D7__TAKEN_OWN ? D7_NO_DATASET : (uint32_t)(t - D7__TAKEN_OWN),
                .item = range->from - range->before,
                .source_item = range->from,
                .n_items = range->to - range->from};
        }
    return 0;
}

static int report_fills(const d7__repair_plan *p, d7_repair_report *report) {
    report->fills = d7__new(&report->alloc, p->n_fills * sizeof *report->fills);
    if (!report->fills)
        return D7_ERR_NOMEM;
    for (size_t i = 0; i < p->n_fills; i++)
        report->fills[report->n_fills++] = (d7_repair_fill){
            .dataset_id = p->ms, .item = p->fills[i].from, .n_items = p->fills[i].to - p->fills[i].from};
    return 0;
}

/* How many items less than it decodes to a damaged last page held: in a closed file the columns of a group end together. */
static uint64_t never_there(const d7__repair_plan *p, uint32_t ds) {
    const d7__repair_column *c = &p->columns[ds];
    const d7__reader_dataset *d = &p->r->datasets[ds];
    uint64_t longest = 0;
    if (!p->survey.ended || c->taken >= D7__TAKEN_OWN || d->n_pages == 0 ||
        !d7__page_is_damaged(d, d->n_pages - 1))
        return 0;
    for (uint32_t i = 0; i < p->r->header.n_datasets; i++) {
        const d7__reader_dataset *other = &p->r->datasets[i];
        bool whole = other->n_pages && !d7__page_is_damaged(other, other->n_pages - 1);
        if (p->columns[i].taken == c->taken && whole && p->columns[i].there > longest)
            longest = p->columns[i].there;
    }
    uint64_t before = d7__page_first_item(d, d->n_pages - 1);
    return longest > before && longest < c->paged ? c->paged - longest : 0;
}

static int report_plan(const d7__repair_plan *p, d7_repair_report *report) {
    report->outcome = D7_REPAIR_WRITTEN;
    if (p->survey.known_to != UINT64_MAX)
        report->unknown_from = p->survey.known_to;
    report->unlisted_pages = p->survey.n_unlisted;
    report->changed_header = p->changed_header;
    report->lost_attributes = p->lost_attributes;
    if (p->survey.torn_offset != D7_NO_OFFSET)
        report->torn_bytes = p->r->source.size - p->survey.torn_offset;
    for (size_t i = 0; i < report->n_datasets; i++) {
        const d7__repair_column *c = &p->columns[i];
        d7_repair_dataset *d = &report->datasets[i];
        d->kept = c->kept - c->filled;
        d->lost = c->damaged - never_there(p, (uint32_t)i);
        d->left_out = c->there - c->damaged - d->kept;
        d->filled = c->filled;
        d->more_lost = c->more_lost;
        report->tail_included |= c->limit > c->paged;
    }
    int rc = report_gaps(p, report);
    return rc == 0 ? report_fills(p, report) : rc;
}

/* ---- the source ---- */

static d7_reader_options reading(const d7_repair_options *o) {
    d7_reader_options r;
    d7_reader_options_init(&r);
    r.io = o->io;
    r.alloc = o->alloc;
    r.executor = o->executor;
    r.unframed = o->unframed;
    return r;
}

int d7__repair_open(const char *path, const d7_repair_options *o, bool pages_only, d7_reader **ret,
                    d7_error *err) {
    d7_reader_options options = reading(o);
    d7_reader *r;
    options.pages_only = pages_only;
    int rc = d7_reader_open(&r, path, &options, err);
    if (rc != 0)
        return rc;
    if (d7_reader_held(r)) {
        d7_reader_free(r);
        return d7__fail(err, D7_ERR_LOCKED, 0, D7_NO_OFFSET,
                        "%s: a writer holds this file; it is not to be repaired while it is being written",
                        path);
    }
    *ret = r;
    return 0;
}

int d7__repair_is_fine(d7_reader *r, d7_progress_fn *progress, void *ctx, bool *ret_fine, d7_error *err) {
    d7_verify_summary summary;
    *ret_fine = false;
    if (d7_reader_state(r) != D7_STATE_CLOSED || d7_reader_unframed(r))
        return 0;
    int rc = d7_reader_verify(r, NULL, NULL, progress, ctx, &summary, err);
    *ret_fine = rc == 0 && summary.damages == 0;
    return rc;
}

int d7__repair_verify(const char *path, const d7_repair_options *o, d7_progress_fn *progress, void *ctx,
                      d7_error *err) {
    d7_reader *r;
    bool fine;
    d7_problem p;
    int rc = d7__repair_open(path, o, true, &r, err);
    if (rc != 0)
        return rc;
    rc = d7__repair_is_fine(r, progress, ctx, &fine, err);
    for (size_t i = 0; rc == 0 && !fine; i++) {
        bool there = d7_reader_problem(r, i, &p) == 0;
        if (!there || p.severity == D7_DAMAGE)
            rc = d7__fail(err, D7_ERR_CORRUPT, 0, there ? p.offset : D7_NO_OFFSET,
                          "%s: what could be saved makes no file without damage: %s", path,
                          there ? p.text : "it is not closed");
    }
    d7_reader_free(r);
    return rc;
}

/* ---- all of it ---- */

/* Which items the tail holds; *ret_any: some. */
static int find_tail(const d7_reader *r, d7__range **ret_items, bool *ret_any, d7_error *err) {
    d7_dataset_info info;
    d7__range *items = d7__new(&r->alloc, r->header.n_datasets * sizeof *items);
    if (!items)
        return d7__reader_no_memory(r, err);
    *ret_any = false;
    for (uint32_t ds = 0; d7_reader_dataset(r, ds, &info) == 0; ds++) {
        items[ds] = (d7__range){.from = info.paged_items, .to = info.items};
        *ret_any |= info.items > info.paged_items;
    }
    *ret_items = items;
    return 0;
}

/* The tail's attributes are the newest; only the reader that knows it has them, beside those of the file. */
static int take_tail_attributes(d7__repair_plan *p, const d7_reader *source, const d7__changed *changed,
                                d7_error *err) {
    size_t n = d7_reader_state(source) == D7_STATE_OPEN ? d7_reader_n_attributes(source) : 0;
    d7_attribute a;
    for (size_t i = 0; i < n && d7_reader_attribute(source, i, &a) == 0; i++)
        if (!d7__changed_took(changed, &a) && d7__attributes_set(&p->r->attributes, &a, NULL) != 0)
            return d7__reader_no_memory(p->r, err);
    return 0;
}

/* Of `source` only the tail is still there. */
static int repair_from(d7_reader *source, const char *path, const char *out_path, const d7__range *tail,
                       steps *s, d7_repair_report *report, d7_error *err) {
    d7__repair_plan p = {.keep_ragged = s->o->keep_ragged, .tailed = tail ? source : NULL, .tail = tail};
    d7_reader_options options = reading(s->o);
    d7__changed changed = {0};
    int rc = d7__reader_open_header(&p.r, path, &options, err);
    if (rc == 0)
        rc = d7__changed_begin(&changed, p.r, err);
    if (rc == 0)
        rc = d7__repair_survey(p.r, d7_reader_state(source) == D7_STATE_CLOSED ? source->global_index : 0,
                               &changed, steps_progress, s, &p.survey, err);
    s->step++;
    if (rc == 0)
        rc = d7_reader_check(p.r, steps_progress, s, err);
    if (rc == 0)
        rc = d7__changed_mark(&changed, d7_reader_state(source) == D7_STATE_CLOSED, err);
    p.changed_header = changed.header;
    p.lost_attributes = changed.lost_attributes;
    if (rc == 0)
        d7__report_checksums(p.r, report);
    if (rc == 0)
        rc = take_tail_attributes(&p, source, &changed, err);
    d7__changed_free(&changed);
    s->step++;
    if (rc == 0)
        rc = d7__repair_plan_make(&p, err);
    if (rc == 0 && report_plan(&p, report) != 0)
        rc = d7__reader_no_memory(p.r, err);
    if (rc == 0)
        report_untold(source, &p, report);
    if (rc == 0)
        rc = d7__repair_write(&p, out_path, s->o, steps_progress, s, err);
    s->step++;
    d7__repair_plan_free(&p);
    d7_reader_free(p.r);
    return rc;
}

static int repair_into(d7_reader *source, const char *path, const char *out_path, steps *s,
                       d7_repair_report *report, d7_error *err) {
    d7__range *tail = NULL;
    bool any = false;
    if (source->source.size > D7__REPAIR_OFFSET_MAX)
        return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET, "%s: files of 16 TiB and more are not repaired",
                        path);
    int rc = find_tail(source, &tail, &any, err);
    if (rc != 0)
        return rc;
    d7__map_free(source);
    rc = repair_from(source, path, out_path, any ? tail : NULL, s, report, err);
    d7__release(&source->alloc, tail);
    if (rc != 0)
        return rc;
    rc = d7__repair_verify(out_path, s->o, steps_progress, s, err);
    if (rc != 0 && source->io.remove)
        source->io.remove(source->io.ctx, out_path);
    return rc;
}

int d7_repair(const char *path, const char *out_path, const d7_repair_options *options,
              d7_repair_report *ret_report, d7_error *err) {
    d7_repair_options defaults;
    d7_repair_options_init(&defaults);
    steps s = {.o = options ? options : &defaults};
    d7_repair_report report = {0};
    d7_reader *source;
    bool fine;
    if (!out_path || !*out_path)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a path for the repaired file is needed");
    int rc = d7__repair_open(path, s.o, false, &source, err);
    if (rc != 0)
        return rc;
    s.total = source->source.size;
    if (d7__report_start(source, &report) != 0)
        rc = d7__reader_no_memory(source, err);
    if (rc == 0)
        rc = d7__repair_is_fine(source, steps_progress, &s, &fine, err);
    if (rc == 0)
        d7__report_checksums(source, &report);
    if (rc == 0)
        report_tail(source, &report);
    if (rc == 0 && !fine)
        rc = repair_into(source, path, out_path, &s, &report, err);
    d7_reader_free(source);
    if (rc == 0)
        *ret_report = report;
    else
        d7_repair_report_free(&report);
    return rc;
}
