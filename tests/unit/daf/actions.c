#include "actions.h"

#include <string.h>

enum { N = 2000 };
static int32_t old_values[N], new_values[N];
static double reals[N];
static const char *texts[N];

static void fill(void) {
    for (int i = 0; i < N; i++) {
        old_values[i] = i * 7 % 1000;
        new_values[i] = i * 11 % 1000;
        reals[i] = i / 8.0;
        texts[i] = i % 3 ? "photon" : "";
    }
}

void test_make_base(const char *path) {
    daf *d;
    daf_scalar s = daf_scalar_string("old");
    daf_set_options packed;
    daf_set_options_init(&packed);
    packed.packing = DAF_PACK_LARGE;
    packed.target_chunk_kb = 1;
    fill();
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, N, e));
    OK(daf_add_axis_integers(d, "b", 0, 1, 2, e));
    OK(daf_set_scalar(d, "s", &s, NULL, e));
    OK(daf_set_vector(d, "a", "p", DAF_INT32, old_values, N, &packed, e));
    OK(daf_set_vector(d, "a", "v", DAF_INT32, old_values, N, NULL, e));
    OK(daf_set_matrix(d, "a", "b", "m", DAF_STRING, (const char * [2 * N]){[0 ... 2 * N - 1] = "x"}, 2 * N,
                      NULL, e));
    daf_set_options sparse = packed;
    sparse.form = DAF_FORM_SPARSE;
    OK(daf_set_matrix(d, "a", "b", "sparse", DAF_INT32, (int32_t[2 * N]){[3] = 1, [N] = 2}, 2 * N, &sparse,
                      e));
    OK(daf_close(d, e));
}

static daf_set_options overwrite_with(daf_packing packing) {
    daf_set_options o;
    daf_set_options_init(&o);
    o.overwrite = true;
    o.packing = packing;
    o.target_chunk_kb = 1;
    return o;
}

static int set_scalar(daf *d, daf_error *e) {
    daf_scalar s = daf_scalar_string("new");
    return daf_set_scalar(d, "fresh", &s, NULL, e);
}

static int overwrite_scalar(daf *d, daf_error *e) {
    daf_scalar s = daf_scalar_float64(2.5);
    daf_set_options o = overwrite_with(DAF_PACK_NEVER);
    return daf_set_scalar(d, "s", &s, &o, e);
}

static int add_axis(daf *d, daf_error *e) {
    return daf_add_axis_integers(d, "fresh", 0, 1, 5, e);
}

static int set_flat(daf *d, daf_error *e) {
    return daf_set_vector(d, "a", "fresh", DAF_INT32, new_values, N, NULL, e);
}

static int set_packed(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_LARGE);
    return daf_set_vector(d, "a", "fresh", DAF_FLOAT64, reals, N, &o, e);
}

static int set_packed_texts(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_LARGE);
    o.codec = DAF_CODEC_GZIP;
    return daf_set_vector(d, "a", "fresh", DAF_STRING, texts, N, &o, e);
}

static int overwrite_same_form(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_NEVER);
    return daf_set_vector(d, "a", "v", DAF_INT32, new_values, N, &o, e);
}

static int overwrite_other_type(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_NEVER);
    return daf_set_vector(d, "a", "v", DAF_FLOAT64, reals, N, &o, e);
}

static int overwrite_by_packed(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_LARGE);
    return daf_set_vector(d, "a", "v", DAF_INT32, new_values, N, &o, e);
}

static int overwrite_packed_by_flat(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_NEVER);
    return daf_set_vector(d, "a", "p", DAF_FLOAT64, reals, N, &o, e);
}

static int overwrite_other_layout(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_NEVER);
    return daf_set_matrix(d, "b", "a", "m", DAF_INT32, (int32_t[2 * N]){5}, 2 * N, &o, e);
}

static int overwrite_by_sparse(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_LARGE);
    o.form = DAF_FORM_SPARSE;
    return daf_set_vector(d, "a", "v", DAF_FLOAT64, reals, N, &o, e);
}

static int overwrite_sparse(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_NEVER);
    o.form = DAF_FORM_SPARSE;
    return daf_set_matrix(d, "a", "b", "sparse", DAF_INT32, (int32_t[2 * N]){[5] = 5, [N + 7] = 1}, 2 * N, &o,
                          e);
}

static int overwrite_both_layouts(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_NEVER);
    o.both_layouts = true;
    return daf_set_matrix(d, "a", "b", "m", DAF_INT32, (int32_t[2 * N]){[5] = 5}, 2 * N, &o, e);
}

static int relayout(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_LARGE);
    return daf_relayout_matrix(d, "a", "b", "sparse", &o, e);
}

static int stream(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_LARGE);
    daf_stream *s;
    int rc = daf_stream_vector(d, &s, "a", "v", DAF_FLOAT64, &o, e);
    if (rc)
        return rc;
    rc = daf_stream_put(s, reals, N, e);
    if (rc == 0)
        return daf_stream_finish(s, e);
    daf_stream_discard(s);
    return rc;
}

static int delete_vector(daf *d, daf_error *e) {
    return daf_delete_vector(d, "a", "p", e);
}

static int delete_axis(daf *d, daf_error *e) {
    return daf_delete_axis(d, "a", e);
}

static int reorder_axis(daf *d, daf_error *e) {
    static uint64_t order[N];
    for (uint64_t i = 0; i < N; i++)
        order[i] = (i * 7 + 3) % N;
    return daf_reorder_axis(d, "a", order, N, e);
}

