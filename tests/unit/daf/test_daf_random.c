/* Random models: a thousand operations on a repository and on a plain model of it, with every kind, type, size, chunk
 * size and codec, on every store; both are compared whole each time the repository is reopened. A new store, or a new
 * form in which values are set, is one row of a table. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_AXES = 4, N_NAMES = 4, N_OPERATIONS = 1000, MAX_ELEMENTS = 10000, MAX_LENGTH = 1300 };
enum { SCALAR = N_AXES, VECTOR = N_AXES + 1 }; /* in the place of an axis */
enum { N_SLOTS = N_NAMES * (1 + N_AXES + N_AXES * N_AXES) };

static const uint64_t lengths[N_AXES] = {0, 1, 7, MAX_LENGTH};
static const char *const axes[N_AXES] = {"none", "one", "few", "many"};
static const char *const names[N_NAMES] = {"a", "a.b", "ünï", "x.data"};

typedef struct slot {
    unsigned rows, columns; /* axes; of a scalar: SCALAR; columns of a vector: VECTOR */
    const char *name;
    daf_type type;
    uint64_t n;
    void *values; /* NULL: it does not exist; String: const char *[] */
} slot;

typedef struct store_kind store_kind;

typedef struct model {
    const store_kind *kind;
    slot slots[N_SLOTS];
    bool has_axis[N_AXES];
    uint64_t *entries[N_AXES]; /* in their order */
    daf *d;
    const char *path;
    test_random r;
    bool in_batch;
} model;

/* ---- stores */

struct store_kind {
    const char *name;
    const char *suffix; /* of its path; NULL: in memory, never reopened */
    const char *mode;   /* that makes it */
    bool packed;
    bool append_only;
    bool keeps_metadata;
};

static const store_kind kinds[] = {
    {.name = "memory"},
    {.name = "directory", .suffix = ".daf", .mode = "w", .keeps_metadata = true},
    {.name = "packed-directory", .suffix = ".daf", .mode = "w", .packed = true, .keeps_metadata = true},
    {.name = "archive", .suffix = ".daf.zip", .mode = "w", .append_only = true},
    {.name = "packed-group",
     .suffix = ".dafs.zip#/a/group",
     .mode = "w+",
     .packed = true,
     .append_only = true},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static void open_store(model *m, const char *mode) {
    daf_options o;
    daf_options_init(&o);
    o.packed = m->kind->packed;
    if (m->kind->suffix)
        OK(daf_open(&m->d, m->path, mode, &o, e));
    else
        OK(daf_open_memory(&m->d, &o, e));
}

/* ---- the model */

static void init_slots(model *m) {
    unsigned k = 0;
    for (unsigned i = 0; i < N_NAMES; i++) {
        m->slots[k++] = (slot){.rows = SCALAR, .columns = SCALAR, .name = names[i], .n = 1};
        for (unsigned a = 0; a < N_AXES; a++) {
            m->slots[k++] = (slot){.rows = a, .columns = VECTOR, .name = names[i], .n = lengths[a]};
            for (unsigned b = 0; b < N_AXES; b++)
                m->slots[k++] =
                    (slot){.rows = a, .columns = b, .name = names[i], .n = lengths[a] * lengths[b]};
        }
    }
    assert_int_equal(k, N_SLOTS);
}

static bool is_scalar(const slot *s) {
    return s->rows == SCALAR;
}

static bool is_matrix(const slot *s) {
    return s->columns < N_AXES;
}

static bool lies_on(const slot *s, unsigned axis) {
    return s->rows == axis || s->columns == axis;
}

static bool has_axes(const model *m, const slot *s) {
    return (is_scalar(s) || m->has_axis[s->rows]) && (!is_matrix(s) || m->has_axis[s->columns]);
}

/* A slot whose axes exist. The largest matrix is left out: it would take most of the time. */
static slot *pick(model *m) {
    for (;;) {
        slot *s = &m->slots[test_below(&m->r, N_SLOTS)];
        if (s->n <= MAX_ELEMENTS && has_axes(m, s))
            return s;
    }
}

static void forget_slot(slot *s) {
    free(s->values);
    s->values = NULL;
}

/* The other layout of a matrix; NULL when there can be none. */
static slot *other_layout(model *m, const slot *s) {
    for (unsigned k = 0; k < N_SLOTS; k++) {
        slot *other = &m->slots[k];
        if (is_matrix(s) && other != s && other->rows == s->columns && other->columns == s->rows &&
            other->name == s->name)
            return other;
    }
    return NULL;
}

static void forget_other_layout(model *m, const slot *s) {
    slot *other = other_layout(m, s);
    if (other)
        forget_slot(other);
}

/* ---- values */

static size_t width_of(daf_type type) {
    return type == DAF_STRING ? sizeof(char *) : daf_type_bytes(type);
}

/* Value i of the result is value places[i] of the slot. */
static void *moved_values(const slot *s, const uint64_t *places) {
    size_t width = width_of(s->type);
    uint8_t *values = malloc((size_t)s->n * width + 1);
    for (uint64_t i = 0; i < s->n; i++)
        memcpy(values + i * width, (const uint8_t *)s->values + places[i] * width, width);
    return values;
}

static void transpose_into(slot *to, const slot *from) {
    uint64_t rows = lengths[from->rows], columns = lengths[from->columns];
    uint64_t *places = malloc((size_t)from->n * sizeof *places + 1);
    for (uint64_t j = 0; j < columns; j++)
        for (uint64_t i = 0; i < rows; i++)
            places[j + i * columns] = i + j * rows;
    forget_slot(to);
    to->type = from->type;
    to->values = moved_values(from, places);
    free(places);
}

static void *random_values(model *m, daf_type type, uint64_t n) {
    static const char *const words[] = {"", "photon", "tab\there", "ünïcødé 🧬",
                                        "a longer text than the others are"};
    static const unsigned limits[] = {1, 3, 200, 0}; /* 0: any bits */
    unsigned limit = limits[test_below(&m->r, 4)];
    size_t width = width_of(type);
    uint8_t *values = malloc((size_t)n * width + 1);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t word = limit ? test_below(&m->r, limit) : test_next(&m->r);
        if (type == DAF_STRING)
            ((const char **)(void *)values)[i] = words[word % 5];
        else if (type == DAF_BOOL)
            values[i] = word & 1;
        else
            memcpy(values + i * width, &word, width);
    }
    return values;
}

