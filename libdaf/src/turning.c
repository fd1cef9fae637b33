/* Rows are counted first: row r of the matrix is column r of the transpose, whose stored values are those of the numbers
 * starts[r] up to starts[r + 1]. Files are read more than once, so that what they say is checked each time. */
#include "turning.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "indices.h"

/* Indices or values of a part, a block at a time. */
typedef struct part_reader {
    daf__file *file;
    daf_type type;
    uint64_t n, at;                 /* at: the first one that was not read yet */
    uint64_t raw[DAF__INDEX_BLOCK]; /* of elements of any width */
} part_reader;

/* A part of the transpose; of a packed one the elements wait until they fill chunks. */
typedef struct part_writer {
    daf__component component;
    daf__out *out;
    daf__shard_writer *shard; /* NULL: flat */
    uint64_t chunk, left;     /* elements: of a chunk, and still to come */
    daf__buf pending;
} part_writer;

typedef struct turning {
    daf__edit *edit;
    daf__opened opened;
    daf__content from, to; /* only their shapes */
    daf__file *files[DAF__N_PARTS];
    part_reader pointers, indices, values;
    uint64_t *starts;
    daf__descriptor plan;
    part_writer parts[DAF__N_PARTS];
    uint64_t column, end; /* while it is read: the column, and the number behind its last stored value */
    /* the band */
    uint64_t first_row, end_row;
    uint64_t *next; /* of each of its rows: the number of the next value */
    uint8_t *band_indices, *band_values;
} turning;

/* ---- reading */

static int read_block(part_reader *r, size_t *n, daf_error *err) {
    size_t width = daf_type_bytes(r->type);
    *n = r->n - r->at < DAF__INDEX_BLOCK ? (size_t)(r->n - r->at) : DAF__INDEX_BLOCK;
    int rc = *n ? r->file->ops->read(r->file, r->raw, *n * width, r->at * width, err) : 0;
    r->at += *n;
    return rc;
}

static int was_changed(const turning *t, daf_error *err) {
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: was changed while it was read",
                     t->files[DAF__INDICES]->where);
}

static int next_column(turning *t, daf_error *err) {
    part_reader *p = &t->pointers;
    size_t n = 0, at = (size_t)((t->column + 1) % DAF__INDEX_BLOCK);
    if (++t->column > t->from.columns)
        return was_changed(t, err);
    int rc = at == 0 ? read_block(p, &n, err) : 0;
    if (rc)
        return rc;
    t->end = daf__index_at(p->type, p->raw, at) - 1;
    return t->end > t->from.nnz ? was_changed(t, err) : 0;
}

static int rewind_all(turning *t, daf_error *err) {
    size_t n;
    t->pointers.at = t->indices.at = t->values.at = 0;
    t->column = 0;
    int rc = read_block(&t->pointers, &n, err);
    t->end = 0;
    return rc ? rc : next_column(t, err); /* column 1, counted from 1 */
}

static int count_rows(turning *t, daf_error *err) {
    uint64_t rows[DAF__INDEX_BLOCK], sum = 0;
    size_t n = 0;
    int rc = rewind_all(t, err);
    while (rc == 0 && t->indices.at < t->from.nnz) {
        rc = read_block(&t->indices, &n, err);
        if (rc == 0)
            daf__indices_widen(rows, t->indices.type, t->indices.raw, 0, n);
        for (size_t i = 0; i < n && rc == 0; i++) {
            if (rows[i] < 1 || rows[i] > t->from.rows)
                rc = was_changed(t, err);
            else
                t->starts[rows[i]]++;
        }
    }
    for (uint64_t r = 0; r <= t->from.rows; r++)
        t->starts[r] = sum += t->starts[r];
    return rc;
}

/* Values of Bool are stored only when some are false. */
static int find_false(turning *t, bool *ret, daf_error *err) {
    size_t n = 0;
    int rc = rewind_all(t, err);
    *ret = false;
    while (rc == 0 && !*ret && t->values.at < t->from.nnz) {
        rc = read_block(&t->values, &n, err);
        *ret = rc == 0 && memchr(t->values.raw, 0, n) != NULL;
    }
    return rc;
}

/* ---- a band */

