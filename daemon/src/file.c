#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certifier.h"
#include "keeper.h"
#include "log.h"
#include "ring.h"
#include "run_names.h"
#include "run_stored.h"
#include "wire/names.h"
#include "wire/pattern.h"

enum {
    FILE_BUFFER_BYTES = 262144,
    FILE_FIRST_BYTES = 65536,
    FILE_FIRST_PAGE_BYTES = 2 * PD_PAGE_BYTES,
    FILE_PENDING_BYTES = 1 << 20,
    FILE_CUTS_MAX = 100000,
    FILE_PAST = 1,             /* not a name: the run was closed before */
    FILE_PAST_NAMES = 8,       /* of a series, that are looked at */
    FILE_COUNTER_MAX = 1000000 /* attempts at a free name: more than a folder should hold */
};

int pd_file_fail(pd_file *file, int code, const char *text) {
    pthread_mutex_lock(&file->lock);
    if (!atomic_load_explicit(&file->failed, memory_order_relaxed)) {
        file->code = code;
        pd_error_set(&file->why, "%s", text);
        atomic_store_explicit(&file->failed, true, memory_order_release);
    }
    pthread_mutex_unlock(&file->lock);
    return code;
}

bool pd_file_failed(const pd_file *file) {
    return atomic_load_explicit(&file->failed, memory_order_acquire);
}

bool pd_file_disk_failed(const pd_file *file) {
    return pd_file_failed(file) && file->code == D7_ERR_IO;
}

const char *pd_file_failure(const pd_file *file) {
    return pd_file_failed(file) ? file->why.text : "";
}

uint64_t pd_file_index_bytes(const pd_file *file) {
    return atomic_load_explicit(&file->index_bytes, memory_order_relaxed);
}

uint64_t pd_file_written(const pd_file *file) {
    return atomic_load_explicit(&file->written, memory_order_relaxed);
}

uint64_t pd_file_allocated(const pd_file *file) {
    return atomic_load_explicit(&file->allocated, memory_order_relaxed);
}

uint64_t pd_file_closed_bytes(const pd_file *file) {
    return atomic_load_explicit(&file->closed_bytes, memory_order_relaxed);
}

bool pd_file_is_short(const pd_file *file) {
    return atomic_load_explicit(&file->is_short, memory_order_relaxed);
}

/* What the loop is to know of the writer. */
static void file_tell(pd_file *file) {
    atomic_store_explicit(&file->written, d7_writer_written_bytes(file->writer), memory_order_relaxed);
    atomic_store_explicit(&file->closed_bytes, d7_writer_closed_bytes(file->writer), memory_order_relaxed);
    atomic_store_explicit(&file->index_bytes, d7_writer_index_bytes(file->writer), memory_order_relaxed);
}

/* What a call on the writer came to. */
static int file_result(pd_file *file, int code, const d7_error *err) {
    file_tell(file);
    if (code == 0 || code == D7_ERR_NOSPACE)
        return code;
    return pd_file_fail(file, code, err->text);
}

static void file_warn(const pd_file *file) {
    unsigned warnings = d7_writer_warnings(file->writer);
    if (warnings & D7_WARN_UNGUARDED)
        pd_log(PD_LOG_WARNING,
               "%s: the file system has no locks: other programs cannot see that it is being written",
               file->path);
    if (warnings & D7_WARN_MANY_DATASETS)
        pd_log(PD_LOG_WARNING, "%s: more than 128 datasets: a widespread reader misses those beyond",
               file->path);
    if (warnings & D7_WARN_LONG_HEADER)
        pd_log(PD_LOG_WARNING,
               "%s: the header is longer than a block: a widespread reader cannot open the file", file->path);
}

enum { FILE_PLACES = 3 };
static const char *const file_place_suffixes[FILE_PLACES] = {"", D7_TAIL_SUFFIX, D7_CHECKSUMS_SUFFIX};

/* The path of the file, of its tail or of its checksums. */
static void file_place_path(const pd_file *file, int place, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%.*s%s", PATH_MAX - 16, file->path, file_place_suffixes[place]);
}

/* Its name in the data folder. */
static void file_place_name(const pd_file *file, int place, char name[PD_FILE_NAME_BYTES]) {
    const char *own = pd_datadir_within(file->dir, file->path);
    snprintf(name, PD_FILE_NAME_BYTES, "%s%s", own ? own : "", file_place_suffixes[place]);
}

