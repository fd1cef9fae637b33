#include "shard_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "error.h"

enum {
    JOB_BYTES = 1 << 18, /* what a job reads or decodes before it counts as full */
    JOB_CHUNKS = 64,
    JOBS_PER_THREAD = 4, /* so that threads which are done early find another */
    MAX_JOBS = 64,
    MAX_GAP_BYTES = 4096 /* read over rather than begin another read */
};

typedef struct chunk_work {
    uint64_t k;
    daf__place place;
    size_t data_at; /* in job->packed */
    size_t raw_at;  /* in job->raw */
} chunk_work;

struct daf__job {
    daf__shard *shard;
    daf__decoder *decoder;
    const daf__target *target;
    daf__buf packed, raw;
    chunk_work chunks[JOB_CHUNKS];
    unsigned n_chunks;
    int rc;
    daf_error error;
};

/* ---- making */

static bool is_parallel(const daf__shard *s) {
    return s->executor && s->executor->n_threads > 1;
}

int daf__batch_init(daf__batch *b, daf__shard *s, daf_error *err) {
    unsigned n = is_parallel(s) ? s->executor->n_threads : 1;
    n = n > MAX_JOBS / JOBS_PER_THREAD ? MAX_JOBS : is_parallel(s) ? n * JOBS_PER_THREAD : 1;
    daf__job *jobs = calloc(n, sizeof *jobs);
    if (!jobs)
        return daf__no_memory(err);
    for (unsigned i = 0; i < n; i++)
        jobs[i].shard = s;
    *b = (daf__batch){.shard = s, .jobs = jobs, .n_jobs = n};
    return 0;
}

static void wait_for(daf__batch *b) {
    const daf_executor *x = b->shard->executor;
    if (b->running)
        x->wait(x->context);
    b->running = false;
}

void daf__batch_free(daf__batch *b) {
    if (!b->jobs)
        return;
    wait_for(b);
    for (unsigned i = 0; i < b->n_jobs; i++) {
        daf__decoder_free(b->jobs[i].decoder);
        daf__buf_free(&b->jobs[i].packed);
        daf__buf_free(&b->jobs[i].raw);
    }
    free(b->jobs);
    *b = (daf__batch){0};
}

/* ---- reading */

/* Chooses the chunks of a job. */
static int choose_chunks(daf__job *job, const daf__chunk_list *list, uint64_t *at, daf_error *err) {
    daf__shard *s = job->shard;
    uint64_t chunk_bytes = daf__shard_chunk_bytes(s), bytes = 0;
    int rc = 0;
    job->n_chunks = 0;
    while (*at < list->n && job->n_chunks < JOB_CHUNKS && bytes < JOB_BYTES) {
        chunk_work *w = &job->chunks[job->n_chunks];
        *w = (chunk_work){.k = list->chunks[*at]};
        rc = daf__shard_place(s, &w->place, w->k, list->n - *at, err);
        if (rc)
            return rc;
        if (!w->place.absent)
            bytes += w->place.packed_bytes > chunk_bytes ? w->place.packed_bytes : chunk_bytes;
        job->n_chunks++;
        ++*at;
    }
    return 0;
}

static int read_piece(daf__job *job, uint64_t offset, uint64_t bytes, daf_error *err) {
    daf__file *f = job->shard->file;
    if (offset > f->size || bytes > f->size - offset)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, f->size, "%s: a chunk reaches past the end of the file",
                         f->where);
    uint8_t *to = bytes < SIZE_MAX / 2 ? daf__buf_reserve(&job->packed, (size_t)bytes) : NULL;
    int rc = to ? f->ops->read(f, to, (size_t)bytes, offset, err) : daf__no_memory(err);
    if (rc == 0)
        job->packed.size += (size_t)bytes;
    return rc;
}

static uint64_t end_of(const daf__place *p) {
    return p->offset + p->header_bytes + p->packed_bytes;
}

/* Reads the chunks from `first` on that lie close behind each other; returns their number in *n. */
static int read_run(daf__job *job, unsigned first, unsigned *n, daf_error *err) {
    const daf__place *begin = &job->chunks[first].place;
    uint64_t end = end_of(begin);
    uint32_t gap = job->shard->file->gap_bytes ? job->shard->file->gap_bytes : MAX_GAP_BYTES;
    size_t at = job->packed.size;
    unsigned i = first + 1;
    for (; i < job->n_chunks; i++) {
        const daf__place *p = &job->chunks[i].place;
        if (p->absent || p->offset < end || p->offset - end > gap)
            break;
        end = end_of(p);
    }
    *n = i - first;
    int rc = read_piece(job, begin->offset, end - begin->offset, err);
    for (i = first; i < first + *n; i++)
        job->chunks[i].data_at = at + (size_t)(job->chunks[i].place.offset - begin->offset);
    return rc;
}

