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

#include "file.h"
#include "log.h"
#include "run_stored.h"
#include "tree.h"
#include "wire/names.h"

enum { RECOVERY_FAILURES_MAX = 64, RECOVERY_SLOT_BYTES_MAX = 16 << 20 };

static const char recovery_suffix[] = ".photons" D7_TAIL_SUFFIX;

/* The files of a part of a run, or of a run that has just one. */
typedef struct recovery_part {
    char name[PD_PART_NAME_BYTES + 1];
    char run[PD_PART_NAME_BYTES + 1];
    uint32_t number;
} recovery_part;

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

static void state_add(pd_recovery_state *s, const char *file, const char *text, bool left) {
    if (s->n_failures >= RECOVERY_FAILURES_MAX)
        return;
    pd_recovery_failure *list = realloc(s->failures, (s->n_failures + 1) * sizeof *list);
    if (!list)
        return;
    s->failures = list;
    list[s->n_failures] = (pd_recovery_failure){strdup(file), strdup(text), left};
    if (list[s->n_failures].file && list[s->n_failures].text) {
        s->n_failures++;
        return;
    }
    free(list[s->n_failures].file);
    free(list[s->n_failures].text);
}

void pd_recovery_state_add(pd_recovery_state *state, const char *file, const char *text) {
    state_add(state, file, text, true);
}

static void recovery_failed(recovery *r, const char *name, const char *text) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s.photons", name);
    r->state->failed++;
    pd_log(PD_LOG_ERROR, "%s/%s cannot be recovered and is left as it is: %s", r->dir->path, file, text);
    state_add(r->state, file, text, false);
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
    int failed = pd_run_stored_read(&stored, r->dir, file->path, why);
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

/* The run goes on in the file. */
static void recovery_resume(recovery *r, const recovery_part *part, d7_tail *tail,
                            const d7_tail_recovery *found) {
    pd_error why = {""};
    pd_file *file = NULL;
    uint64_t sequence = d7_tail_recovered(tail)->sequence;
    if (pd_file_resume(&file, r->dir, part->name, tail, true, pd_volume_files(r->volume), &why) != 0) {
        recovery_failed(r, part->name, why.text);
        return;
    }
    recovery_hide_export(r, part->run, ".daf", "scalars/export.json");
    recovery_hide_export(r, part->run, ".daf.zarr", "scalars/export/zarr.json");
    if (recovery_make_run(r, part->run, file, &why) != 0) {
        recovery_failed(r, part->name, why.text);
        return;
    }
    r->state->recovered++;
    r->state->cut_bytes += found->cut_bytes;
    pd_log(PD_LOG_WARNING,
           "run %s: recovered up to batch %" PRIu64 ", %" PRIu64
           " bytes after it were cut off and kept beside; waiting for its producer",
           part->run, sequence, found->cut_bytes);
}

/* A part without a batch has not the millisecond either that the part before ends in: it does not begin with it. */
static int recovery_place(const recovery *r, pd_file *file, pd_error *why) {
    pd_run_stored stored;
    int failed = pd_run_stored_read(&stored, r->dir, file->path, why);
    for (uint32_t c = 0; !failed && c < stored.spec.n_datasets; c++) {
        char text[24];
        d7_tail_dataset d = {0};
        uint64_t first = stored.first_items[c];
        if (pd_dataset_part_row(&stored.datasets[c], first) == first ||
            d7_tail_slot_dataset(d7_tail_recovered(file->tail), c, &d) != 0 || d.items > 0)
            continue;
        snprintf(text, sizeof text, "%" PRIu64, first);
        pd_attributes_task task = {.attributes = &(pd_attribute){"photond.first_ms", text}, .n = 1};
        if (pd_file_attributes(file, &task) != 0)
            failed = pd_error_set(why, "%s", pd_file_failure(file));
    }
    if (stored.reader)
        pd_run_stored_free(&stored);
    return failed;
}

