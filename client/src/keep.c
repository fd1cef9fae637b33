#include "keep.h"

#include <stdlib.h>

static client_kept *keep_at(const client_keep *k, uint64_t number) {
    return &k->messages[number % CLIENT_KEEP_MESSAGES];
}

int client__keep_init(client_keep *k, size_t ring_bytes) {
    *k = (client_keep){.first = 1, .next = 1, .ring_bytes = ring_bytes};
    k->messages = calloc(CLIENT_KEEP_MESSAGES, sizeof *k->messages);
    k->ring = malloc(ring_bytes);
    return k->messages && k->ring ? 0 : -1;
}

void client__keep_free(client_keep *k) {
    if (k->messages && k->next > k->first)
        client__keep_release(k, k->next - 1);
    free(k->messages);
    free(k->ring);
    *k = (client_keep){.first = 1, .next = 1};
}

void client__keep_start(client_keep *k, uint64_t next) {
    k->first = k->next = next;
}

bool client__keep_is_full(const client_keep *k) {
    return k->next - k->first == CLIENT_KEEP_MESSAGES;
}

uint8_t *client__keep_reserve(client_keep *k, size_t bytes) {
    if (client__keep_is_full(k))
        return NULL;
    if (k->n_ring == 0)
        k->head = k->tail = 0;
    bool wrapped = k->n_ring && k->head <= k->tail;
    size_t end = wrapped ? k->tail : k->ring_bytes;
    if (bytes <= end - k->head)
        return k->ring + k->head;
    return !wrapped && bytes <= k->tail ? k->ring : NULL;
}

void client__keep_add(client_keep *k, uint32_t kind, uint8_t *data, size_t bytes, bool own,
                      uint64_t bytes_up_to) {
    *keep_at(k, k->next++) = (client_kept){data, bytes, bytes_up_to, kind, own};
    if (own)
        return;
    size_t at = (size_t)(data - k->ring);
    if (k->n_ring++ == 0)
        k->tail = at;
    k->head = at + bytes;
}

void client__keep_take_back(client_keep *k) {
    client_kept *m = keep_at(k, --k->next);
    free(m->data);
    m->data = NULL;
}

const client_kept *client__keep_find(const client_keep *k, uint64_t number) {
    return number >= k->first && number < k->next ? keep_at(k, number) : NULL;
}

uint64_t client__keep_bytes_up_to(const client_keep *k, uint64_t number) {
    const client_kept *m = client__keep_find(k, number);
    return m ? m->bytes_up_to : k->bytes_before;
}

void client__keep_release(client_keep *k, uint64_t number) {
    while (k->first < k->next && k->first <= number) {
        client_kept *m = keep_at(k, k->first++);
        k->bytes_before = m->bytes_up_to;
        if (m->own) {
            free(m->data);
        } else {
            k->tail = (size_t)(m->data - k->ring) + m->bytes;
            k->n_ring--;
        }
        m->data = NULL;
    }
}
