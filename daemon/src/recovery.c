#include "recovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certifier.h"
#include "file.h"
#include "log.h"
#include "run_stored.h"
#include "tree.h"
#include "wire/names.h"

enum { RECOVERY_FAILURES_MAX = 64, RECOVERY_SLOT_BYTES_MAX = 16 << 20 };

static const char recovery_suffix[] = ".photons" D7_TAIL_SUFFIX;

typedef struct recovery {
    pd_engine *engine;
    pd_volume *volume;
    const pd_datadir *dir;
    pd_runs *runs;
    pd_producers *producers;
    pd_recovery_state *state;
} recovery;

void pd_recovery_state_free(pd_recovery_state *state) {
    for (size_t i = 0; i < state->n_failures; i++) {
        free(state->failures[i].file);
        free(state->failures[i].text);
    }
    free(state->failures);
    *state = (pd_recovery_state){0};
}

static void recovery_failed(recovery *r, const char *name, const char *text) {
    pd_recovery_state *s = r->state;
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s.photons", name);
    s->failed++;
    pd_log(PD_LOG_ERROR, "%s/%s cannot be recovered and is left as it is: %s", r->dir->path, file, text);
    if (s->n_failures >= RECOVERY_FAILURES_MAX)
        return;
    pd_recovery_failure *list = realloc(s->failures, (s->n_failures + 1) * sizeof *list);
    if (!list)
        return;
    s->failures = list;
    list[s->n_failures] = (pd_recovery_failure){strdup(file), strdup(text)};
    if (list[s->n_failures].file && list[s->n_failures].text) {
        s->n_failures++;
        return;
    }
    free(list[s->n_failures].file);
    free(list[s->n_failures].text);
}

/* ---- a tail without its file ---- */

/* Whether a slot says that no batch was taken: 1 yes, 0 no, -1 there is no slot. */
static int orphan_slot_is_empty(int fd, uint64_t slot_bytes, unsigned slot) {
    d7_tail_slot decoded;
    uint8_t *bytes = malloc((size_t)slot_bytes);
    ssize_t n = bytes ? pread(fd, bytes, (size_t)slot_bytes, (off_t)(slot * slot_bytes)) : -1;
    int empty = -1;
    if (n == (ssize_t)slot_bytes && d7_tail_slot_decode(bytes, (size_t)slot_bytes, &decoded, NULL) == 0)
        empty = decoded.sequence == decoded.identity.first_sequence;
    free(bytes);
    return empty;
}

/* Whether it is a tail of ours in which nothing ever was. */
static bool orphan_is_empty(int dir_fd, const char *file) {
    struct stat there;
    int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool empty = false, full = false;
    if (fstat(fd, &there) == 0 && S_ISREG(there.st_mode) && there.st_size % D7_TAIL_SLOTS == 0 &&
        there.st_size <= RECOVERY_SLOT_BYTES_MAX * (off_t)D7_TAIL_SLOTS)
        for (unsigned i = 0; i < D7_TAIL_SLOTS; i++) {
            int slot = orphan_slot_is_empty(fd, (uint64_t)there.st_size / D7_TAIL_SLOTS, i);
            empty |= slot == 1;
            full |= slot == 0;
        }
    close(fd);
    return empty && !full;
}

static void recovery_orphan(recovery *r, const char *name) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s%s", name, recovery_suffix);
    if (!orphan_is_empty(r->dir->fd, file)) {
        recovery_failed(r, name, "its tail is there, the file is not");
        return;
    }
    if (pd_datadir_remove_tail(r->dir, name) == 0) {
        r->state->removed++;
        pd_log(PD_LOG_INFO, "%s/%s: removed: left from an opening that was cut short", r->dir->path, file);
    }
}

/* ---- a run ---- */

