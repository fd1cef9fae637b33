/* Many ranges of one property. A sparse one is held whole, as it is stored. Of packed data the decoded chunks are kept in
 * a cache; where the ranges go on in steps of one size, the chunks of the next ones are decoded by the executor between the calls:
 *
 *   read: take what was decoded ahead -> chunks from the cache, the others decoded -> begin to decode ahead
 */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

#include "chunk_cache.h"
#include "error.h"
#include "shard_batch.h"

enum { MAX_AHEAD = 64 /* ranges */ };

struct daf_reader {
    const daf *d;
    daf__opened opened;
    const daf__component *values;
    daf_array *lines; /* flat String values, once they are read */
    bool is_held;     /* all is in memory: */
    daf__loaded held;
    /* packed */
    bool has_shard;
    daf__shard shard;
    daf__cache *cache;
    uint64_t cache_bytes;
    daf__batch ahead;
    daf_range last;
    unsigned n_steps; /* how often in a row the ranges went on by the same step */
    int64_t row_step, column_step;
};

/* ---- opening */

static int open_shard(daf_reader *r, daf_error *err) {
    const daf__extent *x = &r->opened.extent;
    daf__file *f = r->opened.files[DAF__VALUES];
    daf__grid grid;
    int rc = daf__grid_make(&grid, x->kind, x->rows, x->columns, &r->values->packing, f->where, err);
    if (rc == 0)
        rc = daf__shard_open(&r->shard, f, &grid, r->values->type, &r->values->packing,
                             r->d->has_executor ? &r->d->executor : NULL, err);
    r->has_shard = rc == 0;
    if (rc == 0)
        rc = daf__cache_new(&r->cache, r->cache_bytes, err);
    return rc;
}

static int hold_sparse(daf *d, daf_reader *r, const daf__property *p, daf_error *err) {
    daf__opened_close(&r->opened);
    int rc = daf__property_load(d, &r->held, p, DAF__COPY, NULL, err);
    r->is_held = rc == 0;
    if (rc == 0)
        r->opened.extent = (daf__extent){p->kind, r->held.content.rows, r->held.content.columns};
    return rc;
}

int daf__reader_open(daf *d, daf_reader **ret, const daf__property *p, daf_error *err) {
    daf_reader *r = calloc(1, sizeof *r);
    if (!r)
        return daf__no_memory(err);
    r->d = d;
    r->cache_bytes = d->settings.cache_bytes;
    int rc = daf__property_open(d, &r->opened, p, err);
    r->values = &r->opened.descriptor.parts[DAF__VALUES];
    if (rc == 0 && r->opened.descriptor.sparse)
        rc = hold_sparse(d, r, p, err);
    else if (rc == 0 && r->values->packed)
        rc = open_shard(r, err);
    if (rc)
        daf_reader_free(r);
    else
        *ret = r;
    return rc;
}

int daf_open_vector_reader(daf *d, daf_reader **ret, const char *axis, const char *name, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return daf__reader_open(d, ret, &p, err);
}

int daf_open_matrix_reader(daf *d, daf_reader **ret, const char *rows, const char *columns, const char *name,
                           daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return daf__reader_open(d, ret, &p, err);
}

void daf_reader_free(daf_reader *r) {
    if (!r)
        return;
    daf__batch_free(&r->ahead);
    if (r->has_shard)
        daf__shard_close(&r->shard);
    daf__cache_free(r->cache);
    daf_array_free(r->lines);
    if (r->is_held)
        daf__loaded_free(&r->held);
    daf__opened_close(&r->opened);
    free(r);
}

daf_type daf_reader_type(const daf_reader *r) {
    return r->is_held ? r->held.content.type : r->values->type;
}

uint64_t daf_reader_rows(const daf_reader *r) {
    return r->opened.extent.rows;
}

uint64_t daf_reader_columns(const daf_reader *r) {
    return r->opened.extent.columns;
}

bool daf__reader_is_held(const daf_reader *r) {
    return r->is_held;
}

uint64_t daf__reader_chunk_rows(const daf_reader *r) {
    return r->has_shard ? r->shard.grid.chunk_rows : 0;
}

