/* Deflate64, which no common library decodes: deflate with a window of 64 KB, two distance codes more, and lengths up to
 * 65538 by the last length code. The codes are decoded bit by bit from the counts of their lengths, which is slow, short
 * and safe: such archives are rare. Source: the ZIP application note (method 9) and RFC 1951. */
#include <string.h>

#include "archive_decode.h"
#include "error.h"

enum {
    MAX_CODE_BITS = 15,
    N_LITERALS = 288,
    N_DISTANCES = 32,
    N_LENGTH_CODES = 29,
    N_CODE_LENGTHS = 19,
    END_OF_BLOCK = 256,
    WINDOW = 1 << 16
};

typedef struct reader {
    daf__source *in;
    const uint8_t *at;
    size_t left;
    uint64_t bits; /* read, not used yet; the next lowest */
    unsigned n_bits;
    daf__sink *out;
    daf_error *err;
} reader;

/* A canonical code: how many codes of each length there are, and the symbols in the order of their codes. */
typedef struct code {
    uint16_t count[MAX_CODE_BITS + 1];
    uint16_t symbol[N_LITERALS];
} code;

static int damaged(reader *r) {
    return daf__fail(r->err, DAF_ERR_CORRUPT, 0, 0, "its compressed data are damaged");
}

static int take(reader *r, unsigned n, uint32_t *ret) {
    while (r->n_bits < n) {
        if (r->left == 0) {
            int rc = daf__source_next(r->in, &r->at, &r->left, r->err);
            if (rc)
                return rc;
            if (r->left == 0)
                return damaged(r); /* ends in the midst */
        }
        r->bits |= (uint64_t)*r->at++ << r->n_bits;
        r->left--;
        r->n_bits += 8;
    }
    *ret = (uint32_t)(r->bits & (((uint64_t)1 << n) - 1));
    r->bits >>= n;
    r->n_bits -= n;
    return 0;
}

/* Returns 0, or -1 when the lengths make no code. One code of one bit may stand alone. */
static int make_code(code *c, const uint8_t *lengths, unsigned n) {
    uint16_t next[MAX_CODE_BITS + 1] = {0};
    int left = 1;
    memset(c, 0, sizeof *c);
    for (unsigned i = 0; i < n; i++)
        c->count[lengths[i]]++;
    unsigned used = n - c->count[0];
    c->count[0] = 0;
    for (unsigned bits = 1; bits <= MAX_CODE_BITS; bits++) {
        left = 2 * left - c->count[bits];
        if (left < 0)
            return -1;
        if (bits < MAX_CODE_BITS)
            next[bits + 1] = (uint16_t)(next[bits] + c->count[bits]);
    }
    for (unsigned i = 0; i < n; i++)
        if (lengths[i])
            c->symbol[next[lengths[i]]++] = (uint16_t)i;
    return left == 0 || used <= 1 ? 0 : -1;
}

static int decode(reader *r, const code *c, unsigned *ret) {
    int value = 0, first = 0, index = 0;
    for (unsigned bits = 1; bits <= MAX_CODE_BITS; bits++) {
        uint32_t bit;
        int rc = take(r, 1, &bit), count = c->count[bits];
        if (rc)
            return rc;
        value |= (int)bit;
        if (value - first < count) {
            *ret = c->symbol[index + value - first];
            return 0;
        }
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    return damaged(r);
}

static int put(reader *r, uint8_t byte) {
    uint8_t *to;
    size_t room;
    int rc = daf__sink_room(r->out, &to, &room, r->err);
    if (rc)
        return rc;
    *to = byte;
    r->out->out.size++;
    return 0;
}

/* Byte by byte: what is copied may be what was just put. */
static int copy(reader *r, uint32_t length, uint32_t distance) {
    int rc = 0;
    if (distance > r->out->out.size || distance > WINDOW)
        return damaged(r);
    for (uint32_t i = 0; i < length && rc == 0; i++)
        rc = put(r, r->out->out.data[r->out->out.size - distance]);
    return rc;
}

static int copy_match(reader *r, unsigned symbol, const code *distances) {
    static const uint16_t length_base[N_LENGTH_CODES] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                         15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                         67, 83, 99, 115, 131, 163, 195, 227, 3};
    static const uint8_t length_bits[N_LENGTH_CODES] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                        2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 16};
    unsigned d;
    uint32_t length, distance, low;
    if (symbol - END_OF_BLOCK - 1 >= N_LENGTH_CODES)
        return damaged(r);
    symbol -= END_OF_BLOCK + 1;
    int rc = take(r, length_bits[symbol], &length);
    if (rc == 0)
        rc = decode(r, distances, &d);
    if (rc)
        return rc;
    unsigned extra = d < 2 ? 0 : d / 2 - 1;
    distance = d < 2 ? d + 1 : ((2 + (d & 1u)) << extra) + 1;
    rc = take(r, extra, &low);
    return rc ? rc : copy(r, length_base[symbol] + length, distance + low);
}

