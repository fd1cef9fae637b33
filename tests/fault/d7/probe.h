/* Reads a damaged file in memory in every way there is, and holds what comes out against the undamaged one. */
#ifndef TESTS_FAULT_D7_PROBE_H
#define TESTS_FAULT_D7_PROBE_H

#include "memio.h"
#include "specimen.h"

typedef enum probe_mode { PROBE_PLAIN, PROBE_RECOVER, PROBE_QUICK, PROBE_FULL, PROBE_N_MODES } probe_mode;

typedef struct probe {
    memio file;
    d7_io io;
    memcount memory;
    d7_alloc alloc;
    char what[128]; /* what is being done, for messages */
} probe;

void probe_init(probe *p);
void probe_free(probe *p);

/* Fails the test, saying what was done. */
#define probe_require(p, good, ...)                                                                          \
    do {                                                                                                     \
        if (!(good)) {                                                                                       \
            print_error("%s: ", (p)->what);                                                                  \
            fail_msg(__VA_ARGS__);                                                                           \
        }                                                                                                    \
    } while (0)

/* Opens the file in memory. Any error has a code, a text that names the file, and leaves no reader. */
d7_reader *probe_open(probe *p, probe_mode mode, d7_error *err);

/* The bytes that were damaged. */
typedef struct probe_damage {
    uint64_t from, to;
} probe_damage;

/* Calls every function of the reader, and reads every page of the map. A page of the map that begins where one of the
 * undamaged file does, and that the damage has not touched, must hold its values; found[i] tells which of the entries
 * did. `truth` NULL: nothing is known. Returns a checksum of all that was read. */
uint64_t probe_read(probe *p, d7_reader *r, const specimen *truth, const probe_damage *damage, bool *found);

/* The reader's memory is within the bounds that the library promises. Frees it. */
void probe_close(probe *p, d7_reader *r);

#endif
