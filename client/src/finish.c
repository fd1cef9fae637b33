#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "wire/message.h"
#include "wire/names.h"

/* ---- attributes */

int client__attribute_check(const photon_client *c, const photon_client_attribute *a,
                            photon_client_error *err) {
    const char *fault =
        a->key && a->value ? wire_attribute_fault(a->key, a->value) : "has no key or no value";
    if (fault)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "attribute '%.60s' %s", a->key ? a->key : "", fault);
    uint64_t bytes = strlen(a->key) + strlen(a->value), limit = c->server.attribute_bytes;
    if (limit && bytes > limit)
        return client__error(err, PHOTON_CLIENT_ERR_LIMIT,
                             "attribute '%.60s' has %llu bytes, but %s takes %llu", a->key,
                             (unsigned long long)bytes, c->address_text, (unsigned long long)limit);
    return 0;
}

int client__attributes_make(client_attributes *to, const photon_client_attribute *from, size_t n) {
    to->items = calloc(n ? n : 1, sizeof *to->items);
    to->list = calloc(n ? n : 1, sizeof(void *));
    if (!to->items || !to->list)
        return -1;
    for (size_t i = 0; i < n; i++) {
        photon__attribute__init(&to->items[i]);
        to->items[i].key = (char *)(uintptr_t)from[i].key;
        to->items[i].value = (char *)(uintptr_t)from[i].value;
        to->list[i] = &to->items[i];
    }
    return 0;
}

void client__attributes_free(client_attributes *a) {
    free(a->items);
    free(a->list);
}

/* How many of them fit in one message, at least one. */
static size_t finish_attributes_fit(const photon_client *c, const photon_client_attribute *a, size_t n) {
    uint64_t limit = c->server.message_bytes ? c->server.message_bytes : UINT64_MAX;
    size_t most = c->server.attributes ? c->server.attributes : WIRE_MAX_FIELDS / 4, k = 0;
    uint64_t bytes = 64;
    while (k < n && k < most) {
        bytes += strlen(a[k].key) + strlen(a[k].value) + 32;
        if (k && bytes > limit)
            break;
        k++;
    }
    return k;
}

/* Until the server has the message, or has refused it. Under lock. */
static int finish_wait_answer(photon_client_run *run, uint64_t deadline_ns, photon_client_error *err) {
    while (run->received < run->asked) {
        if (run->refusal.code) {
            client__run_number_back(run, 0);
            return client__copy_error(err, &run->refusal);
        }
        int rc = client__run_check(run, err);
        if (rc != 0)
            return rc;
        if (client__wait(run->client, deadline_ns) != 0)
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT,
                                 "%s did not acknowledge the attributes in time", run->client->address_text);
    }
    return 0;
}

/* Under lock. */
static int finish_send_attributes(photon_client_run *run, Photon__Attribute **list, size_t n,
                                  uint64_t deadline_ns, photon_client_error *err) {
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    Photon__Attributes attributes = PHOTON__ATTRIBUTES__INIT;
    int rc = client__send_wait(run, 0, deadline_ns, err);
    if (rc != 0)
        return rc;
    attributes.run = run->handle;
    attributes.sequence = run->asked = client__run_number(run, 0);
    run->refusal.code = 0;
    attributes.attributes = list;
    attributes.n_attributes = n;
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_ATTRIBUTES;
    message.attributes = &attributes;
    rc = client__output_message(run->client, &message, deadline_ns, err);
    if (rc != 0)
        client__run_number_back(run, 0);
    else
        rc = finish_wait_answer(run, deadline_ns, err);
    run->asked = 0;
    return rc;
}

int photon_client_set_attributes(photon_client_run *run, const photon_client_attribute *attributes, size_t n,
                                 photon_client_error *err) {
    photon_client *c = run->client;
    client_attributes made = {NULL, NULL};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = client__attribute_check(c, &attributes[i], err);
    if (rc != 0)
        return rc;
    if (client__attributes_make(&made, attributes, n) != 0)
        rc = client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for %zu attributes", n);
    uint64_t deadline = client__deadline(run->send_timeout_ms);
    pthread_mutex_lock(&c->lock);
    for (size_t done = 0; rc == 0 && done < n;) {
        size_t k = finish_attributes_fit(c, attributes + done, n - done);
        rc = finish_send_attributes(run, made.list + done, k, deadline, err);
        done += k;
    }
    pthread_mutex_unlock(&c->lock);
    client__attributes_free(&made);
    return rc;
}

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
    uint64_t deadline = client__deadline(run->send_timeout_ms);
    pthread_mutex_lock(&c->lock);
    ping.run = run->handle;
    int rc = client__run_check(run, err);
    if (rc == 0)
        rc = client__output_message(c, &message, deadline, err);
    pthread_mutex_unlock(&c->lock);
    return rc;
}

/* ---- close */

/* Under lock. */
static int finish_send_close(photon_client_run *run, uint64_t deadline_ns, photon_client_error *err) {
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    Photon__Close request = PHOTON__CLOSE__INIT;
    request.run = run->handle;
    request.last_sequence = run->sent;
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_CLOSE;
    message.close = &request;
    int rc = client__output_message(run->client, &message, deadline_ns, err);
    run->close_sent = rc == 0;
    return rc;
}

/* Under lock. */
static int finish_wait_closed(photon_client_run *run, uint64_t deadline_ns, photon_client_error *err) {
    while (run->phase != CLIENT_RUN_CLOSED) {
        int rc = client__run_check(run, err);
        if (rc == 0 && !run->close_sent)
            rc = finish_send_close(run, deadline_ns, err);
        else if (rc == 0 && client__wait(run->client, deadline_ns) != 0)
            rc = client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s did not close the run in time",
                               run->client->address_text);
        if (rc != 0 && run->phase != CLIENT_RUN_CLOSED)
            return rc;
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

int photon_client_close_run(photon_client_run *run, uint32_t timeout_ms, photon_client_result *ret_result,
                            photon_client_error *err) {
    uint64_t deadline = client__deadline(timeout_ms);
    pthread_mutex_lock(&run->client->lock);
    int rc = finish_wait_closed(run, deadline, err);
    if (rc == 0 && ret_result)
        rc = finish_result(run, ret_result, err);
    pthread_mutex_unlock(&run->client->lock);
    return rc;
}
