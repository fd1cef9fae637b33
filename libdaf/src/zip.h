/* The ZIP structures of shards and archives (specification sections 9, 11.4, 13): written always in the ZIP64 form,
 * read in any. */
#ifndef DAF_SRC_ZIP_H
#define DAF_SRC_ZIP_H

#include "store.h"

enum {
    DAF__ZIP_LOCAL_BYTES = 30,
    DAF__ZIP_LOCAL_EXTRA_BYTES = 20, /* the ZIP64 sizes */
    DAF__ZIP_CENTRAL_BYTES = 46,
    DAF__ZIP_CENTRAL_EXTRA_BYTES = 28, /* the ZIP64 sizes and offset */
    DAF__ZIP_END_BYTES = 98,           /* the three end records */
    DAF__ZIP_PLAIN_END_BYTES = 22,     /* the last of them */
    DAF__ZIP_UTF8_FLAG = 0x0800,
    DAF__ZIP_ENCRYPTED_FLAG = 0x0001,
    DAF__ZIP_DESCRIPTOR_FLAG = 0x0008, /* sizes and CRC follow the data */
    DAF__ZIP_STORED = 0,
    DAF__ZIP_DEFLATE = 8,
    DAF__ZIP_DEFLATE64 = 9,
    DAF__ZIP_BZIP2 = 12,
    DAF__ZIP_ZSTD = 93,
    DAF__ZIP_ALIGNMENT = 8, /* of the data of archive entries */
    DAF__ZIP_MAX_PADDING = DAF__ZIP_ALIGNMENT + 3
};

typedef struct daf__zip_entry {
    const uint8_t *name; /* not terminated; borrowed */
    uint16_t name_bytes;
    uint16_t flags, method;
    uint32_t crc;
    uint64_t packed_bytes, raw_bytes;
    uint64_t offset; /* of the local header */
} daf__zip_entry;

/* Writes a local header; returns its bytes. zip64: the sizes go to an extra field. */
size_t daf__zip_put_local(uint8_t *to, const daf__zip_entry *e, bool zip64);

/* Writes the ZIP64 local header of an archive entry, which will lie at e->offset: a second extra field brings the data
 * to a multiple of 8. */
size_t daf__zip_put_aligned_local(uint8_t *to, const daf__zip_entry *e);

/* Where the data of such an entry lie. */
uint64_t daf__zip_aligned_data(uint64_t offset, size_t name_bytes);

/* Writes an entry of the central directory; returns its bytes. */
size_t daf__zip_put_central(uint8_t *to, const daf__zip_entry *e);

/* Writes the three end records. */
void daf__zip_put_end(uint8_t to[DAF__ZIP_END_BYTES], uint64_t n_entries, uint64_t directory_bytes,
                      uint64_t directory_offset);

typedef struct daf__zip_directory {
    uint64_t offset, bytes, n_entries;
    uint64_t records_offset; /* of the first end record */
    uint64_t end_offset;     /* of the last one */
    uint16_t comment_bytes;  /* behind it */
} daf__zip_directory;

/* Finds the central directory from the end of the file, with or without ZIP64 records and comment.
 * Returns 0; DAF_ERR_TRUNCATED no end record; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED several disks; DAF_ERR_IO. */
int daf__zip_find_directory(daf__file *f, daf__zip_directory *ret, daf_error *err);

/* Reads the entry of the central directory at `from`; the name points into it. Returns its bytes, or 0 when there is
 * no whole entry. */
size_t daf__zip_parse_central(const uint8_t *from, size_t bytes, daf__zip_entry *ret);

/* Whether there is an end record at `at`, and the directory that it speaks of lies right before its records. Returns 0
 * or as daf__zip_find_directory (DAF_ERR_TRUNCATED: no signature there). */
int daf__zip_directory_at(daf__file *f, uint64_t at, daf__zip_directory *ret, daf_error *err);

/* Reads the local header at `from`, of which `bytes` are there. Returns its bytes, or 0 when it is none, or not whole. */
size_t daf__zip_parse_local(const uint8_t *from, size_t bytes, daf__zip_entry *ret);

/* The bytes of the local header at `from`, name and extra field included; 0 when it is none. */
size_t daf__zip_local_bytes(const uint8_t from[DAF__ZIP_LOCAL_BYTES]);

#endif