static int set_in_a_batch(daf *d, daf_error *e) {
    int rc = daf_batch_begin(d, e);
    if (rc == 0)
        rc = overwrite_other_type(d, e);
    if (rc == 0)
        rc = daf_batch_commit(d, e);
    return rc;
}

static int stream_packed(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_LARGE);
    daf_stream *s;
    int rc = daf_stream_vector(d, &s, "a", "p", DAF_STRING, &o, e);
    if (rc)
        return rc;
    rc = daf_stream_put(s, texts, 300, e);
    if (rc == 0)
        rc = daf_stream_put(s, texts + 300, N - 300, e);
    if (rc == 0)
        return daf_stream_finish(s, e);
    daf_stream_discard(s);
    return rc;
}

static int repack(daf *d, daf_error *e) {
    daf_set_options o = overwrite_with(DAF_PACK_NEVER);
    return daf_repack_vector(d, NULL, "a", "p", &o, e);
}

static int read_parts(daf *d, daf_error *e) {
    daf_reader *r;
    daf_array *a;
    int rc = daf_open_vector_reader(d, &r, "a", "p", e);
    for (uint64_t at = 0; at < N && rc == 0; at += 500) {
        rc = daf_reader_read(r, &a, &(daf_range){.first_row = at, .n_rows = 500, .n_columns = 1}, e);
        if (rc == 0)
            daf_array_free(a);
        else
            daf_reader_free(r);
    }
    if (rc == 0)
        daf_reader_free(r);
    return rc;
}

static int read_all(daf *d, daf_error *e) {
    daf_array *a[6] = {NULL};
    daf_sparse *sparse = NULL;
    const daf_range some = {.first_row = 3, .n_rows = 9, .n_columns = 2};
    daf_scalar s = {.type = DAF_BOOL};
    daf_info info;
    daf_names names = {0};
    int rc = daf_get_scalar(d, &s, "s", e);
    if (rc == 0)
        rc = daf_get_axis(d, &a[0], "a", e);
    if (rc == 0)
        rc = daf_get_vector(d, &a[1], "a", "v", e);
    if (rc == 0)
        rc = daf_get_vector(d, &a[2], "a", "p", e);
    if (rc == 0)
        rc = daf_get_matrix(d, &a[3], "a", "b", "m", e);
    if (rc == 0)
        rc = daf_get_matrix(d, &a[4], "a", "b", "sparse", e);
    if (rc == 0)
        rc = daf_get_matrix_range(d, &a[5], "a", "b", "sparse", &some, e);
    if (rc == 0)
        rc = daf_get_sparse_matrix(d, &sparse, "a", "b", "sparse", e);
    if (rc == 0)
        rc = daf_vector_info(d, &info, "a", "p", e);
    if (rc == 0)
        rc = daf_list_vectors(d, &names, "a", e);
    for (int i = 0; i < 6; i++)
        daf_array_free(a[i]);
    daf_sparse_free(sparse);
    daf_scalar_clear(&s);
    daf_names_clear(&names);
    return rc;
}

static bool only_p(void *context, const daf_item *item) {
    (void)context;
    return item->kind == DAF_KIND_VECTOR && strcmp(item->name, "p") == 0;
}

/* In place of a packed vector comes one of another type. */
static int copy_over(daf *d, daf_error *e) {
    daf *from;
    const daf_copy_options o = {.overwrite = true, .wanted = only_p};
    int rc = daf_open_memory(&from, NULL, e);
    if (rc)
        return rc;
    rc = daf_add_axis_integers(from, "a", 0, 1, N, e);
    if (rc == 0)
        rc = daf_set_vector(from, "a", "p", DAF_FLOAT64, reals, N, NULL, e);
    if (rc == 0)
        rc = daf_copy(d, from, &o, e);
    daf_free(from);
    return rc;
}

const test_action test_actions[] = {
    {.name = "set scalar", .act = set_scalar},
    {.name = "overwrite scalar", .act = overwrite_scalar},
    {.name = "add axis", .act = add_axis},
    {.name = "set flat", .act = set_flat},
    {.name = "set packed", .act = set_packed},
    {.name = "set packed texts", .act = set_packed_texts},
    {.name = "overwrite, same form", .act = overwrite_same_form},
    {.name = "overwrite, other type", .act = overwrite_other_type},
    {.name = "overwrite by packed", .act = overwrite_by_packed},
    {.name = "overwrite packed by flat", .act = overwrite_packed_by_flat},
    {.name = "overwrite other layout", .act = overwrite_other_layout},
    {.name = "overwrite by sparse", .act = overwrite_by_sparse},
    {.name = "overwrite sparse", .act = overwrite_sparse},
    {.name = "overwrite both layouts", .act = overwrite_both_layouts},
    {.name = "relayout", .act = relayout},
    {.name = "stream", .act = stream},
    {.name = "delete vector", .act = delete_vector},
    {.name = "delete axis", .act = delete_axis},
    {.name = "reorder axis", .act = reorder_axis},
    {.name = "overwrite in a batch", .act = set_in_a_batch, .in_batch = true},
    {.name = "copy over", .act = copy_over, .in_batch = true},
    {.name = "stream packed", .act = stream_packed},
    {.name = "repack", .act = repack},
    {.name = "read parts", .act = read_parts, .reads_only = true},
    {.name = "read all", .act = read_all, .reads_only = true},
};
const unsigned test_n_actions = sizeof test_actions / sizeof test_actions[0];