static void file_unlink(const pd_file *file) {
    char name[PD_FILE_NAME_BYTES];
    for (int i = 0; i < FILE_PLACES; i++) {
        file_place_name(file, i, name);
        (void)pd_datadir_remove(file->dir, name);
    }
}

static int file_identify(pd_file *file, pd_error *why) {
    char name[PD_FILE_NAME_BYTES];
    for (int i = 0; i < 2; i++) {
        struct stat there;
        file_place_name(file, i, name);
        int failed = pd_datadir_look(file->dir, name, &there);
        if (failed)
            return pd_error_set(why, "%s/%s: it cannot be looked at: %s", file->dir->path, name,
                                strerror(-failed));
        file->places[i] = (pd_file_place){there.st_dev, there.st_ino};
    }
    return 0;
}

/* Mode and group as configured, whatever the umask. */
static int file_set_rights_of(const pd_file *file, int place, const pd_file_options *o, pd_error *why) {
    char name[PD_FILE_NAME_BYTES];
    file_place_name(file, place, name);
    int fd = pd_datadir_open_file(file->dir, name, O_RDONLY | O_NONBLOCK, 0), failed = 0;
    if (fd < 0)
        return pd_error_set(why, "%s/%s: it cannot be opened to set its mode: %s", file->dir->path, name,
                            strerror(-fd));
    if (fchmod(fd, o->mode) != 0)
        failed =
            pd_error_set(why, "%s/%s: the mode cannot be set: %s", file->dir->path, name, strerror(errno));
    else if (o->gid >= 0 && fchown(fd, (uid_t)-1, (gid_t)o->gid) != 0)
        failed =
            pd_error_set(why, "%s/%s: the group cannot be set: %s", file->dir->path, name, strerror(errno));
    close(fd);
    return failed;
}

static int file_set_rights(const pd_file *file, const pd_file_options *o, pd_error *why) {
    int failed = 0;
    for (int i = 0; !failed && i < (o->checksums ? FILE_PLACES : FILE_PLACES - 1); i++)
        failed = file_set_rights_of(file, i, o, why);
    return failed;
}

static d7_writer_options file_writer_options(pd_file *file, const pd_file_options *o) {
    d7_writer_options options;
    d7_writer_options_init(&options);
    options.bytes_per_page = PD_PAGE_BYTES;
    options.buffer_bytes = FILE_BUFFER_BYTES;
    options.io = d7_tail_io(file->tail);
    options.mode = o->mode;
    options.checksums = o->checksums;
    return options;
}

/* ---- attributes that wait for an island ---- */

static void file_forget_pending(pd_file *file) {
    for (size_t i = 0; i < file->n_pending; i++)
        free((char *)(uintptr_t)file->pending[i].key);
    file->n_pending = 0;
    file->pending_bytes = 0;
}

/* Key and value in one block. */
static int file_keep_pending(pd_file *file, const char *key, const char *value) {
    size_t key_bytes = strlen(key) + 1, value_bytes = strlen(value) + 1;
    if (file->n_pending == file->cap_pending) {
        size_t cap = file->cap_pending ? 2 * file->cap_pending : 16;
        d7_attribute *list = realloc(file->pending, cap * sizeof *list);
        if (!list)
            return D7_ERR_NOMEM;
        file->pending = list;
        file->cap_pending = cap;
    }
    char *text = malloc(key_bytes + value_bytes);
    if (!text)
        return D7_ERR_NOMEM;
    file->pending_bytes += key_bytes + value_bytes;
    memcpy(text, key, key_bytes);
    memcpy(text + key_bytes, value, value_bytes);
    file->pending[file->n_pending++] = (d7_attribute){.key = text, .value = text + key_bytes};
    return 0;
}

/* ---- making ---- */

static int file_create_tail(pd_file *file, const pd_open_task *open, const pd_file_options *o,
                            d7_error *err) {
    char path[PATH_MAX];
    d7_type *types = calloc(open->n_datasets, sizeof *types);
    if (!types)
        return D7_ERR_NOMEM;
    for (size_t i = 0; i < open->n_datasets; i++)
        types[i] = open->datasets[i].type;
    d7_tail_layout layout = {.bytes_per_page = PD_PAGE_BYTES,
                             .types = types,
                             .n_datasets = open->n_datasets,
                             .attribute_bytes = D7_TAIL_ATTRIBUTE_BYTES_DEFAULT};
    d7_tail_options options;
    d7_tail_options_init(&options);
    options.mode = o->mode;
    options.io = o->io;
    file_place_path(file, 1, path);
    int code =
        d7_tail_create(&file->tail, path, &layout, open->id, open->part, open->first_sequence, &options, err);
    free(types);
    return code;
}

