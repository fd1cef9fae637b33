#include <string.h>

#include "internal.h"

/* ---- signs of life */

int photon_client_alive(photon_client_run *run, const int64_t *instrument_time, photon_client_error *err) {
    photon_client *c = run->client;
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    Photon__Ping ping = PHOTON__PING__INIT;
    ping.monotonic_ns = client__now_ns();
    ping.utc_ns = client__utc_ns();
    ping.instrument_time_valid = instrument_time != NULL;
    ping.instrument_time = instrument_time ? *instrument_time : 0;
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_PING;
    message.ping = &ping;
    pthread_mutex_lock(&c->lock);
    ping.run = run->handle;
    int rc = client__run_check(run, err);
    if (rc == 0 && ping.run != 0) /* a sign of life that does not go now is of no use later */
        client__output_pending(c, &message);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* ---- flush */

/* Once on each connection, when all up to `wanted` has been written. Under lock. */
static void finish_send_flush(photon_client_run *run, uint64_t wanted) {
    photon_client *c = run->client;
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    Photon__Flush request = PHOTON__FLUSH__INIT;
    if (run->flushed_on == c->n_connections || run->handle == 0 || run->cursor <= wanted)
        return;
    request.run = run->handle;
    request.id = ++run->flush_id;
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_FLUSH;
    message.flush = &request;
    if (client__output_pending(c, &message) == 0)
        run->flushed_on = c->n_connections;
}

/* Under lock. */
static int finish_wait_durable(photon_client_run *run, uint64_t deadline_ns, photon_client_error *err) {
    uint64_t wanted = run->sent;
    while (run->durable < wanted) {
        int rc = client__run_check(run, err);
        if (rc != 0)
            return rc;
        finish_send_flush(run, wanted);
        if (client__wait(run->client, deadline_ns) != 0)
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "message %llu was not durable in time",
                                 (unsigned long long)wanted);
    }
    return 0;
}

int photon_client_flush(photon_client_run *run, uint32_t timeout_ms, photon_client_error *err) {
    uint64_t deadline = client__deadline(timeout_ms);
    pthread_mutex_lock(&run->client->lock);
    run->flushed_on = 0;
    int rc = finish_wait_durable(run, deadline, err);
    pthread_mutex_unlock(&run->client->lock);
    return rc;
}

/* ---- close */

/* When all that was sent has been written on this connection. Under lock. */
static void finish_send_close(photon_client_run *run) {
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    Photon__Close request = PHOTON__CLOSE__INIT;
    if (run->close_sent || run->handle == 0 || run->cursor <= run->sent)
        return;
    request.run = run->handle;
    request.last_sequence = run->sent;
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_CLOSE;
    message.close = &request;
    run->close_sent = client__output_pending(run->client, &message) == 0;
}

/* Under lock. */
static int finish_wait_closed(photon_client_run *run, uint64_t deadline_ns, photon_client_error *err) {
    while (run->phase != CLIENT_RUN_CLOSED) {
        int rc = client__run_check(run, err);
        if (rc != 0)
            return rc;
        finish_send_close(run);
        if (client__wait(run->client, deadline_ns) != 0)
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s did not close the run in time%s%.200s",
                                 run->client->address_text, run->client->down ? ": " : "",
                                 run->client->down ? run->client->failure.text : "");
    }
    return 0;
}

/* Under lock. */
static int finish_result(photon_client_run *run, photon_client_result *ret_result, photon_client_error *err) {
    const Photon__Closed *closed = run->closed->closed;
    if (!run->result) {
        int rc = client__dataset_states(run->client, closed->datasets, closed->n_datasets, run->groups,
                                        run->n_groups, &run->result, err);
        if (rc != 0)
            return rc;
    }
    *ret_result = (photon_client_result){.name = closed->name,
                                         .path = closed->path,
                                         .parts = closed->parts,
                                         .last_sequence = closed->last_sequence,
                                         .datasets = run->result,
                                         .n_datasets = closed->n_datasets,
                                         .text = closed->text};
    return 0;
}

/* A run that the server has closed before it had everything. Under lock. */
static int finish_check(const photon_client_run *run, photon_client_error *err) {
    const Photon__Closed *closed = run->closed->closed;
    if (closed->last_sequence >= run->sent)
        return 0;
    return client__error(err, PHOTON_CLIENT_ERR_INCOMPLETE,
                         "%s has closed the run after message %llu of %llu%s%.200s",
                         run->client->address_text, (unsigned long long)closed->last_sequence,
                         (unsigned long long)run->sent, *closed->text ? ": " : "", closed->text);
}

int photon_client_close_run(photon_client_run *run, uint32_t timeout_ms, photon_client_result *ret_result,
                            photon_client_error *err) {
    uint64_t deadline = client__deadline(timeout_ms);
    pthread_mutex_lock(&run->client->lock);
    int rc = finish_wait_closed(run, deadline, err);
    if (rc == 0 && ret_result)
        rc = finish_result(run, ret_result, err);
    if (rc == 0)
        rc = finish_check(run, err);
    pthread_mutex_unlock(&run->client->lock);
    return rc;
}
