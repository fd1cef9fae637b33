#include "disk_model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILES = 1024, PATH_BYTES = 96, SECTOR = DISK_SECTOR_BYTES };

typedef struct sector {
    uint8_t durable[SECTOR];
    uint8_t (*version)[SECTOR]; /* [n] written since, the last one is what programs see */
    size_t n, cap;
    size_t n_at_sync;  /* of them when the sync under way began */
    size_t n_given_up; /* of them when a sync failed: these are not written by later syncs */
} sector;

typedef struct disk_file {
    char path[PATH_BYTES];
    bool linked, linked_durably;
    uint8_t *now; /* [size] */
    size_t size, cap;
    size_t durable_size;
    sector *sectors; /* [n_sectors] */
    size_t n_sectors;
    bool syncing;
    size_t size_at_sync;
    void *lock_holder;
    uint64_t bytes_read;
} disk_file;

typedef struct disk_handle {
    disk_file *file;
    struct disk_handle *next;
} disk_handle;

struct disk {
    d7_io io;
    uint64_t state; /* of the random numbers */
    disk_file *files[MAX_FILES];
    size_t n_files;
    disk_handle *handles;
    disk_faults faults;
    long changes;
    bool dead;
};

/* ---- random numbers: splitmix64 ---- */

uint64_t disk_random(disk *d, uint64_t n) {
    uint64_t z = d->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % n;
}

bool disk_chance(disk *d, unsigned per_mille) {
    return disk_random(d, 1000) < per_mille;
}

/* ---- memory ---- */

static void *grown(void *old, size_t bytes) {
    void *memory = realloc(old, bytes ? bytes : 1);
    if (!memory)
        abort();
    return memory;
}

static sector *sector_of(disk_file *f, size_t k) {
    if (k >= f->n_sectors) {
        size_t n = 2 * k + 8;
        f->sectors = grown(f->sectors, n * sizeof *f->sectors);
        memset(f->sectors + f->n_sectors, 0, (n - f->n_sectors) * sizeof *f->sectors);
        f->n_sectors = n;
    }
    return &f->sectors[k];
}

/* What programs see in sector k, zeros past the end. */
static void sector_now(const disk_file *f, size_t k, uint8_t out[SECTOR]) {
    size_t from = k * SECTOR, n = f->size > from ? f->size - from : 0;
    n = n < SECTOR ? n : SECTOR;
    memset(out, 0, SECTOR);
    if (n)
        memcpy(out, f->now + from, n);
}

static void sector_written(disk_file *f, size_t k) {
    sector *s = sector_of(f, k);
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 2;
        s->version = grown(s->version, s->cap * sizeof *s->version);
    }
    sector_now(f, k, s->version[s->n++]);
}

static void file_resize(disk_file *f, size_t size) {
    if (size > f->cap) {
        f->cap = 2 * size;
        f->now = grown(f->now, f->cap);
    }
    if (size > f->size)
        memset(f->now + f->size, 0, size - f->size);
    f->size = size;
}

static void file_write(disk_file *f, const void *data, size_t bytes, size_t offset) {
    if (bytes == 0)
        return;
    if (offset + bytes > f->size)
        file_resize(f, offset + bytes);
    memcpy(f->now + offset, data, bytes);
    for (size_t k = offset / SECTOR; k <= (offset + bytes - 1) / SECTOR; k++)
        sector_written(f, k);
}

static void file_truncate(disk_file *f, size_t size) {
    file_resize(f, size);
    if (size % SECTOR)
        sector_written(f, size / SECTOR);
}

/* ---- syncs ---- */

static void file_begin_sync(disk_file *f) {
    f->syncing = true;
    f->size_at_sync = f->size;
    for (size_t k = 0; k < f->n_sectors; k++)
        f->sectors[k].n_at_sync = f->sectors[k].n;
}

