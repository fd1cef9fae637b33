/* What the parts of the shard's writer share. */
#ifndef DAF_SRC_SHARD_WRITER_H
#define DAF_SRC_SHARD_WRITER_H

#include "shard.h"

/* What the directory and the index need to know of a chunk. */
typedef struct daf__chunk_record {
    uint64_t offset; /* of the local header */
    uint64_t packed_bytes, raw_bytes;
    uint32_t crc;
} daf__chunk_record;

struct daf__shard_writer {
    daf__shard_spec spec;
    uint16_t method;
    size_t name_bytes;
    daf__out *out;                /* borrowed */
    daf__chunk_record *records;   /* of all chunks */
    uint64_t next;                /* the first chunk that is not written yet */
    struct daf__encode_job *jobs; /* two sets, in turn */
    unsigned n_jobs;              /* of a set */
    uint64_t per_job;             /* chunks */
};

/* The ZIP entry of a chunk that is encoded; the name points to `name`. */
void daf__shard_entry(const daf__shard_writer *w, daf__zip_entry *e, uint8_t name[DAF__CHUNK_NAME_BYTES],
                      uint64_t k);

/* Bytes of each chunk's local header. */
size_t daf__shard_local_bytes(const daf__shard_writer *w);

/* Bytes of an element, as blosc sees them. */
size_t daf__shard_element_bytes(const daf__shard_spec *spec);

/* Leaves room for the leading index. */
int daf__shard_begin(daf__shard_writer *w, daf_error *err);

/* Writes what comes behind the chunks, and the index. */
int daf__shard_end(daf__shard_writer *w, daf_error *err);

#endif
