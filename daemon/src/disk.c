#include "disk.h"

#include <uv.h>

#include "log.h"

void pd_disk_begin(pd_disk_wait *wait) {
    atomic_store_explicit(&wait->since_ns, uv_hrtime(), memory_order_relaxed);
}

void pd_disk_end(pd_disk_wait *wait) {
    atomic_store_explicit(&wait->since_ns, 0, memory_order_relaxed);
}

bool pd_disk_met_full(pd_disk *disk, bool *waits, uint64_t free_bytes, const char *path) {
    atomic_store_explicit(&disk->free_bytes, free_bytes, memory_order_relaxed);
    if (!*waits && atomic_fetch_add_explicit(&disk->n_full, 1, memory_order_relaxed) == 0) {
        pd_count(&disk->counters->disk_full, 1);
        pd_log(PD_LOG_WARNING,
               "%s: the disk is full: waiting for room; what comes in is held back, nothing is lost", path);
    }
    *waits = true;
    return !atomic_load_explicit(&disk->give_up, memory_order_relaxed);
}

/* Returns whether it was the last that waited. */
static bool disk_waits_no_more(pd_disk *disk, bool *waits) {
    bool last = *waits && atomic_fetch_sub_explicit(&disk->n_full, 1, memory_order_relaxed) == 1;
    *waits = false;
    return last;
}

void pd_disk_has_room(pd_disk *disk, bool *waits, const char *path) {
    if (disk_waits_no_more(disk, waits))
        pd_log(PD_LOG_INFO, "%s: there is room on the disk again", path);
}

void pd_disk_forget(pd_disk *disk, bool *waits) {
    (void)disk_waits_no_more(disk, waits);
}
