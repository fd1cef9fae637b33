/* The directory store: putting a change in place.
 *
 * All outs are complete (and synced, when asked to) before the first step. Then it is planned what each step replaces,
 * the plan is written to the journal (store_dir_journal.h) unless it is a single step, and each step is a rename or a
 * mkdir that keeps what was there under a staging name. The removal of the journal makes the change final; then what
 * was kept goes. When a step fails, or the process is killed, the change is undone from the journal: by this call, or
 * by the next writable open, which also removes staging names.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "metadata.h"
#include "store_dir_journal.h"

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

static int sync_dirty(daf__dir_store *s, daf_error *err) {
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

int daf__dir_settle(daf__store *base, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    daf__journal_close(s);
    return sync_dirty(s, err);
}

static int finish_out(daf__dir_store *s, daf__dir_out *o, const char *key, daf_error *err) {
    const daf_io *io = s->settings.io;
    int rc = daf__out_flush(&o->base, err);
    if (rc)
        return rc;
    if (s->settings.sync && io->sync(io->context, o->fd) != 0)
        return daf__dir_fail(s, errno, "sync", key, err);
    struct stat st;
    if (fstat(o->fd, &st) != 0)
        return daf__dir_fail(s, errno, "look at", key, err);
    o->stamp = daf__dir_stamp_of(&st);
    int fd = o->fd;
    o->fd = -1;
    if (io->close(io->context, fd) != 0)
        return daf__dir_fail(s, errno, "finish writing", key, err);
    return 0;
}

int daf__dir_make_parents(daf__dir_store *s, const char *key) {
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

/* ---- planning */

static bool is_removed_before(const daf__dir_plan *p, const char *key) {
    for (size_t i = 0; i < p->n; i++)
        if (p->steps[i].kind == DAF__STEP_REMOVE && strcmp(p->steps[i].key, key) == 0)
            return true;
    return false;
}

static int is_there(const daf__dir_store *s, const char *key, bool *ret) {
    struct stat st;
    *ret = fstatat(s->fd, key, &st, AT_SYMLINK_NOFOLLOW) == 0;
    return *ret || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
}

/* Adds what the step has to do, if anything. 0 or an errno. */
static int plan_step(daf__dir_store *s, daf__dir_plan *p, const daf__step *step) {
    bool there;
    int rc = daf__dir_check_way(s, step->key);
    if (rc == 0)
        rc = is_there(s, step->key, &there);
    if (rc)
        return rc;
    there = there && !is_removed_before(p, step->key);
    if (step->kind == DAF__STEP_REMOVE ? !there : step->kind == DAF__STEP_MAKE_FOLDER && there)
        return 0;
    daf__dir_step *planned = daf__dir_plan_add(p, step->key);
    if (!planned)
        return ENOMEM;
    planned->kind = step->kind;
    if (there)
        daf__dir_staging_name(s, planned->kept);
    if (step->kind == DAF__STEP_PUT) {
        planned->out = (daf__dir_out *)step->out;
        planned->placed = planned->out->stamp;
    }
    return 0;
}

/* ---- the steps; each returns 0 or an errno */

bool daf__dir_cannot_link(int os_errno) {
    return os_errno == EPERM || os_errno == EOPNOTSUPP || os_errno == ENOSYS || os_errno == EMLINK;
}

/* Gives what is at the step's key a second name. On a file system without hard links it gets another one, and readers
 * miss the file for a moment. */
static int keep(daf__dir_store *s, const daf__dir_step *step) {
    const daf_io *io = s->settings.io;
    if (io->link(io->context, s->fd, step->key, step->kept) == 0)
        return 0;
    return daf__dir_cannot_link(errno) && io->rename(io->context, s->fd, step->key, step->kept) == 0 ? 0
                                                                                                     : errno;
}

static int put(daf__dir_store *s, daf__dir_step *step, bool only) {
    const daf_io *io = s->settings.io;
    int rc = step->kept[0] && !only ? keep(s, step) : 0;
    if (rc == 0 && io->rename(io->context, s->fd, step->out->name, step->key) != 0)
        rc = errno;
    if (rc == ENOENT) {
        rc = daf__dir_make_parents(s, step->key);
        if (rc == 0 && io->rename(io->context, s->fd, step->out->name, step->key) != 0)
            rc = errno;
    }
    if (rc == 0)
        step->out->name[0] = 0;
    return rc;
}

