/* The directory store: its files, read and being written. */
#include "store_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

typedef struct dir_file {
    daf__file base;
    const daf_io *io;
    int fd;
} dir_file;

static bool means_missing(int os_errno) {
    return os_errno == ENOENT || os_errno == ENOTDIR;
}

int daf__dir_fail(daf__dir_store *s, int os_errno, const char *verb, const char *key, daf_error *err) {
    if (os_errno == ENOMEM)
        return daf__no_memory(err);
    if (os_errno == ELOOP)
        return daf__fail(err, DAF_ERR_IO, os_errno, 0,
                         "%s/%s: cannot %s: a symbolic link is on the way, and nothing behind one is changed",
                         s->base.path, key, verb);
    return daf__fail(err, DAF_ERR_IO, os_errno, 0, "%s/%s: cannot %s", s->base.path, key, verb);
}

int daf__dir_check_way(const daf__dir_store *s, const char *key) {
    char path[sizeof(daf__backup_key)];
    size_t n = strlen(key);
    struct stat st;
    if (n >= sizeof path)
        return ENAMETOOLONG;
    memcpy(path, key, n + 1);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (fstatat(s->fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return means_missing(errno) ? 0 : errno;
        if (S_ISLNK(st.st_mode))
            return ELOOP;
        *slash = '/';
    }
    return 0;
}

static int missing(daf__dir_store *s, const char *key, daf_error *err) {
    return daf__fail(err, DAF_ERR_MISSING, 0, 0, "%s/%s: no such file", s->base.path, key);
}

daf__stamp daf__dir_stamp_of(const struct stat *st) {
    return (daf__stamp){.device = (uint64_t)st->st_dev,
                        .inode = (uint64_t)st->st_ino,
                        .bytes = (uint64_t)st->st_size,
                        .changed_s = (int64_t)st->st_mtim.tv_sec,
                        .changed_ns = (int64_t)st->st_mtim.tv_nsec};
}

/* ---- reading */

static int file_read(daf__file *f, void *data, size_t bytes, uint64_t offset, daf_error *err) {
    dir_file *file = (dir_file *)f;
    if (offset > f->size || bytes > f->size - offset)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: ends at byte %llu", f->where,
                         (unsigned long long)f->size);
    int rc = daf__read_all(file->io, file->fd, data, bytes, offset);
    if (rc == DAF__SHORT_READ)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: became shorter while it was read", f->where);
    return rc ? daf__fail(err, DAF_ERR_IO, rc, offset, "%s: cannot read", f->where) : 0;
}

static int file_map(daf__file *f, daf__map *ret, daf_error *err) {
    dir_file *file = (dir_file *)f;
    if (f->size > SIZE_MAX)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: too large for this machine", f->where);
    void *region = mmap(NULL, (size_t)f->size, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (region == MAP_FAILED && errno == ENODEV)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: cannot be mapped", f->where);
    if (region == MAP_FAILED)
        return daf__fail(err, errno == ENOMEM ? DAF_ERR_NOMEM : DAF_ERR_IO, errno, 0, "%s: cannot map",
                         f->where);
    *ret = (daf__map){.data = region, .owner = region, .owner_bytes = (size_t)f->size};
    return 0;
}

static void file_close(daf__file *f) {
    dir_file *file = (dir_file *)f;
    file->io->close(file->io->context, file->fd);
    free(f->where);
    free(file);
}

static const daf__file_ops file_ops = {.read = file_read, .map = file_map, .close = file_close};

static int open_file(daf__dir_store *s, daf__file **ret, const char *key, daf_error *err) {
    const daf_io *io = s->settings.io;
    daf__undone_key kept;
    daf__undone_where place = daf__dir_undone_place(s, key, &kept);
    if (place == DAF__UNDONE_GONE)
        return missing(s, key, err);
    /* Not blocking: the file could be a pipe. */
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = io->open(io->context, s->fd, place == DAF__UNDONE_KEPT ? kept.text : key, flags, 0);
    if (fd < 0 && means_missing(errno) && place == DAF__UNDONE_KEPT)
        fd = io->open(io->context, s->fd, key, flags, 0);
    if (fd < 0)
        return means_missing(errno) ? missing(s, key, err) : daf__dir_fail(s, errno, "open", key, err);
    int rc;
    struct stat st;
    dir_file *file = calloc(1, sizeof *file);
    char *where = NULL;
    if (!file || asprintf(&where, "%s/%s", s->base.path, key) < 0) {
        where = NULL;
        rc = daf__no_memory(err);
        goto err_after_open;
    }
    if (fstat(fd, &st) != 0) {
        rc = daf__dir_fail(s, errno, "look at", key, err);
        goto err_after_open;
    }
    if (!S_ISREG(st.st_mode)) {
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: not a regular file", where);
        goto err_after_open;
    }
    *file = (dir_file){.base = {.ops = &file_ops,
                                .stamp = daf__dir_stamp_of(&st),
                                .size = (uint64_t)st.st_size,
                                .where = where},
                       .io = io,
                       .fd = fd};
    *ret = &file->base;
    return 0;
err_after_open:
    io->close(io->context, fd);
    free(where);
    free(file);
    return rc;
}

static int dir_open(daf__store *base, daf__file **ret, const char *key, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    daf__backup_key k;
    int rc = s->backup_first ? open_file(s, ret, daf__in_backup(&k, key), err) : DAF_ERR_MISSING;
    return rc == DAF_ERR_MISSING ? open_file(s, ret, key, err) : rc;
}

static int stamp_file(daf__dir_store *s, daf__stamp *ret, const char *key, daf_error *err) {
    struct stat st;
    daf__undone_key kept;
    daf__undone_where place = daf__dir_undone_place(s, key, &kept);
    if (place == DAF__UNDONE_GONE)
        return missing(s, key, err);
    bool found = place == DAF__UNDONE_KEPT && fstatat(s->fd, kept.text, &st, 0) == 0;
    if (!found && fstatat(s->fd, key, &st, 0) != 0)
        return means_missing(errno) ? missing(s, key, err) : daf__dir_fail(s, errno, "look at", key, err);
    if (!S_ISREG(st.st_mode))
        return missing(s, key, err);
    *ret = daf__dir_stamp_of(&st);
    return 0;
}

static int dir_stamp(daf__store *base, daf__stamp *ret, const char *key, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    daf__backup_key k;
    int rc = s->backup_first ? stamp_file(s, ret, daf__in_backup(&k, key), err) : DAF_ERR_MISSING;
    return rc == DAF_ERR_MISSING ? stamp_file(s, ret, key, err) : rc;
}

static bool is_wanted(int dirfd, const struct dirent *e, daf__list_what what) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return false;
    unsigned char type = e->d_type;
    struct stat st;
    if (type == DT_UNKNOWN || type == DT_LNK) {
        if (fstatat(dirfd, e->d_name, &st, 0) != 0)
            return false;
        type = S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
    }
    return type == (what == DAF__LIST_FOLDERS ? DT_DIR : DT_REG);
}

