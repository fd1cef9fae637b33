#include "volume.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "certifier.h"
#include "disk.h"
#include "file.h"
#include "log.h"
#include "run_names.h"
#include "syncer.h"

enum { VOLUME_CERTIFY_S = 5 }; /* that a stop waits for certificates */

struct pd_volume {
    const char *name;
    pd_datadir dir;
    pd_queue queue;  /* to the writer */
    pd_list waiting; /* for room to be set aside; the writer's */
    uint64_t retried_ns;
    pthread_t thread;
    pd_disk disk;
    pd_syncer *syncer;
    pd_inbox *inbox;
    pd_counters *counters;
    pd_file_options files;
};

static void volume_back(pd_volume *v, pd_task *task, int code) {
    task->result = code ? -1 : 0;
    pd_inbox_post(v->inbox, &task->event);
}

/* A write came back with `code`; `whole`: nothing is left in libd7's buffer when it went well. Returns true
 * when it is to be tried again, after a while. A page that only went into the buffer, because a part of that
 * found the last room on the disk, does not show that there is room: something must have been written. */
static bool volume_waits_for_room(pd_volume *v, pd_file *file, int code, bool whole) {
    if (code != D7_ERR_NOSPACE) {
        if (code == 0 && (whole || pd_file_written(file) > file->full_at))
            pd_disk_has_room(&v->disk, &file->waits, file->path);
        return false;
    }
    file->full_at = pd_file_written(file);
    if (!pd_disk_met_full(&v->disk, &file->waits, pd_datadir_free_bytes(&v->dir), file->path)) {
        pd_file_fail(file, code, "the disk is full and there is no time to wait for room");
        return false;
    }
    nanosleep(&(struct timespec){.tv_nsec = PD_DISK_RETRY_MS * 1000000L}, NULL);
    return true;
}

static int volume_page(pd_volume *v, const pd_page_task *page) {
    pd_file *file = page->task.file;
    int code;
    do
        code = pd_file_page(file, page);
    while (volume_waits_for_room(v, file, code, false));
    pd_count(&v->counters->pages_written, code == 0);
    return code;
}

/* What the disk has no room for is tried again with the rest of the end. */
static int volume_flush(pd_file *file) {
    int code = pd_file_flush(file);
    return code == D7_ERR_NOSPACE ? 0 : code;
}

/* ---- room that is set aside ---- */

static void volume_room(pd_volume *v, pd_task *task) {
    pd_file *file = task->file;
    uint64_t free_bytes = pd_datadir_free_bytes(&v->dir);
    int code = pd_file_failed(file)
                   ? D7_ERR_STATE
                   : pd_file_allocate(file, pd_container_of(task, pd_room_task, task), free_bytes);
    atomic_store_explicit(&v->disk.free_bytes, pd_datadir_free_bytes(&v->dir), memory_order_relaxed);
    if (code == D7_ERR_NOSPACE && pd_disk_met_full(&v->disk, &file->wants_room, free_bytes, file->path)) {
        pd_list_push(&v->waiting, &task->event.link);
        return;
    }
    pd_disk_has_room(&v->disk, &file->wants_room, file->path);
    volume_back(v, task, 0); /* a failure is for those to tell whose data is concerned */
}

static void volume_retry_room(pd_volume *v) {
    uint64_t now = uv_hrtime();
    if (now - v->retried_ns < PD_DISK_RETRY_MS * UINT64_C(1000000))
        return;
    v->retried_ns = now;
    for (pd_link *link = pd_list_take(&v->waiting); link;) {
        pd_task *task = pd_container_of(link, pd_task, event.link);
        link = link->next;
        volume_room(v, task);
    }
}

/* The file is being ended, from what was set aside before: no more is waited for. */
static void volume_end_waiting(pd_volume *v, pd_file *file) {
    pd_disk_forget(&v->disk, &file->wants_room);
    for (pd_link *link = pd_list_take(&v->waiting); link;) {
        pd_task *task = pd_container_of(link, pd_task, event.link);
        link = link->next;
        if (task->file == file)
            volume_back(v, task, 0);
        else
            pd_list_push(&v->waiting, &task->event.link);
    }
}

static int volume_mark(pd_volume *v, const pd_mark_task *mark) {
    pd_file *file = mark->task.file;
    int code;
    do
        code = pd_file_mark(file, mark);
    while (volume_waits_for_room(v, file, code, true));
    return code;
}

