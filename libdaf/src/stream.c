/* Writing a dense property piece by piece. Elements are kept until they fill as many chunks as are encoded at once; the
 * last chunk of a column ends with it.
 *
 *   begun --put--> ... all elements are there --finish--> in place
 *     |                                          |
 *     +--------------- discard ------------------+--> nothing
 */
#include "stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

struct daf_stream {
    daf *d;
    char *names[3];
    daf__property property; /* of these names */
    daf_set_options options;
    bool repack;
    daf__descriptor descriptor;
    daf__extent extent;
    uint64_t n_elements, done; /* done: those that were put */
    daf__out *out;
    /* packed */
    daf__shard_writer *writer;
    daf__grid grid;
    uint64_t next_chunk;
    daf__buf pending; /* numeric: values; String: texts with their NULs */
    uint64_t n_pending;
    daf_error failed; /* code: what a put has failed with */
};

/* ---- beginning */

static int keep_names(daf_stream *s, const daf__property *p, daf_error *err) {
    const char *const names[3] = {p->axis, p->columns, p->name};
    for (unsigned i = 0; i < 3; i++)
        if (names[i] && !(s->names[i] = strdup(names[i])))
            return daf__no_memory(err);
    s->property =
        (daf__property){.kind = p->kind, .axis = s->names[0], .columns = s->names[1], .name = s->names[2]};
    return 0;
}

static int check_options(const daf_set_options *o, daf_type type, daf_error *err) {
    if ((unsigned)type >= DAF_N_TYPES)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no element type", (int)type);
    if (o->both_layouts)
        return daf__fail(err, DAF_ERR_ARG, 0, 0,
                         "a stream writes one layout; the other is made of it afterwards");
    if (o->form != DAF_FORM_AS_GIVEN && o->form != DAF_FORM_DENSE)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "a stream writes dense properties only");
    return 0;
}

static int measure(daf_stream *s, daf_type type, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    daf__extent *x = &s->extent;
    uint64_t bytes;
    x->kind = s->property.kind;
    int rc = daf__lengths(s->d, &s->property, &x->rows, &x->columns, err);
    if (rc)
        return rc;
    if (__builtin_mul_overflow(x->rows, x->columns, &s->n_elements) ||
        __builtin_mul_overflow(s->n_elements, (uint64_t)DAF__STRING_SIZE_ESTIMATE, &bytes))
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: %" PRIu64 " x %" PRIu64 " elements are too many",
                         daf__property_text(text, &s->property), x->rows, x->columns);
    daf__content shape = {.kind = x->kind, .type = type, .rows = x->rows, .columns = x->columns};
    return daf__property_plan(&s->descriptor, s->d, &shape, &s->options, err);
}

static int open_out(daf_stream *s, daf_error *err) {
    const daf__component *c = &s->descriptor.parts[DAF__VALUES];
    daf__key key = daf__property_key(&s->property);
    daf__shard_spec spec;
    int rc = s->d->store->ops->create(s->d->store, &s->out, err);
    if (rc || !c->packed)
        return rc;
    rc = daf__shard_spec_of(&spec, s->d, &s->extent, c, key.text, err);
    s->grid = spec.grid;
    return rc ? rc : daf__shard_writer_new(&s->writer, s->out, &spec, err);
}

int daf__stream_new(daf *d, daf_stream **ret, const daf__property *p, daf_type type,
                    const daf_set_options *options, bool repack, daf_error *err) {
    bool there;
    int rc = daf__check_writing(d, p, options, err);
    if (rc)
        return rc;
    daf_stream *s = calloc(1, sizeof *s);
    if (!s)
        return daf__no_memory(err);
    s->d = d;
    s->repack = repack;
    daf_set_options_init(&s->options);
    if (options)
        s->options = *options;
    rc = check_options(&s->options, type, err);
    if (rc == 0)
        rc = keep_names(s, p, err);
    if (rc == 0)
        rc = measure(s, type, err);
    if (rc == 0)
        rc = daf__property_is_free(d, &there, p, repack || s->options.overwrite, err);
    if (rc == 0)
        rc = open_out(s, err);
    if (rc)
        daf_stream_discard(s);
    else
        *ret = s;
    return rc;
}

int daf_stream_vector(daf *d, daf_stream **ret, const char *axis, const char *name, daf_type type,
                      const daf_set_options *options, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return daf__stream_new(d, ret, &p, type, options, false, err);
}

int daf_stream_matrix(daf *d, daf_stream **ret, const char *rows, const char *columns, const char *name,
                      daf_type type, const daf_set_options *options, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return daf__stream_new(d, ret, &p, type, options, false, err);
}

/* ---- chunks */

/* The number of the first element of chunk k; of the number of chunks: of elements. */
static uint64_t start_of(const daf_stream *s, uint64_t k) {
    if (k == s->grid.n_chunks)
        return s->n_elements;
    daf__span span = daf__grid_span(&s->grid, k);
    return span.column * s->grid.rows + span.row;
}

/* The chunks that are encoded next, and their elements. */
static uint64_t next_batch(const daf_stream *s, uint64_t *n_elements) {
    uint64_t n = daf__shard_writer_batch(s->writer), left = s->grid.n_chunks - s->next_chunk;
    if (n > left)
        n = left;
    *n_elements = start_of(s, s->next_chunk + n) - start_of(s, s->next_chunk);
    return n;
}

static int encode(daf_stream *s, uint64_t n_chunks, const void *values, daf_error *err) {
    int rc = daf__shard_writer_put(s->writer, n_chunks, values, err);
    s->next_chunk += n_chunks;
    return rc;
}

