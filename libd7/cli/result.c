#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "cli/output.h"

int command_stopped_code(const command *self) {
    return command_fail(self, CLI_STOPPED_TEXT);
}

/* The files that are read, known by where they lie and not by their names. */
static struct {
    dev_t device;
    ino_t inode;
} * sources;
static size_t n_sources;

void result_source(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    void *more = realloc(sources, (n_sources + 1) * sizeof *sources);
    if (!more) {
        fputs("d7: out of memory\n", stderr);
        exit(CLI_USAGE);
    }
    sources = more;
    sources[n_sources].device = st.st_dev;
    sources[n_sources].inode = st.st_ino;
    n_sources++;
}

static bool is_source(const struct stat *st) {
    for (size_t i = 0; i < n_sources; i++)
        if (sources[i].device == st->st_dev && sources[i].inode == st->st_ino)
            return true;
    return false;
}

/* "DIR/.NAME.PID.new": hidden, in the same folder so that it can be renamed. Of a name as long as names may be, its
 * beginning. */
static char *temporary_name(const char *path) {
    enum { NAME_BYTES = 200 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char *text;
    if (asprintf(&text, "%.*s.%.*s.%ld.new", (int)(name - path), path, NAME_BYTES, name, (long)getpid()) < 0)
        return NULL;
    return text;
}

/* ---- names in messages ---- */

/* The hidden name of the file that is being made, and the one that messages call it by; NULL: none is. */
static struct { char *hidden, *shown; } present;

static char *printable(const char *text) {
    size_t bytes = strlen(text), cap = COMMON_PRINTABLE_MAX * bytes + 1;
    char *shown = malloc(cap);
    if (shown)
        common_printable(shown, cap, text, bytes);
    return shown;
}

static void forget_names(void) {
    free(present.hidden);
    free(present.shown);
    present.hidden = present.shown = NULL;
}

/* Without memory the messages have the hidden name. */
static void note_names(const result_file *result) {
    forget_names();
    present.hidden = printable(result->temporary);
    present.shown = printable(result->path);
}

char *result_message(const char *text) {
    char *message = printable(text), *at, *named;
    if (!message || !present.hidden || !present.shown || !(at = strstr(message, present.hidden)))
        return message;
    int n = asprintf(&named, "%.*s%s%s", (int)(at - message), message, present.shown,
                     at + strlen(present.hidden));
    free(message);
    return n < 0 ? NULL : named;
}

/* ---- beginning and end ---- */

/* A file that a live writer holds is not replaced: what it records from then on would have no name. */
static bool is_held(const char *path) {
    const d7_io *io = d7_io_system();
    void *file;
    bool held = false;
    if (io->open(io->ctx, path, D7_IO_READ, 0, &file) != 0)
        return false;
    if (io->held(io->ctx, file, &held) != 0)
        held = false;
    io->close(io->ctx, file);
    return held;
}

/* The folder of a path; "." where it names none. NULL: out of memory. To be freed. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

/* Can files be made beside it? Else errno says why. */
static bool has_folder(const char *path) {
    char *folder = folder_of(path);
    bool there = folder && access(folder, W_OK | X_OK) == 0;
    int saved = folder ? errno : ENOMEM;
    free(folder);
    errno = saved;
    return there;
}

static int check_place(const command *self, const char *path, bool overwrite) {
    struct stat st;
    if (!*path)
        return command_fail(self, "the name of the result is empty");
    bool there = stat(path, &st) == 0;
    if (there && !S_ISREG(st.st_mode))
        return command_fail(self, "%s: is %s, which no file replaces", path,
                            S_ISDIR(st.st_mode) ? "a folder" : "a pipe or a device");
    if (!overwrite && lstat(path, &st) == 0)
        return command_fail(self, "%s: the file exists already; --overwrite replaces it", path);
    if (there && is_source(&st))
        return command_fail(self, "%s: is the file that is read; choose another name", path);
    if (there && S_ISREG(st.st_mode) && is_held(path))
        return command_fail(self, "%s: a writer holds this file; it is not replaced", path);
    return has_folder(path) ? 0 : command_fail(self, "%s: cannot be made: %s", path, strerror(errno));
}

int result_begin(const command *self, const char *path, bool overwrite, result_file *ret) {
    *ret = (result_file){.self = self, .overwrite = overwrite};
    int code = check_place(self, path, overwrite);
    if (code != 0)
        return code;
    ret->path = strdup(path);
    ret->temporary = temporary_name(path);
    if (!ret->path || !ret->temporary) {
        result_drop(ret);
        return command_fail(self, "out of memory");
    }
    if (unlink(ret->temporary) != 0 && errno != ENOENT) {
        code = command_fail(self, "%s: cannot be made: %s", path, strerror(errno));
        free(ret->temporary);
        ret->temporary = NULL;
        return code;
    }
    note_names(ret);
    cli_catch_stop();
    return 0;
}

/* The name of an existing file is refused by the file system itself where it can. */
static int name_it(const result_file *result) {
    if (result->overwrite)
        return rename(result->temporary, result->path);
    if (renameat2(AT_FDCWD, result->temporary, AT_FDCWD, result->path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    return link(result->temporary, result->path) == 0 ? unlink(result->temporary) : -1;
}

static int sync_it(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int rc = fsync(fd), saved = errno;
    close(fd);
    errno = saved;
    return rc;
}

static void sync_folder(const char *path) {
    char *folder = folder_of(path);
    if (folder)
        (void)sync_it(folder);
    free(folder);
}

int result_commit(result_file *result) {
    int code = 0;
    if (cli_stopped)
        code = command_stopped_code(result->self);
    else if (sync_it(result->temporary) != 0)
        code = command_fail(result->self, "%s: writing it out failed: %s", result->path, strerror(errno));
    else if (name_it(result) != 0)
        code = command_fail(result->self, "%s: cannot get its name: %s%s", result->path, strerror(errno),
                            errno == EEXIST ? "; --overwrite replaces it" : "");
    if (code == 0) {
        sync_folder(result->path);
        free(result->temporary);
        result->temporary = NULL;
    }
    result_drop(result);
    return code;
}

void result_drop(result_file *result) {
    if (result->temporary)
        unlink(result->temporary);
    if (result->path)
        forget_names();
    free(result->temporary);
    free(result->path);
    result->temporary = result->path = NULL;
}
