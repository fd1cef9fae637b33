/* The values of one property on joined axes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"

static int no_memory(const merging *m) {
    return cli_fail(m->self, "out of memory");
}

/* ---- the inputs */

/* Of one input. */
typedef struct source {
    size_t input;
    daf_info info;
    const uint64_t *row_places,
        *column_places;  /* NULL: the axis is not joined, each entry has its own place */
    uint64_t *column_of; /* [columns of the whole]: of the input; or NO_PLACE */
    uint8_t *has_row;    /* [rows of the whole] */
    daf_array *dense;
    daf_sparse *sparse;
} source;

typedef struct gathering {
    const merging *m;
    const char *rows_axis, *columns_axis, *name;
    source *sources;
    size_t n_sources;
    uint64_t rows, columns; /* of the whole */
    daf_type type;
    bool sparse, packed;
} gathering;

static uint64_t row_place(const source *s, uint64_t row) {
    return s->row_places ? s->row_places[row] : row;
}

static uint64_t column_place(const source *s, uint64_t column) {
    return s->column_places ? s->column_places[column] : column;
}

static int get_info(const gathering *g, source *s, daf_error *err) {
    daf *d = g->m->inputs[s->input];
    return g->columns_axis ? daf_matrix_info(d, &s->info, g->rows_axis, g->columns_axis, g->name, err)
                           : daf_vector_info(d, &s->info, g->rows_axis, g->name, err);
}

static int find_places(const gathering *g, source *s) {
    const joined_axis *rows = find_joined(g->m, g->rows_axis);
    const joined_axis *columns = g->columns_axis ? find_joined(g->m, g->columns_axis) : NULL;
    s->row_places = rows ? rows->places[s->input] : NULL;
    s->column_places = columns ? columns->places[s->input] : NULL;
    s->has_row = calloc((size_t)g->rows + 1, 1);
    s->column_of = malloc((size_t)(g->columns + 1) * sizeof *s->column_of);
    if (!s->has_row || !s->column_of)
        return no_memory(g->m);
    for (uint64_t c = 0; c < g->columns; c++)
        s->column_of[c] = NO_PLACE;
    for (uint64_t r = 0; r < s->info.rows; r++)
        s->has_row[row_place(s, r)] = 1;
    for (uint64_t c = 0; c < s->info.columns; c++)
        s->column_of[column_place(s, c)] = c;
    return CLI_OK;
}

/* The inputs that have the property, and the shape of the whole. */
static int find_sources(gathering *g) {
    daf_error err;
    g->sources = calloc(g->m->n_inputs, sizeof *g->sources);
    if (!g->sources)
        return no_memory(g->m);
    g->sparse = true;
    for (size_t i = 0; i < g->m->n_inputs; i++) {
        source s = {.input = i};
        int rc = get_info(g, &s, &err);
        if (rc == DAF_ERR_MISSING)
            continue;
        if (rc)
            return command_fail(g->m->self, &err);
        if (g->n_sources && s.info.type != g->type)
            return cli_fail(g->m->self, "\"%s\" on axis \"%s\" is %s in %s, but %s before", g->name,
                            g->rows_axis, daf_type_name(s.info.type), g->m->paths[i], daf_type_name(g->type));
        g->type = s.info.type;
        g->sparse = g->sparse && s.info.sparse;
        g->packed = g->packed || s.info.packed;
        g->sources[g->n_sources++] = s;
    }
    int rc = daf_axis_length(g->m->to, &g->rows, g->rows_axis, &err);
    g->columns = 1;
    if (rc == 0 && g->columns_axis)
        rc = daf_axis_length(g->m->to, &g->columns, g->columns_axis, &err);
    int code = rc ? command_fail(g->m->self, &err) : CLI_OK;
    for (size_t i = 0; i < g->n_sources && code == CLI_OK; i++)
        code = find_places(g, &g->sources[i]);
    return code;
}

/* Whether both have values for the same place. */
static bool overlap(const gathering *g, const source *a, const source *b) {
    bool rows = false, columns = false;
    for (uint64_t r = 0; r < g->rows && !rows; r++)
        rows = a->has_row[r] && b->has_row[r];
    for (uint64_t c = 0; c < g->columns && !columns; c++)
        columns = a->column_of[c] != NO_PLACE && b->column_of[c] != NO_PLACE;
    return rows && columns;
}

