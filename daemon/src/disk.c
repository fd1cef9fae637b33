#include "disk.h"

#include <uv.h>

#include "log.h"

void pd_disk_begin(pd_disk_wait *wait) {
    atomic_store_explicit(&wait->since_ns, uv_hrtime(), memory_order_relaxed);
}

void pd_disk_end(pd_disk_wait *wait) {
    atomic_store_explicit(&wait->since_ns, 0, memory_order_relaxed);
}

/* The place of a time: its power of two, and the two bits below. */
static unsigned times_place(uint64_t ns) {
    unsigned octave = 63u - (unsigned)__builtin_clzll(ns | 4);
    return 4 * octave + (unsigned)(ns >> (octave - 2) & 3);
}

/* The middle of the times of a place. */
static uint64_t times_of_place(unsigned place) {
    uint64_t quarter = UINT64_C(1) << (place / 4 - 2);
    return (4 + place % 4) * quarter + quarter / 2;
}

void pd_disk_took(pd_disk_times *times, uint64_t ns) {
    atomic_fetch_add_explicit(&times->n[times_place(ns)], 1, memory_order_relaxed);
    if (ns > atomic_load_explicit(&times->longest_ns, memory_order_relaxed))
        atomic_store_explicit(&times->longest_ns, ns, memory_order_relaxed);
}

/* The time that so many are not above. */
static uint64_t times_up_to(const uint64_t n[PD_DISK_TIMES], uint64_t count) {
    unsigned place = 8; /* the first that there is */
    for (uint64_t seen = n[place]; seen < count && place + 1 < PD_DISK_TIMES;)
        seen += n[++place];
    return times_of_place(place);
}

pd_disk_syncs pd_disk_look(const pd_disk_times *times) {
    uint64_t n[PD_DISK_TIMES];
    pd_disk_syncs s = {.longest_ns = atomic_load_explicit(&times->longest_ns, memory_order_relaxed)};
    for (unsigned i = 0; i < PD_DISK_TIMES; i++)
        s.n += n[i] = atomic_load_explicit(&times->n[i], memory_order_relaxed);
    if (s.n == 0)
        return (pd_disk_syncs){0};
    uint64_t median = times_up_to(n, (s.n + 1) / 2), p99 = times_up_to(n, s.n - s.n / 100);
    s.median_ns = median < s.longest_ns ? median : s.longest_ns;
    s.p99_ns = p99 < s.longest_ns ? p99 : s.longest_ns;
    return s;
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

static uint64_t disk_waits_since(const pd_disk_wait *wait) {
    return atomic_load_explicit(&wait->since_ns, memory_order_relaxed);
}

uint64_t pd_disk_busy_since(const pd_disk *disk) {
    uint64_t writer = disk_waits_since(&disk->writer), syncer = disk_waits_since(&disk->syncer);
    return writer && (!syncer || writer < syncer) ? writer : syncer;
}
