#include "wire/message.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "wire/cursor.h"

/* Messages within messages; those of ingest.proto are at most three deep. */
enum { MESSAGE_DEPTH_MAX = 8 };

typedef struct message_walk {
    const uint8_t *begin;
    size_t fields_left;
    unsigned depth;
    wire_fault *fault;
} message_walk;

static wire_status message_refuse(const message_walk *w, wire_status status, const uint8_t *at,
                                  const char *reason) {
    if (w->fault) {
        w->fault->offset = (size_t)(at - w->begin);
        w->fault->field[0] = '\0';
        snprintf(w->fault->text, sizeof w->fault->text, "%s", reason);
    }
    return status;
}

/* How many fields of that number lie in [begin, at): the index of the one at `at`. */
static size_t message_index(const uint8_t *begin, const uint8_t *at, uint32_t wanted) {
    wire_cursor c = {begin, at};
    size_t n = 0;
    uint32_t number;
    unsigned kind;
    while (c.at < c.end && wire_get_tag(&c, &number, &kind) && wire_skip(&c, kind))
        n += number == wanted;
    return n;
}

/* On the way out of a refused field: puts its name before the path that the inner message has given. */
static void message_prepend(const message_walk *w, const ProtobufCFieldDescriptor *field,
                            const uint8_t *begin, const uint8_t *at) {
    if (!w->fault)
        return;
    char inner[sizeof w->fault->field], index[24] = "";
    memcpy(inner, w->fault->field, sizeof inner);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        snprintf(index, sizeof index, "[%zu]", message_index(begin, at, field->id));
    snprintf(w->fault->field, sizeof w->fault->field, "%s%s%s%.60s", field->name, index, *inner ? "." : "",
             inner);
}

static unsigned message_kind_of(ProtobufCType type) {
    switch (type) {
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_BYTES;
    default:
        return WIRE_VARINT;
    }
}

static bool message_kind_fits(const ProtobufCFieldDescriptor *field, unsigned kind) {
    unsigned wanted = message_kind_of(field->type);
    return kind == wanted || (kind == WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED);
}

static wire_status message_walk_fields(message_walk *w, const ProtobufCMessageDescriptor *descriptor,
                                       wire_cursor in);

static wire_status message_walk_inside(message_walk *w, const ProtobufCFieldDescriptor *field,
                                       const uint8_t *at, wire_cursor inside) {
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        if (memchr(inside.at, 0, wire_left(&inside)))
            return message_refuse(w, WIRE_MALFORMED, at, "holds a NUL");
        if (!common_utf8_valid((const char *)inside.at, wire_left(&inside)))
            return message_refuse(w, WIRE_MALFORMED, at, "is not valid UTF-8");
    }
    if (field->type != PROTOBUF_C_TYPE_MESSAGE)
        return WIRE_OK;
    if (w->depth == MESSAGE_DEPTH_MAX)
        return message_refuse(w, WIRE_LIMIT, at, "is nested too deeply");
    w->depth++;
    wire_status status = message_walk_fields(w, field->descriptor, inside);
    w->depth--;
    return status;
}

static wire_status message_walk_value(message_walk *w, const ProtobufCFieldDescriptor *field, unsigned kind,
                                      const uint8_t *at, wire_cursor *in) {
    if (field && !message_kind_fits(field, kind))
        return message_refuse(w, WIRE_MALFORMED, at, "is of another kind than in the protocol");
    if (kind != WIRE_BYTES) {
        return wire_skip(in, kind) ? WIRE_OK
                                   : message_refuse(w, WIRE_MALFORMED, at,
                                                    "does not end, or is of a kind that does not exist");
    }
    wire_cursor inside;
    if (!wire_get_bytes(in, &inside))
        return message_refuse(w, WIRE_MALFORMED, at, "is longer than the message");
    return field ? message_walk_inside(w, field, at, inside) : WIRE_OK;
}

static wire_status message_walk_fields(message_walk *w, const ProtobufCMessageDescriptor *descriptor,
                                       wire_cursor in) {
    const uint8_t *begin = in.at;
    bool body_seen = false;
    while (in.at < in.end) {
        const uint8_t *at = in.at;
        uint32_t number;
        unsigned kind;
        if (!wire_get_tag(&in, &number, &kind))
            return message_refuse(w, WIRE_MALFORMED, at, "holds bytes that are no field's tag");
        if (w->fields_left == 0)
            return message_refuse(w, WIRE_LIMIT, at, "has more fields than are allowed");
        w->fields_left--;
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(descriptor, number);
        bool body = field && (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF);
        if (body && body_seen)
            return message_refuse(w, WIRE_MALFORMED, at, "a message has a second body");
        body_seen = body_seen || body;
        wire_status status = message_walk_value(w, field, kind, at, &in);
        if (status != WIRE_OK) {
            if (field)
                message_prepend(w, field, begin, at);
            return status;
        }
    }
    return WIRE_OK;
}

wire_status wire_message_check(const ProtobufCMessageDescriptor *descriptor, const uint8_t *message,
                               size_t bytes, size_t fields, wire_fault *fault) {
    message_walk w = {.begin = message, .fields_left = fields, .fault = fault};
    return message_walk_fields(&w, descriptor, (wire_cursor){message, message + bytes});
}

ProtobufCMessage *wire_message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *message,
                                      size_t bytes, size_t fields, wire_status *status, wire_fault *fault) {
    *status = wire_message_check(descriptor, message, bytes, fields, fault);
    if (*status != WIRE_OK)
        return NULL;
    ProtobufCMessage *unpacked = protobuf_c_message_unpack(descriptor, NULL, bytes, message);
    if (!unpacked) {
        message_walk w = {.begin = message, .fault = fault};
        *status = message_refuse(&w, WIRE_MALFORMED, message, "cannot be unpacked");
    }
    return unpacked;
}

uint32_t wire_message_kind(const uint8_t *message, size_t bytes) {
    wire_cursor c = {message, message + bytes};
    uint32_t number;
    unsigned kind;
    return wire_get_tag(&c, &number, &kind) ? number : 0;
}

const char *wire_message_kind_text(const ProtobufCMessageDescriptor *descriptor, uint32_t kind,
                                   char text[16]) {
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(descriptor, kind);
    if (field)
        return field->name;
    snprintf(text, 16, "#%u", (unsigned)kind);
    return text;
}
