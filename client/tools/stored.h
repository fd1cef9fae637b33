/* Sources whose lengths are known before: what a folder of columns and a .photons file share. It decides which items
 * of which dataset come next; the two only fetch them. */
#ifndef CLIENT_TOOLS_STORED_H
#define CLIENT_TOOLS_STORED_H

#include "source.h"

typedef struct send_stored {
    /* Gives items [from, from + n) of a dataset, in host byte order, until the next fetch from the same dataset. NULL
     * and a fault when they cannot be read. */
    const void *(*fetch)(void *own, size_t dataset, uint64_t from, size_t n, send_fault *fault);
    void (*close)(void *own);
    void *own;
    uint64_t events_at_once; /* in a chunk, at most */

    uint64_t lengths[SEND_DATASETS_MAX]; /* by group */
    uint64_t done[SEND_DATASETS_MAX];    /* by group */
    bool cut;                            /* fewer events than there are: the ms index ends with them */
} send_stored;

/* Makes a source of datasets that were added with their lengths by dataset. Takes over `stored` (by value) and calls
 * its close() at the end, also when it fails. `what` names it in faults. Returns 0 or -1. */
int send_stored_begin(send_source *s, const send_stored *stored, const uint64_t *lengths, uint64_t count,
                      const char *what, send_fault *fault);

#endif