static int coded_block(reader *r, const code *literals, const code *distances) {
    for (;;) {
        unsigned symbol;
        int rc = decode(r, literals, &symbol);
        if (rc == 0 && symbol == END_OF_BLOCK)
            return 0;
        if (rc == 0)
            rc = symbol < END_OF_BLOCK ? put(r, (uint8_t)symbol) : copy_match(r, symbol, distances);
        if (rc)
            return rc;
    }
}

static int stored_block(reader *r) {
    uint32_t dropped, length, complement, byte;
    int rc = take(r, r->n_bits % 8, &dropped);
    if (rc == 0)
        rc = take(r, 16, &length);
    if (rc == 0)
        rc = take(r, 16, &complement);
    if (rc == 0 && length != (complement ^ 0xFFFF))
        rc = damaged(r);
    for (uint32_t i = 0; rc == 0 && i < length; i++) {
        rc = take(r, 8, &byte);
        if (rc == 0)
            rc = put(r, (uint8_t)byte);
    }
    return rc;
}

static int fixed_block(reader *r) {
    uint8_t lengths[N_LITERALS];
    code literals, distances;
    for (unsigned i = 0; i < N_LITERALS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    if (make_code(&literals, lengths, N_LITERALS) != 0)
        return damaged(r);
    memset(lengths, 5, N_DISTANCES);
    return make_code(&distances, lengths, N_DISTANCES) != 0 ? damaged(r)
                                                            : coded_block(r, &literals, &distances);
}

/* One item of the lengths: a length, or a repetition of the last one or of 0. */
static int read_length(reader *r, const code *c, uint8_t *lengths, unsigned *at, unsigned n) {
    unsigned symbol, repeat = 1;
    uint32_t more = 0;
    uint8_t value = 0;
    int rc = decode(r, c, &symbol);
    if (rc)
        return rc;
    if (symbol < 16) {
        value = (uint8_t)symbol;
    } else if (symbol == 16) {
        if (*at == 0)
            return damaged(r);
        value = lengths[*at - 1];
        rc = take(r, 2, &more);
        repeat = 3 + more;
    } else {
        rc = take(r, symbol == 17 ? 3 : 7, &more);
        repeat = (symbol == 17 ? 3 : 11) + more;
    }
    if (rc == 0 && repeat > n - *at)
        rc = damaged(r);
    for (; rc == 0 && repeat > 0; repeat--)
        lengths[(*at)++] = value;
    return rc;
}

static int dynamic_block(reader *r) {
    static const uint8_t order[N_CODE_LENGTHS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                  11, 4,  12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[N_LITERALS + N_DISTANCES] = {0};
    uint32_t n_literals, n_distances, n_lengths, length;
    code literals, distances;
    int rc = take(r, 5, &n_literals);
    if (rc == 0)
        rc = take(r, 5, &n_distances);
    if (rc == 0)
        rc = take(r, 4, &n_lengths);
    for (unsigned i = 0; rc == 0 && i < n_lengths + 4; i++) {
        rc = take(r, 3, &length);
        if (rc == 0)
            lengths[order[i]] = (uint8_t)length;
    }
    if (rc)
        return rc;
    n_literals += 257;
    n_distances += 1;
    if (n_literals > N_LITERALS || make_code(&literals, lengths, N_CODE_LENGTHS) != 0)
        return damaged(r);
    memset(lengths, 0, sizeof lengths);
    for (unsigned at = 0; rc == 0 && at < n_literals + n_distances;)
        rc = read_length(r, &literals, lengths, &at, n_literals + n_distances);
    if (rc)
        return rc;
    if (lengths[END_OF_BLOCK] == 0 || make_code(&literals, lengths, n_literals) != 0 ||
        make_code(&distances, lengths + n_literals, n_distances) != 0)
        return damaged(r);
    return coded_block(r, &literals, &distances);
}

int daf__inflate64(daf__source *in, daf__sink *out, daf_error *err) {
    reader r = {.in = in, .out = out, .err = err};
    uint32_t last = 0, kind;
    int rc = 0;
    while (rc == 0 && !last) {
        rc = take(&r, 1, &last);
        if (rc == 0)
            rc = take(&r, 2, &kind);
        if (rc)
            return rc;
        if (kind == 0)
            rc = stored_block(&r);
        else if (kind == 1)
            rc = fixed_block(&r);
        else
            rc = kind == 2 ? dynamic_block(&r) : damaged(&r);
    }
    return rc;
}
