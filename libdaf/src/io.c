#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int system_open(void *context, int dirfd, const char *path, int flags, mode_t mode) {
    (void)context;
    return openat(dirfd, path, flags, mode);
}

static int system_close(void *context, int fd) {
    (void)context;
    return close(fd);
}

static ssize_t system_pread(void *context, int fd, void *data, size_t bytes, off_t offset) {
    (void)context;
    return pread(fd, data, bytes, offset);
}

static ssize_t system_pwrite(void *context, int fd, const void *data, size_t bytes, off_t offset) {
    (void)context;
    return pwrite(fd, data, bytes, offset);
}

static int system_truncate(void *context, int fd, off_t bytes) {
    (void)context;
    return ftruncate(fd, bytes);
}

static int system_sync(void *context, int fd) {
    (void)context;
    return fsync(fd);
}

static int system_rename(void *context, int dirfd, const char *from, const char *to) {
    (void)context;
    return renameat(dirfd, from, dirfd, to);
}

static int system_link(void *context, int dirfd, const char *from, const char *to) {
    (void)context;
    return linkat(dirfd, from, dirfd, to, 0);
}

static int system_link_from(void *context, int from_dirfd, const char *from, int dirfd, const char *to) {
    (void)context;
    return linkat(from_dirfd, from, dirfd, to, 0);
}

static int system_unlink(void *context, int dirfd, const char *path, int flags) {
    (void)context;
    return unlinkat(dirfd, path, flags);
}

static int system_mkdir(void *context, int dirfd, const char *path, mode_t mode) {
    (void)context;
    return mkdirat(dirfd, path, mode);
}

const daf_io daf__system_io = {
    .open = system_open,
    .close = system_close,
    .pread = system_pread,
    .pwrite = system_pwrite,
    .truncate = system_truncate,
    .sync = system_sync,
    .rename = system_rename,
    .link = system_link,
    .link_from = system_link_from,
    .unlink = system_unlink,
    .mkdir = system_mkdir,
};

int daf__read_all(const daf_io *io, int fd, void *data, size_t bytes, uint64_t offset) {
    uint8_t *to = data;
    while (bytes > 0) {
        ssize_t n = io->pread(io->context, fd, to, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return DAF__SHORT_READ;
        to += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

int daf__write_all(const daf_io *io, int fd, const void *data, size_t bytes, uint64_t offset) {
    const uint8_t *from = data;
    while (bytes > 0) {
        ssize_t n = io->pwrite(io->context, fd, from, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return ENOSPC;
        from += n;
        bytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}
