/* Reads a file in memory by every call of the reader. Aborts when a call does what it must not: what two ways of reading
 * give must agree, and memory stays within its bounds. */
#ifndef TESTS_FUZZ_D7_READ_ALL_H
#define TESTS_FUZZ_D7_READ_ALL_H

#include <stddef.h>
#include <stdint.h>

void read_all(const uint8_t *data, size_t size);

#endif
