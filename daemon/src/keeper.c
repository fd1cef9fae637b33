#include "keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hook.h"
#include "log.h"
#include "retention.h"

#define HIDDEN ".photond/"
#define NOTE_SUFFIX ".final"

/* What else may stand in .photond of a file that is closed: it is not to go yet. */
static const char *const keeper_notes[] = {NOTE_SUFFIX, ".certify", ".uncertified"};

enum {
    KEEPER_NOTE_BYTES = PD_FILE_NAME_BYTES + 16,
    KEEPER_AGAIN_S = 10, /* after a hook has failed; twice as long each time, */
    KEEPER_AGAIN_MOST_S = 600,
    KEEPER_LOOK_S = 60 /* at the folder's size */
};

/* A file that is held, or whose hook has failed. */
typedef struct keeper_name {
    char name[PD_PART_NAME_BYTES + 1];
    unsigned again_s;
    struct timespec again; /* when it is tried again */
} keeper_name;

typedef struct keeper_names {
    keeper_name *items; /* [n] */
    size_t n;
} keeper_names;

struct pd_keeper {
    pthread_t thread;
    const pd_datadir *dir;
    pd_keeper_options options;
    keeper_names failed; /* the thread's */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    keeper_names held;
    bool woken, stopping;

    atomic_uint_fast64_t pending;
};

/* ---- names ---- */

static keeper_name *names_find(const keeper_names *names, const char *name) {
    for (size_t i = 0; i < names->n; i++)
        if (strcmp(names->items[i].name, name) == 0)
            return &names->items[i];
    return NULL;
}

/* NULL: out of memory. */
static keeper_name *names_add(keeper_names *names, const char *name) {
    keeper_name *items = realloc(names->items, (names->n + 1) * sizeof *items);
    if (!items)
        return NULL;
    names->items = items;
    items[names->n] = (keeper_name){.again_s = KEEPER_AGAIN_S};
    snprintf(items[names->n].name, sizeof items->name, "%s", name);
    return &items[names->n++];
}

static void names_remove(keeper_names *names, const char *name) {
    keeper_name *found = names_find(names, name);
    if (found)
        *found = names->items[--names->n];
}

static struct timespec keeper_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
}

