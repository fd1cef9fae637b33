/* The transpose of a dense matrix of numbers, written band by band, so that it is never in memory whole. */
#ifndef DAF_SRC_BANDS_H
#define DAF_SRC_BANDS_H

#include "property.h"

/* Where the matrix is. */
typedef struct daf__bands {
    daf_type type;
    uint64_t rows, columns;
    const void *values; /* column-major; NULL: */
    daf_reader *reader;
} daf__bands;

/* Whether the transpose of such values can be written by bands, as the options want it. o: NULL: the defaults. */
bool daf__bands_suit(const daf_set_options *o, daf_type type);

/* Stages the transpose as the property `other`. `there`: something is, and is replaced. */
int daf__bands_stage(daf__edit *e, const daf__property *other, const daf__bands *from,
                     const daf_set_options *o, bool there, daf_error *err);

#endif
