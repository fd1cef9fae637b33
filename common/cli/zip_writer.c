#include "cli/zip_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"

enum {
    BUFFER_BYTES = 1 << 18,
    PIECE_BYTES = 1 << 24, /* of what zlib gets at once */
    LOCAL_BYTES = 30 + 20, /* head of a member, with lengths of 8 bytes, but for the name */
    CENTRAL_BYTES = 46 + 28,
    END_BYTES = 56 + 20 + 22,
    VERSION = 45, /* ZIP64 */
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    FLAG_UTF8 = 1 << 11,
    DOS_DATE = 1 << 5 | 1 /* 1980-01-01: the same contents give the same archive */
};

typedef struct zip_member {
    char *name;
    uint64_t offset, bytes, packed_bytes;
    uint32_t crc;
} zip_member;

struct zip_writer {
    int fd;
    int level;
    int error;
    uint64_t offset; /* of what comes next, what waits in the buffer counted */
    uint8_t *buffer; /* [used] of BUFFER_BYTES */
    size_t used;
    zip_member *members; /* [n] */
    size_t n, cap;
    z_stream deflate;
};

static int zip_fail(zip_writer *z, int error) {
    if (z->error == 0)
        z->error = error;
    return z->error;
}

zip_writer *zip_new(int fd, int level) {
    zip_writer *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->fd = fd;
    z->level = level;
    z->buffer = malloc(BUFFER_BYTES);
    if (z->buffer && (level == 0 || deflateInit2(&z->deflate, level, Z_DEFLATED, -MAX_WBITS, 8,
                                                 Z_DEFAULT_STRATEGY) == Z_OK))
        return z;
    free(z->buffer);
    free(z);
    return NULL;
}

void zip_free(zip_writer *z) {
    if (!z)
        return;
    if (z->level)
        deflateEnd(&z->deflate);
    for (size_t i = 0; i < z->n; i++)
        free(z->members[i].name);
    free(z->members);
    free(z->buffer);
    free(z);
}

/* ---- bytes ---- */

