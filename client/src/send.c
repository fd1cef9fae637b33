#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "internal.h"

/* Whether the window takes so much more. One message always may, or a small window would stop all. Without a window
 * of the server's what is not received is held, within its credit. */
static bool send_fits(const photon_client_run *run, uint64_t column_bytes) {
    const photon_client *c = run->client;
    uint64_t held = client__run_held(run), most = run->window_bytes ? run->window_bytes : run->credit_bytes;
    if (!run->again && c->keep_bytes < most)
        most = c->keep_bytes;
    return held == 0 || (held <= most && column_bytes <= most - held);
}

static const char *send_obstacle(const photon_client_run *run) {
    if (run->client->down)
        return run->client->failure.text;
    return run->paused ? run->pause_text : "too much of it is on its way";
}

int client__send_wait(photon_client_run *run, size_t bytes, uint64_t column_bytes, bool in_ring,
                      uint64_t deadline_ns, photon_client_error *err) {
    for (;;) {
        int rc = client__run_check(run, err);
        if (rc != 0)
            return rc;
        bool room =
            in_ring ? client__keep_reserve(&run->keep, bytes) != NULL : !client__keep_is_full(&run->keep);
        if (room && send_fits(run, column_bytes))
            return 0;
        if (client__wait(run->client, deadline_ns) != 0)
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s is not ready for more: %.250s",
                                 run->client->address_text, send_obstacle(run));
    }
}

/* The items of a column as they go out. On a little-endian host they stay where they are. */
static wire_column send_column(photon_client_run *run, const void *items, uint64_t n, size_t item_bytes,
                               size_t *swapped) {
    wire_column column = {items, (size_t)n * item_bytes};
    if (BYTES_HOST_IS_LITTLE || column.bytes == 0)
        return column;
    column.data = run->swapped + *swapped;
    bytes_copy_le(run->swapped + *swapped, items, (size_t)n, item_bytes);
    *swapped += column.bytes;
    return column;
}

static int send_reserve_swapped(photon_client_run *run, uint64_t bytes, photon_client_error *err) {
    if (BYTES_HOST_IS_LITTLE || run->swapped)
        return 0;
    run->swapped = malloc((size_t)(run->split.batch_bytes > bytes ? run->split.batch_bytes : bytes));
    return run->swapped ? 0 : client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for a batch");
}

/* Lays out the part of the caller's columns that goes now. Returns its column bytes. */
static uint64_t send_lay_out(photon_client_run *run, const photon_client_batch *from) {
    wire_batch *to = &run->room->batch;
    size_t swapped = 0;
    uint64_t bytes = 0;
    to->n_counts = (uint32_t)run->n_groups;
    to->n_columns = (uint32_t)run->n_datasets;
    memcpy(to->counts, run->take, run->n_groups * sizeof *run->take);
    for (size_t i = 0; i < run->n_datasets; i++) {
        const photon_client_dataset_state *d = &run->datasets[i];
        const uint8_t *items = from->columns[i];
        if (run->take[d->group_index])
            items += run->done[d->group_index] * d->item_bytes;
        to->columns[i] = send_column(run, items, run->take[d->group_index], d->item_bytes, &swapped);
        bytes += to->columns[i].bytes;
    }
    to->crc32c = wire_batch_crc32c(to);
    return bytes;
}

/* Things that are told once a call: losses with its first batch, times when it is its only one. */
static void send_note(photon_client_run *run, const photon_client_batch *from, bool first, bool only) {
    wire_batch *to = &run->room->batch;
    to->lost_before = first ? from->lost_before : 0;
    to->times_valid = only && from->times_valid;
    to->first_time = to->times_valid ? from->first_time : 0;
    to->last_time = to->times_valid ? from->last_time : 0;
}

/* Where the fields of the Batch begin in the message that holds it: after length, kind and length. */
static size_t send_skip(const uint8_t *head) {
    size_t i = 0;
    while (head[i++] & 0x80) {
    }
    i++;
    while (head[i++] & 0x80) {
    }
    return i;
}

static void send_copy(uint8_t *to, const struct iovec *pieces, size_t n, size_t skip) {
    for (size_t i = 0; i < n; i++) {
        size_t bytes = pieces[i].iov_len - (i ? 0 : skip);
        if (bytes)
            memcpy(to, (const uint8_t *)pieces[i].iov_base + (i ? 0 : skip), bytes);
        to += bytes;
    }
}

/* The bytes that are kept of the batch that has been laid out. */
static size_t send_kept_bytes(photon_client_run *run, size_t *n_pieces) {
    client_batch_room *room = run->room;
    room->batch.run = 0; /* the handle is another one on each connection */
    if (run->again)
        return client__again_bytes(run);
    size_t bytes = wire_batch_frame(&room->batch, room->head, room->pieces, n_pieces);
    return bytes - send_skip(room->pieces[0].iov_base);
}