static int file_create_writer(pd_file *file, const pd_open_task *open, const pd_file_options *o,
                              d7_error *err) {
    d7_writer_options options = file_writer_options(file, o);
    options.attributes = open->attributes;
    options.n_attributes = open->n_attributes;
    return d7_writer_create(&file->writer, file->path, open->datasets, open->n_datasets, &options, err);
}

/* The first slot: an empty recording. */
static int file_first_slot(pd_file *file, const pd_open_task *open, d7_error *err) {
    d7_tail_dataset *datasets = calloc(open->n_datasets, sizeof *datasets);
    if (!datasets)
        return D7_ERR_NOMEM;
    for (size_t i = 0; i < open->n_datasets; i++)
        datasets[i].type = open->datasets[i].type;
    d7_tail_mark mark = {.sequence = open->first_sequence,
                         .producer = open->producer,
                         .epoch = open->epoch,
                         .clock = open->clock,
                         .datasets = datasets,
                         .n_datasets = open->n_datasets};
    int code = d7_tail_begin_sync(file->tail, d7_writer_written_bytes(file->writer), &mark, err);
    free(datasets);
    return code;
}

/* ---- room ---- */

/* A disk that sets nothing aside is met full by the writes. */
static int file_allocate(pd_file *file, uint64_t length, uint64_t n_entries, d7_error *err) {
    int code = d7_writer_allocate(file->writer, length, n_entries, err);
    if (code == 0 && length > pd_file_allocated(file))
        atomic_store_explicit(&file->allocated, length, memory_order_relaxed);
    if (code == 0 || code == D7_ERR_NOSPACE)
        return code;
    if (code != D7_ERR_UNSUPPORTED)
        pd_log(PD_LOG_WARNING, "%s; what comes is written without", err->text);
    atomic_store_explicit(&file->allocated, UINT64_MAX, memory_order_relaxed);
    return 0;
}

int pd_file_allocate(pd_file *file, const pd_room_task *task, uint64_t free_bytes) {
    uint64_t there = pd_file_allocated(file), written = pd_file_written(file);
    int code = D7_ERR_NOSPACE;
    d7_error err;
    there = there > written ? there : written;
    if (task->length < there || task->length - there < free_bytes)
        code = file_allocate(file, task->length, task->n_entries, &err);
    if (code == D7_ERR_NOSPACE)
        code = file_allocate(file, task->least, task->n_entries, &err);
    atomic_store_explicit(&file->is_short, code != 0, memory_order_relaxed);
    return code;
}

/* That it can be closed with a page of each dataset begun. */
static int file_first_room(pd_file *file, size_t n_datasets, d7_error *err) {
    file_tell(file);
    uint64_t more = FILE_FIRST_BYTES + n_datasets * FILE_FIRST_PAGE_BYTES;
    return file_allocate(file, pd_file_closed_bytes(file) + more, n_datasets, err);
}

/* ---- all of it ---- */

static int file_make(pd_file *file, const pd_open_task *open, const pd_file_options *o, pd_error *why) {
    d7_error err = {.text = "out of memory"};
    int code = file_create_tail(file, open, o, &err);
    if (code == 0)
        code = file_create_writer(file, open, o, &err);
    if (code == 0)
        code = file_first_slot(file, open, &err);
    if (code == 0)
        code = file_first_room(file, open->n_datasets, &err);
    if (code)
        pd_error_set(why, "%s", err.text);
    else if (file_set_rights(file, o, why) != 0 || file_identify(file, why) != 0)
        code = D7_ERR_IO;
    if (code && file->tail)
        file_unlink(file);
    return code;
}

/* A file without writer and tail. NULL: out of memory, with `why` said. */
static pd_file *file_new(const pd_datadir *dir, const pd_file_options *o, pd_error *why) {
    pd_file *file = calloc(1, sizeof *file);
    if (file && pthread_mutex_init(&file->lock, NULL) == 0) {
        if (pthread_mutex_init(&file->tail_lock, NULL) == 0) {
            file->dir = dir;
            file->certifier = o->certifier;
            file->keeper = o->keeper;
            return file;
        }
        pthread_mutex_destroy(&file->lock);
    }
    free(file);
    pd_error_set(why, "out of memory");
    return NULL;
}

