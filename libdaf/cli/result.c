#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUP_MARK ".dafs.zip#/"

static bool ends_in(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

result_kind result_kind_of(const char *path) {
    if (strstr(path, GROUP_MARK))
        return RESULT_GROUP;
    if (ends_in(path, ".daf.zip"))
        return RESULT_ARCHIVE;
    return ends_in(path, ".daf.zarr") ? RESULT_ZARR : RESULT_DIRECTORY;
}

/* ---- names */

/* The path without slashes at its end. */
static char *copy_plain(const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return strndup(path, n);
}

static int no_memory(const result *r) {
    return cli_fail(r->self, "out of memory");
}

/* Sets file, temporary and path. */
static int name_result(result *r, const char *path) {
    const char *mark = r->kind == RESULT_GROUP ? strstr(path, GROUP_MARK) : NULL;
    const char *group = mark ? mark + strlen(GROUP_MARK) - 2 : "";
    struct stat st;
    r->file = mark ? strndup(path, (size_t)(group - path)) : copy_plain(path);
    if (!r->file)
        return no_memory(r);
    if (r->kind == RESULT_GROUP && lstat(r->file, &st) == 0) {
        r->path = strdup(path);
        return r->path ? 0 : no_memory(r);
    }
    r->temporary = result_hidden_name(r->file, r->kind);
    if (!r->temporary || asprintf(&r->path, "%s%s", r->temporary, group) < 0) {
        r->path = NULL;
        return no_memory(r);
    }
    return 0;
}

/* ---- what is there */

/* A folder is replaced only when it is a repository. */
static bool is_repository(const result *r, const struct stat *st) {
    const char *marker = r->kind == RESULT_ZARR ? "zarr.json" : "daf.json";
    char *path;
    if (r->kind == RESULT_ARCHIVE) {
        daf *d = NULL;
        bool opens = S_ISREG(st->st_mode) && daf_open(&d, r->file, "r", NULL, NULL) == 0;
        daf_free(d);
        return opens;
    }
    if (!S_ISDIR(st->st_mode) || asprintf(&path, "%s/%s", r->file, marker) < 0)
        return false;
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* What a writer holds is not replaced: what it writes from then on would have no name. */
static int take_lock(result *r) {
    r->lock = open(r->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->lock >= 0 && flock(r->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return cli_fail(r->self, "%s: a writer has it open; it is not replaced", r->file);
    return 0;
}

static int check_place(result *r) {
    struct stat st;
    if (!*r->file)
        return cli_fail(r->self, "the name of the result is empty");
    if (!r->temporary || lstat(r->file, &st) != 0)
        return 0;
    if (!r->overwrite)
        return cli_fail(r->self, "%s: is there already; --overwrite replaces it", r->file);
    if (S_ISLNK(st.st_mode))
        return cli_fail(r->self, "%s: is a symbolic link; it is not replaced", r->file);
    if (!is_repository(r, &st))
        return cli_fail(r->self, "%s: is no repository of this kind; it is not replaced", r->file);
    return take_lock(r);
}

static bool is_zarr_archive(const char *path) {
    return ends_in(path, ".daf.zarr.zip") || ends_in(path, ".dafs.zarr.zip") ||
           strstr(path, ".dafs.zarr.zip#") || strstr(path, ".daf.zarr.zip#");
}

/* What is no right path of an archive is told of as it was given. */
static int check_path(const cli_command *self, const char *path) {
    daf *d;
    daf_error err;
    if (!strstr(path, ".zip"))
        return 0;
    if (is_zarr_archive(path))
        return cli_fail(self, "can't convert into a zip-backed ZarrDaf: %s", path);
    int rc = daf_open(&d, path, "r", NULL, &err);
    if (rc == 0)
        daf_free(d);
    return rc == DAF_ERR_ARG || rc == DAF_ERR_NAME ? command_fail(self, &err) : 0;
}

/* A group is made, never replaced. */
static int check_group(const result *r) {
    daf *there;
    daf_error err;
    int rc = daf_open(&there, r->path, "r", NULL, &err);
    if (rc == DAF_ERR_NOT_DAF)
        return 0;
    if (rc)
        return command_fail(r->self, &err);
    daf_free(there);
    return cli_fail(r->self, "%s: is there already; archives are append-only", r->path);
}

/* ---- beginning and end */

static int open_result(result *r, cli_pool *pool) {
    daf_options options;
    daf_executor executor;
    daf_error err;
    command_options(&options, &executor, pool);
    options.sync = true;
    options.late_marker = !r->temporary;
    int rc = daf_open(&r->d, r->path, "w+", &options, &err);
    if (rc == 0)
        rc = daf_batch_begin(r->d, &err);
    return rc ? command_fail(r->self, &err) : 0;
}

static void drop(result *r) {
    daf_free(r->d);
    if (r->temporary)
        result_remove_tree(r->temporary);
    if (r->lock >= 0)
        close(r->lock);
    free(r->file);
    free(r->temporary);
    free(r->path);
    *r = (result){.lock = -1};
}

static bool is_appended(const char *path) {
    const char *mark = strstr(path, GROUP_MARK);
    char *archive = mark ? strndup(path, (size_t)(mark - path) + strlen(GROUP_MARK) - 2) : NULL;
    bool there = archive && access(archive, F_OK) == 0;
    free(archive);
    return there;
}

int result_begin(result *ret, const cli_command *self, const char *path, bool overwrite, cli_pool *pool) {
    *ret = (result){.self = self, .kind = result_kind_of(path), .overwrite = overwrite, .lock = -1};
    int code = check_path(self, path);
    if (code == 0)
        code = name_result(ret, path);
    if (code == 0)
        code = check_place(ret);
    if (code == 0 && !ret->temporary)
        code = check_group(ret);
    if (code == 0)
        cli_catch_stop();
    if (code == 0 && ret->temporary)
        result_remove_left(ret->file);
    if (code == 0 && ret->temporary)
        result_remove_tree(ret->temporary); /* of a process of the same number */
    if (code == 0 && ret->kind != RESULT_ZARR)
        code = open_result(ret, pool);
    if (code)
        drop(ret);
    return code;
}

int result_begin_from(result *ret, const cli_command *self, const char *path, bool overwrite, cli_pool *pool,
                      int (*open)(void *context, cli_pool *pool), void *context) {
    bool first = is_appended(path);
    int code = first ? result_begin(ret, self, path, overwrite, pool) : open(context, pool);
    if (code)
        return code;
    code = first ? open(context, pool) : result_begin(ret, self, path, overwrite, pool);
    return code && first ? result_end(ret, code) : code;
}

static void sync_folder(const char *file) {
    const char *slash = strrchr(file, '/');
    char *folder = slash ? strndup(file, slash == file ? 1 : (size_t)(slash - file)) : strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(folder);
}

/* What is replaced takes the hidden name, and is removed. */
static int give_name(result *r) {
    unsigned how = r->lock >= 0 ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (renameat2(AT_FDCWD, r->temporary, AT_FDCWD, r->file, how) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    /* A file system that knows neither: files replace each other, folders give way. */
    struct stat st;
    if (r->lock < 0 && lstat(r->file, &st) == 0)
        return EEXIST;
    if (r->lock >= 0 && r->kind != RESULT_ARCHIVE)
        result_remove_tree(r->file);
    return rename(r->temporary, r->file) == 0 ? 0 : errno;
}

static int finish(result *r) {
    daf_error err;
    daf *d = r->d;
    r->d = NULL;
    if (daf_close(d, &err) != 0)
        return command_fail(r->self, &err);
    if (!r->temporary)
        return 0;
    int rc = give_name(r);
    if (rc)
        return cli_fail(r->self, "%s: cannot get its name: %s%s", r->file, strerror(rc),
                        rc == EEXIST ? "; --overwrite replaces it" : "");
    sync_folder(r->file);
    return 0;
}

void result_show_name(const result *r, daf_error *err) {
    char rest[sizeof err->text], *at = r->temporary ? strstr(err->text, r->temporary) : NULL;
    if (!at)
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(r->temporary));
    snprintf(at, sizeof err->text - (size_t)(at - err->text), "%s%s", r->file, rest);
}

int result_end(result *r, int code) {
    if (code == 0 && cli_stopped)
        code = cli_stopped_code(r->self);
    if (code == 0)
        code = finish(r);
    drop(r);
    return code;
}
