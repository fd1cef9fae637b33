#include "export_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "tree.h"
#include "wire/names.h"

#define PLACE_OWN_FOLDER ".photond"
#define PLACE_EXPORTS "exports"
#define PLACE_LINK_PREFIX PLACE_OWN_FOLDER "/" PLACE_EXPORTS "/"

enum { PLACE_PATH_BYTES = 256 };

/* Of hidden names, behind the number; and of visible ones. */
static const char *const place_hidden_ends[] = {[PD_FORM_DAF] = "", [PD_FORM_ZARR] = ".daf.zarr"};
static const char *const place_visible_ends[] = {[PD_FORM_DAF] = ".daf", [PD_FORM_ZARR] = ".daf.zarr"};

void pd_export_hidden_name(char name[PD_EXPORT_HIDDEN_BYTES], const char *run, uint64_t generation,
                           pd_export_form form) {
    snprintf(name, PD_EXPORT_HIDDEN_BYTES, "%.128s.%" PRIu64 "%s", run, generation, place_hidden_ends[form]);
}

static void place_visible_name(char name[PLACE_PATH_BYTES], const char *run, pd_export_form form) {
    snprintf(name, PLACE_PATH_BYTES, "%.128s%s", run, place_visible_ends[form]);
}

/* The run and form that a hidden name is of. Returns whether it is one of ours. */
static bool place_run_of(char run[PLACE_PATH_BYTES], pd_export_form *form, const char *hidden) {
    const char *end = hidden + strlen(hidden), *zarr = place_hidden_ends[PD_FORM_ZARR];
    *form = PD_FORM_DAF;
    if ((size_t)(end - hidden) > strlen(zarr) && strcmp(end - strlen(zarr), zarr) == 0) {
        *form = PD_FORM_ZARR;
        end -= strlen(zarr);
    }
    const char *dot = memrchr(hidden, '.', (size_t)(end - hidden));
    size_t n = dot ? (size_t)(dot - hidden) : 0;
    if (!dot || n == 0 || n >= PLACE_PATH_BYTES || dot + 1 == end ||
        dot + 1 + strspn(dot + 1, "0123456789") != end)
        return false;
    memcpy(run, hidden, n);
    run[n] = '\0';
    return wire_run_name_fault(run) == NULL;
}

static bool place_flag_unsupported(int error) {
    return error == EINVAL || error == ENOSYS || error == ENOTSUP || error == EOPNOTSUPP;
}

/* ---- opening and cleaning ---- */

/* Makes a folder of ours, open to the same people as the exports. */
static int place_open_folder(int dirfd, const char *name, const pd_exporter_options *options, pd_error *err) {
    if (mkdirat(dirfd, name, 0755) != 0 && errno != EEXIST)
        return pd_error_set(err, "%s cannot be made in the data folder: %s", name, strerror(errno));
    int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return pd_error_set(err, "%s in the data folder cannot be opened: %s", name, strerror(errno));
    if (fchmod(fd, options->dir_mode) == 0 &&
        (options->gid < 0 || fchown(fd, (uid_t)-1, (gid_t)options->gid) == 0))
        return fd;
    pd_error_set(err, "%s in the data folder cannot be given its mode and group: %s", name, strerror(errno));
    close(fd);
    return -1;
}

static bool place_leads_to(const pd_export_folder *folder, const char *visible, const char *hidden) {
    char to[PLACE_PATH_BYTES], wanted[PLACE_PATH_BYTES];
    ssize_t n = readlinkat(folder->data_fd, visible, to, sizeof to - 1);
    if (n < 0)
        return false;
    to[n] = '\0';
    snprintf(wanted, sizeof wanted, PLACE_LINK_PREFIX "%.159s", hidden);
    return strcmp(to, wanted) == 0;
}

/* What libdaf was making a Zarr tree of when its process was killed. */
static bool place_is_half_made(const char *hidden) {
    const char *end = ".daf.zarr.new";
    size_t n = strlen(hidden);
    return hidden[0] == '.' && n > strlen(end) && strcmp(hidden + n - strlen(end), end) == 0;
}

/* A directory that a link of ours shows takes the link's place; others are removed. */
static void place_clean_entry(pd_export_folder *folder, const char *hidden) {
    char run[PLACE_PATH_BYTES], visible[PLACE_PATH_BYTES];
    pd_error why = {.text = ""};
    pd_export_form form;
    bool half_made = place_is_half_made(hidden);
    if (!half_made && !place_run_of(run, &form, hidden))
        return;
    if (!half_made)
        place_visible_name(visible, run, form);
    if (half_made || !place_leads_to(folder, visible, hidden)) {
        if (pd_tree_remove(folder->exports_fd, hidden, &why) != 0)
            pd_log(PD_LOG_WARNING, "left-over export %s: %s", hidden, why.text);
        return;
    }
    if (unlinkat(folder->data_fd, visible, 0) != 0 ||
        renameat(folder->exports_fd, hidden, folder->data_fd, visible) != 0)
        pd_log(PD_LOG_WARNING, "export %s of an earlier daemon cannot be moved to %s: %s", hidden, visible,
               strerror(errno));
}