/* Puts the batch that has been laid out into the window, and writes what goes. */
static int send_one(photon_client_run *run, uint64_t column_bytes, uint64_t deadline_ns,
                    photon_client_error *err) {
    photon_client *c = run->client;
    client_batch_room *room = run->room;
    size_t n = 0;
    pthread_mutex_lock(&c->lock);
    room->batch.sequence = run->sent + 1;
    size_t bytes = send_kept_bytes(run, &n);
    int rc = client__send_wait(run, bytes, column_bytes, true, deadline_ns, err);
    uint8_t *to = rc == 0 ? client__keep_reserve(&run->keep, bytes) : NULL;
    pthread_mutex_unlock(&c->lock);
    if (rc != 0)
        return rc;
    if (run->again)
        client__again_put(run, to);
    else
        send_copy(to, room->pieces, n, send_skip(room->pieces[0].iov_base));
    pthread_mutex_lock(&c->lock);
    rc = client__run_check(run, err); /* it may have ended meanwhile */
    if (rc == 0) {
        run->sent++;
        run->bytes_sent += column_bytes;
        client__keep_add(&run->keep, PHOTON__CLIENT_MESSAGE__BODY_BATCH, to, bytes, false, run->bytes_sent);
        client__pump(c);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

static bool send_is_done(const photon_client_run *run, const uint64_t *counts) {
    return memcmp(run->done, counts, run->n_groups * sizeof *counts) == 0;
}

static int send_check(const photon_client_run *run, const photon_client_batch *batch,
                      photon_client_error *err) {
    for (size_t i = 0; i < run->n_datasets; i++) {
        uint64_t n = batch->counts[run->datasets[i].group_index];
        if (n && !batch->columns[i])
            return client__error(err, PHOTON_CLIENT_ERR_ARG, "column %zu ('%s') is NULL", i,
                                 run->datasets[i].name);
        if (n > SIZE_MAX / 16)
            return client__error(err, PHOTON_CLIENT_ERR_ARG, "%llu items are more than any memory holds",
                                 (unsigned long long)n);
    }
    return 0;
}

/* The photons that the run had before this call: what an index of milliseconds counts from. */
static uint64_t send_photons_before(const photon_client_run *run) {
    const client_split *s = &run->split;
    return s->index_group == CLIENT_SPLIT_NO_GROUP ? 0 : run->items_sent[s->photon_group];
}

static int send_next(photon_client_run *run, const photon_client_batch *batch, bool first,
                     uint64_t deadline_ns, photon_client_error *err) {
    client__split_next(&run->split, batch->columns, batch->counts, run->done, send_photons_before(run),
                       run->take);
    uint64_t bytes = 0;
    bool only = first;
    for (size_t g = 0; g < run->n_groups; g++) {
        bytes += run->take[g] * run->split.row_bytes[g];
        only = only && run->take[g] == batch->counts[g];
    }
    int rc = send_reserve_swapped(run, bytes, err);
    if (rc != 0)
        return rc;
    send_lay_out(run, batch);
    send_note(run, batch, first, only);
    return send_one(run, bytes, deadline_ns, err);
}

int photon_client_send_batch(photon_client_run *run, const photon_client_batch *batch, uint64_t *ret_taken,
                             photon_client_error *err) {
    pthread_mutex_lock(&run->client->lock);
    int rc = client__run_check(run, err);
    pthread_mutex_unlock(&run->client->lock);
    if (rc == 0)
        rc = send_check(run, batch, err);
    if (rc != 0)
        return rc;
    uint64_t deadline = client__deadline(batch->timeout_ms);
    bool first = true;
    memset(run->done, 0, run->n_groups * sizeof *run->done);
    while (rc == 0 && (!send_is_done(run, batch->counts) || (first && batch->lost_before))) {
        rc = send_next(run, batch, first, deadline, err);
        for (size_t g = 0; rc == 0 && g < run->n_groups; g++)
            run->done[g] += run->take[g];
        first = false;
    }
    for (size_t g = 0; g < run->n_groups; g++)
        run->items_sent[g] += run->done[g];
    if (ret_taken && (rc == 0 || rc == PHOTON_CLIENT_ERR_TIMEOUT))
        memcpy(ret_taken, run->done, run->n_groups * sizeof *ret_taken);
    return rc;
}

int photon_client_send(photon_client_run *run, const void *const *columns, const uint64_t *counts,
                       photon_client_error *err) {
    photon_client_batch batch = {.columns = columns, .counts = counts, .timeout_ms = run->send_timeout_ms};
    return photon_client_send_batch(run, &batch, NULL, err);
}
