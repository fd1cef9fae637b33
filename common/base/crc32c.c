#include "base/crc32c.h"

#include "base/bytes.h"

#define POLYNOMIAL 0x82F63B78u

/* One step of the polynomial division per bit; the preprocessor makes the table of the sixteen half bytes
 * from it. */
#define C1(c) (((c) >> 1) ^ (POLYNOMIAL & (0u - ((c)&1u))))
#define C2(c) C1(C1(c))
#define C4(c) C2(C2(c))

static const uint32_t nibble_low[16] = {
#define N(i) C4((uint32_t)(i))
    N(0), N(1), N(2), N(3), N(4), N(5), N(6), N(7), N(8), N(9), N(10), N(11), N(12), N(13), N(14), N(15),
#undef N
};

uint32_t common_crc32c_portable(uint32_t crc, const void *data, size_t bytes) {
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= p[i];
        crc = (crc >> 4) ^ nibble_low[crc & 15];
        crc = (crc >> 4) ^ nibble_low[crc & 15];
    }
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t common_crc32c_hardware(uint32_t crc, const void *data,
                                                                         size_t bytes) {
    const uint8_t *p = data;
    uint64_t c = (uint32_t)~crc;
    for (; bytes >= 8; p += 8, bytes -= 8)
        c = __builtin_ia32_crc32di(c, bytes_load64(p));
    uint32_t d = (uint32_t)c;
    for (; bytes; p++, bytes--)
        d = __builtin_ia32_crc32qi(d, *p);
    return ~d;
}

uint32_t common_crc32c(uint32_t crc, const void *data, size_t bytes) {
    if (__builtin_cpu_supports("sse4.2"))
        return common_crc32c_hardware(crc, data, bytes);
    return common_crc32c_portable(crc, data, bytes);
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

uint32_t common_crc32c(uint32_t crc, const void *data, size_t bytes) {
    const uint8_t *p = data;
    crc = ~crc;
    for (; bytes >= 8; p += 8, bytes -= 8)
        crc = __crc32cd(crc, bytes_load64(p));
    for (; bytes; p++, bytes--)
        crc = __crc32cb(crc, *p);
    return ~crc;
}
#else
uint32_t common_crc32c(uint32_t crc, const void *data, size_t bytes) {
    return common_crc32c_portable(crc, data, bytes);
}
#endif
