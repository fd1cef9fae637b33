/* Blosc by c-blosc, in builds with DAF_WITH_BLOSC: frames of several blocks, as other writers make them. */
#ifndef DAF_SRC_BLOSC_LIBRARY_H
#define DAF_SRC_BLOSC_LIBRARY_H

#include "blosc_frame.h"

/* As daf__blosc_encode and daf__blosc_decode, which these stand in for. */
int daf__blosc_library_encode(daf__blosc_encoder *e, daf__buf *out, const void *raw, size_t raw_bytes,
                              daf_error *err);
const char *daf__blosc_library_decode(daf__blosc_decoder *d, void *raw, size_t raw_bytes, const void *frame,
                                      size_t frame_bytes);

#endif
