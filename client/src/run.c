#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "wire/names.h"

/* How often the server may miss the same message: a loop must end. */
enum { RUN_HOLES_MAX = 8 };

/* ---- what is where */

uint64_t client__run_in_flight(const photon_client_run *run) {
    if (run->phase != CLIENT_RUN_OPEN || run->handle == 0 || run->cursor == 0)
        return 0;
    return client__keep_bytes_up_to(&run->keep, run->cursor - 1) -
           client__keep_bytes_up_to(&run->keep, run->received);
}

uint64_t client__run_held(const photon_client_run *run) {
    uint64_t gone = run->window_bytes ? run->durable : run->received;
    return run->bytes_sent - client__keep_bytes_up_to(&run->keep, gone);
}

static void run_release(photon_client_run *run) {
    client__keep_release(&run->keep, run->window_bytes ? run->durable : run->received);
}

static void run_fail_protocol(photon_client_run *run, const char *what, uint64_t told, uint64_t known) {
    photon_client_error err;
    client__error(&err, PHOTON_CLIENT_ERR_PROTOCOL, "%s %s (it told %llu, known is %llu)",
                  run->client->address_text, what, (unsigned long long)told, (unsigned long long)known);
    client__run_fail(run, &err);
}

/* ---- what the reader thread learns */

void client__run_opened(photon_client_run *run, Photon__ServerMessage *message) {
    const Photon__Opened *opened = message->opened;
    const photon_client_server *server = &run->client->server;
    run->opened = message;
    run->phase = CLIENT_RUN_OPEN;
    run->handle = opened->run;
    run->window_bytes = opened->window_bytes;
    run->sent = run->received = opened->next_sequence ? opened->next_sequence - 1 : 0;
    run->written = run->reached = run->sent;
    run->cursor = run->sent + 1;
    client__keep_start(&run->keep, run->cursor);
    run->credit_bytes = server->in_flight_bytes ? server->in_flight_bytes : UINT64_MAX;
}

static bool run_has_the_datasets(const photon_client_run *run, const Photon__Opened *opened) {
    const Photon__Opened *first = run->opened->opened;
    if (opened->n_datasets != first->n_datasets || opened->n_groups != first->n_groups)
        return false;
    for (size_t i = 0; i < first->n_datasets; i++)
        if (strcmp(opened->datasets[i]->name, first->datasets[i]->name) != 0 ||
            opened->datasets[i]->type != first->datasets[i]->type)
            return false;
    for (size_t i = 0; i < first->n_groups; i++)
        if (strcmp(opened->groups[i], first->groups[i]) != 0)
            return false;
    return true;
}

/* The run is there again, on a new connection, perhaps of a server that was started anew. */
void client__run_attached(photon_client_run *run, const Photon__Opened *opened) {
    uint64_t next = opened->next_sequence ? opened->next_sequence : 1;
    photon_client_error err;
    if (next > run->sent + 1) {
        run_fail_protocol(run, "has more of the run than was sent", next, run->sent);
    } else if (!run_has_the_datasets(run, opened) || opened->run == 0) {
        run_fail_protocol(run, "opened the run again with other datasets", next, run->sent);
    } else if (next < run->keep.first) {
        client__error(&err, PHOTON_CLIENT_ERR_INCOMPLETE,
                      "%s wants message %llu of the run, but had acknowledged up to %llu%s",
                      run->client->address_text, (unsigned long long)next,
                      (unsigned long long)(run->keep.first - 1),
                      run->window_bytes ? " as durable: it is another file, or another server"
                                        : ", which is not kept: it has been started anew");
        client__run_fail(run, &err);
    } else {
        run->handle = opened->run;
        run->credit_bytes =
            run->client->server.in_flight_bytes ? run->client->server.in_flight_bytes : UINT64_MAX;
        if (next - 1 > run->received) /* acknowledgements that were lost */
            client__note_progress(run->client);
        run->received = run->reached = next - 1;
        run->cursor = next;
        run_release(run);
    }
}

void client__run_detach(photon_client_run *run) {
    run->handle = 0;
    run->reopen_ns = 0;
    run->paused = false;
    run->close_sent = false;
}

void client__run_rewind(photon_client_run *run, uint64_t from) {
    if (run->phase != CLIENT_RUN_OPEN || run->handle == 0)
        return;
    from = from ? from : 1;
    run->n_hole = run->hole == from ? run->n_hole + 1 : 1;
    run->hole = from;
    if (run->n_hole > RUN_HOLES_MAX) {
        run_fail_protocol(run, "asks for the same message again and again", from, run->sent);
        return;
    }
    if (from > run->sent + 1 || from < run->keep.first) {
        run_fail_protocol(run, "asks for a message again that is not kept", from, run->keep.first);
        return;
    }
    run->close_sent = false;
    run->cursor = from < run->cursor ? from : run->cursor;
    run->received = from - 1 < run->received ? from - 1 : run->received;
}