/* Puts the block's values of rows of the band where they go. */
static int put_block(turning *t, uint64_t first, size_t n, daf_error *err) {
    uint64_t rows[DAF__INDEX_BLOCK], places[DAF__INDEX_BLOCK], columns[DAF__INDEX_BLOCK],
        which[DAF__INDEX_BLOCK];
    uint64_t picked[DAF__INDEX_BLOCK];
    size_t m = 0, width = daf_type_bytes(t->from.type);
    daf__indices_widen(rows, t->indices.type, t->indices.raw, 0, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t row = rows[i] - 1;
        while (first + i >= t->end) {
            int rc = next_column(t, err);
            if (rc)
                return rc;
        }
        if (row < t->first_row || row >= t->end_row)
            continue;
        uint64_t *next = &t->next[row - t->first_row];
        if (*next == t->starts[row + 1])
            return was_changed(t, err);
        which[m] = i;
        columns[m] = t->column;
        places[m++] = (*next)++ - t->starts[t->first_row];
    }
    daf__indices_scatter(t->band_indices, t->to.index_type, places, columns, m);
    if (t->band_values) {
        daf__values_gather(picked, t->values.raw, width, which, m);
        daf__values_scatter(t->band_values, picked, width, places, m);
    }
    return 0;
}

static int fill_band(turning *t, daf_error *err) {
    memcpy(t->next, t->starts + t->first_row, (size_t)(t->end_row - t->first_row) * sizeof *t->next);
    int rc = rewind_all(t, err);
    while (rc == 0 && t->indices.at < t->from.nnz) {
        uint64_t first = t->indices.at;
        size_t n = 0;
        rc = read_block(&t->indices, &n, err);
        if (rc == 0 && t->band_values)
            rc = read_block(&t->values, &n, err);
        if (rc == 0)
            rc = put_block(t, first, n, err);
    }
    for (uint64_t r = t->first_row; r < t->end_row && rc == 0; r++)
        if (t->next[r - t->first_row] != t->starts[r + 1])
            rc = was_changed(t, err);
    return rc;
}

/* ---- writing */

static int begin_part(turning *t, daf__part part, uint64_t n, const char *where, daf_error *err) {
    part_writer *w = &t->parts[part];
    const daf__extent x = {DAF__VECTOR, n, 1};
    daf__shard_spec spec;
    w->component = t->plan.parts[part];
    w->left = n;
    if (!w->component.present)
        return 0;
    int rc = daf__edit_create(t->edit, &w->out, err);
    if (rc || !w->component.packed)
        return rc;
    rc = daf__shard_spec_of(&spec, t->edit->d, &x, &w->component, where, err);
    w->chunk = rc ? 0 : spec.grid.chunk_rows;
    return rc ? rc : daf__shard_writer_new(&w->shard, w->out, &spec, err);
}

static int put_packed(part_writer *w, const void *values, uint64_t n, daf_error *err) {
    size_t width = daf_type_bytes(w->component.type);
    daf__buf_append(&w->pending, values, (size_t)n * width);
    int rc = daf__buf_check(&w->pending, err);
    uint64_t waiting = w->pending.size / width, chunks = waiting / w->chunk;
    if (w->left == 0 && waiting % w->chunk)
        chunks++;
    if (rc || chunks == 0)
        return rc;
    rc = daf__shard_writer_put(w->shard, chunks, w->pending.data, err);
    size_t taken = (size_t)(chunks * w->chunk < waiting ? chunks * w->chunk : waiting) * width;
    memmove(w->pending.data, w->pending.data + taken, w->pending.size - taken);
    w->pending.size -= taken;
    return rc;
}

static int put(part_writer *w, const void *values, uint64_t n, daf_error *err) {
    w->left -= n;
    return w->shard ? put_packed(w, values, n, err)
                    : daf__flat_append(w->out, w->component.type, values, n, err);
}

