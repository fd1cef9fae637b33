/* The ZIP structures of a shard, entry by entry: width, method, name, local header, extra fields. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "error.h"
#include "verify.h"

enum { WINDOW_BYTES = 1 << 18, LOCAL_ROOM = 30 + 300, FRAME_HEAD = 18 };

typedef enum tally_kind {
    T_STRIDE,
    T_METHOD,
    T_ORDER,
    T_NAME,
    T_LOCAL,
    T_EXTRA,
    T_FRAME,
    T_TRAILER,
    T_ABSENT,
    T_CHUNK,
    N_TALLIES
} tally_kind;

typedef struct shard_check {
    daf__verifier *v;
    daf__shard shard;
    const char *place;
    bool indexed;
    daf__tally tallies[N_TALLIES];
} shard_check;

static void init_tallies(shard_check *c) {
    static const daf_problem_code codes[N_TALLIES] = {
        DAF_PROBLEM_SHARD_STRIDE, DAF_PROBLEM_SHARD_METHOD, DAF_PROBLEM_SHARD_ORDER, DAF_PROBLEM_SHARD_NAME,
        DAF_PROBLEM_LOCAL_HEADER, DAF_PROBLEM_SHARD_EXTRA,  DAF_PROBLEM_FRAME_SIZE,  DAF_PROBLEM_GZIP_TRAILER,
        DAF_PROBLEM_SHARD_ABSENT, DAF_PROBLEM_CHUNK};
    for (size_t i = 0; i < N_TALLIES; i++)
        c->tallies[i].code = codes[i];
}

/* ---- names */

/* The number of the chunk that a name such as "c/01/12" speaks of; UINT64_MAX: of none. */
static uint64_t number_in_name(const daf__grid *g, const daf__zip_entry *e) {
    char text[DAF__CHUNK_NAME_BYTES + 1], *p = text + 1;
    uint64_t parts[2] = {0, 0};
    unsigned n = 0;
    if (e->name_bytes > DAF__CHUNK_NAME_BYTES || e->name_bytes < 3 || e->name[0] != 'c')
        return UINT64_MAX;
    memcpy(text, e->name, e->name_bytes);
    text[e->name_bytes] = 0;
    for (; *p == '/' && n < 2; n++)
        parts[n] = strtoull(p + 1, &p, 10);
    if (*p || n != (g->kind == DAF__MATRIX ? 2u : 1u))
        return UINT64_MAX;
    return n == 2 ? parts[1] + parts[0] * g->row_chunks : parts[0];
}

static void check_name(shard_check *c, uint64_t k, const daf__zip_entry *e, uint64_t at) {
    uint8_t expected[DAF__CHUNK_NAME_BYTES];
    const daf__grid *g = &c->shard.grid;
    size_t bytes = daf__chunk_name(expected, g, c->shard.codec, k);
    if (bytes == e->name_bytes && memcmp(expected, e->name, bytes) == 0)
        return;
    uint64_t named = number_in_name(g, e);
    for (uint64_t other = 0; c->shard.codec == DAF_CODEC_GZIP && other < g->n_chunks && named == UINT64_MAX;
         other++)
        if (daf__chunk_name(expected, g, c->shard.codec, other) == e->name_bytes &&
            memcmp(expected, e->name, e->name_bytes) == 0)
            named = other;
    if (named != UINT64_MAX && named != k)
        daf__count(&c->tallies[T_ORDER], at, "entry %" PRIu64 " is named as chunk %" PRIu64, k, named);
    else
        daf__count(&c->tallies[T_NAME], at, "entry %" PRIu64 " has another name than its chunk", k);
}

/* ---- local headers and what follows them */

static void check_frame(shard_check *c, uint64_t k, const uint8_t *data, size_t bytes, uint64_t at) {
    if (c->shard.codec != DAF_CODEC_ZSTD)
        return;
    unsigned long long size = ZSTD_getFrameContentSize(data, bytes);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN)
        daf__count(&c->tallies[T_FRAME], at, "chunk %" PRIu64, k);
}

