#include "hdf5_file.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ITEMS = 65536 };

/* After a failed write libhdf5 (1.10) can crash while it closes what it could not write. So the first failure is the last
 * call: everything is left as it is, to the end of the process, at which the library does nothing either. */
struct hdf5_file {
    hid_t file;
    bool failed;
    char why[HDF5_WHY_BYTES];
};

struct hdf5_column {
    hdf5_file *file;
    hid_t dataset, type;
    hsize_t rows;
};

/* ---- why ---- */

typedef struct reason {
    char *text;
    size_t cap;
} reason;

/* From the inside out: the first has the system's words, where it was the system. */
static herr_t take_reason(unsigned n, const H5E_error2_t *error, void *ctx) {
    static const char before[] = "error message = '";
    reason *r = ctx;
    if (n > 0 || !error->desc)
        return 0;
    const char *words = strstr(error->desc, before);
    words = words ? words + sizeof before - 1 : error->desc;
    snprintf(r->text, r->cap, "%.*s", (int)strcspn(words, "'\n"), words);
    return 0;
}

/* Calls of the library forget the reason of those before: so this comes first of all after a failure. */
static void why_failed(char why[HDF5_WHY_BYTES]) {
    reason r = {why, HDF5_WHY_BYTES};
    snprintf(why, HDF5_WHY_BYTES, "libhdf5 does not say why");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, &r);
}

static int outcome(hdf5_file *f, int rc) {
    if (rc != 0 && !f->failed) {
        f->failed = true;
        why_failed(f->why);
    }
    return rc;
}

const char *hdf5_why(const hdf5_file *f) {
    return f->why;
}

static hid_t native_type(d7_type type) {
    switch (type) {
    case D7_INT8:
        return H5T_NATIVE_INT8;
    case D7_INT16:
        return H5T_NATIVE_INT16;
    case D7_INT32:
        return H5T_NATIVE_INT32;
    case D7_INT64:
        return H5T_NATIVE_INT64;
    case D7_UINT8:
        return H5T_NATIVE_UINT8;
    case D7_UINT16:
        return H5T_NATIVE_UINT16;
    case D7_UINT32:
        return H5T_NATIVE_UINT32;
    case D7_UINT64:
        return H5T_NATIVE_UINT64;
    case D7_FLOAT:
        return H5T_NATIVE_FLOAT;
    default:
        return H5T_NATIVE_DOUBLE;
    }
}

/* The same on every machine. */
static hid_t stored_type(d7_type type) {
    switch (type) {
    case D7_INT8:
        return H5T_STD_I8LE;
    case D7_INT16:
        return H5T_STD_I16LE;
    case D7_INT32:
        return H5T_STD_I32LE;
    case D7_INT64:
        return H5T_STD_I64LE;
    case D7_UINT8:
        return H5T_STD_U8LE;
    case D7_UINT16:
        return H5T_STD_U16LE;
    case D7_UINT32:
        return H5T_STD_U32LE;
    case D7_UINT64:
        return H5T_STD_U64LE;
    case D7_FLOAT:
        return H5T_IEEE_F32LE;
    default:
        return H5T_IEEE_F64LE;
    }
}

/* ---- the file ---- */

hdf5_file *hdf5_create(const char *path, char why[HDF5_WHY_BYTES]) {
    hdf5_file *f = calloc(1, sizeof *f);
    if (!f) {
        snprintf(why, HDF5_WHY_BYTES, "out of memory");
        return NULL;
    }
    H5dont_atexit(); /* comes first; fails when it was called before, which is as good */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    f->file = -1;
    if (access >= 0 && H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0)
        f->file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (f->file < 0)
        why_failed(why);
    if (access >= 0)
        H5Pclose(access);
    if (f->file >= 0)
        return f;
    free(f);
    return NULL;
}

int hdf5_close(hdf5_file *f) {
    return f->failed || H5Fclose(f->file) < 0 ? outcome(f, -1) : 0;
}

void hdf5_free(hdf5_file *f) {
    free(f);
}

static int put_title(hdf5_file *f, hid_t object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute = -1;
    if (type >= 0 && space >= 0 && H5Tset_size(type, strlen(text) ? strlen(text) : 1) >= 0)
        attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    int rc = attribute >= 0 && H5Awrite(attribute, type, text) >= 0 ? 0 : outcome(f, -1);
    if (attribute >= 0)
        H5Aclose(attribute);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return rc;
}

int hdf5_attribute(hdf5_file *f, const char *path, const char *name, const char *text) {
    hid_t object = f->failed ? -1 : H5Oopen(f->file, path, H5P_DEFAULT);
    int rc = object >= 0 ? put_title(f, object, name, text) : outcome(f, -1);
    if (rc == 0)
        H5Oclose(object);
    return rc;
}

/* Groups on the way to an object are made with it. */
static hid_t with_groups(void) {
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    if (links >= 0 && H5Pset_create_intermediate_group(links, 1) < 0) {
        H5Pclose(links);
        return -1;
    }
    return links;
}

int hdf5_group(hdf5_file *f, const char *path, const char *title) {
    hid_t links = f->failed ? -1 : with_groups();
    hid_t group = links >= 0 ? H5Gcreate2(f->file, path, links, H5P_DEFAULT, H5P_DEFAULT) : -1;
    int rc = group >= 0 ? put_title(f, group, "TITLE", title) : outcome(f, -1);
    if (rc == 0)
        H5Gclose(group);
    if (links >= 0)
        H5Pclose(links);
    return rc;
}

/* ---- values that are known ---- */

