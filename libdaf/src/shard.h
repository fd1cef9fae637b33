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

enum {
    DAF__CHUNK_NAME_BYTES = 48,
    DAF__INDEX_ENTRY_BYTES = 16,
    DAF__INDEX_CRC_BYTES = 4,
    DAF__GZIP_NAME_BYTES = 10,  /* the header of a gzip member */
    DAF__GZIP_TRAILER_BYTES = 8 /* its end: CRC-32 and size */
};

/* The entry name of chunk k; all of a shard have one length. Returns the length. */
size_t daf__chunk_name(uint8_t name[DAF__CHUNK_NAME_BYTES], const daf__grid *g, daf_codec codec, uint64_t k);

/* ---- values (shared with flat data) */

/* Copies n values between host order and the file's; Bool becomes 0 or 1. */
void daf__values_copy(void *to, daf_type type, const void *from, size_t n);

/* Appends the raw bytes of chunk k, padded. values: column-major (String: const char *const *), from the element with
 * number first_element on. */
int daf__chunk_gather(daf__buf *raw, const daf__grid *g, daf_type type, const void *values,
                      uint64_t first_element, uint64_t k, daf_error *err);

/* The entry behind the chunks of a blosc shard, which says how they are encoded. */
#define DAF__CODEC_JSON "codec.json"

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

/* The same by parts. The out (empty to begin with, and borrowed) and the executor must outlive the writer. */
typedef struct daf__shard_writer daf__shard_writer;

int daf__shard_writer_new(daf__shard_writer **ret, daf__out *out, const daf__shard_spec *spec,
                          daf_error *err);
void daf__shard_writer_free(daf__shard_writer *w); /* NULL is fine */

/* Encodes and appends the next chunks. values: from the first element of the first of them on. */
int daf__shard_writer_put(daf__shard_writer *w, uint64_t n_chunks, const void *values, daf_error *err);

/* How many chunks are best put at once, so that all threads have work. */
uint64_t daf__shard_writer_batch(const daf__shard_writer *w);

/* Writes directory and index; all chunks were put. */
int daf__shard_writer_finish(daf__shard_writer *w, daf_error *err);

/* ---- reading */

/* A shard that is open for reading. Nothing of it is trusted: entries are checked as they are used, and everything is
 * copied from the file, so a file that is cut meanwhile is an error. */
typedef struct daf__shard {
    daf__file *file; /* borrowed */
    daf__grid grid;
    daf_type type;
    daf_codec codec;
    uint16_t method;              /* of ZIP, as the codec implies */
    const daf_executor *executor; /* or NULL */
    daf__zip_directory directory;
    size_t entry_bytes;         /* of each entry of the directory */
    daf__buf entries;           /* some of them, */
    uint64_t first_entry;       /* from this one on */
    daf__buf index;             /* the leading index, where it has to stand in for the directory */
    struct daf__batch *batches; /* what decoding needs; NULL before the first time */
} daf__shard;

/* Looks for the chunks by the end records and the first entry of the directory, or, when an "indexed+zipped" shard has
 * fewer entries than chunks, by its leading index.
 * Returns 0; DAF_ERR_TRUNCATED; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED the codec; DAF_ERR_LIMIT; ... */
int daf__shard_open(daf__shard *ret, daf__file *file, const daf__grid *grid, daf_type type,
                    const daf__packing *packing, const daf_executor *executor, daf_error *err);
void daf__shard_close(daf__shard *s);

/* Decodes the elements in the box (NULL: all), and no chunk that holds none of them: a numeric type to values
 * [box->n_rows * box->n_columns], which are zero to begin with; a String one to texts. */
int daf__shard_read_values(daf__shard *s, const daf__span *box, void *values, daf_error *err);
int daf__shard_read_texts(daf__shard *s, const daf__span *box, daf__texts *ret, daf_error *err);

/* Checks the leading index of an "indexed+zipped" shard: its CRC-32C, and that it says what the directory says.
 * Returns 0; DAF_ERR_CORRUPT; DAF_ERR_TRUNCATED; ... */
int daf__shard_check_index(daf__shard *s, daf_error *err);

/* Looks at the places of all chunks, and of Strings at what their frames say of them. *n_stored: the chunks that are in the
 * file; *text_bytes: of all texts. Returns as reading. */
int daf__shard_survey(daf__shard *s, uint64_t *n_stored, uint64_t *text_bytes, daf_error *err);

/* ---- inside of reading */

/* Where a chunk lies in the file, as the directory (or the index) says. */
typedef struct daf__place {
    bool absent;           /* not stored: zeros, or empty texts */
    bool by_index;         /* `offset` is that of the data (of gzip: of the whole member) */
    uint64_t offset;       /* else of the local header */
    uint64_t header_bytes; /* of the local header, most likely */
    uint64_t packed_bytes;
    uint64_t raw_bytes; /* 0: known by the data only */
    uint32_t crc;
} daf__place;

/* hint: how many chunks from k on will be asked for. */
int daf__shard_place(daf__shard *s, daf__place *ret, uint64_t k, uint64_t hint, daf_error *err);

/* Raw bytes of a chunk: of texts 0, since only the data tell. */
uint64_t daf__shard_chunk_bytes(const daf__shard *s);

void daf__shard_drop_batches(daf__shard *s);

/* Checks what a chunk claims to hold. */
int daf__shard_check_raw(const daf__shard *s, uint64_t k, uint64_t raw_bytes, uint64_t packed_bytes,
                         daf_error *err);

/* Of a chunk whose place does not tell its raw bytes, what the frame says: `there` bytes of it, up to all. Not gzip. */
enum { DAF__FRAME_HEAD_BYTES = 18 };
int daf__shard_ask_frame(const daf__shard *s, uint64_t k, daf__place *place, const uint8_t *frame,
                         size_t there, daf_error *err);

/* DAF_ERR_CORRUPT, with a sentence; any thread. */
int daf__bad_chunk(const daf__shard *s, uint64_t k, uint64_t offset, const char *what, daf_error *err);

/* The chunks that meet the box, in their order; to be freed. */
typedef struct daf__chunk_list {
    uint64_t *chunks;
    uint64_t n;
} daf__chunk_list;

int daf__chunks_of(const daf__grid *g, const daf__span *box, daf__chunk_list *ret, daf_error *err);

/* Copies what the raw chunk k holds of the box to its place. */
void daf__chunk_scatter(const daf__grid *g, daf_type type, uint64_t k, const uint8_t *raw,
                        const daf__span *box, uint8_t *values);

/* Texts that come chunk by chunk. */
typedef struct daf__text_places {
    daf__buf pool;
    uint64_t *offsets; /* of each text of the box; 0: empty so far */
    daf__span box;
} daf__text_places;

int daf__text_places_init(daf__text_places *p, const daf__span *box, daf_error *err);
/* raw: of chunk k; NULL: absent. */
int daf__text_places_take(daf__text_places *p, const daf__shard *s, uint64_t k, const uint8_t *raw,
                          size_t bytes, daf_error *err);
/* Lays the texts out in their order. */
int daf__text_places_finish(daf__text_places *p, daf__texts *ret, daf_error *err);
void daf__text_places_free(daf__text_places *p);

#endif