/* Goes from the local header to the data. */
static int skip_local(daf__job *job, chunk_work *w, daf_error *err) {
    daf__place *p = &w->place;
    uint64_t header = daf__zip_local_bytes(job->packed.data + w->data_at);
    if (header == 0)
        return daf__bad_chunk(job->shard, w->k, p->offset, "no local header where the directory says", err);
    if (header <= p->header_bytes) { /* then the data were read along */
        w->data_at += (size_t)header;
        p->header_bytes = header;
        return 0;
    }
    size_t at = job->packed.size;
    int rc = read_piece(job, p->offset + header, p->packed_bytes, err);
    w->data_at = at;
    p->header_bytes = header;
    return rc;
}

/* A gzip member: its header must be of the plain kind, its end tells the rest. */
static int skip_gzip(daf__job *job, chunk_work *w, daf_error *err) {
    daf__place *p = &w->place;
    const uint8_t *data = job->packed.data + w->data_at;
    if (p->packed_bytes < DAF__GZIP_NAME_BYTES + DAF__GZIP_TRAILER_BYTES || data[0] != 0x1F ||
        data[1] != 0x8B || data[2] != 8 || (data[3] & 0xFE) != 0)
        return daf__bad_chunk(job->shard, w->k, p->offset, "no gzip member of the plain kind", err);
    const uint8_t *trailer = data + p->packed_bytes - DAF__GZIP_TRAILER_BYTES;
    p->crc = bytes_load32(trailer);
    p->raw_bytes = bytes_load32(trailer + 4);
    p->packed_bytes -= DAF__GZIP_NAME_BYTES + DAF__GZIP_TRAILER_BYTES;
    w->data_at += DAF__GZIP_NAME_BYTES;
    return 0;
}

static int look_at(daf__job *job, chunk_work *w, daf_error *err) {
    const daf__shard *s = job->shard;
    int rc = 0;
    if (w->place.absent)
        return 0;
    if (!w->place.by_index)
        rc = skip_local(job, w, err);
    else if (s->codec == DAF_CODEC_GZIP)
        rc = skip_gzip(job, w, err);
    if (rc == 0 && s->codec == DAF_CODEC_ZSTD && w->place.by_index && s->type != DAF_STRING)
        w->place.raw_bytes = daf__shard_chunk_bytes(s);
    else if (rc == 0 && s->codec != DAF_CODEC_GZIP && w->place.raw_bytes == 0)
        rc = daf__shard_ask_frame(s, w->k, &w->place, job->packed.data + w->data_at,
                                  (size_t)w->place.packed_bytes, err);
    return rc ? rc : daf__shard_check_raw(s, w->k, w->place.raw_bytes, w->place.packed_bytes, err);
}

static int fill_job(daf__job *job, const daf__chunk_list *list, uint64_t *at, daf_error *err) {
    job->packed.size = job->raw.size = 0;
    job->rc = 0;
    int rc = job->decoder ? 0 : daf__decoder_new(&job->decoder, job->shard->codec, err);
    if (rc == 0)
        rc = choose_chunks(job, list, at, err);
    for (unsigned i = 0, n = 1; i < job->n_chunks && rc == 0; i += n) {
        n = 1;
        if (!job->chunks[i].place.absent)
            rc = read_run(job, i, &n, err);
    }
    for (unsigned i = 0; i < job->n_chunks && rc == 0; i++)
        rc = look_at(job, &job->chunks[i], err);
    return rc;
}

int daf__batch_fill(daf__batch *b, const daf__chunk_list *list, uint64_t *at, const daf__target *target,
                    daf_error *err) {
    int rc = 0;
    b->n_used = 0;
    while (b->n_used < b->n_jobs && *at < list->n && rc == 0) {
        daf__job *job = &b->jobs[b->n_used++];
        job->target = target;
        rc = fill_job(job, list, at, err);
    }
    if (rc)
        b->n_used = 0;
    return rc;
}

/* ---- decoding, in any thread */

/* Whether a chunk lies in the values as it lies in the file, so that it is decoded to its place. */
static uint8_t *straight_place(const daf__job *job, uint64_t k) {
    const daf__shard *s = job->shard;
    const daf__grid *g = &s->grid;
    const daf__span *box = &job->target->box;
    daf__span span = daf__grid_span(g, k);
    bool whole = span.n_rows == g->chunk_rows && span.n_columns == g->chunk_columns;
    bool inside = span.row >= box->row && span.row - box->row + span.n_rows <= box->n_rows &&
                  span.column >= box->column && span.column - box->column + span.n_columns <= box->n_columns;
    bool in_one_piece = g->chunk_columns == 1 || span.n_rows == box->n_rows;
    if (!BYTES_HOST_IS_LITTLE || s->type == DAF_BOOL || !whole || !inside || !in_one_piece)
        return NULL;
    uint64_t at = (span.column - box->column) * box->n_rows + span.row - box->row;
    return job->target->values + (size_t)at * daf_type_bytes(s->type);
}

