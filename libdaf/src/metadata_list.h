/* Entries of metadata.json: a key and its descriptor, written as they stand in the file. */
#ifndef DAF_SRC_METADATA_LIST_H
#define DAF_SRC_METADATA_LIST_H

#include "buf.h"
#include "names.h"

typedef struct daf__metadata_entry {
    char *key;
    char *text; /* "KEY":DESCRIPTOR with the key's quotes and escapes */
    size_t text_bytes;
} daf__metadata_entry;

typedef struct daf__metadata_list {
    daf__metadata_entry *entries;
    size_t n, capacity;
} daf__metadata_list;

void daf__metadata_list_clear(daf__metadata_list *list);

/* Adds a copy at the end; `descriptor` is without a final LF. */
int daf__metadata_list_add(daf__metadata_list *list, const char *key, const void *descriptor, size_t bytes,
                           daf_error *err);

/* Moves the entries of `from` to the end of the list. */
int daf__metadata_list_move(daf__metadata_list *list, daf__metadata_list *from, daf_error *err);

/* Moves the entries of `from` to their places in the sorted `list`; of entries with one key the last one stays. On failure
 * nothing has moved. */
int daf__metadata_list_merge(daf__metadata_list *list, daf__metadata_list *from, daf_error *err);

/* Removes the entries of the keys, and of those that begin with a name ending in "/". */
void daf__metadata_list_remove(daf__metadata_list *list, const daf_names *keys);

/* Whether the key is, or begins with, one of the names. */
bool daf__is_leaving(const daf_names *names, const char *key);

/* The order of a rebuild: axes, scalars, vectors by axis, matrices by rows, then columns axis; each bytewise by the
 * name of the file with its suffix. */
int daf__metadata_compare(const char *key_a, const char *key_b);

#endif
