#include "cli/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 256, JOBS_MAX = 1024 };

typedef struct pool_job {
    void (*run)(void *arg);
    void *arg;
} pool_job;

struct cli_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    bool stop; /* guarded by lock, as what follows */
    unsigned running;
    size_t first, n_waiting; /* a ring */
    pool_job jobs[JOBS_MAX];
    unsigned n_threads; /* constant once made */
    pthread_t threads[];
};

static unsigned processors(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

static void *pool_thread(void *arg) {
    cli_pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->n_waiting == 0 && !p->stop)
            pthread_cond_wait(&p->work, &p->lock);
        if (p->n_waiting == 0)
            break;
        pool_job job = p->jobs[p->first];
        p->first = (p->first + 1) % JOBS_MAX;
        p->n_waiting--;
        p->running++;
        pthread_mutex_unlock(&p->lock);
        job.run(job.arg);
        pthread_mutex_lock(&p->lock);
        if (--p->running == 0 && p->n_waiting == 0)
            pthread_cond_broadcast(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

cli_pool *cli_pool_new(unsigned n_threads) {
    if (n_threads == 0)
        n_threads = processors();
    if (n_threads > THREADS_MAX)
        n_threads = THREADS_MAX;
    cli_pool *p = calloc(1, sizeof *p + n_threads * sizeof *p->threads);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->idle, NULL);
    while (p->n_threads < n_threads && pthread_create(&p->threads[p->n_threads], NULL, pool_thread, p) == 0)
        p->n_threads++;
    if (p->n_threads == 0) {
        cli_pool_free(p);
        return NULL;
    }
    return p;
}

void cli_pool_free(cli_pool *p) {
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->idle);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

unsigned cli_pool_threads(const cli_pool *p) {
    return p ? p->n_threads : 1;
}

int cli_pool_submit(void *pool, void (*run)(void *arg), void *arg) {
    cli_pool *p = pool;
    pthread_mutex_lock(&p->lock);
    bool room = p->n_waiting < JOBS_MAX;
    if (room) {
        p->jobs[(p->first + p->n_waiting) % JOBS_MAX] = (pool_job){run, arg};
        p->n_waiting++;
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    return room ? 0 : -1;
}

void cli_pool_wait(void *pool) {
    cli_pool *p = pool;
    pthread_mutex_lock(&p->lock);
    while (p->n_waiting || p->running)
        pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