static int place_clean(pd_export_folder *folder, pd_error *err) {
    int fd = openat(folder->exports_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return pd_error_set(err, PLACE_LINK_PREFIX " cannot be listed: %s", strerror(errno));
    }
    struct dirent *entry;
    while ((entry = readdir(dir)))
        place_clean_entry(folder, entry->d_name);
    closedir(dir);
    return 0;
}

/* Exchanges two empty directories to see whether that works. */
static bool place_probe_exchange(int fd) {
    static const char *const names[2] = {".probe-a", ".probe-b"};
    for (int i = 0; i < 2; i++)
        if (mkdirat(fd, names[i], 0700) != 0 && errno != EEXIST)
            return false;
    bool works = renameat2(fd, names[0], fd, names[1], RENAME_EXCHANGE) == 0;
    for (int i = 0; i < 2; i++)
        unlinkat(fd, names[i], AT_REMOVEDIR);
    return works;
}

/* Returns the descriptor; -1 with err. */
static int place_open_exports(const pd_export_folder *folder, const pd_exporter_options *options,
                              pd_error *err) {
    int own = place_open_folder(folder->data_fd, PLACE_OWN_FOLDER, options, err);
    if (own < 0)
        return -1;
    int fd = place_open_folder(own, PLACE_EXPORTS, options, err);
    close(own);
    return fd;
}

int pd_export_folder_open(pd_export_folder *folder, const pd_exporter_options *options, pd_error *err) {
    *folder = (pd_export_folder){.data_fd = -1, .exports_fd = -1};
    folder->data_fd = fcntl(options->data_fd, F_DUPFD_CLOEXEC, 0);
    if (folder->data_fd < 0)
        return pd_error_set(err, "%s cannot be held: %s", options->data_dir, strerror(errno));
    folder->exports_fd = place_open_exports(folder, options, err);
    if (folder->exports_fd < 0 || place_clean(folder, err) != 0) {
        pd_export_folder_close(folder);
        return pd_error_prefix(err, "%s", options->data_dir);
    }
    folder->exchanges = !options->links && place_probe_exchange(folder->exports_fd);
    return 0;
}

