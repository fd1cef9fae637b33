/* Room on the disk. Space is set aside for a run's file ahead of what comes: for all that the ring may hold of it, for the index and the end
 * of the file, and a step more, which is as long as the file, up to STEP_MAX. So a full disk shows while nothing
 * is at stake: there is no more room for batches, those that were taken are written, and the file can be closed.
 *
 * As long as the disk has plenty, batches do not wait for the space that is being set aside: a writer that is held up costs no
 * more than the ring. Where the file system sets nothing aside, writes meet the full disk (volume.c). */
#include "run.h"

enum {
    ROOM_OWN_BYTES =
        65536, /* what the daemon writes by itself: records, the last attributes, an island's beginning */
    ROOM_PLENTY = 2 /* times what the ring can hold */
};

#define ROOM_STEP_MIN (UINT64_C(1) << 20)
#define ROOM_STEP_MAX (UINT64_C(64) << 20)

/* A page may be of any of the columns. */
static uint64_t room_of_page(const pd_run *run) {
    return run->page_bound + D7_CLOSED_PAGE_BYTES;
}

static uint64_t room_step(uint64_t length) {
    return length < ROOM_STEP_MIN ? ROOM_STEP_MIN : length < ROOM_STEP_MAX ? length : ROOM_STEP_MAX;
}

static bool room_is_plenty(const pd_run *run) {
    uint64_t free_bytes = pd_volume_look(run->volume).free_bytes;
    return (!run->part->file || !pd_file_is_short(run->part->file)) &&
           free_bytes / ROOM_PLENTY > run->engine->ring.n_slots * room_of_page(run);
}

static void room_back(pd_event *event) {
    pd_run *run = pd_container_of(event, pd_run, room.task.event);
    run->room_out = false;
    run->engine->room_came = true;
    pd_run__back(run, &run->room.task);
    pd_run__progress(run);
}

static void room_ask(pd_run *run, uint64_t least, uint64_t step) {
    run->room_out = true;
    run->room = (pd_room_task){.task = {.event.happened = room_back, .kind = PD_TASK_ROOM},
                               .least = least,
                               .length = least + step,
                               .n_entries = run->engine->ring.n_slots + step / PD_PAGE_BYTES};
    pd_run__submit(run, run->part, &run->room.task);
}

bool pd_run__has_room(pd_run *run, uint32_t slots, uint64_t attribute_bytes) {
    if (!run->part->file)
        return room_is_plenty(run); /* a part whose file is being made: it asks when it is there */
    uint64_t there = pd_file_allocated(run->part->file);
    if (there == UINT64_MAX)
        return true;
    uint64_t closed = pd_file_closed_bytes(run->part->file), step = room_step(closed);
    uint64_t need = closed + (run->quota.used + slots) * room_of_page(run) +
                    3 * (run->attribute_bytes + attribute_bytes) + ROOM_OWN_BYTES;
    if (there < need + step / 2 && !run->room_out)
        room_ask(run, need, step);
    return there >= need || room_is_plenty(run);
}
