#include "executor.h"

#include <pthread.h>
#include <stdlib.h>

enum { MAX_THREADS = 8, MAX_JOBS = 48 };

typedef struct job {
    void (*run)(void *arg);
    void *arg;
} job;

struct executor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t threads[MAX_THREADS];
    unsigned n_threads;
    job jobs[MAX_JOBS]; /* [first, last) wait; guarded by lock, as what follows */
    size_t first, last;
    size_t running;
    bool stop;
};

static void *executor_thread(void *arg) {
    executor *e = arg;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        while (e->first == e->last && !e->stop)
            pthread_cond_wait(&e->changed, &e->lock);
        if (e->first == e->last)
            break;
        job j = e->jobs[e->first++];
        e->running++;
        pthread_mutex_unlock(&e->lock);
        j.run(j.arg);
        pthread_mutex_lock(&e->lock);
        e->running--;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

executor *executor_new(unsigned n_threads) {
    executor *e = calloc(1, sizeof *e);
    if (!e || n_threads > MAX_THREADS)
        abort();
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    for (; e->n_threads < n_threads; e->n_threads++)
        if (pthread_create(&e->threads[e->n_threads], NULL, executor_thread, e) != 0)
            abort();
    return e;
}

void executor_free(executor *e) {
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    for (unsigned i = 0; i < e->n_threads; i++)
        pthread_join(e->threads[i], NULL);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

/* Refuses what does not fit, so that tests also see the library run a job itself. */
static int executor_submit(void *ctx, void (*run)(void *arg), void *arg) {
    executor *e = ctx;
    int rc = -1;
    pthread_mutex_lock(&e->lock);
    if (e->last < MAX_JOBS) {
        e->jobs[e->last++] = (job){run, arg};
        rc = 0;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
    return rc;
}

static void executor_wait(void *ctx) {
    executor *e = ctx;
    pthread_mutex_lock(&e->lock);
    while (e->first < e->last || e->running)
        pthread_cond_wait(&e->changed, &e->lock);
    e->first = e->last = 0;
    pthread_mutex_unlock(&e->lock);
}

d7_executor executor_table(executor *e) {
    return (d7_executor){.ctx = e, .submit = executor_submit, .wait = executor_wait};
}