static void file_ready(pd_file *file) {
    file_tell(file);
    file_warn(file);
}

int pd_file_create(pd_file **ret, const pd_datadir *dir, const pd_open_task *open, const pd_file_options *o,
                   pd_error *why) {
    pd_file *file = file_new(dir, o, why);
    if (!file)
        return D7_ERR_NOMEM;
    int code = D7_ERR_ARG;
    pd_datadir_keep_hidden(dir);
    if (pd_datadir_new_path(dir, open->id, file->path, sizeof file->path) != 0)
        pd_error_set(why, "%s: the path is too long", dir->path);
    else
        code = file_make(file, open, o, why);
    if (code) {
        pd_file_free(file);
        return code;
    }
    file_ready(file);
    *ret = file;
    return 0;
}

static int file_take_pending(pd_file *file, const d7_tail_slot *slot, d7_error *err) {
    d7_attribute a;
    for (size_t cursor = 0; d7_tail_slot_attribute(slot, &cursor, &a);)
        if (file_keep_pending(file, a.key, a.value) != 0) {
            snprintf(err->text, sizeof err->text, "out of memory for the attributes of its tail");
            return D7_ERR_NOMEM;
        }
    return 0;
}

int pd_file_resume(pd_file **ret, const pd_datadir *dir, const char *name, d7_tail *tail, bool whole,
                   const pd_file_options *o, pd_error *why) {
    d7_error err = {.text = ""};
    pd_file *file = file_new(dir, o, why);
    if (!file) {
        d7_tail_free(tail);
        return D7_ERR_NOMEM;
    }
    file->tail = tail;
    snprintf(file->path, sizeof file->path, "%s/%s.photons", dir->path, name);
    d7_writer_options options = file_writer_options(file, o);
    options.whole_pages = whole;
    int code = d7_writer_resume(&file->writer, file->path, d7_tail_recovered(tail), &options, &err);
    if (code == 0)
        code = file_take_pending(file, d7_tail_recovered(tail), &err);
    if (code == 0) {
        code = file_first_room(file, d7_tail_recovered(tail)->n_datasets, &err);
        atomic_store_explicit(&file->is_short, code != 0, memory_order_relaxed);
        code = code == D7_ERR_NOSPACE ? 0 : code;
    }
    if (code)
        pd_error_set(why, "%s", err.text);
    else
        code = file_identify(file, why);
    if (code) {
        pd_file_free(file);
        return code;
    }
    file_ready(file);
    *ret = file;
    return 0;
}

/* ---- its name ---- */

/* Tries one name. Returns 0 or a negative errno; -EEXIST with `which` naming what is in the way. */
static int file_try_name(const pd_file *file, const char *name, char which[PD_FILE_NAME_BYTES]) {
    if (pd_datadir_taken(file->dir, name, which))
        return -EEXIST;
    if (!pd_run_names_claim(file->dir->names, name, file->dir)) {
        snprintf(which, PD_FILE_NAME_BYTES, "%.128s in another volume", name);
        return -EEXIST;
    }
    int failed = pd_datadir_publish(file->dir, file->path, name);
    pd_run_names_settle(file->dir->names, name, failed == 0);
    return failed;
}

static unsigned file_first_number(const char *name) {
    return wire_pattern_counts(name) ? 1 : 2;
}

/* NAME-2, NAME-3, ..., or the pattern with its counter; false when that is no valid name any more. */
static bool file_next_name(const char *name, unsigned number, char out[PD_RUN_NAME_BYTES + 1]) {
    if (wire_pattern_counts(name))
        return wire_pattern_count(out, name, number) == 0 && wire_run_name_fault(out) == NULL;
    int n = snprintf(out, PD_RUN_NAME_BYTES + 1, "%s-%u", name, number);
    return n > 0 && n <= PD_RUN_NAME_BYTES && wire_run_name_fault(out) == NULL;
}

/* Whether NAME.photons is the first file of the run that is to be opened, and all of its files were closed: then only the
 * answer was lost, and `open` says what is in them. */
