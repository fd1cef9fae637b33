/* The memory store: files by key in a sorted table. A file's bytes are counted by those who hold them (the table, open
 * files, views), so a view outlives the property and the store. A handle has a store of its own. */
#ifndef DAF_SRC_STORE_MEMORY_H
#define DAF_SRC_STORE_MEMORY_H

#include "store.h"

/* An empty store, without a marker. */
int daf__memory_store_new(daf__store **ret, daf_error *err);

#endif