/* ---- packed */

/* What one call gathers: values, or texts. */
typedef struct gathering {
    daf_reader *reader;
    daf__span box;
    uint8_t *values;
    daf__text_places places;
} gathering;

static int gather(gathering *g, uint64_t k, const uint8_t *raw, size_t bytes, daf_error *err) {
    const daf__shard *s = &g->reader->shard;
    if (s->type == DAF_STRING)
        return daf__text_places_take(&g->places, s, k, raw, bytes, err);
    if (raw)
        daf__chunk_scatter(&s->grid, s->type, k, raw, &g->box, g->values);
    return 0;
}

static int take_decoded(void *context, uint64_t k, const uint8_t *raw, size_t bytes, daf_error *err) {
    gathering *g = context;
    daf__cache_put(g->reader->cache, k, raw, bytes);
    return gather(g, k, raw, bytes, err);
}

static int take_ahead(void *context, uint64_t k, const uint8_t *raw, size_t bytes, daf_error *err) {
    daf_reader *r = context;
    (void)err;
    daf__cache_put(r->cache, k, raw, bytes);
    return 0;
}

/* Gathers what is in the cache; what is not, stays in the list. */
static int gather_cached(gathering *g, daf__chunk_list *list, daf_error *err) {
    uint64_t n = 0;
    int rc = 0;
    for (uint64_t i = 0; i < list->n && rc == 0; i++) {
        daf__cached c;
        if (daf__cache_get(g->reader->cache, list->chunks[i], &c))
            rc = gather(g, list->chunks[i], c.raw, c.bytes, err);
        else
            list->chunks[n++] = list->chunks[i];
    }
    list->n = n;
    return rc;
}

static uint64_t likely_chunk_bytes(const daf__shard *s) {
    return s->type == DAF_STRING ? s->grid.chunk_elements * DAF__STRING_SIZE_ESTIMATE
                                 : daf__shard_chunk_bytes(s);
}

static int gather_packed(gathering *g, daf_error *err) {
    daf_reader *r = g->reader;
    daf__target target = {.box = g->box, .values = g->values};
    daf__sink sink = {.context = g, .take = take_decoded};
    daf__chunk_list list;
    int rc = daf__chunks_of(&r->shard.grid, &g->box, &list, err);
    if (rc)
        return rc;
    rc = gather_cached(g, &list, err);
    /* What is larger than the cache would only sweep it. */
    bool sweeps = list.n > r->cache_bytes / likely_chunk_bytes(&r->shard);
    if (rc == 0 && list.n)
        rc = sweeps && r->shard.type != DAF_STRING ? daf__decode_chunks(&r->shard, &list, &target, NULL, err)
                                                   : daf__decode_chunks(&r->shard, &list, NULL, &sink, err);
    free(list.chunks);
    return rc;
}

static int read_packed(daf_reader *r, daf_array *a, const daf_range *range, daf_error *err) {
    gathering g = {.reader = r,
                   .box = {range->first_row, range->first_column, range->n_rows, range->n_columns}};
    if (a->type == DAF_STRING) {
        int rc = daf__text_places_init(&g.places, &g.box, err);
        if (rc == 0)
            rc = gather_packed(&g, err);
        if (rc == 0)
            rc = daf__text_places_finish(&g.places, &a->texts, err);
        daf__text_places_free(&g.places);
        return rc;
    }
    uint64_t n = daf_array_count(a);
    a->owned = calloc(n ? (size_t)n : 1, daf_type_bytes(a->type));
    a->values = g.values = a->owned;
    return a->owned ? gather_packed(&g, err) : daf__no_memory(err);
}

/* ---- ahead */

/* Notes where the ranges go. */
static void follow(daf_reader *r, const daf_range *range) {
    int64_t row_step = (int64_t)(range->first_row - r->last.first_row);
    int64_t column_step = (int64_t)(range->first_column - r->last.first_column);
    bool same = range->n_rows == r->last.n_rows && range->n_columns == r->last.n_columns;
    bool moved = row_step != 0 || column_step != 0;
    if (same && moved && row_step == r->row_step && column_step == r->column_step)
        r->n_steps++;
    else
        r->n_steps = same && moved;
    r->row_step = row_step;
    r->column_step = column_step;
    r->last = *range;
}

