#include "memio.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Counts a call; the negative errno with which it is to fail, or 0. */
static int memio_call(memio *m, enum memio_op op) {
    long call = ++m->calls[op];
    if (m->eintr_every && op >= MEMIO_PREAD && op <= MEMIO_SYNC && ++m->interrupted % m->eintr_every == 0)
        return -EINTR;
    if (m->fail_errno && m->fail_op == op && call >= m->fail_at && call - m->fail_at < m->fail_times)
        return -m->fail_errno;
    return 0;
}

static void memio_reserve(memio *m, size_t n) {
    if (n <= m->cap)
        return;
    m->cap = 2 * n;
    m->data = realloc(m->data, m->cap);
    if (!m->data)
        abort();
}

void memio_set(memio *m, const void *data, size_t n) {
    memio_reserve(m, n + 1);
    memcpy(m->data, data, n);
    m->n = n;
    m->exists = true;
}

void memio_free(memio *m) {
    free(m->data);
    *m = (memio){0};
}

static bool ends_in(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

/* There is one file only, and so none beside it. */
static bool is_beside(const char *path) {
    return ends_in(path, D7_TAIL_SUFFIX) || ends_in(path, ".crc");
}

static int memio_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    memio *m = ctx;
    (void)mode;
    if (is_beside(path))
        return -ENOENT;
    int rc = memio_call(m, MEMIO_OPEN);
    if (rc != 0)
        return rc;
    if (m->exists && (flags & D7_IO_EXCLUSIVE))
        return -EEXIST;
    if (!m->exists && !(flags & D7_IO_CREATE))
        return -ENOENT;
    m->exists = true;
    *ret_file = m->opened_memory = malloc(1);
    return 0;
}

static int memio_close(void *ctx, void *file) {
    memio *m = ctx;
    free(file);
    m->opened_memory = NULL;
    return memio_call(m, MEMIO_CLOSE);
}

static int64_t memio_pread_locked(memio *m, void *buffer, size_t bytes, uint64_t offset) {
    int rc = memio_call(m, MEMIO_PREAD);
    if (rc != 0)
        return rc;
    if (offset >= m->n)
        return 0;
    size_t n = m->n - (size_t)offset < bytes ? m->n - (size_t)offset : bytes;
    if (m->transfer_max && n > m->transfer_max)
        n = m->transfer_max;
    memcpy(buffer, m->data + offset, n);
    m->bytes_read += n;
    return (int64_t)n;
}

/* The lanes of a reader read at the same time. */
static int64_t memio_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    memio *m = ctx;
    (void)file;
    pthread_mutex_lock(&m->reading);
    int64_t rc = memio_pread_locked(m, buffer, bytes, offset);
    pthread_mutex_unlock(&m->reading);
    return rc;
}

static int64_t memio_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    memio *m = ctx;
    (void)file;
    int rc = memio_call(m, MEMIO_PWRITE);
    if (rc != 0)
        return rc;
    if (m->transfer_max && bytes > m->transfer_max)
        bytes = m->transfer_max;
    if (m->capacity && offset + bytes > m->capacity)
        bytes = offset < m->capacity ? (size_t)(m->capacity - offset) : 0;
    if (bytes == 0)
        return -ENOSPC;
    memio_reserve(m, (size_t)offset + bytes);
    if (offset > m->n)
        memset(m->data + m->n, 0, (size_t)offset - m->n);
    memcpy(m->data + offset, data, bytes);
    if (offset + bytes > m->n)
        m->n = (size_t)offset + bytes;
    return (int64_t)bytes;
}

static int memio_sync(void *ctx, void *file) {
    memio *m = ctx;
    (void)file;
    int rc = memio_call(m, MEMIO_SYNC);
    if (rc == 0)
        m->synced = m->n;
    return rc;
}

static int memio_size(void *ctx, void *file, uint64_t *ret_bytes) {
    memio *m = ctx;
    (void)file;
    int rc = memio_call(m, MEMIO_SIZE);
    if (rc == 0)
        *ret_bytes = m->n;
    return rc;
}

static int memio_truncate(void *ctx, void *file, uint64_t bytes) {
    memio *m = ctx;
    (void)file;
    int rc = memio_call(m, MEMIO_TRUNCATE);
    if (rc == 0)
        m->n = (size_t)bytes;
    return rc;
}

static int memio_lock(void *ctx, void *file) {
    const memio *m = ctx;
    (void)file;
    return m->held ? -EAGAIN : -m->lock_errno;
}

static int memio_held(void *ctx, void *file, bool *ret_held) {
    const memio *m = ctx;
    (void)file;
    if (m->lock_errno)
        return -m->lock_errno;
    *ret_held = m->held;
    return 0;
}

static int memio_remove(void *ctx, const char *path) {
    memio *m = ctx;
    if (is_beside(path))
        return -ENOENT;
    m->exists = false;
    m->n = 0;
    return 0;
}

d7_io memio_table(memio *m) {
    return (d7_io){.ctx = m,
                   .open = memio_open,
                   .close = memio_close,
                   .pread = memio_pread,
                   .pwrite = memio_pwrite,
                   .sync_data = memio_sync,
                   .size = memio_size,
                   .truncate = memio_truncate,
                   .lock = memio_lock,
                   .held = memio_held,
                   .remove = memio_remove};
}

/* In front of each piece: its size. */
enum { SIZE_BYTES = 16 };

static size_t piece_bytes(const void *memory) {
    size_t bytes = 0;
    if (memory)
        memcpy(&bytes, (const uint8_t *)memory - SIZE_BYTES, sizeof bytes);
    return bytes;
}

static void *piece_start(void *memory) {
    return memory ? (uint8_t *)memory - SIZE_BYTES : NULL;
}

static void *memcount_resize(void *ctx, void *old, size_t bytes) {
    memcount *c = ctx;
    size_t before = piece_bytes(old);
    c->calls += c->fail_at != 0;
    bool fails =
        c->fail_at && c->calls >= c->fail_at && (!c->fail_times || c->calls - c->fail_at < c->fail_times);
    if (fails || bytes > SIZE_MAX - SIZE_BYTES)
        return NULL;
    uint8_t *memory = realloc(piece_start(old), SIZE_BYTES + bytes);
    if (!memory)
        return NULL;
    memcpy(memory, &bytes, sizeof bytes);
    c->outstanding += !old;
    c->bytes += bytes - before;
    c->peak = c->bytes > c->peak ? c->bytes : c->peak;
    return memory + SIZE_BYTES;
}

static void memcount_release(void *ctx, void *old) {
    memcount *c = ctx;
    c->outstanding -= old != NULL;
    c->bytes -= piece_bytes(old);
    free(piece_start(old));
}

d7_alloc memcount_table(memcount *c) {
    return (d7_alloc){.ctx = c, .resize = memcount_resize, .release = memcount_release};
}
