/* metadata.json: the descriptors of all properties in one file (specification section 5).
 *
 * The tree decides what exists; the index follows it. What a write does to the index is noted (a set appends; a removal
 * makes the next file a rebuild) and rendered to the file's new content, whose bytes are those of the specified
 * in-place append or rebuild; the file is then replaced whole. The first rebuild of a handle reads the tree; from then
 * on the handle, which is the only writer, knows the descriptors.
 */
#ifndef DAF_SRC_METADATA_H
#define DAF_SRC_METADATA_H

#include "metadata_list.h"
#include "store.h"

#define DAF__METADATA_KEY "metadata.json"

/* A file that is there while a batch has made the index wrong in a way that its names do not show. */
#define DAF__METADATA_STALE_KEY ".daf.batch"

typedef struct daf__metadata {
    daf__buf bytes;  /* what the file holds; empty: not known */
    bool rebuild;    /* the next content starts from the properties, not from `bytes` */
    uint64_t shared; /* bytes that the file before the one in place begins with, too; 0: not known */
    bool knows;      /* `listed` and `written` are what the tree held before `appended` */
    bool is_stale;   /* the stale file is there */
    daf__metadata_list listed;   /* in the order of a rebuild */
    daf__metadata_list written;  /* set since, in their order, and in the file */
    daf__metadata_list appended; /* set since then */
    daf__buf rebuilt; /* the rendered content begins with this, when `rebuild`, else with `bytes` */
    daf__buf tail;    /* what goes in the place of the closing brace; empty: nothing */
} daf__metadata;

void daf__metadata_free(daf__metadata *m);

/* Notes that a property was set. `descriptor` may end in a LF. */
int daf__metadata_note_set(daf__metadata *m, const char *key, const void *descriptor, size_t bytes,
                           daf_error *err);

/* Notes that the keys (or, ending in "/", prefixes of keys) of `leaving` are removed. */
int daf__metadata_note_removed(daf__metadata *m, const daf_names *leaving, daf_error *err);

/* Drops the notes and what is known: the next content is read from the tree. */
void daf__metadata_distrust(daf__metadata *m);

/* Whether the file needs to be written. */
bool daf__metadata_is_due(const daf__metadata *m);

/* Fills a new out with the content with the notes applied. `leaving`: what is in the tree still but no longer counts;
 * may be NULL. */
int daf__metadata_render(daf__metadata *m, daf__store *s, const daf_names *leaving, daf__out **ret,
                         daf_error *err);

/* What was rendered is in place. */
void daf__metadata_taken(daf__metadata *m);

/* Reads the file; *usable says whether it is there, is JSON, lists just the properties that the tree holds, and can be
 * appended to. */
int daf__metadata_load(daf__metadata *m, daf__store *s, bool *usable, daf_error *err);

/* Whether the file is missing or no JSON; one that is too large to look over is taken as it is. */
int daf__metadata_lacks(bool *ret, daf__store *s, daf_error *err);

/* Reads the descriptors of all properties in the tree, without those in `leaving` and in `known`. */
int daf__metadata_read_tree(daf__metadata_list *ret, daf__store *s, const daf_names *leaving,
                            const daf__metadata_list *known, daf_error *err);

/* Calls back for every property of the tree, in the order of a rebuild (files: DAF__LIST_FILES), or as the folders'
 * names come (DAF__LIST_FILES_ANYHOW); `key` is the property's, without a suffix. A visitor's failure ends the walk. */
typedef int (*daf__visit)(void *context, daf__kind kind, const daf__key *key, daf_error *err);
int daf__walk(daf__store *s, daf__list_what files, daf__visit visit, void *context, daf_error *err);

#endif
