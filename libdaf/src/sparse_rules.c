/* The rules of sparse data (specification section 4). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "error.h"
#include "indices.h"
#include "store.h"

enum { ROOM_BYTES = 1 << 16 };

/* Reads indices one by one: from memory, or from a file through `room`. After a failure there are only zeros, which no
 * rule allows. */
typedef struct index_reader {
    daf_type type;
    const void *data; /* of a file: what is in the room */
    daf__file *file;
    void *room;
    uint64_t n, at;           /* at: the next one */
    uint64_t data_at, n_data; /* file: the first one in the room, and how many there are */
    size_t n_block, next;
    int rc;
    daf_error *err;
    uint64_t block[DAF__INDEX_BLOCK];
} index_reader;

/* What is being checked. */
typedef struct rule_check {
    const daf__content *content;
    daf__rule_breach *breach;
    index_reader pointers, indices;
} rule_check;

static void rewind_reader(index_reader *r) {
    r->at = r->data_at = r->n_data = 0;
    r->n_block = r->next = 0;
}

static int start_reading(index_reader *r, const daf__content *c, daf__part part, uint64_t n, daf__file *file,
                         daf_error *err) {
    r->type = c->index_type;
    r->data = c->data[part];
    r->n = n;
    r->file = file;
    r->room = file ? malloc(ROOM_BYTES) : NULL;
    r->rc = 0;
    r->err = err;
    rewind_reader(r);
    if (file)
        r->data = r->room;
    return file && !r->room ? daf__no_memory(err) : 0;
}

static void fill_room(index_reader *r) {
    size_t width = daf_type_bytes(r->type);
    uint64_t n = ROOM_BYTES / width;
    r->data_at = r->at;
    r->n_data = r->n - r->at < n ? r->n - r->at : n;
    r->rc = r->file->ops->read(r->file, r->room, (size_t)r->n_data * width, r->at * width, r->err);
    if (r->rc)
        memset(r->room, 0, ROOM_BYTES);
}

static uint64_t read_next(index_reader *r) {
    if (r->next < r->n_block)
        return r->block[r->next++];
    if (r->at == r->n)
        return 0;
    if (r->file && r->at == r->data_at + r->n_data)
        fill_room(r);
    uint64_t left = r->file ? r->data_at + r->n_data - r->at : r->n - r->at;
    r->n_block = left < DAF__INDEX_BLOCK ? (size_t)left : DAF__INDEX_BLOCK;
    daf__indices_widen(r->block, r->type, r->data, r->at - r->data_at, r->n_block);
    r->at += r->n_block;
    r->next = 1;
    return r->block[0];
}

/* An index as it is stored: of the signed types it may be negative. */
static bool breach(daf__rule_breach *b, daf__part part, uint64_t element, uint64_t index, const char *why,
                   uint64_t other) {
    char shown[24];
    if (index > INT64_MAX)
        snprintf(shown, sizeof shown, "%" PRId64, (int64_t)index);
    else
        snprintf(shown, sizeof shown, "%" PRIu64, index);
    b->part = part;
    b->element = element;
    b->index = index;
    snprintf(b->text, sizeof b->text, "index %s %s %" PRIu64, shown, why, other);
    return false;
}

static bool pointers_obey(rule_check *k) {
    const daf__content *c = k->content;
    daf__rule_breach *b = k->breach;
    uint64_t before = 1, v = 0;
    for (uint64_t j = 0; j <= c->columns; j++) {
        v = read_next(&k->pointers);
        if (j == 0 && v != 1)
            return breach(b, DAF__POINTERS, j, v, "begins the columns, and not", 1);
        if (v < before)
            return breach(b, DAF__POINTERS, j, v, "is less than that of the column before,", before);
        if (v > c->nnz + 1)
            return breach(b, DAF__POINTERS, j, v, "is past the stored values + 1,", c->nnz + 1);
        before = v;
    }
    if (v != c->nnz + 1)
        return breach(b, DAF__POINTERS, c->columns, v, "ends the columns, and not the stored values + 1,",
                      c->nnz + 1);
    rewind_reader(&k->pointers);
    (void)read_next(&k->pointers);
    return true;
}

/* The indices of one column, up to stored value `end`. */
static bool column_obeys(rule_check *check, uint64_t k, uint64_t end) {
    const daf__content *c = check->content;
    daf__rule_breach *b = check->breach;
    uint64_t before = 0;
    for (; k < end; k++) {
        uint64_t v = read_next(&check->indices);
        if (v == 0 || v > c->rows)
            return breach(b, DAF__INDICES, k, v, "is not from 1 to the length of the axis,", c->rows);
        if (v <= before)
            return breach(b, DAF__INDICES, k, v, "does not come after the one before it,", before);
        before = v;
    }
    return true;
}

/* The number, from 0, behind the last stored value of column j. A file may say something else the second time. */
static bool next_end(rule_check *k, uint64_t j, uint64_t start, uint64_t *end) {
    const daf__content *c = k->content;
    *end = c->nnz;
    if (c->kind != DAF__MATRIX)
        return true;
    uint64_t v = read_next(&k->pointers);
    *end = v - 1;
    return (v > start && *end <= c->nnz) ||
           breach(k->breach, DAF__POINTERS, j + 1, v, "was changed meanwhile, behind", start + 1);
}

static bool obeys(rule_check *check) {
    uint64_t k = 0, end;
    if (check->content->kind == DAF__MATRIX && !pointers_obey(check))
        return false;
    for (uint64_t j = 0; j < check->content->columns; j++) {
        if (!next_end(check, j, k, &end) || !column_obeys(check, k, end))
            return false;
        k = end;
    }
    return true;
}

int daf__content_check(const daf__content *c, daf__file *const files[DAF__N_PARTS], bool *ret,
                       daf__rule_breach *b, daf_error *err) {
    rule_check k = {.content = c, .breach = b};
    int rc = start_reading(&k.indices, c, DAF__INDICES, c->nnz, files ? files[DAF__INDICES] : NULL, err);
    if (rc == 0 && c->kind == DAF__MATRIX)
        rc = start_reading(&k.pointers, c, DAF__POINTERS, c->columns + 1, files ? files[DAF__POINTERS] : NULL,
                           err);
    bool good = rc == 0 && obeys(&k);
    if (rc == 0)
        rc = k.pointers.rc ? k.pointers.rc : k.indices.rc;
    if (rc == 0)
        *ret = good;
    free(k.pointers.room);
    free(k.indices.room);
    return rc;
}

bool daf__content_obeys(const daf__content *c, daf__rule_breach *b) {
    bool good = false;
    (void)daf__content_check(c, NULL, &good, b, NULL); /* nothing is read */
    return good;
}
