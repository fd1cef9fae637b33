/* Attributes on their way from files to a file: in order, found by key, changed and taken out at will. */
#ifndef D7_CLI_ATTRIBUTE_LIST_H
#define D7_CLI_ATTRIBUTE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "d7/d7.h"

typedef struct attribute_node {
    char *key, *value;
    struct attribute_node *previous, *next;
} attribute_node;

typedef struct attribute_list {
    attribute_node *first, *last;
    size_t n;
    void *by_key; /* a tree of nodes, see tsearch(3) */
} attribute_list;

attribute_node *attribute_find(const attribute_list *list, const char *key);

/* The value, NULL where the key is not there. */
const char *attribute_value(const attribute_list *list, const char *key);

/* Sets a value. A new key comes before `before`, at the end for NULL; one that is there keeps its place. Strings are copied.
 * Returns false when memory runs out. */
bool attribute_put(attribute_list *list, attribute_node *before, const char *key, const char *value);

void attribute_remove(attribute_list *list, attribute_node *node);

void attribute_free(attribute_list *list);

/* All as an array for a writer's options, to be released by free(); the strings stay the list's. NULL: out of memory. */
d7_attribute *attribute_array(const attribute_list *list);

#endif
