/* The tree is built beside its place: groups, then each array's chunk before its node, the root last; then it is renamed.
 * Payloads are hard-linked where they are what Zarr wants byte for byte. */
#include "zarr_export.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aside.h"
#include "base/bytes.h"
#include "error.h"
#include "store_dir.h"
#include "utf8.h"

static int put(daf__zarr_exporter *x, const char *key, daf__out *out, int rc, daf_error *err) {
    daf__change c = {0};
    if (rc)
        daf__out_discard(out);
    else
        rc = daf__change_put(&c, key, out, err);
    if (rc == 0)
        rc = x->to->ops->apply(x->to, &c, err);
    daf__change_free(&c);
    return rc;
}

static int put_bytes(daf__zarr_exporter *x, const char *key, const daf__buf *bytes, daf_error *err) {
    daf__out *out;
    int rc = daf__buf_check(bytes, err);
    if (rc == 0)
        rc = x->to->ops->create(x->to, &out, err);
    if (rc)
        return rc;
    return put(x, key, out, daf__out_append(out, bytes->data, bytes->size, err), err);
}

static int make_folder(daf__zarr_exporter *x, const char *path, daf_error *err) {
    daf__dir_store *to = (daf__dir_store *)x->to;
    int failed = daf__dir_make_folder(to, path);
    return failed ? daf__dir_fail(to, failed, "make folder", path, err) : 0;
}

/* The node's file, also listed in the root. */
static int put_node(daf__zarr_exporter *x, const char *path, const daf__buf *node, daf_error *err) {
    daf__zarr_path key = daf__zarr_path_with(path, DAF__ZARR_NODE);
    int rc = put_bytes(x, key.text, node, err);
    return rc ? rc : daf__zarr_index_add(&x->index, path, node, err);
}

static int put_group(daf__zarr_exporter *x, const char *path, daf_error *err) {
    daf__buf node = {0};
    daf__zarr_spell_group(&node);
    int rc = make_folder(x, path, err);
    if (rc == 0)
        rc = put_node(x, path, &node, err);
    daf__buf_free(&node);
    return rc;
}

static int put_chunk(daf__zarr_exporter *x, const char *path, unsigned n_dimensions, daf__out *chunk,
                     daf_error *err) {
    daf__zarr_path folder = daf__zarr_path_with(path, "c");
    int rc = make_folder(x, path, err);
    if (rc == 0)
        rc = make_folder(x, folder.text, err);
    if (rc == 0 && n_dimensions == 2) {
        folder = daf__zarr_path_with(path, "c/0");
        rc = make_folder(x, folder.text, err);
    }
    daf__zarr_path key = daf__zarr_path_with(folder.text, "0");
    return put(x, key.text, chunk, rc, err);
}

int daf__zarr_put_array(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a, daf__out *chunk,
                        int rc, daf_error *err) {
    daf__buf node = {0};
    if (rc == 0)
        rc = daf__zarr_spell_array(&node, a, err);
    if (rc)
        daf__out_discard(chunk);
    else
        rc = put_chunk(x, path, a->n_dimensions, chunk, err);
    if (rc == 0)
        rc = put_node(x, path, &node, err);
    daf__buf_free(&node);
    return rc;
}

static int check_name(const char *name, daf_error *err) {
    size_t bytes = strlen(name);
    if (daf__utf8_prefix(name, bytes) != bytes)
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "name \"%.100s\" is no UTF-8 and cannot be in a Zarr tree",
                         name);
    return daf__zarr_check_name(name, err);
}

/* ---- scalars */

static size_t scalar_bytes(uint8_t to[DAF__MAX_TYPE_BYTES], const daf_scalar *s) {
    size_t width = daf_type_bytes(s->type);
    uint64_t bits = s->value.u;
    float single = (float)s->value.f;
    uint32_t single_bits;
    if (s->type == DAF_BOOL)
        bits = s->value.b;
    if (s->type == DAF_FLOAT64)
        memcpy(&bits, &s->value.f, sizeof bits);
    if (s->type == DAF_FLOAT32) {
        memcpy(&single_bits, &single, sizeof single_bits);
        bits = single_bits;
    }
    uint8_t all[8];
    bytes_store64(all, bits);
    memcpy(to, all, width);
    return width;
}