static void set_scalar(model *m, slot *s, daf_type type, const daf_set_options *o) {
    int64_t *v = malloc(sizeof *v);
    *v = (int64_t)test_below(&m->r, 120);
    daf_scalar scalar = daf_scalar_int64(*v);
    scalar.type = type;
    if (type == DAF_STRING)
        scalar = daf_scalar_string(names[*v % N_NAMES]);
    else if (type == DAF_FLOAT32 || type == DAF_FLOAT64)
        scalar.value.f = (double)*v / 4;
    else if (type == DAF_BOOL)
        scalar.value.b = *v & 1;
    OK(daf_set_scalar(m->d, s->name, &scalar, o, e));
    forget_slot(s);
    s->values = v;
    s->type = type;
}

static void check_scalar(model *m, const slot *s) {
    daf_scalar got;
    int64_t v = *(const int64_t *)s->values;
    OK(daf_get_scalar(m->d, &got, s->name, e));
    assert_int_equal(got.type, s->type);
    if (s->type == DAF_STRING)
        assert_string_equal(got.value.s.text, names[v % N_NAMES]);
    else if (s->type == DAF_FLOAT32 || s->type == DAF_FLOAT64)
        assert_true(got.value.f == (double)v / 4);
    else if (s->type == DAF_BOOL)
        assert_int_equal(got.value.b, v & 1);
    else
        assert_int_equal(got.value.i, v);
    daf_scalar_clear(&got);
}

/* A way of setting values. */
typedef void (*set_form)(model *m, const slot *s, daf_type type, const void *values,
                         const daf_set_options *o);

static void set_dense(model *m, const slot *s, daf_type type, const void *values, const daf_set_options *o) {
    if (is_matrix(s))
        OK(daf_set_matrix(m->d, axes[s->rows], axes[s->columns], s->name, type, values, s->n, o, e));
    else
        OK(daf_set_vector(m->d, axes[s->rows], s->name, type, values, s->n, o, e));
}

static void set_stream(model *m, const slot *s, daf_type type, const void *values, const daf_set_options *o) {
    daf_stream *stream;
    daf_set_options own = *o;
    own.form = DAF_FORM_AS_GIVEN;
    own.both_layouts = false;
    if (is_matrix(s))
        OK(daf_stream_matrix(m->d, &stream, axes[s->rows], axes[s->columns], s->name, type, &own, e));
    else
        OK(daf_stream_vector(m->d, &stream, axes[s->rows], s->name, type, &own, e));
    uint64_t n;
    for (uint64_t at = 0; at < s->n; at += n) {
        n = 1 + test_below(&m->r, s->n - at);
        OK(daf_stream_put(stream, (const uint8_t *)values + at * width_of(type), n, e));
    }
    OK(daf_stream_finish(stream, e));
}

