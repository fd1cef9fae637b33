#include "zip.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "error.h"

enum {
    END_RECORD_BYTES = DAF__ZIP_PLAIN_END_BYTES,
    END64_RECORD_BYTES = 56,
    LOCATOR_BYTES = 20,
    MAX_COMMENT_BYTES = 65535,
    VERSION_PLAIN = 20,
    VERSION_ZIP64 = 45,
    MADE_BY = 0x031E,
    DATE = 0x0021, /* 1980-01-01 */
    ZIP64_FIELD = 1,
    PADDING_FIELD = 0xDAF1,
    FIELD_HEADER_BYTES = 4
};
#define LOCAL_SIGNATURE 0x04034B50u
#define CENTRAL_SIGNATURE 0x02014B50u
#define END_SIGNATURE 0x06054B50u
#define END64_SIGNATURE 0x06064B50u
#define LOCATOR_SIGNATURE 0x07064B50u
#define IN_EXTRA 0xFFFFFFFFu
#define FILE_ATTRIBUTES 0x81A40000u /* an ordinary file, mode 0644 */

/* Writes fields one behind the other. */
static uint8_t *put16(uint8_t *p, unsigned v) {
    bytes_store16(p, (uint16_t)v);
    return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v) {
    bytes_store32(p, v);
    return p + 4;
}

static uint8_t *put64(uint8_t *p, uint64_t v) {
    bytes_store64(p, v);
    return p + 8;
}

static uint8_t *put_name(uint8_t *p, const daf__zip_entry *e) {
    memcpy(p, e->name, e->name_bytes);
    return p + e->name_bytes;
}

size_t daf__zip_put_local(uint8_t *to, const daf__zip_entry *e, bool zip64) {
    uint8_t *p = put32(to, LOCAL_SIGNATURE);
    p = put16(p, zip64 ? VERSION_ZIP64 : VERSION_PLAIN);
    p = put16(p, e->flags);
    p = put16(p, e->method);
    p = put16(p, 0);
    p = put16(p, DATE);
    p = put32(p, e->crc);
    p = put32(p, zip64 ? IN_EXTRA : (uint32_t)e->packed_bytes);
    p = put32(p, zip64 ? IN_EXTRA : (uint32_t)e->raw_bytes);
    p = put16(p, e->name_bytes);
    p = put16(p, zip64 ? DAF__ZIP_LOCAL_EXTRA_BYTES : 0);
    p = put_name(p, e);
    if (zip64) {
        p = put16(p, ZIP64_FIELD);
        p = put16(p, DAF__ZIP_LOCAL_EXTRA_BYTES - 4);
        p = put64(p, e->raw_bytes);
        p = put64(p, e->packed_bytes);
    }
    return (size_t)(p - to);
}

/* A field of less than its own header cannot be: one more step then. */
static size_t padding_of(uint64_t offset, size_t name_bytes) {
    uint64_t start = offset + DAF__ZIP_LOCAL_BYTES + name_bytes + DAF__ZIP_LOCAL_EXTRA_BYTES;
    size_t padding = (size_t)(-start % DAF__ZIP_ALIGNMENT);
    return padding > 0 && padding < FIELD_HEADER_BYTES ? padding + DAF__ZIP_ALIGNMENT : padding;
}

uint64_t daf__zip_aligned_data(uint64_t offset, size_t name_bytes) {
    return offset + DAF__ZIP_LOCAL_BYTES + name_bytes + DAF__ZIP_LOCAL_EXTRA_BYTES +
           padding_of(offset, name_bytes);
}

size_t daf__zip_put_aligned_local(uint8_t *to, const daf__zip_entry *e) {
    size_t bytes = daf__zip_put_local(to, e, true), padding = padding_of(e->offset, e->name_bytes);
    if (padding == 0)
        return bytes;
    bytes_store16(to + 28, (uint16_t)(DAF__ZIP_LOCAL_EXTRA_BYTES + padding));
    uint8_t *p = put16(to + bytes, PADDING_FIELD);
    p = put16(p, (unsigned)(padding - FIELD_HEADER_BYTES));
    memset(p, 0, padding - FIELD_HEADER_BYTES);
    return bytes + padding;
}

size_t daf__zip_put_central(uint8_t *to, const daf__zip_entry *e) {
    uint8_t *p = put32(to, CENTRAL_SIGNATURE);
    p = put16(p, MADE_BY);
    p = put16(p, VERSION_ZIP64);
    p = put16(p, e->flags);
    p = put16(p, e->method);
    p = put16(p, 0);
    p = put16(p, DATE);
    p = put32(p, e->crc);
    p = put32(p, IN_EXTRA);
    p = put32(p, IN_EXTRA);
    p = put16(p, e->name_bytes);
    p = put16(p, DAF__ZIP_CENTRAL_EXTRA_BYTES);
    p = put16(p, 0);
    p = put16(p, 0);
    p = put16(p, 0);
    p = put32(p, FILE_ATTRIBUTES);
    p = put32(p, IN_EXTRA);
    p = put_name(p, e);
    p = put16(p, ZIP64_FIELD);
    p = put16(p, DAF__ZIP_CENTRAL_EXTRA_BYTES - 4);
    p = put64(p, e->raw_bytes);
    p = put64(p, e->packed_bytes);
    p = put64(p, e->offset);
    return (size_t)(p - to);
}

