/* The values of a vector or matrix in memory, dense or sparse, and what can be made of them. */
#ifndef DAF_SRC_CONTENT_H
#define DAF_SRC_CONTENT_H

#include "array.h"
#include "descriptor.h"
#include "store.h"

/* data[DAF__VALUES]: dense [rows * columns], sparse [nnz] (Bool: NULL when all are true; String: const char *const *);
 * of sparse ones also data[DAF__INDICES] [nnz] and, a matrix, data[DAF__POINTERS] [columns + 1], as in daf_csc. */
typedef struct daf__content {
    daf__kind kind;
    daf_type type;
    uint64_t rows, columns;
    bool sparse;
    daf_type index_type;
    uint64_t nnz;
    const void *data[DAF__N_PARTS];
    void *owned[DAF__N_PARTS]; /* what daf__content_free frees; others are borrowed */
} daf__content;

void daf__content_free(daf__content *c);

/* Bytes of a value in memory: of String a pointer. */
size_t daf__value_bytes(daf_type type);

/* A fresh owned part of n elements of `bytes` bytes; not NULL for none. */
int daf__content_own(daf__content *c, daf__part part, uint64_t n, size_t bytes, daf_error *err);

/* The same of all parts of a sparse content whose shape, types and nnz are set. */
int daf__content_own_sparse(daf__content *c, daf_error *err);

/* The number, from 0, of the first stored value of a column; of `columns`: nnz. The setter: in the owned pointers;
 * does nothing to a vector. */
uint64_t daf__content_start(const daf__content *c, uint64_t column);
void daf__content_set_start(daf__content *c, uint64_t column, uint64_t k);

/* The type of indices that the format recommends for a shape. */
daf_type daf__smallest_index(daf__kind kind, uint64_t rows, uint64_t columns, uint64_t nnz);

/* `type`, or for DAF_BOOL the smallest; DAF_ERR_VALUE when it does not hold what the shape needs. */
int daf__choose_index(daf_type *ret, const daf__content *shape, daf_type type, uint64_t nnz, daf_error *err);

/* Each makes a new content from another, whose data it may borrow. An index type of DAF_BOOL: the smallest.
 * Returns 0; DAF_ERR_LIMIT; DAF_ERR_VALUE the index type does not hold what it must; DAF_ERR_NOMEM. */
/* Element moves by the width of a value: to[k] = from[places[k]], to[places[k]] = from[k]. */
void daf__values_gather(void *to, const void *from, size_t width, const uint64_t *places, size_t n);
void daf__values_scatter(void *to, const void *from, size_t width, const uint64_t *places, size_t n);

int daf__content_to_dense(daf__content *ret, const daf__content *sparse, daf_error *err);
int daf__content_to_sparse(daf__content *ret, const daf__content *dense, daf_type index_type, daf_error *err);
int daf__content_with_index(daf__content *ret, const daf__content *sparse, daf_type index_type,
                            daf_error *err);
int daf__content_transpose(daf__content *ret, const daf__content *c, const daf_executor *executor,
                           daf_error *err);
/* Also DAF_ERR_ARG a range that is not inside. */
int daf__content_slice(daf__content *ret, const daf__content *c, const daf_range *range, daf_error *err);

/* A part of the content, dense, as a new array. Returns as daf__content_slice. */
int daf__content_part_to_array(daf_array **ret, const daf__content *c, const daf_range *range,
                               daf_error *err);

/* New row i is old row rows[i], and so the columns; NULL: they stay. Owns all it holds. */
int daf__content_permute(daf__content *ret, const daf__content *c, const uint64_t *rows,
                         const uint64_t *columns, daf_error *err);

/* Whether the values take at most three quarters of the bytes when they are stored sparse. */
bool daf__content_is_smaller_sparse(const daf__content *dense);

/* Checks the rules of daf_csc; says where the first breach is. */
typedef struct daf__rule_breach {
    daf__part part;
    uint64_t element; /* of the part, from 0 */
    uint64_t index;   /* which is there, as it is stored */
    char text[160];
} daf__rule_breach;
bool daf__content_obeys(const daf__content *sparse, daf__rule_breach *breach);

/* The same, with the indices of those parts that have a file (may be NULL) read from there and not from the content: what
 * is mapped may be cut meanwhile, which reading tells by an error. *ret: whether it obeys. */
int daf__content_check(const daf__content *sparse, daf__file *const files[DAF__N_PARTS], bool *ret,
                       daf__rule_breach *breach, daf_error *err);

/* Gives the owned parts of a dense content (consumed) to a new array. */
int daf__content_to_array(daf_array **ret, daf__content *c, daf_error *err);

#endif
