/* Portable kernels, free of branches that depend on the values. Encoding: blocks of differences are spread to bytes of 7
 * bits in loops that compilers make vectors of; what remains value by value is a store and an addition. Decoding: two or
 * four varints from each word of 8 bytes, by the positions of its bytes below 128. Values that this does not fit
 * (over 28 bits) are made and read as one word each. */
#include <string.h>

#include "base/bytes.h"
#include "kernels.h"
#include "wire.h"

#define HIGH_BITS 0x8080808080808080u

enum {
    BLOCK = 64,   /* values; a constant, so that the loops become vectors */
    LONG_RUN = 8, /* varints taken one by one after one that is no block's */
};

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

/* Writes any v; 10 bytes at out are overwritten. */
static inline uint8_t *put_any(uint8_t *out, uint64_t v) {
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1);
    unsigned length = (bits * 9 + 64) >> 6; /* one byte for every 7 bits begun */
    if (length > 8) {
        bytes_store64(out, spread(v) | HIGH_BITS);
        out[8] = (uint8_t)((v >> 56 & 0x7F) | (v >> 63) << 7);
        out[9] = (uint8_t)(v >> 63);
        return out + 9 + (v >> 63);
    }
    uint64_t continued = HIGH_BITS & (((uint64_t)1 << (8 * (length - 1))) - 1);
    bytes_store64(out, spread(v) | continued);
    return out + length;
}

static inline uint32_t zigzag32(uint32_t v) {
    return v << 1 ^ (0 - (v >> 31));
}

static inline uint64_t zigzag64(uint64_t v) {
    return v << 1 ^ (0 - (v >> 63));
}

/* The zigzag of the difference between values i and i + 1 at v, of the type of which the bits are counted. */
static inline uint64_t difference_int16(const uint8_t *v, size_t i) {
    int16_t a, b;
    memcpy(&a, v + i * sizeof a, sizeof a);
    memcpy(&b, v + (i + 1) * sizeof b, sizeof b);
    return zigzag32((uint32_t)b - (uint32_t)a);
}

static inline uint64_t difference_uint16(const uint8_t *v, size_t i) {
    uint16_t a, b;
    memcpy(&a, v + i * sizeof a, sizeof a);
    memcpy(&b, v + (i + 1) * sizeof b, sizeof b);
    return zigzag32((uint32_t)b - a);
}

static inline uint64_t difference_32(const uint8_t *v, size_t i) {
    uint32_t a, b;
    memcpy(&a, v + i * sizeof a, sizeof a);
    memcpy(&b, v + (i + 1) * sizeof b, sizeof b);
    return zigzag32(b - a);
}

static inline uint64_t difference_64(const uint8_t *v, size_t i) {
    uint64_t a, b;
    memcpy(&a, v + i * sizeof a, sizeof a);
    memcpy(&b, v + (i + 1) * sizeof b, sizeof b);
    return zigzag64(b - a);
}

/* Writes a block of values below 2^28; u is used up. */
static inline uint8_t *put_block(uint32_t u[BLOCK], uint8_t *out) {
    uint32_t lengths[BLOCK];
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t second = (int32_t)u[i] > 0x7F, third = (int32_t)u[i] > 0x3FFF,
                 fourth = (int32_t)u[i] > 0x1FFFFF;
        uint32_t w = (u[i] & 0x3FFF) | (u[i] & 0x0FFFC000) << 2;
        w = (w & 0x007F007F) | (w & 0x3F803F80) << 1;
        u[i] = w | second << 7 | third << 15 | fourth << 23;
        lengths[i] = 1 + second + third + fourth;
    }
    for (size_t i = 0; i < BLOCK; i++) {
        bytes_store32(out, u[i]);
        out += lengths[i];
    }
    return out;
}

