/* What commands that were killed have left of a result of the same name. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "result.h"

static const char *const endings[] = {[RESULT_DIRECTORY] = "",
                                      [RESULT_ARCHIVE] = ".daf.zip",
                                      [RESULT_GROUP] = ".dafs.zip",
                                      [RESULT_ZARR] = ".daf.zarr"};
enum { N_ENDINGS = sizeof endings / sizeof endings[0], NAME_BYTES = 200 /* of a longer one the beginning */ };

static const char *name_in(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

char *result_hidden_name(const char *file, result_kind kind) {
    const char *name = name_in(file);
    char *text;
    if (asprintf(&text, "%.*s.%.*s.%ld.new%s", (int)(name - file), file, NAME_BYTES, name, (long)getpid(),
                 endings[kind]) < 0)
        return NULL;
    return text;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where) {
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

void result_remove_tree(const char *path) {
    enum { OPEN_FOLDERS = 16 };
    nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

/* The library makes some of them under a name ending in ".new" that is hidden once more. */
static bool is_ending(const char *text) {
    for (unsigned i = 0; i < N_ENDINGS; i++) {
        size_t n = strlen(endings[i]);
        if (strncmp(text, endings[i], n) == 0 && (text[n] == 0 || strcmp(text + n, ".new") == 0))
            return true;
    }
    return false;
}

/* Whether the entry is a hidden name of a result called `name`, made by a process that is gone. */
static bool is_left(const char *entry, const char *name) {
    size_t n = strlen(name) < NAME_BYTES ? strlen(name) : NAME_BYTES;
    entry += entry[0] == '.' && entry[1] == '.';
    if (entry[0] != '.' || strncmp(entry + 1, name, n) != 0 || entry[1 + n] != '.' ||
        !isdigit((unsigned char)entry[2 + n]))
        return false;
    char *end;
    errno = 0;
    long pid = strtol(entry + 2 + n, &end, 10);
    bool named = errno == 0 && pid > 0 && strncmp(end, ".new", 4) == 0 && is_ending(end + 4);
    return named && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* A process on another machine is not to be seen, but its lock is. */
static bool is_held(int folder, const char *entry) {
    int fd = openat(folder, entry, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

void result_remove_left(const char *file) {
    const char *name = name_in(file);
    char *folder = name == file ? strdup("./") : strndup(file, (size_t)(name - file)), *path;
    DIR *d = folder ? opendir(folder) : NULL;
    struct dirent *entry;
    while (d && (entry = readdir(d))) {
        if (!is_left(entry->d_name, name) || is_held(dirfd(d), entry->d_name) ||
            asprintf(&path, "%s%s", folder, entry->d_name) < 0)
            continue;
        result_remove_tree(path);
        free(path);
    }
    if (d)
        closedir(d);
    free(folder);
}
