/* Writing a shard: jobs of some chunks each are encoded, in parallel when there is an executor, and appended in chunk
 * order, so the bytes do not depend on the threads. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "error.h"
#include "shard.h"

enum {
    JOB_RAW_BYTES = 1 << 18, /* what one job encodes at least, unless there is less */
    MAX_JOBS = 64,
    INDEX_ENTRY_BYTES = 16,
    INDEX_CRC_BYTES = 4,
    PIECE_BYTES = 1 << 12
};
#define GZIP_MAX_CHUNKS ((uint64_t)1 << 24) /* three bytes of number in a name */

/* What the directory and the index need to know of a chunk. */
typedef struct chunk_record {
    uint64_t offset; /* of the local header */
    uint64_t packed_bytes, raw_bytes;
    uint32_t crc;
} chunk_record;

typedef struct shard_writer {
    const daf__shard_spec *spec;
    const daf__codec_row *codec;
    const void *values;
    size_t name_bytes;
    bool zip64; /* the form of the local headers */
    chunk_record *records;
    daf__out *out;
} shard_writer;

typedef struct shard_job {
    const shard_writer *writer;
    daf__encoder *encoder;
    daf__buf raw, encoded;
    uint64_t first, n_chunks;
    int rc;
    daf_error error;
} shard_job;

static uint8_t *chunk_entry(const shard_writer *w, daf__zip_entry *e, uint8_t name[DAF__CHUNK_NAME_BYTES],
                            uint64_t k) {
    const chunk_record *r = &w->records[k];
    /* The name of a gzip chunk is no UTF-8. */
    unsigned flags = w->codec->zip_method == DAF__ZIP_DEFLATE ? 0 : DAF__ZIP_UTF8_FLAG;
    *e = (daf__zip_entry){.name = name,
                          .name_bytes = (uint16_t)daf__chunk_name(name, &w->spec->grid, w->spec->codec, k),
                          .flags = (uint16_t)flags,
                          .method = w->codec->zip_method,
                          .crc = r->crc,
                          .packed_bytes = r->packed_bytes,
                          .raw_bytes = r->raw_bytes,
                          .offset = r->offset};
    return name;
}

static size_t local_bytes(const shard_writer *w) {
    return DAF__ZIP_LOCAL_BYTES + w->name_bytes + (w->zip64 ? DAF__ZIP_LOCAL_EXTRA_BYTES : 0);
}

/* As blosc sees them. */
static size_t element_bytes(const daf__shard_spec *spec) {
    return spec->type == DAF_STRING ? 1 : daf_type_bytes(spec->type);
}

static uint32_t crc_of(const void *data, size_t bytes) {
    return (uint32_t)crc32_z(0, data, bytes);
}

static int encode_chunk(shard_job *job, uint64_t k) {
    const shard_writer *w = job->writer;
    job->raw.size = 0;
    int rc = daf__chunk_gather(&job->raw, &w->spec->grid, w->spec->type, w->values, k, &job->error);
    if (rc)
        return rc;
    size_t header = job->encoded.size;
    if (!daf__buf_reserve(&job->encoded, local_bytes(w)))
        return daf__no_memory(&job->error);
    job->encoded.size += local_bytes(w);
    size_t start = job->encoded.size;
    rc = daf__encode(job->encoder, &job->encoded, job->raw.data, job->raw.size, &job->error);
    if (rc)
        return rc;
    chunk_record *r = &w->records[k];
    *r = (chunk_record){.offset = header, .packed_bytes = job->encoded.size - start};
    bool stored = w->codec->zip_method == DAF__ZIP_STORED; /* then the ZIP entry is of the frame itself */
    r->raw_bytes = stored ? r->packed_bytes : job->raw.size;
    r->crc = stored ? crc_of(job->encoded.data + start, (size_t)r->packed_bytes)
                    : crc_of(job->raw.data, job->raw.size);
    daf__zip_entry e;
    uint8_t name[DAF__CHUNK_NAME_BYTES];
    chunk_entry(w, &e, name, k);
    daf__zip_put_local(job->encoded.data + header, &e, w->zip64);
    if (w->codec->zip_method == DAF__ZIP_DEFLATE) {
        uint8_t trailer[DAF__GZIP_TRAILER_BYTES];
        bytes_store32(trailer, e.crc);
        bytes_store32(trailer + 4, (uint32_t)e.raw_bytes);
        daf__buf_append(&job->encoded, trailer, sizeof trailer);
    }
    return daf__buf_check(&job->encoded, &job->error);
}

