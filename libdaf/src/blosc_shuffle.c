/* A bit shuffle is two transpositions: elements to planes of bytes, then each of those to 8 planes of bits. */
#include "blosc_shuffle.h"

#include <string.h>

#include "base/bytes.h"
#include "blosc_vector.h"

static void split_bytes_plain(uint8_t *planes, const uint8_t *from, size_t n, size_t width, size_t first) {
    for (size_t j = 0; j < width; j++)
        for (size_t i = first; i < n; i++)
            planes[j * n + i] = from[i * width + j];
}

static void join_bytes_plain(uint8_t *to, const uint8_t *planes, size_t n, size_t width, size_t first) {
    for (size_t j = 0; j < width; j++)
        for (size_t i = first; i < n; i++)
            to[i * width + j] = planes[j * n + i];
}

/* Bit q of byte i becomes bit i of byte q. */
static uint64_t transpose(uint64_t x) {
    uint64_t t = (x ^ x >> 7) & 0x00AA00AA00AA00AAu;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000CCCC0000CCCCu;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000F0F0F0F0u;
    return x ^ t ^ t << 28;
}

static void split_bits_plain(uint8_t *planes, const uint8_t *from, size_t n, size_t first) {
    for (size_t i = first / 8; i < n / 8; i++) {
        uint64_t x = transpose(bytes_load64(from + 8 * i));
        for (unsigned q = 0; q < 8; q++)
            planes[q * (n / 8) + i] = (uint8_t)(x >> 8 * q);
    }
}

static void join_bits_plain(uint8_t *to, const uint8_t *planes, size_t n, size_t first) {
    for (size_t i = first / 8; i < n / 8; i++) {
        uint64_t x = 0;
        for (unsigned q = 0; q < 8; q++)
            x |= (uint64_t)planes[q * (n / 8) + i] << 8 * q;
        bytes_store64(to + 8 * i, transpose(x));
    }
}

/* The vector forms do the first elements, and say how many. */

void daf__split_bytes(uint8_t *planes, const uint8_t *from, size_t n, size_t width, bool vector) {
    size_t done = vector ? daf__vector_split_bytes(planes, from, n, width) : 0;
    split_bytes_plain(planes, from, n, width, done);
}

void daf__join_bytes(uint8_t *to, const uint8_t *planes, size_t n, size_t width, bool vector) {
    size_t done = vector ? daf__vector_join_bytes(to, planes, n, width) : 0;
    join_bytes_plain(to, planes, n, width, done);
}

void daf__split_bits(uint8_t *planes, const uint8_t *from, size_t n, bool vector) {
    size_t done = vector ? daf__vector_split_bits(planes, from, n) : 0;
    split_bits_plain(planes, from, n, done);
}

void daf__join_bits(uint8_t *to, const uint8_t *planes, size_t n, bool vector) {
    size_t done = vector ? daf__vector_join_bits(to, planes, n) : 0;
    join_bits_plain(to, planes, n, done);
}

static void copy_rest(uint8_t *to, const uint8_t *from, size_t bytes, size_t done) {
    if (done < bytes)
        memcpy(to + done, from + done, bytes - done);
}

void daf__bit_shuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t width, uint8_t *scratch) {
    size_t n = bytes / width;
    if (n % 8) {
        copy_rest(to, from, bytes, 0);
        return;
    }
    const uint8_t *planes = from;
    if (width > 1) {
        daf__split_bytes(scratch, from, n, width, true);
        planes = scratch;
    }
    for (size_t j = 0; j < width; j++)
        daf__split_bits(to + j * n, planes + j * n, n, true);
    copy_rest(to, from, bytes, n * width);
}

void daf__bit_unshuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t width, uint8_t *scratch) {
    size_t n = bytes / width;
    if (n % 8) {
        copy_rest(to, from, bytes, 0);
        return;
    }
    uint8_t *planes = width > 1 ? scratch : to;
    for (size_t j = 0; j < width; j++)
        daf__join_bits(planes + j * n, from + j * n, n, true);
    if (width > 1)
        daf__join_bytes(to, scratch, n, width, true);
    copy_rest(to, from, bytes, n * width);
}

void daf__byte_shuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t width) {
    size_t n = bytes / width;
    daf__split_bytes(to, from, n, width, true);
    copy_rest(to, from, bytes, n * width);
}

void daf__byte_unshuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t width) {
    size_t n = bytes / width;
    daf__join_bytes(to, from, n, width, true);
    copy_rest(to, from, bytes, n * width);
}
