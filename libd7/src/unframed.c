/* Blocks with a length and nothing else: no begin and end bits.
 *
 * Each block has a 2-byte little-endian length and so many bytes; joined, these give one run, in which one
 * FileEntry follows the other without anything in between: field number and length of its message tell where it
 * ends. Offsets in the index are file offsets of that first byte, as in valid files. Seen in files of one other
 * writer; the D7 specification, section 5, names the form. */
#include "unframed.h"

#include <string.h>

#include "base/bytes.h"
#include "codec.h"
#include "error.h"
#include "wire.h"

enum { LENGTH_BYTES = 2, BODY_MAX = D7_BLOCK_BYTES - LENGTH_BYTES };

static const char signature[] = "End of D7 Photons Data File";

/* Bytes of the run that lie together in the file. */
typedef struct stretch {
    uint64_t at;
    size_t n; /* 0: the run ends here */
    bool bad; /* the block's length cannot be */
} stretch;

/* From `at` to the end of its block, or of the next one when nothing of the run is left in this. */
static int stretch_at(d7__source *s, uint64_t at, stretch *ret, d7_error *err) {
    for (;;) {
        uint64_t block = at - at % D7_BLOCK_BYTES;
        const uint8_t *p;
        *ret = (stretch){.at = at};
        if (block + LENGTH_BYTES > s->size)
            return 0;
        int rc = d7__source_get(s, block, LENGTH_BYTES, &p, err);
        if (rc != 0)
            return rc;
        size_t length = bytes_load16(p);
        uint64_t begin = block + LENGTH_BYTES, end = begin + length;
        /* All blocks but the last are full. */
        ret->bad = length > BODY_MAX || (length < BODY_MAX && block + D7_BLOCK_BYTES < s->size);
        ret->at = at = at > begin ? at : begin;
        end = end < s->size ? end : s->size;
        ret->n = !ret->bad && at < end ? (size_t)(end - at) : 0;
        if (ret->bad || ret->n > 0)
            return 0;
        at = block + D7_BLOCK_BYTES;
    }
}

/* Appends up to n bytes of the run from *at on; *at goes to where they end. Fewer: the run ends, or *ret_bad. */
static int run_gather(d7__framing *f, uint64_t *at, size_t n, bool *ret_bad, d7_error *err) {
    *ret_bad = false;
    while (n > 0) {
        stretch part;
        const uint8_t *p;
        int rc = stretch_at(f->source, *at, &part, err);
        *ret_bad = rc == 0 && part.bad;
        if (rc != 0 || part.n == 0)
            return rc;
        size_t take = part.n < n ? part.n : n;
        rc = d7__source_get(f->source, part.at, take, &p, err);
        if (rc != 0)
            return rc;
        if (d7__buffer_reserve(f->source->alloc, &f->entry, take) != 0)
            return d7__fail(err, D7_ERR_NOMEM, 0, part.at, "%s: out of memory", f->source->path);
        memcpy(f->entry.data + f->entry.n, p, take);
        f->entry.n += take;
        n -= take;
        *at = part.at + take;
    }
    return 0;
}

/* Bytes of the entry that begins so: field number, length, message. Returns 0 when none does; SIZE_MAX: more
 * bytes are needed. */
static size_t entry_bytes(const uint8_t *p, size_t n) {
    if (n == 0)
        return SIZE_MAX;
    bool known = false;
    for (unsigned kind = D7__KIND_HEADER; kind <= D7__KIND_EPILOGUE; kind++)
        known |= p[0] == D7__TAG(kind, D7__BYTES);
    if (!known)
        return 0;
    uint64_t length = 0;
    for (size_t i = 1; i < 6; i++) {
        if (i == n)
            return SIZE_MAX;
        length |= (uint64_t)(p[i] & 0x7F) << (7 * (i - 1));
        if (p[i] < 0x80)
            return length <= D7__UNFRAMED_ENTRY_MAX ? i + 1 + (size_t)length : 0;
    }
    return 0;
}

enum { HEAD_MAX = 6 };

static d7__found not_there(const d7__framing *f, d7__entry *e, uint64_t at, const char *reason) {
    *e = (d7__entry){.offset = at, .next = f->source->size, .skipped = D7_NO_OFFSET, .reason = reason};
    e->n_head = f->entry.n < D7__ENTRY_HEAD ? f->entry.n : D7__ENTRY_HEAD;
    if (e->n_head)
        memcpy(e->head, f->entry.data, e->n_head);
    return reason ? D7__FOUND_BAD : D7__FOUND_TORN;
}

