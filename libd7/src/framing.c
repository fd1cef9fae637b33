#include "framing.h"

#include <string.h>

#include "base/bytes.h"
#include "error.h"
#include "unframed.h"

enum { HEADER_BYTES = 2, LENGTH_MASK = 0x3FFF, END_BIT = 0x4000, BEGIN_BIT = 0x8000 };

static size_t room_in_block(uint64_t at) {
    return D7_BLOCK_BYTES - (size_t)(at % D7_BLOCK_BYTES);
}

size_t d7__frame_bound(size_t entry_bytes) {
    return entry_bytes + (entry_bytes / (D7_BLOCK_BYTES - HEADER_BYTES) + 2) * HEADER_BYTES + 1;
}

size_t d7__frame(uint64_t at, const uint8_t *entry, size_t bytes, uint8_t *out) {
    uint8_t *p = out;
    if (room_in_block(at) == 1)
        *p++ = 0;
    unsigned begin = BEGIN_BIT;
    for (size_t done = 0;;) {
        size_t room = room_in_block(at + (size_t)(p - out)) - HEADER_BYTES;
        size_t n = bytes - done < room ? bytes - done : room;
        /* With exactly a header's room the begin fragment stays empty, whatever the entry. */
        bool last = done + n == bytes && room > 0;
        bytes_store16(p, (uint16_t)(n | begin | (last ? END_BIT : 0)));
        memcpy(p + HEADER_BYTES, entry + done, n);
        p += HEADER_BYTES + n;
        done += n;
        begin = 0;
        if (last)
            return (size_t)(p - out);
    }
}

uint64_t d7__frame_end(uint64_t at, uint64_t bytes) {
    for (;;) {
        uint64_t room = room_in_block(at) - HEADER_BYTES;
        if (room > 0 && bytes <= room)
            return at + HEADER_BYTES + bytes;
        bytes -= room;
        at += HEADER_BYTES + room;
    }
}

void d7__framing_free(d7__framing *f) {
    if (f->source && f->source->alloc)
        d7__release(f->source->alloc, f->entry.data);
    f->entry = (d7__buffer){0};
}

/* One fragment header and what it says. */
typedef struct fragment {
    uint64_t at;
    size_t bytes;
    bool begin, end;
    bool crosses; /* claims more than its block holds */
    bool torn;    /* the file ends inside it */
} fragment;

static int fragment_read(d7__source *s, uint64_t at, fragment *ret, d7_error *err) {
    fragment f = {.at = at, .torn = at + HEADER_BYTES > s->size};
    if (!f.torn) {
        const uint8_t *p;
        int rc = d7__source_get(s, at, HEADER_BYTES, &p, err);
        if (rc != 0)
            return rc;
        unsigned h = bytes_load16(p);
        f.bytes = h & LENGTH_MASK;
        f.begin = h & BEGIN_BIT;
        f.end = h & END_BIT;
        f.crosses = HEADER_BYTES + f.bytes > room_in_block(at);
        f.torn = at + HEADER_BYTES + f.bytes > s->size;
    }
    *ret = f;
    return 0;
}

static const char crosses_text[] = "a fragment claims more than its block holds";
static const char short_text[] = "a fragment inside the entry ends before its block does";

static uint64_t next_block(uint64_t at) {
    return at - at % D7_BLOCK_BYTES + D7_BLOCK_BYTES;
}

static d7__found bad(d7__entry *e, uint64_t offset, uint64_t next, const char *reason) {
    *e = (d7__entry){.offset = offset, .next = next, .reason = reason, .skipped = D7_NO_OFFSET};
    return D7__FOUND_BAD;
}

static d7__found torn(const d7__source *s, d7__entry *e, uint64_t offset) {
    *e = (d7__entry){.offset = offset, .next = s->size, .skipped = D7_NO_OFFSET};
    return D7__FOUND_TORN;
}

static d7__found whole(d7__entry *e, uint64_t offset, uint64_t next, const uint8_t *data, size_t bytes) {
    *e = (d7__entry){.offset = offset, .next = next, .data = data, .bytes = bytes, .skipped = D7_NO_OFFSET};
    return D7__FOUND_ENTRY;
}

