/* Files below an open folder, wherever its path leads by now. Where the kernel has no openat2(2), the folders on the way are opened one
 * by one. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "d7/d7.h"
#include "io_system.h"

enum { BENEATH_NAME_BYTES = 256 };

/* The path from the folder on; NULL: it lies elsewhere. */
static const char *beneath_rest(const d7_io_folder *folder, const char *path) {
    size_t n = strlen(folder->path);
    if (strncmp(path, folder->path, n) != 0 || path[n] != '/')
        return NULL;
    path += n;
    while (*path == '/')
        path++;
    return *path ? path : NULL;
}

/* The folder that `rest` lies in, and its name there. Returns a descriptor or a negative errno. */
static int beneath_parent(int fd, const char *rest, const char **ret_name) {
    int at = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    const char *slash;
    while (at >= 0 && (slash = strchr(rest, '/'))) {
        char name[BENEATH_NAME_BYTES];
        size_t n = (size_t)(slash - rest);
        if (n >= sizeof name || (n == 2 && memcmp(rest, "..", 2) == 0)) {
            close(at);
            return n == 2 ? -EXDEV : -ENAMETOOLONG;
        }
        memcpy(name, rest, n);
        name[n] = 0;
        int next = openat(at, n ? name : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int failed = errno;
        close(at);
        if (next < 0)
            return failed == ENOTDIR ? -ELOOP : -failed;
        at = next;
        rest = slash + 1;
    }
    *ret_name = rest;
    return at < 0 ? -errno : at;
}

static int beneath_open_slowly(int fd, const char *rest, int how, unsigned mode) {
    const char *name;
    int parent = beneath_parent(fd, rest, &name);
    if (parent < 0)
        return parent;
    int opened = strcmp(name, "..") == 0 ? (errno = EXDEV, -1) : openat(parent, name, how | O_NOFOLLOW, mode);
    int failed = errno;
    close(parent);
    return opened < 0 ? -failed : opened;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BENEATH_IS_WATCHED
#endif
#elif defined(__SANITIZE_THREAD__)
#define BENEATH_IS_WATCHED
#endif

/* The thread sanitizer sees neither openat(2) nor openat2(2): it would take the descriptor for one that another thread had under this
 * number before. There it gets one that it has seen come. */
static int beneath_seen(int fd) {
#ifdef BENEATH_IS_WATCHED
    int seen = fd < 0 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (seen >= 0 && syscall(SYS_dup3, fd, seen, O_CLOEXEC) == seen) {
        (void)syscall(SYS_close, fd);
        return seen;
    }
#endif
    return fd;
}

/* Returns a descriptor or a negative errno. */
static int beneath_open_fd(const d7_io_folder *folder, const char *rest, int how, unsigned mode) {
    const struct open_how strictly = {.flags = (unsigned)how,
                                      .mode = how & O_CREAT ? mode : 0,
                                      .resolve =
                                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, folder->fd, rest, &strictly, sizeof strictly);
    bool taken =
        fd < 0 && errno == ELOOP && how & O_EXCL; /* by a link, where there should be nothing: -EEXIST */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN || taken))
        return beneath_open_slowly(folder->fd, rest, how, mode);
    return fd < 0 ? -errno : (int)fd;
}

static int beneath_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    const char *rest = beneath_rest(ctx, path);
    int fd = rest ? beneath_open_fd(ctx, rest, d7__io_open_flags(flags), mode) : -EXDEV;
    return fd < 0 ? fd : d7__io_adopt(beneath_seen(fd), ret_file);
}

/* Looks for the folder of `path`. Returns a descriptor or a negative errno. */
static int beneath_folder_of(const d7_io_folder *folder, const char *path, const char **ret_name) {
    const char *rest = beneath_rest(folder, path);
    return rest ? beneath_parent(folder->fd, rest, ret_name) : -EXDEV;
}

static int beneath_remove(void *ctx, const char *path) {
    const char *name;
    int parent = beneath_folder_of(ctx, path, &name);
    if (parent < 0)
        return parent;
    int failed = unlinkat(parent, name, 0) == 0 ? 0 : -errno;
    close(parent);
    return failed;
}

static int beneath_sync_directory(void *ctx, const char *path) {
    const char *name;
    int parent = beneath_folder_of(ctx, path, &name);
    if (parent < 0)
        return parent;
    int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    close(parent);
    return failed;
}

static int beneath_same(void *ctx, void *file, const char *path, bool *ret_same) {
    const char *name;
    struct stat open_file, at_path;
    int parent = beneath_folder_of(ctx, path, &name);
    if (parent < 0)
        return parent;
    int failed =
        fstat(d7__io_fd(file), &open_file) != 0 || fstatat(parent, name, &at_path, AT_SYMLINK_NOFOLLOW) != 0
            ? -errno
            : 0;
    close(parent);
    if (!failed)
        *ret_same = open_file.st_ino == at_path.st_ino && open_file.st_dev == at_path.st_dev;
    return failed;
}

d7_io d7_io_beneath(const d7_io_folder *folder) {
    d7_io io = *d7_io_system();
    io.ctx = (void *)(uintptr_t)folder;
    io.open = beneath_open;
    io.resolve = NULL; /* there are no links */
    io.remove = beneath_remove;
    io.sync_directory = beneath_sync_directory;
    io.same = beneath_same;
    return io;
}
