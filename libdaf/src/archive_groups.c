/* The repositories in an archive. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "archive.h"
#include "error.h"
#include "handle.h"

#define MANY ".dafs.zip"
#define MARKER "/daf.json"

static int check_path(const char *path, daf_error *err) {
    size_t n = path ? strlen(path) : 0, k = strlen(MANY);
    struct stat st;
    if (n >= k && strcmp(path + n - k, MANY) == 0 && !(stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: is no path of an archive with groups, <stem>.dafs.zip",
                     path ? path : "NULL");
}

/* Whether the entry is the marker of a group, and not hidden by a later one of the same name. */
static bool is_marker(const daf__archive_directory *d, uint32_t i, const char **group, size_t *bytes) {
    size_t n = d->entries[i].name_bytes, k = strlen(MARKER);
    const char *name = daf__archive_plain_name(daf__archive_entry_name(d, &d->entries[i]), &n);
    if (n <= k || memcmp(name + n - k, MARKER, k) != 0 || daf__archive_names_find(&d->names, name, n) != i)
        return false;
    *group = name;
    *bytes = n - k;
    return true;
}

static int collect(daf_names *names, const daf__archive_directory *d, daf_error *err) {
    const char *group;
    size_t bytes;
    int rc = 0;
    for (uint32_t i = 0; i < d->n && rc == 0; i++)
        if (is_marker(d, i, &group, &bytes))
            rc = daf__names_add(names, group, bytes, err);
    return rc;
}

static int list_groups(daf_names *names, const daf__archive_path *where,
                       const daf__archive_settings *settings, daf_error *err) {
    daf__archive *a;
    bool made;
    int rc =
        daf__archive_open(&a, &made, AT_FDCWD, where, (daf__open_mode){.writable = false}, settings, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&a->lock);
    rc = daf__archive_refresh(a, err);
    if (rc == 0)
        rc = collect(names, &a->directory, err);
    pthread_mutex_unlock(&a->lock);
    daf__archive_release(a);
    return rc;
}

int daf_list_groups(daf_names *ret, const char *path, const daf_options *options, daf_error *err) {
    daf__archive_settings settings = {.io = options && options->io ? options->io : &daf__system_io};
    daf__archive_path where;
    daf_names names = {0};
    int rc = check_path(path, err);
    if (rc == 0)
        rc = daf__archive_path_take(&where, AT_FDCWD, path, strlen(path), NULL, err);
    if (rc)
        return rc;
    rc = list_groups(&names, &where, &settings, err);
    daf__archive_path_free(&where);
    if (rc) {
        daf_names_clear(&names);
        return rc;
    }
    daf__names_sort(&names);
    *ret = names;
    return 0;
}
