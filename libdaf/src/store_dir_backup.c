/* The directory store: ".reorder.backup", by which the reorder of an axis can be undone (specification section 7). It
 * holds, under the same relative paths, every file that the reorder will replace; other implementations make it and roll
 * it back in the same way. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "metadata.h"
#include "store_dir.h"

enum { PIECE_BYTES = 1 << 16 };

const char *daf__in_backup(daf__backup_key *ret, const char *key) {
    snprintf(ret->text, sizeof ret->text, DAF__BACKUP "/%s", key);
    return ret->text;
}

/* Puts a copy of the file `from` at `to`. */
static int copy_file(daf__dir_store *s, const char *from, const char *to, daf_error *err) {
    daf__change change = {0};
    daf__file *f;
    daf__out *out;
    uint8_t *piece = malloc(PIECE_BYTES);
    int rc = piece ? s->base.ops->open(&s->base, &f, from, err) : daf__no_memory(err);
    if (rc) {
        free(piece);
        return rc;
    }
    rc = s->base.ops->create(&s->base, &out, err);
    if (rc)
        goto err_after_open;
    for (uint64_t at = 0; at < f->size && rc == 0; at += PIECE_BYTES) {
        size_t n = f->size - at < PIECE_BYTES ? (size_t)(f->size - at) : PIECE_BYTES;
        rc = f->ops->read(f, piece, n, at, err);
        if (rc == 0)
            rc = daf__out_append(out, piece, n, err);
    }
    if (rc)
        daf__out_discard(out);
    else
        rc = daf__change_put(&change, to, out, err);
    if (rc == 0)
        rc = daf__dir_apply(&s->base, &change, err);
    daf__change_free(&change);
err_after_open:
    daf__file_close(f);
    free(piece);
    return rc;
}

/* ---- making it */

static int back_up(daf__dir_store *s, const char *key, daf_error *err) {
    const daf_io *io = s->settings.io;
    daf__backup_key k;
    daf__in_backup(&k, key);
    int failed = daf__dir_check_way(s, key);
    if (failed)
        return daf__dir_fail(s, failed, "back up", key, err);
    failed = daf__dir_make_parents(s, k.text);
    if (failed)
        return daf__dir_fail(s, failed, "make the folders of", k.text, err);
    if (io->link(io->context, s->fd, key, k.text) == 0)
        return 0;
    if (!daf__dir_cannot_link(errno))
        return daf__dir_fail(s, errno, "back up", key, err);
    return copy_file(s, key, k.text, err);
}