/* Keeps how the entry at `at`, of which there is no more, begins. An empty begin fragment tells nothing. */
static int keep_head(d7__framing *f, uint64_t at, d7__entry *e, d7_error *err) {
    const d7__source *s = f->source;
    const uint8_t *p;
    uint64_t from = at + HEADER_BYTES, to = next_block(at) < s->size ? next_block(at) : s->size;
    size_t n = from < to ? (size_t)(to - from) : 0;
    n = n < sizeof e->head ? n : sizeof e->head;
    int rc = n ? d7__source_get(f->source, from, n, &p, err) : 0;
    if (rc != 0 || n == 0)
        return rc;
    memcpy(e->head, p, n);
    e->n_head = n;
    return 0;
}

/* Appends a fragment's bytes to the entry being put together. */
static int gather(d7__framing *f, const fragment *part, d7_error *err) {
    if (part->bytes == 0)
        return 0;
    const uint8_t *p;
    int rc = d7__source_get(f->source, part->at + HEADER_BYTES, part->bytes, &p, err);
    if (rc != 0)
        return rc;
    if (d7__buffer_reserve(f->source->alloc, &f->entry, part->bytes) != 0)
        return d7__fail(err, D7_ERR_NOMEM, 0, part->at, "%s: out of memory", f->source->path);
    memcpy(f->entry.data + f->entry.n, p, part->bytes);
    f->entry.n += part->bytes;
    return 0;
}

/* Does this fragment, which is not the first, make the entry unreadable? */
static bool rest_ends_early(const d7__framing *f, uint64_t start, const fragment *part, d7__found *ret_found,
                            d7__entry *e) {
    if (part->begin && !part->crosses) {
        *ret_found = bad(e, start, part->at, "another entry begins before this one has ended");
        e->abandoned = true;
    } else if (part->crosses)
        *ret_found = bad(e, start, next_block(part->at), crosses_text);
    else if (part->torn)
        *ret_found = torn(f->source, e, start);
    else if (f->entry.n + part->bytes > D7_ENTRY_BYTES_MAX)
        *ret_found = bad(e, start, part->at + HEADER_BYTES + part->bytes, "the entry is longer than 16 MiB");
    else
        return false;
    return true;
}

/* The fragments after the first one of an entry that began at `start` and goes on at `at`, a block start. */
static int entry_rest(d7__framing *f, uint64_t start, uint64_t at, d7__found *ret_found, d7__entry *e,
                      d7_error *err) {
    for (;;) {
        fragment part;
        int rc = fragment_read(f->source, at, &part, err);
        if (rc != 0)
            return rc;
        if (rest_ends_early(f, start, &part, ret_found, e))
            return 0;
        rc = gather(f, &part, err);
        if (rc != 0)
            return rc;
        at += HEADER_BYTES + part.bytes;
        if (part.end) {
            *ret_found = whole(e, start, at, f->entry.data, f->entry.n);
            return 0;
        }
        if (at % D7_BLOCK_BYTES != 0) {
            *ret_found = bad(e, start, next_block(at), short_text);
            return 0;
        }
    }
}

/* An entry that fits its fragment is not copied. */
static int entry_of_one(d7__framing *f, const fragment *only, d7__found *ret_found, d7__entry *e,
                        d7_error *err) {
    const uint8_t *p;
    int rc = d7__source_get(f->source, only->at, HEADER_BYTES + only->bytes, &p, err);
    if (rc != 0)
        return rc;
    *ret_found = whole(e, only->at, only->at + HEADER_BYTES + only->bytes, p + HEADER_BYTES, only->bytes);
    return 0;
}

/* The entry that begins with this fragment, which has the begin bit or claims too much. */
static int entry_from(d7__framing *f, const fragment *first, d7__found *ret_found, d7__entry *e,
                      d7_error *err) {
    uint64_t next = first->at + HEADER_BYTES + first->bytes;
    if (first->crosses) {
        *ret_found = bad(e, first->at, next_block(first->at), crosses_text);
        return 0;
    }
    if (first->torn) {
        *ret_found = torn(f->source, e, first->at);
        return 0;
    }
    if (first->end)
        return entry_of_one(f, first, ret_found, e, err);
    if (next % D7_BLOCK_BYTES != 0) {
        *ret_found = bad(e, first->at, next_block(first->at), short_text);
        return 0;
    }
    f->entry.n = 0;
    int rc = gather(f, first, err);
    return rc != 0 ? rc : entry_rest(f, first->at, next, ret_found, e, err);
}

