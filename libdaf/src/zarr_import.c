/* A Zarr tree becomes a directory: the tree is opened as a store that presents the directory's files (zarr_store), and
 * those of them that are chunks as they stand are hard-linked. It is built beside its place and renamed. */
#include <stdlib.h>
#include <string.h>

#include "aside.h"
#include "error.h"
#include "property.h"
#include "store_dir.h"
#include "zarr_store.h"

typedef struct importer {
    daf *from, *to;
    daf__store *tree; /* beneath `from` */
    bool strict;
    daf_zarr_report report;
} importer;

/* ---- payloads as they are */

/* An out that is a link of the chunk; *ret NULL: it cannot be linked. */
static int try_link(importer *x, daf__out **ret, const char *chunk, daf_error *err) {
    daf__stamp stamp;
    daf_error details;
    *ret = NULL;
    if (x->tree->ops != &daf__dir_ops)
        return x->strict ? daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                                     "%s/%s: lies in no directory and cannot be linked", x->tree->path, chunk)
                         : 0;
    int rc = x->tree->ops->stamp(x->tree, &stamp, chunk, err);
    if (rc)
        return rc;
    rc = daf__dir_link(x->to->store, ret, x->tree, chunk, &stamp, &details);
    if (rc && (rc != DAF_ERR_UNSUPPORTED || x->strict))
        return daf__pass(err, &details);
    if (rc == 0) {
        x->report.n_linked++;
        x->report.linked_bytes += stamp.bytes;
    }
    return 0;
}

/* Copies what the store presents: a chunk that cannot be linked, or what was made of some. */
static int copy_part(importer *x, daf__edit *e, const char *key, bool made, daf_error *err) {
    daf__file *f;
    daf__out *out;
    int rc = x->from->store->ops->open(x->from->store, &f, key, err);
    if (rc)
        return rc;
    rc = daf__edit_create(e, &out, err);
    if (rc == 0)
        rc = daf__edit_put(e, key, out, daf__file_copy(f, out, err), err);
    if (made) {
        x->report.written_bytes += f->size;
    } else {
        x->report.n_copied++;
        x->report.copied_bytes += f->size;
    }
    daf__file_close(f);
    return rc;
}

static int put_part(importer *x, daf__edit *e, const char *key, const daf__zarr_path *chunk, daf_error *err) {
    daf__out *out = NULL;
    int rc = chunk->text[0] ? try_link(x, &out, chunk->text, err) : 0;
    if (rc)
        return rc;
    return out ? daf__edit_put(e, key, out, 0, err) : copy_part(x, e, key, !chunk->text[0], err);
}

/* ---- vectors and matrices */

typedef struct payload_sources {
    daf__zarr_path chunks[DAF__N_PARTS];
    bool repack[DAF__N_PARTS]; /* it was in shards that are not ours */
    bool any_repack;
} payload_sources;

static int find_sources(importer *x, payload_sources *ret, const daf__property *p, const daf__descriptor *d,
                        daf_error *err) {
    int rc = 0;
    *ret = (payload_sources){.any_repack = false};
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++) {
        bool sharded = false;
        daf__key key = daf__part_key(p, d, (daf__part)i);
        if (!d->parts[i].present)
            continue;
        rc = daf__zarr_source(x->from->store, &ret->chunks[i], &sharded, key.text, err);
        ret->repack[i] = sharded && !ret->chunks[i].text[0];
        ret->any_repack |= ret->repack[i];
    }
    return rc;
}

static int put_as_presented(importer *x, daf__edit *e, const daf__property *p, const daf__descriptor *d,
                            const payload_sources *sources, daf_error *err) {
    daf__key base = daf__property_key(p), key = daf__key_with(&base, ".json");
    daf__buf json = {0};
    int rc = 0;
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++) {
        daf__key part = daf__part_key(p, d, (daf__part)i);
        if (d->parts[i].present)
            rc = put_part(x, e, part.text, &sources->chunks[i], err);
    }
    daf__descriptor_write(&json, p->kind, d);
    if (rc == 0)
        rc = daf__buf_check(&json, err);
    if (rc == 0)
        rc = daf__edit_put_bytes(e, key.text, json.data, json.size, err);
    daf__buf_free(&json);
    return rc;
}

/* Decodes all of it, and writes it packed where it was in shards. */
static int put_anew(importer *x, daf__edit *e, const daf__property *p, const payload_sources *sources,
                    daf_error *err) {
    static const daf_set_options packed = {.packing = DAF_PACK_LARGE};
    daf__loaded l = {0};
    int rc = daf__property_load(x->from, &l, p, DAF__COPY, NULL, err);
    if (rc)
        return rc;
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++) {
        const daf_array *a = l.parts[i];
        daf__component *c = &l.descriptor.parts[i];
        if (!sources->repack[i] || !a)
            continue;
        daf__extent extent = {l.descriptor.sparse ? DAF__VECTOR : p->kind, a->rows, a->columns};
        rc = daf__component_choose(c, &extent, &x->to->settings, &packed, err);
        x->report.written_bytes += daf_array_count(a) * daf_type_bytes(a->type);
    }
    if (rc == 0)
        rc = daf__property_stage(e, p, &l.content, &l.descriptor, false, err);
    daf__loaded_free(&l);
    return rc;
}