/* Adds the names in the folder. */
static int list_folder(daf__dir_store *s, daf_names *names, const char *folder, daf__list_what what,
                       daf_error *err) {
    const daf_io *io = s->settings.io;
    daf__undone_key kept;
    bool is_kept = daf__dir_undone_place(s, folder, &kept) == DAF__UNDONE_KEPT;
    int fd =
        io->open(io->context, s->fd, is_kept ? kept.text : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0 && is_kept && means_missing(errno))
        fd = io->open(io->context, s->fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return means_missing(errno) ? 0 : daf__dir_fail(s, errno, "open folder", folder, err);
    DIR *d = fdopendir(fd);
    if (!d) {
        io->close(io->context, fd);
        return daf__no_memory(err);
    }
    int rc = 0;
    struct dirent *e;
    while (rc == 0 && (errno = 0, e = readdir(d)))
        if (is_wanted(dirfd(d), e, what))
            rc = daf__names_add(names, e->d_name, strlen(e->d_name), err);
    if (rc == 0 && errno)
        rc = daf__dir_fail(s, errno, "list folder", folder, err);
    closedir(d);
    return rc ? rc : daf__dir_undone_list(s, names, folder, what, err);
}

static int dir_list(daf__store *base, daf_names *ret, const char *folder, daf__list_what what,
                    daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    daf__backup_key k;
    daf_names names = {0};
    int rc = list_folder(s, &names, folder, what, err);
    if (rc == 0 && s->backup_first)
        rc = list_folder(s, &names, daf__in_backup(&k, folder), what, err);
    if (rc) {
        daf_names_clear(&names);
        return rc;
    }
    if (what != DAF__LIST_FILES_ANYHOW || s->backup_first)
        daf__names_sort(&names);
    if (s->backup_first)
        daf__names_drop_twins(&names);
    *ret = names;
    return 0;
}

/* ---- writing */

static int out_write(daf__out *out, const void *data, size_t bytes, uint64_t offset, daf_error *err) {
    daf__dir_out *o = (daf__dir_out *)out;
    int rc = daf__write_all(o->store->settings.io, o->fd, data, bytes, offset);
    return rc ? daf__fail(err, DAF_ERR_IO, rc, offset, "%s/%s: cannot write", o->store->base.path, o->name)
              : 0;
}

static void out_discard(daf__out *out) {
    daf__dir_out *o = (daf__dir_out *)out;
    const daf_io *io = o->store->settings.io;
    if (o->fd >= 0)
        io->close(io->context, o->fd);
    if (o->name[0])
        io->unlink(io->context, o->store->fd, o->name, 0);
    free(o);
}

static const daf__out_ops out_ops = {.write = out_write, .discard = out_discard};

daf__dir_out *daf__dir_out_new(daf__dir_store *s) {
    daf__dir_out *o = calloc(1, sizeof *o);
    if (o)
        *o = (daf__dir_out){.base = {.ops = &out_ops}, .store = s, .fd = -1};
    return o;
}

void daf__dir_staging_name(daf__dir_store *s, char name[DAF__STAGING_NAME]) {
    snprintf(name, DAF__STAGING_NAME, DAF__STAGING_PREFIX "%ld.%u", (long)getpid(), s->counter++);
}

static int dir_create(daf__store *base, daf__out **ret, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    const daf_io *io = s->settings.io;
    daf__dir_out *o = daf__dir_out_new(s);
    if (!o)
        return daf__no_memory(err);
    do {
        daf__dir_staging_name(s, o->name);
        o->fd = io->open(io->context, s->fd, o->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (o->fd < 0 && errno == EEXIST);
    if (o->fd < 0) {
        int rc = daf__dir_fail(s, errno, "create", o->name, err);
        free(o);
        return rc;
    }
    if (s->settings.file_mode && fchmod(o->fd, (mode_t)s->settings.file_mode) != 0) {
        int rc = daf__dir_fail(s, errno, "set the mode of", o->name, err);
        out_discard(&o->base);
        return rc;
    }
    *ret = &o->base;
    return 0;
}

static int link_write(daf__out *out, const void *data, size_t bytes, uint64_t offset, daf_error *err) {
    (void)data;
    (void)bytes;
    daf__dir_out *o = (daf__dir_out *)out;
    return daf__fail(err, DAF_ERR_IO, 0, offset, "%s/%s: is a link to a file that must not change",
                     o->store->base.path, o->name);
}

static const daf__out_ops link_ops = {.write = link_write, .discard = out_discard};

static bool cannot_be_linked(int os_errno) {
    return os_errno == EXDEV || os_errno == EPERM || os_errno == EMLINK || os_errno == EOPNOTSUPP ||
           os_errno == ENOSYS || os_errno == ELOOP;
}

/* Links the file to a staging name and opens it; 0 or an errno. */
static int make_link(daf__dir_out *o, const daf__dir_store *from, const char *key) {
    const daf_io *io = o->store->settings.io;
    char name[DAF__STAGING_NAME];
    int linked;
    do {
        daf__dir_staging_name(o->store, name);
        linked = io->link_from(io->context, from->fd, key, o->store->fd, name);
    } while (linked != 0 && errno == EEXIST);
    if (linked != 0)
        return errno;
    memcpy(o->name, name, sizeof name);
    o->fd = io->open(io->context, o->store->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    return o->fd < 0 ? errno : 0;
}

static int check_link(const daf__dir_out *o, const daf__stamp *expected, const char *key, daf_error *err) {
    struct stat st;
    if (fstat(o->fd, &st) != 0)
        return daf__dir_fail(o->store, errno, "look at", o->name, err);
    daf__stamp stamp = daf__dir_stamp_of(&st);
    if (!daf__stamps_equal(&stamp, expected))
        return daf__fail(err, DAF_ERR_IO, 0, 0, "%s: was replaced while it was linked", key);
    return 0;
}

int daf__dir_link(daf__store *to, daf__out **ret, daf__store *from, const char *key,
                  const daf__stamp *expected, daf_error *err) {
    daf__dir_out *o = calloc(1, sizeof *o);
    if (!o)
        return daf__no_memory(err);
    *o = (daf__dir_out){
        .base = {.ops = &link_ops, .size = expected->bytes}, .store = (daf__dir_store *)to, .fd = -1};
    int failed = make_link(o, (const daf__dir_store *)from, key), rc = 0;
    if (failed)
        rc = daf__fail(err, cannot_be_linked(failed) ? DAF_ERR_UNSUPPORTED : DAF_ERR_IO, failed, 0,
                       "%s/%s: cannot be linked into %s", from->path, key, to->path);
    if (rc == 0)
        rc = check_link(o, expected, key, err);
    if (rc) {
        out_discard(&o->base);
        return rc;
    }
    *ret = &o->base;
    return 0;
}

int daf__dir_make_folder(daf__dir_store *s, const char *key) {
    const daf_io *io = s->settings.io;
    if (io->mkdir(io->context, s->fd, key, 0777) != 0)
        return errno;
    unsigned mode = s->settings.directory_mode;
    return mode && fchmodat(s->fd, key, (mode_t)mode, 0) != 0 ? errno : 0;
}

static void dir_free(daf__store *base) {
    daf__dir_store *s = (daf__dir_store *)base;
    const daf_io *io = s->settings.io;
    daf__journal_close(s);
    daf__dir_spare_drop(s);
    daf__dir_undone_free(s);
    if (s->fd >= 0)
        io->close(io->context, s->fd);
    daf_names_clear(&s->dirty);
    free(base->path);
    free(s);
}

const daf__store_ops daf__dir_ops = {
    .open = dir_open,
    .stamp = dir_stamp,
    .list = dir_list,
    .create = dir_create,
    .extend_metadata = daf__dir_extend,
    .apply = daf__dir_apply,
    .settle = daf__dir_settle,
    .backup = daf__dir_backup,
    .restore = daf__dir_restore,
    .drop_backup = daf__dir_drop_backup,
    .free = dir_free,
};
