/* Header and epilogue, through protobuf-c. */
#ifndef D7_SRC_MESSAGES_H
#define D7_SRC_MESSAGES_H

#include "names.h"
#include "wire.h"

/* A dataset as the header lists it. */
typedef struct d7__toc_item {
    char *name; /* [name_bytes] and a NUL */
    size_t name_bytes;
    d7_type type;
    uint64_t *shape; /* [rank] */
    size_t rank;
} d7__toc_item;

typedef struct d7__header {
    uint32_t version[3];
    uint32_t index_step;
    uint32_t bytes_per_page;
    size_t n_datasets;
    d7__toc_item *datasets;
    d7__names names; /* the first dataset of each name */
    d7__buffer body; /* the message as it was read, for headers that are to be like it */
} d7__header;

void d7__header_free(const d7_alloc *a, d7__header *h);

/* A whole FileEntry for a new file's header, in memory of the table's. Returns 0; D7_ERR_LIMIT: longer than
 * an entry may be; D7_ERR_NOMEM. */
int d7__header_pack(const d7_alloc *a, const d7_dataset *datasets, size_t n, uint32_t index_step,
                    uint32_t bytes_per_page, uint8_t **ret_entry, size_t *ret_bytes);

/* The same, but like a header that was read: its version, unknown fields, and the shapes and unknown fields of those
 * datasets that have the same name and type there. Returns as d7__header_pack(). */
int d7__header_pack_like(const d7_alloc *a, const d7__header *like, const d7_dataset *datasets, size_t n,
                         uint32_t index_step, uint32_t bytes_per_page, uint8_t **ret_entry,
                         size_t *ret_bytes);

/* Reads the body of a Header message. `path` is for errors. Returns 0; D7_ERR_CORRUPT; D7_ERR_UNSUPPORTED: an
 * unknown element type; D7_ERR_LIMIT; D7_ERR_NOMEM. */
int d7__header_unpack(const d7_alloc *a, const char *path, d7__cursor body, d7__header *ret_header,
                      d7_error *err);

/* A whole FileEntry for an epilogue; at most D7__EPILOGUE_MAX bytes. Returns its length. */
enum { D7__EPILOGUE_MAX = 64 };
size_t d7__epilogue_pack(uint64_t global_index_offset, uint8_t out[D7__EPILOGUE_MAX]);

/* Reads the body of an Epilogue message. Returns false when it is none, or its signature is wrong. */
bool d7__epilogue_unpack(d7__cursor body, uint64_t *ret_global_index_offset);

#endif
