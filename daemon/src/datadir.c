#include "datadir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <d7/d7.h>

#include "log.h"
#include "text.h"
#include "wire/names.h"

#define LOCK_NAME ".photond.lock"
#define NEW_SUFFIX ".new"

/* What belongs to a run beside each other. */
static const char *const file_suffixes[] = {
    ".photons",  ".photons.tail",       ".photons.crc",      ".daf",         ".daf.zarr",
    ".dafs.zip", PD_CERTIFICATE_SUFFIX, PD_SIGNATURE_SUFFIX, ".0001.photons"};

static int datadir_fail(const char *what, const char *path, pd_error *err) {
    return pd_error_set(err, "%s: %s: %s", path, what, strerror(errno));
}

static int datadir_held(pd_datadir *dir, pd_error *err) {
    char pid[32] = "", own[32];
    ssize_t n = pread(dir->lock_fd, pid, sizeof pid - 1, 0);
    pid[n > 0 ? (size_t)n : 0] = 0;
    pid[strcspn(pid, "\n")] = 0;
    snprintf(own, sizeof own, "%ld", (long)getpid());
    if (strcmp(pid, own) == 0)
        return pd_error_set(err, "%s: it is the data folder of another volume too", dir->path);
    return pd_error_set(
        err, "%s: another photond (process %s) has this data folder; stop it or use another folder",
        dir->path, *pid ? pid : "unknown");
}

