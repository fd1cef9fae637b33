#include "power.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "random.h"

enum { SECTOR = 512, FILES_MAX = 1024, NEVER = -1 };

/* Something done to a file that is not synced: bytes written, or (data is NULL) a new length. */
typedef struct change {
    uint64_t offset;
    size_t bytes;
    uint8_t *data;
    bool doubtful; /* a sync that was to bring it failed */
} change;

typedef struct power_file {
    dev_t device;
    ino_t inode;
    int fd; /* the switch's own */
    uint8_t *synced;
    size_t n_synced;
    change *changes;
    size_t n_changes, cap_changes;
} power_file;

typedef struct handle {
    void *inner;
    power_file *file;
} handle;

struct power {
    const d7_io *inner;
    d7_io table;
    pthread_mutex_t lock; /* guards all below */
    uint64_t random;
    long calls_left; /* NEVER: the power stays */
    bool off;
    unsigned fail_sync, full_at, full_times, sync_ms, n_syncs;
    power_file files[FILES_MAX];
    size_t n_files;
};

static uint32_t draw(power *p, uint32_t n) {
    return (uint32_t)(testing_random(&p->random) >> 32) % n;
}

/* ---- what the disk holds ---- */

static void image_resize(power_file *f, size_t bytes) {
    f->synced = realloc(f->synced, bytes + 1);
    assert(f->synced);
    if (bytes > f->n_synced)
        memset(f->synced + f->n_synced, 0, bytes - f->n_synced);
    f->n_synced = bytes;
}

/* Bytes [from, to) of a change reach the disk. */
static void image_apply(power_file *f, const change *c, size_t from, size_t to) {
    if (f->n_synced < c->offset + to)
        image_resize(f, (size_t)c->offset + to);
    memcpy(f->synced + c->offset + from, c->data + from, to - from);
}

static void image_apply_whole(power_file *f, const change *c) {
    if (c->data)
        image_apply(f, c, 0, c->bytes);
    else
        image_resize(f, (size_t)c->offset);
}

/* A change reaches the disk in some of its sectors. */
static void image_apply_some(power *p, power_file *f, const change *c, uint32_t in_100) {
    for (size_t at = 0; at < c->bytes;) {
        size_t end = at + SECTOR - (size_t)((c->offset + at) % SECTOR);
        if (end > c->bytes)
            end = c->bytes;
        if (draw(p, 100) < in_100)
            image_apply(f, c, at, end);
        at = end;
    }
}

static void changes_forget(power_file *f, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < f->n_changes; i++) {
        if (i < n && !f->changes[i].doubtful)
            free(f->changes[i].data);
        else
            f->changes[kept++] = f->changes[i];
    }
    f->n_changes = kept;
}

static void changes_add(power_file *f, uint64_t offset, const void *data, size_t bytes) {
    if (f->n_changes == f->cap_changes) {
        f->cap_changes = f->cap_changes ? 2 * f->cap_changes : 64;
        f->changes = realloc(f->changes, f->cap_changes * sizeof *f->changes);
        assert(f->changes);
    }
    change *c = &f->changes[f->n_changes++];
    *c = (change){.offset = offset, .bytes = bytes, .data = data ? malloc(bytes + 1) : NULL};
    if (data)
        memcpy(c->data, data, bytes);
}

/* ---- the table ---- */

/* Called with the lock held. Whether the power is on; a call that changes something uses it up. */
static bool power_is_on(power *p, bool changes) {
    if (changes && p->calls_left > 0 && --p->calls_left == 0)
        p->off = true;
    return !p->off;
}

/* Called with the lock held. */
static power_file *file_of(power *p, const char *path) {
    struct stat there;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &there) != 0)
        return NULL;
    for (size_t i = 0; i < p->n_files; i++)
        if (p->files[i].device == there.st_dev && p->files[i].inode == there.st_ino) {
            close(fd);
            return &p->files[i];
        }
    assert(p->n_files < FILES_MAX);
    power_file *f = &p->files[p->n_files++];
    *f = (power_file){.device = there.st_dev, .inode = there.st_ino, .fd = fd};
    image_resize(f, (size_t)there.st_size);
    ssize_t n = pread(fd, f->synced, f->n_synced, 0);
    assert(n == (ssize_t)f->n_synced);
    (void)n;
    return f;
}

