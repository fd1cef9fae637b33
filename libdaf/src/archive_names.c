#include "archive_names.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

enum { FIRST_SLOTS = 64 };
#define NONE UINT32_MAX
#define MAX_NODES ((uint32_t)1 << 30)

static uint32_t hash_of(uint32_t parent, const char *part, size_t bytes, bool is_folder) {
    uint64_t h = 0xCBF29CE484222325u ^ parent ^ (uint64_t)is_folder << 32; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)part[i]) * 0x100000001B3u;
    return (uint32_t)(h ^ h >> 32);
}

int daf__archive_names_init(daf__archive_names *t, daf_error *err) {
    *t = (daf__archive_names){.node_capacity = FIRST_SLOTS / 2, .n_slots = FIRST_SLOTS, .n_nodes = 1};
    t->nodes = malloc(t->node_capacity * sizeof *t->nodes);
    t->slots = calloc(t->n_slots, sizeof *t->slots);
    if (t->nodes && t->slots) {
        t->nodes[0] = (daf__archive_node){.is_folder = true, .entry = DAF__NO_ENTRY};
        return 0;
    }
    daf__archive_names_free(t);
    return daf__no_memory(err);
}

void daf__archive_names_free(daf__archive_names *t) {
    free(t->nodes);
    free(t->slots);
    daf__buf_free(&t->text);
    *t = (daf__archive_names){0};
}

static uint32_t find_part(const daf__archive_names *t, uint32_t parent, const char *part, size_t bytes,
                          bool is_folder) {
    uint32_t hash = hash_of(parent, part, bytes, is_folder), mask = t->n_slots - 1;
    for (uint32_t at = hash & mask; t->slots[at]; at = (at + 1) & mask) {
        const daf__archive_node *n = &t->nodes[t->slots[at]];
        if (n->hash == hash && n->parent == parent && n->is_folder == is_folder && n->bytes == bytes &&
            memcmp(t->text.data + n->text, part, bytes) == 0)
            return t->slots[at];
    }
    return NONE;
}

static void place(daf__archive_names *t, uint32_t node) {
    uint32_t mask = t->n_slots - 1, at = t->nodes[node].hash & mask;
    while (t->slots[at])
        at = (at + 1) & mask;
    t->slots[at] = node;
}

/* Room for one more node, with half of the slots free. */
static int grow(daf__archive_names *t, daf_error *err) {
    if (t->n_nodes < t->node_capacity)
        return 0;
    if (t->n_nodes >= MAX_NODES)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "too many names in an archive");
    daf__archive_node *nodes = realloc(t->nodes, 2 * (size_t)t->node_capacity * sizeof *nodes);
    if (!nodes)
        return daf__no_memory(err);
    t->nodes = nodes;
    uint32_t *slots = calloc(2 * (size_t)t->n_slots, sizeof *slots);
    if (!slots)
        return daf__no_memory(err);
    free(t->slots);
    t->slots = slots;
    t->n_slots *= 2;
    t->node_capacity *= 2;
    for (uint32_t i = 1; i < t->n_nodes; i++)
        place(t, i);
    return 0;
}

static int add_part(daf__archive_names *t, uint32_t *ret, uint32_t parent, const char *part, size_t bytes,
                    bool is_folder, daf_error *err) {
    *ret = find_part(t, parent, part, bytes, is_folder);
    if (*ret != NONE)
        return 0;
    int rc = grow(t, err);
    if (rc)
        return rc;
    size_t text = t->text.size;
    if (text > UINT32_MAX - bytes)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "the names in an archive are too long");
    daf__buf_append(&t->text, part, bytes);
    rc = daf__buf_check(&t->text, err);
    if (rc)
        return rc;
    *ret = t->n_nodes++;
    t->nodes[*ret] = (daf__archive_node){.hash = hash_of(parent, part, bytes, is_folder),
                                         .text = (uint32_t)text,
                                         .bytes = (uint32_t)bytes,
                                         .parent = parent,
                                         .next = t->nodes[parent].first,
                                         .entry = DAF__NO_ENTRY,
                                         .is_folder = is_folder};
    t->nodes[parent].first = *ret;
    place(t, *ret);
    return 0;
}

