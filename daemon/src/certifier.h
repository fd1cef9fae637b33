/* The certifier: a thread of low priority that reads files that were closed once more and puts NAME.run.json beside each
 * (certificate.h), with its signature when there is a key. Nobody waits for it: Closed is told before.
 *
 * What is to be done is written down in the data folder, and so survives any end of the daemon:
 *
 *   .photond/NAME.certify        NAME.photons was closed and has no certificate yet. It is what was its tail: so either
 *                                the tail is there, and the next start recovers the run or sees that it was closed, or this
 *   .photond/NAME.uncertified    it could not be made; the next start tries again
 *   .photond/certificate.new     in the making
 *
 * Nothing is replaced. A certificate that is there already and of these bytes is left, and signed when its signature is missing;
 * any other file of that name is another program's.
 */
#ifndef PD_CERTIFIER_H
#define PD_CERTIFIER_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "datadir.h"
#include "error.h"

typedef struct pd_certifier pd_certifier;

typedef struct pd_certifier_options {
    const char *key;          /* PEM file of a private key; "": certificates are not signed */
    unsigned mode;            /* of the files */
    int64_t gid;              /* of the files; -1: left as it is */
    struct pd_keeper *keeper; /* told of what is certified; NULL: none */
    pd_counters *counters;
} pd_certifier_options;

/* Reads the key, takes up the notes that are left in the folder, which must outlive it, and starts the thread. Returns 0, or
 * -1 with err. */
PD_MUST_USE int pd_certifier_start(pd_certifier **ret, const pd_datadir *dir,
                                   const pd_certifier_options *options, pd_error *err);

/* The tail of NAME.photons, which was closed, becomes the note that it is to be certified, and the thread is woken. Returns 0 or
 * a negative errno: there is the tail still. Any thread. */
PD_MUST_USE int pd_certifier_take_tail(pd_certifier *certifier, const char *name);

/* The same of a file whose tail is gone. NULL is fine. Any thread. */
void pd_certifier_note(pd_certifier *certifier, const char *name);

/* Certificates that are not made yet. NULL: 0. Any thread. */
uint64_t pd_certifier_pending(const pd_certifier *certifier);

/* Ends the thread; what it does not finish within `seconds` the next start does. NULL is fine. */
void pd_certifier_stop(pd_certifier *certifier, unsigned seconds);

#endif
