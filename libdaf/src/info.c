/* What a vector or matrix is, without reading its values. */
#include <stdio.h>

#include "dense.h"
#include "shard.h"

static int add_disk_bytes(daf *d, daf_info *info, const daf__property *p, daf_error *err) {
    daf__key base = daf__property_key(p);
    for (const char *const *suffix = daf__suffixes(p->kind); *suffix; suffix++) {
        daf__key key = daf__key_with(&base, *suffix);
        daf__stamp stamp;
        int rc = d->store->ops->stamp(d->store, &stamp, key.text, NULL);
        if (rc == 0)
            info->disk_bytes += stamp.bytes;
        else if (rc != DAF_ERR_MISSING)
            return d->store->ops->stamp(d->store, &stamp, key.text, err);
    }
    return 0;
}

static int add_packing(daf *d, daf_info *info, const daf__property *p, const daf__packing *packing,
                       daf_error *err) {
    daf__grid grid = {.n_chunks = 0};
    daf__key base = daf__property_key(p);
    char where[DAF__WHERE_TEXT];
    int rc = 0;
    if (info->rows && info->columns)
        rc = daf__grid_make(&grid, p->kind, info->rows, info->columns, packing,
                            daf__store_where(where, d->store, base.text), err);
    if (rc)
        return rc;
    info->packed = true;
    info->indexed = packing->indexed;
    info->level = packing->level;
    info->chunk_rows = packing->chunk_rows;
    info->chunk_columns = packing->chunk_columns;
    info->n_chunks = grid.n_chunks;
    snprintf(info->compression, sizeof info->compression, "%s", packing->compression);
    return 0;
}

static int get_info(daf *d, daf_info *ret, const daf__property *p, daf_error *err) {
    daf__descriptor descriptor;
    daf_info info = {.columns = 1};
    int rc = daf__check_readable(p, err);
    if (rc == 0)
        rc = daf__read_descriptor(d, &descriptor, NULL, p, err);
    if (rc == 0)
        rc = daf__shape(d, p, &info.rows, &info.columns, err);
    if (rc)
        return rc;
    info.type = descriptor.type;
    info.sparse = descriptor.sparse;
    info.raw_bytes = info.rows * info.columns * daf_type_bytes(info.type);
    if (descriptor.packed)
        rc = add_packing(d, &info, p, &descriptor.packing, err);
    if (rc == 0)
        rc = add_disk_bytes(d, &info, p, err);
    if (rc == 0)
        *ret = info;
    return rc;
}

int daf_vector_info(daf *d, daf_info *ret, const char *axis, const char *name, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return get_info(d, ret, &p, err);
}

int daf_matrix_info(daf *d, daf_info *ret, const char *rows, const char *columns, const char *name,
                    daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return get_info(d, ret, &p, err);
}