static void run_job(void *data) {
    shard_job *job = data;
    job->encoded.size = 0;
    job->rc = 0;
    for (uint64_t k = job->first; k < job->first + job->n_chunks && job->rc == 0; k++)
        job->rc = encode_chunk(job, k);
}

/* Hands out the chunks from *next on, runs the jobs, returns how many took part. */
static unsigned run_jobs(const shard_writer *w, shard_job *jobs, unsigned n_jobs, uint64_t *next,
                         uint64_t per_job) {
    const daf_executor *x = w->spec->executor;
    uint64_t n_chunks = w->spec->grid.n_chunks;
    unsigned n = 0;
    for (; n < n_jobs && *next < n_chunks; n++) {
        shard_job *job = &jobs[n];
        job->first = *next;
        job->n_chunks = n_chunks - *next < per_job ? n_chunks - *next : per_job;
        *next += job->n_chunks;
        if (n_jobs == 1 || x->submit(x->context, run_job, job) != 0)
            run_job(job);
    }
    if (n_jobs > 1)
        x->wait(x->context);
    return n;
}

static int append_job(const shard_writer *w, shard_job *job, daf_error *err) {
    if (job->rc)
        return daf__pass(err, &job->error);
    uint64_t base = w->out->size;
    for (uint64_t k = job->first; k < job->first + job->n_chunks; k++)
        w->records[k].offset += base;
    return daf__out_append(w->out, job->encoded.data, job->encoded.size, err);
}

static void free_jobs(shard_job *jobs, unsigned n) {
    for (unsigned i = 0; jobs && i < n; i++) {
        daf__encoder_free(jobs[i].encoder);
        daf__buf_free(&jobs[i].raw);
        daf__buf_free(&jobs[i].encoded);
    }
    free(jobs);
}

static unsigned count_jobs(const daf__shard_spec *spec, uint64_t per_job) {
    uint64_t n = spec->executor ? spec->executor->n_threads : 1,
             work = (spec->grid.n_chunks - 1) / per_job + 1;
    n = n < work ? n : work;
    return n < 1 ? 1 : n > MAX_JOBS ? MAX_JOBS : (unsigned)n;
}

static int write_chunks(const shard_writer *w, daf_error *err) {
    const daf__shard_spec *spec = w->spec;
    size_t width = spec->type == DAF_STRING ? DAF__STRING_SIZE_ESTIMATE : daf_type_bytes(spec->type);
    uint64_t per_job = JOB_RAW_BYTES / (spec->grid.chunk_elements * width) + 1;
    unsigned n_jobs = count_jobs(spec, per_job);
    shard_job *jobs = calloc(n_jobs, sizeof *jobs);
    if (!jobs)
        return daf__no_memory(err);
    int rc = 0;
    for (unsigned i = 0; i < n_jobs && rc == 0; i++) {
        jobs[i].writer = w;
        rc = daf__encoder_new(&jobs[i].encoder, spec->codec, spec->level, element_bytes(spec), err);
    }
    for (uint64_t next = 0; next < spec->grid.n_chunks && rc == 0;) {
        unsigned n = run_jobs(w, jobs, n_jobs, &next, per_job);
        for (unsigned i = 0; i < n && rc == 0; i++)
            rc = append_job(w, &jobs[i], err);
    }
    free_jobs(jobs, n_jobs);
    return rc;
}

static int append_zeros(daf__out *out, uint64_t bytes, daf_error *err) {
    static const uint8_t zeros[PIECE_BYTES];
    int rc = 0;
    while (bytes > 0 && rc == 0) {
        size_t n = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;
        rc = daf__out_append(out, zeros, n, err);
        bytes -= n;
    }
    return rc;
}

/* ---- codec.json, which says in a stored shard how the chunks are encoded; our own readers do without */

static void render_codec(daf__buf *json, const daf__shard_spec *spec) {
    bool texts = spec->type == DAF_STRING;
    bool lz4 = spec->codec == DAF_CODEC_BLOSC_LZ4_BITSHUFFLE;
    daf__buf_printf(
        json,
        "[{\"configuration\":{%s},\"name\":\"%s\"},"
        "{\"configuration\":{\"blocksize\":0,\"clevel\":%d,\"cname\":\"%s\",\"shuffle\":\"bitshuffle\","
        "\"typesize\":%zu},\"name\":\"blosc\"}]",
        texts ? "" : "\"endian\":\"little\"", texts ? "vlen-utf8" : "bytes", spec->level,
        lz4 ? "lz4" : "zstd", element_bytes(spec));
}

