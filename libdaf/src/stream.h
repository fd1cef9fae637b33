/* Streams, as the library uses them itself. */
#ifndef DAF_SRC_STREAM_H
#define DAF_SRC_STREAM_H

#include "property.h"

/* repack: the property is there, and its other layout stays. */
int daf__stream_new(daf *d, daf_stream **ret, const daf__property *p, daf_type type,
                    const daf_set_options *options, bool repack, daf_error *err);

/* As daf_stream_finish; also tells the bytes of the files that it puts in place. */
int daf__stream_end(daf_stream *s, uint64_t *bytes, daf_error *err);

#endif
