/* NEON. Encoding goes as with AVX2, half as many values at a time. Decoding of 16 bits looks at fixed windows of 8 bytes: a
 * varint of at most two bytes is known from the byte it ends with and the byte before that, so that no window waits
 * for another. The other decoders are the portable ones. */
#include "kernels.h"
#if D7__HAVE_NEON
#include <arm_neon.h>

#include "kernels_tables.h"

/* Any alignment. */
static inline uint16x8_t load_8x2(const uint8_t *p) {
    return vreinterpretq_u16_u8(vld1q_u8(p));
}

static inline uint32x4_t load_4x4(const uint8_t *p) {
    return vreinterpretq_u32_u8(vld1q_u8(p));
}

static inline uint64x2_t load_2x8(const uint8_t *p) {
    return vreinterpretq_u64_u8(vld1q_u8(p));
}

/* From bits 7-13 of every 16 to bits 8-14. */
static inline uint16x8_t spread_14(uint16x8_t u) {
    return vaddq_u16(u, vbicq_u16(u, vdupq_n_u16(0x7F)));
}

/* 8 lanes of 16 bits, each below 2^14. */
static inline uint8_t *put_8x2(uint8_t *out, uint16x8_t u) {
    static const uint8_t bits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint16x8_t longer = vcgtq_u16(u, vdupq_n_u16(0x7F));
    uint16x8_t w = vorrq_u16(spread_14(u), vandq_u16(longer, vdupq_n_u16(0x80)));
    unsigned m = vaddv_u8(vand_u8(vmovn_u16(longer), vld1_u8(bits)));
    vst1q_u8(out, vqtbl1q_u8(vreinterpretq_u8_u16(w), vld1q_u8(d7__pack_2[m])));
    return out + 8 + vaddvq_u16(vshrq_n_u16(longer, 15));
}

/* 4 lanes of 32 bits, each below 2^28. */
static inline uint8_t *put_4x4(uint8_t *out, uint32x4_t u) {
    static const uint32_t low[4] = {1, 4, 16, 64}, high[4] = {2, 8, 32, 128};
    uint32x4_t second = vcgtq_u32(u, vdupq_n_u32(0x7F)), third = vcgtq_u32(u, vdupq_n_u32(0x3FFF));
    uint32x4_t fourth = vcgtq_u32(u, vdupq_n_u32(0x1FFFFF));
    uint32x4_t codes =
        vorrq_u32(vandq_u32(veorq_u32(second, fourth), vld1q_u32(low)), vandq_u32(third, vld1q_u32(high)));
    uint32_t m = vaddvq_u32(codes);
    uint32x4_t w = vbslq_u32(vdupq_n_u32(0x3FFF), u, vshlq_n_u32(u, 2));
    w = vandq_u32(w, vdupq_n_u32(0x3FFF3FFF));
    uint8x16_t bytes = vreinterpretq_u8_u16(spread_14(vreinterpretq_u16_u32(w)));
    bytes = vqtbl1q_u8(bytes, vld1q_u8(d7__pack_4[m]));
    vst1q_u8(out, vorrq_u8(bytes, vld1q_u8(d7__marks_4[m])));
    return out + d7__length_4[m];
}

static inline uint32x4_t zigzag_32(uint32x4_t difference) {
    int32x4_t d = vreinterpretq_s32_u32(difference);
    return vreinterpretq_u32_s32(veorq_s32(vshlq_n_s32(d, 1), vshrq_n_s32(d, 31)));
}

static inline uint64x2_t zigzag_64(uint64x2_t difference) {
    int64x2_t d = vreinterpretq_s64_u64(difference);
    return vreinterpretq_u64_s64(veorq_s64(vshlq_n_s64(d, 1), vshrq_n_s64(d, 63)));
}

/* 8 differences that do not all fit 14 bits as zigzag. */
static inline uint8_t *put_wide(uint8_t *out, uint16x8_t before, uint16x8_t after, bool is_signed) {
    uint32x4_t low, high;
    if (is_signed) {
        int16x8_t a = vreinterpretq_s16_u16(after), b = vreinterpretq_s16_u16(before);
        low = vreinterpretq_u32_s32(vsubl_s16(vget_low_s16(a), vget_low_s16(b)));
        high = vreinterpretq_u32_s32(vsubl_high_s16(a, b));
    } else {
        low = vsubl_u16(vget_low_u16(after), vget_low_u16(before));
        high = vsubl_high_u16(after, before);
    }
    return put_4x4(put_4x4(out, zigzag_32(low)), zigzag_32(high));
}

