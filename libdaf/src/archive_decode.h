/* Entries that are not stored as they are (specification section 13). */
#ifndef DAF_SRC_ARCHIVE_DECODE_H
#define DAF_SRC_ARCHIVE_DECODE_H

#include "archive.h"

/* DAF_ERR_UNSUPPORTED for a method that cannot be read. */
int daf__archive_check_method(const daf__archive_entry *e, const char *name, daf_error *err);

/* Whether the entry's method can pack so many bytes into so few; a damaged directory may tell of any size. */
bool daf__archive_can_hold(const daf__archive_entry *e);

/* Decodes the entry, whose data lie in `f` at `at`, and checks size and CRC. Memory grows with what the data really
 * hold, up to the size that the directory tells of. */
int daf__archive_decode(daf__buf *ret, daf__file *f, uint64_t at, const daf__archive_entry *e,
                        const char *name, daf_error *err);

/* The same without keeping anything: memory for some windows. */
int daf__archive_check(daf__file *f, uint64_t at, const daf__archive_entry *e, const char *name,
                       daf_error *err);

/* The CRC-32 of `bytes` bytes of the file. */
int daf__archive_crc(uint32_t *ret, daf__file *f, uint64_t at, uint64_t bytes, daf_error *err);

/* ---- for the decoders */

/* Compressed bytes, piece by piece. */
typedef struct daf__source {
    daf__file *f;
    uint64_t at, left; /* not read yet */
    uint8_t *piece;
    size_t piece_bytes;
} daf__source;

enum { DAF__SOURCE_PIECE = 1 << 16 };

/* The next piece; *bytes 0: there is none. */
int daf__source_next(daf__source *s, const uint8_t **ret, size_t *bytes, daf_error *err);

/* Decoded bytes; never more than `limit`. */
typedef struct daf__sink {
    daf__buf out;
    uint64_t limit;
    bool
        keeps_none; /* of what comes only the last window stays in `out`, for decoders that copy from there */
    uint64_t dropped; /* bytes before `out` */
    uint32_t crc;     /* of those */
} daf__sink;

static inline uint64_t daf__sink_bytes(const daf__sink *s) {
    return s->dropped + s->out.size;
}

/* Room for more: at least one byte. DAF_ERR_CORRUPT when the limit is reached. */
int daf__sink_room(daf__sink *s, uint8_t **ret, size_t *bytes, daf_error *err);

int daf__inflate64(daf__source *in, daf__sink *out, daf_error *err);

#endif
