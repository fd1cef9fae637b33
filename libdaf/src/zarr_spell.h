/* How nodes of a .daf.zarr tree are spelled when we write them (specification "ZarrDaf", sections 2 to 5). */
#ifndef DAF_SRC_ZARR_SPELL_H
#define DAF_SRC_ZARR_SPELL_H

#include "buf.h"
#include "descriptor.h"

#define DAF__ZARR_NODE "zarr.json"

/* A path in the tree: "matrices/" R C N, "colptr", "c/0/0" */
typedef struct daf__zarr_path {
    char text[9 + 3 * (DAF__MAX_FILE_NAME + 1) + 32];
} daf__zarr_path;

/* base/name, or the name alone. */
daf__zarr_path daf__zarr_path_with(const char *base, const char *name);

/* An array, in natural order: rows, columns. */
typedef struct daf__zarr_array {
    daf_type type;
    unsigned n_dimensions; /* 1: columns is 1 */
    uint64_t rows, columns;
    const char *row_name, *column_name; /* of the dimensions */
    const daf__packing *packing;        /* NULL: flat */
    bool was_sparse;                    /* texts of a sparse property, with this index type */
    daf_type sparse_index;
} daf__zarr_array;

/* Appends the content of zarr.json. */
void daf__zarr_spell_group(daf__buf *out);
int daf__zarr_spell_array(daf__buf *out, const daf__zarr_array *a, daf_error *err);

/* The name of a data type ("uint32", "string"). */
const char *daf__zarr_type_name(daf_type type);

/* What the consolidated metadata list. */
typedef struct daf__zarr_entry {
    char *path;
    char *node;
} daf__zarr_entry;

typedef struct daf__zarr_index {
    daf__zarr_entry *entries;
    size_t n, capacity;
} daf__zarr_index;

int daf__zarr_index_add(daf__zarr_index *index, const char *path, const daf__buf *node, daf_error *err);
void daf__zarr_index_free(daf__zarr_index *index);

/* Appends the root's zarr.json with all entries, in an order that zarr-python can group. */
int daf__zarr_spell_root(daf__buf *out, daf__zarr_index *index, daf_error *err);

/* Whether the tree may hold a property or axis of this name. Returns 0; DAF_ERR_NAME. */
int daf__zarr_check_name(const char *name, daf_error *err);

#endif
