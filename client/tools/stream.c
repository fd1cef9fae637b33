/* Columns from the standard input: records of one item per column, one after the other without gaps, little-endian,
 * as --layout names them. What has come goes out at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "source.h"

enum { STREAM_BYTES = 1 << 20 };

typedef struct stream {
    int fd;
    uint8_t *in; /* [STREAM_BYTES] */
    size_t filled;
    size_t record_bytes;
    size_t offsets[SEND_DATASETS_MAX]; /* in a record */
    size_t item_bytes[SEND_DATASETS_MAX];
    uint8_t *columns[SEND_DATASETS_MAX]; /* [STREAM_BYTES / record_bytes] items */
    uint64_t left;                       /* events still to be taken */
} stream;

static void stream_free(send_source *s) {
    stream *t = s->own;
    for (size_t i = 0; i < SEND_DATASETS_MAX; i++)
        free(t->columns[i]);
    free(t->in);
}

/* Returns 1: at least one whole record is there; 0: the end; -1. */
static int stream_fill(stream *t, send_fault *fault) {
    while (t->filled < t->record_bytes) {
        ssize_t n = read(t->fd, t->in + t->filled, STREAM_BYTES - t->filled);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return send_refuse(fault, "standard input: %s", strerror(errno));
        if (n == 0 && t->filled)
            return send_refuse(fault, "standard input ended within a record: %zu of %zu bytes", t->filled,
                               t->record_bytes);
        if (n == 0)
            return 0;
        t->filled += (size_t)n;
    }
    return 1;
}

/* Records to columns. */
static void stream_take(const send_source *s, stream *t, size_t n) {
    for (size_t i = 0; i < s->n_datasets; i++) {
        size_t width = t->item_bytes[i];
        const uint8_t *from = t->in + t->offsets[i];
        uint8_t *to = t->columns[i];
        for (size_t k = 0; k < n; k++, from += t->record_bytes, to += width)
            bytes_copy_le(to, from, 1, width);
    }
    size_t used = n * t->record_bytes;
    memmove(t->in, t->in + used, t->filled - used);
    t->filled -= used;
}

static int stream_next(send_source *s, const send_want *want, send_chunk *chunk, send_fault *fault) {
    stream *t = s->own;
    if (t->left == 0)
        return 0;
    int rc = stream_fill(t, fault);
    if (rc <= 0)
        return rc;
    uint64_t n = t->filled / t->record_bytes;
    n = n < want->events ? n : want->events;
    n = n < t->left ? n : t->left;
    stream_take(s, t, (size_t)n);
    t->left -= n;
    chunk->counts[0] = n;
    for (size_t i = 0; i < s->n_datasets; i++)
        chunk->columns[i] = t->columns[i];
    return 1;
}

/* ---- layout */

/* "x:u16", "/my/thing:f32" */
static int stream_add(send_source *s, stream *t, char *field, send_fault *fault) {
    char *colon = strrchr(field, ':');
    int type = colon ? send_type_of_ending(colon + 1) : -1;
    if (type < 0)
        return send_refuse(
            fault, "--layout: '%s' is not NAME:TYPE with a type of i8 i16 i32 i64 u8 u16 u32 u64 f32 f64",
            field);
    *colon = '\0';
    const send_known *known = send_find_known(field, NULL);
    if (!known && field[0] != '/')
        return send_refuse(
            fault,
            "--layout: '%s' is none of x y dt start stop channel time, and no name of a dataset (/...)",
            field);
    int at = send_add_dataset(s, known ? known->dataset : field, (uint32_t)type, fault);
    if (at < 0)
        return -1;
    static const uint8_t sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
    if (s->datasets[at].role == PHOTON_CLIENT_ROLE_MS_INDEX)
        return send_refuse(fault, "--layout: ms has no item per photon, so it cannot be a part of a record");
    t->item_bytes[at] = sizes[type];
    t->offsets[at] = t->record_bytes;
    t->record_bytes += sizes[type];
    return 0;
}

static int stream_layout(send_source *s, stream *t, const char *layout, send_fault *fault) {
    char *copy = strdup(layout), *save = NULL;
    int rc = copy ? 0 : send_refuse(fault, "no memory");
    for (char *field = copy ? strtok_r(copy, ",", &save) : NULL; rc == 0 && field;
         field = strtok_r(NULL, ",", &save))
        rc = stream_add(s, t, field, fault);
    free(copy);
    if (rc == 0 && s->n_datasets == 0)
        rc = send_refuse(fault, "--layout: no columns");
    return rc;
}

/* All columns of a record have one length, so they are one group: that of the first known one. */
static int stream_one_group(send_source *s, send_fault *fault) {
    send_settle_events(s, NULL);
    const char *name = s->datasets[0].group;
    for (size_t i = 0; i < s->n_datasets; i++)
        if (s->group_of[i] == s->event_group)
            name = s->datasets[i].group;
    char *copies[SEND_DATASETS_MAX];
    for (size_t i = 0; i < s->n_datasets; i++) {
        copies[i] = strdup(name);
        if (!copies[i]) {
            while (i)
                free(copies[--i]);
            return send_refuse(fault, "no memory");
        }
    }
    for (size_t i = 0; i < s->n_datasets; i++) {
        free((char *)(uintptr_t)s->datasets[i].group);
        s->datasets[i].group = copies[i];
        s->group_of[i] = 0;
    }
    s->n_groups = 1;
    s->event_group = 0;
    return 0;
}

static int stream_room(const send_source *s, stream *t, send_fault *fault) {
    t->in = malloc(STREAM_BYTES);
    bool whole = t->in != NULL;
    for (size_t i = 0; whole && i < s->n_datasets; i++) {
        t->columns[i] = malloc(STREAM_BYTES / t->record_bytes * t->item_bytes[i] + 1);
        whole = t->columns[i] != NULL;
    }
    return whole ? 0 : send_refuse(fault, "no memory");
}

send_source *send_open_stream(int fd, const char *layout, uint64_t count, send_fault *fault) {
    send_source *s = send_source_make(sizeof(stream), fault);
    if (!s)
        return NULL;
    stream *t = s->own;
    s->free = stream_free;
    s->next = stream_next;
    t->fd = fd;
    t->left = count;
    if (stream_layout(s, t, layout, fault) != 0 || stream_one_group(s, fault) != 0 ||
        stream_room(s, t, fault) != 0) {
        send_source_free(s);
        return NULL;
    }
    s->n_events = count;
    send_settle_time(s);
    return s;
}
