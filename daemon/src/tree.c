#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is done to each entry of a directory, subdirectories included; 0, or -1 with err. */
typedef int tree_visit(int dirfd, const char *name, unsigned depth, void *user, pd_error *err);

static int tree_fail(const char *what, const char *name, pd_error *err) {
    return pd_error_set(err, "%s cannot be %s: %s", name, what, strerror(errno));
}

static int tree_each(int dirfd, const char *name, unsigned depth, tree_visit *visit, void *user,
                     pd_error *err) {
    if (depth > PD_TREE_DEPTH_MAX)
        return pd_error_set(err, "%s: folders nested deeper than %u", name, PD_TREE_DEPTH_MAX);
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return tree_fail("opened", name, err);
    DIR *dir = fdopendir(fd);
    if (!dir) {
        tree_fail("listed", name, err);
        close(fd);
        return -1;
    }
    int result = 0;
    struct dirent *entry;
    while (result == 0 && (errno = 0, entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = visit(fd, entry->d_name, depth, user, err);
    }
    if (result == 0 && errno)
        result = tree_fail("listed", name, err);
    closedir(dir);
    return result;
}

static int tree_stat(int dirfd, const char *name, struct stat *st, pd_error *err) {
    return fstatat(dirfd, name, st, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : tree_fail("looked at", name, err);
}

static int tree_remove_visit(int dirfd, const char *name, unsigned depth, void *user, pd_error *err) {
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return tree_fail("removed", name, err);
    if (tree_each(dirfd, name, depth + 1, tree_remove_visit, user, err) != 0)
        return -1;
    return unlinkat(dirfd, name, AT_REMOVEDIR) == 0 ? 0 : tree_fail("removed", name, err);
}

int pd_tree_remove(int dirfd, const char *name, pd_error *err) {
    return tree_remove_visit(dirfd, name, 0, NULL, err);
}

typedef struct tree_measure {
    int64_t gid;
    uint64_t bytes;
} tree_measure;

static int tree_measure_visit(int dirfd, const char *name, unsigned depth, void *user, pd_error *err) {
    tree_measure *m = user;
    struct stat st;
    if (tree_stat(dirfd, name, &st, err) != 0)
        return -1;
    if (m->gid >= 0 && fchownat(dirfd, name, (uid_t)-1, (gid_t)m->gid, AT_SYMLINK_NOFOLLOW) != 0)
        return tree_fail("given to its group", name, err);
    if (S_ISREG(st.st_mode))
        m->bytes += (uint64_t)st.st_size;
    return S_ISDIR(st.st_mode) ? tree_each(dirfd, name, depth + 1, tree_measure_visit, user, err) : 0;
}

int pd_tree_measure(int dirfd, const char *name, int64_t gid, uint64_t *bytes, pd_error *err) {
    tree_measure m = {gid, 0};
    if (tree_measure_visit(dirfd, name, 0, &m, err) != 0)
        return -1;
    *bytes = m.bytes;
    return 0;
}
