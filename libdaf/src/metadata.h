/* metadata.json: the descriptors of all properties in one file (specification section 5).
 *
 * The tree decides what exists; the index follows it. What a write does to the index is noted first (a set appends, a
 * removal makes the next rendering start from the tree) and rendered to the file's new content, whose bytes are those
 * of the specified in-place append or rebuild; the file is then replaced whole.
 */
#ifndef DAF_SRC_METADATA_H
#define DAF_SRC_METADATA_H

#include "store.h"

#define DAF__METADATA_KEY "metadata.json"

typedef struct daf__metadata_entry {
    char *key;
    char *descriptor; /* without the final LF */
} daf__metadata_entry;

typedef struct daf__metadata {
    daf__buf bytes; /* what the file holds; empty: not known */
    bool rebuild;   /* start from the tree, not from `bytes` */
    daf__metadata_entry *appended;
    size_t n_appended, capacity;
} daf__metadata;

void daf__metadata_free(daf__metadata *m);

/* Notes that a property was set. `descriptor` may end in a LF. */
int daf__metadata_note_set(daf__metadata *m, const char *key, const void *descriptor, size_t bytes,
                           daf_error *err);

/* Notes that properties are removed: what was set before is found in the tree. */
void daf__metadata_note_removed(daf__metadata *m);

/* Drops the notes. */
void daf__metadata_forget(daf__metadata *m);

/* The file's content with the notes applied. `leaving`: keys (or, ending in "/", prefixes of keys) that are in the
 * tree still but no longer count; may be NULL. */
int daf__metadata_render(const daf__metadata *m, daf__store *s, const daf_names *leaving, daf__buf *ret,
                         daf_error *err);

/* The rendered content (consumed) is in place. */
void daf__metadata_taken(daf__metadata *m, daf__buf *rendered);

/* Reads the file; *usable says whether it is there and is JSON. against_tree: whether it also lists just the
 * properties that the tree holds. */
int daf__metadata_load(daf__metadata *m, daf__store *s, bool against_tree, bool *usable, daf_error *err);

/* Calls back for every property of the tree, in the order of a rebuild; `key` is the property's, without a suffix.
 * A visitor's failure ends the walk. */
typedef int (*daf__visit)(void *context, daf__kind kind, const daf__key *key, daf_error *err);
int daf__walk(daf__store *s, daf__visit visit, void *context, daf_error *err);

#endif
