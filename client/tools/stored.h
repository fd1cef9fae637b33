/* Sources whose lengths are known before: what a folder of columns and a .photons file share. It decides which items
 * of which dataset come next; the two only fetch them. */
#ifndef CLIENT_TOOLS_STORED_H
#define CLIENT_TOOLS_STORED_H

#include "source.h"

typedef struct send_stored_kind {
    size_t own_bytes; /* of what the three below work on, zeroed before open() */
    /* Adds datasets, with their lengths, and attributes to the source. Returns 0 or -1. */
    int (*open)(send_source *s, void *own, const void *arguments, uint64_t *lengths, send_fault *fault);
    /* Gives items [from, from + n) of a dataset, in host byte order, until the next fetch from the same dataset. NULL
     * and a fault when they cannot be read. */
    const void *(*fetch)(void *own, size_t dataset, uint64_t from, size_t n, send_fault *fault);
    /* Only the first `items` items of a dataset will be fetched. Returns 0; -1 and a fault when some of them are known
     * to be damaged. NULL where nothing is known. */
    int (*ask)(void *own, size_t dataset, uint64_t items, send_fault *fault);
    /* Also after an open() that failed. */
    void (*close)(void *own);
    uint64_t events_at_once; /* in a chunk, at most */
    bool lasting;            /* what fetch() gives stays as it is, whatever is fetched then, on any thread */
} send_stored_kind;

/* Opens a source of that kind. `arguments` go to open(); `what` names the source in faults. NULL and a fault when it
 * cannot be sent. */
send_source *send_stored_open(const send_stored_kind *kind, const void *arguments, const char *what,
                              uint64_t count, send_fault *fault);

#endif