int d7__entry_at(d7__framing *f, uint64_t offset, d7__found *ret_found, d7__entry *e, d7_error *err) {
    d7__source *s = f->source;
    uint64_t at = d7__frame_begin(offset);
    if (f->unframed)
        return d7__unframed_at(f, offset, ret_found, e, err);
    if (at >= s->size) {
        *ret_found = torn(s, e, offset);
        return 0;
    }
    fragment first;
    int rc = fragment_read(s, at, &first, err);
    if (rc != 0)
        return rc;
    if (!first.begin && !first.crosses && !first.torn) {
        *ret_found = bad(e, at, next_block(at), "no entry begins here");
        return 0;
    }
    rc = entry_from(f, &first, ret_found, e, err);
    return rc == 0 && *ret_found != D7__FOUND_ENTRY && first.begin ? keep_head(f, at, e, err) : rc;
}

int d7__entry_peek(d7__source *s, uint64_t at, uint8_t out[D7__ENTRY_HEAD], size_t *ret_n, d7_error *err) {
    const uint8_t *p;
    *ret_n = 0;
    for (uint64_t from = at;; from += HEADER_BYTES) {
        fragment f;
        int rc = fragment_read(s, from, &f, err);
        if (rc != 0 || f.torn || f.crosses || f.begin != (from == at))
            return rc;
        size_t n = f.bytes < D7__ENTRY_HEAD ? f.bytes : D7__ENTRY_HEAD;
        if (n == 0 && from == at && room_in_block(at) == HEADER_BYTES)
            continue; /* the entry goes on in the next block */
        rc = n ? d7__source_get(s, from + HEADER_BYTES, n, &p, err) : 0;
        if (rc != 0 || n == 0)
            return rc;
        memcpy(out, p, n);
        *ret_n = n;
        return 0;
    }
}

/* Past the zeros from `at` on that are empty fragments, at most to the end of the block. */
static int skip_zeros(d7__source *s, uint64_t *at, d7_error *err) {
    const uint8_t *p;
    uint64_t end = next_block(*at) < s->size ? next_block(*at) : s->size;
    size_t n = (size_t)(end - *at), zeros = 0;
    int rc = d7__source_get(s, *at, n, &p, err);
    if (rc != 0)
        return rc;
    while (zeros + 8 <= n && bytes_load64(p + zeros) == 0)
        zeros += 8;
    while (zeros < n && p[zeros] == 0)
        zeros++;
    *at += zeros == n ? n - n % HEADER_BYTES : zeros - zeros % HEADER_BYTES;
    return 0;
}

int d7__entry_next(d7__framing *f, uint64_t from, d7__found *ret_found, d7__entry *e, d7_error *err) {
    return d7__entry_before(f, from, UINT64_MAX, ret_found, e, err);
}

int d7__entry_before(d7__framing *f, uint64_t from, uint64_t to, d7__found *ret_found, d7__entry *e,
                     d7_error *err) {
    d7__source *s = f->source;
    uint64_t skipped = D7_NO_OFFSET, at = d7__frame_begin(from);
    if (f->unframed)
        return d7__unframed_next(f, from, ret_found, e, err);
    for (; at < s->size && at < to; at = d7__frame_begin(at)) {
        fragment part;
        int rc = fragment_read(s, at, &part, err);
        if (rc == 0 && !part.torn && part.bytes == 0 && !part.begin && !part.end) {
            rc = skip_zeros(s, &at, err);
            if (rc == 0)
                continue;
        }
        if (rc != 0)
            return rc;
        if (part.begin || part.crosses) {
            rc = d7__entry_at(f, at, ret_found, e, err);
            e->skipped = skipped;
            return rc;
        }
        if (part.torn) {
            *ret_found = torn(s, e, at);
            e->skipped = skipped;
            return 0;
        }
        if (part.bytes && skipped == D7_NO_OFFSET)
            skipped = at;
        at += HEADER_BYTES + part.bytes;
    }
    at = at < s->size ? at : s->size;
    *e = (d7__entry){.offset = at, .next = at, .skipped = skipped};
    *ret_found = D7__FOUND_END;
    return 0;
}
