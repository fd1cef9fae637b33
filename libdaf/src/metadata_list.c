#include "metadata_list.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json.h"

static void entry_free(daf__metadata_entry *e) {
    free(e->key);
    free(e->text);
}

void daf__metadata_list_clear(daf__metadata_list *list) {
    for (size_t i = 0; i < list->n; i++)
        entry_free(&list->entries[i]);
    free(list->entries);
    *list = (daf__metadata_list){0};
}

static int make_room(daf__metadata_list *list, size_t more, daf_error *err) {
    if (more <= list->capacity - list->n)
        return 0;
    size_t capacity = 2 * list->capacity + more;
    daf__metadata_entry *grown = realloc(list->entries, capacity * sizeof *grown);
    if (!grown)
        return daf__no_memory(err);
    list->entries = grown;
    list->capacity = capacity;
    return 0;
}

int daf__metadata_list_add(daf__metadata_list *list, const char *key, const void *descriptor, size_t bytes,
                           daf_error *err) {
    daf__buf text = {0};
    int rc = make_room(list, 1, err);
    if (rc)
        return rc;
    daf__json_string(&text, key, strlen(key));
    daf__buf_append(&text, ":", 1);
    daf__buf_append(&text, descriptor, bytes);
    char *copy = strdup(key);
    if (text.failed || !copy) {
        daf__buf_free(&text);
        free(copy);
        return daf__no_memory(err);
    }
    list->entries[list->n++] =
        (daf__metadata_entry){.key = copy, .text = (char *)text.data, .text_bytes = text.size};
    return 0;
}

/* ---- order */

/* Where the next part of a key ends: at its "/", or at its end. */
static size_t part_bytes(const char *key) {
    return strcspn(key, "/");
}

/* Compares a + suffix with b + suffix. */
static int compare_files(const char *a, size_t n_a, const char *b, size_t n_b, const char *suffix) {
    size_t k = strlen(suffix), shorter = n_a < n_b ? n_a : n_b;
    int order = memcmp(a, b, shorter);
    for (size_t i = shorter; order == 0 && i < n_a + k && i < n_b + k; i++) {
        unsigned char x = (unsigned char)(i < n_a ? a[i] : suffix[i - n_a]);
        unsigned char y = (unsigned char)(i < n_b ? b[i] : suffix[i - n_b]);
        order = x - y;
    }
    return order ? order : (n_a > n_b) - (n_a < n_b);
}

/* The kinds' folders stand in the order of the alphabet but for "matrices". */
static int rank(const char *key) {
    return key[0] == 'a' ? 0 : key[0] == 's' ? 1 : key[0] == 'v' ? 2 : 3;
}

int daf__metadata_compare(const char *a, const char *b) {
    int order = rank(a) - rank(b);
    const char *last = rank(a) == 0 ? ".txt" : ".json";
    while (order == 0) {
        a += part_bytes(a) + 1;
        b += part_bytes(b) + 1;
        size_t n_a = part_bytes(a), n_b = part_bytes(b);
        bool ends = a[n_a] == 0 || b[n_b] == 0;
        order = compare_files(a, n_a, b, n_b, ends ? last : ".txt");
        if (ends)
            break;
    }
    return order;
}

int daf__metadata_list_move(daf__metadata_list *list, daf__metadata_list *from, daf_error *err) {
    int rc = make_room(list, from->n, err);
    if (rc)
        return rc;
    if (from->n)
        memcpy(list->entries + list->n, from->entries, from->n * sizeof *from->entries);
    list->n += from->n;
    from->n = 0;
    return 0;
}

/* By key; of equal ones the earlier first. */
static int compare_places(const void *a, const void *b) {
    const daf__metadata_entry *const *x = a, *const *y = b;
    int order = daf__metadata_compare((*x)->key, (*y)->key);
    return order ? order : (*x > *y) - (*x < *y);
}

int daf__metadata_list_merge(daf__metadata_list *list, daf__metadata_list *from, daf_error *err) {
    size_t n = list->n + from->n, n_merged = 0, k = 0;
    if (from->n == 0)
        return 0;
    daf__metadata_entry *merged = malloc(n * sizeof *merged);
    const daf__metadata_entry **sorted = malloc(from->n * sizeof *sorted);
    if (!merged || !sorted) {
        free(merged);
        free(sorted);
        return daf__no_memory(err);
    }
    for (size_t i = 0; i < from->n; i++)
        sorted[i] = &from->entries[i];
    qsort(sorted, from->n, sizeof *sorted, compare_places);
    for (size_t i = 0; i < list->n || k < from->n;) {
        int order = i == list->n   ? 1
                    : k == from->n ? -1
                                   : daf__metadata_compare(list->entries[i].key, sorted[k]->key);
        daf__metadata_entry next = order <= 0 ? list->entries[i++] : *sorted[k++];
        if (n_merged && daf__metadata_compare(merged[n_merged - 1].key, next.key) == 0)
            entry_free(&merged[--n_merged]); /* set again */
        merged[n_merged++] = next;
    }
    free(sorted);
    free(list->entries);
    *list = (daf__metadata_list){.entries = merged, .n = n_merged, .capacity = n};
    from->n = 0;
    return 0;
}

/* ---- removing */

bool daf__is_leaving(const daf_names *names, const char *key) {
    for (size_t i = 0; names && i < names->n; i++) {
        const char *name = names->names[i];
        size_t n = strlen(name);
        if (n > 0 && name[n - 1] == '/' ? strncmp(key, name, n) == 0 : strcmp(key, name) == 0)
            return true;
    }
    return false;
}

void daf__metadata_list_remove(daf__metadata_list *list, const daf_names *keys) {
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (daf__is_leaving(keys, list->entries[i].key))
            entry_free(&list->entries[i]);
        else
            list->entries[kept++] = list->entries[i];
    }
    list->n = kept;
}
