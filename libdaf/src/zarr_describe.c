/* The descriptors that vectors and matrices of a tree would have. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "content.h"
#include "error.h"
#include "type.h"
#include "zarr_decode.h"
#include "zarr_store_private.h"

static int bad(const daf__zarr_store *s, const char *path, const char *what, daf_error *err) {
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s/%s: %s", s->base.path, path, what);
}

/* ---- texts that were sparse */

void daf__zarr_made_free(daf__zarr_made *m) {
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        daf__buf_free(&m->parts[i]);
    *m = (daf__zarr_made){.descriptor = {.sparse = false}};
}

static void append_indices(daf__buf *to, daf_type type, const void *values, uint64_t n) {
    size_t width = daf_type_bytes(type), bytes = (size_t)n * width;
    uint8_t *at = daf__buf_reserve(to, bytes ? bytes : 1);
    if (!at)
        return;
    bytes_copy_le(at, values, (size_t)n, width);
    to->size += bytes;
}

static void fill_made(daf__zarr_made *m, const daf__content *c) {
    bool matrix = c->kind == DAF__MATRIX;
    const char *const *texts = c->data[DAF__VALUES];
    uint64_t counts[] = {[DAF__VALUES] = c->nnz, [DAF__INDICES] = c->nnz, [DAF__POINTERS] = c->columns + 1};
    m->descriptor = (daf__descriptor){.type = DAF_STRING, .sparse = true, .index_type = c->index_type};
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        m->descriptor.parts[i] = (daf__component){.present = i != DAF__POINTERS || matrix,
                                                  .type = i == DAF__VALUES ? DAF_STRING : c->index_type,
                                                  .counted = true,
                                                  .n_elements = counts[i]};
    for (uint64_t i = 0; i < c->nnz; i++) {
        daf__buf_text(&m->parts[DAF__VALUES], texts[i]);
        daf__buf_text(&m->parts[DAF__VALUES], "\n");
    }
    append_indices(&m->parts[DAF__INDICES], c->index_type, c->data[DAF__INDICES], c->nnz);
    if (matrix)
        append_indices(&m->parts[DAF__POINTERS], c->index_type, c->data[DAF__POINTERS], c->columns + 1);
}

static int make_of_texts(daf__zarr_made *m, const daf__zarr_property *p, const daf__texts *texts,
                         daf_type index_type, daf_error *err) {
    daf__content sparse,
        dense = {.kind = p->kind, .type = DAF_STRING, .rows = p->rows, .columns = p->columns};
    dense.data[DAF__VALUES] = texts->next;
    int rc = daf__texts_check(texts->next, texts->n, false, err);
    if (rc == 0)
        rc = daf__content_to_sparse(&sparse, &dense, index_type, err);
    if (rc)
        return rc;
    fill_made(m, &sparse);
    daf__content_free(&sparse);
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        rc = daf__buf_check(&m->parts[i], err);
    return rc;
}

static int make(daf__zarr_store *s, const daf__zarr_property *p, const daf__zarr_node *node, daf_error *err) {
    daf__texts texts;
    daf_error details;
    daf__zarr_made *m = &s->made;
    int rc = daf__zarr_decode_texts(s->tree, p->path.text, node, &texts, err);
    if (rc)
        return rc;
    rc = make_of_texts(m, p, &texts, node->sparse_index, &details);
    daf__texts_free(&texts);
    if (rc == DAF_ERR_NOMEM)
        return daf__no_memory(err);
    return rc ? daf__fail(err, details.code, 0, 0, "%s/%s: %.900s", s->base.path, p->path.text, details.text)
              : 0;
}

static int check_shape(const daf__zarr_store *s, const daf__zarr_property *p, const daf__zarr_node *node,
                       daf_error *err) {
    unsigned n_dimensions = p->kind == DAF__MATRIX ? 2 : 1;
    if (node->n_dimensions != n_dimensions)
        return bad(s, p->path.text, "has another number of dimensions than axes", err);
    if (node->shape[1] == p->rows && node->shape[0] == p->columns)
        return 0;
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0,
                     "%s/%s: its shape is not that of its axes: %" PRIu64 " x %" PRIu64 ", not %" PRIu64
                     " x %" PRIu64,
                     s->base.path, p->path.text, node->shape[1], node->shape[0], p->rows, p->columns);
}