static void volume_open(pd_volume *v, pd_open_task *open) {
    int code = pd_file_create(&open->task.file, &v->dir, open, &v->files, &open->why);
    if (code == 0) {
        pd_count(&v->counters->bytes_written, pd_file_written(open->task.file));
        pd_syncer_submit(v->syncer, &open->task);
        return;
    }
    open->outcome = code == D7_ERR_NOSPACE ? PD_OPEN_NOROOM : PD_OPEN_FAILED;
    volume_back(v, &open->task, code);
}

/* What the writer does for a task of a file that has not failed. */
static int volume_write(pd_volume *v, pd_task *task) {
    switch (task->kind) {
    case PD_TASK_PAGE:
        return volume_page(v, pd_container_of(task, pd_page_task, task));
    case PD_TASK_ATTRIBUTES:
        return pd_file_attributes(task->file, pd_container_of(task, pd_attributes_task, task));
    case PD_TASK_MARK:
        return volume_mark(v, pd_container_of(task, pd_mark_task, task));
    case PD_TASK_CLOSE:
        return volume_flush(task->file);
    case PD_TASK_OPEN:
    case PD_TASK_ROOM:
    case PD_TASK_DROP:
        break;
    }
    assert(0 && "not a task for an open file");
    return D7_ERR_STATE;
}

/* Whether the syncer has the next step of a task. */
static bool volume_goes_on(const pd_task *task) {
    return task->kind == PD_TASK_CLOSE ||
           (task->kind == PD_TASK_MARK && pd_container_of(task, pd_mark_task, task)->sync);
}

static void volume_do(pd_volume *v, pd_task *task) {
    if (task->kind == PD_TASK_OPEN) {
        volume_open(v, pd_container_of(task, pd_open_task, task));
        return;
    }
    pd_file *file = task->file;
    if (task->kind == PD_TASK_ROOM) {
        volume_room(v, task);
        return;
    }
    if (task->kind == PD_TASK_DROP || task->kind == PD_TASK_CLOSE)
        volume_end_waiting(v, file);
    if (task->kind == PD_TASK_DROP) {
        pd_disk_forget(&v->disk, &file->waits);
        pd_file_free(file);
        volume_back(v, task, 0);
        return;
    }
    int code = D7_ERR_STATE;
    if (!pd_file_failed(file)) {
        uint64_t before = pd_file_written(file);
        code = volume_write(v, task);
        pd_count(&v->counters->bytes_written, pd_file_written(file) - before);
    }
    if (code == 0 && volume_goes_on(task)) {
        task->result = 0;
        pd_syncer_submit(v->syncer, task);
    } else {
        volume_back(v, task, code);
    }
}

static void *volume_run(void *arg) {
    pd_volume *v = arg;
    for (;;) {
        pd_link *link = pd_queue_take(&v->queue, v->waiting.first ? PD_DISK_RETRY_MS : PD_QUEUE_FOREVER);
        if (!link && !v->waiting.first)
            return NULL;
        while (link) {
            pd_task *task = pd_container_of(link, pd_task, event.link);
            link = link->next;
            pd_disk_begin(&v->disk.writer);
            volume_do(v, task);
        }
        volume_retry_room(v);
        pd_disk_end(&v->disk.writer);
    }
}

static int volume_start_threads(pd_volume *v, pd_error *err) {
    int failed = pd_queue_init(&v->queue);
    if (failed)
        return pd_error_set(err, "the writer's queue cannot be made: %s", strerror(-failed));
    if (pd_syncer_start(&v->syncer, &v->disk, &v->dir, v->inbox, err) != 0) {
        pd_queue_destroy(&v->queue);
        return -1;
    }
    failed = pthread_create(&v->thread, NULL, volume_run, v);
    if (failed) {
        pd_syncer_stop(v->syncer);
        pd_queue_destroy(&v->queue);
        return pd_error_set(err, "the writer's thread cannot be started: %s", strerror(failed));
    }
    return 0;
}

