/* What the files of the Zarr store share: zarr_store (keys to nodes), zarr_make (what is made of nodes). */
#ifndef DAF_SRC_ZARR_STORE_PRIVATE_H
#define DAF_SRC_ZARR_STORE_PRIVATE_H

#include "text.h"
#include "zarr_store.h"

/* A vector or matrix in the tree. */
typedef struct daf__zarr_property {
    daf__kind kind;
    daf__zarr_path path;    /* of its node */
    uint64_t rows, columns; /* by the axes */
} daf__zarr_property;

/* One array of a property: where its node is, and how it becomes a payload. */
typedef struct daf__zarr_part {
    daf__zarr_path path;
    daf__zarr_node node;
    bool as_it_is; /* by its only chunk, at `chunk` */
    bool packed;   /* as_it_is: by a shard */
    daf__packing packing;
    daf__zarr_path chunk;
} daf__zarr_part;

/* What was made of sparse texts, which share one node. */
typedef struct daf__zarr_made {
    daf__zarr_path path; /* "": nothing */
    daf__stamp stamp;    /* of the node's file */
    daf__descriptor descriptor;
    daf__buf parts[DAF__N_PARTS];
} daf__zarr_made;

typedef struct daf__zarr_store {
    daf__store base;
    daf__store *tree;
    daf__zarr_made made;
} daf__zarr_store;

/* ---- zarr_store */

/* Reads and parses the node at `path`. DAF_ERR_MISSING: none. *stamp may be NULL. */
int daf__zarr_read_node(daf__store *tree, daf__zarr_node *ret, daf__stamp *stamp, const char *path,
                        daf_error *err);

/* ---- zarr_part */

/* Looks at the array at `path`, of one dimension or two. */
int daf__zarr_part_open(daf__store *tree, daf__zarr_part *ret, const char *path, unsigned n_dimensions,
                        daf_error *err);
void daf__zarr_part_close(daf__zarr_part *p);

/* Makes what the part's payload would hold: elements, or lines. */
int daf__zarr_make_payload(daf__store *tree, daf__buf *ret, const daf__zarr_part *p, daf_error *err);

/* The JSON of a scalar. */
int daf__zarr_make_scalar(daf__store *tree, daf__buf *ret, const daf__zarr_part *p, daf_error *err);

/* ---- zarr_describe */

/* The descriptor of a vector or matrix. */
int daf__zarr_describe(daf__zarr_store *s, daf__descriptor *ret, const daf__zarr_property *p, daf_error *err);

/* Makes a sparse property of texts of its dense node, or finds it made. *is_one: whether it is one. */
int daf__zarr_make_sparse(daf__zarr_store *s, bool *is_one, const daf__zarr_property *p, daf_error *err);
void daf__zarr_made_free(daf__zarr_made *m);

#endif