static D7__INLINE uint8_t *encode_16(const void *values, size_t n, uint8_t *out, bool is_signed) {
    const uint8_t *v = values;
    uint16x8_t bias = vdupq_n_u16(is_signed ? 0 : 0x8000);
    for (; n > 8; n -= 8, v += 16) {
        uint16x8_t before = load_8x2(v), after = load_8x2(v + 2);
        int16x8_t a = vreinterpretq_s16_u16(veorq_u16(after, bias));
        int16x8_t b = vreinterpretq_s16_u16(veorq_u16(before, bias));
        int16x8_t d = vqsubq_s16(a, b); /* saturated ones fail the test below */
        uint16x8_t u = vreinterpretq_u16_s16(veorq_s16(vshlq_n_s16(d, 1), vshrq_n_s16(d, 15)));
        if (vmaxvq_u16(u) < 0x4000)
            out = put_8x2(out, u);
        else
            out = put_wide(out, before, after, is_signed);
    }
    return is_signed ? d7__scalar_encode_int16(v, n, out) : d7__scalar_encode_uint16(v, n, out);
}

uint8_t *d7__neon_encode_int16(const void *values, size_t n, uint8_t *out) {
    return encode_16(values, n, out, true);
}

uint8_t *d7__neon_encode_uint16(const void *values, size_t n, uint8_t *out) {
    return encode_16(values, n, out, false);
}

uint8_t *d7__neon_encode_32(const void *values, size_t n, uint8_t *out) {
    const uint8_t *v = values;
    for (; n > 4; n -= 4, v += 16) {
        uint32x4_t u = zigzag_32(vsubq_u32(load_4x4(v + 4), load_4x4(v)));
        if (vmaxvq_u32(u) >> 28 == 0)
            out = put_4x4(out, u);
        else
            out = d7__scalar_encode_32(v, 5, out);
    }
    return d7__scalar_encode_32(v, n, out);
}

uint8_t *d7__neon_encode_64(const void *values, size_t n, uint8_t *out) {
    const uint8_t *v = values;
    for (; n > 4; n -= 4, v += 32) {
        uint64x2_t a = zigzag_64(vsubq_u64(load_2x8(v + 8), load_2x8(v)));
        uint64x2_t b = zigzag_64(vsubq_u64(load_2x8(v + 24), load_2x8(v + 16)));
        uint64x2_t all = vorrq_u64(a, b);
        if ((vgetq_lane_u64(all, 0) | vgetq_lane_u64(all, 1)) >> 28 == 0)
            out = put_4x4(out, vcombine_u32(vmovn_u64(a), vmovn_u64(b)));
        else
            out = d7__scalar_encode_64(v, 5, out);
    }
    return d7__scalar_encode_64(v, n, out);
}

enum { BLOCK = 64, WINDOW = 8 };

/* Bit i: byte i, of 64, is its varint's last. */
static inline uint64_t end_bits(const uint8_t *p) {
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t mask = vld1q_u8(bits), part[4];
    for (int i = 0; i < 4; i++)
        part[i] = vandq_u8(vcgezq_s8(vreinterpretq_s8_u8(vld1q_u8(p + 16 * i))), mask);
    uint8x16_t sums = vpaddq_u8(vpaddq_u8(part[0], part[1]), vpaddq_u8(part[2], part[3]));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
}

/* For each set of bytes of a window that end a varint, and for each of these in order: the byte before and the byte itself,
 * counted from the window's start as 1; 0 where there are no more. */
#define W_BYTE0(...) {__VA_ARGS__}, {1, 2, __VA_ARGS__},
#define W_BYTE1(...) W_BYTE0(__VA_ARGS__) W_BYTE0(2, 3, __VA_ARGS__)
#define W_BYTE2(...) W_BYTE1(__VA_ARGS__) W_BYTE1(3, 4, __VA_ARGS__)
#define W_BYTE3(...) W_BYTE2(__VA_ARGS__) W_BYTE2(4, 5, __VA_ARGS__)
#define W_BYTE4(...) W_BYTE3(__VA_ARGS__) W_BYTE3(5, 6, __VA_ARGS__)
#define W_BYTE5(...) W_BYTE4(__VA_ARGS__) W_BYTE4(6, 7, __VA_ARGS__)
#define W_BYTE6(...) W_BYTE5(__VA_ARGS__) W_BYTE5(7, 8, __VA_ARGS__)