static int refuse_overlaps(const gathering *g) {
    for (size_t i = 0; i < g->n_sources && !g->m->overwrite; i++)
        for (size_t k = i + 1; k < g->n_sources; k++)
            if (overlap(g, &g->sources[i], &g->sources[k]))
                return cli_fail(
                    g->m->self,
                    "\"%s\" on axis \"%s\": %s and %s both have values for some entry; --overwrite takes "
                    "the last ones",
                    g->name, g->rows_axis, g->m->paths[g->sources[i].input],
                    g->m->paths[g->sources[k].input]);
    return CLI_OK;
}

static int load(const gathering *g, source *s) {
    daf *d = g->m->inputs[s->input];
    daf_error err;
    int rc;
    if (g->columns_axis)
        rc = g->sparse ? daf_get_sparse_matrix(d, &s->sparse, g->rows_axis, g->columns_axis, g->name, &err)
                       : daf_get_matrix(d, &s->dense, g->rows_axis, g->columns_axis, g->name, &err);
    else
        rc = g->sparse ? daf_get_sparse_vector(d, &s->sparse, g->rows_axis, g->name, &err)
                       : daf_get_vector(d, &s->dense, g->rows_axis, g->name, &err);
    return rc ? command_fail(g->m->self, &err) : CLI_OK;
}

static size_t width_of(daf_type type) {
    return type == DAF_STRING ? sizeof(char *) : daf_type_bytes(type);
}

static daf_set_options how(const gathering *g) {
    daf_set_options o;
    daf_set_options_init(&o);
    o.packing = g->packed ? DAF_PACK_LARGE : DAF_PACK_NEVER;
    return o;
}

/* ---- dense */

static void place_dense(const gathering *g, const source *s, uint8_t *to) {
    size_t width = width_of(g->type);
    const uint8_t *from =
        g->type == DAF_STRING ? (const void *)daf_array_strings(s->dense) : daf_array_values(s->dense);
    for (uint64_t c = 0; c < s->info.columns; c++)
        for (uint64_t r = 0; r < s->info.rows; r++)
            memcpy(to + (column_place(s, c) * g->rows + row_place(s, r)) * width,
                   from + (c * s->info.rows + r) * width, width);
}

static int set_dense(const gathering *g) {
    static const char *const empty = "";
    size_t width = width_of(g->type);
    uint64_t n;
    daf_error err;
    if (__builtin_mul_overflow(g->rows, g->columns, &n) || n > SIZE_MAX / width)
        return no_memory(g->m);
    uint8_t *values = calloc((size_t)n + 1, width);
    if (!values)
        return no_memory(g->m);
    for (uint64_t i = 0; i < n && g->type == DAF_STRING; i++)
        memcpy(values + i * width, &empty, width);
    for (size_t i = 0; i < g->n_sources; i++)
        place_dense(g, &g->sources[i], values);
    const daf_set_options o = how(g);
    int rc = g->columns_axis ? daf_set_matrix(g->m->to, g->rows_axis, g->columns_axis, g->name, g->type,
                                              values, n, &o, &err)
                             : daf_set_vector(g->m->to, g->rows_axis, g->name, g->type, values, n, &o, &err);
    free(values);
    return rc ? command_fail(g->m->self, &err) : CLI_OK;
}

/* ---- sparse */

typedef struct stored {
    uint64_t row;
    const source *source;
    uint64_t k; /* its number there */
} stored;

static int compare_rows(const void *a, const void *b) {
    uint64_t x = ((const stored *)a)->row, y = ((const stored *)b)->row;
    return (x > y) - (x < y);
}

/* The last input that has the place decides. */
static bool is_decided_later(const gathering *g, const source *s, uint64_t row, uint64_t column) {
    for (const source *later = s + 1; later < g->sources + g->n_sources; later++)
        if (later->has_row[row] && later->column_of[column] != NO_PLACE)
            return true;
    return false;
}