static int write_codec(const shard_writer *w, daf__zip_entry *ret, daf_error *err) {
    daf__buf json = {0};
    render_codec(&json, w->spec);
    int rc = daf__buf_check(&json, err);
    if (rc)
        return rc;
    *ret = (daf__zip_entry){.name = (const uint8_t *)DAF__CODEC_JSON,
                            .name_bytes = sizeof DAF__CODEC_JSON - 1,
                            .flags = DAF__ZIP_UTF8_FLAG,
                            .method = DAF__ZIP_STORED,
                            .crc = crc_of(json.data, json.size),
                            .packed_bytes = json.size,
                            .raw_bytes = json.size,
                            .offset = w->out->size};
    uint8_t header[DAF__ZIP_LOCAL_BYTES + sizeof DAF__CODEC_JSON + DAF__ZIP_LOCAL_EXTRA_BYTES];
    rc = daf__out_append(w->out, header, daf__zip_put_local(header, ret, true), err);
    if (rc == 0)
        rc = daf__out_append(w->out, json.data, json.size, err);
    daf__buf_free(&json);
    return rc;
}

static int write_directory(const shard_writer *w, daf_error *err) {
    uint8_t bytes[DAF__ZIP_CENTRAL_BYTES + DAF__CHUNK_NAME_BYTES + DAF__ZIP_CENTRAL_EXTRA_BYTES];
    uint8_t name[DAF__CHUNK_NAME_BYTES], end[DAF__ZIP_END_BYTES];
    daf__zip_entry codec, e;
    uint64_t n = w->spec->grid.n_chunks;
    bool stored = w->codec->zip_method == DAF__ZIP_STORED;
    int rc = stored ? write_codec(w, &codec, err) : 0;
    uint64_t start = w->out->size;
    for (uint64_t k = 0; k < n && rc == 0; k++) {
        chunk_entry(w, &e, name, k);
        rc = daf__out_append(w->out, bytes, daf__zip_put_central(bytes, &e), err);
    }
    if (rc == 0 && stored)
        rc = daf__out_append(w->out, bytes, daf__zip_put_central(bytes, &codec), err);
    if (rc)
        return rc;
    daf__zip_put_end(end, n + stored, w->out->size - start, start);
    return daf__out_append(w->out, end, sizeof end, err);
}

/* The index covers what a Zarr codec eats: a zstd frame, or a whole gzip member, whose header is the entry's name. */
static int write_index(const shard_writer *w, daf_error *err) {
    uint64_t n = w->spec->grid.n_chunks;
    bool gzip = w->codec->zip_method == DAF__ZIP_DEFLATE;
    size_t bytes = (size_t)n * INDEX_ENTRY_BYTES;
    uint8_t *index = malloc(bytes + INDEX_CRC_BYTES);
    if (!index)
        return daf__no_memory(err);
    for (uint64_t k = 0; k < n; k++) {
        const chunk_record *r = &w->records[k];
        uint64_t start = gzip ? DAF__ZIP_LOCAL_BYTES : local_bytes(w);
        uint64_t extra = gzip ? w->name_bytes + DAF__GZIP_TRAILER_BYTES : 0;
        bytes_store64(index + k * INDEX_ENTRY_BYTES, r->offset + start);
        bytes_store64(index + k * INDEX_ENTRY_BYTES + 8, r->packed_bytes + extra);
    }
    bytes_store32(index + bytes, common_crc32c(0, index, bytes));
    int rc = daf__out_patch(w->out, 0, index, bytes + INDEX_CRC_BYTES, err);
    free(index);
    return rc;
}

int daf__shard_write(daf__out *out, const daf__shard_spec *spec, const void *values, daf_error *err) {
    uint64_t n = spec->grid.n_chunks;
    uint8_t name[DAF__CHUNK_NAME_BYTES];
    shard_writer w = {.spec = spec, .codec = daf__codec_row_of(spec->codec), .values = values, .out = out};
    w.zip64 = w.codec->zip_method != DAF__ZIP_DEFLATE;
    w.name_bytes = daf__chunk_name(name, &spec->grid, spec->codec, 0);
    if (spec->codec == DAF_CODEC_GZIP && n > GZIP_MAX_CHUNKS)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0,
                         "%" PRIu64 " chunks are more than a gzip shard can number; use larger ones", n);
    if (n > SIZE_MAX / sizeof *w.records || !(w.records = calloc((size_t)n, sizeof *w.records)))
        return daf__no_memory(err);
    int rc = append_zeros(out, n * INDEX_ENTRY_BYTES + INDEX_CRC_BYTES, err);
    if (rc == 0)
        rc = write_chunks(&w, err);
    if (rc == 0)
        rc = write_directory(&w, err);
    if (rc == 0)
        rc = write_index(&w, err);
    free(w.records);
    return rc;
}