static int check_trailer(shard_check *c, uint64_t k, const daf__zip_entry *e, uint64_t at) {
    uint8_t trailer[DAF__GZIP_TRAILER_BYTES];
    daf__file *f = c->shard.file;
    if (!c->indexed)
        return 0;
    bool right = at <= f->size && f->size - at >= sizeof trailer;
    int rc = right ? f->ops->read(f, trailer, sizeof trailer, at, c->v->err) : 0;
    if (rc)
        return rc;
    if (!right || bytes_load32(trailer) != e->crc || bytes_load32(trailer + 4) != (uint32_t)e->raw_bytes)
        daf__count(&c->tallies[T_TRAILER], at, "chunk %" PRIu64, k);
    return 0;
}

static int check_local(shard_check *c, uint64_t k, const daf__zip_entry *e) {
    uint8_t head[LOCAL_ROOM + FRAME_HEAD];
    daf__file *f = c->shard.file;
    daf__zip_entry local;
    uint64_t there = e->offset < f->size ? f->size - e->offset : 0;
    size_t bytes = there < sizeof head ? (size_t)there : sizeof head;
    int rc = bytes ? f->ops->read(f, head, bytes, e->offset, c->v->err) : 0;
    if (rc)
        return rc;
    size_t width = bytes < DAF__ZIP_LOCAL_BYTES ? 0 : daf__zip_parse_local(head, bytes, &local);
    if (width == 0)
        return 0; /* told when the chunk is read */
    if (local.method != e->method || local.name_bytes != e->name_bytes ||
        memcmp(local.name, e->name, e->name_bytes) != 0)
        daf__count(&c->tallies[T_LOCAL], e->offset, "chunk %" PRIu64 ": another name or method", k);
    size_t extra = width - DAF__ZIP_LOCAL_BYTES - local.name_bytes;
    if (extra != (e->method == DAF__ZIP_DEFLATE ? 0u : (size_t)DAF__ZIP_LOCAL_EXTRA_BYTES))
        daf__count(&c->tallies[T_EXTRA], e->offset, "chunk %" PRIu64 ": %zu bytes in the local header", k,
                   extra);
    if (bytes > width)
        check_frame(c, k, head + width, bytes - width, e->offset + width);
    return e->method == DAF__ZIP_DEFLATE ? check_trailer(c, k, e, e->offset + width + e->packed_bytes) : 0;
}

/* ---- the directory */

static int check_entry(shard_check *c, uint64_t k, const uint8_t *at, size_t bytes) {
    daf__shard *s = &c->shard;
    daf__zip_entry e;
    uint64_t offset = s->directory.offset + k * s->entry_bytes;
    size_t width = daf__zip_parse_central(at, bytes, &e);
    if (width != s->entry_bytes) {
        daf__count(&c->tallies[T_STRIDE], offset, "entry %" PRIu64 " is %s", k,
                   width ? "of another width than the first" : "damaged");
        return 0;
    }
    if (e.method != s->method)
        daf__count(&c->tallies[T_METHOD], offset,
                   "chunk %" PRIu64 ": ZIP method %u, but its codec implies %u", k, e.method, s->method);
    if (width - DAF__ZIP_CENTRAL_BYTES - e.name_bytes != DAF__ZIP_CENTRAL_EXTRA_BYTES)
        daf__count(&c->tallies[T_EXTRA], offset, "chunk %" PRIu64 ": %zu bytes in the directory", k,
                   width - DAF__ZIP_CENTRAL_BYTES - e.name_bytes);
    check_name(c, k, &e, offset);
    return check_local(c, k, &e);
}

static int check_entries(shard_check *c) {
    daf__shard *s = &c->shard;
    uint64_t n = s->grid.n_chunks, per_window = WINDOW_BYTES / s->entry_bytes + 1;
    uint8_t *window = malloc((size_t)per_window * s->entry_bytes);
    int rc = window ? 0 : daf__no_memory(c->v->err);
    for (uint64_t first = 0; first < n && rc == 0; first += per_window) {
        uint64_t some = n - first < per_window ? n - first : per_window;
        rc = s->file->ops->read(s->file, window, (size_t)(some * s->entry_bytes),
                                s->directory.offset + first * s->entry_bytes, c->v->err);
        for (uint64_t i = 0; i < some && rc == 0; i++)
            rc = check_entry(c, first + i, window + i * s->entry_bytes, s->entry_bytes);
    }
    free(window);
    return rc;
}

