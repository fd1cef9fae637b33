#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "ring.h"
#include "wire/names.h"

enum {
    FILE_BUFFER_BYTES = 262144,
    FILE_COUNTER_MAX = 1000000 /* attempts at a free name: more than a folder should hold */
};

int pd_file_fail(pd_file *file, int code, const char *text) {
    pthread_mutex_lock(&file->lock);
    if (!atomic_load_explicit(&file->failed, memory_order_relaxed)) {
        pd_error_set(&file->why, "%s", text);
        atomic_store_explicit(&file->failed, true, memory_order_release);
    }
    pthread_mutex_unlock(&file->lock);
    return code;
}

bool pd_file_failed(const pd_file *file) {
    return atomic_load_explicit(&file->failed, memory_order_acquire);
}

const char *pd_file_failure(const pd_file *file) {
    return pd_file_failed(file) ? file->why.text : "";
}

uint64_t pd_file_written(const pd_file *file) {
    return atomic_load_explicit(&file->written, memory_order_relaxed);
}

/* What a call on the writer came to. */
static int file_result(pd_file *file, int code, const d7_error *err) {
    atomic_store_explicit(&file->written, d7_writer_written_bytes(file->writer), memory_order_relaxed);
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

/* By its inode, which is not used again as long as the file is open. */
static int file_identify(pd_file *file, pd_error *why) {
    struct stat there;
    if (lstat(file->path, &there) != 0)
        return pd_error_set(why, "%s: it cannot be looked at: %s", file->path, strerror(errno));
    file->device = there.st_dev;
    file->inode = there.st_ino;
    return 0;
}

/* Mode and group as configured, whatever the umask. */
static int file_set_rights(const pd_file *file, unsigned mode, int64_t gid, pd_error *why) {
    if (chmod(file->path, mode) != 0)
        return pd_error_set(why, "%s: the mode cannot be set: %s", file->path, strerror(errno));
    if (gid >= 0 && chown(file->path, (uid_t)-1, (gid_t)gid) != 0)
        return pd_error_set(why, "%s: the group cannot be set: %s", file->path, strerror(errno));
    return 0;
}

static int file_create_writer(pd_file *file, const pd_open_task *open, unsigned mode, pd_error *why) {
    d7_error err = {.text = ""};
    d7_writer_options options;
    d7_writer_options_init(&options);
    options.bytes_per_page = PD_PAGE_BYTES;
    options.attributes = open->attributes;
    options.n_attributes = open->n_attributes;
    options.mode = mode;
    options.buffer_bytes = FILE_BUFFER_BYTES;
    int code = d7_writer_create(&file->writer, file->path, open->datasets, open->n_datasets, &options, &err);
    if (code)
        pd_error_set(why, "%s", err.text);
    return code;
}

int pd_file_create(pd_file **ret, const pd_datadir *dir, const pd_open_task *open, unsigned mode, int64_t gid,
                   pd_error *why) {
    pd_file *file = calloc(1, sizeof *file);
    if (!file || pthread_mutex_init(&file->lock, NULL) != 0) {
        free(file);
        pd_error_set(why, "out of memory");
        return D7_ERR_NOMEM;
    }
    file->dir = dir;
    int code = D7_ERR_ARG;
    pd_datadir_keep_hidden(dir);
    if (pd_datadir_new_path(dir, open->id, file->path, sizeof file->path) != 0)
        pd_error_set(why, "%s: the path is too long", dir->path);
    else
        code = file_create_writer(file, open, mode, why);
    if (code == 0 && (file_set_rights(file, mode, gid, why) != 0 || file_identify(file, why) != 0)) {
        unlink(file->path);
        code = D7_ERR_IO;
    }
    if (code) {
        pd_file_free(file);
        return code;
    }
    atomic_store_explicit(&file->written, d7_writer_written_bytes(file->writer), memory_order_relaxed);
    file_warn(file);
    *ret = file;
    return 0;
}

/* Tries one name. Returns 0 or a negative errno; -EEXIST with `which` naming what is in the way. */
static int file_try_name(const pd_file *file, const char *name, char which[PD_FILE_NAME_BYTES]) {
    if (pd_datadir_taken(file->dir, name, which))
        return -EEXIST;
    return pd_datadir_publish(file->dir, file->path, name);
}

/* NAME-2, NAME-3, ...; false when that is no valid name any more. */
static bool file_next_name(const char *name, unsigned number, char out[PD_RUN_NAME_BYTES + 1]) {
    int n = snprintf(out, PD_RUN_NAME_BYTES + 1, "%s-%u", name, number);
    return n > 0 && n <= PD_RUN_NAME_BYTES && wire_run_name_fault(out) == NULL;
}

static int file_find_name(pd_file *file, pd_open_task *open, pd_name_hint *hint) {
    char which[PD_FILE_NAME_BYTES] = "";
    snprintf(open->given_name, sizeof open->given_name, "%s", open->name);
    int failed = file_try_name(file, open->given_name, which);
    unsigned number = strcmp(hint->name, open->name) == 0 ? hint->next : 2;
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

pd_open_outcome pd_file_publish(pd_file *file, pd_open_task *open, pd_name_hint *hint) {
    if (pd_file_sync(file) != 0) {
        open->why = file->why;
        unlink(file->path);
        return PD_OPEN_FAILED;
    }
    int failed = file_find_name(file, open, hint);
    if (failed) {
        unlink(file->path);
        return failed == -EEXIST ? PD_OPEN_TAKEN : failed == -ENOSPC ? PD_OPEN_NOROOM : PD_OPEN_FAILED;
    }
    snprintf(file->path, sizeof file->path, "%s/%s.photons", file->dir->path, open->given_name);
    if (d7_writer_renamed(file->writer, file->path, NULL) != 0)
        pd_log(PD_LOG_WARNING, "%s: errors will name it by the name it was made under", file->path);
    failed = pd_datadir_sync(file->dir);
    if (!failed)
        return PD_OPEN_DONE;
    pd_error_set(&open->why, "%s: the folder cannot be synced: %s", file->dir->path, strerror(-failed));
    unlink(file->path);
    return PD_OPEN_FAILED;
}

int pd_file_page(pd_file *file, const pd_page_task *page) {
    d7_error err = {.text = ""};
    int code =
        d7_writer_append_page(file->writer, page->dataset, page->entry, page->bytes, page->n_items, &err);
    return file_result(file, code, &err);
}

int pd_file_attributes(pd_file *file, const pd_attributes_task *task) {
    d7_error err = {.text = ""};
    if (d7_writer_unlisted_attributes(file->writer) == 0)
        file->oldest_unlisted = task->sequence;
    for (size_t i = 0; i < task->n; i++) {
        int code =
            d7_writer_set_attribute(file->writer, task->attributes[i].key, task->attributes[i].value, &err);
        if (code)
            return file_result(file, code, &err);
    }
    return 0;
}

int pd_file_flush(pd_file *file, uint64_t *sequence) {
    d7_error err = {.text = ""};
    int code = d7_writer_flush(file->writer, &err);
    if (d7_writer_unlisted_attributes(file->writer) == 0)
        file->oldest_unlisted = 0;
    if (file->oldest_unlisted && *sequence >= file->oldest_unlisted)
        *sequence = file->oldest_unlisted - 1;
    return file_result(file, code, &err);
}

int pd_file_sync(pd_file *file) {
    d7_error err = {.text = ""};
    int code = d7_writer_sync_data(file->writer, &err);
    return code ? pd_file_fail(file, code, err.text) : 0;
}

int pd_file_check_name(pd_file *file) {
    struct stat there;
    pd_error why;
    if (fstatat(file->dir->fd, strrchr(file->path, '/') + 1, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            pd_error_set(&why, "%s: the file was removed or renamed by another program", file->path);
        else
            pd_error_set(&why, "%s: the file cannot be looked at any more: %s", file->path, strerror(errno));
        return pd_file_fail(file, D7_ERR_IO, why.text);
    }
    if (there.st_dev == file->device && there.st_ino == file->inode)
        return 0;
    pd_error_set(&why, "%s: the file was removed and replaced by another program", file->path);
    return pd_file_fail(file, D7_ERR_IO, why.text);
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
    return file_result(file, code, &err);
}

void pd_file_free(pd_file *file) {
    if (!file)
        return;
    d7_writer_free(file->writer);
    pthread_mutex_destroy(&file->lock);
    free(file);
}
