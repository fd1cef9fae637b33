#include "store_dir_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

#define MAX_JOURNAL_BYTES ((uint64_t)256 << 20)

void daf__dir_plan_free(daf__dir_plan *p) {
    for (size_t i = 0; i < p->n; i++)
        free(p->steps[i].key);
    free(p->steps);
    *p = (daf__dir_plan){0};
}

daf__dir_step *daf__dir_plan_add(daf__dir_plan *p, const char *key) {
    if (p->n == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 16;
        daf__dir_step *grown = realloc(p->steps, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        p->steps = grown;
        p->capacity = capacity;
    }
    daf__dir_step *step = &p->steps[p->n];
    *step = (daf__dir_step){.key = strdup(key)};
    if (!step->key)
        return NULL;
    p->n++;
    return step;
}

/* ---- writing */

bool daf__dir_look(const daf__dir_store *s, const char *name, daf__stamp *ret) {
    struct stat st;
    if (fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    *ret = daf__dir_stamp_of(&st);
    return true;
}

static void add_record(daf__buf *out, const daf__dir_step *step) {
    const char *kept = step->kept[0] ? step->kept : "-";
    const daf__stamp *f = &step->placed;
    if (step->kind == DAF__STEP_PUT)
        daf__buf_printf(out, "put %s %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " ", kept, f->inode,
                        f->bytes, f->changed_s, f->changed_ns);
    else if (step->kind == DAF__STEP_REMOVE)
        daf__buf_printf(out, "remove %s ", kept);
    else
        daf__buf_text(out, "folder ");
    daf__buf_append(out, step->key, strlen(step->key) + 1);
}

/* The journal stays open, and empty, over the changes of a batch: some file systems are slow to make a file when many
 * were removed just before. */
static int open_journal(daf__dir_store *s) {
    const daf_io *io = s->settings.io;
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    if (s->journal >= 0)
        return 0;
    s->journal = io->open(io->context, s->fd, DAF__JOURNAL, flags, 0666);
    /* One of an earlier change, which is final, could not be removed. */
    if (s->journal < 0 && errno == EEXIST && io->unlink(io->context, s->fd, DAF__JOURNAL, 0) == 0)
        s->journal = io->open(io->context, s->fd, DAF__JOURNAL, flags, 0666);
    return s->journal < 0 ? errno : 0;
}

static int empty_journal(daf__dir_store *s) {
    const daf_io *io = s->settings.io;
    return io->truncate(io->context, s->journal, 0) == 0 ? 0 : errno;
}

int daf__journal_end(daf__dir_store *s) {
    return s->journal < 0 ? 0 : empty_journal(s);
}

int daf__journal_sync(daf__dir_store *s) {
    const daf_io *io = s->settings.io;
    if (s->journal < 0 || !s->settings.sync || s->base.batching)
        return 0;
    return io->sync(io->context, s->journal) == 0 ? 0 : errno;
}

void daf__journal_close(daf__dir_store *s) {
    const daf_io *io = s->settings.io;
    if (s->journal < 0)
        return;
    io->close(io->context, s->journal);
    s->journal = -1;
    if (!s->unfinished)
        io->unlink(io->context, s->fd, DAF__JOURNAL, 0);
}

static int write_content(daf__dir_store *s, const daf__buf *content) {
    const daf_io *io = s->settings.io;
    bool is_new = s->journal < 0, sync = s->settings.sync && !s->base.batching;
    int rc = open_journal(s);
    if (rc)
        return rc;
    rc = daf__write_all(io, s->journal, content->data, content->size, 0);
    if (rc == 0 && sync && io->sync(io->context, s->journal) != 0)
        rc = errno;
    if (rc == 0 && sync && is_new && io->sync(io->context, s->fd) != 0)
        rc = errno;
    /* The steps have not begun: what is written matters only if it stays behind a later change. */
    if (rc && empty_journal(s) != 0)
        s->unfinished = true;
    return rc;
}

int daf__journal_begin(daf__dir_store *s, const daf__dir_plan *p) {
    daf__buf content = {0};
    daf__stamp root;
    if (!daf__dir_look(s, ".", &root))
        return errno;
    daf__buf_printf(&content, "root %" PRIu64, root.inode);
    daf__buf_append(&content, "", 1);
    for (size_t i = 0; i < p->n; i++)
        add_record(&content, &p->steps[i]);
    daf__buf_append(&content, "end", 4);
    int rc = content.failed ? ENOMEM : write_content(s, &content);
    daf__buf_free(&content);
    return rc;
}

/* ---- undoing */

static bool same_file(const daf__dir_plan *p, const daf__stamp *a, const daf__stamp *b) {
    return a->bytes == b->bytes && (p->is_copied || (a->inode == b->inode && a->changed_s == b->changed_s &&
                                                     a->changed_ns == b->changed_ns));
}

/* What was kept goes back to its place. */
static int restore(daf__dir_store *s, const daf__dir_step *step) {
    const daf_io *io = s->settings.io;
    if (io->rename(io->context, s->fd, step->kept, step->key) != 0)
        return errno == ENOENT ? 0 : errno; /* it never left */
    /* Two names of one file are left alone by a rename. */
    if (step->kind == DAF__STEP_PUT && io->unlink(io->context, s->fd, step->kept, 0) != 0 && errno != ENOENT)
        return errno;
    return 0;
}

static int undo(daf__dir_store *s, const daf__dir_plan *p, const daf__dir_step *step) {
    const daf_io *io = s->settings.io;
    if (step->kind == DAF__STEP_MAKE_FOLDER) {
        io->unlink(io->context, s->fd, step->key, AT_REMOVEDIR); /* one that holds something stays */
        return 0;
    }
    if (step->kept[0])
        return restore(s, step);
    if (step->kind != DAF__STEP_PUT || !daf__dir_is_placed(s, p, step))
        return 0;
    return io->unlink(io->context, s->fd, step->key, 0) == 0 || errno == ENOENT ? 0 : errno;
}

int daf__dir_plan_undo(daf__dir_store *s, const daf__dir_plan *p) {
    int first = 0;
    for (size_t i = p->n; i-- > 0;) {
        int rc = undo(s, p, &p->steps[i]);
        if (!first)
            first = rc;
    }
    return first;
}

/* ---- recovering */

static bool is_safe_key(const char *key) {
    for (const char *part = key;; part++) {
        size_t n = strcspn(part, "/");
        if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += n;
        if (!*part)
            return true;
    }
}

static bool take_kept(daf__dir_step *step, const char *kept) {
    if (strcmp(kept, "-") == 0)
        return true;
    if (strncmp(kept, DAF__STAGING_PREFIX, strlen(DAF__STAGING_PREFIX)) != 0 || strchr(kept, '/'))
        return false;
    snprintf(step->kept, sizeof step->kept, "%s", kept);
    return true;
}

/* Takes one record. Returns 0, ENOMEM, or EINVAL when it is none. */
static int parse_record(daf__dir_plan *p, const char *text) {
    daf__dir_step step = {.kind = DAF__STEP_PUT};
    char kept[DAF__STAGING_NAME] = "-";
    daf__stamp *f = &step.placed;
    int n = 0;
    if (strncmp(text, "put ", 4) == 0) {
        if (sscanf(text + 4, "%47s %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 "%n", kept, &f->inode,
                   &f->bytes, &f->changed_s, &f->changed_ns, &n) != 5)
            return EINVAL;
        text += 4 + n;
    } else if (strncmp(text, "remove ", 7) == 0) {
        step.kind = DAF__STEP_REMOVE;
        if (sscanf(text + 7, "%47s%n", kept, &n) != 1)
            return EINVAL;
        text += 7 + n;
    } else if (strncmp(text, "folder", 6) == 0) {
        step.kind = DAF__STEP_MAKE_FOLDER;
        text += 6;
    } else {
        return EINVAL;
    }
    if (*text != ' ' || !is_safe_key(text + 1) || !take_kept(&step, kept))
        return EINVAL;
    daf__dir_step *added = daf__dir_plan_add(p, text + 1);
    if (!added)
        return ENOMEM;
    step.key = added->key;
    *added = step;
    return 0;
}

/* *whole: whether all records are there. */
static int parse(daf__dir_plan *p, uint64_t root, const daf__buf *content, bool *whole) {
    const char *at = (const char *)content->data, *end = at + content->size;
    uint64_t of_root;
    *whole = false;
    if (content->size == 0 || !memchr(at, 0, content->size) || sscanf(at, "root %" SCNu64, &of_root) != 1)
        return 0;
    p->is_copied = of_root != root;
    at += strlen(at) + 1;
    while (at < end && memchr(at, 0, (size_t)(end - at))) {
        *whole = strcmp(at, "end") == 0;
        if (*whole)
            return 0;
        int rc = parse_record(p, at);
        if (rc)
            return rc == EINVAL ? 0 : rc;
        at += strlen(at) + 1;
    }
    return 0;
}

static bool is_placed_by(const daf__dir_plan *p, const char *key, const daf__stamp *file) {
    for (size_t i = 0; i < p->n; i++)
        if (p->steps[i].kind == DAF__STEP_PUT && strcmp(p->steps[i].key, key) == 0 &&
            same_file(p, file, &p->steps[i].placed))
            return true;
    return false;
}

/* Whether a file that would be replaced was put there by nobody known: then the directory has moved on, and what was
 * kept is old. */
static bool has_moved_on(const daf__dir_store *s, const daf__dir_plan *p) {
    for (size_t i = 0; i < p->n; i++) {
        const daf__dir_step *step = &p->steps[i];
        daf__stamp kept, now;
        struct stat st;
        if (!step->kept[0] || !daf__dir_look(s, step->kept, &kept) || !daf__dir_look(s, step->key, &now))
            continue;
        if (fstatat(s->fd, step->key, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
            continue; /* made by a later step, or not empty and then left alone */
        if (!same_file(p, &now, &kept) && !is_placed_by(p, step->key, &now))
            return true;
    }
    return false;
}

/* A journal that came with the repository could name anything. */
static int check_ways(const daf__dir_store *s, const daf__dir_plan *p) {
    int rc = 0;
    for (size_t i = 0; i < p->n && rc == 0; i++)
        rc = daf__dir_check_way(s, p->steps[i].key);
    return rc;
}

static int undo_known(daf__dir_store *s, const daf__dir_plan *p) {
    int rc = daf__dir_plan_undo(s, p);
    bool in_the_way = rc == ENOTEMPTY || rc == EEXIST || rc == EISDIR || rc == ENOTDIR;
    return in_the_way ? 0 : rc;
}

static int remove_journal(daf__dir_store *s) {
    const daf_io *io = s->settings.io;
    return io->unlink(io->context, s->fd, DAF__JOURNAL, 0) == 0 || errno == ENOENT ? 0 : errno;
}

/* The steps that are to be undone; none: nothing is. */
static int read_plan(daf__dir_store *s, daf__dir_plan *p, bool *there, daf_error *err) {
    daf__buf content = {0};
    daf_error details;
    bool whole = false;
    int rc = daf__store_read(&s->base, &content, NULL, DAF__JOURNAL, MAX_JOURNAL_BYTES, &details);
    *there = rc != DAF_ERR_MISSING;
    if (rc)
        return *there ? daf__pass(err, &details) : 0;
    daf__stamp root = {0};
    int failed = daf__dir_look(s, ".", &root) ? parse(p, root.inode, &content, &whole) : errno;
    daf__buf_free(&content);
    if (failed || !whole || has_moved_on(s, p))
        daf__dir_plan_free(p);
    return failed ? daf__dir_fail(s, failed, "read", DAF__JOURNAL, err) : 0;
}

int daf__journal_read(daf__dir_store *s, daf__dir_plan *p, daf_error *err) {
    bool there;
    return read_plan(s, p, &there, err);
}

int daf__journal_recover(daf__dir_store *s, daf_error *err) {
    daf__dir_plan p = {0};
    bool there;
    int rc = read_plan(s, &p, &there, err);
    if (rc || !there)
        return rc;
    int failed = check_ways(s, &p);
    if (failed == 0)
        failed = undo_known(s, &p);
    if (failed == 0 && s->journal >= 0)
        failed = empty_journal(s);
    else if (failed == 0)
        failed = remove_journal(s);
    daf__dir_plan_free(&p);
    return failed ? daf__dir_fail(s, failed, "undo the change that was interrupted, as told by", DAF__JOURNAL,
                                  err)
                  : 0;
}

/* ---- what a reader sees */

bool daf__dir_is_placed(const daf__dir_store *s, const daf__dir_plan *p, const daf__dir_step *step) {
    daf__stamp now;
    return daf__dir_look(s, step->key, &now) && same_file(p, &now, &step->placed);
}
