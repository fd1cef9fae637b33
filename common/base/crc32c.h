/* CRC-32C (Castagnoli, reflected, initial value and final xor 0xFFFFFFFF). */
#ifndef COMMON_BASE_CRC32C_H
#define COMMON_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `bytes` bytes at `data`, continuing `crc` (0 to begin): common_crc32c(common_crc32c(0, a),
 * b) is that of a followed by b. Pure; any thread. Uses the processor's instruction where there is one, with
 * the same result. */
uint32_t common_crc32c(uint32_t crc, const void *data, size_t bytes);

/* The plain table form, for tests. */
uint32_t common_crc32c_portable(uint32_t crc, const void *data, size_t bytes);

#endif
