/* Decoders for AVX2 and BMI2. The continuation bits of 64 bytes are taken as one word; the bit operations pext and pdep
 * turn it into where each group of varints starts and what the lengths in it are, without going from varint to
 * varint. A table of byte shuffles then puts each varint into a lane of its own, where bits are gathered,
 * differences restored and added up. Blocks with varints of more than 4 bytes go varint by varint. */
#include "kernels_avx2.h"
#include "wire.h"
#if D7__HAVE_AVX2
D7__BEGIN_AVX2

enum { BLOCK = 64 };

/* Bit i: byte i is not the last of its varint. */
static inline uint64_t continued_bits(const uint8_t *p) {
    uint32_t low = (uint32_t)_mm256_movemask_epi8(load256(p));
    return low | (uint64_t)(uint32_t)_mm256_movemask_epi8(load256(p + 32)) << 32;
}

/* The position after the n-th varint (from 1), given the bits where varints end. */
static inline unsigned nth_end(uint64_t ends, unsigned n) {
    return (unsigned)_tzcnt_u64(_pdep_u64((uint64_t)1 << (n - 1), ends)) + 1;
}

static inline __m256i join128(__m128i low, __m128i high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

static inline __m128i unpack(const uint8_t *p, const d7__shuffle *table, uint64_t index) {
    return _mm_shuffle_epi8(load128(p), load128(table[index & 0xFF]));
}

/* 16 lanes of two bytes to 16 bits. */
static inline __m256i gather_14(__m256i w) {
    w = _mm256_and_si256(w, _mm256_set1_epi8(0x7F));
    return _mm256_maddubs_epi16(_mm256_set1_epi16((short)0x8001), w);
}

/* The sums of the lanes up to each lane, of 16 unsigned zigzags. */
static inline __m256i sums_16(__m256i u) {
    __m256i sign = _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_and_si256(u, _mm256_set1_epi16(1)));
    __m256i d = _mm256_xor_si256(_mm256_srli_epi16(u, 1), sign);
    d = _mm256_add_epi16(d, _mm256_slli_si256(d, 2));
    d = _mm256_add_epi16(d, _mm256_slli_si256(d, 4));
    d = _mm256_add_epi16(d, _mm256_slli_si256(d, 8));
    __m256i low_half = _mm256_permute2x128_si256(d, d, 0x08);
    return _mm256_add_epi16(d, _mm256_shuffle_epi8(low_half, _mm256_set1_epi16(0x0F0E)));
}

static inline __m256i sums_32(__m256i u) {
    __m256i sign = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(u, _mm256_set1_epi32(1)));
    __m256i d = _mm256_xor_si256(_mm256_srli_epi32(u, 1), sign);
    d = _mm256_add_epi32(d, _mm256_slli_si256(d, 4));
    d = _mm256_add_epi32(d, _mm256_slli_si256(d, 8));
    __m256i low_half = _mm256_permute2x128_si256(d, d, 0x08);
    return _mm256_add_epi32(d, _mm256_shuffle_epi32(low_half, 0xFF));
}

/* Decoding in progress. */
typedef struct run {
    const uint8_t *p, *end;
    uint8_t *to;
    __m256i x; /* the last value, in every lane of the element's width */
} run;

/* 32 varints of one or two bytes; `continued` are the bits at r->p, no two of them next to each other. */
static inline void take_short(run *r, uint64_t continued) {
    uint64_t longer = _pext_u64(continued << 1, ~continued);
    unsigned starts[4];
    for (unsigned i = 0; i < 4; i++)
        starts[i] = 8 * i + (unsigned)_mm_popcnt_u64(_bzhi_u64(longer, 8 * i));
    for (unsigned i = 0; i < 4; i += 2) {
        __m128i low = unpack(r->p + starts[i], d7__unpack_2, longer >> 8 * i);
        __m128i high = unpack(r->p + starts[i + 1], d7__unpack_2, longer >> (8 * i + 8));
        __m256i d = sums_16(gather_14(join128(low, high)));
        store256(r->to, _mm256_add_epi16(r->x, d));
        __m256i high_half = _mm256_permute2x128_si256(d, d, 0x11);
        r->x = _mm256_add_epi16(r->x, _mm256_shuffle_epi8(high_half, _mm256_set1_epi16(0x0F0E)));
        r->to += 32;
    }
    r->p += 32 + (unsigned)_mm_popcnt_u64(_bzhi_u64(longer, 32));
}

/* Adds 8 sums of differences to the last value and stores the results. */
static D7__INLINE void put_sums(run *r, __m256i d, size_t width) {
    __m128i high = high128(d), last = _mm_shuffle_epi32(high, 0xFF);
    if (width == 2) {
        __m256i cut = _mm256_and_si256(d, _mm256_set1_epi32(0xFFFF));
        __m128i values = _mm_packus_epi32(low128(cut), high128(cut));
        store128(r->to, _mm_add_epi16(low128(r->x), values));
        r->x = _mm256_add_epi16(r->x, _mm256_broadcastw_epi16(last));
    } else if (width == 4) {
        store256(r->to, _mm256_add_epi32(r->x, d));
        r->x = _mm256_add_epi32(r->x, _mm256_broadcastd_epi32(last));
    } else {
        store256(r->to, _mm256_add_epi64(r->x, _mm256_cvtepi32_epi64(low128(d))));
        store256(r->to + 32, _mm256_add_epi64(r->x, _mm256_cvtepi32_epi64(high)));
        r->x = _mm256_add_epi64(r->x, _mm256_cvtepi32_epi64(last));
    }
    r->to += 8 * width;
}

