/* Finding the index of an entry by its name. */
#ifndef DAF_CLI_NAME_INDEX_H
#define DAF_CLI_NAME_INDEX_H

#include <daf/daf.h>

#define NO_INDEX UINT64_MAX

typedef struct name_index name_index;

/* Of the entries of an axis, which must outlive it. NULL: out of memory. */
name_index *name_index_new(const daf_array *entries);
void name_index_free(name_index *x); /* NULL is fine */

/* NO_INDEX: there is no such entry. */
uint64_t name_index_find(const name_index *x, const char *name);

#endif
