#include "checksums.h"

#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "error.h"

enum { VERSION = 1 };
static const uint8_t magic[8] = {'d', '7', ' ', 's', 'u', 'm', 's', '\n'};

/* ---- bytes ---- */

/* The last four bytes of either head are the checksum of those before. */
static void seal(uint8_t head[D7__SUMS_HEAD_BYTES]) {
    bytes_store32(head + 12, common_crc32c(0, head, 12));
}

static bool is_sealed(const uint8_t head[D7__SUMS_HEAD_BYTES]) {
    return bytes_load32(head + 12) == common_crc32c(0, head, 12);
}

void d7__sums_head_pack(uint8_t out[D7__SUMS_HEAD_BYTES]) {
    memcpy(out, magic, sizeof magic);
    bytes_store32(out + 8, VERSION);
    seal(out);
}

bool d7__sums_head_fits(const uint8_t head[D7__SUMS_HEAD_BYTES]) {
    return memcmp(head, magic, sizeof magic) == 0 && bytes_load32(head + 8) == VERSION && is_sealed(head);
}

size_t d7__sums_block_pack(const d7__sum *sums, size_t n, uint8_t *out) {
    uint8_t *p = out + D7__SUMS_HEAD_BYTES;
    for (size_t i = 0; i < n; i++, p += D7__SUM_BYTES) {
        bytes_store64(p, sums[i].offset);
        bytes_store32(p + 8, sums[i].bytes);
        bytes_store32(p + 12, sums[i].crc);
    }
    bytes_store32(out, (uint32_t)n);
    bytes_store32(out + 4, common_crc32c(0, out + D7__SUMS_HEAD_BYTES, n * D7__SUM_BYTES));
    bytes_store32(out + 8, 0);
    seal(out);
    return (size_t)(p - out);
}

size_t d7__sums_block_head(const uint8_t head[D7__SUMS_HEAD_BYTES], uint32_t *ret_crc) {
    uint32_t n = bytes_load32(head);
    if (!is_sealed(head) || n > D7__SUMS_BLOCK_MAX)
        return 0;
    *ret_crc = bytes_load32(head + 4);
    return n;
}

d7__sum d7__sum_unpack(const uint8_t record[D7__SUM_BYTES]) {
    return (d7__sum){
        .offset = bytes_load64(record), .bytes = bytes_load32(record + 8), .crc = bytes_load32(record + 12)};
}

/* ---- reading ---- */

static int read_head(d7__sums_reader *s, d7_error *err) {
    uint8_t head[D7__SUMS_HEAD_BYTES];
    int rc = s->size < sizeof head ? 0 : d7__tail_file_read(&s->file, head, sizeof head, 0, err);
    if (rc != 0)
        return rc;
    if (s->size < sizeof head || !d7__sums_head_fits(head))
        s->fault = "it is no file of checksums, or of a later version";
    s->at = sizeof head;
    return 0;
}

int d7__sums_open(d7__sums_reader *s, const d7_io *io, const d7_alloc *alloc, const char *path, int flags,
                  d7_error *err) {
    *s = (d7__sums_reader){.alloc = alloc, .path = d7__beside(io, alloc, path, D7_CHECKSUMS_SUFFIX)};
    s->records = d7__new(alloc, D7__SUMS_BLOCK_MAX * D7__SUM_BYTES);
    int rc = s->path && s->records ? d7__tail_file_open(&s->file, io, s->path, flags, 0, err)
                                   : d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    if (rc == 0)
        rc = d7__tail_file_size(&s->file, &s->size, err);
    if (rc == 0)
        rc = read_head(s, err);
    if (rc != 0)
        d7__sums_close(s);
    return rc;
}

void d7__sums_close(d7__sums_reader *s) {
    d7__tail_file_close(&s->file);
    if (s->alloc) {
        d7__release(s->alloc, s->records);
        d7__release(s->alloc, s->path);
    }
    *s = (d7__sums_reader){0};
}

/* Reads the block at s->at; one that was spoilt is left empty. */
static int read_block(d7__sums_reader *s, d7_error *err) {
    uint8_t head[D7__SUMS_HEAD_BYTES];
    uint32_t crc;
    int rc = 0;
    s->n = s->next = 0;
    if (s->size - s->at < sizeof head) {
        s->fault = "its end is torn";
        return 0;
    }
    rc = d7__tail_file_read(&s->file, head, sizeof head, s->at, err);
    if (rc != 0)
        return rc;
    size_t n = d7__sums_block_head(head, &crc), bytes = n * D7__SUM_BYTES;
    if (n == 0 || s->size - s->at - sizeof head < bytes) {
        s->fault = "its end is torn, or it was damaged";
        return 0;
    }
    rc = d7__tail_file_read(&s->file, s->records, bytes, s->at + sizeof head, err);
    if (rc != 0)
        return rc;
    s->block_at = s->at;
    s->at += sizeof head + bytes;
    if (common_crc32c(0, s->records, bytes) == crc)
        s->n = n;
    else
        s->n_spoilt++;
    return 0;
}

int d7__sums_next(d7__sums_reader *s, bool *ret_there, d7__sum *ret_sum, d7_error *err) {
    *ret_there = false;
    while (s->next == s->n) {
        if (s->fault || s->at == s->size)
            return 0;
        int rc = read_block(s, err);
        if (rc != 0)
            return rc;
    }
    d7__sum sum = d7__sum_unpack(s->records + s->next * D7__SUM_BYTES);
    if (s->begun && sum.offset <= s->last) {
        s->fault = "its entries are not in order";
        s->n = s->next = 0;
        return 0;
    }
    s->next++;
    s->begun = true;
    s->last = sum.offset;
    *ret_sum = sum;
    *ret_there = true;
    return 0;
}
