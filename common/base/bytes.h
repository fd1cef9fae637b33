/* The one place that knows the byte order of files and of the wire: little-endian. Everything else stores and
 * loads numbers through these functions; compilers turn them into single moves on little-endian machines. */
#ifndef COMMON_BASE_BYTES_H
#define COMMON_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) ||                                                                              \
    (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && __BYTE_ORDER__ != __ORDER_BIG_ENDIAN__)
#error "unknown byte order"
#endif
#define BYTES_HOST_IS_LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

static inline uint16_t bytes_le16(uint16_t v) {
    return BYTES_HOST_IS_LITTLE ? v : __builtin_bswap16(v);
}

static inline uint32_t bytes_le32(uint32_t v) {
    return BYTES_HOST_IS_LITTLE ? v : __builtin_bswap32(v);
}

static inline uint64_t bytes_le64(uint64_t v) {
    return BYTES_HOST_IS_LITTLE ? v : __builtin_bswap64(v);
}

static inline uint16_t bytes_load16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return bytes_le16(v);
}

static inline uint32_t bytes_load32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return bytes_le32(v);
}

static inline uint64_t bytes_load64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return bytes_le64(v);
}

static inline void bytes_store16(void *p, uint16_t v) {
    v = bytes_le16(v);
    memcpy(p, &v, sizeof v);
}

static inline void bytes_store32(void *p, uint32_t v) {
    v = bytes_le32(v);
    memcpy(p, &v, sizeof v);
}

static inline void bytes_store64(void *p, uint64_t v) {
    v = bytes_le64(v);
    memcpy(p, &v, sizeof v);
}

/* Copies n elements of `width` bytes between host and little-endian order, either way. */
static inline void bytes_copy_le(void *to, const void *from, size_t n, size_t width) {
    if (BYTES_HOST_IS_LITTLE || width == 1) {
        if (n)
            memcpy(to, from, n * width);
        return;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < width; b++)
            ((uint8_t *)to)[i * width + b] = ((const uint8_t *)from)[i * width + width - 1 - b];
}

#endif
