#include "archive_path.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "error.h"
#include "utf8.h"

#define ONE ".daf.zip"
#define MANY ".dafs.zip"
#define GROUP_MARK "#/"

void daf__archive_path_free(daf__archive_path *p) {
    free(p->archive);
    free(p->group);
    free(p->full);
    *p = (daf__archive_path){0};
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static bool means_archive(int dirfd, const char *path) {
    bool archive = ends_with(path, ".zip") || strstr(path, ONE "#") || strstr(path, MANY "#");
    struct stat st;
    return archive && !(fstatat(dirfd, path, &st, 0) == 0 && S_ISDIR(st.st_mode));
}

/* Finds the place of the group's mark; *archive_bytes: the archive's part of the path. */
static int split(const char *path, size_t *archive_bytes, const char **group, daf_error *err) {
    const char *mark = strstr(path, MANY GROUP_MARK);
    *group = NULL;
    *archive_bytes = strlen(path);
    if (mark && strstr(mark + 1, MANY GROUP_MARK))
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "can't parse as <stem>.dafs.zip#/<group>: %s", path);
    if (mark) {
        *archive_bytes = (size_t)(mark - path) + strlen(MANY);
        *group = mark + strlen(MANY GROUP_MARK);
        return **group ? 0
                       : daf__fail(err, DAF_ERR_ARG, 0, 0, "empty group name after '#/' in ZipDaf path: %s",
                                   path);
    }
    if (strstr(path, ONE "#"))
        return daf__fail(err, DAF_ERR_ARG, 0, 0,
                         "can't address a sub-daf in a singular ZipDaf path; use .dafs.zip#/<group>: %s",
                         path);
    if (ends_with(path, ONE))
        return 0;
    if (ends_with(path, MANY))
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "missing '#/<group>' in plural ZipDaf path: %s", path);
    return daf__fail(
        err, DAF_ERR_ARG, 0, 0,
        "can't parse as ZipDaf path: %s\nexpected one of: <stem>.daf.zip, <stem>.dafs.zip#/<group>", path);
}

/* The parts of the group become parts of names in the archive, and of paths when it is unpacked. */
static int check_group(const char *group, daf_error *err) {
    for (const char *part = group;; part++) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return daf__fail(err, DAF_ERR_NAME, 0, 0,
                             "the group \"%.200s\" has a part that is empty, \".\" or \"..\"", group);
        part += n;
        if (!*part)
            break;
    }
    if (daf__utf8_prefix(group, strlen(group)) != strlen(group))
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "the name of the group is not UTF-8");
    return 0;
}

/* Without looking at links: for messages. */
static char *absolute(int dirfd, const char *path) {
    char folder[PATH_MAX], link[64], *full = NULL;
    if (path[0] == '/')
        return strdup(path);
    ssize_t n = -1;
    if (dirfd == AT_FDCWD) {
        n = getcwd(folder, sizeof folder) ? (ssize_t)strlen(folder) : -1;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
        n = readlink(link, folder, sizeof folder);
    }
    if (n < 0 || n >= (ssize_t)sizeof folder)
        return strdup(path);
    if (n == 1)
        n = 0; /* the root */
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    return asprintf(&full, "%.*s/%s", (int)n, folder, path) < 0 ? NULL : full;
}

int daf__archive_path_take(daf__archive_path *ret, int dirfd, const char *path, size_t bytes,
                           const char *group, daf_error *err) {
    int rc = group ? check_group(group, err) : 0;
    if (rc)
        return rc;
    daf__archive_path p = {.archive = daf__copy_text(path, bytes),
                           .group = group ? strdup(group) : NULL,
                           .full = absolute(dirfd, path)};
    if (!p.archive || !p.full || (group && !p.group)) {
        daf__archive_path_free(&p);
        return daf__no_memory(err);
    }
    *ret = p;
    return 0;
}

int daf__archive_path_parse(daf__archive_path *ret, int dirfd, const char *path, daf_error *err) {
    *ret = (daf__archive_path){0};
    if (!means_archive(dirfd, path))
        return 0;
    size_t bytes;
    const char *group;
    int rc = split(path, &bytes, &group, err);
    return rc ? rc : daf__archive_path_take(ret, dirfd, path, bytes, group, err);
}
