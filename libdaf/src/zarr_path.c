/* Paths of Zarr trees (specification "ZarrDaf", section 9). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "buf.h"
#include "error.h"
#include "zarr_store.h"

#define DIRECTORY ".daf.zarr"
#define ONE ".daf.zarr.zip"
#define MANY ".dafs.zarr.zip"
#define GROUP_MARK "#/"

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static bool is_directory(int dirfd, const char *path) {
    struct stat st;
    return fstatat(dirfd, path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static bool has_directory_suffix(const char *path) {
    size_t n = strlen(path), k = strlen(DIRECTORY);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n > k && memcmp(path + n - k, DIRECTORY, k) == 0;
}

/* A tree made from the path of another kind: ".zarr" cut out of it. */
static int parse_archive(daf__archive_path *where, int dirfd, const char *path, daf_error *err) {
    const char *mark = strstr(path, MANY GROUP_MARK);
    const char *what = NULL;
    if (mark && strstr(mark + 1, MANY GROUP_MARK))
        what = "can't parse as <stem>.dafs.zarr.zip#/<group>";
    else if (mark && !mark[strlen(MANY GROUP_MARK)])
        what = "empty group name after '#/' in ZarrDaf path";
    else if (!mark && strstr(path, ONE "#"))
        what = "can't address a sub-daf in a singular ZarrDaf path; use .dafs.zarr.zip#/<group>";
    else if (!mark && ends_with(path, MANY))
        what = "missing '#/<group>' in plural ZarrDaf path";
    if (what)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: %s", what, path);
    return daf__archive_path_take(where, dirfd, path,
                                  mark ? (size_t)(mark - path) + strlen(MANY) : strlen(path),
                                  mark ? mark + strlen(MANY GROUP_MARK) : NULL, err);
}

int daf__zarr_path_parse(bool *ret, daf__archive_path *where, int dirfd, const char *path, daf_error *err) {
    *where = (daf__archive_path){0};
    bool archive =
        ends_with(path, ONE) || ends_with(path, MANY) || strstr(path, ONE "#") || strstr(path, MANY "#");
    *ret = has_directory_suffix(path) || (archive && !is_directory(dirfd, path));
    return *ret && archive ? parse_archive(where, dirfd, path, err) : 0;
}