/* Follows the folders in front of the last '/'; *last: where the part behind it begins. */
static uint32_t find_parent(const daf__archive_names *t, const char *name, size_t bytes, size_t *last) {
    uint32_t at = 0;
    size_t from = 0;
    for (size_t i = 0; i < bytes && at != NONE; i++) {
        if (name[i] != '/')
            continue;
        at = find_part(t, at, name + from, i - from, true);
        from = i + 1;
    }
    *last = from;
    return at;
}

static void count(daf__archive_names *t, uint32_t folder, int change) {
    for (;; folder = t->nodes[folder].parent) {
        t->nodes[folder].n_files += (uint32_t)change;
        if (folder == 0)
            return;
    }
}

int daf__archive_names_set(daf__archive_names *t, const char *name, size_t bytes, uint32_t entry,
                           daf_error *err) {
    uint32_t at = 0, node;
    size_t from = 0;
    int rc = 0;
    for (size_t i = 0; i < bytes && rc == 0; i++) {
        if (name[i] != '/')
            continue;
        rc = add_part(t, &at, at, name + from, i - from, true, err);
        from = i + 1;
    }
    if (rc == 0)
        rc = add_part(t, &node, at, name + from, bytes - from, false, err);
    if (rc)
        return rc;
    if (t->nodes[node].entry == DAF__NO_ENTRY)
        count(t, at, 1);
    t->nodes[node].entry = entry;
    return 0;
}

static uint32_t find_file(const daf__archive_names *t, const char *name, size_t bytes) {
    size_t last;
    uint32_t parent = find_parent(t, name, bytes, &last);
    return parent == NONE ? NONE : find_part(t, parent, name + last, bytes - last, false);
}

void daf__archive_names_remove(daf__archive_names *t, const char *name, size_t bytes) {
    uint32_t node = find_file(t, name, bytes);
    if (node == NONE || t->nodes[node].entry == DAF__NO_ENTRY)
        return;
    t->nodes[node].entry = DAF__NO_ENTRY;
    count(t, t->nodes[node].parent, -1);
}

uint32_t daf__archive_names_find(const daf__archive_names *t, const char *name, size_t bytes) {
    uint32_t node = find_file(t, name, bytes);
    return node == NONE ? DAF__NO_ENTRY : t->nodes[node].entry;
}

static uint32_t find_folder(const daf__archive_names *t, const char *folder, size_t bytes) {
    if (bytes == 0)
        return 0;
    size_t last;
    uint32_t parent = find_parent(t, folder, bytes, &last);
    return parent == NONE ? NONE : find_part(t, parent, folder + last, bytes - last, true);
}

int daf__archive_names_list(const daf__archive_names *t, daf_names *ret, const char *folder, size_t bytes,
                            daf__list_what what, daf_error *err) {
    daf_names names = {0};
    int rc = 0;
    uint32_t at = find_folder(t, folder, bytes);
    for (uint32_t i = at == NONE ? 0 : t->nodes[at].first; i && rc == 0; i = t->nodes[i].next) {
        const daf__archive_node *n = &t->nodes[i];
        bool there = n->is_folder ? n->n_files > 0 : n->entry != DAF__NO_ENTRY;
        if (there && n->is_folder == (what == DAF__LIST_FOLDERS))
            rc = daf__names_add(&names, (const char *)t->text.data + n->text, n->bytes, err);
    }
    if (rc) {
        daf_names_clear(&names);
        return rc;
    }
    daf__names_sort(&names);
    *ret = names;
    return 0;
}

uint32_t daf__archive_names_count(const daf__archive_names *t, const char *folder, size_t bytes) {
    uint32_t at = find_folder(t, folder, bytes);
    return at == NONE ? 0 : t->nodes[at].n_files;
}
