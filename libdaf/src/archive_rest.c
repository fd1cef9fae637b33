/* What lies behind all that is understood of a torn archive: whether a writable open may cut it off. Only what an append that
 * was interrupted leaves may go: zeros, a directory that is not whole, one entry of our shape that the file's end cuts. */
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "base/bytes.h"
#include "error.h"
#include "shard.h"

enum {
    PIECE = 1 << 20,
    WORD = 4,
    LOCAL_SHAPE = 45,
    FIELD_BYTES = DAF__ZIP_LOCAL_EXTRA_BYTES - 4,
    HEAD_BYTES = 256, /* of an entry's header and name; of longer names the beginning */
    NEWEST_VERSION = 63,
    LAST_METHOD = 99
};
#define LOCAL_SIGNATURE "PK\3\4"
#define CENTRAL_SIGNATURE "PK\1\2"

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

/* ---- entries that nobody has found */

static bool is_chunk_name(const uint8_t *name, size_t bytes) {
    bool numbers = bytes > 2 && memcmp(name, "c/", 2) == 0;
    for (size_t i = 2; i < bytes && numbers; i++)
        numbers = name[i] == '/' || (name[i] >= '0' && name[i] <= '9');
    return numbers || (bytes == sizeof DAF__CODEC_JSON - 1 && memcmp(name, DAF__CODEC_JSON, bytes) == 0);
}

/* Whether the header of an entry of the archive begins here, local or in a directory, rather than one of a chunk inside of a
 * shard, whose name is numbers or (gzip) no text. */
static bool begins_entry(const uint8_t *p, size_t there) {
    bool central = memcmp(p, CENTRAL_SIGNATURE, WORD) == 0;
    size_t name_at = central ? DAF__ZIP_CENTRAL_BYTES : DAF__ZIP_LOCAL_BYTES;
    if (there < name_at || (!central && memcmp(p, LOCAL_SIGNATURE, WORD) != 0))
        return false;
    const uint8_t *fields = central ? p + 2 : p; /* behind who made it */
    size_t bytes = bytes_load16(p + (central ? 28 : 26)), seen = there - name_at;
    if (bytes_load16(fields + 4) > NEWEST_VERSION || bytes_load16(fields + 8) > LAST_METHOD || bytes == 0)
        return false;
    if (bytes <= seen && is_chunk_name(p + name_at, bytes))
        return false;
    for (size_t i = 0; i < bytes && i < seen; i++)
        if (p[name_at + i] < ' ')
            return false;
    return true;
}

static bool has_entries(const uint8_t *p, size_t n, size_t bytes) {
    for (size_t i = 0; i < n; i++)
        if (p[i] == 'P' && bytes - i >= WORD && begins_entry(p + i, bytes - i))
            return true;
    return false;
}

int daf__archive_holds_entries(bool *ret, daf__file *f, uint64_t from, uint64_t end, daf_error *err) {
    uint8_t *piece = malloc(PIECE + HEAD_BYTES);
    bool found = false;
    int rc = piece ? 0 : daf__no_memory(err);
    for (uint64_t at = from; at < end && rc == 0 && !found; at += PIECE) {
        uint64_t left = f->size - at, here = end - at;
        size_t bytes = left < PIECE + HEAD_BYTES ? (size_t)left : PIECE + HEAD_BYTES;
        rc = f->ops->read(f, piece, bytes, at, err);
        if (rc == 0)
            found = has_entries(piece, here < PIECE ? (size_t)here : PIECE, bytes);
    }
    free(piece);
    if (rc == 0)
        *ret = found;
    return rc;
}

/* ---- behind the last local header that was understood */

static bool is_own_head(const uint8_t *head) {
    return bytes_load16(head + 4) == LOCAL_SHAPE && bytes_load16(head + 8) == DAF__ZIP_STORED &&
           !(bytes_load16(head + 6) & (DAF__ZIP_DESCRIPTOR_FLAG | DAF__ZIP_ENCRYPTED_FLAG));
}

/* Whether the local header of our shape, or its data, are cut by the file's end. */
static int is_unfinished(bool *ret, daf__file *f, uint64_t at, size_t width, daf_error *err) {
    uint64_t left = f->size - at;
    uint8_t *local = width > left ? NULL : malloc(width);
    daf__zip_entry e;
    *ret = width > left;
    if (*ret || !local)
        return *ret ? 0 : daf__no_memory(err);
    int rc = f->ops->read(f, local, width, at, err);
    if (rc == 0)
        *ret = daf__zip_parse_local(local, width, &e) > 0 && daf__archive_is_own_local(local, &e) &&
               e.packed_bytes > left - width;
    free(local);
    return rc;
}

int daf__archive_may_be_cut_behind_locals(bool *ret, daf__file *f, uint64_t at, daf_error *err) {
    uint8_t head[DAF__ZIP_LOCAL_BYTES];
    bool unfinished = false, holds = true;
    *ret = true;
    if (f->size - at < sizeof head)
        return 0;
    int rc = f->ops->read(f, head, sizeof head, at, err);
    size_t width = rc ? 0 : daf__zip_local_bytes(head);
    if (rc == 0 && width == 0)
        return daf__archive_may_be_cut(ret, f, at, err);
    if (rc == 0 && is_own_head(head))
        rc = is_unfinished(&unfinished, f, at, width, err);
    /* Its lengths may lie. */
    if (rc == 0 && unfinished)
        rc = daf__archive_holds_entries(&holds, f, at + sizeof head, f->size, err);
    *ret = unfinished && !holds;
    return rc;
}
