/* Writing a shard: jobs of some chunks each are encoded, in parallel when there is an executor, and appended in chunk
 * order, so the bytes do not depend on the threads. While a set of jobs is encoded, the one before is appended. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "error.h"
#include "shard_writer.h"

enum {
    JOB_RAW_BYTES = 1 << 18, /* what one job encodes at least, unless there is less */
    JOBS_PER_THREAD = 4,     /* so that threads which are done early find another */
    MAX_JOBS = 64
};
#define GZIP_MAX_CHUNKS ((uint64_t)1 << 24) /* three bytes of number in a name */

typedef struct daf__encode_job {
    const daf__shard_writer *writer;
    daf__encoder *encoder;
    daf__buf raw, encoded;
    const void *values; /* from element `first_element` on */
    uint64_t first_element;
    uint64_t first, n_chunks;
    int rc;
    daf_error error;
} encode_job;

/* ---- one job, in any thread */

static uint32_t crc_of(const void *data, size_t bytes) {
    return (uint32_t)crc32_z(0, data, bytes);
}

static void put_trailer(daf__buf *to, const daf__zip_entry *e) {
    uint8_t trailer[DAF__GZIP_TRAILER_BYTES];
    bytes_store32(trailer, e->crc);
    bytes_store32(trailer + 4, (uint32_t)e->raw_bytes);
    daf__buf_append(to, trailer, sizeof trailer);
}

static int encode_chunk(encode_job *job, uint64_t k) {
    const daf__shard_writer *w = job->writer;
    const daf__shard_spec *spec = &w->spec;
    size_t header = job->encoded.size, local = daf__shard_local_bytes(w);
    job->raw.size = 0;
    int rc = daf__chunk_gather(&job->raw, &spec->grid, spec->type, job->values, job->first_element, k,
                               &job->error);
    if (rc)
        return rc;
    if (!daf__buf_reserve(&job->encoded, local))
        return daf__no_memory(&job->error);
    job->encoded.size += local;
    size_t start = job->encoded.size;
    rc = daf__encode(job->encoder, &job->encoded, job->raw.data, job->raw.size, &job->error);
    if (rc)
        return rc;
    daf__chunk_record *r = &w->records[k];
    *r = (daf__chunk_record){.offset = header, .packed_bytes = job->encoded.size - start};
    bool stored = w->method == DAF__ZIP_STORED; /* then the ZIP entry is of the frame itself */
    r->raw_bytes = stored ? r->packed_bytes : job->raw.size;
    r->crc = stored ? crc_of(job->encoded.data + start, (size_t)r->packed_bytes)
                    : crc_of(job->raw.data, job->raw.size);
    daf__zip_entry e;
    uint8_t name[DAF__CHUNK_NAME_BYTES];
    daf__shard_entry(w, &e, name, k);
    daf__zip_put_local(job->encoded.data + header, &e, w->method != DAF__ZIP_DEFLATE);
    if (w->method == DAF__ZIP_DEFLATE)
        put_trailer(&job->encoded, &e);
    return daf__buf_check(&job->encoded, &job->error);
}

static void run_job(void *data) {
    encode_job *job = data;
    for (uint64_t k = job->first; k < job->first + job->n_chunks && job->rc == 0; k++)
        job->rc = encode_chunk(job, k);
}

/* ---- sets of jobs */

typedef struct job_set {
    encode_job *jobs;
    unsigned n_used;
    bool running;
} job_set;

/* What is left to be encoded of what was put. */
typedef struct work {
    const void *values;
    uint64_t first_element;
    uint64_t next, end; /* chunks */
} work;

static bool is_parallel(const daf__shard_writer *w) {
    return w->spec.executor && w->spec.executor->n_threads > 1;
}

/* Hands out the next chunks. */
static int start(daf__shard_writer *w, job_set *set, work *left, daf_error *err) {
    const daf_executor *x = w->spec.executor;
    bool alone = !is_parallel(w) || left->end - left->next <= w->per_job;
    int rc = 0;
    for (set->n_used = 0; set->n_used < w->n_jobs && left->next < left->end && rc == 0; set->n_used++) {
        encode_job *job = &set->jobs[set->n_used];
        job->writer = w;
        job->values = left->values;
        job->first_element = left->first_element;
        job->first = left->next;
        job->n_chunks = left->end - left->next < w->per_job ? left->end - left->next : w->per_job;
        job->rc = 0;
        job->encoded.size = 0;
        if (!job->encoder)
            rc = daf__encoder_new(&job->encoder, w->spec.codec, w->spec.level,
                                  daf__shard_element_bytes(&w->spec), err);
        if (rc)
            break;
        left->next += job->n_chunks;
        if (alone || x->submit(x->context, run_job, job) != 0)
            run_job(job);
        else
            set->running = true;
    }
    return rc;
}

