#include "problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

static const struct {
    const char *name;
    d7_severity severity;
} kinds[D7_N_PROBLEMS] = {
#define PROBLEM_KIND(code, severity, text) [D7_PROBLEM_##code] = {#code, D7_##severity},
    D7_PROBLEM_MAP(PROBLEM_KIND)
#undef PROBLEM_KIND
};

const char *d7_severity_name(d7_severity severity) {
    static const char *const names[D7_N_SEVERITIES] = {
        [D7_DAMAGE] = "damage", [D7_DATA] = "data", [D7_STYLE] = "style", [D7_NOTICE] = "notice"};
    return (unsigned)severity < D7_N_SEVERITIES ? names[severity] : NULL;
}

const char *d7_problem_name(d7_problem_code code) {
    return (unsigned)code < D7_N_PROBLEMS ? kinds[code].name : NULL;
}

const char *d7_problem_text(d7_problem_code code) {
    switch (code) {
#define PROBLEM_TEXT(name, severity, text)                                                                   \
    case D7_PROBLEM_##name:                                                                                  \
        return text;
        D7_PROBLEM_MAP(PROBLEM_TEXT)
#undef PROBLEM_TEXT
    default:
        return NULL;
    }
}

void d7__problems_free(d7__problems *p) {
    if (p->alloc)
        d7__release(p->alloc, p->items);
    p->items = NULL;
    p->n = p->cap = 0;
}

void d7__problems_clear(d7__problems *p) {
    p->n = 0;
    p->total = 0;
    memset(p->by_severity, 0, sizeof p->by_severity);
}

void d7__problems_drop(d7__problems *p, d7_problem_code code) {
    size_t kept = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->items[i].code != code) {
            p->items[kept++] = p->items[i];
            continue;
        }
        p->total--;
        p->by_severity[p->items[i].severity]--;
    }
    p->n = kept;
}

d7_problem d7__problem(d7_problem_code code, uint64_t offset, const char *format, ...) {
    d7_problem problem = {
        .code = code, .severity = kinds[code].severity, .offset = offset, .dataset_id = D7_NO_DATASET};
    char text[sizeof problem.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    common_printable(problem.text, sizeof problem.text, text, strlen(text));
    return problem;
}

static bool is_kept(const d7__problems *p, const d7_problem *problem) {
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i].code == problem->code && p->items[i].offset == problem->offset &&
            p->items[i].dataset_id == problem->dataset_id)
            return true;
    return false;
}

void d7__problems_add(d7__problems *p, const d7_problem *problem) {
    if (is_kept(p, problem))
        return;
    p->total++;
    p->by_severity[problem->severity]++;
    if (p->tell)
        p->tell(p->tell_ctx, problem);
    if (p->keep && p->n < D7__PROBLEMS_KEPT &&
        d7__grow(p->alloc, &p->items, &p->cap, p->n + 1, sizeof *p->items) == 0)
        p->items[p->n++] = *problem;
}
