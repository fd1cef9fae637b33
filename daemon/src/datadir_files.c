/* Single files of the data folder: each step of a name is taken from a descriptor, and none is a symbolic link. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datadir.h"

enum { BLOCK_BYTES = 512 }; /* of st_blocks */

/* Where a file lies: the folder or PD_HIDDEN_NAME in it, and its name there. */
typedef struct file_place {
    int fd; /* or a negative errno */
    bool owned;
    const char *name;
} file_place;

static file_place place_of(const pd_datadir *dir, const char *file) {
    static const char hidden[] = PD_HIDDEN_NAME "/";
    file_place p = {.fd = dir->fd, .name = file};
    if (strncmp(file, hidden, sizeof hidden - 1) == 0) {
        p.name = file + sizeof hidden - 1;
        p.fd = openat(dir->fd, PD_HIDDEN_NAME, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        p.owned = p.fd >= 0;
        if (p.fd < 0)
            p.fd = errno == ENOTDIR ? -ELOOP : -errno;
    }
    if (!*p.name || strchr(p.name, '/') || strcmp(p.name, ".") == 0 || strcmp(p.name, "..") == 0) {
        if (p.owned)
            close(p.fd);
        p = (file_place){.fd = -EXDEV, .name = p.name};
    }
    return p;
}

/* Returns 0 or the negative errno of what came to `result`. */
static int place_leave(const file_place *p, int result) {
    int failed = result < 0 ? -errno : 0;
    if (p->owned)
        close(p->fd);
    return failed;
}

const char *pd_datadir_within(const pd_datadir *dir, const char *path) {
    size_t n = strlen(dir->path);
    return strncmp(path, dir->path, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

int pd_datadir_open_file(const pd_datadir *dir, const char *file, int flags, unsigned mode) {
    file_place p = place_of(dir, file);
    if (p.fd < 0)
        return p.fd;
    int fd = openat(p.fd, p.name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
    int failed = place_leave(&p, fd);
    return failed ? failed : fd;
}

int pd_datadir_look(const pd_datadir *dir, const char *file, struct stat *ret) {
    file_place p = place_of(dir, file);
    return p.fd < 0 ? p.fd : place_leave(&p, fstatat(p.fd, p.name, ret, AT_SYMLINK_NOFOLLOW));
}

int pd_datadir_remove(const pd_datadir *dir, const char *file) {
    file_place p = place_of(dir, file);
    return p.fd < 0 ? p.fd : place_leave(&p, unlinkat(p.fd, p.name, 0));
}

int pd_datadir_give_back(const pd_datadir *dir, const char *file) {
    struct stat there;
    int fd = pd_datadir_open_file(dir, file, O_RDWR | O_NONBLOCK, 0), failed = 0;
    if (fd < 0)
        return fd;
    if (fstat(fd, &there) != 0)
        failed = -errno;
    else if (S_ISREG(there.st_mode) && there.st_blocks * BLOCK_BYTES > there.st_size + there.st_blksize &&
             ftruncate(fd, there.st_size) != 0)
        failed = -errno;
    close(fd);
    return failed;
}

/* Where renameat2() cannot refuse to replace, a hard link can; where there are no hard links, the lock on the folder
 * and the check are what is left. */
static int rename_to_nothing(const file_place *from, const file_place *to) {
    struct stat there;
    if (renameat2(from->fd, from->name, to->fd, to->name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return -1;
    if (linkat(from->fd, from->name, to->fd, to->name, 0) == 0)
        return unlinkat(from->fd, from->name, 0);
    if (errno == EEXIST)
        return -1;
    if (fstatat(to->fd, to->name, &there, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return -1;
    }
    return renameat(from->fd, from->name, to->fd, to->name);
}

static int files_rename(const pd_datadir *dir, const char *from, const char *to, bool replace) {
    file_place a = place_of(dir, from), b = place_of(dir, to);
    int failed = a.fd < 0 ? a.fd : b.fd < 0 ? b.fd : 0;
    if (!failed && (replace ? renameat(a.fd, a.name, b.fd, b.name) : rename_to_nothing(&a, &b)) != 0)
        failed = -errno;
    (void)place_leave(&a, 0);
    (void)place_leave(&b, 0);
    return failed;
}

int pd_datadir_move(const pd_datadir *dir, const char *from, const char *to) {
    return files_rename(dir, from, to, true);
}

int pd_datadir_place(const pd_datadir *dir, const char *from, const char *to) {
    return files_rename(dir, from, to, false);
}