static int power_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    power *p = ctx;
    pthread_mutex_lock(&p->lock);
    handle *h = calloc(1, sizeof *h);
    int rc = !h                       ? -ENOMEM
             : !power_is_on(p, false) ? -EIO
                                      : p->inner->open(p->inner->ctx, path, flags, mode, &h->inner);
    if (rc == 0 && (flags & D7_IO_WRITE))
        h->file = file_of(p, path);
    if (rc == 0)
        *ret_file = h;
    else
        free(h);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static int power_close(void *ctx, void *file) {
    power *p = ctx;
    handle *h = file;
    int rc = p->inner->close(p->inner->ctx, h->inner);
    free(h);
    return rc;
}

static int64_t power_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    power *p = ctx;
    return p->inner->pread(p->inner->ctx, ((handle *)file)->inner, buffer, bytes, offset);
}

/* Called with the lock held. */
static bool disk_is_full(power *p) {
    if (p->full_at > 1) {
        p->full_at--;
        return false;
    }
    if (p->full_at == 0 || p->full_times == 0)
        return false;
    p->full_times--;
    return true;
}

static int64_t power_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    power *p = ctx;
    handle *h = file;
    pthread_mutex_lock(&p->lock);
    int64_t n = -EIO;
    if (power_is_on(p, true))
        n = disk_is_full(p) ? -ENOSPC : p->inner->pwrite(p->inner->ctx, h->inner, data, bytes, offset);
    if (n > 0)
        changes_add(h->file, offset, data, (size_t)n);
    pthread_mutex_unlock(&p->lock);
    return n;
}

