/* A lock and what is waited for under it, with time-outs on the monotonic clock. */
#ifndef PD_LOCK_H
#define PD_LOCK_H

#include <pthread.h>

#include "error.h"

/* Makes both, or none. Returns 0 or an errno. */
PD_MUST_USE int pd_lock_init(pthread_mutex_t *lock, pthread_cond_t *wake);
void pd_lock_destroy(pthread_mutex_t *lock, pthread_cond_t *wake);

#endif
