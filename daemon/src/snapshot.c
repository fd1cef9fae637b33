#include "snapshot.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* Blocks are kept over a reset; each is used from its start. A large array gets a block of its own size,
 * so that a second freeze of the same run finds blocks that fit. */
typedef struct pd_snapshot_block {
    struct pd_snapshot_block *next;
    size_t cap;
    size_t used;
    alignas(64) unsigned char bytes[];
} pd_snapshot_block;

enum { SNAPSHOT_BLOCK_BYTES = 64 * 1024, SNAPSHOT_ALIGN = 64 };

void pd_snapshot_init(pd_snapshot *snapshot) {
    memset(snapshot, 0, sizeof *snapshot);
}

void pd_snapshot_clear(pd_snapshot *snapshot) {
    for (pd_snapshot_block *block = snapshot->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(snapshot->properties);
    pd_snapshot_init(snapshot);
}

void pd_snapshot_reset(pd_snapshot *snapshot) {
    for (pd_snapshot_block *block = snapshot->blocks; block; block = block->next)
        block->used = 0;
    snapshot->n_properties = 0;
    snapshot->export_number = 0;
}

size_t pd_snapshot_bytes(const pd_snapshot *snapshot) {
    size_t bytes = snapshot->properties_cap * sizeof *snapshot->properties;
    for (const pd_snapshot_block *block = snapshot->blocks; block; block = block->next)
        bytes += sizeof *block + block->cap;
    return bytes;
}

static void *snapshot_take(pd_snapshot *s, size_t bytes) {
    size_t need = (bytes + SNAPSHOT_ALIGN - 1) / SNAPSHOT_ALIGN * SNAPSHOT_ALIGN;
    if (need < bytes)
        return NULL;
    pd_snapshot_block *fit = NULL;
    for (pd_snapshot_block *block = s->blocks; block; block = block->next)
        if (block->cap - block->used >= need && (!fit || block->cap - block->used < fit->cap - fit->used))
            fit = block;
    if (!fit) {
        size_t cap = need > SNAPSHOT_BLOCK_BYTES ? need : SNAPSHOT_BLOCK_BYTES;
        if (cap > SIZE_MAX - sizeof *fit)
            return NULL;
        fit = aligned_alloc(SNAPSHOT_ALIGN, sizeof *fit + cap);
        if (!fit)
            return NULL;
        fit->cap = cap;
        fit->used = 0;
        fit->next = s->blocks;
        s->blocks = fit;
    }
    void *place = fit->bytes + fit->used;
    fit->used += need;
    return place;
}

static const char *snapshot_text(pd_snapshot *s, const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = snapshot_take(s, bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

/* The next property, named; not yet counted. */
static pd_property *snapshot_property(pd_snapshot *s, pd_property_kind kind, const char *name) {
    if (s->n_properties == s->properties_cap) {
        size_t cap = s->properties_cap ? 2 * s->properties_cap : 64;
        pd_property *properties = realloc(s->properties, cap * sizeof *properties);
        if (!properties)
            return NULL;
        s->properties = properties;
        s->properties_cap = cap;
    }
    pd_property *p = &s->properties[s->n_properties];
    memset(p, 0, sizeof *p);
    p->kind = kind;
    p->name = snapshot_text(s, name);
    return p->name ? p : NULL;
}

static int snapshot_scalar(pd_snapshot *s, const char *name, daf_scalar value) {
    pd_property *p = snapshot_property(s, PD_SCALAR, name);
    if (!p)
        return -1;
    p->scalar = value;
    s->n_properties++;
    return 0;
}

int pd_snapshot_uint64(pd_snapshot *s, const char *name, uint64_t value) {
    return snapshot_scalar(s, name, daf_scalar_uint64(value));
}

int pd_snapshot_float64(pd_snapshot *s, const char *name, double value) {
    return snapshot_scalar(s, name, daf_scalar_float64(value));
}

int pd_snapshot_string(pd_snapshot *s, const char *name, const char *text) {
    const char *copy = snapshot_text(s, text);
    return copy ? snapshot_scalar(s, name, daf_scalar_string(copy)) : -1;
}

int pd_snapshot_axis(pd_snapshot *s, const char *name, int64_t first, int64_t step, uint64_t n) {
    pd_property *p = snapshot_property(s, PD_AXIS, name);
    if (!p)
        return -1;
    p->first = first;
    p->step = step;
    p->n = n;
    s->n_properties++;
    return 0;
}

static void *snapshot_array(pd_snapshot *s, pd_property *p, daf_type type, uint64_t n) {
    size_t item = daf_type_bytes(type);
    if (!p || item == 0 || n > SIZE_MAX / item)
        return NULL;
    p->type = type;
    p->n = n;
    p->values = snapshot_take(s, (size_t)n * item);
    if (!p->values)
        return NULL;
    s->n_properties++;
    return p->values;
}

void *pd_snapshot_vector(pd_snapshot *s, const char *axis, const char *name, daf_type type, uint64_t n) {
    pd_property *p = snapshot_property(s, PD_VECTOR, name);
    if (!p || !(p->rows = snapshot_text(s, axis)))
        return NULL;
    return snapshot_array(s, p, type, n);
}

void *pd_snapshot_matrix(pd_snapshot *s, const char *rows, const char *columns, const char *name,
                         daf_type type, uint64_t n) {
    pd_property *p = snapshot_property(s, PD_MATRIX, name);
    if (!p || !(p->rows = snapshot_text(s, rows)) || !(p->columns = snapshot_text(s, columns)))
        return NULL;
    return snapshot_array(s, p, type, n);
}

const pd_property *pd_snapshot_find(const pd_snapshot *s, pd_property_kind kind, const char *rows,
                                    const char *name) {
    for (size_t i = 0; i < s->n_properties; i++) {
        const pd_property *p = &s->properties[i];
        if (p->kind == kind && strcmp(p->name, name) == 0 &&
            (!rows || (p->rows && strcmp(p->rows, rows) == 0)))
            return p;
    }
    return NULL;
}