static void wait_for(const daf__shard_writer *w, job_set *set) {
    if (set->running)
        w->spec.executor->wait(w->spec.executor->context);
    set->running = false;
}

static int append(daf__shard_writer *w, job_set *set, daf_error *err) {
    int rc = 0;
    for (unsigned i = 0; i < set->n_used && rc == 0; i++) {
        encode_job *job = &set->jobs[i];
        uint64_t base = w->out->size;
        for (uint64_t k = job->first; k < job->first + job->n_chunks; k++)
            w->records[k].offset += base;
        rc = job->rc ? daf__pass(err, &job->error)
                     : daf__out_append(w->out, job->encoded.data, job->encoded.size, err);
    }
    set->n_used = 0;
    return rc;
}

int daf__shard_writer_put(daf__shard_writer *w, uint64_t n_chunks, const void *values, daf_error *err) {
    daf__span span = daf__grid_span(&w->spec.grid, w->next);
    work left = {.values = values,
                 .first_element = span.column * w->spec.grid.rows + span.row,
                 .next = w->next,
                 .end = w->next + n_chunks};
    job_set now = {.jobs = w->jobs}, other = {.jobs = w->jobs + w->n_jobs};
    daf_error details;
    int rc = start(w, &now, &left, err);
    while (rc == 0 && now.n_used) {
        wait_for(w, &now);
        int started = start(w, &other, &left, &details);
        rc = append(w, &now, err);
        if (rc == 0 && started)
            rc = daf__pass(err, &details);
        job_set last = now;
        now = other;
        other = last;
    }
    wait_for(w, &now);
    w->next = left.end;
    return rc;
}

/* ---- the whole */

int daf__shard_writer_new(daf__shard_writer **ret, daf__out *out, const daf__shard_spec *spec,
                          daf_error *err) {
    uint64_t n = spec->grid.n_chunks;
    uint8_t name[DAF__CHUNK_NAME_BYTES];
    if (spec->codec == DAF_CODEC_GZIP && n > GZIP_MAX_CHUNKS)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0,
                         "%" PRIu64 " chunks are more than a gzip shard can number; use larger ones", n);
    daf__shard_writer *w = calloc(1, sizeof *w);
    if (!w)
        return daf__no_memory(err);
    size_t width = spec->type == DAF_STRING ? DAF__STRING_SIZE_ESTIMATE : daf_type_bytes(spec->type);
    *w = (daf__shard_writer){.spec = *spec,
                             .method = daf__codec_row_of(spec->codec)->zip_method,
                             .name_bytes = daf__chunk_name(name, &spec->grid, spec->codec, 0),
                             .out = out,
                             .n_jobs = 1,
                             .per_job = JOB_RAW_BYTES / (spec->grid.chunk_elements * width) + 1};
    if (is_parallel(w)) {
        unsigned threads = spec->executor->n_threads;
        w->n_jobs = threads > MAX_JOBS / JOBS_PER_THREAD ? MAX_JOBS : threads * JOBS_PER_THREAD;
    }
    w->jobs = calloc((size_t)w->n_jobs * 2, sizeof *w->jobs);
    w->records = n < SIZE_MAX / sizeof *w->records ? calloc((size_t)n, sizeof *w->records) : NULL;
    int rc = w->jobs && w->records ? daf__shard_begin(w, err) : daf__no_memory(err);
    if (rc)
        daf__shard_writer_free(w);
    else
        *ret = w;
    return rc;
}

uint64_t daf__shard_writer_batch(const daf__shard_writer *w) {
    return is_parallel(w) ? w->n_jobs * w->per_job : 1;
}

int daf__shard_writer_finish(daf__shard_writer *w, daf_error *err) {
    return daf__shard_end(w, err);
}

void daf__shard_writer_free(daf__shard_writer *w) {
    if (!w)
        return;
    for (unsigned i = 0; w->jobs && i < 2 * w->n_jobs; i++) {
        daf__encoder_free(w->jobs[i].encoder);
        daf__buf_free(&w->jobs[i].raw);
        daf__buf_free(&w->jobs[i].encoded);
    }
    free(w->jobs);
    free(w->records);
    free(w);
}

int daf__shard_write(daf__out *out, const daf__shard_spec *spec, const void *values, daf_error *err) {
    daf__shard_writer *w;
    int rc = daf__shard_writer_new(&w, out, spec, err);
    if (rc)
        return rc;
    rc = daf__shard_writer_put(w, spec->grid.n_chunks, values, err);
    if (rc == 0)
        rc = daf__shard_writer_finish(w, err);
    daf__shard_writer_free(w);
    return rc;
}