static bool is_nothing(daf_type type, const void *value) {
    static const uint8_t zeros[8];
    if (type == DAF_STRING)
        return **(const char *const *)value == 0;
    return memcmp(value, zeros, width_of(type)) == 0;
}

/* Stores what is not zero, and some of the zeros. */
static void set_sparse(model *m, const slot *s, daf_type type, const void *values, const daf_set_options *o) {
    uint64_t rows = lengths[s->rows], columns = is_matrix(s) ? lengths[s->columns] : 1;
    size_t width = width_of(type);
    int64_t *colptr = malloc((size_t)(columns + 1) * sizeof *colptr);
    int64_t *indices = malloc((size_t)s->n * sizeof *indices + 1);
    uint8_t *stored = malloc((size_t)s->n * width + 1);
    uint64_t nnz = 0;
    for (uint64_t i = 0; i < s->n; i++) {
        const uint8_t *value = (const uint8_t *)values + i * width;
        if (i % rows == 0)
            colptr[i / rows] = (int64_t)nnz + 1;
        if (is_nothing(type, value) && test_below(&m->r, 20))
            continue;
        memcpy(stored + nnz * width, value, width);
        indices[nnz++] = (int64_t)(i % rows) + 1;
    }
    for (uint64_t j = rows ? columns : 0; j <= columns; j++)
        colptr[j] = (int64_t)nnz + 1;
    daf_csc csc = {.type = type,
                   .index_type = DAF_INT64,
                   .rows = rows,
                   .columns = columns,
                   .nnz = nnz,
                   .colptr = is_matrix(s) ? colptr : NULL,
                   .indices = indices,
                   .values = stored};
    if (is_matrix(s))
        OK(daf_set_sparse_matrix(m->d, axes[s->rows], axes[s->columns], s->name, &csc, o, e));
    else
        OK(daf_set_sparse_vector(m->d, axes[s->rows], s->name, &csc, o, e));
    free(colptr);
    free(indices);
    free(stored);
}

static const set_form forms[] = {set_dense, set_sparse, set_stream};
enum { N_FORMS = sizeof forms / sizeof forms[0] };

static void check_array(const slot *s, const daf_array *a) {
    assert_int_equal(daf_array_type(a), s->type);
    assert_int_equal(daf_array_count(a), s->n);
    if (s->type != DAF_STRING) {
        assert_memory_equal(daf_array_values(a), s->values, (size_t)s->n * daf_type_bytes(s->type));
        return;
    }
    for (uint64_t i = 0; i < s->n; i++)
        assert_string_equal(daf_array_strings(a)[i], ((const char **)s->values)[i]);
}

static void check_slot(model *m, const slot *s) {
    daf_array *a = NULL;
    bool there;
    if (is_scalar(s))
        OK(daf_has_scalar(m->d, &there, s->name, e));
    else if (is_matrix(s))
        OK(daf_has_matrix(m->d, &there, axes[s->rows], axes[s->columns], s->name, e));
    else
        OK(daf_has_vector(m->d, &there, axes[s->rows], s->name, e));
    assert_int_equal(there, s->values != NULL);
    if (!there)
        return;
    if (is_scalar(s)) {
        check_scalar(m, s);
        return;
    }
    if (is_matrix(s))
        OK(daf_get_matrix(m->d, &a, axes[s->rows], axes[s->columns], s->name, e));
    else
        OK(daf_get_vector(m->d, &a, axes[s->rows], s->name, e));
    check_array(s, a);
    daf_array_free(a);
}

/* ---- operations */

