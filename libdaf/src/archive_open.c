/* The archives that are open in this process, by device and inode; opening, making and replacing them.
 *
 * The list is the library's only state that is not in a handle: the format wants all handles of a process on one archive to
 * share it, since a second writer, with a directory of its own, would write over what the first one appends.
 *
 * A new archive is written under the name ARCHIVE.new, whose lock keeps others off it, and then linked, or (mode "w")
 * renamed over the old one: nobody ever sees one that is not whole, and one that somebody has mapped is never written
 * into. Its lock goes on to be the writer's lock of the archive.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "archive.h"
#include "error.h"
#include "handle.h"

enum { MAX_ATTEMPTS = 100 };
#define NEW_SUFFIX ".new"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static daf__archive *list;

/* ---- users */

void daf__archive_retain(daf__archive *a) {
    pthread_mutex_lock(&list_lock);
    a->n_users++;
    pthread_mutex_unlock(&list_lock);
}

static void free_archive(daf__archive *a) {
    daf__archive_directory_free(&a->directory);
    daf__archive_region_release(a->region);
    if (a->folder >= 0)
        a->io->close(a->io->context, a->folder);
    if (a->fd >= 0)
        a->io->close(a->io->context, a->fd);
    pthread_mutex_destroy(&a->lock);
    free(a->path);
    free(a);
}

void daf__archive_release(daf__archive *a) {
    pthread_mutex_lock(&list_lock);
    bool last = --a->n_users == 0;
    for (daf__archive **at = &list; last && *at; at = &(*at)->next) {
        if (*at == a) {
            *at = a->next;
            break;
        }
    }
    pthread_mutex_unlock(&list_lock);
    if (last)
        free_archive(a);
}

static daf__archive *find(const struct stat *st) {
    for (daf__archive *a = list; a; a = a->next)
        if (a->device == (uint64_t)st->st_dev && a->inode == (uint64_t)st->st_ino)
            return a;
    return NULL;
}

/* ---- opening one that is there */

typedef struct opening {
    int dirfd;
    const daf__archive_path *where;
    char *path; /* absolute, of the archive */
    daf__open_mode mode;
    const daf__archive_settings *settings;
} opening;

static int failed(const opening *o, int os_errno, const char *verb, daf_error *err) {
    return daf__fail(err, DAF_ERR_IO, os_errno, 0, "%s: cannot %s", o->path, verb);
}

static int busy(const opening *o, daf_error *err) {
    return daf__fail(err, DAF_ERR_BUSY, 0, 0, "%s: another writer has it open", o->path);
}

