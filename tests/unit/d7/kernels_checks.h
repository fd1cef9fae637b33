/* The kernels' variants against the plain encoder and decoder: every length, every size of difference, hostile bytes, and
 * nothing touched outside of the buffers. Free of cmocka, so that it also runs where only a C library is. */
#ifndef TESTS_UNIT_D7_KERNELS_CHECKS_H
#define TESTS_UNIT_D7_KERNELS_CHECKS_H

#include "kernels_testing.h"

typedef struct kernel_check {
    const char *name;
    void (*run)(kernel_type t,
                size_t max_items); /* prints what differs and aborts; max_items bounds the longest */
} kernel_check;

/* A NULL name ends the list. */
extern const kernel_check kernel_checks[];

enum { KERNEL_MAX_ITEMS = 9000 };

/* What the checks are made of, for other data: n > 0 values encoded and decoded by every variant; bytes decoded by
 * every variant, of which the last, if any, is below 128. At most KERNEL_MAX_ITEMS values, ten times as many bytes. */
void kernel_check_encode(kernel_type t, const uint8_t *values, size_t n, bool at_end);
void kernel_check_decode(kernel_type t, const uint8_t *in, size_t bytes, uint64_t before, bool at_end);

/* The variant at *i or after that runs here, *i then being the one after it; NULL at the end. */
const d7__kernels *kernel_next_usable(size_t *i);

#endif
