#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "wire/message.h"

/* Sends what is pending and reads what comes, until there is something new. A socket that takes no more bytes may
 * still have an answer, so only the end of the stream is a failure. */
static int hello_wait(photon_client *c, uint64_t deadline_ns, photon_client_error *err) {
    for (;;) {
        bool full = client__output_flush(c) > 0;
        int got = client__receive(&c->in, &c->link);
        if (got > 0)
            return 0;
        if (got == -2)
            return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for the server's answer");
        if (got < 0)
            return client__os_error(err, PHOTON_CLIENT_ERR_LOST, errno,
                                    "%s closed the connection before it had answered", c->address_text);
        int rc = client__dial_wait(c->link.fd, c->wake_fd, full, c->address_text, deadline_ns, err);
        if (rc != 0)
            return rc;
    }
}

/* What a port that is not ours answered, as far as it can be shown. */
static int hello_stray(const photon_client *c, photon_client_error *err) {
    char shown[60];
    size_t n = 0;
    for (size_t i = c->in.begin; i < c->in.end && n < sizeof shown - 1; i++)
        shown[n++] = isprint(c->in.data[i]) ? (char)c->in.data[i] : '.';
    shown[n] = '\0';
    return client__error(err, PHOTON_CLIENT_ERR_PROTOCOL,
                         "%s is not photond's ingest port (it answered \"%s\")", c->address_text, shown);
}

static int hello_preamble(photon_client *c, uint64_t deadline_ns, photon_client_error *err) {
    uint8_t ours[WIRE_PREAMBLE_BYTES], min = 0, max = 0;
    wire_preamble_put(ours, WIRE_VERSION_MIN, WIRE_VERSION_MAX);
    if (client__output_add(c, ours, sizeof ours) != 0)
        return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for a message");
    wire_status status;
    do {
        int rc = hello_wait(c, deadline_ns, err);
        if (rc != 0)
            return rc;
        status = wire_preamble_get(c->in.data + c->in.begin, c->in.end - c->in.begin, &min, &max);
    } while (status == WIRE_MORE);
    if (status != WIRE_OK)
        return hello_stray(c, err);
    if (min != max || wire_version_choose(min, max, WIRE_VERSION_MIN, WIRE_VERSION_MAX) == 0)
        return client__error(err, PHOTON_CLIENT_ERR_PROTOCOL,
                             "%s speaks versions %u to %u of the protocol, this library %d to %d",
                             c->address_text, min, max, WIRE_VERSION_MIN, WIRE_VERSION_MAX);
    c->in.begin += WIRE_PREAMBLE_BYTES;
    return 0;
}

static int hello_answer(photon_client *c, uint64_t deadline_ns, Photon__ServerMessage **ret_message,
                        photon_client_error *err) {
    const uint8_t *bytes;
    size_t n;
    wire_status status;
    while ((status = client__take(&c->in, &bytes, &n)) == WIRE_MORE) {
        int rc = hello_wait(c, deadline_ns, err);
        if (rc != 0)
            return rc;
    }
    wire_fault fault = {.text = "has an impossible length"};
    ProtobufCMessage *message = NULL;
    if (status == WIRE_OK)
        message = wire_message_unpack(&photon__server_message__descriptor, bytes, n, WIRE_MAX_FIELDS, &status,
                                      &fault);
    if (!message)
        return client__error(err, PHOTON_CLIENT_ERR_PROTOCOL, "the answer of %s %s %s", c->address_text,
                             fault.field, fault.text);
    *ret_message = (Photon__ServerMessage *)message;
    return 0;
}

void client__learn_limits(photon_client *c, const Photon__Welcome *welcome) {
    const Photon__Limits *limits = welcome->limits;
    c->server.heartbeat_ms = welcome->heartbeat_ms;
    if (!limits)
        return;
    c->server.message_bytes = limits->message_bytes;
    c->server.batch_items = limits->batch_items;
    c->server.attribute_bytes = limits->attribute_bytes;
    c->server.in_flight_bytes = limits->in_flight_bytes;
    c->server.datasets = limits->datasets;
    c->server.runs = limits->runs;
    c->server.idle_ms = limits->idle_ms;
    if (c->server.heartbeat_ms == 0)
        c->server.heartbeat_ms = limits->idle_ms / 4;
    c->server.attributes = limits->attributes;
}

/* Adds the Hello to what is pending. */
static int hello_say(photon_client *c, photon_client_error *err) {
    Photon__Hello hello = PHOTON__HELLO__INIT;
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    size_t bytes = 0;
    hello.client_name = c->identity.client_name;
    hello.instance = c->identity.instance;
    hello.software = c->identity.software;
    hello.epoch = c->identity.epoch;
    hello.token = (ProtobufCBinaryData){c->identity.token_bytes, c->identity.token};
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_HELLO;
    message.hello = &hello;
    if (photon__client_message__get_packed_size(&message) > WIRE_HELLO_BYTES_MAX)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "names and token together are over %d bytes",
                             WIRE_HELLO_BYTES_MAX);
    uint8_t *data = client__output_pack(&message, &bytes);
    int rc = data ? client__output_add(c, data, bytes) : -1;
    free(data);
    return rc == 0 ? 0 : client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for a message");
}

int client__hello(photon_client *c, uint64_t deadline_ns, Photon__ServerMessage **ret_welcome,
                  photon_client_error *err) {
    int rc = hello_preamble(c, deadline_ns, err);
    if (rc == 0)
        rc = hello_say(c, err);
    Photon__ServerMessage *answer = NULL;
    if (rc == 0)
        rc = hello_answer(c, deadline_ns, &answer, err);
    if (rc != 0)
        return rc;
    if (answer->body_case == PHOTON__SERVER_MESSAGE__BODY_WELCOME) {
        *ret_welcome = answer;
        return 0;
    }
    if (answer->body_case == PHOTON__SERVER_MESSAGE__BODY_ERROR)
        rc = client__refused(err, answer->error);
    else
        rc = client__error(err, PHOTON_CLIENT_ERR_PROTOCOL, "%s did not answer Hello with Welcome",
                           c->address_text);
    photon__server_message__free_unpacked(answer, NULL);
    return rc;
}
