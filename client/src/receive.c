#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

enum { RECEIVE_BYTES = 64 * 1024 };

/* Makes room behind what has been read: a message of any allowed length fits in the end. */
static int receive_make_room(client_receiver *r) {
    if (r->begin == r->end)
        r->begin = r->end = 0;
    if (r->cap - r->end >= RECEIVE_BYTES / 2)
        return 0;
    if (r->begin)
        memmove(r->data, r->data + r->begin, r->end - r->begin);
    r->end -= r->begin;
    r->begin = 0;
    if (r->cap - r->end >= RECEIVE_BYTES / 2)
        return 0;
    size_t cap = r->cap ? r->cap * 2 : RECEIVE_BYTES;
    uint8_t *data = realloc(r->data, cap);
    if (!data)
        return -1;
    r->data = data;
    r->cap = cap;
    return 0;
}

int client__receive(client_receiver *r, client_link *link) {
    if (receive_make_room(r) != 0)
        return -2;
    ssize_t n = client__link_receive(link, r->data + r->end, r->cap - r->end);
    if (n > 0) {
        r->end += (size_t)n;
        return 1;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    if (n == 0)
        errno = 0;
    return -1;
}

wire_status client__take(client_receiver *r, const uint8_t **message, size_t *bytes) {
    uint64_t length;
    size_t used, there = r->end - r->begin;
    wire_status status = wire_prefix_get(r->data + r->begin, there, CLIENT_ANSWER_BYTES_MAX, &length, &used);
    if (status != WIRE_OK)
        return status;
    if (length > there - used)
        return WIRE_MORE;
    *message = r->data + r->begin + used;
    *bytes = (size_t)length;
    r->begin += used + *bytes;
    return WIRE_OK;
}