static int write_pointers(turning *t, daf_error *err) {
    uint64_t block[DAF__INDEX_BLOCK], narrow[DAF__INDEX_BLOCK];
    int rc = 0;
    for (uint64_t r = 0; r <= t->from.rows && rc == 0; r += DAF__INDEX_BLOCK) {
        uint64_t left = t->from.rows + 1 - r;
        size_t n = left < DAF__INDEX_BLOCK ? (size_t)left : DAF__INDEX_BLOCK;
        for (size_t i = 0; i < n; i++)
            block[i] = t->starts[r + i] + 1;
        daf__indices_narrow(narrow, t->to.index_type, 0, block, n);
        rc = put(&t->parts[DAF__POINTERS], narrow, n, err);
    }
    return rc;
}

/* As many rows as fit into the band, one at least. */
static void next_band(turning *t, uint64_t most) {
    t->first_row = t->end_row;
    do
        t->end_row++;
    while (t->end_row < t->from.rows && t->starts[t->end_row + 1] - t->starts[t->first_row] <= most);
}

static int write_band(turning *t, daf_error *err) {
    uint64_t n = t->starts[t->end_row] - t->starts[t->first_row];
    size_t width = daf_type_bytes(t->to.index_type), value = daf_type_bytes(t->from.type);
    bool has_values = t->plan.parts[DAF__VALUES].present;
    t->band_indices = malloc((size_t)n * width + 1);
    t->band_values = has_values ? malloc((size_t)n * value + 1) : NULL;
    t->next = malloc((size_t)(t->end_row - t->first_row) * sizeof *t->next);
    int rc = t->band_indices && t->next && (t->band_values || !has_values) ? 0 : daf__no_memory(err);
    if (rc == 0)
        rc = fill_band(t, err);
    if (rc == 0)
        rc = put(&t->parts[DAF__INDICES], t->band_indices, n, err);
    if (rc == 0 && has_values)
        rc = put(&t->parts[DAF__VALUES], t->band_values, n, err);
    free(t->band_indices);
    free(t->band_values);
    free(t->next);
    t->band_indices = t->band_values = NULL;
    t->next = NULL;
    return rc;
}

static int write_all(turning *t, uint64_t band_bytes, daf_error *err) {
    size_t width = daf_type_bytes(t->to.index_type);
    if (t->plan.parts[DAF__VALUES].present)
        width += daf_type_bytes(t->from.type);
    int rc = write_pointers(t, err);
    while (rc == 0 && t->end_row < t->from.rows) {
        next_band(t, band_bytes / width);
        rc = write_band(t, err);
    }
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        if (t->parts[i].shard)
            rc = daf__shard_writer_finish(t->parts[i].shard, err);
    return rc;
}

/* ---- the whole */

static int open_part(turning *t, daf__part part, uint64_t n, part_reader *r, daf_error *err) {
    const daf__component *c = &t->opened.descriptor.parts[part];
    const daf__extent x = {DAF__VECTOR, n, 1};
    if (!c->present)
        return 0;
    if (c->counted && c->n_elements != n)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0,
                         "%s: the descriptor says %" PRIu64 " elements, but there must be %" PRIu64,
                         t->opened.files[part]->where, c->n_elements, n);
    int rc = daf__component_as_file(&t->files[part], t->edit->d, t->opened.files[part], &x, c, err);
    r->file = t->files[part];
    r->type = c->type;
    r->n = n;
    return rc;
}

static int open_parts(turning *t, daf_error *err) {
    daf__rule_breach breach;
    bool good = true;
    int rc = open_part(t, DAF__POINTERS, t->from.columns + 1, &t->pointers, err);
    if (rc == 0)
        rc = open_part(t, DAF__INDICES, t->from.nnz, &t->indices, err);
    if (rc == 0)
        rc = open_part(t, DAF__VALUES, t->from.nnz, &t->values, err);
    if (rc == 0)
        rc = daf__content_check(&t->from, t->files, &good, &breach, err);
    if (rc || good)
        return rc;
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: element %" PRIu64 ": %s", t->files[breach.part]->where,
                     breach.element + 1, breach.text);
}