/* The keeper, where there is anything for it to do, then the certifier, which tells it. */
static int volume_start_after(pd_volume *v, const pd_volume_options *options, pd_error *err) {
    pd_keeper_options keeper = options->keeper;
    keeper.counters = options->counters;
    if (pd_keeper_has_work(&keeper) && pd_keeper_start(&v->files.keeper, &v->dir, &keeper, err) != 0)
        return -1;
    pd_certifier_options o = {.keeper = v->files.keeper,
                              .key = options->certificate_key,
                              .mode = options->file_mode,
                              .gid = options->gid,
                              .counters = options->counters};
    return options->certificates ? pd_certifier_start(&v->files.certifier, &v->dir, &o, err) : 0;
}

int pd_volume_start(pd_volume **ret, const pd_volume_options *options, pd_error *err) {
    pd_volume *v = calloc(1, sizeof *v);
    if (!v)
        return pd_error_set(err, "out of memory");
    v->name = options->name;
    pd_list_init(&v->waiting);
    v->inbox = options->inbox;
    v->counters = options->counters;
    v->disk.counters = options->counters;
    v->files = (pd_file_options){.mode = options->file_mode,
                                 .checksums = options->checksums,
                                 .gid = options->gid,
                                 .io = options->io ? options->io : pd_datadir_io(&v->dir)};
    if (pd_datadir_open(&v->dir, options->data_dir, options->dir_mode, err) != 0) {
        free(v);
        return -1;
    }
    v->dir.names = options->names;
    atomic_store(&v->disk.free_bytes, pd_datadir_free_bytes(&v->dir));
    if ((options->names && pd_run_names_add(options->names, &v->dir, &v->disk, err) != 0) ||
        volume_start_after(v, options, err) != 0 || volume_start_threads(v, err) != 0) {
        pd_certifier_stop(v->files.certifier, 0);
        pd_keeper_stop(v->files.keeper);
        pd_datadir_close(&v->dir);
        free(v);
        return -1;
    }
    *ret = v;
    return 0;
}

void pd_volume_submit(pd_volume *v, pd_task *task) {
    pd_queue_push(&v->queue, &task->event.link);
}

void pd_volume_stop(pd_volume *v) {
    if (!v)
        return;
    pd_queue_close(&v->queue);
    pthread_join(v->thread, NULL);
    pd_syncer_stop(v->syncer);
    pd_certifier_stop(v->files.certifier, VOLUME_CERTIFY_S);
    pd_keeper_stop(v->files.keeper);
    pd_queue_destroy(&v->queue);
    pd_datadir_close(&v->dir);
    free(v);
}

void pd_volume_give_up(pd_volume *v) {
    atomic_store_explicit(&v->disk.give_up, true, memory_order_relaxed);
}

pd_volume_state pd_volume_look(const pd_volume *v) {
    return (pd_volume_state){
        .full = atomic_load_explicit(&v->disk.n_full, memory_order_relaxed) > 0,
        .busy_ns = pd_disk_busy_since(&v->disk),
        .free_bytes = atomic_load_explicit(&v->disk.free_bytes, memory_order_relaxed),
    };
}

pd_disk_syncs pd_volume_syncs(const pd_volume *v) {
    return pd_disk_look(&v->disk.syncs);
}

const pd_file_options *pd_volume_files(const pd_volume *v) {
    return &v->files;
}

uint64_t pd_volume_uncertified(const pd_volume *v) {
    return pd_certifier_pending(v->files.certifier);
}

uint64_t pd_volume_unhooked(const pd_volume *v) {
    return pd_keeper_pending(v->files.keeper);
}

void pd_volume_closed_before(const pd_volume *v, const char *name) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s.photons", name);
    int failed = pd_datadir_give_back(&v->dir, file);
    if (failed)
        pd_log(PD_LOG_WARNING, "%s/%s: space that was set aside for it cannot be given back: %s", v->dir.path,
               file, strerror(-failed));
    if (v->files.certifier)
        pd_certifier_note(v->files.certifier, name);
    else
        pd_keeper_note(v->files.keeper, name);
}

void pd_volume_hold(const pd_volume *v, const char *name) {
    pd_keeper_hold(v->files.keeper, name);
}

void pd_volume_release(const pd_volume *v, const char *name) {
    pd_keeper_release(v->files.keeper, name);
}

const char *pd_volume_name(const pd_volume *v) {
    return v->name;
}

const pd_datadir *pd_volume_datadir(const pd_volume *v) {
    return &v->dir;
}
