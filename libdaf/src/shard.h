/* A shard: the chunks of one packed property in one file, a ZIP archive and (with its leading index) a Zarr v3 shard
 * at once (specification sections 8 to 10). Layout:
 *
 *   index: u64 offset, u64 bytes for each chunk, u32 CRC-32C      ("indexed+zipped" only)
 *   for each chunk: local header, data, for gzip the member's trailer
 *   central directory, in chunk order, all entries of one width
 *   98 bytes of end records
 */
#ifndef DAF_SRC_SHARD_H
#define DAF_SRC_SHARD_H

#include "codec.h"
#include "descriptor.h"
#include "text.h"
#include "zip.h"

/* How a property is divided into chunks. Chunk k covers rows [k % row_chunks * chunk_rows, ...) and columns likewise;
 * the last ones of a dimension are padded to the full shape. A vector has one column. */
typedef struct daf__grid {
    daf__kind kind;
    uint64_t rows, columns;
    uint64_t chunk_rows, chunk_columns;
    uint64_t row_chunks, column_chunks, n_chunks;
    uint64_t chunk_elements; /* of a full chunk */
} daf__grid;

/* rows and columns are not 0. Returns 0; DAF_ERR_LIMIT. */
int daf__grid_make(daf__grid *ret, daf__kind kind, uint64_t rows, uint64_t columns,
                   const daf__packing *packing, const char *where, daf_error *err);

/* The part of chunk k that is not padding. */
typedef struct daf__span {
    uint64_t row, column, n_rows, n_columns;
} daf__span;

daf__span daf__grid_span(const daf__grid *g, uint64_t k);

enum { DAF__CHUNK_NAME_BYTES = 48 };

/* The entry name of chunk k; all of a shard have one length. Returns the length. */
size_t daf__chunk_name(uint8_t name[DAF__CHUNK_NAME_BYTES], const daf__grid *g, daf_codec codec, uint64_t k);

/* ---- values (shared with flat data) */

/* Copies n values between host order and the file's; Bool becomes 0 or 1. */
void daf__values_copy(void *to, daf_type type, const void *from, size_t n);

/* Appends the raw bytes of chunk k of `values` (column-major; String: const char *const *), padded. */
int daf__chunk_gather(daf__buf *raw, const daf__grid *g, daf_type type, const void *values, uint64_t k,
                      daf_error *err);

/* ---- writing */

typedef struct daf__shard_spec {
    daf__grid grid;
    daf_type type;
    daf_codec codec;
    int level;
    const daf_executor *executor; /* or NULL */
} daf__shard_spec;

/* Appends an "indexed+zipped" shard of `values`; the out is empty. */
int daf__shard_write(daf__out *out, const daf__shard_spec *spec, const void *values, daf_error *err);

/* ---- reading */

typedef struct daf__shard {
    daf__file *file; /* borrowed */
    daf__grid grid;
    daf_type type;
    daf_codec codec;
    daf__zip_directory directory;
    daf__buf entries; /* the bytes of the central directory */
    size_t entry_bytes;
    daf__decoder *decoder;
    /* a piece of the file */
    daf__buf window;
    uint64_t window_offset;
    daf__buf raw; /* one chunk */
} daf__shard;

/* Checks the whole directory against the descriptor before anything is decoded; `compression` is the descriptor's.
 * Returns 0; DAF_ERR_TRUNCATED; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED the codec; DAF_ERR_LIMIT; ... */
int daf__shard_open(daf__shard *ret, daf__file *file, const daf__grid *grid, daf_type type,
                    const char *compression, daf_error *err);
void daf__shard_close(daf__shard *s);

/* Decodes chunk k to s->raw, checking its CRC-32. */
int daf__shard_decode(daf__shard *s, uint64_t k, daf__buf *raw, daf_error *err);

/* Decodes everything: a numeric type to values [rows * columns], a String one to texts. */
int daf__shard_read_values(daf__shard *s, void *values, daf_error *err);
int daf__shard_read_texts(daf__shard *s, daf__texts *ret, daf_error *err);

#endif
