#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "wire/names.h"

/* ---- what the reader thread learns */

void client__run_opened(photon_client_run *run, Photon__ServerMessage *message) {
    const Photon__Opened *opened = message->opened;
    const photon_client_server *server = &run->client->server;
    run->opened = message;
    run->phase = CLIENT_RUN_OPEN;
    run->handle = opened->run;
    run->sent = run->received = opened->next_sequence ? opened->next_sequence - 1 : 0;
    run->credit_bytes = server->in_flight_bytes ? server->in_flight_bytes : UINT64_MAX;
}

static void run_settle(photon_client_run *run) {
    run->client->in_flight_bytes -= run->bytes_sent - run->bytes_received;
    run->bytes_received = run->bytes_sent;
}

void client__run_closed(photon_client_run *run, Photon__ServerMessage *message) {
    const Photon__Closed *closed = message->closed;
    run->closed = message;
    if (run->phase == CLIENT_RUN_FAILED)
        return;
    run->phase = CLIENT_RUN_CLOSED;
    run->paused = false;
    run->received = run->durable = closed->last_sequence;
    run->sent = run->sent > run->received ? run->sent : run->received;
    run_settle(run);
}

void client__run_fail(photon_client_run *run, const photon_client_error *err) {
    if (run->phase == CLIENT_RUN_CLOSED || run->phase == CLIENT_RUN_FAILED)
        return;
    run->phase = CLIENT_RUN_FAILED;
    run->failure = *err;
    run->paused = false;
    run_settle(run);
}

/* One message was refused, so its number is still free. Nothing follows a message that is waited for, so the run goes
 * on; after any other the server meets a hole. A run that ends by itself tells so by Closed. */
void client__run_refused(photon_client_run *run, const photon_client_error *err) {
    if (err->server_code == PHOTON__ERROR_CODE__ERROR_RUN_CLOSED)
        return;
    if (run->asked && err->sequence == run->asked)
        run->refusal = *err;
    else
        client__run_fail(run, err);
}

void client__run_acknowledged(photon_client_run *run, const Photon__Ack *ack) {
    if (run->phase != CLIENT_RUN_OPEN)
        return;
    if (ack->received > run->sent || ack->durable > ack->received) {
        photon_client_error err;
        client__error(&err, PHOTON_CLIENT_ERR_PROTOCOL,
                      "%s acknowledged message %llu of which %llu were sent", run->client->address_text,
                      (unsigned long long)ack->received, (unsigned long long)run->sent);
        client__run_fail(run, &err);
        return;
    }
    if (ack->received > run->received) {
        uint64_t bytes = run->bytes_up_to[ack->received % CLIENT_IN_FLIGHT_MAX];
        run->client->in_flight_bytes -= bytes - run->bytes_received;
        run->bytes_received = bytes;
        run->received = ack->received;
    }
    run->durable = ack->durable > run->durable ? ack->durable : run->durable;
    run->credit_bytes = ack->credit_bytes;
}

/* ---- what the sending thread asks and takes */

int client__run_check(const photon_client_run *run, photon_client_error *err) {
    const photon_client *c = run->client;
    if (run->phase == CLIENT_RUN_FAILED)
        return client__copy_error(err, &run->failure);
    if (run->phase == CLIENT_RUN_CLOSED) {
        const char *why = run->closed->closed->text;
        return client__error(err, PHOTON_CLIENT_ERR_ENDED, "the run is closed%s%s", *why ? ": " : "", why);
    }
    if (c->failed)
        return client__copy_error(err, &c->failure);
    return 0;
}

uint64_t client__run_number(photon_client_run *run, uint64_t column_bytes) {
    run->sent++;
    run->bytes_sent += column_bytes;
    run->client->in_flight_bytes += column_bytes;
    run->bytes_up_to[run->sent % CLIENT_IN_FLIGHT_MAX] = run->bytes_sent;
    return run->sent;
}

void client__run_number_back(photon_client_run *run, uint64_t column_bytes) {
    run->sent--;
    if (run->phase != CLIENT_RUN_OPEN)
        return;
    run->bytes_sent -= column_bytes;
    run->client->in_flight_bytes -= column_bytes;
}

/* ---- datasets */

static size_t run_group_index(const char *group, const char *const *groups, size_t n) {
    size_t i = 0;
    while (i < n && strcmp(groups[i], group) != 0)
        i++;
    return i;
}