void daf__zip_put_end(uint8_t to[DAF__ZIP_END_BYTES], uint64_t n_entries, uint64_t directory_bytes,
                      uint64_t directory_offset) {
    uint8_t *p = put32(to, END64_SIGNATURE);
    p = put64(p, END64_RECORD_BYTES - 12);
    p = put16(p, MADE_BY);
    p = put16(p, VERSION_ZIP64);
    p = put32(p, 0);
    p = put32(p, 0);
    p = put64(p, n_entries);
    p = put64(p, n_entries);
    p = put64(p, directory_bytes);
    p = put64(p, directory_offset);
    p = put32(p, LOCATOR_SIGNATURE);
    p = put32(p, 0);
    p = put64(p, directory_offset + directory_bytes);
    p = put32(p, 1);
    p = put32(p, END_SIGNATURE);
    p = put16(p, 0);
    p = put16(p, 0);
    p = put16(p, 0xFFFF);
    p = put16(p, 0xFFFF);
    p = put32(p, IN_EXTRA);
    p = put32(p, IN_EXTRA);
    put16(p, 0);
}

static int broken(daf__file *f, uint64_t offset, const char *what, daf_error *err) {
    return daf__fail(err, DAF_ERR_CORRUPT, 0, offset, "%s: %s at byte %llu", f->where, what,
                     (unsigned long long)offset);
}

/* The last position in `tail` of an end record whose comment reaches exactly to the end; -1: none. */
static long find_end_record(const uint8_t *tail, size_t bytes) {
    for (long at = (long)bytes - END_RECORD_BYTES; at >= 0; at--) {
        const uint8_t *p = tail + at;
        if (bytes_load32(p) == END_SIGNATURE && (size_t)at + END_RECORD_BYTES + bytes_load16(p + 20) == bytes)
            return at;
    }
    return -1;
}

/* Follows the ZIP64 locator that may stand before the end record at `end_offset`. */
static int find_end64(daf__file *f, uint64_t end_offset, const uint8_t locator[LOCATOR_BYTES],
                      daf__zip_directory *ret, daf_error *err) {
    uint8_t record[END64_RECORD_BYTES];
    uint64_t at = bytes_load64(locator + 8);
    if (at > end_offset || end_offset - at < END64_RECORD_BYTES + LOCATOR_BYTES)
        return broken(f, end_offset - LOCATOR_BYTES, "a ZIP64 locator that points nowhere", err);
    int rc = f->ops->read(f, record, sizeof record, at, err);
    if (rc)
        return rc;
    if (bytes_load32(record) != END64_SIGNATURE)
        return broken(f, at, "no ZIP64 end record", err);
    if (bytes_load32(record + 16) != 0 || bytes_load32(record + 20) != 0)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, at, "%s: a part of an archive of several disks",
                         f->where);
    *ret = (daf__zip_directory){.n_entries = bytes_load64(record + 32),
                                .bytes = bytes_load64(record + 40),
                                .offset = bytes_load64(record + 48)};
    return 0;
}

/* `end`: the end record, which lies at end_offset, with the `before` bytes in front of it. */
static int read_end_record(daf__file *f, uint64_t end_offset, const uint8_t *end, size_t before,
                           daf__zip_directory *ret, daf_error *err) {
    int rc = 0;
    uint64_t limit = end_offset;
    if (before >= LOCATOR_BYTES && bytes_load32(end - LOCATOR_BYTES) == LOCATOR_SIGNATURE) {
        rc = find_end64(f, end_offset, end - LOCATOR_BYTES, ret, err);
        limit = bytes_load64(end - LOCATOR_BYTES + 8);
    } else if (bytes_load16(end + 4) != 0 || bytes_load16(end + 6) != 0) {
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, end_offset, "%s: a part of an archive of several disks",
                         f->where);
    } else {
        *ret = (daf__zip_directory){.n_entries = bytes_load16(end + 10),
                                    .bytes = bytes_load32(end + 12),
                                    .offset = bytes_load32(end + 16)};
    }
    ret->records_offset = limit;
    ret->end_offset = end_offset;
    ret->comment_bytes = bytes_load16(end + 20);
    if (rc == 0 && (ret->offset > limit || ret->bytes > limit - ret->offset ||
                    ret->n_entries > ret->bytes / DAF__ZIP_CENTRAL_BYTES))
        rc = broken(f, end_offset, "an end record that contradicts the file's size", err);
    return rc;
}

static int read_end(daf__file *f, const uint8_t *tail, size_t tail_bytes, daf__zip_directory *ret,
                    daf_error *err) {
    long at = find_end_record(tail, tail_bytes);
    if (at < 0)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, f->size,
                         "%s: no end record of a ZIP archive: cut short, or none", f->where);
    return read_end_record(f, f->size - tail_bytes + (uint64_t)at, tail + at, (size_t)at, ret, err);
}