static int put_values(hdf5_file *f, const char *path, const char *title, hid_t stored, hid_t memory,
                      hid_t space, const void *values) {
    hid_t links = f->failed ? -1 : with_groups();
    hid_t dataset = links >= 0 && space >= 0
                        ? H5Dcreate2(f->file, path, stored, space, links, H5P_DEFAULT, H5P_DEFAULT)
                        : -1;
    int rc = dataset >= 0 && H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0
                 ? put_title(f, dataset, "TITLE", title)
                 : outcome(f, -1);
    if (rc == 0 && H5Dclose(dataset) < 0)
        rc = outcome(f, -1);
    if (space >= 0)
        H5Sclose(space);
    if (links >= 0)
        H5Pclose(links);
    return rc;
}

static int put_scalar(hdf5_file *f, const char *path, const char *title, d7_type type, const void *value) {
    return put_values(f, path, title, stored_type(type), native_type(type), H5Screate(H5S_SCALAR), value);
}

static int put_array(hdf5_file *f, const char *path, const char *title, d7_type type, const void *values,
                     size_t n) {
    hsize_t rows = n;
    return put_values(f, path, title, stored_type(type), native_type(type), H5Screate_simple(1, &rows, NULL),
                      values);
}

/* PyTables, and phconvert with it, gives a text as such only where these say so. */
static int mark_text(hdf5_file *f, const char *path) {
    return hdf5_attribute(f, path, "CLASS", "ARRAY") | hdf5_attribute(f, path, "VERSION", "2.4") |
           hdf5_attribute(f, path, "FLAVOR", "python");
}

int hdf5_text(hdf5_file *f, const char *path, const char *title, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    int rc = -1;
    text = *text ? text : " "; /* a text has at least one byte */
    if (type >= 0 && H5Tset_size(type, strlen(text)) >= 0)
        rc = put_values(f, path, title, type, type, H5Screate(H5S_SCALAR), text) | mark_text(f, path);
    if (type >= 0)
        H5Tclose(type);
    return rc;
}

int hdf5_number(hdf5_file *f, const char *path, const char *title, double value) {
    return put_scalar(f, path, title, D7_DOUBLE, &value);
}

int hdf5_count(hdf5_file *f, const char *path, const char *title, uint64_t value) {
    return put_scalar(f, path, title, D7_UINT64, &value);
}

int hdf5_flag(hdf5_file *f, const char *path, const char *title, int value) {
    uint8_t flag = value != 0;
    return put_scalar(f, path, title, D7_UINT8, &flag);
}

int hdf5_counts(hdf5_file *f, const char *path, const char *title, const uint64_t *values, size_t n) {
    return put_array(f, path, title, D7_UINT64, values, n);
}

int hdf5_numbers(hdf5_file *f, const char *path, const char *title, const double *values, size_t n) {
    return put_array(f, path, title, D7_DOUBLE, values, n);
}

int hdf5_flags(hdf5_file *f, const char *path, const char *title, const uint8_t *values, size_t n) {
    return put_array(f, path, title, D7_UINT8, values, n);
}

/* ---- columns ---- */

/* A chunk lies in the file as a whole, however little is in it. */
static hid_t column_layout(const hdf5_shape *shape) {
    hsize_t chunk = shape->rows < CHUNK_ITEMS ? shape->rows + (shape->rows == 0) : CHUNK_ITEMS;
    int level = shape->level;
    hid_t layout = H5Pcreate(H5P_DATASET_CREATE);
    if (layout < 0)
        return -1;
    if (H5Pset_chunk(layout, 1, &chunk) >= 0 &&
        (level == 0 || (H5Pset_shuffle(layout) >= 0 && H5Pset_deflate(layout, (unsigned)level) >= 0)))
        return layout;
    H5Pclose(layout);
    return -1;
}

hdf5_column *hdf5_column_new(hdf5_file *f, const char *path, const char *title, const hdf5_shape *shape) {
    hsize_t none = 0, unlimited = H5S_UNLIMITED;
    hdf5_column *c = calloc(1, sizeof *c);
    hid_t links = f->failed ? -1 : with_groups(), layout = column_layout(shape),
          space = H5Screate_simple(1, &none, &unlimited);
    if (c) {
        c->file = f;
        c->type = native_type(shape->type);
        c->dataset =
            links >= 0 && layout >= 0 && space >= 0
                ? H5Dcreate2(f->file, path, stored_type(shape->stored), space, links, layout, H5P_DEFAULT)
                : -1;
    }
    int rc = c && c->dataset >= 0 ? put_title(f, c->dataset, "TITLE", title) : outcome(f, -1);
    if (space >= 0)
        H5Sclose(space);
    if (layout >= 0)
        H5Pclose(layout);
    if (links >= 0)
        H5Pclose(links);
    if (rc == 0)
        return c;
    free(c);
    return NULL;
}

int hdf5_column_append(hdf5_column *c, const void *values, size_t n) {
    hsize_t first = c->rows, count = n, rows = c->rows + n;
    if (c->file->failed || H5Dset_extent(c->dataset, &rows) < 0)
        return outcome(c->file, -1);
    hid_t space = H5Dget_space(c->dataset), memory = H5Screate_simple(1, &count, NULL);
    bool written = space >= 0 && memory >= 0 &&
                   H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL) >= 0 &&
                   H5Dwrite(c->dataset, c->type, memory, space, H5P_DEFAULT, values) >= 0;
    int rc = written ? 0 : outcome(c->file, -1);
    if (memory >= 0)
        H5Sclose(memory);
    if (space >= 0)
        H5Sclose(space);
    c->rows = rows;
    return rc;
}

int hdf5_column_end(hdf5_column *c) {
    int rc = 0;
    if (c)
        rc = c->file->failed || H5Dclose(c->dataset) < 0 ? outcome(c->file, -1) : 0;
    free(c);
    return rc;
}
