/* Checks on a message before protobuf-c unpacks it: what it would take without a word (a text with a NUL
 * inside, a text that is no UTF-8) and what would let few bytes ask for much memory (very many fields). */
#ifndef COMMON_WIRE_MESSAGE_H
#define COMMON_WIRE_MESSAGE_H

#include <protobuf-c/protobuf-c.h>

#include "wire/frame.h"

/* Fields in one message, those of its inner messages and unknown ones included. protobuf-c takes about 100
 * bytes for the smallest. */
enum { WIRE_MAX_FIELDS = 65536 };

/* Walks a serialised message.
 * descriptor  photon__client_message__descriptor, or any other
 * fields      how many are allowed: WIRE_MAX_FIELDS, or less
 * fault       field path, offset and reason; may be NULL
 * Returns     WIRE_OK; WIRE_MALFORMED (no protobuf, a known field of another kind, a text that is not UTF-8 or
 *             holds a NUL); WIRE_LIMIT (more fields). Pure; any thread. */
wire_status wire_message_check(const ProtobufCMessageDescriptor *descriptor, const uint8_t *message,
                               size_t bytes, size_t fields, wire_fault *fault);

/* The same check, then protobuf-c's unpack. Returns the message, to be freed by
 * protobuf_c_message_free_unpacked(); NULL with *status and *fault set otherwise. */
ProtobufCMessage *wire_message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *message,
                                      size_t bytes, size_t fields, wire_status *status, wire_fault *fault);

/* The number of the first field of a message, 0 for an empty or malformed one: of a ClientMessage or a
 * ServerMessage, which body it has (PHOTON__CLIENT_MESSAGE__BODY_...). */
uint32_t wire_message_kind(const uint8_t *message, size_t bytes);

/* The name of a field of a message ("batch"), "#19" for one that is not known. */
const char *wire_message_kind_text(const ProtobufCMessageDescriptor *descriptor, uint32_t kind,
                                   char text[16]);

#endif