static daf_set_options random_options(model *m) {
    static const uint32_t chunks_kb[] = {1, 2, 8, 64};
    static const daf_packing packings[] = {DAF_PACK_AS_OPENED, DAF_PACK_NEVER, DAF_PACK_LARGE};
    static const daf_codec codecs[] = {DAF_CODEC_DEFAULT, DAF_CODEC_ZSTD, DAF_CODEC_GZIP,
                                       DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE, DAF_CODEC_BLOSC_LZ4_BITSHUFFLE};
    static const daf_form value_forms[] = {DAF_FORM_AS_GIVEN, DAF_FORM_DENSE, DAF_FORM_SPARSE,
                                           DAF_FORM_SMALLER};
    static const daf_type index_types[] = {DAF_BOOL, DAF_INT64, DAF_UINT32};
    daf_set_options o;
    daf_set_options_init(&o);
    o.overwrite = !m->kind->append_only;
    o.packing = packings[test_below(&m->r, 3)];
    o.codec = codecs[test_below(&m->r, 5)];
    o.level = 1 + (int)test_below(&m->r, o.codec == DAF_CODEC_ZSTD ? 12 : 9);
    o.target_chunk_kb = chunks_kb[test_below(&m->r, 4)];
    o.form = value_forms[test_below(&m->r, 4)];
    o.index_type = index_types[test_below(&m->r, 3)];
    return o;
}

static void random_set(model *m) {
    slot *s = pick(m);
    daf_set_options o = random_options(m);
    daf_type type = (daf_type)test_below(&m->r, DAF_N_TYPES);
    if (s->values && m->kind->append_only)
        return;
    if (is_scalar(s)) {
        set_scalar(m, s, type, &o);
        return;
    }
    void *values = random_values(m, type, s->n);
    set_form form = forms[test_below(&m->r, N_FORMS)];
    slot *other = other_layout(m, s);
    o.both_layouts = other && form != set_stream && (o.overwrite || !other->values) && test_below(&m->r, 2);
    form(m, s, type, values, &o);
    if (o.overwrite)
        forget_other_layout(m, s);
    forget_slot(s);
    s->type = type;
    s->values = values;
    if (o.both_layouts)
        transpose_into(other, s);
}

static void random_relayout(model *m) {
    slot *s = pick(m), *other = other_layout(m, s);
    daf_set_options o = random_options(m);
    if (!s->values || !other || (other->values && !o.overwrite))
        return;
    o.form = DAF_FORM_AS_GIVEN;
    OK(daf_relayout_matrix(m->d, axes[s->rows], axes[s->columns], s->name, &o, e));
    transpose_into(other, s);
}

static void random_repack(model *m) {
    slot *s = pick(m);
    daf_set_options o = random_options(m);
    daf_repacked repacked;
    if (!s->values || is_scalar(s) || m->kind->append_only)
        return;
    o.form = DAF_FORM_AS_GIVEN;
    if (is_matrix(s))
        OK(daf_repack_matrix(m->d, &repacked, axes[s->rows], axes[s->columns], s->name, &o, e));
    else
        OK(daf_repack_vector(m->d, &repacked, axes[s->rows], s->name, &o, e));
}

static void random_delete(model *m) {
    slot *s = pick(m);
    if (!s->values || m->kind->append_only)
        return;
    if (is_scalar(s))
        OK(daf_delete_scalar(m->d, s->name, e));
    else if (is_matrix(s))
        OK(daf_delete_matrix(m->d, axes[s->rows], axes[s->columns], s->name, e));
    else
        OK(daf_delete_vector(m->d, axes[s->rows], s->name, e));
    forget_other_layout(m, s);
    forget_slot(s);
}

static void random_check(model *m) {
    check_slot(m, pick(m));
}

static void random_axis(model *m) {
    unsigned a = (unsigned)test_below(&m->r, N_AXES);
    if (!m->has_axis[a]) {
        OK(daf_add_axis_integers(m->d, axes[a], 1, 1, lengths[a], e));
        m->has_axis[a] = true;
        for (uint64_t i = 0; i < lengths[a]; i++)
            m->entries[a][i] = i + 1;
    } else if (!m->kind->append_only && test_below(&m->r, 4) == 0) {
        OK(daf_delete_axis(m->d, axes[a], e));
        m->has_axis[a] = false;
        for (unsigned k = 0; k < N_SLOTS; k++)
            if (lies_on(&m->slots[k], a))
                forget_slot(&m->slots[k]);
    }
}

/* The values of a slot follow the order of an axis. */
static void reorder_slot(slot *s, unsigned axis, const uint64_t *order) {
    uint64_t rows = lengths[s->rows], columns = is_matrix(s) ? lengths[s->columns] : 1;
    uint64_t *places = malloc((size_t)s->n * sizeof *places + 1);
    for (uint64_t j = 0; j < columns; j++)
        for (uint64_t i = 0; i < rows; i++) {
            uint64_t old_i = s->rows == axis ? order[i] : i, old_j = s->columns == axis ? order[j] : j;
            places[i + j * rows] = old_i + old_j * rows;
        }
    void *values = moved_values(s, places);
    forget_slot(s);
    s->values = values;
    free(places);
}

