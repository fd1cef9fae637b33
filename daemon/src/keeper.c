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
#include "lock.h"
#include "log.h"
#include "notes.h"
#include "retention.h"

/* What else may stand in .photond of a file that is closed: it is not to go yet. */
static const char *const keeper_notes[] = {PD_NOTE_FINAL, PD_NOTE_CERTIFY, PD_NOTE_UNCERTIFIED};

enum {
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
    char note[PD_NOTE_BYTES];
    struct stat there;
    if (keeper_is_held(k, name))
        return true;
    for (size_t i = 0; i < sizeof keeper_notes / sizeof *keeper_notes; i++) {
        pd_note_path(note, name, keeper_notes[i]);
        if (pd_datadir_look(k->dir, note, &there) == 0)
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

static void keeper_do(pd_keeper *k, const char *name) {
    char note[PD_NOTE_BYTES];
    const pd_hook hook = {.program = k->options.hook,
                          .timeout_ms = k->options.hook_timeout_ms,
                          .stopping = keeper_is_stopping,
                          .ctx = k};
    pd_error why = {""};
    if (*hook.program && pd_datadir_has(k->dir, name, ".photons")) {
        if (pd_hook_run(&hook, k->dir, name, &why) != 0) {
            keeper_failed(k, name, &why);
            return;
        }
        pd_count(&k->options.counters->hooks, 1);
        pd_log(PD_LOG_INFO, "hook for %s: done", name);
    }
    names_remove(&k->failed, name);
    pd_note_path(note, name, PD_NOTE_FINAL);
    (void)pd_datadir_remove(k->dir, note);
}

/* ---- all of them ---- */

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
    DIR *entries = pd_datadir_list(k->dir, PD_HIDDEN_NAME);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e && !keeper_is_stopping(k);
         e = readdir(entries)) {
        char name[PD_PART_NAME_BYTES + 1];
        if (!pd_datadir_name_of(e->d_name, PD_NOTE_FINAL, name))
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

static void keeper_free(pd_keeper *k) {
    pd_lock_destroy(&k->lock, &k->wake);
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
    int failed = pd_lock_init(&k->lock, &k->wake);
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
    int failed = pd_note_take(k->dir, from, name, PD_NOTE_FINAL);
    if (!failed)
        keeper_noted(k);
    return failed;
}

void pd_keeper_note(pd_keeper *k, const char *name) {
    int failed = k ? pd_note_make(k->dir, name, PD_NOTE_FINAL) : 0;
    if (failed)
        pd_log(PD_LOG_WARNING, "hook for %s: it will not be run, its note cannot be made: %s", name,
               strerror(-failed));
    else if (k)
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
