/* The operating system's files.
 *
 * Locks are open-file-description locks: they belong to the open file and not to the process, so that closing
 * some other descriptor does not drop them, two handles in one process see each other, and a crash releases
 * them. A reader only asks (F_OFD_GETLK) and never holds one, so no reader can keep a writer from its file.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "d7/d7.h"
#include "io_system.h"

_Static_assert(sizeof(off_t) == 8, "files are larger than 4 GB");

typedef struct system_file {
    int fd;
} system_file;

int d7__io_fd(const void *file) {
    return ((const system_file *)file)->fd;
}

int d7__io_adopt(int fd, void **ret_file) {
    system_file *file = malloc(sizeof *file);
    if (!file) {
        close(fd);
        return -ENOMEM;
    }
    file->fd = fd;
    *ret_file = file;
    return 0;
}

int d7__io_open_flags(int flags) {
    int how = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (flags & D7_IO_WRITE ? O_RDWR : O_RDONLY);
    how |= flags & D7_IO_CREATE ? O_CREAT : 0;
    return how | (flags & D7_IO_EXCLUSIVE ? O_EXCL : 0);
}

static int io_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    (void)ctx;
    int fd = open(path, d7__io_open_flags(flags), mode);
    return fd < 0 ? -errno : d7__io_adopt(fd, ret_file);
}

static int io_close(void *ctx, void *file) {
    (void)ctx;
    /* Linux closes the descriptor also when it reports an error, EINTR included. */
    int rc = close(d7__io_fd(file)) == 0 || errno == EINTR ? 0 : -errno;
    free(file);
    return rc;
}

static int64_t io_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    (void)ctx;
    ssize_t n = pread(d7__io_fd(file), buffer, bytes, (off_t)offset);
    return n >= 0 ? n : -errno;
}

static int64_t io_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    (void)ctx;
    ssize_t n = pwrite(d7__io_fd(file), data, bytes, (off_t)offset);
    return n >= 0 ? n : -errno;
}

static int io_sync_data(void *ctx, void *file) {
    (void)ctx;
    return fdatasync(d7__io_fd(file)) == 0 ? 0 : -errno;
}

static int io_size(void *ctx, void *file, uint64_t *ret_bytes) {
    (void)ctx;
    struct stat st;
    if (fstat(d7__io_fd(file), &st) != 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    *ret_bytes = (uint64_t)st.st_size;
    return 0;
}

static int io_truncate(void *ctx, void *file, uint64_t bytes) {
    (void)ctx;
    return ftruncate(d7__io_fd(file), (off_t)bytes) == 0 ? 0 : -errno;
}

static int io_lock(void *ctx, void *file) {
    (void)ctx;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(d7__io_fd(file), F_OFD_SETLK, &whole) == 0)
        return 0;
    return errno == EACCES ? -EAGAIN : -errno;
}

static int io_held(void *ctx, void *file, bool *ret_held) {
    (void)ctx;
    struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (fcntl(d7__io_fd(file), F_OFD_GETLK, &whole) != 0)
        return -errno;
    *ret_held = whole.l_type != F_UNLCK;
    return 0;
}

static int io_remove(void *ctx, const char *path) {
    (void)ctx;
    return unlink(path) == 0 ? 0 : -errno;
}

static int io_sync_directory(void *ctx, const char *path) {
    (void)ctx;
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) != 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    free(copy);
    return rc;
}

static int io_same(void *ctx, void *file, const char *path, bool *ret_same) {
    (void)ctx;
    struct stat open_file, at_path;
    if (fstat(d7__io_fd(file), &open_file) != 0 || stat(path, &at_path) != 0)
        return -errno;
    *ret_same = open_file.st_ino == at_path.st_ino && open_file.st_dev == at_path.st_dev;
    return 0;
}

static int io_set_group(void *ctx, void *file, uint32_t group) {
    (void)ctx;
    return fchown(d7__io_fd(file), (uid_t)-1, (gid_t)group) == 0 ? 0 : -errno;
}

static int io_allocate(void *ctx, void *file, uint64_t offset, uint64_t bytes) {
    (void)ctx;
    return fallocate(d7__io_fd(file), FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) == 0 ? 0 : -errno;
}

static int io_resolve(void *ctx, const char *path, char *ret_path, size_t cap) {
    struct stat st;
    (void)ctx;
    if (lstat(path, &st) != 0 || !S_ISLNK(st.st_mode))
        return -EINVAL;
    char *real = realpath(path, NULL);
    int rc = !real ? -errno : strlen(real) < cap ? 0 : -ENAMETOOLONG;
    if (rc == 0)
        strcpy(ret_path, real);
    free(real);
    return rc;
}

const d7_io *d7_io_system(void) {
    static const d7_io system_io = {
        .open = io_open,
        .close = io_close,
        .pread = io_pread,
        .pwrite = io_pwrite,
        .sync_data = io_sync_data,
        .size = io_size,
        .truncate = io_truncate,
        .lock = io_lock,
        .held = io_held,
        .remove = io_remove,
        .sync_directory = io_sync_directory,
        .set_group = io_set_group,
        .same = io_same,
        .allocate = io_allocate,
        .resolve = io_resolve,
    };
    return &system_io;
}
