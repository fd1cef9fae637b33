#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "wire/message.h"
#include "wire/names.h"

int client__attribute_check(const photon_client *c, uint64_t limit, const photon_client_attribute *a,
                            photon_client_error *err) {
    const char *fault =
        a->key && a->value ? wire_attribute_fault(a->key, a->value) : "has no key or no value";
    if (fault)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "attribute '%.60s' %s", a->key ? a->key : "", fault);
    uint64_t bytes = strlen(a->key) + strlen(a->value);
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
static size_t numbered_fit(const photon_client_server *server, const photon_client_attribute *a, size_t n) {
    uint64_t limit = server->message_bytes ? server->message_bytes : UINT64_MAX;
    size_t most = server->attributes ? server->attributes : WIRE_MAX_FIELDS / 4, k = 0;
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
static int numbered_wait(photon_client_run *run, uint64_t deadline_ns, photon_client_error *err) {
    while (run->received < run->asked) {
        if (run->refusal.code) {
            client__keep_take_back(&run->keep);
            run->sent--;
            run->cursor = run->cursor > run->sent + 1 ? run->sent + 1 : run->cursor;
            run->written = run->written > run->sent ? run->sent : run->written;
            run->reached = run->reached > run->sent ? run->sent : run->reached;
            return client__copy_error(err, &run->refusal);
        }
        int rc = client__run_check(run, err);
        if (rc != 0)
            return rc;
        if (client__wait(run->client, deadline_ns) != 0)
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s did not acknowledge the message in time",
                                 run->client->address_text);
    }
    return 0;
}

/* Numbers a packed message without its handle, keeps it, and waits until the server has it. Under lock. Takes over
 * the bytes. */
static int numbered_add(photon_client_run *run, uint32_t kind, uint8_t *data, size_t bytes,
                        uint64_t deadline_ns, photon_client_error *err) {
    run->asked = ++run->sent;
    run->refusal.code = 0;
    client__keep_add(&run->keep, kind, data, bytes, true, run->bytes_sent);
    client__pump(run->client);
    int rc = numbered_wait(run, deadline_ns, err);
    run->asked = 0;
    return rc;
}

/* Under lock. `body` has the number of the message that will be next. */
static int numbered_send(photon_client_run *run, uint32_t kind, const ProtobufCMessage *body,
                         uint64_t deadline_ns, photon_client_error *err) {
    size_t bytes = protobuf_c_message_get_packed_size(body);
    uint64_t limit = run->client->server.message_bytes;
    if (limit && bytes + CLIENT_HEAD_BYTES > limit)
        return client__error(err, PHOTON_CLIENT_ERR_LIMIT, "a message of %zu bytes, but %s takes %llu", bytes,
                             run->client->address_text, (unsigned long long)limit);
    int rc = client__send_wait(run, bytes, 0, false, deadline_ns, err);
    if (rc != 0)
        return rc;
    uint8_t *data = malloc(bytes ? bytes : 1);
    if (!data)
        return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for a message");
    protobuf_c_message_pack(body, data);
    return numbered_add(run, kind, data, bytes, deadline_ns, err);
}

/* Under lock. */
static int numbered_attributes(photon_client_run *run, Photon__Attribute **list, size_t n,
                               uint64_t deadline_ns, photon_client_error *err) {
    Photon__Attributes attributes = PHOTON__ATTRIBUTES__INIT;
    attributes.sequence = run->sent + 1;
    attributes.attributes = list;
    attributes.n_attributes = n;
    return numbered_send(run, PHOTON__CLIENT_MESSAGE__BODY_ATTRIBUTES, &attributes.base, deadline_ns, err);
}

int photon_client_set_attributes(photon_client_run *run, const photon_client_attribute *attributes, size_t n,
                                 photon_client_error *err) {
    photon_client *c = run->client;
    client_attributes made = {NULL, NULL};
    photon_client_server server;
    int rc = 0;
    photon_client_server_info(c, &server);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = client__attribute_check(c, server.attribute_bytes, &attributes[i], err);
    if (rc != 0)
        return rc;
    if (client__attributes_make(&made, attributes, n) != 0)
        rc = client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for %zu attributes", n);
    uint64_t deadline = client__deadline(run->send_timeout_ms);
    pthread_mutex_lock(&c->lock);
    for (size_t done = 0; rc == 0 && done < n;) {
        size_t k = numbered_fit(&server, attributes + done, n - done);
        rc = numbered_attributes(run, made.list + done, k, deadline, err);
        done += k;
    }
    pthread_mutex_unlock(&c->lock);
    client__attributes_free(&made);
    return rc;
}

/* ---- markers and gaps */

static char *numbered_text(const char *text) {
    static char empty[] = "";
    return text ? (char *)(uintptr_t)text : empty;
}

static int numbered_check(const photon_client_run *run, const photon_client_place *at, const char *text,
                          photon_client_error *err) {
    size_t g = 0;
    while (at->group && g < run->n_groups && strcmp(run->groups[g], at->group) != 0)
        g++;
    if (!at->group || g == run->n_groups)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "the run has no group '%.60s'",
                             at->group ? at->group : "");
    const char *fault = text ? wire_attribute_fault("text", text) : NULL;
    return fault ? client__error(err, PHOTON_CLIENT_ERR_ARG, "the text %s", fault) : 0;
}

int photon_client_mark(photon_client_run *run, const photon_client_place *at, const char *text,
                       photon_client_error *err) {
    Photon__Marker marker = PHOTON__MARKER__INIT;
    int rc = numbered_check(run, at, text, err);
    if (rc != 0)
        return rc;
    uint64_t deadline = client__deadline(run->send_timeout_ms);
    marker.group = numbered_text(at->group);
    marker.item = at->item;
    marker.text = numbered_text(text);
    marker.utc_ns = at->utc_ns ? at->utc_ns : client__utc_ns();
    pthread_mutex_lock(&run->client->lock);
    marker.sequence = run->sent + 1;
    rc = numbered_send(run, PHOTON__CLIENT_MESSAGE__BODY_MARKER, &marker.base, deadline, err);
    pthread_mutex_unlock(&run->client->lock);
    return rc;
}

int photon_client_tell_gap(photon_client_run *run, const photon_client_place *at, uint64_t count,
                           const char *cause, photon_client_error *err) {
    Photon__Gap gap = PHOTON__GAP__INIT;
    int rc = numbered_check(run, at, cause, err);
    if (rc != 0)
        return rc;
    uint64_t deadline = client__deadline(run->send_timeout_ms);
    gap.group = numbered_text(at->group);
    gap.item = at->item;
    gap.count = count;
    gap.cause = numbered_text(cause);
    gap.utc_ns = at->utc_ns ? at->utc_ns : client__utc_ns();
    pthread_mutex_lock(&run->client->lock);
    gap.sequence = run->sent + 1;
    rc = numbered_send(run, PHOTON__CLIENT_MESSAGE__BODY_GAP, &gap.base, deadline, err);
    pthread_mutex_unlock(&run->client->lock);
    return rc;
}