/* What the transpose will be. */
static int plan(turning *t, const daf_set_options *o, daf_error *err) {
    static const uint64_t something = 0;
    bool has_values = t->files[DAF__VALUES] != NULL;
    t->to = (daf__content){.kind = DAF__MATRIX,
                           .type = t->from.type,
                           .rows = t->from.columns,
                           .columns = t->from.rows,
                           .sparse = true,
                           .nnz = t->from.nnz};
    int rc = daf__choose_index(&t->to.index_type, &t->to, o ? o->index_type : DAF_BOOL, t->to.nnz, err);
    if (rc == 0 && has_values && t->from.type == DAF_BOOL)
        rc = find_false(t, &has_values, err);
    t->to.data[DAF__POINTERS] = t->to.data[DAF__INDICES] = &something;
    t->to.data[DAF__VALUES] = has_values ? &something : NULL;
    return rc ? rc : daf__property_plan(&t->plan, t->edit->d, &t->to, o, err);
}

static int begin_parts(turning *t, const daf__property *other, daf_error *err) {
    daf__key key = daf__property_key(other);
    int rc = begin_part(t, DAF__POINTERS, t->from.rows + 1, key.text, err);
    if (rc == 0)
        rc = begin_part(t, DAF__INDICES, t->from.nnz, key.text, err);
    return rc ? rc : begin_part(t, DAF__VALUES, t->from.nnz, key.text, err);
}

static int turn(turning *t, const daf__property *other, const daf_set_options *o, bool there,
                uint64_t band_bytes, daf_error *err) {
    daf__out *outs[DAF__N_PARTS] = {NULL};
    int rc = open_parts(t, err);
    t->starts =
        rc == 0 && t->from.rows < SIZE_MAX / 16 ? calloc((size_t)t->from.rows + 2, sizeof *t->starts) : NULL;
    if (rc == 0 && !t->starts)
        rc = daf__no_memory(err);
    if (rc == 0)
        rc = plan(t, o, err);
    if (rc == 0)
        rc = count_rows(t, err);
    if (rc == 0)
        rc = begin_parts(t, other, err);
    if (rc == 0)
        rc = write_all(t, band_bytes, err);
    if (rc)
        return rc;
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        outs[i] = t->parts[i].out;
        t->parts[i].out = NULL;
    }
    return daf__property_stage_filled(t->edit, other, &t->plan, outs, there, err);
}

static bool suits(const turning *t, const daf_set_options *o, uint64_t band_bytes) {
    const daf *d = t->edit->d;
    daf_form form = o ? o->form : DAF_FORM_AS_GIVEN;
    bool stays = form == DAF_FORM_AS_GIVEN || form == DAF_FORM_SPARSE;
    bool is_old = d->store->append_only && d->major == 1 && d->minor < 1; /* which has rules of its own */
    size_t width = daf_type_bytes(t->from.index_type) + daf_type_bytes(t->from.type);
    return t->opened.descriptor.sparse && t->from.type != DAF_STRING && stays && !is_old &&
           t->from.nnz > band_bytes / width;
}

static void end(turning *t) {
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        daf__file_close(t->files[i]);
        daf__shard_writer_free(t->parts[i].shard);
        daf__out_discard(t->parts[i].out);
        daf__buf_free(&t->parts[i].pending);
    }
    daf__opened_close(&t->opened);
    free(t->starts);
    free(t);
}

int daf__turning_stage(daf__edit *e, const daf__property *p, const daf__property *other,
                       const daf_set_options *o, bool there, uint64_t band_bytes, bool *staged,
                       daf_error *err) {
    turning *t = calloc(1, sizeof *t);
    if (!t)
        return daf__no_memory(err);
    t->edit = e;
    int rc = daf__property_open(e->d, &t->opened, p, err);
    t->from = (daf__content){.kind = DAF__MATRIX,
                             .type = t->opened.descriptor.type,
                             .rows = t->opened.extent.rows,
                             .columns = t->opened.extent.columns,
                             .sparse = true,
                             .index_type = t->opened.descriptor.index_type};
    if (rc == 0 && t->opened.descriptor.sparse)
        rc = daf__count_stored(&t->from.nnz, &t->opened.descriptor.parts[DAF__INDICES],
                               t->opened.files[DAF__INDICES], t->from.rows, t->from.columns, err);
    *staged = rc == 0 && suits(t, o, band_bytes);
    if (*staged)
        rc = turn(t, other, o, there, band_bytes, err);
    end(t);
    return rc;
}