static const d7__shuffle pairs[256] = {W_BYTE6(0) W_BYTE6(8, 9)};

/* The sums of the differences that end in a window, up to each; the last one is in the last lane, too. */
static inline uint16x8_t window_sums(const uint8_t *window, unsigned ends) {
    uint8x16_t places = vsubq_u8(vld1q_u8(pairs[ends]), vdupq_n_u8(1));
    uint16x8_t pair = vreinterpretq_u16_u8(vqtbl1q_u8(vld1q_u8(window - 1), places));
    uint16x8_t last = vshrq_n_u16(pair, 8), both = vsliq_n_u16(pair, last, 7);
    uint16x8_t u = vbslq_u16(vtstq_u16(pair, vdupq_n_u16(0x80)), both, last);
    uint16x8_t zero = vdupq_n_u16(0), sign = vsubq_u16(zero, vandq_u16(u, vdupq_n_u16(1)));
    uint16x8_t d = veorq_u16(vshrq_n_u16(u, 1), sign);
    d = vaddq_u16(d, vextq_u16(zero, d, 7));
    d = vaddq_u16(d, vextq_u16(zero, d, 6));
    return vaddq_u16(d, vextq_u16(zero, d, 4));
}

/* Decoding in progress. */
typedef struct run {
    const uint8_t *p; /* may be inside of a varint of two bytes */
    uint8_t *to;
    uint64_t x; /* the last value */
} run;

/* Decodes from r->p, or from the byte before when the varint has begun there, up to `end`. */
static const uint8_t *take_portably(run *r, const uint8_t *start, const uint8_t *end) {
    const uint8_t *bad = d7__scalar_decode_16(start, (size_t)(end - start), &r->x, r->to);
    r->to += 2 * d7__scalar_count(start, (size_t)(end - start));
    r->p = end;
    return bad;
}

/* A block of varints of at most two bytes each. */
static inline void take_block(run *r, uint64_t ends) {
    uint16x8_t x = vdupq_n_u16((uint16_t)r->x);
    for (unsigned i = 0; i < BLOCK; i += WINDOW) {
        unsigned m = ends >> i & 0xFF;
        uint16x8_t d = window_sums(r->p + i, m);
        vst1q_u8(r->to, vreinterpretq_u8_u16(vaddq_u16(x, d)));
        r->to += 2 * __builtin_popcount(m);
        x = vaddq_u16(x, vdupq_laneq_u16(d, 7));
    }
    r->x = vgetq_lane_u16(x, 0);
    r->p += BLOCK;
}

/* The end of the first varint in p[bytes]. */
static const uint8_t *first_end(const uint8_t *p, size_t bytes) {
    size_t i = 0;
    while (i < bytes && p[i] > 127)
        i++;
    return p + i + (i < bytes);
}

const uint8_t *d7__neon_decode_16(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    const uint8_t *end = in + bytes, *bad;
    run r = {.p = in, .to = out, .x = *sum};
    /* A window reads the byte before it and some after it, and stores 8 values even where fewer end in it. */
    uint8_t *last = r.to + 2 * d7__neon_count(in, bytes);
    if ((bad = take_portably(&r, in, first_end(in, bytes))))
        return bad;
    while (last - r.to >= 2 * (BLOCK + WINDOW)) {
        uint64_t ends = end_bits(r.p), continued = ~ends;
        unsigned begun = r.p[-1] >> 7;
        if (!(continued & (continued << 1 | begun)))
            take_block(&r, ends);
        else if ((bad = take_portably(&r, r.p - begun, ends ? r.p + (64 - __builtin_clzll(ends)) : end)))
            return bad;
    }
    bad = take_portably(&r, r.p - (r.p > in && r.p[-1] > 127), end);
    if (!bad)
        *sum = (uint16_t)r.x;
    return bad;
}

size_t d7__neon_count(const uint8_t *in, size_t bytes) {
    size_t n = 0, i = 0;
    for (; i + BLOCK <= bytes; i += BLOCK)
        n += (size_t)__builtin_popcountll(end_bits(in + i));
    return n + d7__scalar_count(in + i, bytes - i);
}
#endif