static void sector_synced(sector *s) {
    size_t n = s->n_at_sync;
    if (n <= s->n_given_up)
        return;
    memcpy(s->durable, s->version[n - 1], SECTOR);
    memmove(s->version, s->version[n], (s->n - n) * sizeof *s->version);
    s->n -= n;
    s->n_given_up = 0;
}

/* Nothing past the end of a file that was cut comes back. */
static void sector_cut_off(sector *s) {
    size_t n = s->n_at_sync;
    memset(s->durable, 0, SECTOR);
    if (n)
        memmove(s->version, s->version[n], (s->n - n) * sizeof *s->version);
    s->n -= n;
    s->n_given_up = 0;
}

/* A size that grew with data which was given up is as unknown as that data. */
static bool size_synced(disk_file *f) {
    if (f->size_at_sync <= f->durable_size)
        return true;
    const sector *last = sector_of(f, (f->size_at_sync - 1) / SECTOR);
    return last->n_given_up == 0 || last->n_at_sync > last->n_given_up;
}

static void file_finish_sync(disk_file *f, bool succeeds) {
    if (!f->syncing)
        return;
    f->syncing = false;
    bool sized = succeeds && size_synced(f);
    for (size_t k = 0; k < f->n_sectors; k++) {
        sector *s = &f->sectors[k];
        if (succeeds && sized && k * SECTOR >= f->size_at_sync)
            sector_cut_off(s);
        else if (succeeds)
            sector_synced(s);
        else if (s->n_at_sync > s->n_given_up)
            s->n_given_up = s->n_at_sync;
        s->n_at_sync = 0;
    }
    if (sized)
        f->durable_size = f->size_at_sync;
}

static void file_power_cut(disk *d, disk_file *f) {
    bool larger = f->size > f->durable_size;
    size_t low = larger ? f->durable_size : f->size, high = larger ? f->size : f->durable_size;
    size_t choice[3] = {low, high, low + (size_t)disk_random(d, high - low + 1)};
    size_t size = choice[disk_random(d, 3)];
    file_resize(f, size);
    for (size_t k = 0; k < f->n_sectors; k++) {
        sector *s = &f->sectors[k];
        size_t version = (size_t)disk_random(d, s->n + 1);
        if (version > 0)
            memcpy(s->durable, s->version[version - 1], SECTOR);
        size_t from = k * SECTOR, n = size > from ? size - from : 0;
        n = n < SECTOR ? n : SECTOR;
        memset(s->durable + n, 0, SECTOR - n);
        if (n)
            memcpy(f->now + from, s->durable, n);
        s->n = s->n_at_sync = s->n_given_up = 0;
    }
    f->durable_size = size;
    f->syncing = false;
}

/* ---- names ---- */

static disk_file *find_file(const disk *d, const char *path) {
    for (size_t i = 0; i < d->n_files; i++)
        if (d->files[i]->linked && strcmp(d->files[i]->path, path) == 0)
            return d->files[i];
    return NULL;
}

static disk_file *new_file(disk *d, const char *path) {
    if (d->n_files == MAX_FILES || strlen(path) >= PATH_BYTES)
        abort();
    disk_file *f = grown(NULL, sizeof *f);
    memset(f, 0, sizeof *f);
    snprintf(f->path, sizeof f->path, "%s", path);
    f->linked = true;
    d->files[d->n_files++] = f;
    return f;
}

static void free_file(disk_file *f) {
    for (size_t k = 0; k < f->n_sectors; k++)
        free(f->sectors[k].version);
    free(f->sectors);
    free(f->now);
    free(f);
}

static bool is_open(const disk *d, const disk_file *f) {
    for (const disk_handle *h = d->handles; h; h = h->next)
        if (h->file == f)
            return true;
    return false;
}

/* Files that no name leads to, on the disk either, are gone with their last handle. */
static void forget_unlinked(disk *d) {
    size_t n = 0;
    for (size_t i = 0; i < d->n_files; i++) {
        if (d->files[i]->linked || d->files[i]->linked_durably || is_open(d, d->files[i]))
            d->files[n++] = d->files[i];
        else
            free_file(d->files[i]);
    }
    d->n_files = n;
}

