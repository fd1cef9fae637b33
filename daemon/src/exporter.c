/* The exporter's thread: jobs in order, and the removal of replaced exports when their time is over.
 *
 * Lock    `lock` guards the queue of jobs and `stopping`. All else belongs to the thread, but for the
 *         counters, which are atomics.
 */
#include "exporter.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export_place.h"
#include "export_write.h"
#include "lock.h"
#include "log.h"
#include "tree.h"

#define EXPORTER_NS_PER_MS UINT64_C(1000000)
#define EXPORTER_NS_PER_SECOND UINT64_C(1000000000)

/* A replaced export in its grace time. */
typedef struct exporter_retired {
    struct exporter_retired *next;
    uint64_t until_ns;
    char hidden[PD_EXPORT_HIDDEN_BYTES];
} exporter_retired;

struct pd_exporter {
    pd_exporter_options options;
    pd_export_folder folder;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake; /* a job came, or it is time to stop */
    pd_export_job *first, *last;
    bool stopping;

    exporter_retired *oldest, *newest;

    _Atomic uint64_t exports, failures, bytes, elapsed_ns, longest_ns, busy_ns;
};

void pd_exporter_options_from_config(pd_exporter_options *options, const pd_config *config) {
    *options = (pd_exporter_options){.data_dir = config->data_dir,
                                     .file_mode = config->file_mode,
                                     .dir_mode = config->dir_mode,
                                     .gid = -1,
                                     .grace_ms = config->export_grace_ms,
                                     .format = config->export_format,
                                     .codec = config->export_codec,
                                     .level = config->export_level};
}

void pd_export_target_init(pd_export_target *target, const char *name) {
    memset(target, 0, sizeof *target);
    strncpy(target->name, name, sizeof target->name - 1);
    for (unsigned i = 0; i < PD_N_FORMS; i++)
        target->shown[i].fd = -1;
}

void pd_export_target_clear(pd_export_target *target) {
    for (unsigned i = 0; i < PD_N_FORMS; i++) {
        if (target->shown[i].fd >= 0)
            close(target->shown[i].fd);
        target->shown[i].fd = -1;
    }
}

static uint64_t exporter_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * EXPORTER_NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* ---- replaced exports ---- */

static void exporter_remove(pd_exporter *x, const char *hidden) {
    pd_error why;
    if (pd_tree_remove(x->folder.exports_fd, hidden, &why) != 0)
        pd_log(PD_LOG_WARNING, "replaced export %s: %s; the next start removes it", hidden, why.text);
}

static void exporter_retire(pd_exporter *x, const char *hidden) {
    exporter_retired *r = x->options.grace_ms ? malloc(sizeof *r) : NULL;
    if (!r) {
        exporter_remove(x, hidden);
        return;
    }
    r->next = NULL;
    r->until_ns = exporter_now_ns() + x->options.grace_ms * EXPORTER_NS_PER_MS;
    memcpy(r->hidden, hidden, sizeof r->hidden);
    if (x->newest)
        x->newest->next = r;
    else
        x->oldest = r;
    x->newest = r;
}

/* Removes the oldest when its time is over, or in any case when `all`. */
static bool exporter_remove_oldest(pd_exporter *x, bool all) {
    exporter_retired *r = x->oldest;
    if (!r || (!all && r->until_ns > exporter_now_ns()))
        return false;
    x->oldest = r->next;
    if (!x->oldest)
        x->newest = NULL;
    exporter_remove(x, r->hidden);
    free(r);
    return true;
}

/* ---- a job ---- */

static bool exporter_shows(const pd_exporter *x, pd_export_form form) {
    pd_export_format other = form == PD_FORM_DAF ? PD_FORMAT_ZARR : PD_FORMAT_DAF;
    return x->options.format != other;
}