static bool is_before(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* ---- one file ---- */

static void note_path(char path[KEEPER_NOTE_BYTES], const char *name, const char *suffix) {
    snprintf(path, KEEPER_NOTE_BYTES, HIDDEN "%s%s", name, suffix);
}

static bool keeper_is_stopping(void *ctx) {
    pd_keeper *k = ctx;
    pthread_mutex_lock(&k->lock);
    bool stopping = k->stopping;
    pthread_mutex_unlock(&k->lock);
    return stopping;
}

static bool keeper_is_held(pd_keeper *k, const char *name) {
    pthread_mutex_lock(&k->lock);
    bool held = names_find(&k->held, name) != NULL;
    pthread_mutex_unlock(&k->lock);
    return held;
}

static bool keeper_is_busy(void *ctx, const char *name) {
    pd_keeper *k = ctx;
    char note[KEEPER_NOTE_BYTES];
    if (keeper_is_held(k, name))
        return true;
    for (size_t i = 0; i < sizeof keeper_notes / sizeof *keeper_notes; i++) {
        note_path(note, name, keeper_notes[i]);
        if (faccessat(k->dir->fd, note, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

static void keeper_failed(pd_keeper *k, const char *name, const pd_error *why) {
    keeper_name *failed = names_find(&k->failed, name);
    if (!failed)
        failed = names_add(&k->failed, name);
    pd_count(&k->options.counters->hooks_failed, 1);
    pd_log(PD_LOG_ERROR, "hook for %s: %s; it is tried again in %u s", name, why->text,
           failed ? failed->again_s : KEEPER_AGAIN_S);
    if (!failed)
        return;
    failed->again = keeper_now();
    failed->again.tv_sec += failed->again_s;
    failed->again_s = failed->again_s < KEEPER_AGAIN_MOST_S / 2 ? 2 * failed->again_s : KEEPER_AGAIN_MOST_S;
}

static bool keeper_file_is_there(const pd_keeper *k, const char *name) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s.photons", name);
    return faccessat(k->dir->fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void keeper_do(pd_keeper *k, const char *name) {
    char note[KEEPER_NOTE_BYTES];
    const pd_hook hook = {.program = k->options.hook,
                          .timeout_ms = k->options.hook_timeout_ms,
                          .stopping = keeper_is_stopping,
                          .ctx = k};
    pd_error why = {""};
    if (*hook.program && keeper_file_is_there(k, name)) {
        if (pd_hook_run(&hook, k->dir, name, &why) != 0) {
            keeper_failed(k, name, &why);
            return;
        }
        pd_count(&k->options.counters->hooks, 1);
        pd_log(PD_LOG_INFO, "hook for %s: done", name);
    }
    names_remove(&k->failed, name);
    note_path(note, name, NOTE_SUFFIX);
    (void)unlinkat(k->dir->fd, note, 0);
}

/* ---- all of them ---- */

static bool note_name(const char *file, char name[PD_PART_NAME_BYTES + 1]) {
    size_t n = strlen(file), end = sizeof NOTE_SUFFIX - 1;
    if (n <= end || n - end > PD_PART_NAME_BYTES || strcmp(file + n - end, NOTE_SUFFIX) != 0)
        return false;
    memcpy(name, file, n - end);
    name[n - end] = 0;
    return true;
}

/* Whether its time has come; else `until` is no later than that. */
static bool keeper_is_due(const pd_keeper *k, const char *name, struct timespec *until) {
    const keeper_name *failed = names_find(&k->failed, name);
    struct timespec now = keeper_now();
    if (!failed || is_before(&failed->again, &now))
        return true;
    if (is_before(&failed->again, until))
        *until = failed->again;
    return false;
}

static void keeper_notes_do(pd_keeper *k, struct timespec *until) {
    uint64_t left = 0;
    int fd = openat(k->dir->fd, HIDDEN, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (!entries && fd >= 0)
        close(fd);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e && !keeper_is_stopping(k);
         e = readdir(entries)) {
        char name[PD_PART_NAME_BYTES + 1];
        if (!note_name(e->d_name, name))
            continue;
        left++;
        if (keeper_is_held(k, name) || !keeper_is_due(k, name, until))
            continue;
        keeper_do(k, name);
        const keeper_name *failed = names_find(&k->failed, name);
        left -= failed == NULL;
        if (failed && is_before(&failed->again, until))
            *until = failed->again;
    }
    if (entries)
        closedir(entries);
    atomic_store(&k->pending, left);
}

static void *keeper_run(void *arg) {
    pd_keeper *k = arg;
    const pd_retention retention = {.keep_last = k->options.keep_last,
                                    .max_total_bytes = k->options.max_total_bytes,
                                    .busy = keeper_is_busy,
                                    .ctx = k,
                                    .counters = k->options.counters};
    pthread_mutex_lock(&k->lock);
    while (!k->stopping) {
        struct timespec until = keeper_now();
        until.tv_sec += KEEPER_LOOK_S;
        k->woken = false;
        pthread_mutex_unlock(&k->lock);
        keeper_notes_do(k, &until);
        if (!keeper_is_stopping(k))
            pd_retention_apply(&retention, k->dir);
        pthread_mutex_lock(&k->lock);
        while (!k->woken && !k->stopping && pthread_cond_timedwait(&k->wake, &k->lock, &until) == 0)
            ;
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* ---- its life ---- */

static int keeper_init_locks(pd_keeper *k) {
    pthread_condattr_t monotonic;
    int failed = pthread_condattr_init(&monotonic);
    if (failed)
        return failed;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    failed = pthread_cond_init(&k->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!failed) {
        failed = pthread_mutex_init(&k->lock, NULL);
        if (failed)
            pthread_cond_destroy(&k->wake);
    }
    return failed;
}

static void keeper_free(pd_keeper *k) {
    pthread_cond_destroy(&k->wake);
    pthread_mutex_destroy(&k->lock);
    free(k->held.items);
    free(k->failed.items);
    free(k);
}

bool pd_keeper_has_work(const pd_keeper_options *o) {
    return *o->hook || o->keep_last || o->max_total_bytes;
}

int pd_keeper_start(pd_keeper **ret, const pd_datadir *dir, const pd_keeper_options *options, pd_error *err) {
    pd_keeper *k = calloc(1, sizeof *k);
    if (!k)
        return pd_error_set(err, "out of memory");
    k->dir = dir;
    k->options = *options;
    int failed = keeper_init_locks(k);
    if (failed) {
        free(k);
        return pd_error_set(err, "the keeper's locks cannot be made: %s", strerror(failed));
    }
    failed = pthread_create(&k->thread, NULL, keeper_run, k);
    if (failed) {
        keeper_free(k);
        return pd_error_set(err, "the keeper's thread cannot be started: %s", strerror(failed));
    }
    *ret = k;
    return 0;
}

static void keeper_wake(pd_keeper *k) {
    k->woken = true;
    pthread_cond_signal(&k->wake);
}

void pd_keeper_hold(pd_keeper *k, const char *name) {
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    if (!names_find(&k->held, name) && !names_add(&k->held, name))
        pd_log(PD_LOG_WARNING, "hook for %s: out of memory: it may run before the last export", name);
    pthread_mutex_unlock(&k->lock);
}

void pd_keeper_release(pd_keeper *k, const char *name) {
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    names_remove(&k->held, name);
    keeper_wake(k);
    pthread_mutex_unlock(&k->lock);
}

static void keeper_noted(pd_keeper *k) {
    atomic_fetch_add(&k->pending, 1);
    pthread_mutex_lock(&k->lock);
    keeper_wake(k);
    pthread_mutex_unlock(&k->lock);
}

int pd_keeper_take(pd_keeper *k, const char *from, const char *name) {
    char note[KEEPER_NOTE_BYTES];
    note_path(note, name, NOTE_SUFFIX);
    pd_datadir_keep_hidden(k->dir);
    if (renameat(k->dir->fd, from, k->dir->fd, note) != 0)
        return -errno;
    keeper_noted(k);
    return 0;
}

void pd_keeper_note(pd_keeper *k, const char *name) {
    char note[KEEPER_NOTE_BYTES];
    if (!k)
        return;
    note_path(note, name, NOTE_SUFFIX);
    pd_datadir_keep_hidden(k->dir);
    int fd = openat(k->dir->fd, note, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        pd_log(PD_LOG_WARNING, "hook for %s: it will not be run: %s: %s", name, note, strerror(errno));
        return;
    }
    close(fd);
    keeper_noted(k);
}

uint64_t pd_keeper_pending(const pd_keeper *k) {
    return k ? atomic_load(&k->pending) : 0;
}

void pd_keeper_stop(pd_keeper *k) {
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    k->stopping = true;
    pthread_cond_signal(&k->wake);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    keeper_free(k);
}