/* A part that another one follows is whole up to `sequence`: it is closed. Where that fails it stays for the next start. */
static void recovery_close(recovery *r, const recovery_part *part, d7_tail *tail,
                           const d7_tail_recovery *found) {
    pd_error why = {""};
    pd_file *file = NULL;
    uint64_t sequence = d7_tail_recovered(tail)->sequence;
    if (pd_file_resume(&file, r->dir, part->name, tail, false, pd_volume_files(r->volume), &why) != 0) {
        recovery_failed(r, part->name, why.text);
        return;
    }
    r->state->cut_bytes += found->cut_bytes;
    int code = recovery_place(r, file, &why);
    if (code == 0)
        code = pd_file_close(file, sequence);
    else
        (void)pd_file_fail(file, D7_ERR_IO, why.text);
    if (code == 0 && pd_datadir_sync(r->dir) == 0) {
        r->state->closed++;
        pd_log(PD_LOG_INFO, "%s.photons: closed, up to batch %" PRIu64 "; the run goes on in another file",
               part->name, sequence);
    } else {
        recovery_failed(r, part->name, code == D7_ERR_NOSPACE ? "the disk is full" : pd_file_failure(file));
    }
    pd_file_free(file);
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

/* The part of a run behind another one, if there is any. */
typedef struct recovery_next {
    bool any;
    uint64_t first_sequence; /* the last message before it */
    bool instead;            /* it began where the part before failed: it counts, whatever that one holds */
    bool closed;
    bool
        end_is_beyond; /* the part before was closed, by an end that was not synced, after more than counts */
} recovery_next;

/* Returns 0; -1: it cannot be recovered, which was said. */
static int recovery_recover(recovery *r, const recovery_part *part, const recovery_next *next, d7_tail **tail,
                            d7_tail_recovery *found) {
    char path[PATH_MAX];
    d7_error err = {.text = ""};
    d7_tail_recover_options options;
    d7_tail_recover_options_init(&options);
    options.mode = r->engine->config->file_mode;
    options.io = pd_volume_files(r->volume)->io;
    options.sequence_limit = next->any ? next->first_sequence : UINT64_MAX;
    options.end_is_beyond = next->end_is_beyond;
    int n = snprintf(path, sizeof path, "%s/%s.photons", r->dir->path, part->name);
    if (!recovery_is_file(r, part->name, ".photons") || !recovery_is_file(r, part->name, recovery_suffix))
        recovery_failed(r, part->name, "it or its tail is not a file");
    else if (n < 0 || (size_t)n >= sizeof path)
        recovery_failed(r, part->name, "the path is too long");
    else if (d7_tail_recover(tail, path, &options, found, &err) != 0)
        recovery_failed(r, part->name, err.text);
    else
        return 0;
    return -1;
}

/* ---- parts of a run ---- */

/* Whether `name` is the file of a later part of the run that `before` is of. */
static bool recovery_follows(const recovery *r, const pd_run_stored *before, const char *name,
                             recovery_next *next) {
    char path[PATH_MAX];
    pd_run_stored stored;
    pd_error ignored = {""};
    pd_datadir_file_path(r->dir, name, path);
    if (pd_run_stored_read(&stored, r->dir, path, &ignored) != 0)
        return false;
    bool follows =
        memcmp(stored.spec.id, before->spec.id, PD_RUN_ID_BYTES) == 0 && stored.spec.part > before->spec.part;
    if (follows)
        *next = (recovery_next){.any = true,
                                .first_sequence = stored.spec.first_sequence,
                                .instead = stored.instead,
                                .closed = stored.closed,
                                .end_is_beyond =
                                    before->closed && before->last_sequence > stored.spec.first_sequence};
    pd_run_stored_free(&stored);
    return follows;
}

/* Those with the next numbers, which may be closed, then the next that has a tail. Returns 0; -1: the part cannot be read, which
 * was said. */
static int recovery_find_next(recovery *r, const recovery_part *part, const recovery_part *listed,
                              recovery_next *next) {
    char path[PATH_MAX], name[PD_PART_NAME_BYTES + 1];
    pd_run_stored stored;
    pd_error why = {""};
    uint32_t number = part->number + 1;
    *next = (recovery_next){0};
    pd_datadir_part_name(name, part->run, number);
    if (!listed && !pd_datadir_has(r->dir, name, ".photons"))
        return 0;
    pd_datadir_file_path(r->dir, part->name, path);
    int failed = pd_run_stored_read(&stored, r->dir, path, &why);
    if (failed) {
        recovery_failed(r, part->name, why.text);
        return -1;
    }
    while (!next->any && pd_datadir_has(r->dir, pd_datadir_part_name(name, part->run, number++), ".photons"))
        (void)recovery_follows(r, &stored, name, next);
    if (!next->any && listed && !recovery_follows(r, &stored, listed->name, next)) {
        recovery_failed(r, listed->name, "it is of another run than the part before it, or cannot be read");
        failed = -1;
    }
    pd_run_stored_free(&stored);
    return failed;
}

/* What a part holds comes after something that is lost: the producer sends both again. It is kept as NAME.photons.cut.N,
 * and the run goes on in the part before. */
static void recovery_set_aside(recovery *r, const recovery_part *part) {
    char aside[PD_FILE_NAME_BYTES + 16];
    if (pd_file_put_aside(r->dir, part->name, aside) != 0)
        recovery_failed(r, part->name, "it follows what was lost, and cannot be put aside");
    else
        pd_log(PD_LOG_WARNING, "%s.photons: it follows what the part before lost: kept as %s", part->name,
               aside);
}

/* Tails whose files are not there. What is left of a part that was set aside goes, when the part before it is open. */
static size_t recovery_drop_orphans(recovery *r, recovery_part *parts, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        char file[PD_FILE_NAME_BYTES];
        struct stat there;
        snprintf(file, sizeof file, "%s.photons", parts[i].name);
        if (fstatat(r->dir->fd, file, &there, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
            parts[kept++] = parts[i];
        else if (kept == 0 || pd_datadir_remove_tail(r->dir, parts[i].name) != 0)
            recovery_orphan(r, parts[i].name);
    }
    return kept;
}

/* What a part lacks was durable, and is not here any more: what comes behind it stands, and it stays as it is. */
static void recovery_short(recovery *r, const recovery_part *part, d7_tail *tail, const recovery_next *next) {
    pd_error why;
    pd_error_set(&why, "it holds batches up to %" PRIu64 ", the next file begins after %" PRIu64,
                 d7_tail_recovered(tail)->sequence, next->first_sequence);
    d7_tail_free(tail);
    recovery_failed(r, part->name, why.text);
}

/* Returns whether those behind it are still to be looked at. */
static bool recovery_part_of_run(recovery *r, const recovery_part *part, const recovery_part *later,
                                 size_t n_later) {
    d7_tail *tail = NULL;
    d7_tail_recovery found = {0};
    recovery_next next;
    int failed = recovery_find_next(r, part, n_later > 0 ? later : NULL, &next);
    if (!failed)
        failed = recovery_recover(r, part, &next, &tail, &found);
    if (failed) {
        for (size_t k = 0; k < n_later && !next.instead; k++)
            recovery_failed(r, later[k].name, "the part before it cannot be recovered");
        return next.instead;
    }
    if (found.outcome != D7_TAIL_RESUMED) {
        r->state->closed++;
        pd_volume_closed_before(r->volume, part->name);
        pd_log(PD_LOG_INFO, "%s.photons: it was closed before the restart", part->name);
        return true;
    }
    if (next.any && d7_tail_recovered(tail)->sequence == next.first_sequence) {
        recovery_close(r, part, tail, &found);
        return true;
    }
    if (next.any && (next.instead || next.closed)) {
        recovery_short(r, part, tail, &next);
        return true;
    }
    for (size_t k = n_later; k-- > 0;)
        recovery_set_aside(r, &later[k]);
    recovery_resume(r, part, tail, &found);
    return false;
}

/* The files of one run that have a tail, in order: each but the last is closed, when it holds all up to the next one. */
static void recovery_run(recovery *r, recovery_part *parts, size_t n) {
    n = recovery_drop_orphans(r, parts, n);
    for (size_t i = 0; i < n; i++)
        if (!recovery_part_of_run(r, &parts[i], &parts[i + 1], n - i - 1))
            return;
}

/* ---- all of them ---- */

/* The files that a tail is of; false when it is not of ours. */
static bool recovery_name(const struct dirent *entry, recovery_part *part) {
    if (!pd_datadir_name_of(entry->d_name, recovery_suffix, part->name))
        return false;
    part->number = pd_datadir_name_part(part->name, part->run);
    return wire_run_name_fault(part->run) == NULL;
}

static int recovery_is_tail(const struct dirent *entry) {
    recovery_part part;
    return recovery_name(entry, &part);
}

static int recovery_compare(const void *left, const void *right) {
    const recovery_part *a = left, *b = right;
    int order = strcmp(a->run, b->run);
    return order ? order : a->number < b->number ? -1 : a->number > b->number;
}

/* Returns how many there are; -1 when the folder cannot be read, or out of memory. */
static int recovery_search(const recovery *r, recovery_part **ret) {
    struct dirent **entries = NULL;
    int n = scandirat(r->dir->fd, ".", &entries, recovery_is_tail, alphasort);
    recovery_part *parts = n >= 0 ? calloc((size_t)n + 1, sizeof *parts) : NULL;
    int found = parts ? 0 : -1;
    for (int i = 0; i < n; i++) {
        if (parts && recovery_name(entries[i], &parts[found]))
            found++;
        free(entries[i]);
    }
    free(entries);
    if (found > 0)
        qsort(parts, (size_t)found, sizeof *parts, recovery_compare);
    *ret = parts;
    return found;
}

static void recovery_volume(pd_engine *engine, pd_volume *volume, pd_runs *runs, pd_producers *producers) {
    recovery r = {.engine = engine,
                  .volume = volume,
                  .dir = pd_volume_datadir(volume),
                  .runs = runs,
                  .producers = producers,
                  .state = &engine->recovery};
    recovery_part *parts;
    int n = recovery_search(&r, &parts);
    if (n < 0)
        pd_log(PD_LOG_ERROR, "%s: cannot be searched for runs to recover: %s", r.dir->path, strerror(errno));
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && strcmp(parts[end].run, parts[i].run) == 0;)
            end++;
        recovery_run(&r, &parts[i], (size_t)(end - i));
    }
    free(parts);
}

void pd_recovery_run(pd_engine *engine, pd_runs *runs, pd_producers *producers) {
    uv_update_time(engine->loop);
    for (uint32_t i = 0; i < engine->n_volumes; i++)
        recovery_volume(engine, engine->volumes[i], runs, producers);
    uv_update_time(engine->loop);
}