/* The lock lives as long as the descriptor: a killed daemon leaves none behind. */
static int datadir_lock(pd_datadir *dir, pd_error *err) {
    dir->lock_fd = openat(dir->fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (dir->lock_fd < 0)
        return datadir_fail("cannot open the lock file " LOCK_NAME, dir->path, err);
    if (flock(dir->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        char pid[32];
        int n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
        dir->guarded = true;
        (void)fchmod(dir->lock_fd, 0644); /* whatever the umask: a later start opens it again */
        if (ftruncate(dir->lock_fd, 0) != 0 || pwrite(dir->lock_fd, pid, (size_t)n, 0) != n)
            pd_log(PD_LOG_WARNING, "%s: the lock file could not be written: %s", dir->path, strerror(errno));
        return 0;
    }
    if (errno == EWOULDBLOCK)
        return datadir_held(dir, err);
    if (errno != ENOLCK && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
        return datadir_fail("cannot lock " LOCK_NAME, dir->path, err);
    pd_log(PD_LOG_WARNING,
           "%s: this file system has no locks: nothing keeps a second photond away from the folder",
           dir->path);
    return 0;
}

static bool datadir_is_new_file(const char *name) {
    static const char *const suffixes[] = {NEW_SUFFIX, NEW_SUFFIX D7_TAIL_SUFFIX,
                                           NEW_SUFFIX D7_CHECKSUMS_SUFFIX};
    size_t n = strspn(name, "0123456789abcdef");
    bool ours = false;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        ours |= n == 2 * PD_RUN_ID_BYTES && strcmp(name + n, suffixes[i]) == 0;
    return ours;
}

/* Removes what a daemon that was killed while opening a run left: files that no run ever was told of. */
static int datadir_clear_new(pd_datadir *dir, unsigned dir_mode, pd_error *err) {
    if (mkdirat(dir->fd, PD_HIDDEN_NAME, dir_mode) != 0 && errno != EEXIST)
        return datadir_fail("cannot make the folder " PD_HIDDEN_NAME, dir->path, err);
    int fd = openat(dir->fd, PD_HIDDEN_NAME, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return datadir_fail("cannot open the folder " PD_HIDDEN_NAME, dir->path, err);
    DIR *entries = fdopendir(fd);
    if (!entries) {
        close(fd);
        return datadir_fail("cannot list the folder " PD_HIDDEN_NAME, dir->path, err);
    }
    for (struct dirent *e = readdir(entries); e; e = readdir(entries))
        if (datadir_is_new_file(e->d_name) && unlinkat(fd, e->d_name, 0) == 0)
            pd_log(PD_LOG_INFO, "removed %s/" PD_HIDDEN_NAME "/%s, left from an opening that was cut short",
                   dir->path, e->d_name);
    closedir(entries);
    return 0;
}

int pd_datadir_open(pd_datadir *dir, const char *path, unsigned dir_mode, pd_error *err) {
    *dir = (pd_datadir){.fd = -1, .lock_fd = -1, .dir_mode = dir_mode};
    dir->path = strdup(path);
    if (!dir->path)
        return pd_error_set(err, "out of memory");
    for (size_t n = strlen(dir->path); n > 1 && dir->path[n - 1] == '/'; n--)
        dir->path[n - 1] = 0;
    if (mkdir(dir->path, dir_mode) == 0)
        pd_log(PD_LOG_INFO, "made the data folder %s", dir->path);
    dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = dir->fd < 0 ? datadir_fail("cannot open the data folder", path, err) : 0;
    dir->folder = (d7_io_folder){dir->fd, dir->path};
    dir->io = d7_io_beneath(&dir->folder);
    if (!failed)
        failed = datadir_lock(dir, err);
    if (!failed)
        failed = datadir_clear_new(dir, dir_mode, err);
    if (failed)
        pd_datadir_close(dir);
    return failed;
}

const d7_io *pd_datadir_io(const pd_datadir *dir) {
    return &dir->io;
}

void pd_datadir_close(pd_datadir *dir) {
    if (dir->lock_fd >= 0)
        close(dir->lock_fd);
    if (dir->fd >= 0)
        close(dir->fd);
    free(dir->path);
    *dir = (pd_datadir){.fd = -1, .lock_fd = -1};
}

int pd_datadir_new_path(const pd_datadir *dir, const uint8_t id[PD_RUN_ID_BYTES], char *path, size_t cap) {
    char hex[2 * PD_RUN_ID_BYTES + 1];
    int n = snprintf(path, cap, "%s/" PD_HIDDEN_NAME "/%s" NEW_SUFFIX, dir->path,
                     pd_text_hex(hex, id, PD_RUN_ID_BYTES));
    return n > 0 && (size_t)n < cap ? 0 : -1;
}

void pd_datadir_keep_hidden(const pd_datadir *dir) {
    if (mkdirat(dir->fd, PD_HIDDEN_NAME, dir->dir_mode) == 0)
        pd_log(PD_LOG_WARNING, "%s/" PD_HIDDEN_NAME " was removed by another program: made anew", dir->path);
}

const char *pd_datadir_file_path(const pd_datadir *dir, const char *name, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%.*s/%.*s.photons", PATH_MAX - PD_FILE_NAME_BYTES - 2, dir->path,
             PD_PART_NAME_BYTES, name);
    return path;
}

const char *pd_datadir_part_name(char out[PD_PART_NAME_BYTES + 1], const char *run, uint32_t part) {
    if (part == 0)
        snprintf(out, PD_PART_NAME_BYTES + 1, "%.*s", PD_RUN_NAME_BYTES, run);
    else
        snprintf(out, PD_PART_NAME_BYTES + 1, "%.*s.%04" PRIu32, PD_RUN_NAME_BYTES, run, part);
    return out;
}

bool pd_datadir_has(const pd_datadir *dir, const char *name, const char *suffix) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s%s", name, suffix);
    return faccessat(dir->fd, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool pd_datadir_name_of(const char *file, const char *suffix, char name[PD_PART_NAME_BYTES + 1]) {
    size_t n = strlen(file), end = strlen(suffix);
    if (n <= end || n - end > PD_PART_NAME_BYTES || strcmp(file + n - end, suffix) != 0)
        return false;
    memcpy(name, file, n - end);
    name[n - end] = 0;
    return true;
}

DIR *pd_datadir_list(const pd_datadir *dir, const char *folder) {
    int fd = openat(dir->fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    int failed = errno;
    if (!entries && fd >= 0)
        close(fd);
    errno = failed;
    return entries;
}

uint32_t pd_datadir_name_part(const char *name, char run[PD_PART_NAME_BYTES + 1]) {
    char again[PD_PART_NAME_BYTES + 1];
    const char *dot = strrchr(name, '.');
    snprintf(run, PD_PART_NAME_BYTES + 1, "%s", name);
    if (!dot || dot == name || dot - name > PD_RUN_NAME_BYTES ||
        strspn(dot + 1, "0123456789") != strlen(dot + 1))
        return 0;
    unsigned long part = strtoul(dot + 1, NULL, 10);
    run[dot - name] = 0;
    if (part > 0 && part <= UINT32_MAX && strcmp(pd_datadir_part_name(again, run, (uint32_t)part), name) == 0)
        return (uint32_t)part;
    snprintf(run, PD_PART_NAME_BYTES + 1, "%s", name);
    return 0;
}

bool pd_datadir_taken(const pd_datadir *dir, const char *name, char which[PD_FILE_NAME_BYTES]) {
    for (size_t i = 0; i < sizeof file_suffixes / sizeof *file_suffixes; i++) {
        struct stat there;
        snprintf(which, PD_FILE_NAME_BYTES, "%s%s", name, file_suffixes[i]);
        if (fstatat(dir->fd, which, &there, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

bool pd_datadir_run_of(const char *file, char name[PD_RUN_NAME_BYTES + 1]) {
    size_t bytes = strlen(file);
    for (size_t i = 0; i < sizeof file_suffixes / sizeof *file_suffixes; i++) {
        size_t suffix = strlen(file_suffixes[i]);
        if (bytes <= suffix || bytes - suffix > PD_RUN_NAME_BYTES ||
            strcmp(file + bytes - suffix, file_suffixes[i]) != 0)
            continue;
        memcpy(name, file, bytes - suffix);
        name[bytes - suffix] = 0;
        if (wire_run_name_fault(name) == NULL)
            return true;
    }
    return false;
}

/* What a file that gets its name takes with it, in this order. The checksums come last, and need not be there. */
static const char *const datadir_published[] = {D7_TAIL_SUFFIX, "", D7_CHECKSUMS_SUFFIX};
enum { DATADIR_PUBLISHED = sizeof datadir_published / sizeof *datadir_published, DATADIR_MUST = 2 };

static int datadir_publish_one(const pd_datadir *dir, const char *new_file, const char *name, int which) {
    char from[PD_FILE_NAME_BYTES], to[PD_FILE_NAME_BYTES];
    snprintf(from, sizeof from, "%s%s", new_file, datadir_published[which]);
    snprintf(to, sizeof to, "%s.photons%s", name, datadir_published[which]);
    int failed = pd_datadir_place(dir, from, to);
    return failed == -ENOENT && which >= DATADIR_MUST ? 0 : failed;
}

static void datadir_take_back(const pd_datadir *dir, const char *new_file, const char *name, int which) {
    char back[PD_FILE_NAME_BYTES], file[PD_FILE_NAME_BYTES];
    snprintf(back, sizeof back, "%s%s", new_file, datadir_published[which]);
    snprintf(file, sizeof file, "%s.photons%s", name, datadir_published[which]);
    int failed = pd_datadir_move(dir, file, back);
    if (failed)
        pd_log(PD_LOG_WARNING, "%s/%s cannot be taken back: %s", dir->path, file, strerror(-failed));
}

int pd_datadir_publish(const pd_datadir *dir, const char *new_path, const char *name) {
    const char *new_file = pd_datadir_within(dir, new_path);
    if (!new_file)
        return -EXDEV;
    for (int i = 0; i < DATADIR_PUBLISHED; i++) {
        int failed = datadir_publish_one(dir, new_file, name, i);
        if (failed) {
            while (i-- > 0)
                datadir_take_back(dir, new_file, name, i);
            return failed;
        }
    }
    return 0;
}

int pd_datadir_remove_tail(const pd_datadir *dir, const char *name) {
    char tail[PD_FILE_NAME_BYTES];
    snprintf(tail, sizeof tail, "%s.photons" D7_TAIL_SUFFIX, name);
    return pd_datadir_remove(dir, tail);
}

int pd_datadir_sync(const pd_datadir *dir) {
    while (fsync(dir->fd) != 0) {
        if (errno == EINTR)
            continue;
        /* Some network file systems cannot sync a directory: nothing more can be done there. */
        return errno == EINVAL || errno == EROFS ? 0 : -errno;
    }
    return 0;
}

uint64_t pd_datadir_free_bytes(const pd_datadir *dir) {
    struct statvfs room;
    if (fstatvfs(dir->fd, &room) != 0)
        return UINT64_MAX;
    return (uint64_t)room.f_bavail * room.f_frsize;
}