#define DEFINE_ENCODE(name, type)                                                                            \
    uint8_t *d7__scalar_encode_##name(const void *values, size_t n, uint8_t *out) {                          \
        const uint8_t *v = values;                                                                           \
        for (; n > BLOCK; n -= BLOCK, v += BLOCK * sizeof(type)) {                                           \
            uint32_t u[BLOCK];                                                                               \
            uint64_t all = 0;                                                                                \
            for (size_t i = 0; i < BLOCK; i++) {                                                             \
                uint64_t d = difference_##name(v, i);                                                        \
                all |= d;                                                                                    \
                u[i] = (uint32_t)d;                                                                          \
            }                                                                                                \
            if (all >> 28 == 0)                                                                              \
                out = put_block(u, out);                                                                     \
            else                                                                                             \
                for (size_t i = 0; i < BLOCK; i++)                                                           \
                    out = put_any(out, difference_##name(v, i));                                             \
        }                                                                                                    \
        for (size_t i = 0; i + 1 < n; i++)                                                                   \
            out = put_any(out, difference_##name(v, i));                                                     \
        return out;                                                                                          \
    }

DEFINE_ENCODE(int16, int16_t)
DEFINE_ENCODE(uint16, uint16_t)
DEFINE_ENCODE(32, uint32_t)
DEFINE_ENCODE(64, uint64_t)

/* Decoding in progress. */
typedef struct run {
    const uint8_t *p, *end;
    uint8_t *to;
    uint64_t x; /* the last value; bits above the element's width are arbitrary */
} run;

static D7__INLINE void put_value(run *r, uint64_t difference, size_t width) {
    r->x += difference;
    uint16_t v16 = (uint16_t)r->x;
    uint32_t v32 = (uint32_t)r->x;
    if (width == 2)
        memcpy(r->to, &v16, sizeof v16);
    else if (width == 4)
        memcpy(r->to, &v32, sizeof v32);
    else
        memcpy(r->to, &r->x, sizeof r->x);
    r->to += width;
}

/* The next varint, whatever its length. Returns false when it has more than 10 bytes. */
static D7__INLINE bool take_any(run *r, size_t width) {
    uint64_t u;
    if (r->end - r->p >= D7__VARINT_MAX) {
        uint64_t w = bytes_load64(r->p), ends = ~w & HIGH_BITS;
        if (ends) {
            u = gather(w & (ends ^ (ends - 1)));
            r->p += (__builtin_ctzll(ends) >> 3) + 1;
        } else {
            unsigned longest = r->p[8] >> 7;
            if (longest && r->p[9] > 127)
                return false;
            u = gather(w) | (uint64_t)(r->p[8] & 127) << 56 | (uint64_t)(longest & r->p[9]) << 63;
            r->p += 9 + longest;
        }
    } else {
        d7__cursor c = {r->p, r->end};
        if (!d7__get_varint(&c, &u))
            return false;
        r->p = c.at;
    }
    put_value(r, d7__unzigzag(u), width);
    return true;
}

/* Eight varints of one byte each. */
static D7__INLINE void take_eight(run *r, uint64_t w, size_t width) {
    for (int i = 0; i < 8; i++, w >>= 8)
        put_value(r, (w >> 1 & 0x3F) ^ (0 - (w & 1)), width);
    r->p += 8;
}

/* Four varints of 8 bytes that are of one or two bytes each. */
static D7__INLINE void take_four(run *r, uint64_t w, size_t width) {
    for (int i = 0; i < 4; i++) {
        uint32_t longer = (uint32_t)(w >> 7 & 1);
        uint32_t u = ((uint32_t)w & 0x7F) | ((uint32_t)(w >> 1) & 0x3F80 & (0 - longer));
        w = w >> 8 >> (longer << 3);
        r->p += 1 + longer;
        put_value(r, (u >> 1) ^ (0 - (uint64_t)(u & 1)), width);
    }
}

/* The difference in a varint of at most 4 bytes. */
static inline uint32_t difference_28(uint32_t w) {
    uint32_t u = (w & 0x007F007F) | (w & 0x7F007F00) >> 1;
    u = (u & 0x00003FFF) | (u & 0x3FFF0000) >> 2;
    return u >> 1 ^ (0 - (u & 1));
}

/* Up to a block of varints of at most 4 bytes; they are cut out first, then turned to differences, in a loop that becomes
 * vectors where the block is full, then added up. Returns their number: less than a block where another kind follows or the
 * end is near. */
static D7__INLINE size_t take_block(run *r, size_t width) {
    uint32_t w[BLOCK];
    size_t n = 0;
    for (; n < BLOCK && r->end - r->p >= 8; n += 2) {
        uint64_t word = bytes_load64(r->p), ends = ~word & HIGH_BITS, more = ends & (ends - 1);
        if (!more)
            break;
        uint64_t first = word & (ends ^ (ends - 1));
        uint64_t second = (word & (more ^ (more - 1))) >> 1 >> __builtin_ctzll(ends);
        if ((first | second) >> 32)
            break;
        w[n] = (uint32_t)first;
        w[n + 1] = (uint32_t)second;
        r->p += (__builtin_ctzll(more) >> 3) + 1;
    }
    if (n == BLOCK)
        for (size_t i = 0; i < BLOCK; i++)
            w[i] = difference_28(w[i]);
    else
        for (size_t i = 0; i < n; i++)
            w[i] = difference_28(w[i]);
    for (size_t i = 0; i < n; i++)
        put_value(r, (uint64_t)(int64_t)(int32_t)w[i], width);
    return n;
}

static D7__INLINE const uint8_t *decode(const uint8_t *in, size_t bytes, uint64_t *sum, void *out,
                                        size_t width) {
    run r = {.p = in, .end = in + bytes, .to = out, .x = *sum};
    while (r.p < r.end) {
        if (width == 2 && r.end - r.p >= 8) {
            uint64_t w = bytes_load64(r.p), continued = w & HIGH_BITS;
            if (!(continued & continued << 8)) {
                if (continued)
                    take_four(&r, w, width);
                else
                    take_eight(&r, w, width);
                continue;
            }
        }
        if (take_block(&r, width) == BLOCK)
            continue;
        for (int i = 0; i < LONG_RUN && r.p < r.end; i++)
            if (!take_any(&r, width))
                return r.p;
    }
    *sum = width == 2 ? (uint16_t)r.x : width == 4 ? (uint32_t)r.x : r.x;
    return NULL;
}

const uint8_t *d7__scalar_decode_16(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 2);
}

const uint8_t *d7__scalar_decode_32(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 4);
}

const uint8_t *d7__scalar_decode_64(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 8);
}

size_t d7__scalar_count(const uint8_t *in, size_t bytes) {
    size_t n = 0, i = 0;
    for (; i + 8 <= bytes; i += 8) /* the product's highest byte is the sum of all */
        n += (size_t)(((~bytes_load64(in + i) & HIGH_BITS) >> 7) * 0x0101010101010101u >> 56);
    for (; i < bytes; i++)
        n += in[i] < 128;
    return n;
}