static const char bad_block_text[] = "a block claims more than it can hold, or is not full";
static const char no_entry_text[] =
    "no entry begins here, and in a file without begin bits the rest cannot be found";

int d7__unframed_at(d7__framing *f, uint64_t offset, d7__found *ret_found, d7__entry *e, d7_error *err) {
    uint64_t at = offset;
    bool bad;
    stretch first;
    f->entry.n = 0;
    int rc = stretch_at(f->source, offset, &first, err);
    uint64_t begin = first.at;
    if (rc == 0)
        rc = run_gather(f, &at, HEAD_MAX, &bad, err);
    if (rc != 0)
        return rc;
    size_t bytes = entry_bytes(f->entry.data, f->entry.n);
    if (bytes == 0 || (bad && (bytes == SIZE_MAX || bytes > f->entry.n))) {
        *ret_found = not_there(f, e, begin, bad ? bad_block_text : no_entry_text);
        return 0;
    }
    if (bytes != SIZE_MAX && bytes > f->entry.n)
        rc = run_gather(f, &at, bytes - f->entry.n, &bad, err);
    if (rc != 0)
        return rc;
    if (bytes == SIZE_MAX || bytes > f->entry.n) {
        *ret_found = not_there(f, e, begin, bad ? bad_block_text : NULL);
        return 0;
    }
    /* The head may have taken bytes of the next entry. */
    if (bytes < f->entry.n) {
        f->entry.n = 0;
        at = offset;
        rc = run_gather(f, &at, bytes, &bad, err);
    }
    *e = (d7__entry){
        .offset = begin, .next = at, .data = f->entry.data, .bytes = bytes, .skipped = D7_NO_OFFSET};
    *ret_found = D7__FOUND_ENTRY;
    return rc;
}

int d7__unframed_next(d7__framing *f, uint64_t from, d7__found *ret_found, d7__entry *e, d7_error *err) {
    stretch first = {.at = from};
    /* The search after something bad goes on at the end of the file, whose last block may be bad itself. */
    int rc = from < f->source->size ? stretch_at(f->source, from, &first, err) : 0;
    if (rc != 0)
        return rc;
    if (first.n == 0 && !first.bad) {
        *e = (d7__entry){.offset = f->source->size, .next = f->source->size, .skipped = D7_NO_OFFSET};
        *ret_found = D7__FOUND_END;
        return 0;
    }
    return d7__unframed_at(f, from, ret_found, e, err);
}

/* The last place of `what` in n bytes; SIZE_MAX: none. */
static size_t find_last(const uint8_t *p, size_t n, const char *what, size_t length) {
    for (size_t at = n < length ? 0 : n - length + 1; at-- > 0;)
        if (memcmp(p + at, what, length) == 0)
            return at;
    return SIZE_MAX;
}

/* Of the run that begins with block `from`: the file offset of its byte i. */
static int run_offset(d7__framing *f, uint64_t from, size_t i, uint64_t *ret_at, d7_error *err) {
    for (uint64_t at = from;;) {
        stretch part;
        int rc = stretch_at(f->source, at, &part, err);
        *ret_at = part.at + i;
        if (rc != 0 || part.n == 0 || i < part.n)
            return rc;
        i -= part.n;
        at = part.at + part.n;
    }
}

/* The signature is looked for in the last two blocks, and the entry before it. */
int d7__unframed_find_epilogue(d7__framing *f, bool *ret_there, uint64_t *ret_at, d7_error *err) {
    uint64_t last = (f->source->size - 1) / D7_BLOCK_BYTES, from = (last ? last - 1 : 0) * D7_BLOCK_BYTES,
             at = from;
    bool bad;
    f->entry.n = 0;
    *ret_there = false;
    int rc = run_gather(f, &at, 2 * (size_t)D7_BLOCK_BYTES, &bad, err);
    if (rc != 0)
        return rc;
    size_t sign = find_last(f->entry.data, f->entry.n, signature, sizeof signature - 1);
    for (size_t back = 4; sign != SIZE_MAX && back <= 24 && back <= sign; back++) {
        size_t start = sign - back;
        if (f->entry.data[start] != D7__TAG(D7__KIND_EPILOGUE, D7__BYTES) ||
            entry_bytes(f->entry.data + start, f->entry.n - start) < back + sizeof signature - 1)
            continue;
        *ret_there = true;
        return run_offset(f, from, start, ret_at, err);
    }
    return 0;
}