int pd_export_folder_renew(pd_export_folder *folder, const pd_exporter_options *options, pd_error *err) {
    struct stat held, there;
    if (fstat(folder->exports_fd, &held) == 0 &&
        fstatat(folder->data_fd, PLACE_OWN_FOLDER "/" PLACE_EXPORTS, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        held.st_dev == there.st_dev && held.st_ino == there.st_ino)
        return 0;
    int fd = place_open_exports(folder, options, err);
    if (fd < 0)
        return -1;
    close(folder->exports_fd);
    folder->exports_fd = fd;
    pd_log(PD_LOG_WARNING,
           "the data folder's " PLACE_LINK_PREFIX " was removed by another program: made anew");
    return 0;
}

void pd_export_folder_close(pd_export_folder *folder) {
    if (folder->exports_fd >= 0)
        close(folder->exports_fd);
    if (folder->data_fd >= 0)
        close(folder->data_fd);
    folder->exports_fd = folder->data_fd = -1;
}

/* ---- placing ---- */

static int place_taken(const char *visible, pd_error *err) {
    return pd_error_set(err, "%s is there already and is not of this run: it is left alone", visible);
}

/* Whether what is visible is what was placed last. 1 yes, 0 it is gone or never was, -1 with err: it is
 * something else. */
static int place_is_ours(const pd_export_folder *folder, const pd_export_target *target, pd_export_form form,
                         const char *visible, pd_error *err) {
    const pd_export_shown *shown = &target->shown[form];
    if (!shown->linked && shown->fd < 0)
        return 0;
    struct stat there, placed;
    if (fstatat(folder->data_fd, visible, &there, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0
                               : pd_error_set(err, "%s cannot be looked at: %s", visible, strerror(errno));
    if (shown->linked) {
        char hidden[PD_EXPORT_HIDDEN_BYTES];
        pd_export_hidden_name(hidden, target->name, shown->generation, form);
        return place_leads_to(folder, visible, hidden) ? 1 : place_taken(visible, err);
    }
    /* the inode's number is not used again as long as it is held */
    if (fstat(shown->fd, &placed) != 0)
        return pd_error_set(err, "%s cannot be looked at: %s", visible, strerror(errno));
    return there.st_dev == placed.st_dev && there.st_ino == placed.st_ino ? 1 : place_taken(visible, err);
}

static int place_link(pd_export_folder *folder, const char *hidden, const char *visible, bool replace,
                      pd_error *err) {
    static const char staged[] = ".link";
    char to[PLACE_PATH_BYTES];
    snprintf(to, sizeof to, PLACE_LINK_PREFIX "%.159s", hidden);
    int dirfd = replace ? folder->exports_fd : folder->data_fd;
    const char *name = replace ? staged : visible;
    if (replace)
        unlinkat(dirfd, staged, 0);
    if (symlinkat(to, dirfd, name) != 0)
        return errno == EEXIST
                   ? place_taken(visible, err)
                   : pd_error_set(err, "the link %s cannot be made: %s", visible, strerror(errno));
    if (replace && renameat(dirfd, staged, folder->data_fd, visible) != 0)
        return pd_error_set(err, "the link %s cannot be replaced: %s", visible, strerror(errno));
    return 0;
}

/* The first export of a run: NAME.daf is not there, or not ours. */
static int place_first(pd_export_folder *folder, const char *hidden, const char *visible, pd_error *err) {
    if (renameat2(folder->exports_fd, hidden, folder->data_fd, visible, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno == EEXIST)
        return place_taken(visible, err);
    if (!place_flag_unsupported(errno))
        return pd_error_set(err, "%s cannot be put in place: %s", visible, strerror(errno));
    /* an empty directory claims the name, and a rename may replace it */
    if (mkdirat(folder->data_fd, visible, 0700) != 0)
        return errno == EEXIST ? place_taken(visible, err)
                               : pd_error_set(err, "%s cannot be made: %s", visible, strerror(errno));
    if (renameat(folder->exports_fd, hidden, folder->data_fd, visible) == 0)
        return 0;
    int why = errno;
    unlinkat(folder->data_fd, visible, AT_REMOVEDIR);
    return pd_error_set(err, "%s cannot be put in place: %s", visible, strerror(why));
}

static int place_exchange(pd_export_folder *folder, const char *hidden, const char *visible, pd_error *err) {
    if (renameat2(folder->exports_fd, hidden, folder->data_fd, visible, RENAME_EXCHANGE) != 0)
        return pd_error_set(err, "%s cannot be exchanged: %s", visible, strerror(errno));
    return 0;
}

/* The last export of a run whose exports were links: for a moment there is none. */
static int place_instead_of_link(pd_export_folder *folder, const char *hidden, const char *visible,
                                 pd_error *err) {
    if (unlinkat(folder->data_fd, visible, 0) != 0)
        return pd_error_set(err, "the link %s cannot be removed: %s", visible, strerror(errno));
    return place_first(folder, hidden, visible, err);
}

/* Puts the directory `hidden` where the visible one is; `ours` whether that is of the run. */
static int place_directory(pd_export_folder *folder, const pd_export_shown *shown, const char *hidden,
                           const char *visible, bool ours, pd_error *err) {
    if (ours && shown->linked)
        return place_instead_of_link(folder, hidden, visible, err);
    return ours ? place_exchange(folder, hidden, visible, err) : place_first(folder, hidden, visible, err);
}

int pd_export_place(pd_export_folder *folder, pd_export_target *target, pd_export_form form, bool final,
                    char retired[PD_EXPORT_HIDDEN_BYTES], pd_error *err) {
    pd_export_shown *shown = &target->shown[form];
    char visible[PLACE_PATH_BYTES], hidden[PD_EXPORT_HIDDEN_BYTES];
    place_visible_name(visible, target->name, form);
    pd_export_hidden_name(hidden, target->name, folder->generation, form);
    int ours = place_is_ours(folder, target, form, visible, err);
    if (ours < 0)
        return -1;
    int fd = openat(folder->exports_fd, hidden, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return pd_error_set(err, "%s cannot be held: %s", hidden, strerror(errno));
    bool link = !folder->exchanges && !final;
    if ((link ? place_link(folder, hidden, visible, ours, err)
              : place_directory(folder, shown, hidden, visible, ours, err)) != 0) {
        close(fd);
        return -1;
    }
    retired[0] = '\0';
    if (shown->linked)
        pd_export_hidden_name(retired, target->name, shown->generation, form);
    else if (ours)
        memcpy(retired, hidden, sizeof hidden); /* it took the new one's hidden name */
    if (shown->fd >= 0)
        close(shown->fd);
    *shown = (pd_export_shown){.fd = fd, .linked = link, .generation = folder->generation};
    return 0;
}
