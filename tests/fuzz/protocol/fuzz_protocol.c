/* A connection's bytes as the server reads them: preamble, then messages by their length. Each message goes through
 * our checks and through protobuf-c, which must agree: what we take, protobuf-c takes with the same content; what
 * we refuse is refused by protobuf-c too, or for a reason of the list below. The answers' direction (ServerMessage,
 * what a client reads) gets the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ingest.pb-c.h"
#include "wire/batch.h"
#include "wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_MESSAGE_LIMIT = 1 << 20, FUZZ_FIELDS = 4096 };

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

/* Where we are stricter than protobuf-c, which takes these without a word. */
static int refused_on_purpose(const wire_fault *fault) {
    static const char *const reasons[] = {
        "second body",         "NUL",          "UTF-8",          "no field's tag",
        "does not end, or is", "over 64 bits", "of another kind"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(fault->text, reasons[i]))
            return 1;
    return 0;
}

static void compare_batch(const wire_batch *ours, const Photon__Batch *theirs) {
    REQUIRE(ours->run == theirs->run && ours->sequence == theirs->sequence && ours->crc32c == theirs->crc32c);
    REQUIRE(ours->lost_before == theirs->lost_before && ours->first_time == theirs->first_time);
    REQUIRE(ours->last_time == theirs->last_time && ours->times_valid == (theirs->times_valid != 0));
    REQUIRE(ours->n_counts == theirs->n_counts && ours->n_columns == theirs->n_columns);
    for (uint32_t i = 0; i < ours->n_counts; i++)
        REQUIRE(ours->counts[i] == theirs->counts[i]);
    for (uint32_t i = 0; i < ours->n_columns; i++) {
        REQUIRE(ours->columns[i].bytes == theirs->columns[i].len);
        REQUIRE(ours->columns[i].bytes == 0 ||
                memcmp(ours->columns[i].data, theirs->columns[i].data, ours->columns[i].bytes) == 0);
    }
}

/* What was parsed and is written again must parse to the same. */
static void write_batch_again(const wire_batch *batch) {
    static uint8_t head[WIRE_BATCH_HEAD_BYTES];
    static struct iovec pieces[WIRE_BATCH_PIECES];
    wire_batch again;
    size_t n_pieces = 0, used = 0, at = 0;
    uint64_t length = 0;
    size_t total = wire_batch_frame(batch, head, pieces, &n_pieces);
    uint8_t *bytes = malloc(total);
    REQUIRE(bytes);
    for (size_t i = 0; i < n_pieces; at += pieces[i++].iov_len)
        memcpy(bytes + at, pieces[i].iov_base, pieces[i].iov_len);
    REQUIRE(at == total);
    REQUIRE(wire_prefix_get(bytes, total, UINT64_MAX, &length, &used) == WIRE_OK && used + length == total);
    REQUIRE(wire_batch_message_bytes(batch) == length);
    REQUIRE(wire_batch_parse(bytes + used, (size_t)length, &again, NULL) == WIRE_OK);
    REQUIRE(again.sequence == batch->sequence && again.n_columns == batch->n_columns);
    REQUIRE(wire_batch_crc32c(&again) == wire_batch_crc32c(batch));
    free(bytes);
}

static void fuzz_batch(const uint8_t *message, size_t bytes) {
    wire_batch batch;
    wire_fault fault = {.text = ""};
    wire_status status = wire_batch_parse(message, bytes, &batch, &fault);
    REQUIRE(status != WIRE_OTHER && status != WIRE_MORE);
    Photon__ClientMessage *theirs = photon__client_message__unpack(NULL, bytes, message);
    if (status == WIRE_OK) {
        REQUIRE(theirs && theirs->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH);
        compare_batch(&batch, theirs->batch);
        write_batch_again(&batch);
    } else {
        REQUIRE(fault.offset <= bytes && fault.text[0]);
        REQUIRE(!theirs || status == WIRE_LIMIT || refused_on_purpose(&fault));
    }
    if (theirs)
        photon__client_message__free_unpacked(theirs, NULL);
}

static void fuzz_other(const ProtobufCMessageDescriptor *descriptor, const uint8_t *message, size_t bytes) {
    wire_fault fault = {.text = ""};
    wire_status status;
    ProtobufCMessage *ours = wire_message_unpack(descriptor, message, bytes, FUZZ_FIELDS, &status, &fault);
    REQUIRE((status == WIRE_OK) == (ours != NULL));
    if (ours) {
        protobuf_c_message_free_unpacked(ours, NULL);
        return;
    }
    REQUIRE(fault.offset <= bytes && fault.text[0]);
    if (status == WIRE_LIMIT || refused_on_purpose(&fault))
        return;
    ProtobufCMessage *theirs = protobuf_c_message_unpack(descriptor, NULL, bytes, message);
    REQUIRE(!theirs);
}

static void fuzz_message(const uint8_t *message, size_t bytes) {
    char text[16];
    uint32_t kind = wire_message_kind(message, bytes);
    REQUIRE(wire_message_kind_text(&photon__client_message__descriptor, kind, text)[0]);
    if (kind == PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        fuzz_batch(message, bytes);
    else
        fuzz_other(&photon__client_message__descriptor, message, bytes);
    fuzz_other(&photon__server_message__descriptor, message, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t min, max;
    wire_status status = wire_preamble_get(data, size, &min, &max);
    if (status != WIRE_OK) {
        REQUIRE(status == WIRE_MALFORMED || size < WIRE_PREAMBLE_BYTES);
        return 0;
    }
    REQUIRE(min > 0 && min <= max);
    size_t at = WIRE_PREAMBLE_BYTES, used = 0;
    uint64_t length = 0;
    while (at < size &&
           wire_prefix_get(data + at, size - at, FUZZ_MESSAGE_LIMIT, &length, &used) == WIRE_OK) {
        at += used;
        if (length > size - at)
            break;
        fuzz_message(data + at, (size_t)length);
        at += (size_t)length;
    }
    return 0;
}