/* The Zarr tree is made of the directory, whose files it links: their lengths count once. */
static int exporter_build(pd_exporter *x, pd_export_job *job,
                          char hidden[PD_N_FORMS][PD_EXPORT_HIDDEN_BYTES]) {
    const pd_exporter_options *o = &x->options;
    int dirfd = x->folder.exports_fd;
    uint64_t bytes;
    if (pd_export_write(dirfd, hidden[PD_FORM_DAF], job->snapshot, o, job->final, &job->n_skipped,
                        &job->error) != 0 ||
        pd_tree_measure(dirfd, hidden[PD_FORM_DAF], o->gid, &job->bytes, &job->error) != 0)
        return -1;
    if (!exporter_shows(x, PD_FORM_ZARR))
        return 0;
    if (pd_export_write_zarr(dirfd, hidden[PD_FORM_ZARR], hidden[PD_FORM_DAF], o, job->final, &job->error) !=
        0)
        return -1;
    return pd_tree_measure(dirfd, hidden[PD_FORM_ZARR], o->gid, &bytes, &job->error);
}

static int exporter_place(pd_exporter *x, pd_export_job *job, pd_export_form form) {
    char retired[PD_EXPORT_HIDDEN_BYTES];
    if (pd_export_place(&x->folder, job->target, form, job->final, retired, &job->error) != 0)
        return -1;
    if (retired[0])
        exporter_retire(x, retired);
    return 0;
}

static int exporter_sync_folders(pd_exporter *x, pd_error *err) {
    if (fsync(x->folder.exports_fd) != 0 || fsync(x->folder.data_fd) != 0)
        return pd_error_set(err, "the data folder cannot be synced: %s", strerror(errno));
    return 0;
}

static int exporter_export(pd_exporter *x, pd_export_job *job) {
    char hidden[PD_N_FORMS][PD_EXPORT_HIDDEN_BYTES];
    bool placed[PD_N_FORMS] = {false, false};
    if (pd_export_folder_renew(&x->folder, &x->options, &job->error) != 0)
        return -1;
    x->folder.generation++;
    for (unsigned i = 0; i < PD_N_FORMS; i++)
        pd_export_hidden_name(hidden[i], job->target->name, x->folder.generation, (pd_export_form)i);
    int rc = exporter_build(x, job, hidden);
    for (unsigned i = 0; i < PD_N_FORMS && rc == 0; i++) {
        placed[i] = exporter_shows(x, (pd_export_form)i);
        if (placed[i] && (rc = exporter_place(x, job, (pd_export_form)i)) != 0)
            placed[i] = false;
    }
    for (unsigned i = 0; i < PD_N_FORMS; i++)
        if (!placed[i])
            exporter_remove(x, hidden[i]);
    return rc == 0 && job->final ? exporter_sync_folders(x, &job->error) : rc;
}