/* Any other failure of the lock means that the file system has none: go on unguarded. */
static bool is_locked_by_others(int fd) {
    return flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* The path still leads to the open file. */
static bool is_at(const opening *o, const char *path, const struct stat *st) {
    struct stat now;
    return fstatat(o->dirfd, path, &now, 0) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

/* The folder that the archive lies in; -1 and errno. */
static int open_folder(const opening *o, int flags) {
    const daf_io *io = o->settings->io;
    const char *archive = o->where->archive, *slash = strrchr(archive, '/');
    char *folder = slash ? daf__copy_text(archive, (size_t)(slash - archive) + 1) : strdup(".");
    int fd = folder ? io->open(io->context, o->dirfd, folder, flags | O_DIRECTORY | O_CLOEXEC, 0) : -1;
    if (!folder)
        errno = ENOMEM;
    free(folder);
    return fd;
}

static int folder_failed(const opening *o, const char *verb, daf_error *err) {
    return errno == ENOMEM ? daf__no_memory(err) : failed(o, errno, verb, err);
}

/* Makes the new name durable. */
static int sync_folder(const opening *o, daf_error *err) {
    const daf_io *io = o->settings->io;
    if (!o->settings->sync)
        return 0;
    int fd = open_folder(o, O_RDONLY);
    int rc = fd < 0 || io->sync(io->context, fd) != 0 ? folder_failed(o, "sync the folder of", err) : 0;
    if (fd >= 0)
        io->close(io->context, fd);
    return rc;
}

static int new_archive(daf__archive **ret, const opening *o, int fd, const struct stat *st, daf_error *err) {
    daf__archive *a = calloc(1, sizeof *a);
    char *path = strdup(o->path);
    if (!a || !path) {
        free(a);
        free(path);
        return daf__no_memory(err);
    }
    *a = (daf__archive){.n_users = 1,
                        .device = (uint64_t)st->st_dev,
                        .inode = (uint64_t)st->st_ino,
                        .path = path,
                        .io = o->settings->io,
                        .fd = fd,
                        .folder = -1,
                        .writable = o->mode.writable};
    pthread_mutex_init(&a->lock, NULL);
    int rc = daf__archive_load(&a->directory, a->io, fd, path,
                               a->writable ? DAF__LOAD_ALONE : DAF__LOAD_BESIDE, err);
    if (rc == 0 && a->writable)
        a->folder = open_folder(o, O_PATH);
    if (rc == 0 && a->writable && a->folder < 0)
        rc = folder_failed(o, "open the folder of", err);
    if (rc) {
        a->fd = -1; /* the caller's still */
        free_archive(a);
        return rc;
    }
    *ret = a;
    return 0;
}

static void enlist(daf__archive *a) {
    a->next = list;
    list = a;
}

static int share(daf__archive **ret, const opening *o, daf__archive *a, daf_error *err) {
    if (o->mode.writable && !a->writable)
        return daf__fail(
            err, DAF_ERR_BUSY, 0, 0,
            "zip file is already open read-only in this process; release the existing handle before "
            "opening it for write: %s",
            o->path);
    a->n_users++;
    *ret = a;
    return 0;
}

/* *moved: the path leads elsewhere by now. The descriptor is taken, unless the archive is one that is open already. */
static int open_there(daf__archive **ret, bool *moved, const opening *o, int *fd, daf_error *err) {
    struct stat st;
    if (fstat(*fd, &st) != 0)
        return failed(o, errno, "look at", err);
    if (!S_ISREG(st.st_mode))
        return daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "%s: not a regular file", o->path);
    daf__archive *a = find(&st);
    if (a)
        return share(ret, o, a, err);
    if (o->mode.writable && is_locked_by_others(*fd))
        return busy(o, err);
    *moved = o->mode.writable && !is_at(o, o->where->archive, &st);
    if (*moved)
        return 0;
    int rc = new_archive(ret, o, *fd, &st, err);
    if (rc)
        return rc;
    enlist(*ret);
    *fd = -1;
    return 0;
}

/* ---- making one */

/* An archive that holds the marker alone. */
static int first_content(daf__buf *ret, const char *group, daf_error *err) {
    static const char marker[] = DAF__MARKER_TEXT;
    char *name;
    if (asprintf(&name, "%s%sdaf.json", group ? group : "", group ? "/" : "") < 0)
        return daf__no_memory(err);
    daf__zip_entry e = {.name = (const uint8_t *)name,
                        .name_bytes = (uint16_t)strlen(name),
                        .flags = DAF__ZIP_UTF8_FLAG,
                        .crc = (uint32_t)crc32_z(0, (const Bytef *)marker, sizeof marker - 1),
                        .packed_bytes = sizeof marker - 1,
                        .raw_bytes = sizeof marker - 1};
    uint8_t *to = strlen(name) > UINT16_MAX ? NULL : daf__buf_reserve(ret, 512 + 2 * strlen(name));
    if (to) {
        size_t at = daf__zip_put_aligned_local(to, &e);
        memcpy(to + at, marker, sizeof marker - 1);
        at += sizeof marker - 1;
        size_t width = daf__zip_put_central(to + at, &e);
        daf__zip_put_end(to + at + width, 1, width, at);
        ret->size = at + width + DAF__ZIP_END_BYTES;
    }
    free(name);
    return to ? 0 : daf__no_memory(err);
}

/* Opens and locks ARCHIVE.new, empty. */
static int open_new(int *ret, struct stat *st, const opening *o, const char *name, daf_error *err) {
    const daf_io *io = o->settings->io;
    for (unsigned attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        int fd = io->open(io->context, o->dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0)
            return failed(o, errno, "make the archive", err);
        int rc = fstat(fd, st) != 0 ? failed(o, errno, "look at the new archive", err) : 0;
        if (rc == 0 && !S_ISREG(st->st_mode))
            rc = daf__fail(err, DAF_ERR_EXISTS, 0, 0, "%s" NEW_SUFFIX ": is in the way", o->path);
        if (rc == 0 && is_locked_by_others(fd))
            rc = busy(o, err);
        bool ours = rc == 0 && fstat(fd, st) == 0 && is_at(o, name, st);
        if (ours && st->st_nlink == 1) {
            if (io->truncate(io->context, fd, 0) == 0) {
                *ret = fd;
                return 0;
            }
            rc = failed(o, errno, "empty the new archive", err);
        } else if (ours) { /* of a writer that was killed when it had linked it */
            io->unlink(io->context, o->dirfd, name, 0);
        }
        io->close(io->context, fd);
        if (rc)
            return rc;
    }
    return busy(o, err);
}

static int fill_new(const opening *o, int fd, daf_error *err) {
    const daf_io *io = o->settings->io;
    daf__buf content = {0};
    int rc = first_content(&content, o->where->group, err);
    if (rc == 0 && content.size > o->settings->max_bytes)
        rc = daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: does not fit into DAF_ZIP_MAX_FILE_SIZE", o->path);
    int wrong = rc ? 0 : daf__write_all(io, fd, content.data, content.size, 0);
    if (wrong)
        rc = failed(o, wrong, "write", err);
    if (rc == 0 && o->settings->file_mode && fchmod(fd, (mode_t)o->settings->file_mode) != 0)
        rc = failed(o, errno, "set the mode", err);
    if (rc == 0 && o->settings->sync && io->sync(io->context, fd) != 0)
        rc = failed(o, errno, "sync", err);
    daf__buf_free(&content);
    return rc;
}

/* Gives the new file the archive's name. *exists: there is one by now. */
static int publish(const opening *o, const char *name, bool over, bool *exists, daf_error *err) {
    const daf_io *io = o->settings->io;
    const char *archive = o->where->archive;
    *exists = false;
    if (over)
        return io->rename(io->context, o->dirfd, name, archive) == 0 ? 0 : failed(o, errno, "replace", err);
    int rc = io->link(io->context, o->dirfd, name, archive), wrong = errno;
    *exists = rc != 0 && wrong == EEXIST;
    if (rc != 0 &&
        (wrong == EPERM || wrong == EOPNOTSUPP || wrong == ENOSYS)) /* no links on this file system */
        return io->rename(io->context, o->dirfd, name, archive) == 0 ? 0 : failed(o, errno, "make", err);
    io->unlink(io->context, o->dirfd, name, 0);
    return rc == 0 || *exists ? 0 : failed(o, wrong, "make the archive", err);
}

/* Fills the new file and gives it its name; *ret stays NULL when there is an archive by now (*exists). */
static int finish_new(daf__archive **ret, const opening *o, const char *name, int *fd, const struct stat *st,
                      bool over, bool *exists, daf_error *err) {
    const daf_io *io = o->settings->io;
    daf__archive *a = NULL;
    int rc = fill_new(o, *fd, err);
    if (rc == 0)
        rc = new_archive(&a, o, *fd, st, err);
    if (rc == 0) {
        *fd = -1; /* the archive's */
        rc = publish(o, name, over, exists, err);
    }
    if (rc)
        io->unlink(io->context, o->dirfd, name, 0);
    if (rc == 0 && !*exists)
        rc = sync_folder(o, err);
    if (a && (rc || *exists)) {
        free_archive(a);
        return rc;
    }
    *ret = a;
    return rc;
}

static int make_archive(daf__archive **ret, const opening *o, bool over, bool *exists, daf_error *err) {
    const daf_io *io = o->settings->io;
    struct stat st;
    int fd = -1;
    daf__archive *a = NULL;
    char *name;
    *exists = false;
    if (asprintf(&name, "%s" NEW_SUFFIX, o->where->archive) < 0)
        return daf__no_memory(err);
    int rc = open_new(&fd, &st, o, name, err);
    if (rc == 0)
        rc = finish_new(&a, o, name, &fd, &st, over, exists, err);
    if (fd >= 0)
        io->close(io->context, fd);
    if (a) {
        enlist(a);
        *ret = a;
    }
    free(name);
    return rc;
}

/* The name is taken (*again), but perhaps by a link that leads nowhere. */
static int check_taken(const opening *o, const bool *again, daf_error *err) {
    const char *archive = o->where->archive;
    struct stat st;
    bool nowhere = *again && fstatat(o->dirfd, archive, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                   S_ISLNK(st.st_mode) && fstatat(o->dirfd, archive, &st, 0) != 0;
    return nowhere ? daf__fail(err, DAF_ERR_IO, 0, 0, "%s: is a symbolic link to nothing", o->path) : 0;
}

/* ---- mode "w" */

/* Something else that bears the name by mistake is not thrown away. */
static int check_replaceable(const opening *o, int fd, daf_error *err) {
    uint8_t head[4];
    struct stat st;
    if (fstat(fd, &st) != 0)
        return failed(o, errno, "look at", err);
    if (S_ISREG(st.st_mode) && st.st_size == 0)
        return 0;
    int rc = S_ISREG(st.st_mode) ? daf__read_all(o->settings->io, fd, head, sizeof head, 0) : DAF__SHORT_READ;
    if (rc > 0)
        return failed(o, rc, "read", err);
    bool zip = rc == 0 && head[0] == 'P' && head[1] == 'K' && head[2] < 8 && head[3] < 9;
    return zip ? 0
               : daf__fail(err, DAF_ERR_EXISTS, 0, 0, "%s: is no ZIP archive; it will not be replaced",
                           o->path);
}

static int replace(daf__archive **ret, const opening *o, bool *again, daf_error *err) {
    const daf_io *io = o->settings->io;
    struct stat st;
    bool exists;
    int fd =
        io->open(io->context, o->dirfd, o->where->archive, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0 && errno == ENOENT) {
        int rc = make_archive(ret, o, false, &exists, err);
        *again = exists;
        return rc ? rc : check_taken(o, again, err);
    }
    if (fd < 0)
        return failed(o, errno, "open", err);
    int rc = check_replaceable(o, fd, err);
    daf__archive *old = rc == 0 && fstat(fd, &st) == 0 ? find(&st) : NULL;
    if (rc == 0 && !(old && old->writable) && is_locked_by_others(fd))
        rc = busy(o, err);
    *again = rc == 0 && !is_at(o, o->where->archive, &st);
    if (rc == 0 && !*again)
        rc = make_archive(ret, o, true, &exists, err);
    if (rc == 0 && !*again && old) {
        pthread_mutex_lock(&old->lock);
        old->replaced = true;
        pthread_mutex_unlock(&old->lock);
    }
    io->close(io->context, fd);
    return rc;
}

/* ---- opening */

static int try_open(daf__archive **ret, bool *made, bool *again, const opening *o, daf_error *err) {
    const daf_io *io = o->settings->io;
    int flags = (o->mode.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    bool exists = false;
    int rc;
    *again = false;
    if (o->mode.truncate)
        return replace(ret, o, again, err);
    int fd = io->open(io->context, o->dirfd, o->where->archive, flags, 0);
    if (fd < 0 && errno == ENOENT && o->mode.create) {
        rc = make_archive(ret, o, false, &exists, err);
        *again = exists;
        *made = rc == 0 && !exists;
        return rc ? rc : check_taken(o, again, err);
    }
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "no such file: %s", o->path);
    if (fd < 0)
        return failed(o, errno, "open", err);
    rc = open_there(ret, again, o, &fd, err);
    if (fd >= 0)
        io->close(io->context, fd);
    return rc;
}

int daf__archive_open(daf__archive **ret, bool *made, int dirfd, const daf__archive_path *where,
                      daf__open_mode mode, const daf__archive_settings *settings, daf_error *err) {
    if (mode.truncate && where->group)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                         "can't truncate a sub-daf inside a ZipDaf; the ZIP backend is append-only: %s",
                         where->full);
    size_t group_bytes = where->group ? strlen("#/") + strlen(where->group) : 0;
    opening o = {.dirfd = dirfd, .where = where, .mode = mode, .settings = settings};
    o.path = daf__copy_text(where->full, strlen(where->full) - group_bytes);
    if (!o.path)
        return daf__no_memory(err);
    bool again = true;
    int rc = 0;
    pthread_mutex_lock(&list_lock);
    for (unsigned i = 0; i < MAX_ATTEMPTS && rc == 0 && again; i++)
        rc = try_open(ret, made, &again, &o, err);
    pthread_mutex_unlock(&list_lock);
    if (rc == 0 && again)
        rc = daf__fail(err, DAF_ERR_IO, 0, 0, "%s: is replaced faster than it can be opened", o.path);
    free(o.path);
    return rc;
}
