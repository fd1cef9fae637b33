/* A band is some rows of the matrix: read, transposed, and so some whole columns of the result, which are encoded or
 * appended. Bands are as many rows as make some bytes, rounded to what is read at once: of a packed matrix the rows of a
 * chunk, so that none is decoded twice. */
#include "bands.h"

#include <stdlib.h>

#include "error.h"
#include "reader.h"
#include "transpose.h"

#define BAND_BYTES ((uint64_t)16 << 20)
#define MAX_BAND_BYTES ((uint64_t)128 << 20) /* for the sake of whole chunks */
enum { PIECE_BYTES = 4096 /* of one column: shorter ones are slow to read */ };

typedef struct band_writer {
    const daf *d;
    const daf__bands *from;
    size_t width;
    uint64_t rows_at_once;
    void *transposed; /* of one band */
    daf__out *out;
    daf__shard_writer *shard; /* NULL: flat */
    uint64_t chunks_per_column;
} band_writer;

bool daf__bands_suit(const daf_set_options *o, daf_type type) {
    daf_form form = o ? o->form : DAF_FORM_AS_GIVEN;
    return type != DAF_STRING && (form == DAF_FORM_AS_GIVEN || form == DAF_FORM_DENSE);
}

static uint64_t rows_at_once(const daf__bands *from, size_t width) {
    uint64_t row_bytes = from->columns * width,
             chunk_rows = from->reader ? daf__reader_chunk_rows(from->reader) : 0;
    uint64_t unit = chunk_rows ? chunk_rows : PIECE_BYTES / width, n = BAND_BYTES / row_bytes;
    if (unit > from->rows)
        unit = from->rows;
    if (n >= unit)
        n = n / unit * unit;
    else if (unit <= MAX_BAND_BYTES / row_bytes)
        n = unit;
    return n < 1 ? 1 : n > from->rows ? from->rows : n;
}

static int put_columns(band_writer *w, uint64_t n, daf_error *err) {
    if (w->shard)
        return daf__shard_writer_put(w->shard, n * w->chunks_per_column, w->transposed, err);
    return daf__flat_append(w->out, w->from->type, w->transposed, n * w->from->columns, err);
}

static int write_band(band_writer *w, uint64_t row, uint64_t n, daf_error *err) {
    const daf__bands *from = w->from;
    const daf_executor *x = w->d->has_executor ? &w->d->executor : NULL;
    daf_range band = {.first_row = row, .n_rows = n, .n_columns = from->columns};
    daf_array *read = NULL;
    int rc = from->reader ? daf_reader_read(from->reader, &read, &band, err) : 0;
    if (rc)
        return rc;
    const uint8_t *values = read ? daf_array_values(read) : (const uint8_t *)from->values + row * w->width;
    daf__transpose(w->transposed, values, w->width, n, from->columns, read ? n : from->rows, x);
    daf_array_free(read);
    return put_columns(w, n, err);
}

static int write_bands(band_writer *w, daf_error *err) {
    const daf__bands *from = w->from;
    int rc = 0;
    for (uint64_t row = 0; row < from->rows && rc == 0; row += w->rows_at_once) {
        uint64_t left = from->rows - row;
        rc = write_band(w, row, left < w->rows_at_once ? left : w->rows_at_once, err);
    }
    return rc;
}

static int open_shard(band_writer *w, const daf__component *c, const char *where, daf_error *err) {
    daf__extent x = {DAF__MATRIX, w->from->columns, w->from->rows};
    daf__shard_spec spec;
    int rc = daf__shard_spec_of(&spec, w->d, &x, c, where, err);
    w->chunks_per_column = rc ? 0 : spec.grid.row_chunks;
    return rc ? rc : daf__shard_writer_new(&w->shard, w->out, &spec, err);
}

/* Writes all of it to the out, which is empty. */
static int write_transpose(const daf *d, daf__out *out, const daf__bands *from, const daf__component *c,
                           const char *where, daf_error *err) {
    band_writer w = {.d = d, .from = from, .width = daf_type_bytes(from->type), .out = out};
    if (from->rows == 0 || from->columns == 0)
        return 0;
    w.rows_at_once = rows_at_once(from, w.width);
    w.transposed = daf__transpose_alloc(w.width, w.rows_at_once, from->columns);
    int rc = w.transposed ? 0 : daf__no_memory(err);
    if (rc == 0 && c->packed)
        rc = open_shard(&w, c, where, err);
    if (rc == 0)
        rc = write_bands(&w, err);
    if (rc == 0 && w.shard)
        rc = daf__shard_writer_finish(w.shard, err);
    daf__shard_writer_free(w.shard);
    free(w.transposed);
    return rc;
}

int daf__bands_stage(daf__edit *e, const daf__property *other, const daf__bands *from,
                     const daf_set_options *o, bool there, daf_error *err) {
    const daf__content shape = {
        .kind = DAF__MATRIX, .type = from->type, .rows = from->columns, .columns = from->rows};
    daf__key key = daf__property_key(other);
    daf__out *outs[DAF__N_PARTS] = {NULL};
    daf__descriptor plan;
    int rc = daf__property_plan(&plan, e->d, &shape, o, err);
    if (rc == 0)
        rc = daf__edit_create(e, &outs[DAF__VALUES], err);
    if (rc)
        return rc;
    rc = write_transpose(e->d, outs[DAF__VALUES], from, &plan.parts[DAF__VALUES], key.text, err);
    if (rc == 0)
        return daf__property_stage_filled(e, other, &plan, outs, there, err);
    daf__out_discard(outs[DAF__VALUES]);
    return rc;
}