static bool file_is_past(const pd_file *file, pd_open_task *open, const char *name) {
    pd_run_stored stored;
    if (pd_run_stored_last(&stored, file->dir, name, &open->closed_parts) != 0)
        return false;
    bool same = stored.closed && memcmp(stored.spec.id, open->id, PD_RUN_ID_BYTES) == 0 &&
                strcmp(stored.spec.instance, open->producer) == 0 &&
                stored.spec.n_datasets == open->n_datasets;
    if (same) {
        snprintf(open->given_name, sizeof open->given_name, "%s", name);
        open->closed_sequence = stored.last_sequence;
        pd_run_stored_items(&stored, open->closed_items);
    }
    pd_run_stored_free(&stored);
    return same;
}

/* The last names of a series, when this is the first of the series since the start: those that came after were given,
 * and are remembered, by this process. */
static bool file_is_past_of_series(const pd_file *file, pd_open_task *open, const pd_name_hint *hint) {
    char name[PD_RUN_NAME_BYTES + 1], which[PD_FILE_NAME_BYTES];
    unsigned first = file_first_number(open->name), end = first;
    if (!open->counter || strcmp(hint->name, open->name) == 0)
        return false;
    while (end < FILE_COUNTER_MAX && file_next_name(open->name, end, name) &&
           pd_datadir_taken(file->dir, name, which))
        end++;
    for (unsigned n = end; n > first && n + FILE_PAST_NAMES > end;)
        if (file_next_name(open->name, --n, name) && file_is_past(file, open, name))
            return true;
    return false;
}

static int file_find_name(pd_file *file, pd_open_task *open, pd_name_hint *hint) {
    char which[PD_FILE_NAME_BYTES] = "";
    snprintf(open->given_name, sizeof open->given_name, "%s", open->name);
    snprintf(which, sizeof which, "%s", open->name);
    int failed = wire_pattern_counts(open->name) ? -EEXIST : file_try_name(file, open->given_name, which);
    if (failed == -EEXIST && open->part == 0 &&
        (file_is_past(file, open, open->name) || file_is_past_of_series(file, open, hint)))
        return FILE_PAST;
    unsigned number = strcmp(hint->name, open->name) == 0 ? hint->next : file_first_number(open->name);
    for (; failed == -EEXIST && open->counter && number < FILE_COUNTER_MAX; number++) {
        if (!file_next_name(open->name, number, open->given_name))
            break;
        failed = file_try_name(file, open->given_name, which);
    }
    if (failed == -EEXIST) {
        pd_error_set(&open->why, "%s is there already", which);
    } else if (failed) {
        pd_error_set(&open->why, "%s: it cannot be named %s.photons: %s", file->path, open->given_name,
                     strerror(-failed));
    } else if (open->counter) {
        snprintf(hint->name, sizeof hint->name, "%s", open->name);
        hint->next = number;
    }
    return failed;
}

static pd_open_outcome file_outcome(int failed) {
    switch (failed) {
    case FILE_PAST:
        return PD_OPEN_CLOSED;
    case -EEXIST:
        return PD_OPEN_TAKEN;
    case -ENOSPC:
        return PD_OPEN_NOROOM;
    default:
        return PD_OPEN_FAILED;
    }
}

/* Both have their new names. */
static void file_renamed(pd_file *file, const char *name) {
    char tail[PATH_MAX];
    snprintf(file->path, sizeof file->path, "%s/%s.photons", file->dir->path, name);
    file_place_path(file, 1, tail);
    if (d7_writer_renamed(file->writer, file->path, NULL) != 0 ||
        d7_tail_renamed(file->tail, tail, NULL) != 0)
        pd_log(PD_LOG_WARNING, "%s: errors will name it by the name it was made under", file->path);
}

int pd_file_put_aside(const pd_datadir *dir, const char *name, char aside[PD_FILE_NAME_BYTES + 16]) {
    char file[PD_FILE_NAME_BYTES], sums[PD_FILE_NAME_BYTES + 16];
    int failed = -EEXIST;
    snprintf(file, sizeof file, "%s.photons", name);
    for (unsigned n = 0; failed == -EEXIST && n < FILE_CUTS_MAX; n++) {
        snprintf(aside, PD_FILE_NAME_BYTES + 16, "%s.cut.%u", file, n);
        failed = pd_datadir_place(dir, file, aside);
    }
    if (failed)
        return failed;
    snprintf(sums, sizeof sums, "%s" D7_CHECKSUMS_SUFFIX, file);
    (void)pd_datadir_remove(dir, sums);
    failed = pd_datadir_remove_tail(dir, name);
    return failed ? failed : pd_datadir_sync(dir);
}