static int take_away(daf__dir_store *s, const daf__dir_step *step) {
    const daf_io *io = s->settings.io;
    return io->rename(io->context, s->fd, step->key, step->kept) == 0 ? 0 : errno;
}

static int make_folder(daf__dir_store *s, const daf__dir_step *step) {
    int rc = daf__dir_make_folder(s, step->key);
    if (rc == ENOENT && (rc = daf__dir_make_parents(s, step->key)) == 0)
        rc = daf__dir_make_folder(s, step->key);
    return rc == EEXIST ? 0 : rc;
}

static int perform(daf__dir_store *s, daf__dir_step *step, bool only) {
    switch (step->kind) {
    case DAF__STEP_PUT:
        return put(s, step, only);
    case DAF__STEP_REMOVE:
        return take_away(s, step);
    default:
        return make_folder(s, step);
    }
}

/* ---- the change */

/* Completes the outs, and notes the folders that the steps change. */
static int prepare(daf__dir_store *s, daf__change *c, daf__dir_plan *p, daf_error *err) {
    int rc = c->n_steps ? mark_dirty(s, ".", err) : 0;
    for (size_t i = 0; i < c->n_steps && rc == 0; i++) {
        daf__step *step = &c->steps[i];
        rc = mark_dirty(s, step->key, err);
        if (rc == 0 && step->kind == DAF__STEP_PUT)
            rc = finish_out(s, (daf__dir_out *)step->out, step->key, err);
    }
    for (size_t i = 0; i < c->n_steps && rc == 0; i++) {
        int failed = plan_step(s, p, &c->steps[i]);
        if (failed)
            rc = daf__dir_fail(s, failed, "change", c->steps[i].key, err);
    }
    return rc;
}

static int perform_all(daf__dir_store *s, daf__dir_plan *p, daf_error *err) {
    static const char *const verbs[] = {"put in place", "remove", "make the folder"};
    for (size_t i = 0; i < p->n; i++) {
        int failed = perform(s, &p->steps[i], p->n == 1);
        if (failed)
            return daf__dir_fail(s, failed, verbs[p->steps[i].kind], p->steps[i].key, err);
    }
    return s->base.batching ? 0 : sync_dirty(s, err);
}

/* Performs the plan, or leaves everything as it was; what cannot be undone now, with the disk failing, is undone
 * before the next change or by the next writable open. */
static int perform_journaled(daf__dir_store *s, daf__dir_plan *p, daf_error *err) {
    int failed = daf__journal_begin(s, p);
    if (failed)
        return daf__dir_fail(s, failed, "write", DAF__JOURNAL, err);
    int rc = perform_all(s, p, err);
    if (rc == 0 && (failed = daf__journal_end(s)) != 0)
        rc = daf__dir_fail(s, failed, "empty", DAF__JOURNAL, err);
    if (rc) {
        s->unfinished = daf__dir_plan_undo(s, p) != 0 || daf__journal_end(s) != 0;
        return rc;
    }
    /* What was kept must not go before the journal has. The change stays in place when this fails. */
    failed = daf__journal_sync(s);
    return failed ? daf__dir_fail(s, failed, "sync", DAF__JOURNAL, err) : 0;
}

static void drop_kept(daf__dir_store *s, const daf__dir_plan *p) {
    for (size_t i = 0; i < p->n; i++) {
        const daf__dir_step *step = &p->steps[i];
        bool kept = step->kept[0] && !(p->n == 1 && step->kind == DAF__STEP_PUT), spare = false;
        if (strcmp(step->key, DAF__METADATA_KEY) == 0)
            spare = daf__dir_spare_take(s, &step->placed, kept ? step->kept : NULL);
        if (kept && !spare)
            daf__dir_remove_tree(s->settings.io, s->fd, step->kept);
    }
}

int daf__dir_apply(daf__store *base, daf__change *c, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    daf__dir_plan p = {0};
    if (s->half_reordered)
        return daf__fail(err, DAF_ERR_IO, 0, 0,
                         "%s: the reorder of an axis failed and could not be undone; open it anew",
                         s->base.path);
    int rc = s->unfinished ? daf__journal_recover(s, err) : 0;
    if (rc)
        return rc;
    s->unfinished = false;
    rc = prepare(s, c, &p, err);
    if (rc == 0)
        rc = p.n > 1 ? perform_journaled(s, &p, err) : perform_all(s, &p, err);
    if (rc == 0)
        drop_kept(s, &p);
    if (!base->batching)
        daf__journal_close(s);
    daf__dir_plan_free(&p);
    return rc;
}