/* The chunks of the next range that the cache lacks, appended. Returns whether there is such a range. */
static bool add_next(daf_reader *r, daf_range *next, daf__chunk_list *list, uint64_t most) {
    daf__chunk_list more;
    next->first_row += (uint64_t)r->row_step;
    next->first_column += (uint64_t)r->column_step;
    if (daf__range_check(next, r->opened.extent.rows, r->opened.extent.columns, NULL) != 0)
        return false;
    daf__span box = {next->first_row, next->first_column, next->n_rows, next->n_columns};
    if (daf__chunks_of(&r->shard.grid, &box, &more, NULL) != 0)
        return false;
    for (uint64_t i = 0; i < more.n && list->n < most; i++) {
        uint64_t k = more.chunks[i];
        bool listed = list->n && list->chunks[list->n - 1] == k;
        if (!listed && !daf__cache_has(r->cache, k))
            list->chunks[list->n++] = k;
    }
    free(more.chunks);
    return list->n < most;
}

/* Begins to decode what comes next, in other threads; whatever fails, fails again when it is asked for. */
static void decode_ahead(daf_reader *r) {
    const daf_executor *x = r->shard.executor;
    if (!x || x->n_threads < 2 || r->n_steps < 2)
        return;
    /* As much as one batch takes, and half of the cache at most. */
    uint64_t bytes = r->cache_bytes / 2 < ((uint64_t)1 << 20) * x->n_threads
                         ? r->cache_bytes / 2
                         : ((uint64_t)1 << 20) * x->n_threads;
    uint64_t most = bytes / likely_chunk_bytes(&r->shard), at = 0;
    daf__chunk_list list = {.chunks = most ? malloc((size_t)most * sizeof *list.chunks) : NULL};
    if (!list.chunks)
        return;
    daf_range next = r->last;
    for (unsigned i = 0; i < MAX_AHEAD && add_next(r, &next, &list, most); i++)
        ;
    bool ready = list.n && (r->ahead.jobs || daf__batch_init(&r->ahead, &r->shard, NULL) == 0);
    if (ready && daf__batch_fill(&r->ahead, &list, &at, NULL, NULL) == 0)
        daf__batch_start(&r->ahead, false);
    free(list.chunks);
}

static void take_what_is_ahead(daf_reader *r) {
    daf__sink sink = {.context = r, .take = take_ahead};
    if (r->ahead.jobs)
        (void)daf__batch_finish(&r->ahead, &sink, NULL);
}

/* ---- reading */

static int read_chunks(daf_reader *r, daf_array **ret, const daf_range *range, daf_error *err) {
    daf_array *a = daf__array_new(r->values->type, range->n_rows, range->n_columns);
    if (!a)
        return daf__no_memory(err);
    take_what_is_ahead(r);
    int rc = read_packed(r, a, range, err);
    if (rc) {
        daf_array_free(a);
        return rc;
    }
    follow(r, range);
    decode_ahead(r);
    *ret = a;
    return 0;
}

static int read_lines(daf_reader *r, daf_array **ret, const daf_range *range, daf_error *err) {
    int rc = 0;
    if (!r->lines)
        rc = daf__component_load(&r->lines, r->d, r->opened.files[DAF__VALUES], &r->opened.extent, r->values,
                                 false, err);
    return rc ? rc : daf_array_slice(ret, r->lines, range, err);
}

int daf_reader_read(daf_reader *r, daf_array **ret, const daf_range *range, daf_error *err) {
    const daf__extent *x = &r->opened.extent;
    int rc = daf__range_check(range, x->rows, x->columns, err);
    if (rc)
        return rc;
    if (r->is_held)
        return daf__content_part_to_array(ret, &r->held.content, range, err);
    if (r->has_shard)
        return read_chunks(r, ret, range, err);
    if (r->values->type == DAF_STRING)
        return read_lines(r, ret, range, err);
    return daf__component_load_range(ret, r->d, r->opened.files[DAF__VALUES], x, r->values, range, err);
}
