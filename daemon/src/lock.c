#include "lock.h"

#include <time.h>

int pd_lock_init(pthread_mutex_t *lock, pthread_cond_t *wake) {
    pthread_condattr_t monotonic;
    int failed = pthread_condattr_init(&monotonic);
    if (failed)
        return failed;
    failed = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (!failed)
        failed = pthread_cond_init(wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (failed)
        return failed;
    failed = pthread_mutex_init(lock, NULL);
    if (failed)
        pthread_cond_destroy(wake);
    return failed;
}

void pd_lock_destroy(pthread_mutex_t *lock, pthread_cond_t *wake) {
    pthread_cond_destroy(wake);
    pthread_mutex_destroy(lock);
}
