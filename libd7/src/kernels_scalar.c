/* Portable kernels. A varint is made and read as one 64-bit word: its groups of 7 bits are spread to bytes (or gathered
 * again) by three shifts, its length comes from the position of the highest bit (or of the first byte below 128), so
 * that noisy data costs no mispredicted branches. */
#include <string.h>

#include "base/bytes.h"
#include "kernels.h"
#include "wire.h"

#define HIGH_BITS 0x8080808080808080u

/* Bits 0-55 of v to the low 7 bits of 8 bytes. */
static inline uint64_t spread(uint64_t v) {
    v = (v & 0x000000000FFFFFFFu) | (v & 0x00FFFFFFF0000000u) << 4;
    v = (v & 0x00003FFF00003FFFu) | (v & 0x0FFFC0000FFFC000u) << 2;
    return (v & 0x007F007F007F007Fu) | (v & 0x3F803F803F803F80u) << 1;
}

/* The reverse; bits 7 of the bytes are ignored. */
static inline uint64_t gather(uint64_t w) {
    w = (w & 0x007F007F007F007Fu) | (w & 0x7F007F007F007F00u) >> 1;
    w = (w & 0x00003FFF00003FFFu) | (w & 0x3FFF00003FFF0000u) >> 2;
    return (w & 0x000000000FFFFFFFu) | (w & 0x0FFFFFFF00000000u) >> 4;
}

/* The varint's length for v < 2^56: one byte for every 7 bits begun. */
static inline unsigned varint_length(uint64_t v) {
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    return (bits * 9 + 64) >> 6;
}

/* Writes v < 2^56 as a varint; 8 bytes at out are overwritten. */
static inline uint8_t *put_small(uint8_t *out, uint64_t v) {
    unsigned length = varint_length(v);
    uint64_t continued = HIGH_BITS & (((uint64_t)1 << (8 * (length - 1))) - 1);
    bytes_store64(out, spread(v) | continued);
    return out + length;
}

/* The same for v < 2^21. */
static inline uint8_t *put_tiny(uint8_t *out, uint32_t v) {
    uint32_t longer = v > 0x7F, longest = v > 0x3FFF;
    uint32_t w = (v & 0x7F) | (v & 0x3F80) << 1 | (v & 0x1FC000) << 2;
    bytes_store32(out, w | longer << 7 | longest << 15);
    return out + 1 + longer + longest;
}

static inline uint32_t zigzag32(uint32_t v) {
    return v << 1 ^ (0 - (v >> 31));
}

#define LOAD(type, values, i, v)                                                                             \
    type v;                                                                                                  \
    memcpy(&v, (const uint8_t *)(values) + (i) * sizeof v, sizeof v)

static uint8_t *encode_int16(const void *values, size_t n, uint8_t *out) {
    LOAD(int16_t, values, 0, before);
    for (size_t i = 1; i < n; i++) {
        LOAD(int16_t, values, i, v);
        out = put_tiny(out, zigzag32((uint32_t)v - (uint32_t)before));
        before = v;
    }
    return out;
}

static uint8_t *encode_uint16(const void *values, size_t n, uint8_t *out) {
    LOAD(uint16_t, values, 0, before);
    for (size_t i = 1; i < n; i++) {
        LOAD(uint16_t, values, i, v);
        out = put_tiny(out, zigzag32((uint32_t)v - before));
        before = v;
    }
    return out;
}

static uint8_t *encode_32(const void *values, size_t n, uint8_t *out) {
    LOAD(uint32_t, values, 0, before);
    for (size_t i = 1; i < n; i++) {
        LOAD(uint32_t, values, i, v);
        out = put_small(out, zigzag32(v - before));
        before = v;
    }
    return out;
}

static uint8_t *encode_64(const void *values, size_t n, uint8_t *out) {
    LOAD(uint64_t, values, 0, before);
    for (size_t i = 1; i < n; i++) {
        LOAD(uint64_t, values, i, v);
        uint64_t difference = v - before;
        uint64_t u = difference << 1 ^ (0 - (difference >> 63));
        out = u >> 56 ? d7__put_varint(out, u) : put_small(out, u);
        before = v;
    }
    return out;
}

/* Reads one varint at *p, which is at least 8 bytes before the end, when it has at most 8 bytes. */
static inline bool get_small(const uint8_t **p, uint64_t *ret) {
    uint64_t w = bytes_load64(*p);
    uint64_t ends = ~w & HIGH_BITS;
    if (!ends)
        return false;
    uint64_t end = ends & (0 - ends);
    *ret = gather(w & ((end << 1) - 1));
    *p += ((unsigned)__builtin_ctzll(ends) >> 3) + 1;
    return true;
}

static inline bool get_any(const uint8_t **p, const uint8_t *end, uint64_t *ret) {
    d7__cursor c = {*p, end};
    bool good = d7__get_varint(&c, ret);
    *p = c.at;
    return good;
}

#define DEFINE_DECODE(name, type)                                                                            \
    static const uint8_t *name(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {                  \
        const uint8_t *p = in, *end = in + bytes;                                                            \
        uint8_t *to = out;                                                                                   \
        uint64_t x = *sum, u;                                                                                \
        while (p < end) {                                                                                    \
            if (!(end - p >= 8 && get_small(&p, &u)) && !get_any(&p, end, &u))                               \
                return p;                                                                                    \
            x += d7__unzigzag(u);                                                                            \
            type v = (type)x;                                                                                \
            memcpy(to, &v, sizeof v);                                                                        \
            to += sizeof v;                                                                                  \
        }                                                                                                    \
        *sum = x;                                                                                            \
        return NULL;                                                                                         \
    }

DEFINE_DECODE(decode_16, uint16_t)
DEFINE_DECODE(decode_32, uint32_t)
DEFINE_DECODE(decode_64, uint64_t)

static size_t count(const uint8_t *in, size_t bytes) {
    size_t n = 0, i = 0;
    for (; i + 8 <= bytes; i += 8)
        n += (size_t)__builtin_popcountll(~bytes_load64(in + i) & HIGH_BITS);
    for (; i < bytes; i++)
        n += in[i] < 128;
    return n;
}

const d7__kernels d7__kernels_scalar = {
    .encode_int16 = encode_int16,
    .encode_uint16 = encode_uint16,
    .encode_32 = encode_32,
    .encode_64 = encode_64,
    .decode_16 = decode_16,
    .decode_32 = decode_32,
    .decode_64 = decode_64,
    .count = count,
};

const d7__kernels *d7__kernels_best(void) {
    return &d7__kernels_scalar;
}