void client__run_closed(photon_client_run *run, Photon__ServerMessage *message) {
    const Photon__Closed *closed = message->closed;
    bool opening = run->phase == CLIENT_RUN_OPENING;
    run->closed = message;
    if (run->phase == CLIENT_RUN_FAILED)
        return;
    if (!opening && closed->last_sequence > run->sent) {
        run_fail_protocol(run, "closed the run with more than was sent", closed->last_sequence, run->sent);
        return;
    }
    run->phase = CLIENT_RUN_CLOSED;
    run->paused = false;
    run->received = run->durable = closed->last_sequence;
    run->sent = opening ? run->received : run->sent;
    client__news(run->client, PHOTON_CLIENT_EVENT_RUN_CLOSED, run, 0, closed->text);
}

void client__run_fail(photon_client_run *run, const photon_client_error *err) {
    if (run->phase == CLIENT_RUN_CLOSED || run->phase == CLIENT_RUN_FAILED)
        return;
    run->phase = CLIENT_RUN_FAILED;
    run->failure = *err;
    run->paused = false;
    client__news(run->client, PHOTON_CLIENT_EVENT_RUN_FAILED, run, 0, err->text);
}

/* One message was refused, so its number is still free. Nothing follows a message that is waited for, so the run goes
 * on; after any other the server meets a hole. A run that ends by itself tells so by Closed. */
void client__run_refused(photon_client_run *run, const photon_client_error *err) {
    if (err->server_code == PHOTON__ERROR_CODE__ERROR_RUN_CLOSED)
        return;
    if (run->flush_id && err->server_code == PHOTON__ERROR_CODE__ERROR_NOT_SUPPORTED && err->sequence == 0)
        return; /* a server without Flush: it becomes durable nevertheless */
    if (err->server_code == PHOTON__ERROR_CODE__ERROR_HOLE)
        client__run_rewind(run, err->sequence);
    else if (run->asked && err->sequence == run->asked)
        run->refusal = *err;
    else
        client__run_fail(run, err);
}

static void run_note_dropped(photon_client_run *run, const Photon__Ack *ack) {
    for (size_t i = 0; i < ack->n_dropped; i++) {
        const Photon__Range *r = ack->dropped[i];
        uint64_t first = r->first > run->last_dropped ? r->first : run->last_dropped + 1;
        if (r->last < first || r->last > run->sent)
            continue;
        run->n_dropped += r->last - first + 1;
        run->last_dropped = r->last;
    }
}

void client__run_acknowledged(photon_client_run *run, const Photon__Ack *ack) {
    if (run->phase != CLIENT_RUN_OPEN)
        return;
    if (ack->received > run->reached) {
        run_fail_protocol(run, "acknowledged a message that was not sent", ack->received, run->reached);
        return;
    }
    if (ack->durable > ack->received) {
        run_fail_protocol(run, "called a message durable that it has not received", ack->durable,
                          ack->received);
        return;
    }
    if (ack->received >= run->cursor) /* what was to be sent again has come after all */
        run->cursor = ack->received + 1;
    if (ack->received > run->received) {
        run->received = ack->received;
        run->n_hole = 0;
        client__note_progress(run->client);
    }
    run->durable = ack->durable > run->durable ? ack->durable : run->durable;
    run->credit_bytes = ack->credit_bytes;
    run_note_dropped(run, ack);
    run_release(run);
}

/* ---- what the sending thread asks */

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
    photon_client *c = run->client;
    pthread_mutex_lock(&c->lock);
    *ret_status =
        (photon_client_run_status){.state = run_state(run),
                                   .sent = run->sent,
                                   .received = run->received,
                                   .durable = run->durable,
                                   .in_flight_bytes = client__run_in_flight(run),
                                   .credit_bytes = run->credit_bytes,
                                   .kept_bytes = run->phase == CLIENT_RUN_OPEN ? client__run_held(run) : 0,
                                   .resent = run->resent,
                                   .dropped = run->n_dropped,
                                   .connections = c->n_connections,
                                   .connected = !c->down && !c->failed,
                                   .paused = run->paused || c->paused,
                                   .pause_reason = run->pause_reason};
    memcpy(ret_status->pause_text, run->pause_text, sizeof ret_status->pause_text);
    pthread_mutex_unlock(&c->lock);
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
    client__output_leave(c, run);
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
    client__keep_free(&run->keep);
    free(run->open_bytes);
    free(run->items_sent);
    free(run->done);
    free(run->take);
    free(run->swapped);
    free(run->room);
    free(run->again);
    free(run);
}