static int encode_pending(daf_stream *s, uint64_t n_chunks, daf_error *err) {
    int rc;
    if (s->descriptor.type != DAF_STRING) {
        rc = encode(s, n_chunks, s->pending.data, err);
    } else {
        const char **texts = malloc((size_t)(s->n_pending + 1) * sizeof *texts);
        const char *next = (const char *)s->pending.data;
        if (!texts)
            return daf__no_memory(err);
        for (uint64_t i = 0; i < s->n_pending; i++, next += strlen(next) + 1)
            texts[i] = next;
        rc = encode(s, n_chunks, texts, err);
        free(texts);
    }
    s->pending.size = 0;
    s->n_pending = 0;
    return rc;
}

static int keep(daf_stream *s, const void *values, uint64_t n, daf_error *err) {
    const char *const *texts = values;
    if (s->descriptor.type != DAF_STRING)
        daf__buf_append(&s->pending, values, (size_t)n * daf_type_bytes(s->descriptor.type));
    else
        for (uint64_t i = 0; i < n; i++)
            daf__buf_append(&s->pending, texts[i], strlen(texts[i]) + 1);
    s->n_pending += n;
    return daf__buf_check(&s->pending, err);
}

static int put_packed(daf_stream *s, const void *values, uint64_t n, daf_error *err) {
    const uint8_t *from = values;
    size_t width = s->descriptor.type == DAF_STRING ? sizeof(char *) : daf_type_bytes(s->descriptor.type);
    int rc = 0;
    while (n > 0 && rc == 0) {
        uint64_t wanted, chunks = next_batch(s, &wanted), taken = wanted - s->n_pending;
        if (taken > n)
            taken = n;
        if (taken == wanted) {
            rc = encode(s, chunks, from, err); /* as they lie */
        } else {
            rc = keep(s, from, taken, err);
            if (rc == 0 && s->n_pending == wanted)
                rc = encode_pending(s, chunks, err);
        }
        from += (size_t)taken * width;
        n -= taken;
    }
    return rc;
}

/* ---- elements */

static int check_put(const daf_stream *s, const void *values, uint64_t n, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    if (n > s->n_elements - s->done)
        return daf__fail(
            err, DAF_ERR_ARG, 0, 0, "%s: %" PRIu64 " values more than the %" PRIu64 " that it has",
            daf__property_text(text, &s->property), n - (s->n_elements - s->done), s->n_elements);
    if (n > 0 && !values)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: the values are NULL",
                         daf__property_text(text, &s->property));
    return s->descriptor.type == DAF_STRING ? daf__texts_check(values, n, false, err) : 0;
}

static int put(daf_stream *s, const void *values, uint64_t n, daf_error *err) {
    if (s->writer)
        return put_packed(s, values, n, err);
    if (s->descriptor.type == DAF_STRING)
        return daf__texts_write(s->out, values, n, err);
    return daf__flat_append(s->out, s->descriptor.type, values, n, err);
}

int daf_stream_put(daf_stream *s, const void *values, uint64_t n, daf_error *err) {
    if (s->failed.code)
        return daf__pass(err, &s->failed);
    int rc = check_put(s, values, n, err);
    if (rc)
        return rc;
    rc = put(s, values, n, &s->failed);
    if (rc)
        return daf__pass(err, &s->failed);
    s->done += n;
    return 0;
}

/* ---- ending */

static int check_whole(daf_stream *s, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    uint64_t rows, columns;
    if (s->failed.code)
        return daf__pass(err, &s->failed);
    if (s->done < s->n_elements)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: only %" PRIu64 " of %" PRIu64 " values were put",
                         daf__property_text(text, &s->property), s->done, s->n_elements);
    int rc = daf__lengths(s->d, &s->property, &rows, &columns, err);
    if (rc == 0 && (rows != s->extent.rows || columns != s->extent.columns))
        rc = daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: an axis has changed its length since the stream began",
                       daf__property_text(text, &s->property));
    return rc;
}

static int stage(daf_stream *s, daf__edit *e, daf_error *err) {
    bool there;
    const daf__content shape = {.kind = s->extent.kind, .type = s->descriptor.type};
    daf__out *const outs[DAF__N_PARTS] = {[DAF__VALUES] = s->out};
    int rc = daf__property_is_free(s->d, &there, &s->property, s->repack || s->options.overwrite, err);
    if (rc)
        return rc;
    s->out = NULL;
    rc = daf__property_stage_filled(e, &s->property, &s->descriptor, outs, there, err);
    return rc || s->repack ? rc : daf__property_stage_other(e, &s->property, &shape, &s->options, err);
}

int daf__stream_end(daf_stream *s, uint64_t *bytes, daf_error *err) {
    daf__edit e;
    int rc = check_whole(s, err);
    if (rc == 0 && s->writer)
        rc = daf__shard_writer_finish(s->writer, err);
    if (rc == 0)
        rc = daf__edit_begin(&e, s->d, err);
    if (rc == 0) {
        rc = stage(s, &e, err);
        *bytes = daf__edit_listed_bytes(&e);
        rc = daf__edit_end(&e, rc, err);
    }
    daf_stream_discard(s);
    return rc;
}

int daf_stream_finish(daf_stream *s, daf_error *err) {
    uint64_t bytes;
    return daf__stream_end(s, &bytes, err);
}

void daf_stream_discard(daf_stream *s) {
    if (!s)
        return;
    daf__shard_writer_free(s->writer);
    daf__out_discard(s->out);
    daf__buf_free(&s->pending);
    for (unsigned i = 0; i < 3; i++)
        free(s->names[i]);
    free(s);
}