static void random_reorder(model *m) {
    unsigned a = (unsigned)test_below(&m->r, N_AXES);
    uint64_t n = lengths[a], order[MAX_LENGTH], old[MAX_LENGTH];
    if (!m->has_axis[a] || m->kind->append_only)
        return;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t k = test_below(&m->r, i + 1);
        if (k < i)
            order[i] = order[k];
        order[k] = i;
    }
    OK(daf_reorder_axis(m->d, axes[a], order, n, e));
    memcpy(old, m->entries[a], (size_t)n * sizeof *old);
    for (uint64_t i = 0; i < n; i++)
        m->entries[a][i] = old[order[i]];
    for (unsigned k = 0; k < N_SLOTS; k++)
        if (m->slots[k].values && lies_on(&m->slots[k], a))
            reorder_slot(&m->slots[k], a, order);
}

static void toggle_batch(model *m) {
    if (m->in_batch)
        OK(daf_batch_commit(m->d, e));
    else
        OK(daf_batch_begin(m->d, e));
    m->in_batch = !m->in_batch;
}

/* metadata.json lists exactly what there is. */
static void check_index(model *m) {
    char file[600];
    snprintf(file, sizeof file, "%s/metadata.json", m->path);
    json_t *index = test_load_json(file);
    size_t n = 0;
    for (unsigned a = 0; a < N_AXES; a++)
        n += m->has_axis[a];
    for (unsigned k = 0; k < N_SLOTS; k++)
        n += m->slots[k].values != NULL;
    assert_int_equal(json_object_size(index), n);
    json_decref(index);
}

static void check_axis(model *m, unsigned a) {
    daf_array *entries;
    bool there;
    OK(daf_has_axis(m->d, &there, axes[a], e));
    assert_int_equal(there, m->has_axis[a]);
    if (!there)
        return;
    OK(daf_get_axis(m->d, &entries, axes[a], e));
    assert_int_equal(daf_array_count(entries), lengths[a]);
    for (uint64_t i = 0; i < lengths[a]; i++)
        assert_int_equal(atoi(daf_array_strings(entries)[i]), m->entries[a][i]);
    daf_array_free(entries);
}

static void check_all(model *m) {
    for (unsigned k = 0; k < N_SLOTS; k++)
        check_slot(m, &m->slots[k]);
    for (unsigned a = 0; a < N_AXES; a++)
        check_axis(m, a);
}

static void reopen(model *m) {
    if (m->kind->suffix) {
        OK(daf_close(m->d, e));
        m->in_batch = false;
        if (m->kind->keeps_metadata)
            check_index(m);
        open_store(m, "r");
    }
    check_all(m);
    if (m->kind->suffix) {
        OK(daf_close(m->d, e));
        open_store(m, test_below(&m->r, 2) ? "r+" : "w+");
    }
}

static const struct {
    unsigned weight; /* of 100 */
    void (*act)(model *m);
} operations[] = {
    {40, random_set},   {13, random_delete}, {15, random_check}, {5, random_axis}, {8, random_relayout},
    {6, random_repack}, {3, random_reorder}, {8, toggle_batch},  {2, reopen},
};

static void random_operation(model *m) {
    uint64_t dice = test_below(&m->r, 100);
    unsigned i = 0;
    while (dice >= operations[i].weight)
        dice -= operations[i++].weight;
    operations[i].act(m);
}

static void run(void **state, const store_kind *kind, uint64_t seed) {
    char name[64];
    model m = {.kind = kind, .r = {seed}};
    init_slots(&m);
    for (unsigned a = 0; a < N_AXES; a++)
        m.entries[a] = calloc(MAX_LENGTH, sizeof *m.entries[a]);
    snprintf(name, sizeof name, "%s-%u%s", kind->name, (unsigned)seed, kind->suffix ? kind->suffix : "");
    m.path = test_path(state, name);
    open_store(&m, kind->mode);
    for (unsigned i = 0; i < N_OPERATIONS; i++)
        random_operation(&m);
    reopen(&m);
    OK(daf_close(m.d, e));
    for (unsigned a = 0; a < N_AXES; a++)
        free(m.entries[a]);
    for (unsigned k = 0; k < N_SLOTS; k++)
        forget_slot(&m.slots[k]);
}

static void a_model_and_each_store_agree(void **state) {
    for (unsigned i = 0; i < N_KINDS; i++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            run(state, &kinds[i], seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_model_and_each_store_agree, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
