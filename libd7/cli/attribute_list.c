#include "attribute_list.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int compare_nodes(const void *a, const void *b) {
    return strcmp(((const attribute_node *)a)->key, ((const attribute_node *)b)->key);
}

attribute_node *attribute_find(const attribute_list *list, const char *key) {
    union {
        const char *given;
        char *key;
    } text = {key}; /* tfind() changes nothing, but its nodes' keys can be */
    attribute_node wanted = {.key = text.key};
    attribute_node **found = tfind(&wanted, &list->by_key, compare_nodes);
    return found ? *found : NULL;
}

const char *attribute_value(const attribute_list *list, const char *key) {
    const attribute_node *node = attribute_find(list, key);
    return node ? node->value : NULL;
}

static void release_node(attribute_node *node) {
    free(node->key);
    free(node->value);
    free(node);
}

static attribute_node *new_node(const char *key, const char *value) {
    attribute_node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    node->key = strdup(key);
    node->value = strdup(value);
    if (node->key && node->value)
        return node;
    release_node(node);
    return NULL;
}

static void link_before(attribute_list *list, attribute_node *before, attribute_node *node) {
    node->next = before;
    node->previous = before ? before->previous : list->last;
    *(node->previous ? &node->previous->next : &list->first) = node;
    *(before ? &before->previous : &list->last) = node;
    list->n++;
}

bool attribute_put(attribute_list *list, attribute_node *before, const char *key, const char *value) {
    attribute_node *node = attribute_find(list, key);
    if (node) {
        char *copy = strdup(value);
        if (!copy)
            return false;
        free(node->value);
        node->value = copy;
        return true;
    }
    node = new_node(key, value);
    if (!node)
        return false;
    if (!tsearch(node, &list->by_key, compare_nodes)) {
        release_node(node);
        return false;
    }
    link_before(list, before, node);
    return true;
}

void attribute_remove(attribute_list *list, attribute_node *node) {
    tdelete(node, &list->by_key, compare_nodes);
    *(node->previous ? &node->previous->next : &list->first) = node->next;
    *(node->next ? &node->next->previous : &list->last) = node->previous;
    list->n--;
    release_node(node);
}

void attribute_free(attribute_list *list) {
    while (list->first)
        attribute_remove(list, list->first);
}

d7_attribute *attribute_array(const attribute_list *list) {
    d7_attribute *array = calloc(list->n + 1, sizeof *array);
    size_t i = 0;
    for (const attribute_node *node = list->first; array && node; node = node->next)
        array[i++] = (d7_attribute){.key = node->key, .value = node->value};
    return array;
}
