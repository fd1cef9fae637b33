/* The directory store: putting a change in place.
 *
 * All outs are complete (and synced, when asked to) before the first step. Then each step is a rename or a mkdir;
 * what it replaces is first kept under a staging name, so that the steps already done can be undone when one
 * fails. At the end the kept files go. A process killed in between leaves staging names behind, which the next
 * writable open removes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "store_dir.h"

/* Remembers the folder of `key` as one to sync. */
static int mark_dirty(daf__dir_store *s, const char *key, daf_error *err) {
    if (!s->settings.sync)
        return 0;
    const char *slash = strrchr(key, '/');
    const char *folder = slash ? key : ".";
    size_t bytes = slash ? (size_t)(slash - key) : 1;
    for (size_t i = 0; i < s->dirty.n; i++)
        if (strlen(s->dirty.names[i]) == bytes && memcmp(s->dirty.names[i], folder, bytes) == 0)
            return 0;
    return daf__names_add(&s->dirty, folder, bytes, err);
}

int daf__dir_settle(daf__store *base, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    const daf_io *io = s->settings.io;
    int failed = 0;
    for (size_t i = 0; i < s->dirty.n && !failed; i++) {
        int fd = io->open(io->context, s->fd, s->dirty.names[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        if (fd < 0 && errno == ENOENT)
            continue; /* removed since */
        if (fd < 0 || io->sync(io->context, fd) != 0)
            failed = errno;
        if (fd >= 0)
            io->close(io->context, fd);
        if (failed)
            return daf__dir_fail(s, failed, "sync folder", s->dirty.names[i], err);
    }
    daf_names_clear(&s->dirty);
    return 0;
}

static int finish_out(daf__dir_store *s, daf__dir_out *o, const char *key, daf_error *err) {
    const daf_io *io = s->settings.io;
    int rc = daf__out_flush(&o->base, err);
    if (rc)
        return rc;
    if (s->settings.sync && io->sync(io->context, o->fd) != 0)
        return daf__dir_fail(s, errno, "sync", key, err);
    int fd = o->fd;
    o->fd = -1;
    if (io->close(io->context, fd) != 0)
        return daf__dir_fail(s, errno, "finish writing", key, err);
    return 0;
}

static int make_parents(daf__dir_store *s, const char *key) {
    char path[sizeof(daf__key)];
    size_t n = strlen(key);
    if (n >= sizeof path)
        return ENAMETOOLONG;
    memcpy(path, key, n + 1);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int rc = daf__dir_make_folder(s, path);
        if (rc && rc != EEXIST)
            return rc;
        *slash = '/';
    }
    return 0;
}

/* Gives what is at `key` a second, staging name. Where that cannot be (a file system without hard links) the
 * step simply cannot be undone. */
static int keep_copy(daf__dir_store *s, daf__step *step) {
    const daf_io *io = s->settings.io;
    if (io->link(io->context, s->fd, step->key, step->kept) == 0)
        return 0;
    step->kept[0] = 0;
    return errno == ENOSPC || errno == EIO || errno == EDQUOT || errno == EROFS ? errno : 0;
}

/* Each step function: 0 or an errno. */
static int step_put(daf__dir_store *s, daf__step *step, bool last) {
    const daf_io *io = s->settings.io;
    daf__dir_out *o = (daf__dir_out *)step->out;
    int rc = 0;
    if (last)
        step->kept[0] = 0; /* no step behind it can fail */
    else
        rc = keep_copy(s, step);
    if (rc == 0 && io->rename(io->context, s->fd, o->name, step->key) != 0)
        rc = errno;
    if (rc == ENOENT) {
        rc = make_parents(s, step->key);
        if (rc == 0 && io->rename(io->context, s->fd, o->name, step->key) != 0)
            rc = errno;
    }
    if (rc == 0)
        o->name[0] = 0;
    return rc;
}

static int step_remove(daf__dir_store *s, daf__step *step) {
    const daf_io *io = s->settings.io;
    if (io->rename(io->context, s->fd, step->key, step->kept) == 0)
        return 0;
    step->kept[0] = 0;
    return errno == ENOENT || errno == ENOTDIR ? 0 : errno;
}

static int step_make_folder(daf__dir_store *s, daf__step *step) {
    int rc = daf__dir_make_folder(s, step->key);
    if (rc == ENOENT && (rc = make_parents(s, step->key)) == 0)
        rc = daf__dir_make_folder(s, step->key);
    if (rc == 0)
        step->kept[0] = '+'; /* made by this step */
    else
        step->kept[0] = 0;
    return rc == EEXIST ? 0 : rc;
}

static int do_step(daf__dir_store *s, daf__step *step, bool last) {
    step->kept = malloc(DAF__STAGING_NAME);
    if (!step->kept)
        return ENOMEM;
    daf__dir_staging_name(s, step->kept);
    switch (step->kind) {
    case DAF__STEP_PUT:
        return step_put(s, step, last);
    case DAF__STEP_REMOVE:
        return step_remove(s, step);
    default:
        return step_make_folder(s, step);
    }
}

static void undo_step(daf__dir_store *s, daf__step *step) {
    const daf_io *io = s->settings.io;
    bool kept = step->kept && step->kept[0];
    if (step->kind == DAF__STEP_MAKE_FOLDER && step->done && kept)
        io->unlink(io->context, s->fd, step->key, AT_REMOVEDIR);
    else if (step->kind == DAF__STEP_PUT && !step->done && kept)
        io->unlink(io->context, s->fd, step->kept, 0); /* a second name of what is still in place */
    else if (step->kind != DAF__STEP_MAKE_FOLDER && kept)
        io->rename(io->context, s->fd, step->kept, step->key);
    else if (step->kind == DAF__STEP_PUT && step->done)
        io->unlink(io->context, s->fd, step->key, 0);
}

static void drop_kept(daf__dir_store *s, daf__step *step) {
    if (step->kind != DAF__STEP_MAKE_FOLDER && step->kept[0])
        daf__dir_remove_tree(s->settings.io, s->fd, step->kept);
}

int daf__dir_apply(daf__store *base, daf__change *c, daf_error *err) {
    static const char *const verbs[] = {"put in place", "remove", "make the folder"};
    daf__dir_store *s = (daf__dir_store *)base;
    int rc = 0;
    for (size_t i = 0; i < c->n_steps && rc == 0; i++) {
        daf__step *step = &c->steps[i];
        rc = mark_dirty(s, step->key, err);
        if (rc == 0 && step->kind == DAF__STEP_PUT)
            rc = finish_out(s, (daf__dir_out *)step->out, step->key, err);
    }
    if (rc == 0 && c->n_steps)
        rc = mark_dirty(s, ".", err);
    for (size_t i = 0; i < c->n_steps && rc == 0; i++) {
        daf__step *step = &c->steps[i];
        int failed = do_step(s, step, i + 1 == c->n_steps);
        step->done = failed == 0;
        if (!failed)
            continue;
        rc = daf__dir_fail(s, failed, verbs[step->kind], step->key, err);
        for (size_t k = i + 1; k-- > 0;)
            undo_step(s, &c->steps[k]);
    }
    for (size_t i = 0; i < c->n_steps && rc == 0; i++)
        drop_kept(s, &c->steps[i]);
    return rc;
}