static int put_scalar_value(daf__zarr_exporter *x, const char *path, const daf_scalar *s, daf_error *err) {
    daf__zarr_array a = {.type = s->type, .n_dimensions = 1, .rows = 1, .columns = 1, .row_name = "scalar"};
    daf__out *out;
    int rc = x->to->ops->create(x->to, &out, err);
    if (rc)
        return rc;
    if (s->type == DAF_STRING) {
        rc = daf__zarr_append_text_count(out, 1, path, err);
        if (rc == 0)
            rc = daf__zarr_append_text(out, s->value.s.text, s->value.s.bytes, path, err);
    } else {
        uint8_t bytes[DAF__MAX_TYPE_BYTES];
        size_t n = scalar_bytes(bytes, s);
        rc = daf__out_append(out, bytes, n, err);
    }
    x->report.written_bytes += out->size;
    return daf__zarr_put_array(x, path, &a, out, rc, err);
}

static int put_scalar(daf__zarr_exporter *x, const char *name, daf_error *err) {
    daf__zarr_path path = daf__zarr_path_with("scalars", name);
    daf_scalar s;
    int rc = check_name(name, err);
    if (rc == 0)
        rc = daf_get_scalar(x->from, &s, name, err);
    if (rc)
        return rc;
    rc = put_scalar_value(x, path.text, &s, err);
    daf_scalar_clear(&s);
    return rc;
}

/* ---- axes */

static int put_axis(daf__zarr_exporter *x, const char *axis, daf_error *err) {
    daf__zarr_path path = daf__zarr_path_with("axes", axis);
    daf_array *entries;
    int rc = check_name(axis, err);
    if (rc == 0)
        rc = daf_get_axis(x->from, &entries, axis, err);
    if (rc)
        return rc;
    daf__zarr_array a = {.type = DAF_STRING,
                         .n_dimensions = 1,
                         .rows = daf_array_count(entries),
                         .columns = 1,
                         .row_name = axis};
    rc = daf__zarr_put_texts(x, path.text, &a, entries->texts.next, err);
    daf_array_free(entries);
    return rc;
}

/* ---- vectors and matrices */

static int count_elements(const daf__opened *o, daf__part part, uint64_t *ret, daf_error *err) {
    const daf__component *c = &o->descriptor.parts[part];
    uint64_t nnz = 0;
    const daf__component *indices = &o->descriptor.parts[DAF__INDICES];
    int rc = 0;
    if (indices->counted)
        nnz = indices->n_elements;
    else
        rc = daf__component_count(o->files[DAF__INDICES], indices->type, &nnz, err);
    *ret = part == DAF__POINTERS ? o->extent.columns + 1 : nnz;
    if (rc || !c->counted || c->n_elements == *ret)
        return rc;
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0,
                     "%s: the descriptor says %" PRIu64 " elements, but there must be %" PRIu64,
                     o->files[part]->where, c->n_elements, *ret);
}

static int put_component(daf__zarr_exporter *x, const char *path, const daf__property *p, daf__opened *o,
                         daf__part part, daf_error *err) {
    const daf__component *c = &o->descriptor.parts[part];
    daf__zarr_array a = {.type = c->type,
                         .n_dimensions = 1,
                         .columns = 1,
                         .row_name = part == DAF__POINTERS ? "pointer" : "stored"};
    if (!c->present)
        return 0;
    int rc = count_elements(o, part, &a.rows, err);
    if (rc)
        return rc;
    daf__key key = daf__part_key(p, &o->descriptor, part);
    daf__zarr_path node = daf__zarr_path_with(path, daf__part_name(p->kind, true, part));
    return daf__zarr_put_part(x, node.text, &a, o->files[part], key.text, c, err);
}