static void exporter_count(pd_exporter *x, const pd_export_job *job) {
    if (job->result != 0) {
        atomic_fetch_add_explicit(&x->failures, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&x->exports, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&x->bytes, job->bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&x->elapsed_ns, job->elapsed_ns, memory_order_relaxed);
    if (job->elapsed_ns > atomic_load_explicit(&x->longest_ns, memory_order_relaxed))
        atomic_store_explicit(&x->longest_ns, job->elapsed_ns, memory_order_relaxed);
}

/* The first failure of a row and the first success after it are worth a line. */
static void exporter_tell(pd_export_job *job) {
    pd_export_target *target = job->target;
    if (job->result != 0 && !target->failing)
        pd_log(PD_LOG_WARNING, "run %s: export %llu failed, the one before stays: %s", target->name,
               (unsigned long long)job->snapshot->export_number, job->error.text);
    else if (job->result == 0 && target->failing)
        pd_log(PD_LOG_INFO, "run %s: exports succeed again", target->name);
    target->failing = job->result != 0;
}

static void exporter_run(pd_exporter *x, pd_export_job *job) {
    uint64_t from_ns = exporter_now_ns();
    atomic_store_explicit(&x->busy_ns, from_ns, memory_order_relaxed);
    job->error.text[0] = '\0';
    job->bytes = job->n_skipped = 0;
    job->result = exporter_export(x, job);
    job->elapsed_ns = exporter_now_ns() - from_ns;
    exporter_count(x, job);
    exporter_tell(job);
    atomic_store_explicit(&x->busy_ns, 0, memory_order_relaxed);
    job->done(job);
}

/* ---- the thread ---- */

/* Waits for a job, at most until the oldest replaced export is due. With the lock held. */
static void exporter_wait(pd_exporter *x) {
    if (!x->oldest) {
        pthread_cond_wait(&x->wake, &x->lock);
        return;
    }
    struct timespec until = {.tv_sec = (time_t)(x->oldest->until_ns / EXPORTER_NS_PER_SECOND),
                             .tv_nsec = (long)(x->oldest->until_ns % EXPORTER_NS_PER_SECOND)};
    pthread_cond_timedwait(&x->wake, &x->lock, &until);
}

static void *exporter_thread(void *arg) {
    pd_exporter *x = arg;
    pthread_mutex_lock(&x->lock);
    while (x->first || !x->stopping) {
        pd_export_job *job = x->first;
        if (job) {
            x->first = job->next;
            if (!x->first)
                x->last = NULL;
        }
        pthread_mutex_unlock(&x->lock);
        if (job)
            exporter_run(x, job);
        bool removed = exporter_remove_oldest(x, false);
        pthread_mutex_lock(&x->lock);
        if (!job && !removed && !x->first && !x->stopping)
            exporter_wait(x);
    }
    pthread_mutex_unlock(&x->lock);
    while (exporter_remove_oldest(x, true))
        ;
    return NULL;
}

static int exporter_make_thread(pd_exporter *x, pd_error *err) {
    if (pd_lock_init(&x->lock, &x->wake) != 0)
        return pd_error_set(err, "out of memory");
    int code = pthread_create(&x->thread, NULL, exporter_thread, x);
    if (code == 0)
        return 0;
    pd_lock_destroy(&x->lock, &x->wake);
    return pd_error_set(err, "the exporter's thread cannot be started: %s", strerror(code));
}

int pd_exporter_start(pd_exporter **ret, const pd_exporter_options *options, pd_error *err) {
    pd_exporter *x = calloc(1, sizeof *x);
    if (!x)
        return pd_error_set(err, "out of memory");
    x->options = *options;
    x->options.data_dir = NULL;
    if (pd_export_folder_open(&x->folder, options, err) != 0) {
        free(x);
        return -1;
    }
    if (exporter_make_thread(x, err) != 0) {
        pd_export_folder_close(&x->folder);
        free(x);
        return -1;
    }
    *ret = x;
    return 0;
}

int pd_exporter_submit(pd_exporter *x, pd_export_job *job) {
    pthread_mutex_lock(&x->lock);
    bool stopping = x->stopping;
    if (!stopping) {
        job->next = NULL;
        if (x->last)
            x->last->next = job;
        else
            x->first = job;
        x->last = job;
        pthread_cond_signal(&x->wake);
    }
    pthread_mutex_unlock(&x->lock);
    return stopping ? -1 : 0;
}

void pd_exporter_read_counters(const pd_exporter *x, pd_exporter_counters *ret) {
    ret->exports = atomic_load_explicit(&x->exports, memory_order_relaxed);
    ret->failures = atomic_load_explicit(&x->failures, memory_order_relaxed);
    ret->bytes = atomic_load_explicit(&x->bytes, memory_order_relaxed);
    ret->elapsed_ns = atomic_load_explicit(&x->elapsed_ns, memory_order_relaxed);
    ret->longest_ns = atomic_load_explicit(&x->longest_ns, memory_order_relaxed);
}

uint64_t pd_exporter_busy_since(const pd_exporter *x) {
    return atomic_load_explicit(&x->busy_ns, memory_order_relaxed);
}

void pd_exporter_stop(pd_exporter *x) {
    if (!x)
        return;
    pthread_mutex_lock(&x->lock);
    x->stopping = true;
    pthread_cond_signal(&x->wake);
    pthread_mutex_unlock(&x->lock);
    pthread_join(x->thread, NULL);
    pd_lock_destroy(&x->lock, &x->wake);
    pd_export_folder_close(&x->folder);
    free(x);
}
