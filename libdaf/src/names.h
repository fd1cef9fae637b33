/* Names of properties and the keys (relative paths) of their files. */
#ifndef DAF_SRC_NAMES_H
#define DAF_SRC_NAMES_H

#include "daf/daf.h"

enum {
    DAF__MAX_FILE_NAME = 255,
    DAF__LONGEST_SUFFIX = 11, /* ".colptr.zip" */
    DAF__MAX_NAME = DAF__MAX_FILE_NAME - DAF__LONGEST_SUFFIX
};

/* "matrices/" and three file names */
typedef struct daf__key {
    char text[9 + 3 * (DAF__MAX_FILE_NAME + 1)];
} daf__key;

typedef enum daf__kind { DAF__SCALAR, DAF__AXIS, DAF__VECTOR, DAF__MATRIX } daf__kind;

/* One property by its names. The strings are borrowed. */
typedef struct daf__property {
    daf__kind kind;
    const char *axis;    /* of a vector: its axis; of a matrix: the rows axis */
    const char *columns; /* of a matrix: the columns axis */
    const char *name;
} daf__property;

daf__property daf__scalar_property(const char *name);
daf__property daf__axis_property(const char *axis);
daf__property daf__vector_property(const char *axis, const char *name);
daf__property daf__matrix_property(const char *rows, const char *columns, const char *name);

/* The same matrix in its other layout. */
daf__property daf__other_layout(const daf__property *matrix);

/* Whether a property can have the name: one that cannot is not listed. */
bool daf__is_path_part(const char *name, size_t bytes);

/* Checks that the names can be part of a path. Returns 0; DAF_ERR_ARG NULL; DAF_ERR_NAME. */
int daf__check_readable(const daf__property *p, daf_error *err);

/* Also checks that the property may be written under this name (specification section 1). */
int daf__check_writable(const daf__property *p, daf_error *err);

/* The key of the property without a suffix ("vectors/cell/age"), also its key in metadata.json. The names were
 * checked. */
daf__key daf__property_key(const daf__property *p);

/* base + suffix. */
daf__key daf__key_with(const daf__key *base, const char *suffix);

/* The suffixes of all files that a property of this kind may have, the descriptor's first; NULL-terminated. */
const char *const *daf__suffixes(daf__kind kind);

/* The suffix of the file by which a property exists: ".json", of an axis ".txt". */
const char *daf__main_suffix(daf__kind kind);

/* Building lists of names. Add copies the name; sort sorts bytewise. */
int daf__names_add(daf_names *names, const char *name, size_t bytes, daf_error *err);
void daf__names_sort(daf_names *names);
void daf__names_drop_twins(daf_names *names); /* of sorted ones */

#endif