/* 16 varints of at most four bytes; no four of the bits are next to each other. */
static D7__INLINE void take_middle(run *r, uint64_t continued, size_t width) {
    uint64_t ends = ~continued, second = continued << 1, third = second & continued << 2;
    uint64_t fourth = third & continued << 3;
    uint64_t low = _pext_u64(D7__LENGTH_CODE_LOW(second, fourth), ends);
    uint64_t high = _pext_u64(D7__LENGTH_CODE_HIGH(third), ends);
    uint64_t codes = _pdep_u64(low, 0x55555555) | _pdep_u64(high, 0xAAAAAAAA);
    const __m256i pairs = _mm256_set1_epi16((short)0x8001), quads = _mm256_set1_epi32(0x40000001);
    for (unsigned i = 0; i < 4; i += 2) {
        unsigned start = i ? nth_end(ends, 4 * i) : 0;
        __m128i a = unpack(r->p + start, d7__unpack_4, codes >> 8 * i);
        __m128i b = unpack(r->p + nth_end(ends, 4 * i + 4), d7__unpack_4, codes >> (8 * i + 8));
        __m256i w = _mm256_and_si256(join128(a, b), _mm256_set1_epi8(0x7F));
        __m256i u = _mm256_madd_epi16(_mm256_maddubs_epi16(pairs, w), quads);
        put_sums(r, sums_32(u), width);
    }
    r->p += nth_end(ends, 16);
}

static inline void put_value(run *r, uint64_t *x, uint64_t u, size_t width) {
    *x += d7__unzigzag(u);
    if (width == 2)
        bytes_store16(r->to, (uint16_t)*x);
    else if (width == 4)
        bytes_store32(r->to, (uint32_t)*x);
    else
        bytes_store64(r->to, *x);
    r->to += width;
}

/* Bits above the element's width are arbitrary. */
static inline uint64_t last_value(const run *r) {
    return (uint64_t)_mm_cvtsi128_si64(low128(r->x));
}

static inline void set_last_value(run *r, uint64_t x, size_t width) {
    r->x = width == 2   ? _mm256_set1_epi16((short)x)
           : width == 4 ? _mm256_set1_epi32((int)x)
                        : _mm256_set1_epi64x((int64_t)x);
}

/* The varint of `length` bytes at p, of which 8 can be read. */
static inline uint64_t get_varint(const uint8_t *p, unsigned length) {
    uint64_t w = _bzhi_u64(bytes_load64(p), length < 8 ? 8 * length : 64);
    uint64_t u = _pext_u64(w, 0x7F7F7F7F7F7F7F7F);
    if (length > 8)
        u |= (uint64_t)(p[8] & 127) << 56;
    if (length > 9)
        u |= (uint64_t)p[9] << 63;
    return u;
}

/* The varints that end in the block, one by one, up to the first that starts in its last 8 bytes. Returns false at one
 * of more than 10 bytes: r->p is then its start. */
static bool take_long(run *r, uint64_t continued, size_t width) {
    uint64_t x = last_value(r);
    unsigned at = 0;
    for (uint64_t ends = ~continued; ends && at <= BLOCK - 8; ends &= ends - 1) {
        unsigned next = (unsigned)_tzcnt_u64(ends) + 1, length = next - at;
        if (length > D7__VARINT_MAX) {
            r->p += at;
            return false;
        }
        uint64_t u = get_varint(r->p + at, length);
        put_value(r, &x, u, width);
        at = next;
    }
    r->p += at;
    set_last_value(r, x, width);
    return at > 0;
}

static D7__INLINE const uint8_t *decode(const uint8_t *in, size_t bytes, uint64_t *sum, void *out,
                                        size_t width, d7__decode_fn *rest) {
    run r = {.p = in, .end = in + bytes, .to = out};
    set_last_value(&r, *sum, width);
    while (r.end - r.p >= BLOCK) {
        uint64_t c = continued_bits(r.p), two = c & c << 1;
        if (width == 2 && !two) {
            take_short(&r, c);
        } else if (!(two & two << 2)) {
            take_middle(&r, c, width);
        } else if (!take_long(&r, c, width)) {
            return r.p;
        }
    }
    uint64_t x = last_value(&r);
    const uint8_t *bad = rest(r.p, (size_t)(r.end - r.p), &x, r.to);
    if (!bad)
        *sum = x;
    return bad;
}

const uint8_t *d7__avx2_decode_16(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 2, d7__scalar_decode_16);
}

const uint8_t *d7__avx2_decode_32(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 4, d7__scalar_decode_32);
}

const uint8_t *d7__avx2_decode_64(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 8, d7__scalar_decode_64);
}

size_t d7__avx2_count(const uint8_t *in, size_t bytes) {
    size_t continued = 0, i = 0;
    for (; i + BLOCK <= bytes; i += BLOCK)
        continued += (size_t)_mm_popcnt_u64(continued_bits(in + i));
    return i - continued + d7__scalar_count(in + i, bytes - i);
}

D7__END_AVX2
#endif
