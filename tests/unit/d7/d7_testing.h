/* What the unit tests of libd7 share: files in memory, made by the writer, read back by the reader. */
#ifndef TESTS_UNIT_D7_D7_TESTING_H
#define TESTS_UNIT_D7_D7_TESTING_H

#include "d7/d7.h"
#include "executor.h"
#include "memio.h"

/* A file in memory, memory that is counted, and three threads. */
typedef struct testing_place {
    memio file;
    d7_io io;
    memcount memory;
    d7_alloc alloc;
    executor *threads;
    d7_executor executor;
} testing_place;

/* *ret must stay where it is. */
void testing_place_begin(testing_place *ret);

/* Releases it. Returns true when memory was leaked, or a file is still open: a teardown's result. */
bool testing_place_end(testing_place *place);

/* Writer options with the file in memory. */
d7_writer_options testing_writer_options(const d7_io *io);

/* Opens the file in memory; fails the test when that fails. */
d7_reader *testing_open(const d7_io *io, bool recover, bool quick);

/* n uint16 values, the same for the same seed: 12-bit noise. */
uint16_t *testing_noise(uint64_t seed, size_t n);

/* A file of LINCam's shape: /x uint16, /y uint16 (n values each), /ms uint64 (n / 50), in turns of `turn`
 * values; attribute "a" set at the start, "b" after the first turn. */
void testing_write(const d7_io *io, size_t n, size_t turn, uint32_t index_step, uint32_t bytes_per_page,
                   bool close);

/* Do /x, /y and /ms of that file hold the values that testing_write() gave them, as far as the reader says
 * they go? */
void testing_check_values(d7_reader *r, size_t n);

#endif
