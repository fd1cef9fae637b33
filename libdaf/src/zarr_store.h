/* A .daf.zarr tree as a store that can be read: it presents the keys and files of the FilesDaf that the tree would become
 * (specification "ZarrDaf", section 7). Chunks that are payloads as they stand are handed through; everything else is
 * made when it is asked for, and what was made of the last property is kept. The tree decides what there is, not its
 * consolidated metadata. */
#ifndef DAF_SRC_ZARR_STORE_H
#define DAF_SRC_ZARR_STORE_H

#include "archive_path.h"
#include "descriptor.h"
#include "store.h"
#include "zarr_node.h"

/* Whether the path means such a tree: a directory RUN.daf.zarr, or (then `where` is filled) one in an archive,
 * RUN.daf.zarr.zip, RUNS.dafs.zarr.zip#/GROUP. Returns 0; DAF_ERR_ARG; DAF_ERR_NOMEM. */
int daf__zarr_path_parse(bool *ret, daf__archive_path *where, int dirfd, const char *path, daf_error *err);

/* Takes `base`, in which the tree lies, also on failure. */
int daf__zarr_store_open(daf__store **ret, daf__store *base, daf_error *err);

/* Where the tree lies when `s` is of this kind, else NULL. */
daf__store *daf__zarr_base(daf__store *s);

/* The file of the base that is the payload `key` as it stands; an empty path when there is none. *sharded: the
 * payload was made of a shard. Returns as opening the key. */
int daf__zarr_source(daf__store *s, daf__zarr_path *ret, bool *sharded, const char *key, daf_error *err);

#endif