/* ---- faults ---- */

/* Counts a changing call. Returns 0, or the negative errno with which it fails, which is also in *ret_errno;
 * a program that is dead already gets -EIO. */
static int change(disk *d, int *ret_errno) {
    if (d->dead)
        return -EIO;
    long call = ++d->changes;
    *ret_errno = 0;
    if (d->faults.dies_after >= 0 && call > d->faults.dies_after) {
        d->dead = true;
        *ret_errno = EIO;
    } else if (d->faults.fails_at == call) {
        *ret_errno = d->faults.fail_errno;
    }
    return -*ret_errno;
}

void disk_set_faults(disk *d, const disk_faults *faults) {
    d->faults = *faults;
    d->changes = 0;
    d->dead = false;
}

long disk_changes(const disk *d) {
    return d->changes;
}

bool disk_dead(const disk *d) {
    return d->dead;
}

/* ---- the table ---- */

static disk_file *file_of(void *handle) {
    return ((const disk_handle *)handle)->file;
}

static int model_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    disk *d = ctx;
    (void)mode;
    if (d->dead)
        return -EIO;
    disk_file *f = find_file(d, path);
    if (f && (flags & D7_IO_EXCLUSIVE))
        return -EEXIST;
    if (!f && !(flags & D7_IO_CREATE))
        return -ENOENT;
    if (!f) {
        int failure;
        int rc = change(d, &failure);
        if (rc != 0)
            return rc;
        f = new_file(d, path);
    }
    disk_handle *h = grown(NULL, sizeof *h);
    *h = (disk_handle){.file = f, .next = d->handles};
    d->handles = h;
    *ret_file = h;
    return 0;
}

static int model_close(void *ctx, void *file) {
    disk *d = ctx;
    for (disk_handle **h = &d->handles; *h; h = &(*h)->next)
        if (*h == file) {
            *h = (*h)->next;
            break;
        }
    if (file_of(file)->lock_holder == file)
        file_of(file)->lock_holder = NULL;
    free(file);
    return 0;
}

static size_t moved(const disk *d, size_t bytes) {
    return d->faults.transfer_max && bytes > d->faults.transfer_max ? d->faults.transfer_max : bytes;
}

static int64_t model_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    const disk *d = ctx;
    disk_file *f = file_of(file);
    if (d->dead)
        return -EIO;
    if (offset >= f->size)
        return 0;
    size_t n = f->size - (size_t)offset < bytes ? f->size - (size_t)offset : bytes;
    n = moved(d, n);
    memcpy(buffer, f->now + offset, n);
    f->bytes_read += n;
    return (int64_t)n;
}

static int64_t model_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    disk *d = ctx;
    int failure = 0;
    size_t n = moved(d, bytes);
    bool was_dead = d->dead;
    int rc = change(d, &failure);
    if (rc == 0 && d->faults.no_room_per_mille && disk_chance(d, d->faults.no_room_per_mille))
        rc = -ENOSPC;
    if (rc != 0 && !was_dead)
        n = (size_t)disk_random(d, n + 1);
    if (!was_dead)
        file_write(file_of(file), data, n, (size_t)offset);
    return rc != 0 ? rc : (int64_t)n;
}

static int model_sync_data(void *ctx, void *file) {
    disk *d = ctx;
    int failure;
    int rc = change(d, &failure);
    if (d->dead)
        return rc;
    if (rc == 0 && d->faults.sync_per_mille && disk_chance(d, d->faults.sync_per_mille))
        rc = -EIO;
    file_begin_sync(file_of(file));
    file_finish_sync(file_of(file), rc == 0);
    return rc;
}

static int model_size(void *ctx, void *file, uint64_t *ret_bytes) {
    const disk *d = ctx;
    if (d->dead)
        return -EIO;
    *ret_bytes = file_of(file)->size;
    return 0;
}

static int model_truncate(void *ctx, void *file, uint64_t bytes) {
    disk *d = ctx;
    int failure;
    int rc = change(d, &failure);
    if (rc == 0)
        file_truncate(file_of(file), (size_t)bytes);
    return rc;
}