static int put_sparse(daf__zarr_exporter *x, const char *path, const daf__property *p, daf__opened *o,
                      daf_error *err) {
    int rc = put_group(x, path, err);
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        rc = put_component(x, path, p, o, (daf__part)i, err);
    return rc;
}

static daf__zarr_array dense_array(const daf__property *p, const daf__extent *extent, daf_type type) {
    return (daf__zarr_array){.type = type,
                             .n_dimensions = p->kind == DAF__MATRIX ? 2 : 1,
                             .rows = extent->rows,
                             .columns = extent->columns,
                             .row_name = p->axis,
                             .column_name = p->columns};
}

/* Groups of texts are nothing that others can read: stored dense, with a word of what it was. */
static int put_sparse_texts(daf__zarr_exporter *x, const char *path, const daf__property *p, daf_error *err) {
    daf__loaded l = {0};
    daf__content dense = {0};
    int rc = daf__property_load(x->from, &l, p, DAF__COPY, NULL, err);
    if (rc)
        return rc;
    rc = daf__content_to_dense(&dense, &l.content, err);
    if (rc == 0) {
        daf__extent extent = {p->kind, dense.rows, dense.columns};
        daf__zarr_array a = dense_array(p, &extent, DAF_STRING);
        a.was_sparse = true;
        a.sparse_index = l.content.index_type;
        rc = daf__zarr_put_texts(x, path, &a, dense.data[DAF__VALUES], err);
    }
    daf__content_free(&dense);
    daf__loaded_free(&l);
    return rc;
}

static int put_opened(daf__zarr_exporter *x, const char *path, const daf__property *p, daf__opened *o,
                      daf_error *err) {
    if (o->descriptor.sparse)
        return put_sparse(x, path, p, o, err);
    daf__zarr_array a = dense_array(p, &o->extent, o->descriptor.type);
    daf__key key = daf__part_key(p, &o->descriptor, DAF__VALUES);
    return daf__zarr_put_part(x, path, &a, o->files[DAF__VALUES], key.text, &o->descriptor.parts[DAF__VALUES],
                              err);
}

static int put_property(daf__zarr_exporter *x, const daf__property *p, daf_error *err) {
    daf__key key = daf__property_key(p);
    daf__opened o;
    int rc = check_name(p->name, err);
    if (rc == 0)
        rc = daf__property_open(x->from, &o, p, err);
    if (rc)
        return rc;
    rc = o.descriptor.sparse && o.descriptor.type == DAF_STRING ? put_sparse_texts(x, key.text, p, err)
                                                                : put_opened(x, key.text, p, &o, err);
    daf__opened_close(&o);
    return rc;
}

/* ---- the tree */

static int put_all_scalars(daf__zarr_exporter *x, daf_error *err) {
    daf_names names;
    int rc = daf_list_scalars(x->from, &names, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < names.n && rc == 0; i++)
        rc = put_scalar(x, names.names[i], err);
    daf_names_clear(&names);
    return rc;
}

static int put_vectors(daf__zarr_exporter *x, const char *axis, daf_error *err) {
    daf__zarr_path group = daf__zarr_path_with("vectors", axis);
    daf_names names = {0};
    int rc = put_group(x, group.text, err);
    if (rc == 0)
        rc = daf_list_vectors(x->from, &names, axis, err);
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        daf__property p = daf__vector_property(axis, names.names[i]);
        rc = put_property(x, &p, err);
    }
    daf_names_clear(&names);
    return rc;
}

static int put_matrices(daf__zarr_exporter *x, const char *rows, const char *columns, daf_error *err) {
    daf__zarr_path outer = daf__zarr_path_with("matrices", rows);
    daf__zarr_path group = daf__zarr_path_with(outer.text, columns);
    daf_names names = {0};
    int rc = put_group(x, group.text, err);
    if (rc == 0)
        rc = daf_list_matrices(x->from, &names, rows, columns, err);
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        daf__property p = daf__matrix_property(rows, columns, names.names[i]);
        rc = put_property(x, &p, err);
    }
    daf_names_clear(&names);
    return rc;
}