int client__dataset_states(const photon_client *c, Photon__DatasetState *const *states, size_t n,
                           const char *const *groups, size_t n_groups, photon_client_dataset_state **ret,
                           photon_client_error *err) {
    photon_client_dataset_state *list = calloc(n ? n : 1, sizeof *list);
    if (!list)
        return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for the datasets of a run");
    for (size_t i = 0; i < n; i++) {
        const Photon__DatasetState *from = states[i];
        size_t group = run_group_index(from->group, groups, n_groups);
        size_t item_bytes = wire_type_bytes((uint32_t)from->type);
        if ((n_groups && group == n_groups) || item_bytes == 0) {
            free(list);
            return client__error(err, PHOTON_CLIENT_ERR_PROTOCOL,
                                 "%s told of a dataset '%s' without a group or a type that is known",
                                 c->address_text, from->name);
        }
        list[i] = (photon_client_dataset_state){.name = from->name,
                                                .group = from->group,
                                                .group_index = group,
                                                .type = (uint32_t)from->type,
                                                .item_bytes = item_bytes,
                                                .items = from->items};
    }
    *ret = list;
    return 0;
}

/* ---- getters */

void photon_client_run_describe(const photon_client_run *run, photon_client_run_info *ret_info) {
    photon_client_run_info info = {.datasets = run->datasets,
                                   .n_datasets = run->n_datasets,
                                   .groups = run->groups,
                                   .n_groups = run->n_groups};
    memcpy(info.run_id, run->run_id, sizeof info.run_id);
    if (run->opened) {
        const Photon__Opened *opened = run->opened->opened;
        info.name = opened->name;
        info.path = opened->path;
        info.part = opened->part;
        info.next_sequence = opened->next_sequence;
        info.batch_bytes = run->split.batch_bytes;
        info.window_bytes = opened->window_bytes;
    } else {
        const Photon__Closed *closed = run->closed->closed;
        info.name = closed->name;
        info.path = closed->path;
        info.next_sequence = closed->last_sequence + 1;
    }
    *ret_info = info;
}

static uint32_t run_state(const photon_client_run *run) {
    if (run->phase == CLIENT_RUN_CLOSED)
        return PHOTON_CLIENT_RUN_CLOSED;
    return run->phase == CLIENT_RUN_FAILED || run->client->failed ? PHOTON_CLIENT_RUN_FAILED
                                                                  : PHOTON_CLIENT_RUN_OPEN;
}

void photon_client_status(photon_client_run *run, photon_client_run_status *ret_status) {
    pthread_mutex_lock(&run->client->lock);
    *ret_status = (photon_client_run_status){.state = run_state(run),
                                             .sent = run->sent,
                                             .received = run->received,
                                             .durable = run->durable,
                                             .in_flight_bytes = run->bytes_sent - run->bytes_received,
                                             .credit_bytes = run->credit_bytes,
                                             .paused = run->paused || run->client->paused,
                                             .pause_reason = run->pause_reason};
    memcpy(ret_status->pause_text, run->pause_text, sizeof ret_status->pause_text);
    pthread_mutex_unlock(&run->client->lock);
}

/* ---- waits */

/* Until *mark, which the reader thread moves on, has reached `wanted`. Under lock. */
static int run_wait(photon_client_run *run, const uint64_t *mark, uint64_t wanted, uint32_t timeout_ms,
                    photon_client_error *err) {
    uint64_t deadline = client__deadline(timeout_ms);
    while (*mark < wanted) {
        int rc = client__run_check(run, err);
        if (rc != 0)
            return rc;
        if (client__wait(run->client, deadline) != 0)
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "message %llu was not acknowledged in time",
                                 (unsigned long long)wanted);
    }
    return 0;
}

int photon_client_wait_received(photon_client_run *run, uint32_t timeout_ms, photon_client_error *err) {
    pthread_mutex_lock(&run->client->lock);
    int rc = run_wait(run, &run->received, run->sent, timeout_ms, err);
    pthread_mutex_unlock(&run->client->lock);
    return rc;
}

int photon_client_wait_durable(photon_client_run *run, uint64_t sequence, uint32_t timeout_ms,
                               photon_client_error *err) {
    pthread_mutex_lock(&run->client->lock);
    int rc;
    if (sequence > run->sent)
        rc = client__error(err, PHOTON_CLIENT_ERR_ARG, "message %llu has not been sent",
                           (unsigned long long)sequence);
    else
        rc = run_wait(run, &run->durable, sequence, timeout_ms, err);
    pthread_mutex_unlock(&run->client->lock);
    return rc;
}

/* ---- free */

static void run_unlink(photon_client_run *run) {
    photon_client *c = run->client;
    pthread_mutex_lock(&c->lock);
    photon_client_run **p = &c->runs;
    while (*p != run)
        p = &(*p)->next;
    *p = run->next;
    run_settle(run);
    pthread_mutex_unlock(&c->lock);
}

void photon_client_run_free(photon_client_run *run) {
    if (!run)
        return;
    run_unlink(run);
    if (run->opened)
        photon__server_message__free_unpacked(run->opened, NULL);
    if (run->closed)
        photon__server_message__free_unpacked(run->closed, NULL);
    free(run->datasets);
    free(run->result);
    free(run->split.row_bytes);
    free(run->bytes_up_to);
    free(run->items_sent);
    free(run->done);
    free(run->take);
    free(run->swapped);
    free(run->room);
    free(run);
}
