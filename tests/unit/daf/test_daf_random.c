/* Random models: a thousand operations on a repository and on a model in memory, with every type, size, chunk size and
 * codec; both are compared whole each time the repository is reopened. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_AXES = 3, N_NAMES = 4, N_SLOTS = N_AXES * N_NAMES + N_AXES * N_AXES * N_NAMES, N_OPERATIONS = 1000 };

static const uint64_t lengths[N_AXES] = {0, 7, 1300};
static const char *const axes[N_AXES] = {"none", "few", "many"};
static const char *const names[N_NAMES] = {"a", "a.b", "ünï", "x.data"};

/* One property that may exist. */
typedef struct slot {
    unsigned rows, columns; /* axes; columns N_AXES: a vector */
    const char *name;
    daf_type type;
    uint64_t n;
    void *values; /* NULL: it does not exist; String: const char *[] */
} slot;

typedef struct model {
    slot slots[N_SLOTS];
    daf *d;
    const char *path;
    test_random r;
    bool in_batch;
} model;

static void init_slots(model *m) {
    unsigned k = 0;
    for (unsigned a = 0; a < N_AXES; a++)
        for (unsigned i = 0; i < N_NAMES; i++) {
            m->slots[k++] = (slot){.rows = a, .columns = N_AXES, .name = names[i], .n = lengths[a]};
            for (unsigned b = 0; b < N_AXES; b++)
                m->slots[k++] =
                    (slot){.rows = a, .columns = b, .name = names[i], .n = lengths[a] * lengths[b]};
        }
    assert_int_equal(k, N_SLOTS);
}

/* The largest matrix is left out: it would take most of the time. */
static slot *pick(model *m) {
    for (;;) {
        slot *s = &m->slots[test_below(&m->r, N_SLOTS)];
        if (s->n <= 10000)
            return s;
    }
}

static void *random_values(model *m, daf_type type, uint64_t n) {
    static const char *const words[] = {"", "photon", "tab\there", "ünïcødé 🧬",
                                        "a longer text than the others are"};
    static const unsigned limits[] = {1, 3, 200, 0}; /* 0: any bits */
    unsigned limit = limits[test_below(&m->r, 4)];
    size_t width = type == DAF_STRING ? sizeof(char *) : daf_type_bytes(type);
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
    if (s->columns == N_AXES)
        OK(daf_has_vector(m->d, &there, axes[s->rows], s->name, e));
    else
        OK(daf_has_matrix(m->d, &there, axes[s->rows], axes[s->columns], s->name, e));
    assert_int_equal(there, s->values != NULL);
    if (!there)
        return;
    if (s->columns == N_AXES)
        OK(daf_get_vector(m->d, &a, axes[s->rows], s->name, e));
    else
        OK(daf_get_matrix(m->d, &a, axes[s->rows], axes[s->columns], s->name, e));
    check_array(s, a);
    daf_array_free(a);
}

static void forget_slot(slot *s) {
    free(s->values);
    s->values = NULL;
}

/* The other layout of a matrix leaves with it. */
static void forget_other_layout(model *m, const slot *s) {
    if (s->columns == N_AXES || s->columns == s->rows)
        return;
    for (unsigned k = 0; k < N_SLOTS; k++)
        if (m->slots[k].rows == s->columns && m->slots[k].columns == s->rows && m->slots[k].name == s->name)
            forget_slot(&m->slots[k]);
}

static void random_set(model *m) {
    static const uint32_t chunks_kb[] = {1, 2, 8, 64};
    slot *s = pick(m);
    daf_set_options o;
    daf_set_options_init(&o);
    o.overwrite = true;
    o.packing = test_below(&m->r, 3) ? DAF_PACK_LARGE : DAF_PACK_NEVER;
    o.codec = test_below(&m->r, 2) ? DAF_CODEC_ZSTD : DAF_CODEC_GZIP;
    o.level = 1 + (int)test_below(&m->r, o.codec == DAF_CODEC_ZSTD ? 12 : 9);
    o.target_chunk_kb = chunks_kb[test_below(&m->r, 4)];
    daf_type type = (daf_type)test_below(&m->r, DAF_N_TYPES);
    void *values = random_values(m, type, s->n);
    if (s->columns == N_AXES)
        OK(daf_set_vector(m->d, axes[s->rows], s->name, type, values, s->n, &o, e));
    else
        OK(daf_set_matrix(m->d, axes[s->rows], axes[s->columns], s->name, type, values, s->n, &o, e));
    forget_other_layout(m, s);
    forget_slot(s);
    s->type = type;
    s->values = values;
}

static void random_delete(model *m) {
    slot *s = pick(m);
    if (!s->values)
        return;
    if (s->columns == N_AXES)
        OK(daf_delete_vector(m->d, axes[s->rows], s->name, e));
    else
        OK(daf_delete_matrix(m->d, axes[s->rows], axes[s->columns], s->name, e));
    forget_other_layout(m, s);
    forget_slot(s);
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
    size_t n = N_AXES;
    for (unsigned k = 0; k < N_SLOTS; k++)
        n += m->slots[k].values != NULL;
    assert_int_equal(json_object_size(index), n);
    json_decref(index);
}

static void reopen(model *m) {
    OK(daf_close(m->d, e));
    m->in_batch = false;
    check_index(m);
    OK(daf_open(&m->d, m->path, "r", NULL, e));
    for (unsigned k = 0; k < N_SLOTS; k++)
        check_slot(m, &m->slots[k]);
    OK(daf_close(m->d, e));
    OK(daf_open(&m->d, m->path, test_below(&m->r, 2) ? "r+" : "w+", NULL, e));
}

static void a_model_and_a_repository_agree(void **state) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        char name[32];
        model m = {.r = {seed}};
        init_slots(&m);
        snprintf(name, sizeof name, "m%u.daf", (unsigned)seed);
        m.path = test_path(state, name);
        OK(daf_open(&m.d, m.path, "w", NULL, e));
        for (unsigned a = 0; a < N_AXES; a++)
            OK(daf_add_axis_integers(m.d, axes[a], 1, 1, lengths[a], e));
        for (unsigned i = 0; i < N_OPERATIONS; i++) {
            uint64_t dice = test_below(&m.r, 100);
            if (dice < 50)
                random_set(&m);
            else if (dice < 70)
                random_delete(&m);
            else if (dice < 90)
                check_slot(&m, pick(&m));
            else if (dice < 98)
                toggle_batch(&m);
            else
                reopen(&m);
        }
        reopen(&m);
        OK(daf_close(m.d, e));
        for (unsigned k = 0; k < N_SLOTS; k++)
            forget_slot(&m.slots[k]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_model_and_a_repository_agree, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