static uint64_t collect_column(const gathering *g, uint64_t column, stored *to) {
    uint64_t n = 0;
    for (size_t i = 0; i < g->n_sources; i++) {
        const source *s = &g->sources[i];
        uint64_t c = s->column_of[column];
        if (c == NO_PLACE)
            continue;
        for (uint64_t k = daf_sparse_start(s->sparse, c); k < daf_sparse_start(s->sparse, c + 1); k++) {
            uint64_t row = row_place(s, daf_sparse_index(s->sparse, k));
            if (!is_decided_later(g, s, row, column))
                to[n++] = (stored){row, s, k};
        }
    }
    qsort(to, (size_t)n, sizeof *to, compare_rows);
    return n;
}

static void take_value(uint8_t *to, const stored *v, daf_type type) {
    const daf_csc *csc = daf_sparse_csc(v->source->sparse);
    size_t width = width_of(type);
    if (csc->values)
        memcpy(to, (const uint8_t *)csc->values + v->k * width, width);
    else
        *to = 1; /* a Bool that is true */
}

typedef struct csc_parts {
    uint64_t *colptr, *indices;
    uint8_t *values;
    stored *column;
} csc_parts;

static uint64_t fill(const gathering *g, const csc_parts *p) {
    size_t width = width_of(g->type);
    uint64_t nnz = 0;
    p->colptr[0] = 1;
    for (uint64_t c = 0; c < g->columns; c++) {
        uint64_t n = collect_column(g, c, p->column);
        for (uint64_t i = 0; i < n; i++, nnz++) {
            p->indices[nnz] = p->column[i].row + 1;
            take_value(p->values + nnz * width, &p->column[i], g->type);
        }
        p->colptr[c + 1] = nnz + 1;
    }
    return nnz;
}

static int set_csc(const gathering *g, const csc_parts *p, uint64_t nnz) {
    const daf_csc csc = {.type = g->type,
                         .index_type = DAF_UINT64,
                         .rows = g->rows,
                         .columns = g->columns,
                         .nnz = nnz,
                         .colptr = g->columns_axis ? p->colptr : NULL,
                         .indices = p->indices,
                         .values = p->values};
    const daf_set_options o = how(g);
    daf_error err;
    int rc = g->columns_axis
                 ? daf_set_sparse_matrix(g->m->to, g->rows_axis, g->columns_axis, g->name, &csc, &o, &err)
                 : daf_set_sparse_vector(g->m->to, g->rows_axis, g->name, &csc, &o, &err);
    return rc ? command_fail(g->m->self, &err) : CLI_OK;
}

static int set_sparse(const gathering *g) {
    uint64_t most = 0, widest = 0;
    for (size_t i = 0; i < g->n_sources; i++) {
        most += g->sources[i].info.nnz;
        widest += g->sources[i].info.rows;
    }
    size_t room = (size_t)(widest < most ? widest : most) + 1;
    csc_parts p = {.colptr = malloc((size_t)(g->columns + 1) * sizeof *p.colptr),
                   .indices = malloc((size_t)(most + 1) * sizeof *p.indices),
                   .values = calloc((size_t)most + 1, width_of(g->type)),
                   .column = malloc(room * sizeof *p.column)};
    int code = p.colptr && p.indices && p.values && p.column ? set_csc(g, &p, fill(g, &p)) : no_memory(g->m);
    free(p.colptr);
    free(p.indices);
    free(p.values);
    free(p.column);
    return code;
}

int join_property(const merging *m, const char *rows, const char *columns, const char *name) {
    gathering g = {.m = m, .rows_axis = rows, .columns_axis = columns, .name = name};
    int code = find_sources(&g);
    if (code == CLI_OK)
        code = refuse_overlaps(&g);
    for (size_t i = 0; i < g.n_sources && code == CLI_OK; i++)
        code = load(&g, &g.sources[i]);
    if (code == CLI_OK)
        code = g.sparse ? set_sparse(&g) : set_dense(&g);
    for (size_t i = 0; i < g.n_sources; i++) {
        daf_array_free(g.sources[i].dense);
        daf_sparse_free(g.sources[i].sparse);
        free(g.sources[i].column_of);
        free(g.sources[i].has_row);
    }
    free(g.sources);
    return code;
}
