/* A hash table of chunks that are also strung together by their last use. */
#include "chunk_cache.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

enum { N_BUCKETS = 1 << 12 };

typedef struct node {
    struct node *next_in_bucket;
    struct node *newer, *older;
    uint64_t k;
    bool absent;
    size_t bytes;
    uint8_t raw[];
} node;

struct daf__cache {
    uint64_t capacity, used; /* the nodes' own bytes included */
    node *newest, *oldest;
    node *buckets[N_BUCKETS];
};

int daf__cache_new(daf__cache **ret, uint64_t capacity_bytes, daf_error *err) {
    daf__cache *c = calloc(1, sizeof *c);
    if (!c)
        return daf__no_memory(err);
    c->capacity = capacity_bytes;
    *ret = c;
    return 0;
}

void daf__cache_free(daf__cache *c) {
    if (!c)
        return;
    while (c->newest) {
        node *n = c->newest;
        c->newest = n->older;
        free(n);
    }
    free(c);
}

static node **bucket_of(daf__cache *c, uint64_t k) {
    return &c->buckets[(k * 0x9E3779B97F4A7C15u) >> 52];
}

static node *find(const daf__cache *c, uint64_t k) {
    node *n = *bucket_of((daf__cache *)(uintptr_t)c, k);
    while (n && n->k != k)
        n = n->next_in_bucket;
    return n;
}

static void unstring(daf__cache *c, node *n) {
    *(n->newer ? &n->newer->older : &c->newest) = n->older;
    *(n->older ? &n->older->newer : &c->oldest) = n->newer;
}

static void string_first(daf__cache *c, node *n) {
    n->newer = NULL;
    n->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = n;
    c->newest = n;
}

static uint64_t cost_of(size_t bytes) {
    return sizeof(node) + (uint64_t)bytes;
}

static void drop(daf__cache *c, node *n) {
    node **link = bucket_of(c, n->k);
    while (*link != n)
        link = &(*link)->next_in_bucket;
    *link = n->next_in_bucket;
    unstring(c, n);
    c->used -= cost_of(n->bytes);
    free(n);
}

bool daf__cache_has(const daf__cache *c, uint64_t k) {
    return find(c, k) != NULL;
}

bool daf__cache_get(daf__cache *c, uint64_t k, daf__cached *ret) {
    node *n = find(c, k);
    if (!n)
        return false;
    unstring(c, n);
    string_first(c, n);
    *ret = (daf__cached){.raw = n->absent ? NULL : n->raw, .bytes = n->bytes};
    return true;
}

void daf__cache_put(daf__cache *c, uint64_t k, const uint8_t *raw, size_t bytes) {
    node *n = find(c, k);
    if (n)
        drop(c, n);
    if (!raw)
        bytes = 0;
    if (cost_of(bytes) > c->capacity)
        return;
    while (c->used + cost_of(bytes) > c->capacity)
        drop(c, c->oldest);
    n = malloc(sizeof *n + bytes);
    if (!n)
        return;
    *n = (node){.k = k, .absent = !raw, .bytes = bytes};
    if (bytes)
        memcpy(n->raw, raw, bytes);
    node **bucket = bucket_of(c, k);
    n->next_in_bucket = *bucket;
    *bucket = n;
    string_first(c, n);
    c->used += cost_of(bytes);
}

uint64_t daf__cache_bytes(const daf__cache *c) {
    return c->used;
}