static int model_lock(void *ctx, void *file) {
    (void)ctx;
    disk_file *f = file_of(file);
    if (f->lock_holder && f->lock_holder != file)
        return -EAGAIN;
    f->lock_holder = file;
    return 0;
}

static int model_held(void *ctx, void *file, bool *ret_held) {
    (void)ctx;
    const disk_file *f = file_of(file);
    *ret_held = f->lock_holder && f->lock_holder != file;
    return 0;
}

static int model_remove(void *ctx, const char *path) {
    disk *d = ctx;
    int failure;
    disk_file *f = find_file(d, path);
    if (!f)
        return d->dead ? -EIO : -ENOENT;
    int rc = change(d, &failure);
    if (rc == 0)
        f->linked = false;
    return rc;
}

/* There is one folder. */
static int model_sync_directory(void *ctx, const char *path) {
    disk *d = ctx;
    (void)path;
    int failure;
    int rc = change(d, &failure);
    for (size_t i = 0; i < d->n_files && rc == 0; i++)
        d->files[i]->linked_durably = d->files[i]->linked;
    if (rc == 0)
        forget_unlinked(d);
    return rc;
}

/* ---- the disk ---- */

disk *disk_new(uint64_t seed) {
    disk *d = grown(NULL, sizeof *d);
    *d = (disk){.state = seed, .faults = {.dies_after = -1}};
    d->io = (d7_io){.ctx = d,
                    .open = model_open,
                    .close = model_close,
                    .pread = model_pread,
                    .pwrite = model_pwrite,
                    .sync_data = model_sync_data,
                    .size = model_size,
                    .truncate = model_truncate,
                    .lock = model_lock,
                    .held = model_held,
                    .remove = model_remove,
                    .sync_directory = model_sync_directory};
    return d;
}

void disk_free(disk *d) {
    for (size_t i = 0; i < d->n_files; i++)
        free_file(d->files[i]);
    free(d);
}

const d7_io *disk_io(disk *d) {
    return &d->io;
}

const uint8_t *disk_content(const disk *d, const char *path, size_t *ret_bytes) {
    const disk_file *f = find_file(d, path);
    if (!f)
        return NULL;
    *ret_bytes = f->size;
    return f->now ? f->now : (const uint8_t *)"";
}

uint64_t disk_bytes_read(const disk *d, const char *path) {
    const disk_file *f = find_file(d, path);
    return f ? f->bytes_read : 0;
}

void disk_put(disk *d, const char *path, const void *data, size_t bytes) {
    disk_file *f = find_file(d, path);
    if (!f)
        f = new_file(d, path);
    file_truncate(f, 0);
    file_write(f, data, bytes, 0);
    f->linked_durably = true;
    file_begin_sync(f);
    file_finish_sync(f, true);
}

void disk_begin_sync(disk *d, const char *path) {
    disk_file *f = find_file(d, path);
    if (!f)
        abort();
    file_begin_sync(f);
}

void disk_finish_sync(disk *d, const char *path, bool succeeds) {
    disk_file *f = find_file(d, path);
    if (!f)
        abort();
    file_finish_sync(f, succeeds);
}

/* Handles stay allocated until their owner closes them, as an owner's memory does not outlive a real kill. */
void disk_kill(disk *d) {
    for (size_t i = 0; i < d->n_files; i++) {
        d->files[i]->syncing = false;
        d->files[i]->lock_holder = NULL;
    }
    d->dead = false;
    d->faults = (disk_faults){.dies_after = -1};
}

void disk_power_cut(disk *d) {
    disk_kill(d);
    for (size_t i = 0; i < d->n_files; i++) {
        disk_file *f = d->files[i];
        file_power_cut(d, f);
        if (f->linked != f->linked_durably)
            f->linked = disk_chance(d, 500);
        f->linked_durably = f->linked;
    }
    forget_unlinked(d);
}