/* ---- the whole */

static int check_index(shard_check *c) {
    daf_error details = {.code = 0};
    if (!c->indexed || c->tallies[T_STRIDE].n || c->tallies[T_METHOD].n ||
        daf__shard_check_index(&c->shard, &details) == 0)
        return 0;
    return daf__tell_error(c->v, DAF_PROBLEM_SHARD_INDEX, c->place, &details);
}

static void check_absent(shard_check *c) {
    const daf__shard *s = &c->shard;
    for (uint64_t k = 0; k < s->grid.n_chunks && s->index.size; k++)
        if (bytes_load64(s->index.data + k * DAF__INDEX_ENTRY_BYTES) == UINT64_MAX)
            daf__count(&c->tallies[T_ABSENT], DAF_NO_OFFSET, "chunk %" PRIu64 " is not stored", k);
}

static void check_form(const shard_check *c) {
    const daf__zip_directory *d = &c->shard.directory;
    const daf__grid *g = &c->shard.grid;
    if (d->records_offset + DAF__ZIP_END_BYTES != c->shard.file->size)
        daf__tell(c->v, DAF_PROBLEM_SHARD_END, c->place, d->records_offset,
                  "%" PRIu64 " bytes of end records and comment, and not %d",
                  c->shard.file->size - d->records_offset, (int)DAF__ZIP_END_BYTES);
    if (!c->indexed)
        daf__tell(c->v, DAF_PROBLEM_ZIPPED, c->place, DAF_NO_OFFSET, "has no leading index");
    if (g->chunk_columns > 1)
        daf__tell(c->v, DAF_PROBLEM_WIDE_CHUNKS, c->place, DAF_NO_OFFSET, "chunks of %" PRIu64 " x %" PRIu64,
                  g->chunk_rows, g->chunk_columns);
}

static int check_shard(shard_check *c, daf__number_check *numbers, bool *whole) {
    check_form(c);
    check_absent(c);
    int rc = c->shard.index.size ? 0 : check_entries(c);
    if (rc == 0)
        rc = check_index(c);
    bool readable = c->tallies[T_STRIDE].n == 0 && c->tallies[T_METHOD].n == 0;
    if (rc == 0 && readable)
        rc = daf__verify_chunks(c->v, &c->shard, c->place, numbers, &c->tallies[T_CHUNK]);
    for (size_t i = 0; i < N_TALLIES && rc == 0; i++)
        daf__tell_tally(c->v, &c->tallies[i], c->place);
    *whole = readable && c->tallies[T_CHUNK].n == 0;
    return rc;
}

int daf__verify_shard(daf__verifier *v, daf__file *f, const char *place, const daf__extent *x,
                      const daf__component *p, daf__number_check *numbers, bool *whole) {
    shard_check c = {.v = v, .place = place, .indexed = p->packing.indexed};
    const daf_executor *executor = v->d->has_executor ? &v->d->executor : NULL;
    daf__grid grid;
    daf_error details = {.code = 0};
    daf_codec codec;
    init_tallies(&c);
    *whole = false;
    int rc = daf__grid_make(&grid, x->kind, x->rows, x->columns, &p->packing, f->where, &details);
    if (rc == 0)
        rc = daf__shard_open(&c.shard, f, &grid, p->type, &p->packing, executor, &details);
    if (rc) {
        bool known = daf_codec_parse(&codec, p->packing.compression) == 0;
        rc = daf__tell_error(v, known ? DAF_PROBLEM_SHARD : DAF_PROBLEM_CODEC, place, &details);
        return rc ? rc : daf__looked_at(v, f->size);
    }
    rc = check_shard(&c, numbers, whole);
    daf__shard_close(&c.shard);
    return rc;
}