static int power_truncate(void *ctx, void *file, uint64_t bytes) {
    power *p = ctx;
    handle *h = file;
    pthread_mutex_lock(&p->lock);
    int rc = power_is_on(p, true) ? p->inner->truncate(p->inner->ctx, h->inner, bytes) : -EIO;
    if (rc == 0)
        changes_add(h->file, bytes, NULL, 0);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

/* What was done before the call is on the disk after it, not what is done meanwhile. */
static int power_sync_data(void *ctx, void *file) {
    power *p = ctx;
    power_file *f = ((handle *)file)->file;
    pthread_mutex_lock(&p->lock);
    unsigned ms = p->sync_ms;
    size_t n = f->n_changes;
    pthread_mutex_unlock(&p->lock);
    if (ms)
        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
    pthread_mutex_lock(&p->lock);
    int rc = power_is_on(p, true) ? 0 : -EIO;
    if (rc == 0 && p->fail_sync > 0 && --p->fail_sync == 0)
        rc = -EIO;
    p->n_syncs++;
    for (size_t i = 0; i < n; i++) {
        if (rc != 0)
            f->changes[i].doubtful = true;
        else if (!f->changes[i].doubtful)
            image_apply_whole(f, &f->changes[i]);
    }
    if (rc == 0)
        changes_forget(f, n);
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static int power_size(void *ctx, void *file, uint64_t *ret_bytes) {
    power *p = ctx;
    return p->inner->size(p->inner->ctx, ((handle *)file)->inner, ret_bytes);
}

static int power_lock(void *ctx, void *file) {
    power *p = ctx;
    return p->inner->lock(p->inner->ctx, ((handle *)file)->inner);
}

static int power_held(void *ctx, void *file, bool *ret_held) {
    power *p = ctx;
    return p->inner->held(p->inner->ctx, ((handle *)file)->inner, ret_held);
}

static int power_remove(void *ctx, const char *path) {
    power *p = ctx;
    pthread_mutex_lock(&p->lock);
    int rc = power_is_on(p, true) ? p->inner->remove(p->inner->ctx, path) : -EIO;
    pthread_mutex_unlock(&p->lock);
    return rc;
}

static int power_sync_directory(void *ctx, const char *path) {
    power *p = ctx;
    (void)path;
    pthread_mutex_lock(&p->lock);
    bool on = power_is_on(p, true);
    pthread_mutex_unlock(&p->lock);
    return on ? 0 : -EIO;
}

/* ---- life ---- */

power *power_new(uint32_t seed) {
    power *p = calloc(1, sizeof *p);
    assert(p);
    p->inner = d7_io_system();
    p->random = seed + UINT64_C(0x9e3779b97f4a7c15);
    p->calls_left = NEVER;
    pthread_mutex_init(&p->lock, NULL);
    p->table = (d7_io){.ctx = p,
                       .open = power_open,
                       .close = power_close,
                       .pread = power_pread,
                       .pwrite = power_pwrite,
                       .sync_data = power_sync_data,
                       .size = power_size,
                       .truncate = power_truncate,
                       .lock = power_lock,
                       .held = power_held,
                       .remove = power_remove,
                       .sync_directory = power_sync_directory};
    return p;
}

const d7_io *power_io(power *p) {
    return &p->table;
}

void power_off(power *p) {
    pthread_mutex_lock(&p->lock);
    p->off = true;
    pthread_mutex_unlock(&p->lock);
}

void power_off_after(power *p, unsigned n_calls) {
    pthread_mutex_lock(&p->lock);
    p->calls_left = (long)n_calls + 1;
    pthread_mutex_unlock(&p->lock);
}

void power_fail_sync(power *p, unsigned n) {
    pthread_mutex_lock(&p->lock);
    p->fail_sync = n;
    pthread_mutex_unlock(&p->lock);
}

void power_fill_disk(power *p, unsigned n, unsigned times) {
    pthread_mutex_lock(&p->lock);
    p->full_at = n;
    p->full_times = times;
    pthread_mutex_unlock(&p->lock);
}

void power_slow_syncs(power *p, unsigned ms) {
    pthread_mutex_lock(&p->lock);
    p->sync_ms = ms;
    pthread_mutex_unlock(&p->lock);
}

unsigned power_n_syncs(power *p) {
    pthread_mutex_lock(&p->lock);
    unsigned n = p->n_syncs;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static size_t length_after(const power_file *f, size_t *ret_longest) {
    size_t length = f->n_synced;
    *ret_longest = length;
    for (size_t i = 0; i < f->n_changes; i++) {
        const change *c = &f->changes[i];
        size_t end = (size_t)c->offset + c->bytes;
        length = !c->data || end > length ? end : length;
        *ret_longest = length > *ret_longest ? length : *ret_longest;
    }
    return length;
}

static void file_cut(power *p, power_file *f) {
    static const uint32_t chances[] = {0, 100, 50, 90, 10};
    uint32_t chance = chances[draw(p, sizeof chances / sizeof *chances)];
    size_t shortest = f->n_synced, longest, last = length_after(f, &longest);
    for (size_t i = 0; i < f->n_changes; i++)
        if (f->changes[i].data)
            image_apply_some(p, f, &f->changes[i], chance);
    if (last < shortest)
        shortest = last;
    size_t length = chance == 100 ? last : shortest + draw(p, (uint32_t)(longest - shortest) + 1);
    image_resize(f, length);
    ssize_t n = pwrite(f->fd, f->synced, f->n_synced, 0);
    int failed = ftruncate(f->fd, (off_t)length);
    assert(n == (ssize_t)f->n_synced && failed == 0);
    (void)n;
    (void)failed;
    for (size_t i = 0; i < f->n_changes; i++)
        f->changes[i].doubtful = false;
    changes_forget(f, f->n_changes);
}

void power_cut(power *p) {
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n_files; i++)
        file_cut(p, &p->files[i]);
    p->off = false;
    p->calls_left = NEVER;
    p->fail_sync = p->full_at = p->full_times = p->sync_ms = 0;
    pthread_mutex_unlock(&p->lock);
}

void power_free(power *p) {
    for (size_t i = 0; i < p->n_files; i++) {
        power_file *f = &p->files[i];
        for (size_t k = 0; k < f->n_changes; k++)
            free(f->changes[k].data);
        free(f->changes);
        free(f->synced);
        close(f->fd);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}