/* What was exported before does not hold what comes; it is made anew. Only an export is taken away. */
static void recovery_hide_export(const recovery *r, const char *name, const char *suffix, const char *mark) {
    char visible[PD_FILE_NAME_BYTES], path[PD_FILE_NAME_BYTES + 64];
    pd_error why = {""};
    snprintf(visible, sizeof visible, "%s%s", name, suffix);
    snprintf(path, sizeof path, "%s/%s", visible, mark);
    if (faccessat(r->dir->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
        pd_tree_remove(r->dir->fd, visible, &why) != 0)
        pd_log(PD_LOG_WARNING, "%s/%s of before the restart cannot be removed: %s", r->dir->path, visible,
               why.text);
}

/* The run of a recovered file. Takes `file` over in any case. Returns 0, or -1 with why. */
static int recovery_make_run(recovery *r, const char *name, pd_file *file, pd_error *why) {
    pd_run_stored stored;
    pd_refusal refusal = {0};
    const d7_tail_slot *slot = d7_tail_recovered(file->tail);
    int failed = pd_run_stored_read(&stored, file->path, why);
    if (!failed) {
        pd_run_stored_configure(&stored, r->engine->config, name, slot);
        stored.spec.volume = r->volume;
        failed = pd_runs_resume(r->runs, &stored.spec, file, slot, &refusal);
        if (failed)
            pd_error_set(why, "%s", refusal.text);
        else if (pd_producers_know(r->producers, slot->producer, slot->epoch) != 0)
            pd_log(PD_LOG_WARNING,
                   "run %s: out of memory: earlier starts of its producer will not be refused", name);
        pd_run_stored_free(&stored);
    }
    if (failed)
        pd_file_free(file);
    return failed;
}

static void recovery_resume(recovery *r, const char *name, d7_tail *tail, const d7_tail_recovery *found) {
    pd_error why = {""};
    pd_file *file = NULL;
    uint64_t sequence = d7_tail_recovered(tail)->sequence;
    if (pd_file_resume(&file, r->dir, name, tail, pd_volume_files(r->volume), &why) != 0) {
        recovery_failed(r, name, why.text);
        return;
    }
    recovery_hide_export(r, name, ".daf", "scalars/export.json");
    recovery_hide_export(r, name, ".daf.zarr", "scalars/export/zarr.json");
    if (recovery_make_run(r, name, file, &why) != 0) {
        recovery_failed(r, name, why.text);
        return;
    }
    r->state->recovered++;
    r->state->cut_bytes += found->cut_bytes;
    pd_log(PD_LOG_WARNING,
           "run %s: recovered up to batch %" PRIu64 ", %" PRIu64
           " bytes after it were cut off and kept beside; waiting for its producer",
           name, sequence, found->cut_bytes);
}

/* Nothing is followed out of the folder: both are files, or not there. */
static bool recovery_is_file(const recovery *r, const char *name, const char *suffix) {
    char file[PD_FILE_NAME_BYTES];
    struct stat there;
    snprintf(file, sizeof file, "%s%s", name, suffix);
    if (fstatat(r->dir->fd, file, &there, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    return S_ISREG(there.st_mode);
}

static void recovery_file(recovery *r, const char *name) {
    char path[PATH_MAX];
    d7_tail *tail = NULL;
    d7_tail_recovery found = {0};
    d7_error err = {.text = ""};
    d7_tail_recover_options options;
    d7_tail_recover_options_init(&options);
    options.mode = r->engine->config->file_mode;
    options.io = r->engine->io;
    int n = snprintf(path, sizeof path, "%s/%s.photons", r->dir->path, name);
    if (!recovery_is_file(r, name, ".photons") || !recovery_is_file(r, name, recovery_suffix)) {
        recovery_failed(r, name, "it or its tail is not a file");
        return;
    }
    if (n < 0 || (size_t)n >= sizeof path) {
        recovery_failed(r, name, "the path is too long");
        return;
    }
    if (d7_tail_recover(&tail, path, &options, &found, &err) != 0) {
        recovery_failed(r, name, err.text);
    } else if (found.outcome == D7_TAIL_RESUMED) {
        recovery_resume(r, name, tail, &found);
    } else if (found.outcome == D7_TAIL_ORPHAN) {
        recovery_orphan(r, name);
    } else {
        r->state->closed++;
        pd_certifier_note(pd_volume_files(r->volume)->certifier, name);
        pd_log(PD_LOG_INFO, "run %s: it was closed before the restart", name);
    }
}

/* ---- all of them ---- */

/* The name of the run that a tail is of; false when it is not such a name. */
static bool recovery_name(const struct dirent *entry, char name[PD_RUN_NAME_BYTES + 1]) {
    size_t n = strlen(entry->d_name), suffix = sizeof recovery_suffix - 1;
    if (n <= suffix || n - suffix > PD_RUN_NAME_BYTES ||
        strcmp(entry->d_name + n - suffix, recovery_suffix) != 0)
        return false;
    memcpy(name, entry->d_name, n - suffix);
    name[n - suffix] = 0;
    return wire_run_name_fault(name) == NULL;
}

static int recovery_is_tail(const struct dirent *entry) {
    char name[PD_RUN_NAME_BYTES + 1];
    return recovery_name(entry, name);
}

static void recovery_volume(pd_engine *engine, pd_volume *volume, pd_runs *runs, pd_producers *producers) {
    const pd_datadir *dir = pd_volume_datadir(volume);
    recovery r = {.engine = engine,
                  .volume = volume,
                  .dir = dir,
                  .runs = runs,
                  .producers = producers,
                  .state = &engine->recovery};
    struct dirent **entries = NULL;
    int n = scandir(dir->path, &entries, recovery_is_tail, alphasort);
    if (n < 0)
        pd_log(PD_LOG_ERROR, "%s: cannot be searched for runs to recover: %s", dir->path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char name[PD_RUN_NAME_BYTES + 1];
        if (recovery_name(entries[i], name))
            recovery_file(&r, name);
        free(entries[i]);
    }
    free(entries);
}

void pd_recovery_run(pd_engine *engine, pd_runs *runs, pd_producers *producers) {
    uv_update_time(engine->loop);
    for (uint32_t i = 0; i < engine->n_volumes; i++)
        recovery_volume(engine, engine->volumes[i], runs, producers);
    uv_update_time(engine->loop);
}
