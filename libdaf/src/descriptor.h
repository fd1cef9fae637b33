/* The JSON beside each vector and matrix (specification section 2.4), read by shape, not by version.
 *
 * A property consists of parts, each an array in a file of its own: a dense one of its values alone; a sparse one of
 * the values, the indices (nzind, rowval) and, a matrix, the column pointers (colptr). Each part is flat or packed by
 * itself.
 */
#ifndef DAF_SRC_DESCRIPTOR_H
#define DAF_SRC_DESCRIPTOR_H

#include "buf.h"
#include "names.h"

typedef enum daf__part { DAF__VALUES, DAF__INDICES, DAF__POINTERS, DAF__N_PARTS } daf__part;

typedef struct daf__packing {
    bool indexed; /* "indexed+zipped", else "zipped" */
    uint64_t chunk_rows, chunk_columns;
    char compression[32]; /* as written */
    int level;            /* as written; 0 when missing */
} daf__packing;

typedef struct daf__component {
    bool present;
    daf_type type;
    bool counted; /* n_elements is known; a dense property's size comes from its axes */
    uint64_t n_elements;
    bool packed;
    daf__packing packing;
} daf__component;

typedef struct daf__descriptor {
    daf_type type;
    bool sparse;
    bool old_form;       /* sparse, in the form of version 1.0: no counts, nothing packed */
    daf_type index_type; /* sparse */
    daf__component parts[DAF__N_PARTS];
} daf__descriptor;

/* Parses the descriptor of a vector or matrix. `where` names the file in errors. Of the 1.0 form the values of a Bool
 * property count as absent.
 * Returns 0; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED an unknown packed_format; DAF_ERR_NOMEM. */
int daf__descriptor_parse(daf__descriptor *ret, daf__kind kind, const void *text, size_t bytes,
                          const char *where, daf_error *err);

/* Appends the descriptor in its written form, with the final LF. */
void daf__descriptor_write(daf__buf *out, daf__kind kind, const daf__descriptor *d);

/* Whether a part is packed. */
bool daf__descriptor_is_packed(const daf__descriptor *d);

/* Whether version 1.0 does not know such a descriptor. */
bool daf__descriptor_needs_1_1(const daf__descriptor *d);

/* The name of a part: "data" (of a dense property), "nzval", "nzind", "rowval", "colptr". */
const char *daf__part_name(daf__kind kind, bool sparse, daf__part part);

/* The suffix of the file that holds a part, such as ".data", ".nztxt", ".colptr.zip". */
enum { DAF__SUFFIX_TEXT = 16 };
const char *daf__part_suffix(char text[DAF__SUFFIX_TEXT], daf__kind kind, const daf__descriptor *d,
                             daf__part part);

/* The key of that file. */
daf__key daf__part_key(const daf__property *p, const daf__descriptor *d, daf__part part);

#endif
