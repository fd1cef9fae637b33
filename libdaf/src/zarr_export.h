/* Turning a repository into a .daf.zarr tree (specification "ZarrDaf", section 6).
 *
 *   zarr_export       the tree: groups, scalars, axes, and the order of it all
 *   zarr_export_part  the payload of one array: linked, copied or written anew
 */
#ifndef DAF_SRC_ZARR_EXPORT_H
#define DAF_SRC_ZARR_EXPORT_H

#include "property.h"
#include "zarr_spell.h"

typedef struct daf__zarr_exporter {
    daf *from;
    daf__store *to; /* a directory store on the new tree */
    bool strict;
    daf__zarr_index index;
    daf_zarr_report report;
} daf__zarr_exporter;

/* Puts the chunk (taken, also on failure) and the node of an array in place. rc: how filling the chunk went. */
int daf__zarr_put_array(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a, daf__out *chunk,
                        int rc, daf_error *err);

/* A chunk of texts, put in place with its node. */
int daf__zarr_put_texts(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a,
                        const char *const *texts, daf_error *err);

/* The parts of such a chunk: how many texts, and each of them. */
int daf__zarr_append_text_count(daf__out *out, uint64_t n, const char *where, daf_error *err);
int daf__zarr_append_text(daf__out *out, const char *text, size_t bytes, const char *where, daf_error *err);

/* A payload: a part of a property in `file`, whose key in the source is `key`. */
int daf__zarr_put_part(daf__zarr_exporter *x, const char *path, daf__zarr_array *a, daf__file *file,
                       const char *key, const daf__component *c, daf_error *err);

#endif