static int file_displace(const pd_file *file, pd_open_task *open) {
    char aside[PD_FILE_NAME_BYTES + 16];
    int failed = pd_file_put_aside(file->dir, open->name, aside);
    if (failed)
        pd_error_set(&open->why, "%s/%s.photons: it follows what was lost, and cannot be put aside: %s",
                     file->dir->path, open->name, strerror(-failed));
    else
        pd_log(PD_LOG_WARNING, "%s/%s.photons: it follows what was lost: kept as %s", file->dir->path,
               open->name, aside);
    return failed;
}

pd_open_outcome pd_file_publish(pd_file *file, pd_open_task *open, pd_name_hint *hint) {
    if (pd_file_sync(file) != 0) {
        open->why = file->why;
        file_unlink(file);
        return PD_OPEN_FAILED;
    }
    int failed = open->displaces ? file_displace(file, open) : 0;
    if (failed) {
        file_unlink(file);
        return PD_OPEN_FAILED;
    }
    failed = file_find_name(file, open, hint);
    if (failed) {
        file_unlink(file);
        return file_outcome(failed);
    }
    file_renamed(file, open->given_name);
    failed = pd_datadir_sync(file->dir);
    if (!failed)
        return PD_OPEN_DONE;
    pd_error_set(&open->why, "%s: the folder cannot be synced: %s", file->dir->path, strerror(-failed));
    file_unlink(file);
    return PD_OPEN_FAILED;
}

/* ---- writing ---- */

/* An island, or an entry of attributes alone, holds all that waited. */
static void file_look_at_pending(pd_file *file) {
    if (file->n_pending > 0 && d7_writer_unlisted_attributes(file->writer) == 0)
        file_forget_pending(file);
}

int pd_file_page(pd_file *file, const pd_page_task *page) {
    d7_error err = {.text = ""};
    pthread_mutex_lock(&file->tail_lock);
    int code =
        d7_writer_append_page(file->writer, page->dataset, page->entry, page->bytes, page->n_items, &err);
    pthread_mutex_unlock(&file->tail_lock);
    file_look_at_pending(file);
    return file_result(file, code, &err);
}

/* More than a slot will ever take: into the file now. On a full disk they wait for the mark. */
static int file_put_pending(pd_file *file) {
    d7_error err = {.text = ""};
    pthread_mutex_lock(&file->tail_lock);
    int code = d7_writer_put_attributes(file->writer, &err);
    pthread_mutex_unlock(&file->tail_lock);
    file_look_at_pending(file);
    return code == D7_ERR_NOSPACE ? 0 : file_result(file, code, &err);
}

int pd_file_attributes(pd_file *file, const pd_attributes_task *task) {
    d7_error err = {.text = "out of memory"};
    for (size_t i = 0; i < task->n; i++) {
        const pd_attribute *a = &task->attributes[i];
        int code = file_keep_pending(file, a->key, a->value);
        if (code == 0)
            code = d7_writer_set_attribute(file->writer, a->key, a->value, &err);
        if (code)
            return file_result(file, code, &err);
    }
    return file->pending_bytes > FILE_PENDING_BYTES ? file_put_pending(file) : 0;
}

int pd_file_flush(pd_file *file) {
    d7_error err = {.text = ""};
    pthread_mutex_lock(&file->tail_lock);
    int code = d7_writer_flush(file->writer, &err);
    pthread_mutex_unlock(&file->tail_lock);
    return file_result(file, code, &err);
}

/* Attributes that are too many for a slot go ahead of their island into an entry of their own. */
static int file_mark(pd_file *file, const pd_mark_task *task, d7_error *err) {
    int code = 0;
    if (d7_tail_attribute_bytes(file->pending, file->n_pending) > d7_tail_attribute_room(file->tail))
        code = d7_writer_put_attributes(file->writer, err);
    if (code == 0)
        code = d7_writer_flush(file->writer, err);
    file_look_at_pending(file);
    if (code)
        return code;
    d7_tail_mark mark = task->mark;
    mark.attributes = file->pending;
    mark.n_attributes = file->n_pending;
    uint64_t length = d7_writer_written_bytes(file->writer);
    return (task->sync ? d7_tail_begin_sync : d7_tail_mark_slot)(file->tail, length, &mark, err);
}

