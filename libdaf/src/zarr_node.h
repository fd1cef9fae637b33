/* The zarr.json of an array or group, as anybody may have spelled it (specification "ZarrDaf", sections 2 to 4, 7).
 * Shapes are in the order of C: of a matrix columns, rows; a one-dimensional array has shape[0] 1. */
#ifndef DAF_SRC_ZARR_NODE_H
#define DAF_SRC_ZARR_NODE_H

#include "json.h"
#include "zarr_spell.h"

enum { DAF__ZARR_MAX_CODECS = 8, DAF__ZARR_MAX_NESTING = 3 };

typedef enum daf__zarr_codec_kind {
    DAF__ZARR_BYTES,
    DAF__ZARR_TEXTS,
    DAF__ZARR_SHARDS,
    DAF__ZARR_GZIP,
    DAF__ZARR_ZSTD,
    DAF__ZARR_BLOSC,
    DAF__ZARR_CRC32C
} daf__zarr_codec_kind;

typedef struct daf__zarr_shards daf__zarr_shards;

typedef struct daf__zarr_codec {
    daf__zarr_codec_kind kind;
    bool big_endian;          /* BYTES */
    bool plain;               /* a compressor with a place in section 4's table: */
    daf_codec codec;          /* as this */
    int level;                /* with this level */
    daf__zarr_shards *shards; /* SHARDS */
} daf__zarr_codec;

/* The first makes bytes of elements, the others bytes of bytes. */
typedef struct daf__zarr_chain {
    daf__zarr_codec codecs[DAF__ZARR_MAX_CODECS];
    unsigned n;
} daf__zarr_chain;

struct daf__zarr_shards {
    uint64_t chunk[2]; /* of the inner chunks */
    daf__zarr_chain inner, index;
    bool at_end;
};

typedef struct daf__zarr_node {
    bool is_group;
    /* of an array */
    daf_type type;
    unsigned n_dimensions;
    uint64_t shape[2], chunk[2];
    bool v2_keys;
    char separator;
    uint8_t fill[8]; /* an element, as in the file */
    char *fill_text; /* of texts */
    daf__zarr_chain chain;
    bool is_dual; /* says that its chunk is a shard of ours */
    bool was_sparse;
    daf_type sparse_index;
} daf__zarr_node;

/* `where` names the file in errors. Returns 0; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED; DAF_ERR_NOMEM. */
int daf__zarr_node_parse(daf__zarr_node *ret, const void *text, size_t bytes, const char *where,
                         daf_error *err);
void daf__zarr_node_free(daf__zarr_node *node);

/* Whether the root is one of a repository, of a version that is known. `path` is for messages. Returns 0;
 * DAF_ERR_NOT_DAF; DAF_ERR_VERSION; DAF_ERR_UNSUPPORTED; DAF_ERR_CORRUPT; DAF_ERR_NOMEM. */
int daf__zarr_check_root(const void *text, size_t bytes, const char *where, const char *path, daf_error *err);

/* The path of a chunk below the array. */
daf__zarr_path daf__zarr_chunk_path(const daf__zarr_node *node, const char *path, uint64_t i, uint64_t j);

/* When the chunk of the array, if it is there, is a payload as it stands. */
bool daf__zarr_is_flat(const daf__zarr_node *node);

/* When its chunk can be a packed payload as it stands: how it is packed. */
bool daf__zarr_is_shard(const daf__zarr_node *node, daf__packing *ret);

static inline bool daf__zarr_was_sharded(const daf__zarr_node *node) {
    return node->chain.codecs[0].kind == DAF__ZARR_SHARDS;
}

#endif
