/* The names in an archive as a tree, found by hash: a name is looked up part by part, each part under its folder. */
#ifndef DAF_SRC_ARCHIVE_NAMES_H
#define DAF_SRC_ARCHIVE_NAMES_H

#include "store.h"

#define DAF__NO_ENTRY UINT32_MAX

typedef struct daf__archive_node {
    uint32_t hash;
    uint32_t text, bytes; /* of this part of the name, in the tree's text */
    uint32_t parent;      /* the folder */
    uint32_t next;        /* in the same folder; 0: none (0 is the root) */
    uint32_t first;       /* of a folder: what was added last; 0: none */
    uint32_t n_files;     /* of a folder: beneath it at any depth */
    uint32_t entry;       /* of a file; DAF__NO_ENTRY: taken out */
    bool is_folder;
} daf__archive_node;

typedef struct daf__archive_names {
    daf__archive_node *nodes; /* nodes[0]: the root */
    uint32_t *slots;          /* of the hash: numbers of nodes, 0: free */
    uint32_t n_nodes, node_capacity, n_slots;
    daf__buf text;
} daf__archive_names;

int daf__archive_names_init(daf__archive_names *t, daf_error *err);
void daf__archive_names_free(daf__archive_names *t);

/* The file `name` is the entry from now on, whatever it was before. */
int daf__archive_names_set(daf__archive_names *t, const char *name, size_t bytes, uint32_t entry,
                           daf_error *err);

/* Takes the file out. */
void daf__archive_names_remove(daf__archive_names *t, const char *name, size_t bytes);

/* Its entry, or DAF__NO_ENTRY. */
uint32_t daf__archive_names_find(const daf__archive_names *t, const char *name, size_t bytes);

/* The names in a folder ("": the root), sorted; a folder without files beneath it is none. */
int daf__archive_names_list(const daf__archive_names *t, daf_names *ret, const char *folder, size_t bytes,
                            daf__list_what what, daf_error *err);

/* How many files lie beneath a folder. */
uint32_t daf__archive_names_count(const daf__archive_names *t, const char *folder, size_t bytes);

#endif
