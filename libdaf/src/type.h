/* What the library knows about element types and codecs. */
#ifndef DAF_SRC_TYPE_H
#define DAF_SRC_TYPE_H

#include "daf/daf.h"

enum {
    DAF__STRING_SIZE_ESTIMATE =
        16, /* bytes a text counts as when chunks are sized (specification section 8) */
    DAF__MAX_TYPE_BYTES = 8
};

bool daf__type_is_signed(daf_type type);
bool daf__type_is_unsigned(daf_type type);
bool daf__type_is_float(daf_type type);

typedef struct daf__codec_row {
    daf_codec codec;
    const char *name;
    uint16_t zip_method; /* of the chunks' entries in a shard */
    int level_min, level_max;
} daf__codec_row;

/* NULL for DAF_CODEC_DEFAULT and unknown values. */
const daf__codec_row *daf__codec_row_of(daf_codec codec);

#endif
