#include "disk.h"

#include <uv.h>

#include "log.h"

void pd_disk_begin(pd_disk_wait *wait) {
    atomic_store_explicit(&wait->since_ns, uv_hrtime(), memory_order_relaxed);
}

void pd_disk_end(pd_disk_wait *wait) {
    atomic_store_explicit(&wait->since_ns, 0, memory_order_relaxed);
}

bool pd_disk_met_full(pd_disk *disk, pd_disk_wait *wait, const char *path) {
    if (!atomic_exchange_explicit(&wait->full, true, memory_order_relaxed)) {
        pd_count(&disk->counters->disk_full, 1);
        pd_log(PD_LOG_WARNING,
               "%s: the disk is full: waiting for room; what comes in is held back, nothing is lost", path);
    }
    return !atomic_load_explicit(&disk->give_up, memory_order_relaxed);
}

void pd_disk_has_room(pd_disk_wait *wait, const char *path) {
    if (atomic_exchange_explicit(&wait->full, false, memory_order_relaxed))
        pd_log(PD_LOG_INFO, "%s: there is room on the disk again", path);
}
