/* One array of a property in a file: flat values, lines of text, or a shard. */
#ifndef DAF_SRC_COMPONENT_H
#define DAF_SRC_COMPONENT_H

#include "array.h"
#include "descriptor.h"
#include "handle.h"
#include "shard.h"

/* The shape that chunks are laid over. A vector, and each part of a sparse property, is a vector of `rows`. */
typedef struct daf__extent {
    daf__kind kind;
    uint64_t rows, columns;
} daf__extent;

/* The number of elements of a flat numeric file whose descriptor has no n_elements, from its size.
 * Returns 0; DAF_ERR_CORRUPT. */
int daf__component_count(const daf__file *f, daf_type type, uint64_t *ret, daf_error *err);

typedef enum daf__access {
    DAF__COPY,       /* nothing mapped, so that a file that is cut meanwhile is an error and no signal */
    DAF__VIEW_DENSE, /* flat numeric values of a dense property as a view of the file; all else as copies */
    DAF__VIEW_SPARSE /* so of the parts of a sparse one */
} daf__access;

/* Reads the array; chunks through the handle's executor. view: flat numeric values as a view of the file, unless the
 * handle wants copies.
 * Returns 0; DAF_ERR_TRUNCATED; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED; DAF_ERR_LIMIT; ... */
int daf__component_load(daf_array **ret, const daf *d, daf__file *f, const daf__extent *extent,
                        const daf__component *c, bool view, daf_error *err);

/* Reads the elements of `range`, of packed ones only from the chunks that hold some. */
int daf__component_load_range(daf_array **ret, const daf *d, daf__file *f, const daf__extent *extent,
                              const daf__component *c, const daf_range *range, daf_error *err);

/* Whether a flat numeric file holds n values of the type. Returns 0; DAF_ERR_TRUNCATED; DAF_ERR_CORRUPT. */
int daf__component_check_size(const daf__file *f, daf_type type, uint64_t n, daf_error *err);

/* Opens the shard of a packed component that is not empty. */
int daf__component_open_shard(daf__shard *ret, const daf *d, daf__file *f, const daf__extent *extent,
                              const daf__component *c, daf_error *err);

/* Looks at size, lines, or shard, without decoding. Of texts *raw_bytes: as lines; of packed ones *n_stored: chunks that
 * are in the file. */
int daf__component_examine(const daf *d, daf__file *f, const daf__extent *extent, const daf__component *c,
                           uint64_t *raw_bytes, uint64_t *n_stored, daf_error *err);

/* Whether there are this compression and this level of it. Returns 0; DAF_ERR_ARG. */
int daf__check_codec(daf_codec codec, int level, daf_error *err);

/* The values of a numeric vector, flat or packed, as a file of them in host order, which borrows `f`: whoever reads on holds
 * some chunks only. It can be read, not mapped. */
int daf__component_as_file(daf__file **ret, const daf *d, daf__file *f, const daf__extent *extent,
                           const daf__component *c, daf_error *err);

/* Decides whether an array of c->type is stored packed, and how (specification section 8). o may be NULL.
 * Returns 0; DAF_ERR_ARG, DAF_ERR_UNSUPPORTED the codec or level. */
int daf__component_choose(daf__component *c, const daf__extent *extent, const daf__settings *s,
                          const daf_set_options *o, daf_error *err);

/* How the shard of a packed component is written. */
int daf__shard_spec_of(daf__shard_spec *ret, const daf *d, const daf__extent *x, const daf__component *c,
                       const char *where, daf_error *err);

/* Appends numeric values in their flat form. */
int daf__flat_append(daf__out *out, daf_type type, const void *values, uint64_t n, daf_error *err);

/* Writes the array to an empty out. values: [rows * columns], String: const char *const *.
 * `where` names the property in errors. */
int daf__component_write(daf__out *out, const daf__extent *extent, const daf__component *c,
                         const void *values, const daf *d, const char *where, daf_error *err);

#endif
