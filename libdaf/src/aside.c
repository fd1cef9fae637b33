#include "aside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "buf.h"
#include "error.h"
#include "store_dir.h"

static int fail(const daf__aside *a, int os_errno, const char *verb, daf_error *err) {
    return daf__fail(err, DAF_ERR_IO, os_errno, 0, "%s: cannot %s", a->path, verb);
}

/* The folder of the path, and the name in it. */
static int split(daf__aside *a, daf_error *err) {
    size_t n = strlen(a->path);
    while (n > 1 && a->path[n - 1] == '/')
        n--;
    size_t at = n;
    while (at > 0 && a->path[at - 1] != '/')
        at--;
    if (n == at)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "\"%s\" is no path of a new directory", a->path);
    a->name = daf__copy_text(a->path + at, n - at);
    char *folder = at ? daf__copy_text(a->path, at) : strdup(".");
    if (!a->name || !folder || asprintf(&a->temporary, ".%s.new", a->name) < 0) {
        free(folder);
        a->temporary = NULL;
        return daf__no_memory(err);
    }
    a->dirfd = a->io->open(a->io->context, AT_FDCWD, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    free(folder);
    return a->dirfd < 0 ? fail(a, errno, "open the folder that it is to be in", err) : 0;
}

static int refuse_existing(const daf__aside *a, daf_error *err) {
    struct stat st;
    if (fstatat(a->dirfd, a->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return daf__fail(err, DAF_ERR_EXISTS, 0, 0, "destination already exists: %s", a->path);
    return errno == ENOENT ? 0 : fail(a, errno, "look at it", err);
}

/* Removes what a killed process has left; one that is alive holds a lock. */
static int clear(const daf__aside *a, daf_error *err) {
    const daf_io *io = a->io;
    int fd =
        io->open(io->context, a->dirfd, a->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return fail(a, errno, "open what is left beside it", err);
    bool busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    int failed = busy ? 0 : daf__dir_remove_tree(io, a->dirfd, a->temporary);
    io->close(io->context, fd);
    if (busy)
        return daf__fail(err, DAF_ERR_BUSY, 0, 0, "%s: another process is making it", a->path);
    return failed ? fail(a, failed, "remove what is left beside it", err) : 0;
}

int daf__aside_begin(daf__aside *ret, const char *path, const daf_io *io, daf_error *err) {
    daf__aside a = {.io = io, .path = path, .dirfd = -1};
    int rc = split(&a, err);
    if (rc == 0)
        rc = refuse_existing(&a, err);
    if (rc == 0)
        rc = clear(&a, err);
    if (rc) {
        a.finished = true; /* nothing of it is ours to remove */
        daf__aside_end(&a);
        return rc;
    }
    *ret = a;
    return 0;
}

int daf__aside_finish(daf__aside *a, bool sync, daf_error *err) {
    int rc = refuse_existing(a, err);
    if (rc)
        return rc;
    if (a->io->rename(a->io->context, a->dirfd, a->temporary, a->name) != 0)
        return fail(a, errno, "put it in place", err);
    a->finished = true;
    if (sync && a->io->sync(a->io->context, a->dirfd) != 0)
        return fail(a, errno, "sync the folder that it is in", err);
    return 0;
}

void daf__aside_end(daf__aside *a) {
    if (!a->finished)
        daf__dir_remove_tree(a->io, a->dirfd, a->temporary);
    if (a->dirfd >= 0)
        a->io->close(a->io->context, a->dirfd);
    free(a->name);
    free(a->temporary);
    *a = (daf__aside){.dirfd = -1, .finished = true};
}
