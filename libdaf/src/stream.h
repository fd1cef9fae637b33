/* Streams, as the library uses them itself. */
#ifndef DAF_SRC_STREAM_H
#define DAF_SRC_STREAM_H

#include "property.h"

/* repack: the property is there, and its other layout stays. */
int daf__stream_new(daf *d, daf_stream **ret, const daf__property *p, daf_type type,
                    const daf_set_options *options, bool repack, daf_error *err);

#endif
