#include "export_write.h"

#include <stdio.h>
#include <string.h>

static int write_scalar(daf *d, const pd_property *p, uint64_t *n_skipped, daf_error *err) {
    int code = daf_set_scalar(d, p->name, &p->scalar, NULL, err);
    if (code == DAF_ERR_NAME || code == DAF_ERR_VALUE || code == DAF_ERR_EXISTS) {
        ++*n_skipped;
        return 0;
    }
    return code;
}

static int write_property(daf *d, const pd_property *p, uint64_t *n_skipped, daf_error *err) {
    switch (p->kind) {
    case PD_SCALAR:
        return write_scalar(d, p, n_skipped, err);
    case PD_AXIS:
        return daf_add_axis_integers(d, p->name, p->first, p->step, p->n, err);
    case PD_VECTOR:
        return daf_set_vector(d, p->rows, p->name, p->type, p->values, p->n, NULL, err);
    case PD_MATRIX:
        return daf_set_matrix(d, p->rows, p->columns, p->name, p->type, p->values, p->n, NULL, err);
    }
    return 0;
}

static int write_properties(daf *d, const pd_snapshot *snapshot, uint64_t *n_skipped, daf_error *err) {
    int code = daf_batch_begin(d, err);
    for (size_t i = 0; code == 0 && i < snapshot->n_properties; i++)
        code = write_property(d, &snapshot->properties[i], n_skipped, err);
    return code == 0 ? daf_batch_commit(d, err) : code;
}

int pd_export_write(int dirfd, const char *name, const pd_snapshot *snapshot,
                    const pd_exporter_options *options, bool sync, uint64_t *n_skipped, pd_error *err) {
    daf_options how;
    daf_options_init(&how);
    how.packed = true;
    how.codec = options->codec == PD_CODEC_GZIP ? DAF_CODEC_GZIP : DAF_CODEC_ZSTD;
    how.level = options->level;
    how.sync = sync;
    how.file_mode = options->file_mode;
    how.directory_mode = options->dir_mode;

    daf *d = NULL;
    daf_error why = {0};
    uint64_t skipped = 0;
    if (daf_openat(&d, dirfd, name, "w+", &how, &why) != 0)
        return pd_error_set(err, "%s", why.text);
    if (write_properties(d, snapshot, &skipped, &why) != 0) {
        daf_free(d);
        return pd_error_set(err, "%s", why.text);
    }
    if (daf_close(d, &why) != 0)
        return pd_error_set(err, "%s", why.text);
    *n_skipped = skipped;
    return 0;
}

int pd_export_write_zarr(int dirfd, const char *name, const char *from, const pd_exporter_options *options,
                         bool sync, pd_error *err) {
    char source[256], to[256]; /* of a folder that is known by its descriptor alone */
    daf_zarr_options how;
    daf_error why = {0};
    daf_zarr_options_init(&how);
    how.sync = sync;
    how.file_mode = options->file_mode;
    how.directory_mode = options->dir_mode;
    snprintf(source, sizeof source, "/proc/self/fd/%d/%.200s", dirfd, from);
    snprintf(to, sizeof to, "/proc/self/fd/%d/%.200s", dirfd, name);
    if (daf_zarr_export(NULL, source, to, &how, &why) != 0)
        return pd_error_set(err, "%s", why.text);
    return 0;
}