static int decode_data(daf__job *job, const chunk_work *w, void *raw) {
    const daf__shard *s = job->shard;
    const daf__place *p = &w->place;
    const uint8_t *data = job->packed.data + w->data_at;
    size_t packed_bytes = (size_t)p->packed_bytes, raw_bytes = (size_t)p->raw_bytes;
    bool stored = s->method == DAF__ZIP_STORED;
    /* An index has no checksums, but a gzip member has. */
    bool checked = !p->by_index || s->codec == DAF_CODEC_GZIP;
    uint64_t offset = p->offset + p->header_bytes;
    if (checked && stored && (uint32_t)crc32_z(0, data, packed_bytes) != p->crc)
        return daf__bad_chunk(s, w->k, offset, "its checksum does not match", &job->error);
    const char *problem = daf__decode(job->decoder, raw, raw_bytes, data, packed_bytes);
    if (problem == daf__codec_no_memory)
        return daf__no_memory(&job->error);
    if (problem)
        return daf__bad_chunk(s, w->k, offset, problem, &job->error);
    if (checked && !stored && (uint32_t)crc32_z(0, raw, raw_bytes) != p->crc)
        return daf__bad_chunk(s, w->k, offset, "its checksum does not match", &job->error);
    return 0;
}

static int decode_chunk(daf__job *job, chunk_work *w) {
    const daf__shard *s = job->shard;
    size_t bytes = (size_t)w->place.raw_bytes;
    if (w->place.absent)
        return 0;
    uint8_t *straight = job->target ? straight_place(job, w->k) : NULL;
    if (straight)
        return decode_data(job, w, straight);
    if (job->target)
        job->raw.size = 0;
    uint8_t *to = daf__buf_reserve(&job->raw, bytes);
    if (!to)
        return daf__no_memory(&job->error);
    w->raw_at = job->raw.size;
    int rc = decode_data(job, w, to);
    job->raw.size += bytes;
    if (rc == 0 && job->target)
        daf__chunk_scatter(&s->grid, s->type, w->k, to, &job->target->box, job->target->values);
    return rc;
}

static void run_job(void *data) {
    daf__job *job = data;
    for (unsigned i = 0; i < job->n_chunks && job->rc == 0; i++)
        job->rc = decode_chunk(job, &job->chunks[i]);
}

void daf__batch_start(daf__batch *b, bool here) {
    const daf_executor *x = b->shard->executor;
    for (unsigned i = 0; i < b->n_used; i++) {
        if (here || !is_parallel(b->shard) || x->submit(x->context, run_job, &b->jobs[i]) != 0)
            run_job(&b->jobs[i]);
        else
            b->running = true;
    }
}

static int hand_on(const daf__job *job, const daf__sink *sink, daf_error *err) {
    int rc = 0;
    for (unsigned i = 0; i < job->n_chunks && rc == 0; i++) {
        const chunk_work *w = &job->chunks[i];
        const uint8_t *raw = w->place.absent ? NULL : job->raw.data + w->raw_at;
        rc = sink->take(sink->context, w->k, raw, (size_t)w->place.raw_bytes, err);
    }
    return rc;
}

int daf__batch_finish(daf__batch *b, const daf__sink *sink, daf_error *err) {
    int rc = 0;
    wait_for(b);
    for (unsigned i = 0; i < b->n_used && rc == 0; i++) {
        const daf__job *job = &b->jobs[i];
        if (job->rc)
            rc = daf__pass(err, &job->error);
        else if (sink)
            rc = hand_on(job, sink, err);
    }
    b->n_used = 0;
    return rc;
}

/* ---- all of a list */

/* The two batches of a shard. */
static int own_batches(daf__shard *s, daf_error *err) {
    if (s->batches)
        return 0;
    s->batches = calloc(2, sizeof *s->batches);
    int rc = s->batches ? 0 : daf__no_memory(err);
    for (unsigned i = 0; i < 2 && rc == 0; i++)
        rc = daf__batch_init(&s->batches[i], s, err);
    if (rc)
        daf__shard_drop_batches(s);
    return rc;
}

void daf__shard_drop_batches(daf__shard *s) {
    for (unsigned i = 0; s->batches && i < 2; i++)
        daf__batch_free(&s->batches[i]);
    free(s->batches);
    s->batches = NULL;
}

/* Reads the next chunks while those of the other batch are decoded; with one thread, afterwards. */
static int decode_in_turn(daf__shard *s, const daf__chunk_list *list, uint64_t *at, const daf__target *target,
                          const daf__sink *sink, daf_error *err) {
    daf__batch *now = &s->batches[0], *next = &s->batches[is_parallel(s)];
    int rc = daf__batch_fill(now, list, at, target, err);
    while (rc == 0 && now->n_used) {
        bool here =
            !is_parallel(s) || (now->n_used == 1 && *at == list->n); /* one job gains nothing elsewhere */
        int filled = 0;
        daf_error details;
        daf__batch_start(now, here);
        if (next != now)
            filled = daf__batch_fill(next, list, at, target, err);
        rc = daf__batch_finish(now, sink, &details);
        if (rc)
            return daf__pass(err, &details);
        rc = next != now ? filled : daf__batch_fill(next, list, at, target, err);
        daf__batch *last = now;
        now = next;
        next = last;
    }
    return rc;
}

int daf__decode_chunks(daf__shard *s, const daf__chunk_list *list, const daf__target *target,
                       const daf__sink *sink, daf_error *err) {
    uint64_t at = 0;
    int rc = own_batches(s, err);
    return rc ? rc : decode_in_turn(s, list, &at, target, sink, err);
}
