/* The directory store: opening, creating and emptying it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "metadata.h"
#include "store_dir_journal.h"

#define MARKER "daf.json"
enum { MAX_TREE_DEPTH = 100, MAX_PASSES = 4 };
enum { MAX_LOCK_LOOKS = 5000, LOCK_LOOK_NS = 2000000 };

/* ---- removing trees */

static int remove_tree(const daf_io *io, int dirfd, const char *name, unsigned depth);

/* Removes what is in the open folder. */
static int remove_content(const daf_io *io, DIR *d, unsigned depth) {
    struct dirent *e;
    int rc = 0;
    while (rc == 0 && (errno = 0, e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        rc = remove_tree(io, dirfd(d), e->d_name, depth);
    }
    return rc ? rc : errno;
}

static int open_folder(const daf_io *io, int dirfd, const char *name, DIR **ret) {
    int fd = io->open(io->context, dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    *ret = fdopendir(fd);
    if (*ret)
        return 0;
    io->close(io->context, fd);
    return ENOMEM;
}

static int remove_tree(const daf_io *io, int dirfd, const char *name, unsigned depth) {
    if (io->unlink(io->context, dirfd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return errno;
    if (depth == MAX_TREE_DEPTH)
        return ENAMETOOLONG;
    int rc = ENOTEMPTY;
    /* Some file systems pass over entries when others are removed meanwhile. */
    for (unsigned attempt = 0; attempt < MAX_PASSES && (rc == ENOTEMPTY || rc == EEXIST); attempt++) {
        DIR *d;
        rc = open_folder(io, dirfd, name, &d);
        if (rc)
            return rc;
        rc = remove_content(io, d, depth + 1);
        closedir(d);
        if (rc == 0 && io->unlink(io->context, dirfd, name, AT_REMOVEDIR) != 0)
            rc = errno;
    }
    return rc;
}

int daf__dir_remove_tree(const daf_io *io, int dirfd, const char *name) {
    return remove_tree(io, dirfd, name, 0);
}

/* ---- opening */

static bool is_leftover(const char *name) {
    return strncmp(name, DAF__STAGING_PREFIX, strlen(DAF__STAGING_PREFIX)) == 0 ||
           strcmp(name, "metadata.json.new") == 0;
}

static bool is_ours(const char *name) {
    static const char *const names[] = {".",        "..",       "scalars",       "axes",
                                        "vectors",  "matrices", "metadata.json", DAF__METADATA_STALE_KEY,
                                        DAF__BACKUP};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return is_leftover(name);
}

/* Calls back for every name in the root. */
static int for_each_name(daf__dir_store *s, int (*visit)(daf__dir_store *s, const char *name, void *context),
                         void *context, daf_error *err) {
    const daf_io *io = s->settings.io;
    DIR *d;
    int rc = open_folder(io, s->fd, ".", &d);
    if (rc)
        return daf__dir_fail(s, rc, "list", "", err);
    struct dirent *e;
    while (rc == 0 && (errno = 0, e = readdir(d)))
        rc = visit(s, e->d_name, context);
    if (rc == 0)
        rc = errno;
    closedir(d);
    return rc ? daf__dir_fail(s, rc, "clean up", "", err) : 0;
}

static int remove_leftover(daf__dir_store *s, const char *name, void *context) {
    (void)context;
    return is_leftover(name) ? remove_tree(s->settings.io, s->fd, name, 0) : 0;
}

static int refuse_foreign(daf__dir_store *s, const char *name, void *context) {
    (void)s;
    (void)context;
    return is_ours(name) ? 0 : EEXIST;
}

static int refuse_other_directories(daf__dir_store *s, daf_error *err) {
    daf_error details;
    if (for_each_name(s, refuse_foreign, NULL, &details) == 0)
        return 0;
    if (details.os_errno != EEXIST)
        return daf__pass(err, &details);
    return daf__fail(err, DAF_ERR_EXISTS, 0, 0,
                     "%s: is no daf directory but holds other files; it will not be emptied", s->base.path);
}

static int remove_by_change(daf__dir_store *s, const char *name, void *context) {
    (void)s;
    bool spared =
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, MARKER) == 0 || is_leftover(name);
    return spared || daf__change_remove(context, name, NULL) == 0 ? 0 : ENOMEM;
}

int daf__dir_store_clear(daf__store *base, daf__change *c, daf_error *err) {
    int rc = daf__change_remove(c, MARKER, err);
    return rc ? rc : for_each_name((daf__dir_store *)base, remove_by_change, c, err);
}

static int has_backup(daf__dir_store *s, bool *ret, daf_error *err) {
    struct stat st;
    *ret = fstatat(s->fd, DAF__BACKUP, &st, AT_SYMLINK_NOFOLLOW) == 0;
    return *ret || errno == ENOENT ? 0 : daf__dir_fail(s, errno, "look at", DAF__BACKUP, err);
}

/* Writers have the lock for themselves. Readers share it for the moment in which they make an index: they are waited for. */
static int take_lock(daf__dir_store *s, daf_error *err) {
    for (unsigned looks = 0; looks < MAX_LOCK_LOOKS; looks++) {
        if (flock(s->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return 0; /* any other failure means that the file system has no locks: go on unguarded */
        if (daf__dir_store_is_locked(&s->base))
            break;
        nanosleep(&(struct timespec){.tv_nsec = LOCK_LOOK_NS}, NULL);
    }
    return daf__fail(err, DAF_ERR_BUSY, 0, 0, "%s: another writer has it open", s->base.path);
}

bool daf__dir_store_is_locked(const daf__store *s) {
    int fd = ((const daf__dir_store *)s)->fd;
    if (flock(fd, LOCK_SH | LOCK_NB) != 0)
        return errno == EWOULDBLOCK;
    flock(fd, LOCK_UN);
    return false;
}

int daf__dir_refuse_interrupted(daf__store *base, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    bool reordering = false;
    int rc = has_backup(s, &reordering, err);
    if (rc || (!reordering && !s->undone))
        return rc;
    return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                     reordering
                         ? "%s: holds .reorder.backup: the reorder of an axis was interrupted and must be "
                           "rolled back first"
                         : "%s: a change was interrupted and must be undone first, by a writable open",
                     base->path);
}

static bool is_settled(daf__dir_store *s) {
    struct stat st;
    bool reordering = true;
    bool interrupted =
        fstatat(s->fd, DAF__JOURNAL, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size > 0 : errno != ENOENT;
    return !s->undone && !s->backup_first && !interrupted && has_backup(s, &reordering, NULL) == 0 &&
           !reordering;
}

bool daf__dir_store_hold(daf__store *base) {
    daf__dir_store *s = (daf__dir_store *)base;
    if (faccessat(s->fd, ".", W_OK | X_OK, AT_EACCESS) != 0 || flock(s->fd, LOCK_SH | LOCK_NB) != 0)
        return false;
    bool settled = is_settled(s);
    if (!settled)
        daf__dir_store_release(base);
    return settled;
}

void daf__dir_store_release(daf__store *s) {
    flock(((daf__dir_store *)s)->fd, LOCK_UN);
}

static int open_root(daf__dir_store *s, int dirfd, bool create, daf_error *err) {
    const daf_io *io = s->settings.io;
    const char *path = s->base.path;
    if (create && io->mkdir(io->context, dirfd, path, 0777) == 0)
        s->base.made = true;
    else if (create && errno != EEXIST)
        return daf__fail(err, DAF_ERR_IO, errno, 0, "%s: cannot make the directory", path);
    s->fd = io->open(io->context, dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (s->fd < 0 && errno == ENOTDIR)
        return daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a directory: %s", path);
    if (s->fd < 0 && errno == ENOENT)
        return daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a daf directory: %s", path);
    if (s->fd < 0)
        return daf__fail(err, DAF_ERR_IO, errno, 0, "%s: cannot open the directory", path);
    unsigned mode = s->settings.directory_mode;
    if (s->base.made && mode && fchmod(s->fd, (mode_t)mode) != 0)
        return daf__fail(err, DAF_ERR_IO, errno, 0, "%s: cannot set the mode", path);
    return 0;
}

static int look_at_marker(daf__dir_store *s, daf_error *err) {
    bool marked;
    int rc = daf__store_has(&s->base, &marked, MARKER, err);
    if (rc == 0)
        s->base.fresh = !marked;
    return rc;
}

static int prepare_for_reading(daf__dir_store *s, daf__open_mode mode, daf_error *err) {
    /* A reader sees what a killed writer left undone; a journal that makes no sense is none. */
    bool interrupted;
    int rc = daf__store_has(&s->base, &interrupted, DAF__JOURNAL, err);
    if (rc == 0 && interrupted && !mode.untouched && !daf__dir_store_is_locked(&s->base))
        (void)daf__dir_undone_load(s, NULL);
    if (rc == 0)
        rc = look_at_marker(s, err);
    return rc || s->base.fresh ? rc : has_backup(s, &s->backup_first, err);
}

static int prepare_for_writing(daf__dir_store *s, daf__open_mode mode, daf_error *err) {
    int rc = take_lock(s, err);
    if (rc == 0)
        rc = daf__journal_recover(s, err);
    if (rc == 0)
        rc = look_at_marker(s, err);
    if (rc == 0 && s->base.fresh && !mode.create)
        return 0;
    if (rc == 0 && mode.truncate && s->base.fresh)
        rc = refuse_other_directories(s, err);
    if (rc == 0)
        rc = for_each_name(s, remove_leftover, NULL, err);
    if (rc == 0 && !mode.truncate && !s->base.fresh)
        rc = daf__dir_restore(&s->base, err);
    if (mode.truncate)
        s->base.fresh = true;
    return rc;
}

int daf__dir_store_open(daf__store **ret, int dirfd, const char *path, daf__open_mode mode,
                        const daf__dir_settings *settings, daf_error *err) {
    daf__dir_store *s = calloc(1, sizeof *s);
    if (!s)
        return daf__no_memory(err);
    *s = (daf__dir_store){.base = {.ops = &daf__dir_ops, .kind = "daf directory", .keeps_metadata = true},
                          .settings = *settings,
                          .fd = -1,
                          .journal = -1};
    s->base.path = strdup(path);
    int rc = s->base.path ? open_root(s, dirfd, mode.create, err) : daf__no_memory(err);
    if (rc == 0)
        rc = mode.writable ? prepare_for_writing(s, mode, err) : prepare_for_reading(s, mode, err);
    if (rc == 0) {
        *ret = &s->base;
        return 0;
    }
    if (s->base.made)
        settings->io->unlink(settings->io->context, dirfd, path, AT_REMOVEDIR);
    s->base.ops->free(&s->base);
    return rc;
}
