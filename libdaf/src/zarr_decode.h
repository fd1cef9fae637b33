/* The elements of a Zarr array of any codecs and chunks that we know (specification "ZarrDaf", section 7). */
#ifndef DAF_SRC_ZARR_DECODE_H
#define DAF_SRC_ZARR_DECODE_H

#include "codec.h"
#include "text.h"
#include "zarr_node.h"

/* Reads all chunks of the array at `path` of the store. values: [elements], zeroed, filled with little-endian elements
 * in the order of C. Returns 0; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED; DAF_ERR_LIMIT; DAF_ERR_NOMEM; DAF_ERR_IO. */
int daf__zarr_decode_values(daf__store *s, const char *path, const daf__zarr_node *node, void *values,
                            daf_error *err);

/* The same of texts; also DAF_ERR_VALUE a text with a NUL. */
int daf__zarr_decode_texts(daf__store *s, const char *path, const daf__zarr_node *node, daf__texts *ret,
                           daf_error *err);

/* ---- inside */

/* Undoes one codec that makes bytes of bytes, which is to give at most `limit` bytes; replaces *ret.
 * Returns NULL, or what is wrong (daf__codec_no_memory). */
const char *daf__zarr_unpack(daf__buf *ret, daf__zarr_codec_kind kind, const uint8_t *data, size_t bytes,
                             uint64_t limit);

#endif