int daf__zip_directory_at(daf__file *f, uint64_t at, daf__zip_directory *ret, daf_error *err) {
    uint8_t tail[LOCATOR_BYTES + END_RECORD_BYTES];
    size_t before = at < LOCATOR_BYTES ? (size_t)at : LOCATOR_BYTES;
    daf__zip_directory found;
    int rc = f->ops->read(f, tail, before + END_RECORD_BYTES, at - before, err);
    if (rc)
        return rc;
    if (bytes_load32(tail + before) != END_SIGNATURE)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, at, "%s: no end record", f->where);
    rc = read_end_record(f, at, tail + before, before, &found, err);
    if (rc == 0)
        *ret = found;
    return rc;
}

int daf__zip_find_directory(daf__file *f, daf__zip_directory *ret, daf_error *err) {
    static const size_t searches[] = {DAF__ZIP_END_BYTES,
                                      MAX_COMMENT_BYTES + END_RECORD_BYTES + LOCATOR_BYTES};
    daf__zip_directory found;
    daf_error details = {.code = 0};
    int rc = 0;
    for (size_t i = 0; i < 2; i++) {
        size_t bytes = f->size < searches[i] ? (size_t)f->size : searches[i];
        uint8_t *tail = malloc(bytes ? bytes : 1);
        if (!tail)
            return daf__no_memory(err);
        rc = f->ops->read(f, tail, bytes, f->size - bytes, &details);
        if (rc == 0)
            rc = read_end(f, tail, bytes, &found, &details);
        free(tail);
        if (rc != DAF_ERR_TRUNCATED)
            break;
    }
    if (rc)
        return daf__pass(err, &details);
    *ret = found;
    return 0;
}

/* Takes from the ZIP64 field the values whose 32-bit fields are full. */
static bool parse_extra(const uint8_t *p, size_t bytes, daf__zip_entry *e) {
    uint64_t *const wanted[] = {&e->raw_bytes, &e->packed_bytes, &e->offset};
    while (bytes >= 4) {
        unsigned id = bytes_load16(p);
        size_t length = bytes_load16(p + 2);
        if (length > bytes - 4)
            return false;
        if (id != ZIP64_FIELD) {
            p += 4 + length;
            bytes -= 4 + length;
            continue;
        }
        p += 4;
        for (size_t i = 0; i < 3; i++) {
            if (*wanted[i] != IN_EXTRA)
                continue;
            if (length < 8)
                return false;
            *wanted[i] = bytes_load64(p);
            p += 8;
            length -= 8;
        }
        return true;
    }
    return true;
}

size_t daf__zip_parse_central(const uint8_t *from, size_t bytes, daf__zip_entry *ret) {
    if (bytes < DAF__ZIP_CENTRAL_BYTES || bytes_load32(from) != CENTRAL_SIGNATURE)
        return 0;
    size_t name_bytes = bytes_load16(from + 28), extra_bytes = bytes_load16(from + 30);
    size_t width = DAF__ZIP_CENTRAL_BYTES + name_bytes + extra_bytes + bytes_load16(from + 32);
    if (width > bytes)
        return 0;
    daf__zip_entry e = {.name = from + DAF__ZIP_CENTRAL_BYTES,
                        .name_bytes = (uint16_t)name_bytes,
                        .flags = bytes_load16(from + 8),
                        .method = bytes_load16(from + 10),
                        .crc = bytes_load32(from + 16),
                        .packed_bytes = bytes_load32(from + 20),
                        .raw_bytes = bytes_load32(from + 24),
                        .offset = bytes_load32(from + 42)};
    if (!parse_extra(e.name + name_bytes, extra_bytes, &e))
        return 0;
    *ret = e;
    return width;
}

size_t daf__zip_parse_local(const uint8_t *from, size_t bytes, daf__zip_entry *ret) {
    size_t width = bytes < DAF__ZIP_LOCAL_BYTES ? 0 : daf__zip_local_bytes(from);
    if (width == 0 || width > bytes)
        return 0;
    daf__zip_entry e = {.name = from + DAF__ZIP_LOCAL_BYTES,
                        .name_bytes = bytes_load16(from + 26),
                        .flags = bytes_load16(from + 6),
                        .method = bytes_load16(from + 8),
                        .crc = bytes_load32(from + 14),
                        .packed_bytes = bytes_load32(from + 18),
                        .raw_bytes = bytes_load32(from + 22)};
    if (!parse_extra(e.name + e.name_bytes, bytes_load16(from + 28), &e))
        return 0;
    *ret = e;
    return width;
}

size_t daf__zip_local_bytes(const uint8_t from[DAF__ZIP_LOCAL_BYTES]) {
    if (bytes_load32(from) != LOCAL_SIGNATURE)
        return 0;
    return (size_t)DAF__ZIP_LOCAL_BYTES + bytes_load16(from + 26) + bytes_load16(from + 28);
}
