/* Joined axes: their entries. */
#include <stdlib.h>
#include <string.h>

#include "merge.h"

const joined_axis *find_joined(const merging *m, const char *name) {
    for (size_t i = 0; i < m->n_axes; i++)
        if (strcmp(m->axes[i].name, name) == 0)
            return &m->axes[i];
    return NULL;
}

static int no_memory(const merging *m) {
    return cli_fail(m->self, "out of memory");
}

/* ---- entries */

typedef struct entry {
    const char *text;
    size_t input;
    uint64_t index;
    uint64_t first; /* its number among all entries of all inputs */
} entry;

static int compare_texts(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

static int compare_firsts(const void *a, const void *b) {
    uint64_t x = ((const entry *)a)->first, y = ((const entry *)b)->first;
    return (x > y) - (x < y);
}

/* Entries with the same text get the number of the first of them, and then their place in the whole. */
static int place_entries(const merging *m, joined_axis *a, entry *all, uint64_t n) {
    qsort(all, (size_t)n, sizeof *all, compare_texts);
    for (uint64_t i = 1; i < n; i++)
        if (strcmp(all[i].text, all[i - 1].text) == 0)
            all[i].first = all[i - 1].first;
    qsort(all, (size_t)n, sizeof *all, compare_firsts);
    a->entries = calloc((size_t)n + 1, sizeof *a->entries);
    if (!a->entries)
        return no_memory(m);
    for (uint64_t i = 0; i < n; i++) {
        if (i == 0 || all[i].first != all[i - 1].first) {
            a->entries[a->n] = strdup(all[i].text);
            if (!a->entries[a->n++])
                return no_memory(m);
        }
        a->places[all[i].input][all[i].index] = a->n - 1;
    }
    return CLI_OK;
}

static int collect_entries(const merging *m, joined_axis *a, daf_array *const *lists) {
    uint64_t n = 0, k = 0;
    for (size_t i = 0; i < m->n_inputs; i++)
        n += a->lengths[i];
    entry *all = malloc((size_t)(n + 1) * sizeof *all);
    if (!all)
        return no_memory(m);
    for (size_t i = 0; i < m->n_inputs; i++)
        for (uint64_t e = 0; e < a->lengths[i]; e++, k++)
            all[k] = (entry){daf_array_strings(lists[i])[e], i, e, k};
    int code = place_entries(m, a, all, n);
    free(all);
    return code;
}

/* The entries of each input that has the axis. */
static int get_lists(const merging *m, joined_axis *a, daf_array **lists) {
    daf_error err;
    bool some = false;
    for (size_t i = 0; i < m->n_inputs; i++) {
        bool there;
        if (daf_has_axis(m->inputs[i], &there, a->name, &err) != 0)
            return command_fail(m->self, &err);
        if (!there)
            continue;
        some = true;
        if (daf_get_axis(m->inputs[i], &lists[i], a->name, &err) != 0)
            return command_fail(m->self, &err);
        a->lengths[i] = daf_array_count(lists[i]);
        a->places[i] = malloc((size_t)(a->lengths[i] + 1) * sizeof **a->places);
        if (!a->places[i])
            return no_memory(m);
    }
    return some ? CLI_OK : cli_fail(m->self, "no input has the axis \"%s\"", a->name);
}

static int join_axis(const merging *m, joined_axis *a) {
    daf_error err;
    daf_array **lists = calloc(m->n_inputs, sizeof *lists);
    a->places = calloc(m->n_inputs, sizeof *a->places);
    a->lengths = calloc(m->n_inputs, sizeof *a->lengths);
    int code = lists && a->places && a->lengths ? get_lists(m, a, lists) : no_memory(m);
    if (code == CLI_OK)
        code = collect_entries(m, a, lists);
    if (code == CLI_OK && daf_add_axis(m->to, a->name, (const char *const *)a->entries, a->n, &err) != 0)
        code = command_fail(m->self, &err);
    for (size_t i = 0; i < m->n_inputs && lists; i++)
        daf_array_free(lists[i]);
    free(lists);
    return code;
}

int join_axes(merging *m) {
    int code = CLI_OK;
    for (size_t i = 0; i < m->n_axes && code == CLI_OK; i++)
        code = join_axis(m, &m->axes[i]);
    return code;
}

void free_joined(merging *m) {
    for (size_t k = 0; k < m->n_axes; k++) {
        joined_axis *a = &m->axes[k];
        for (uint64_t i = 0; i < a->n && a->entries; i++)
            free(a->entries[i]);
        for (size_t i = 0; i < m->n_inputs && a->places; i++)
            free(a->places[i]);
        free(a->entries);
        free(a->places);
        free(a->lengths);
    }
}
