#include "syncer.h"

#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "file.h"
#include "log.h"

enum { SYNCER_SYNCS_OF_CLOSE = 2 }; /* before the epilogue and after it */

struct pd_syncer {
    pd_queue queue;
    pthread_t thread;
    pd_disk *disk;
    const pd_datadir *dir;
    pd_inbox *inbox;
    pd_list waiting; /* closes that wait for room on the disk; the thread's own */
    pd_name_hint hint;
};

static int syncer_open(pd_syncer *s, pd_open_task *open) {
    open->outcome = pd_file_publish(open->task.file, open, &s->hint);
    pd_count(&s->disk->counters->syncs, open->outcome == PD_OPEN_DONE);
    if (open->outcome == PD_OPEN_DONE)
        return 0;
    pd_file_free(open->task.file);
    open->task.file = NULL;
    return -1;
}

static int syncer_mark(pd_syncer *s, pd_mark_task *mark) {
    uint64_t began_ns = uv_hrtime();
    int code = pd_file_sync(mark->task.file);
    pd_disk_took(&s->disk->syncs, uv_hrtime() - began_ns);
    pd_count(code ? &s->disk->counters->sync_failures : &s->disk->counters->syncs, 1);
    return code ? code : pd_file_check_name(mark->task.file);
}

static int syncer_close(pd_syncer *s, pd_close_task *close) {
    pd_file *file = close->task.file;
    uint64_t before = pd_file_written(file);
    int code = pd_file_check_name(file);
    if (code)
        return code;
    code = pd_file_close(file, close->sequence);
    pd_count(&s->disk->counters->bytes_written, pd_file_written(file) - before);
    if (code == D7_ERR_NOSPACE &&
        !pd_disk_met_full(s->disk, &file->waits, pd_datadir_free_bytes(s->dir), file->path))
        return pd_file_fail(file, code, "the disk is full and there is no time to wait for room");
    if (code)
        return code;
    pd_count(&s->disk->counters->syncs, SYNCER_SYNCS_OF_CLOSE);
    pd_disk_has_room(s->disk, &file->waits, file->path);
    int failed = pd_datadir_sync(s->dir);
    if (failed)
        pd_log(PD_LOG_WARNING, "%s: the folder cannot be synced: %s", s->dir->path, strerror(-failed));
    return pd_file_check_name(file);
}

/* Returns false when the task has to wait for room. */
static bool syncer_do(pd_syncer *s, pd_task *task) {
    int code;
    pd_disk_begin(&s->disk->syncer);
    if (task->kind == PD_TASK_OPEN)
        code = syncer_open(s, pd_container_of(task, pd_open_task, task));
    else if (pd_file_failed(task->file))
        code = D7_ERR_STATE;
    else if (task->kind == PD_TASK_MARK)
        code = syncer_mark(s, pd_container_of(task, pd_mark_task, task));
    else
        code = syncer_close(s, pd_container_of(task, pd_close_task, task));
    pd_disk_end(&s->disk->syncer);
    atomic_store_explicit(&s->disk->free_bytes, pd_datadir_free_bytes(s->dir), memory_order_relaxed);
    if (code == D7_ERR_NOSPACE)
        return false;
    task->result = code ? -1 : 0;
    pd_inbox_post(s->inbox, &task->event);
    return true;
}

/* `link` is a chain by next. */
static void syncer_do_chain(pd_syncer *s, pd_link *link) {
    while (link) {
        pd_task *task = pd_container_of(link, pd_task, event.link);
        link = link->next;
        if (!syncer_do(s, task))
            pd_list_push(&s->waiting, &task->event.link);
    }
}

static void *syncer_run(void *arg) {
    pd_syncer *s = arg;
    for (;;) {
        pd_link *chain = pd_queue_take(&s->queue, s->waiting.first ? PD_DISK_RETRY_MS : PD_QUEUE_FOREVER);
        if (!chain && !s->waiting.first)
            return NULL;
        syncer_do_chain(s, chain);
        if (!chain)
            syncer_do_chain(s, pd_list_take(&s->waiting));
    }
}

int pd_syncer_start(pd_syncer **ret, pd_disk *disk, const pd_datadir *dir, pd_inbox *inbox, pd_error *err) {
    pd_syncer *s = calloc(1, sizeof *s);
    if (!s)
        return pd_error_set(err, "out of memory");
    s->disk = disk;
    s->dir = dir;
    s->inbox = inbox;
    pd_list_init(&s->waiting);
    int failed = pd_queue_init(&s->queue);
    if (failed) {
        free(s);
        return pd_error_set(err, "the syncer's queue cannot be made: %s", strerror(-failed));
    }
    failed = pthread_create(&s->thread, NULL, syncer_run, s);
    if (failed) {
        pd_queue_destroy(&s->queue);
        free(s);
        return pd_error_set(err, "the syncer's thread cannot be started: %s", strerror(failed));
    }
    *ret = s;
    return 0;
}

void pd_syncer_submit(pd_syncer *s, pd_task *task) {
    pd_queue_push(&s->queue, &task->event.link);
}

void pd_syncer_stop(pd_syncer *s) {
    if (!s)
        return;
    pd_queue_close(&s->queue);
    pthread_join(s->thread, NULL);
    pd_queue_destroy(&s->queue);
    free(s);
}
