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

/* ---- those kept, found by what they say ---- */

enum { PLACES = 2048 }; /* a power of two, twice D7__PROBLEMS_KEPT or more */

static bool same_problem(const d7_problem *a, const d7_problem *b) {
    return a->code == b->code && a->offset == b->offset && a->dataset_id == b->dataset_id;
}

/* The slot of that problem, or the free one where it would go. */
static uint16_t *find_place(const d7__problems *p, const d7_problem *problem) {
    uint64_t h = (problem->offset * 64 + problem->code) * 0x9E3779B97F4A7C15u + problem->dataset_id;
    h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9u;
    for (size_t i = (size_t)(h >> 32);; i++) {
        uint16_t *place = &p->places[i % PLACES];
        if (*place == 0 || same_problem(&p->items[*place - 1], problem))
            return place;
    }
}

static bool is_kept(const d7__problems *p, const d7_problem *problem) {
    return p->n && *find_place(p, problem) != 0;
}

static void empty_places(const d7__problems *p) {
    if (p->places)
        memset(p->places, 0, PLACES * sizeof *p->places);
}

static void keep(d7__problems *p, const d7_problem *problem) {
    if (!p->places)
        p->places = d7__new(p->alloc, PLACES * sizeof *p->places);
    if (!p->places || d7__grow(p->alloc, &p->items, &p->cap, p->n + 1, sizeof *p->items) != 0)
        return;
    uint16_t *place = find_place(p, problem);
    p->items[p->n++] = *problem;
    *place = (uint16_t)p->n;
}

/* ---- the list ---- */

void d7__problems_free(d7__problems *p) {
    if (p->alloc) {
        d7__release(p->alloc, p->items);
        d7__release(p->alloc, p->places);
    }
    p->items = NULL;
    p->places = NULL;
    p->n = p->cap = 0;
}

void d7__problems_clear(d7__problems *p) {
    empty_places(p);
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
    empty_places(p);
    for (size_t i = 0; i < kept; i++)
        *find_place(p, &p->items[i]) = (uint16_t)(i + 1);
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

void d7__problems_add(d7__problems *p, const d7_problem *problem) {
    if (is_kept(p, problem))
        return;
    p->total++;
    p->by_severity[problem->severity]++;
    if (p->tell)
        p->tell(p->tell_ctx, problem);
    if (p->keep && p->n < D7__PROBLEMS_KEPT)
        keep(p, problem);
}
