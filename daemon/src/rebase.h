/* Indices of photons in a file that lacks some of the photons that were sent: those of the parts before it, and those that
 * were dropped. An index stands for the first photon from a moment on, so one of a photon that is not there becomes that of
 * the next one that is. Thread: the caller's.
 */
#ifndef PD_REBASE_H
#define PD_REBASE_H

#include <d7/d7.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PD_REBASE_GAPS = 16 };

/* Photons that were sent and are not there: `n` from the index `first` on, as sent. */
typedef struct pd_rebase_gap {
    uint64_t first, n;
} pd_rebase_gap;

/* All zero: indices stay as they are. */
typedef struct pd_rebase {
    uint64_t base;                      /* photons that are not there and lie before all gaps */
    pd_rebase_gap gaps[PD_REBASE_GAPS]; /* [n_gaps] the newest, in order */
    uint32_t n_gaps;
} pd_rebase;

/* The file begins after `n` more of the photons that would be in it. */
void pd_rebase_begin(pd_rebase *r, uint64_t n);

/* `n` photons from `first` on, as sent, are not there; no gap before begins later. What makes it too many is forgotten
 * but for its length: then indices from before it are exact no more. */
void pd_rebase_gap_add(pd_rebase *r, uint64_t first, uint64_t n);

/* Whether there is anything to do. */
static inline bool pd_rebase_any(const pd_rebase *r) {
    return r->base > 0 || r->n_gaps > 0;
}

/* The index in the file of the index `sent`; 0 where it lies before the file. */
uint64_t pd_rebase_index(const pd_rebase *r, uint64_t sent);

/* The same for n values in host order, in place. Values of floating point types are no indices, and stay. */
void pd_rebase_values(const pd_rebase *r, d7_type type, void *values, size_t n);

/* n times the same index, which is in the file's own count already; cut to the type. */
void pd_rebase_fill(d7_type type, void *values, size_t n, uint64_t index);

#endif
