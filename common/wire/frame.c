#include "wire/frame.h"

#include <string.h>

#include "wire/cursor.h"

static const uint8_t preamble_magic[6] = {'P', 'H', 'O', 'T', 'O', 'N'};

const char wire_stray_answer[] =
    "photond: this port speaks the photond ingest protocol (docs/protocol.md), which begins otherwise\n";

void wire_preamble_put(uint8_t out[WIRE_PREAMBLE_BYTES], uint8_t version_min, uint8_t version_max) {
    memcpy(out, preamble_magic, sizeof preamble_magic);
    out[6] = version_min;
    out[7] = version_max;
}

wire_status wire_preamble_get(const uint8_t *bytes, size_t n, uint8_t *version_min, uint8_t *version_max) {
    size_t magic = n < sizeof preamble_magic ? n : sizeof preamble_magic;
    if (magic && memcmp(bytes, preamble_magic, magic) != 0)
        return WIRE_MALFORMED;
    if (n > 6 && bytes[6] == 0)
        return WIRE_MALFORMED;
    if (n < WIRE_PREAMBLE_BYTES)
        return WIRE_MORE;
    if (bytes[7] < bytes[6])
        return WIRE_MALFORMED;
    *version_min = bytes[6];
    *version_max = bytes[7];
    return WIRE_OK;
}

uint8_t wire_version_choose(uint8_t min_a, uint8_t max_a, uint8_t min_b, uint8_t max_b) {
    uint8_t highest = max_a < max_b ? max_a : max_b;
    uint8_t lowest = min_a > min_b ? min_a : min_b;
    return highest >= lowest ? highest : 0;
}

wire_status wire_prefix_get(const uint8_t *bytes, size_t n, uint64_t limit, uint64_t *length, size_t *used) {
    size_t whole = n < WIRE_PREFIX_BYTES_MAX ? n : WIRE_PREFIX_BYTES_MAX;
    wire_cursor c = {bytes, bytes + whole};
    uint64_t value;
    if (!wire_get_varint(&c, &value))
        return whole == WIRE_PREFIX_BYTES_MAX ? WIRE_MALFORMED : WIRE_MORE;
    *length = value;
    *used = (size_t)(c.at - bytes);
    return value > limit ? WIRE_LIMIT : WIRE_OK;
}

size_t wire_prefix_put(uint8_t out[WIRE_PREFIX_BYTES_MAX], uint64_t length) {
    return (size_t)(wire_put_varint(out, length) - out);
}