int daf__zarr_make_sparse(daf__zarr_store *s, bool *is_one, const daf__zarr_property *p, daf_error *err) {
    daf__zarr_node node;
    daf__stamp stamp;
    daf__zarr_made *m = &s->made;
    int rc = daf__zarr_read_node(s->tree, &node, &stamp, p->path.text, err);
    if (rc)
        return rc;
    *is_one = !node.is_group && node.was_sparse;
    bool made = strcmp(m->path.text, p->path.text) == 0 && daf__stamps_equal(&stamp, &m->stamp);
    if (*is_one && !made) {
        daf__zarr_made_free(m);
        rc = check_shape(s, p, &node, err);
        if (rc == 0)
            rc = make(s, p, &node, err);
        if (rc) {
            daf__zarr_made_free(m);
        } else {
            m->path = p->path;
            m->stamp = stamp;
        }
    }
    daf__zarr_node_free(&node);
    return rc;
}

/* ---- others */

static daf__component component_of(const daf__zarr_part *part, bool counted) {
    return (daf__component){.present = true,
                            .type = part->node.type,
                            .counted = counted,
                            .n_elements = counted ? part->node.shape[1] : 0,
                            .packed = part->packed,
                            .packing = part->packing};
}

static int describe_dense(daf__zarr_store *s, daf__descriptor *ret, const daf__zarr_property *p,
                          daf_error *err) {
    daf__zarr_part part;
    int rc = daf__zarr_part_open(s->tree, &part, p->path.text, p->kind == DAF__MATRIX ? 2 : 1, err);
    if (rc)
        return rc;
    rc = check_shape(s, p, &part.node, err);
    *ret = (daf__descriptor){.type = part.node.type};
    ret->parts[DAF__VALUES] = component_of(&part, false);
    daf__zarr_part_close(&part);
    return rc;
}

static int describe_component(daf__zarr_store *s, daf__descriptor *d, const daf__zarr_property *p,
                              daf__part which, daf_error *err) {
    daf__zarr_path path = daf__zarr_path_with(p->path.text, daf__part_name(p->kind, true, which));
    daf__zarr_part part;
    daf_error details;
    int rc = daf__zarr_part_open(s->tree, &part, path.text, 1, &details);
    if (rc == DAF_ERR_MISSING && which == DAF__VALUES)
        return 0; /* a Bool property, all of whose stored values are true */
    if (rc == DAF_ERR_MISSING)
        return bad(s, path.text, "is missing from the sparse property", err);
    if (rc)
        return daf__pass(err, &details);
    d->parts[which] = component_of(&part, true);
    daf__zarr_part_close(&part);
    return 0;
}

static int check_components(daf__zarr_store *s, daf__descriptor *d, const daf__zarr_property *p,
                            daf_error *err) {
    const daf__component *values = &d->parts[DAF__VALUES], *indices = &d->parts[DAF__INDICES],
                         *pointers = &d->parts[DAF__POINTERS];
    d->sparse = true;
    d->type = values->present ? values->type : DAF_BOOL;
    d->index_type = indices->type;
    if (d->type == DAF_STRING)
        return bad(s, p->path.text, "is a sparse property of texts, which is stored dense", err);
    if (!daf__type_is_signed(indices->type) && !daf__type_is_unsigned(indices->type))
        return bad(s, p->path.text, "has indices that are no integers", err);
    if (values->present && values->n_elements != indices->n_elements)
        return bad(s, p->path.text, "has not as many values as indices", err);
    if (pointers->present && (pointers->type != indices->type || pointers->n_elements != p->columns + 1))
        return bad(s, p->path.text, "has a colptr of another type, or that is not one longer than the axis",
                   err);
    return 0;
}

static int describe_sparse(daf__zarr_store *s, daf__descriptor *ret, const daf__zarr_property *p,
                           daf_error *err) {
    int rc = describe_component(s, ret, p, DAF__INDICES, err);
    if (rc == 0)
        rc = describe_component(s, ret, p, DAF__VALUES, err);
    if (rc == 0 && p->kind == DAF__MATRIX)
        rc = describe_component(s, ret, p, DAF__POINTERS, err);
    return rc ? rc : check_components(s, ret, p, err);
}

int daf__zarr_describe(daf__zarr_store *s, daf__descriptor *ret, const daf__zarr_property *p,
                       daf_error *err) {
    daf__zarr_node node;
    daf__descriptor d = {.sparse = false};
    bool is_one;
    int rc = daf__zarr_read_node(s->tree, &node, NULL, p->path.text, err);
    if (rc)
        return rc;
    bool is_group = node.is_group, was_sparse = node.was_sparse;
    daf__zarr_node_free(&node);
    if (is_group) {
        rc = describe_sparse(s, &d, p, err);
    } else if (was_sparse) {
        rc = daf__zarr_make_sparse(s, &is_one, p, err);
        d = s->made.descriptor;
    } else {
        rc = describe_dense(s, &d, p, err);
    }
    if (rc == 0)
        *ret = d;
    return rc;
}
