/* An HDF5 file as Photon-HDF5 wants it: groups, scalars, texts and growing columns, each with a TITLE.
 * Paths begin with '/'; the groups on the way are made. */
#ifndef D7_CLI_HDF5_FILE_H
#define D7_CLI_HDF5_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "d7/d7.h"

typedef struct hdf5_file hdf5_file;
typedef struct hdf5_column hdf5_column;

enum { HDF5_WHY_BYTES = 160 };

/* NULL: could not be made; why says why. */
hdf5_file *hdf5_create(const char *path, char why[HDF5_WHY_BYTES]);

/* Other functions that fail return -1 or NULL, and so does every one after that; why the first did. */
const char *hdf5_why(const hdf5_file *f);

/* Closes the file and everything in it. hdf5_free() in any case. */
int hdf5_close(hdf5_file *f);
void hdf5_free(hdf5_file *f);

int hdf5_group(hdf5_file *f, const char *path, const char *title);
int hdf5_text(hdf5_file *f, const char *path, const char *title, const char *text);
int hdf5_number(hdf5_file *f, const char *path, const char *title, double value);
int hdf5_count(hdf5_file *f, const char *path, const char *title, uint64_t value);
int hdf5_flag(hdf5_file *f, const char *path, const char *title, int value);
int hdf5_counts(hdf5_file *f, const char *path, const char *title, const uint64_t *values, size_t n);
int hdf5_numbers(hdf5_file *f, const char *path, const char *title, const double *values, size_t n);
int hdf5_flags(hdf5_file *f, const char *path, const char *title, const uint8_t *values, size_t n);

/* An attribute of a group; "/" is the file. */
int hdf5_attribute(hdf5_file *f, const char *path, const char *name, const char *text);

/* A growing column whose values have `type` in memory and `stored` in the file. rows: about how many there will be, for the
 * size of its chunks; level: of compression, 0: none. */
typedef struct hdf5_shape {
    d7_type type, stored;
    uint64_t rows;
    int level;
} hdf5_shape;

hdf5_column *hdf5_column_new(hdf5_file *f, const char *path, const char *title, const hdf5_shape *shape);
int hdf5_column_append(hdf5_column *c, const void *values, size_t n);
/* NULL is allowed. */
int hdf5_column_end(hdf5_column *c);

#endif