static int put_on_axis(daf__zarr_exporter *x, const daf_names *axes, const char *axis, daf_error *err) {
    daf__zarr_path group = daf__zarr_path_with("matrices", axis);
    int rc = put_axis(x, axis, err);
    if (rc == 0)
        rc = put_vectors(x, axis, err);
    if (rc == 0)
        rc = put_group(x, group.text, err);
    for (size_t i = 0; i < axes->n && rc == 0; i++)
        rc = put_matrices(x, axis, axes->names[i], err);
    return rc;
}

static int put_root(daf__zarr_exporter *x, daf_error *err) {
    daf__buf root = {0};
    int rc = daf__zarr_spell_root(&root, &x->index, err);
    if (rc == 0)
        rc = put_bytes(x, DAF__ZARR_NODE, &root, err);
    daf__buf_free(&root);
    return rc;
}

static int put_tree(daf__zarr_exporter *x, daf_error *err) {
    static const char *const groups[] = {"scalars", "axes", "vectors", "matrices"};
    daf_names axes;
    int rc = daf_list_axes(x->from, &axes, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0] && rc == 0; i++)
        rc = put_group(x, groups[i], err);
    if (rc == 0)
        rc = put_all_scalars(x, err);
    for (size_t i = 0; i < axes.n && rc == 0; i++)
        rc = put_on_axis(x, &axes, axes.names[i], err);
    daf_names_clear(&axes);
    if (rc == 0)
        rc = put_root(x, err);
    return rc ? rc : x->to->ops->settle(x->to, err);
}

/* ---- the call */

void daf_zarr_options_init(daf_zarr_options *options) {
    *options = (daf_zarr_options){.strict = false};
}

static int check_target(const char *to, daf_error *err) {
    static const char suffix[] = ".daf.zarr";
    size_t n = strlen(to), k = sizeof suffix - 1;
    if (daf__is_url(to))
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: nothing can be written to a URL", to);
    if (strstr(to, ".zarr.zip"))
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "can't convert into a zip-backed ZarrDaf: %s", to);
    if (n <= k || strcmp(to + n - k, suffix) != 0)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "ZarrDaf directory path must end with .daf.zarr: %s", to);
    return 0;
}

static int build(daf__zarr_exporter *x, daf__aside *aside, const daf_zarr_options *options, daf_error *err) {
    daf__dir_settings settings = {.io = aside->io,
                                  .sync = options->sync,
                                  .file_mode = options->file_mode,
                                  .directory_mode = options->directory_mode};
    daf__open_mode mode = {.writable = true, .create = true};
    int rc = daf__dir_store_open(&x->to, aside->dirfd, aside->temporary, mode, &settings, err);
    if (rc)
        return rc;
    x->to->batching = true; /* synced at the end */
    rc = put_tree(x, err);
    if (rc == 0)
        rc = daf__aside_finish(aside, options->sync, err);
    x->to->ops->free(x->to);
    return rc;
}

int daf_zarr_export(daf_zarr_report *ret, const char *from, const char *to, const daf_zarr_options *options,
                    daf_error *err) {
    daf_zarr_options defaults;
    if (!from || !to)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "a path is NULL");
    if (!options) {
        daf_zarr_options_init(&defaults);
        options = &defaults;
    }
    daf_options opening = {.executor = options->executor, .io = options->io};
    daf__zarr_exporter x = {.strict = options->strict};
    daf__aside aside;
    int rc = check_target(to, err);
    if (rc == 0)
        rc = daf_open(&x.from, from, "r", &opening, err);
    if (rc)
        return rc;
    if (x.from->store->ops == &daf__dir_ops)
        rc = daf__dir_refuse_interrupted(x.from->store, err);
    if (rc == 0)
        rc = daf__aside_begin(&aside, to, options->io ? options->io : &daf__system_io, err);
    if (rc == 0) {
        rc = build(&x, &aside, options, err);
        daf__aside_end(&aside);
    }
    daf__zarr_index_free(&x.index);
    daf_free(x.from);
    if (rc == 0 && ret)
        *ret = x.report;
    return rc;
}