static int put_property(importer *x, const daf__property *p, daf_error *err) {
    daf__descriptor d;
    payload_sources sources;
    daf__edit e;
    int rc = daf__edit_begin(&e, x->to, err);
    if (rc == 0)
        rc = daf__check_writable(p, err);
    if (rc == 0)
        rc = daf__read_descriptor(x->from, &d, NULL, p, err);
    if (rc == 0)
        rc = find_sources(x, &sources, p, &d, err);
    if (rc == 0)
        rc = sources.any_repack ? put_anew(x, &e, p, &sources, err)
                                : put_as_presented(x, &e, p, &d, &sources, err);
    return daf__edit_end(&e, rc, err);
}

static int put_vectors(importer *x, const char *axis, daf_error *err) {
    daf_names names;
    int rc = daf_list_vectors(x->from, &names, axis, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        daf__property p = daf__vector_property(axis, names.names[i]);
        rc = put_property(x, &p, err);
    }
    daf_names_clear(&names);
    return rc;
}

static int put_matrices(importer *x, const char *rows, const char *columns, daf_error *err) {
    daf_names names;
    int rc = daf_list_matrices(x->from, &names, rows, columns, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        daf__property p = daf__matrix_property(rows, columns, names.names[i]);
        rc = put_property(x, &p, err);
    }
    daf_names_clear(&names);
    return rc;
}

/* ---- the rest */

static int put_scalars(importer *x, daf_error *err) {
    daf_names names;
    int rc = daf_list_scalars(x->from, &names, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        daf_scalar s;
        daf_error details;
        rc = daf_get_scalar(x->from, &s, names.names[i], err);
        if (rc)
            break;
        rc = daf_set_scalar(x->to, names.names[i], &s, NULL, &details);
        if (rc)
            daf__fail(err, rc, 0, 0, "%s/scalars/%s: %.900s", x->tree->path, names.names[i], details.text);
        daf_scalar_clear(&s);
    }
    daf_names_clear(&names);
    return rc;
}

static int put_axis(importer *x, const char *axis, daf_error *err) {
    daf_array *entries;
    daf_error details;
    int rc = daf_get_axis(x->from, &entries, axis, err);
    if (rc)
        return rc;
    rc = daf_add_axis(x->to, axis, daf_array_strings(entries), daf_array_count(entries), &details);
    if (rc)
        daf__fail(err, rc, 0, 0, "%s/axes/%s: %.900s", x->tree->path, axis, details.text);
    daf_array_free(entries);
    return rc;
}

static int put_all(importer *x, daf_error *err) {
    daf_names axes;
    int rc = daf_list_axes(x->from, &axes, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < axes.n && rc == 0; i++)
        rc = put_axis(x, axes.names[i], err);
    if (rc == 0)
        rc = put_scalars(x, err);
    for (size_t i = 0; i < axes.n && rc == 0; i++)
        rc = put_vectors(x, axes.names[i], err);
    for (size_t i = 0; i < axes.n && rc == 0; i++)
        for (size_t j = 0; j < axes.n && rc == 0; j++)
            rc = put_matrices(x, axes.names[i], axes.names[j], err);
    daf_names_clear(&axes);
    return rc;
}

static int build(importer *x, daf__aside *aside, const daf_zarr_options *options, daf_error *err) {
    daf_options opening = {.sync = options->sync,
                           .file_mode = options->file_mode,
                           .directory_mode = options->directory_mode,
                           .non_finite_scalars = options->non_finite_scalars,
                           .executor = options->executor,
                           .io = options->io};
    int rc = daf_openat(&x->to, aside->dirfd, aside->temporary, "w", &opening, err);
    if (rc)
        return rc;
    rc = daf_batch_begin(x->to, err);
    if (rc == 0)
        rc = put_all(x, err);
    if (rc == 0) {
        daf__metadata_distrust(&x->to->metadata); /* listed in the order of a rebuild */
        rc = daf_batch_commit(x->to, err);
    }
    if (rc == 0)
        rc = daf__aside_finish(aside, options->sync, err);
    daf_free(x->to);
    return rc;
}

int daf_zarr_import(daf_zarr_report *ret, const char *from, const char *to, const daf_zarr_options *options,
                    daf_error *err) {
    daf_zarr_options defaults;
    if (!from || !to)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "a path is NULL");
    if (!options) {
        daf_zarr_options_init(&defaults);
        options = &defaults;
    }
    daf_options opening = {.executor = options->executor, .io = options->io};
    importer x = {.strict = options->strict};
    daf__aside aside;
    int rc = daf_open(&x.from, from, "r", &opening, err);
    if (rc)
        return rc;
    x.tree = daf__zarr_base(x.from->store);
    if (!x.tree)
        rc = daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a daf zarr directory: %s", from);
    if (rc == 0)
        rc = daf__aside_begin(&aside, to, options->io ? options->io : &daf__system_io, err);
    if (rc == 0) {
        rc = build(&x, &aside, options, err);
        daf__aside_end(&aside);
    }
    daf_free(x.from);
    if (rc == 0 && ret)
        *ret = x.report;
    return rc;
}