static int sync_folder(daf__dir_store *s, const char *folder, daf_error *err) {
    const daf_io *io = s->settings.io;
    int fd = io->open(io->context, s->fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    int failed = fd < 0 || io->sync(io->context, fd) != 0 ? errno : 0;
    if (fd >= 0)
        io->close(io->context, fd);
    return failed ? daf__dir_fail(s, failed, "sync folder", folder, err) : 0;
}

/* The links must be on the disk before the first file is replaced. */
static int sync_backup(daf__dir_store *s, const daf_names *keys, daf_error *err) {
    int rc = s->settings.sync ? sync_folder(s, ".", err) : 0;
    for (size_t i = 0; i < keys->n && rc == 0 && s->settings.sync; i++) {
        daf__backup_key k;
        daf__in_backup(&k, keys->names[i]);
        *strrchr(k.text, '/') = 0;
        rc = sync_folder(s, k.text, err);
    }
    return rc;
}

int daf__dir_backup(daf__store *base, const daf_names *keys, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    int failed = daf__dir_make_folder(s, DAF__BACKUP);
    if (failed == EEXIST)
        return daf__fail(err, DAF_ERR_BUSY, 0, 0,
                         "%s: holds " DAF__BACKUP ": another reorder is under way, or was interrupted",
                         base->path);
    if (failed)
        return daf__dir_fail(s, failed, "make the folder", DAF__BACKUP, err);
    int rc = 0;
    for (size_t i = 0; i < keys->n && rc == 0; i++)
        rc = back_up(s, keys->names[i], err);
    if (rc == 0)
        rc = sync_backup(s, keys, err);
    if (rc)
        daf__dir_remove_tree(s->settings.io, s->fd, DAF__BACKUP);
    return rc;
}

int daf__dir_drop_backup(daf__store *base, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    const daf_io *io = s->settings.io;
    char name[DAF__STAGING_NAME];
    daf__dir_staging_name(s, name);
    if (io->rename(io->context, s->fd, DAF__BACKUP, name) != 0)
        return daf__dir_fail(s, errno, "remove", DAF__BACKUP, err);
    daf__dir_remove_tree(io, s->fd, name);
    return s->settings.sync ? sync_folder(s, ".", err) : 0;
}

/* ---- rolling back */

static int restore_file(daf__dir_store *s, const char *key, daf_error *err) {
    const daf_io *io = s->settings.io;
    daf__backup_key k;
    daf__in_backup(&k, key);
    daf__stamp now, old;
    int rc = s->base.ops->stamp(&s->base, &old, k.text, err);
    if (rc)
        return rc;
    if (s->base.ops->stamp(&s->base, &now, key, NULL) == 0 && now.inode == old.inode &&
        now.device == old.device)
        return 0;
    char name[DAF__STAGING_NAME];
    daf__dir_staging_name(s, name);
    if (io->link(io->context, s->fd, k.text, name) == 0)
        return io->rename(io->context, s->fd, name, key) == 0
                   ? 0
                   : daf__dir_fail(s, errno, "roll back", key, err);
    if (!daf__dir_cannot_link(errno))
        return daf__dir_fail(s, errno, "roll back", key, err);
    return copy_file(s, k.text, key, err);
}

/* Whether the property was rewritten, so that files of another form may lie there. */
static int is_rewritten(daf__dir_store *s, bool *ret, const char *key, daf_error *err) {
    daf__backup_key k;
    daf__in_backup(&k, key);
    daf__buf old = {0}, now = {0};
    daf_error details;
    int rc = daf__store_read(&s->base, &old, NULL, k.text, UINT64_MAX, err);
    if (rc)
        return rc;
    rc = daf__store_read(&s->base, &now, NULL, key, UINT64_MAX, &details);
    *ret = rc == DAF_ERR_MISSING ||
           (rc == 0 && (old.size != now.size || memcmp(old.data, now.data, now.size) != 0));
    daf__buf_free(&old);
    daf__buf_free(&now);
    return rc == 0 || rc == DAF_ERR_MISSING ? 0 : daf__pass(err, &details);
}

/* Removes the files of the property `base` that are not in the backup. */
static int remove_other_forms(daf__dir_store *s, daf__kind kind, const daf__key *base, daf_error *err) {
    const daf_io *io = s->settings.io;
    for (const char *const *suffix = daf__suffixes(kind); *suffix; suffix++) {
        daf__key key = daf__key_with(base, *suffix);
        daf__backup_key k;
        bool kept;
        int rc = daf__store_has(&s->base, &kept, daf__in_backup(&k, key.text), err);
        if (rc)
            return rc;
        if (!kept && io->unlink(io->context, s->fd, key.text, 0) != 0 && errno != ENOENT)
            return daf__dir_fail(s, errno, "remove", key.text, err);
    }
    return 0;
}

/* Neither what is kept nor its place may lie elsewhere. */
static int check_restorable(daf__dir_store *s, const char *key, daf_error *err) {
    daf__backup_key k;
    int failed = daf__dir_check_way(s, daf__in_backup(&k, key));
    if (failed == 0)
        failed = daf__dir_check_way(s, key);
    return failed ? daf__dir_fail(s, failed, "roll back", key, err) : 0;
}

static int restore_name(daf__dir_store *s, daf__kind kind, const char *folder, const char *name,
                        daf_error *err) {
    daf__key key, base;
    size_t n = strlen(name);
    bool rewritten = false;
    if (snprintf(key.text, sizeof key.text, "%s/%s", folder, name) >= (int)sizeof key.text)
        return 0; /* nothing that we name */
    base = key;
    int rc = check_restorable(s, key.text, err);
    if (rc == 0 && kind != DAF__AXIS && n > 5 && strcmp(name + n - 5, ".json") == 0) {
        rc = is_rewritten(s, &rewritten, key.text, err);
        base.text[strlen(base.text) - 5] = 0;
    }
    if (rc == 0 && rewritten)
        rc = remove_other_forms(s, kind, &base, err);
    return rc ? rc : restore_file(s, key.text, err);
}

static int restore_folder(daf__dir_store *s, daf__kind kind, const char *folder, daf_error *err) {
    daf__backup_key k;
    daf_names names;
    int rc = s->base.ops->list(&s->base, &names, daf__in_backup(&k, folder), DAF__LIST_FILES, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < names.n && rc == 0; i++)
        rc = restore_name(s, kind, folder, names.names[i], err);
    daf_names_clear(&names);
    return rc;
}

/* Restores all folders `depth` levels below `folder`. */
static int restore_below(daf__dir_store *s, daf__kind kind, const char *folder, unsigned depth,
                         daf_error *err) {
    daf__backup_key k;
    daf_names names;
    if (depth == 0)
        return restore_folder(s, kind, folder, err);
    int rc = s->base.ops->list(&s->base, &names, daf__in_backup(&k, folder), DAF__LIST_FOLDERS, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < names.n && rc == 0; i++) {
        daf__key inner;
        if (snprintf(inner.text, sizeof inner.text, "%s/%s", folder, names.names[i]) < (int)sizeof inner.text)
            rc = restore_below(s, kind, inner.text, depth - 1, err);
    }
    daf_names_clear(&names);
    return rc;
}

/* The index may tell of what was undone. */
static int mark_index_stale(daf__dir_store *s, daf_error *err) {
    daf__change change = {0};
    daf__out *out;
    bool marked;
    int rc = daf__store_has(&s->base, &marked, DAF__METADATA_STALE_KEY, err);
    if (rc || marked)
        return rc;
    rc = s->base.ops->create(&s->base, &out, err);
    if (rc == 0)
        rc = daf__change_put(&change, DAF__METADATA_STALE_KEY, out, err);
    if (rc == 0)
        rc = daf__dir_apply(&s->base, &change, err);
    daf__change_free(&change);
    return rc;
}

int daf__dir_restore(daf__store *base, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    struct stat st;
    if (fstatat(s->fd, DAF__BACKUP, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return 0;
    int rc = s->unfinished ? daf__journal_recover(s, err) : 0;
    if (rc == 0)
        s->unfinished = false;
    if (rc == 0)
        rc = restore_below(s, DAF__AXIS, "axes", 0, err);
    if (rc == 0)
        rc = restore_below(s, DAF__VECTOR, "vectors", 1, err);
    if (rc == 0)
        rc = restore_below(s, DAF__MATRIX, "matrices", 2, err);
    if (rc == 0)
        rc = mark_index_stale(s, err);
    if (rc == 0)
        rc = daf__dir_drop_backup(base, err);
    s->half_reordered = rc != 0;
    return rc;
}