static int put_at(zip_writer *z, const uint8_t *data, size_t bytes, uint64_t offset) {
    while (bytes > 0) {
        ssize_t n = pwrite(z->fd, data, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return zip_fail(z, n < 0 ? -errno : -EIO);
        data += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int flush(zip_writer *z) {
    int rc = put_at(z, z->buffer, z->used, z->offset - z->used);
    z->used = 0;
    return rc;
}

static int put(zip_writer *z, const uint8_t *data, size_t bytes) {
    while (bytes > 0 && z->error == 0) {
        size_t room = BUFFER_BYTES - z->used, n = bytes < room ? bytes : room;
        memcpy(z->buffer + z->used, data, n);
        z->used += n;
        z->offset += n;
        data += n;
        bytes -= n;
        if (z->used == BUFFER_BYTES)
            flush(z);
    }
    return z->error;
}

/* ---- members ---- */

static uint16_t method_of(const zip_writer *z) {
    return z->level ? METHOD_DEFLATED : METHOD_STORED;
}

/* Lengths are given as 8 bytes whatever they are: what is coming is not known yet. */
static void local_head(const zip_writer *z, const zip_member *m, uint8_t head[LOCAL_BYTES],
                       size_t name_bytes) {
    memset(head, 0, LOCAL_BYTES);
    bytes_store32(head, 0x04034b50);
    bytes_store16(head + 4, VERSION);
    bytes_store16(head + 6, FLAG_UTF8);
    bytes_store16(head + 8, method_of(z));
    bytes_store16(head + 12, DOS_DATE);
    bytes_store32(head + 14, m->crc);
    bytes_store32(head + 18, UINT32_MAX);
    bytes_store32(head + 22, UINT32_MAX);
    bytes_store16(head + 26, (uint16_t)name_bytes);
    bytes_store16(head + 28, 20);
    bytes_store16(head + 30, 1);
    bytes_store16(head + 32, 16);
    bytes_store64(head + 34, m->bytes);
    bytes_store64(head + 42, m->packed_bytes);
}

/* The name stands between the two parts of a head. */
static int put_local(zip_writer *z, const zip_member *m) {
    uint8_t head[LOCAL_BYTES];
    size_t n = strlen(m->name);
    local_head(z, m, head, n);
    if (put(z, head, 30) == 0 && put(z, (const uint8_t *)m->name, n) == 0)
        put(z, head + 30, LOCAL_BYTES - 30);
    return z->error;
}

static int correct_local(zip_writer *z, const zip_member *m) {
    uint8_t head[LOCAL_BYTES];
    size_t n = strlen(m->name);
    local_head(z, m, head, n);
    if (flush(z) == 0 && put_at(z, head, 30, m->offset) == 0)
        put_at(z, head + 30, LOCAL_BYTES - 30, m->offset + 30 + n);
    return z->error;
}

int zip_begin(zip_writer *z, const char *name) {
    if (strlen(name) > UINT16_MAX)
        return zip_fail(z, -ENAMETOOLONG);
    if (z->n == z->cap) {
        size_t cap = z->cap ? 2 * z->cap : 16;
        zip_member *members = realloc(z->members, cap * sizeof *members);
        if (!members)
            return zip_fail(z, -ENOMEM);
        z->members = members;
        z->cap = cap;
    }
    zip_member *m = &z->members[z->n];
    *m = (zip_member){.name = strdup(name), .offset = z->offset, .crc = (uint32_t)crc32(0, NULL, 0)};
    if (!m->name)
        return zip_fail(z, -ENOMEM);
    z->n++;
    if (z->level)
        deflateReset(&z->deflate);
    return put_local(z, m);
}

/* What zlib has been given, packed as far as it gives it. */
static int pack(zip_writer *z, int mode) {
    uint8_t out[16384];
    do {
        z->deflate.next_out = out;
        z->deflate.avail_out = sizeof out;
        deflate(&z->deflate, mode);
        if (put(z, out, sizeof out - z->deflate.avail_out) != 0)
            return z->error;
    } while (z->deflate.avail_out == 0);
    return 0;
}

int zip_write(zip_writer *z, const void *data, size_t bytes) {
    zip_member *m = &z->members[z->n - 1];
    const uint8_t *p = data;
    for (size_t left = bytes, n; left > 0 && z->error == 0; p += n, left -= n) {
        n = left < PIECE_BYTES ? left : PIECE_BYTES;
        m->crc = (uint32_t)crc32(m->crc, p, (uInt)n);
        m->bytes += n;
        if (z->level) {
            z->deflate.next_in = (Bytef *)p;
            z->deflate.avail_in = (uInt)n;
            pack(z, Z_NO_FLUSH);
        } else {
            put(z, p, n);
        }
    }
    return z->error;
}

int zip_end(zip_writer *z) {
    zip_member *m = &z->members[z->n - 1];
    if (z->level && z->error == 0) {
        z->deflate.next_in = NULL;
        z->deflate.avail_in = 0;
        pack(z, Z_FINISH);
    }
    m->packed_bytes = z->offset - m->offset - LOCAL_BYTES - strlen(m->name);
    return z->error ? z->error : correct_local(z, m);
}

/* ---- the directory ---- */

static int put_central(zip_writer *z, const zip_member *m) {
    uint8_t head[CENTRAL_BYTES] = {0};
    size_t n = strlen(m->name);
    bytes_store32(head, 0x02014b50);
    bytes_store16(head + 4, 3 << 8 | VERSION); /* made as on Unix */
    bytes_store16(head + 6, VERSION);
    bytes_store16(head + 8, FLAG_UTF8);
    bytes_store16(head + 10, method_of(z));
    bytes_store16(head + 14, DOS_DATE);
    bytes_store32(head + 16, m->crc);
    bytes_store32(head + 20, UINT32_MAX);
    bytes_store32(head + 24, UINT32_MAX);
    bytes_store16(head + 28, (uint16_t)n);
    bytes_store16(head + 30, 28);
    bytes_store32(head + 38, UINT32_C(0100644) << 16); /* a plain file */
    bytes_store32(head + 42, UINT32_MAX);
    bytes_store16(head + 46, 1);
    bytes_store16(head + 48, 24);
    bytes_store64(head + 50, m->bytes);
    bytes_store64(head + 58, m->packed_bytes);
    bytes_store64(head + 66, m->offset);
    if (put(z, head, 46) == 0 && put(z, (const uint8_t *)m->name, n) == 0)
        put(z, head + 46, CENTRAL_BYTES - 46);
    return z->error;
}

int zip_finish(zip_writer *z) {
    uint8_t end[END_BYTES] = {0}, *locator = end + 56, *old = end + 76;
    uint64_t directory = z->offset;
    for (size_t i = 0; i < z->n && z->error == 0; i++)
        put_central(z, &z->members[i]);
    uint64_t bytes = z->offset - directory, last = z->offset;
    bytes_store32(end, 0x06064b50);
    bytes_store64(end + 4, 44);
    bytes_store16(end + 12, 3 << 8 | VERSION);
    bytes_store16(end + 14, VERSION);
    bytes_store64(end + 24, z->n);
    bytes_store64(end + 32, z->n);
    bytes_store64(end + 40, bytes);
    bytes_store64(end + 48, directory);
    bytes_store32(locator, 0x07064b50);
    bytes_store64(locator + 8, last);
    bytes_store32(locator + 16, 1);
    bytes_store32(old, 0x06054b50);
    bytes_store16(old + 8, z->n < UINT16_MAX ? (uint16_t)z->n : UINT16_MAX);
    bytes_store16(old + 10, z->n < UINT16_MAX ? (uint16_t)z->n : UINT16_MAX);
    bytes_store32(old + 12, bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX);
    bytes_store32(old + 16, directory < UINT32_MAX ? (uint32_t)directory : UINT32_MAX);
    put(z, end, sizeof end);
    return z->error ? z->error : flush(z);
}