int pd_file_mark(pd_file *file, const pd_mark_task *task) {
    d7_error err = {.text = ""};
    pthread_mutex_lock(&file->tail_lock);
    int code = file_mark(file, task, &err);
    pthread_mutex_unlock(&file->tail_lock);
    return file_result(file, code, &err);
}

int pd_file_sync(pd_file *file) {
    d7_error err = {.text = ""}, finished = {.text = ""};
    int code = d7_writer_sync_data(file->writer, &err);
    if (code == 0)
        code = d7_tail_sync_data(file->tail, &err);
    pthread_mutex_lock(&file->tail_lock);
    int end = d7_tail_finish_sync(file->tail, code == 0, &finished);
    pthread_mutex_unlock(&file->tail_lock);
    if (code)
        return pd_file_fail(file, code, err.text);
    return end ? pd_file_fail(file, end, finished.text) : 0;
}

static int file_check_place(pd_file *file, int place) {
    struct stat there;
    pd_error why;
    char path[PATH_MAX], name[PD_FILE_NAME_BYTES];
    file_place_path(file, place, path);
    file_place_name(file, place, name);
    int failed = pd_datadir_look(file->dir, name, &there);
    if (failed) {
        if (failed == -ENOENT)
            pd_error_set(&why, "%s: the file was removed or renamed by another program", path);
        else
            pd_error_set(&why, "%s: the file cannot be looked at any more: %s", path, strerror(-failed));
        return pd_file_fail(file, D7_ERR_NOTFOUND, why.text);
    }
    if (there.st_dev == file->places[place].device && there.st_ino == file->places[place].inode)
        return 0;
    pd_error_set(&why, "%s: the file was removed and replaced by another program", path);
    return pd_file_fail(file, D7_ERR_NOTFOUND, why.text);
}

int pd_file_check_name(pd_file *file) {
    int code = file_check_place(file, 0);
    return code || !file->tail ? code : file_check_place(file, 1);
}

/* ---- the end ---- */

/* The name of its files. */
static const char *file_name(const pd_file *file, char name[PD_PART_NAME_BYTES + 1]) {
    char base[PD_FILE_NAME_BYTES];
    file_place_name(file, 0, base);
    snprintf(name, PD_PART_NAME_BYTES + 1, "%.*s", (int)strlen(base) - (int)strlen(".photons"), base);
    return name;
}

/* The tail becomes the note that the file is to be certified, or else that it is final. */
static int file_give_tail(const pd_file *file) {
    char name[PD_PART_NAME_BYTES + 1], tail[PD_FILE_NAME_BYTES];
    file_name(file, name);
    if (file->certifier)
        return pd_certifier_take_tail(file->certifier, name);
    snprintf(tail, sizeof tail, "%s.photons" D7_TAIL_SUFFIX, name);
    return pd_keeper_take(file->keeper, tail, name);
}

/* A tail that stays is dropped by the next start: the file is closed. */
static void file_drop_tail(pd_file *file) {
    char name[PD_FILE_NAME_BYTES];
    d7_writer_free(file->writer);
    d7_tail_free(file->tail);
    file->writer = NULL;
    file->tail = NULL;
    file_place_name(file, 1, name);
    int failed = file->certifier || file->keeper ? file_give_tail(file) : -ENOENT;
    if (!failed)
        return;
    if (file->certifier || file->keeper)
        pd_log(PD_LOG_WARNING, "%s: no certificate and no hook: its tail cannot be moved: %s", file->path,
               strerror(-failed));
    failed = pd_datadir_remove(file->dir, name);
    if (failed)
        pd_log(PD_LOG_WARNING, "%s/%s: cannot be removed: %s; the run is closed and does not need it",
               file->dir->path, name, strerror(-failed));
}

int pd_file_close(pd_file *file, uint64_t sequence) {
    d7_error err = {.text = ""};
    int code = 0;
    if (!file->closing) {
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, sequence);
        code = d7_writer_set_attribute(file->writer, "photond.sequence", text, &err);
        file->closing = code == 0;
    }
    if (code == 0)
        code = d7_writer_close(file->writer, &err);
    code = file_result(file, code, &err);
    if (code == 0)
        file_drop_tail(file);
    return code;
}

void pd_file_free(pd_file *file) {
    if (!file)
        return;
    d7_writer_free(file->writer);
    d7_tail_free(file->tail);
    file_forget_pending(file);
    free(file->pending);
    pthread_mutex_destroy(&file->tail_lock);
    pthread_mutex_destroy(&file->lock);
    free(file);
}
