/* What lies behind all that is understood of a torn archive: whether a writable open may cut it off. Only what an append that
 * was interrupted leaves may go: zeros, a directory that is not whole, one entry of our shape that the file's end cuts. */
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "base/bytes.h"
#include "error.h"

enum { PIECE = 1 << 20, WORD = 4, LOCAL_SHAPE = 45, FIELD_BYTES = DAF__ZIP_LOCAL_EXTRA_BYTES - 4 };
#define LOCAL_SIGNATURE "PK\3\4"

bool daf__archive_is_own_local(const uint8_t *local, const daf__zip_entry *e) {
    const uint8_t *extra = local + DAF__ZIP_LOCAL_BYTES + e->name_bytes;
    return e->method == DAF__ZIP_STORED &&
           !(e->flags & (DAF__ZIP_DESCRIPTOR_FLAG | DAF__ZIP_ENCRYPTED_FLAG)) &&
           bytes_load16(local + 4) == LOCAL_SHAPE && bytes_load16(local + 28) >= DAF__ZIP_LOCAL_EXTRA_BYTES &&
           bytes_load16(extra) == 1 && bytes_load16(extra + 2) == FIELD_BYTES;
}

/* Whether a directory begins so, or its end records do; a bit may have been lost. */
static bool begins_directory(const uint8_t *p) {
    static const char *const signatures[] = {"PK\1\2", "PK\6\6", "PK\6\7", "PK\5\6"};
    for (unsigned i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        uint32_t differs = bytes_load32(p) ^ bytes_load32((const uint8_t *)signatures[i]);
        if ((differs & (differs - 1)) == 0)
            return true;
    }
    return false;
}

/* What was seen of the rest so far. */
typedef struct rest {
    bool begun; /* something that is not zero came */
    bool good;
} rest;

/* `bytes` are there from `p` on, of which those from `n` on come again with the next piece. */
static void look_at(rest *r, const uint8_t *p, size_t n, size_t bytes) {
    for (size_t i = 0; i < n && r->good; i++) {
        if (!r->begun && p[i]) {
            r->begun = true;
            r->good = bytes - i < WORD || begins_directory(p + i);
        }
        if (p[i] == 'P' && bytes - i >= WORD && memcmp(p + i, LOCAL_SIGNATURE, WORD) == 0)
            r->good = false;
    }
}

int daf__archive_may_be_cut(bool *ret, daf__file *f, uint64_t from, daf_error *err) {
    uint8_t *piece = malloc(PIECE + WORD);
    rest r = {.good = true};
    int rc = piece ? 0 : daf__no_memory(err);
    for (uint64_t at = from; at < f->size && rc == 0 && r.good; at += PIECE) {
        uint64_t left = f->size - at;
        size_t bytes = left < PIECE + WORD ? (size_t)left : PIECE + WORD;
        rc = f->ops->read(f, piece, bytes, at, err);
        if (rc == 0)
            look_at(&r, piece, bytes < PIECE ? bytes : PIECE, bytes);
    }
    free(piece);
    if (rc == 0)
        *ret = r.good;
    return rc;
}

/* The local header is not whole, or its data are not. */
static bool is_unfinished(const uint8_t *local, uint64_t left, const daf__zip_entry *e, size_t width) {
    return daf__archive_is_own_local(local, e) && e->packed_bytes > left - width;
}

int daf__archive_may_be_cut_behind_locals(bool *ret, daf__file *f, uint64_t at, daf_error *err) {
    uint64_t left = f->size - at;
    uint8_t head[DAF__ZIP_LOCAL_BYTES], *local;
    daf__zip_entry e;
    *ret = true;
    if (left < sizeof head)
        return 0;
    int rc = f->ops->read(f, head, sizeof head, at, err);
    size_t width = rc ? 0 : daf__zip_local_bytes(head);
    if (rc || width > left)
        return rc;
    if (width == 0)
        return daf__archive_may_be_cut(ret, f, at, err);
    local = malloc(width);
    if (!local)
        return daf__no_memory(err);
    rc = f->ops->read(f, local, width, at, err);
    if (rc == 0)
        *ret = daf__zip_parse_local(local, width, &e) > 0 && is_unfinished(local, left, &e, width);
    free(local);
    return rc;
}
