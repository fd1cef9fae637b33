/* New entries, staged until they are committed: small ones in memory, large ones in files without a name beside the
 * archive. Nothing is written into the archive before the size and checksum of all that is new are known, so that a
 * change is in it whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "archive.h"
#include "error.h"

enum {
    MAX_NAME_BYTES = 65535,
    MAX_IN_MEMORY = 1 << 20,      /* of one entry */
    MAX_STAGED_FILES = 64,        /* of a batch, before it is committed in between */
    MAX_STAGED_MEMORY = 64 << 20, /* likewise */
    MAX_STAGED_ENTRIES = 1 << 16, /* likewise */
    MAX_STAGED_NAME = 64,
    COPY_BYTES = 1 << 18
};

typedef struct archive_out {
    daf__out base;
    daf__archive_store *store;
    daf__staged *staged;
} archive_out;

/* ---- outs */

static int open_nameless(daf__archive_store *s, daf_error *err) {
    const daf_io *io = s->settings.io;
    int folder = s->archive->folder;
    char name[MAX_STAGED_NAME];
    int fd = io->open(io->context, folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 &&
        (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) { /* the file system has none */
        snprintf(name, sizeof name, DAF__STAGING_PREFIX "%ld.%p", (long)getpid(), (void *)name);
        fd = io->open(io->context, folder, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0)
            io->unlink(io->context, folder, name, 0);
    }
    if (fd < 0)
        daf__fail(err, DAF_ERR_IO, errno, 0, "%s: cannot make a file beside it for new entries",
                  s->base.path);
    return fd;
}

static int write_file(archive_out *o, const void *data, size_t bytes, uint64_t offset, daf_error *err) {
    daf__staged *s = o->staged;
    int rc = daf__write_all(s->io, s->fd, data, bytes, offset);
    return rc ? daf__fail(err, DAF_ERR_IO, rc, offset, "%s: cannot write what is to become an entry",
                          o->store->base.path)
              : 0;
}

static int out_write(daf__out *out, const void *data, size_t bytes, uint64_t offset, daf_error *err) {
    archive_out *o = (archive_out *)out;
    daf__staged *s = o->staged;
    uint64_t end = offset + bytes;
    if (s->fd < 0 && end > MAX_IN_MEMORY) {
        s->fd = open_nameless(o->store, err);
        if (s->fd < 0)
            return DAF_ERR_IO;
        int rc = write_file(o, s->memory.data, s->memory.size, 0, err);
        daf__buf_free(&s->memory);
        if (rc)
            return rc;
    }
    if (s->fd >= 0)
        return write_file(o, data, bytes, offset, err);
    if (end > s->memory.size) {
        uint8_t *to = daf__buf_reserve(&s->memory, (size_t)end - s->memory.size);
        if (!to)
            return daf__no_memory(err);
        memset(to, 0, (size_t)end - s->memory.size);
        s->memory.size = (size_t)end;
    }
    memcpy(s->memory.data + offset, data, bytes);
    return 0;
}

static void out_discard(daf__out *out) {
    archive_out *o = (archive_out *)out;
    daf__staged_release(o->staged);
    free(o);
}

static const daf__out_ops out_ops = {.write = out_write, .discard = out_discard};

int daf__archive_create(daf__store *base, daf__out **ret, daf_error *err) {
    daf__archive_store *s = (daf__archive_store *)base;
    archive_out *o = calloc(1, sizeof *o);
    daf__staged *staged = calloc(1, sizeof *staged);
    if (!o || !staged) {
        free(o);
        free(staged);
        return daf__no_memory(err);
    }
    staged->fd = -1;
    staged->io = s->settings.io;
    atomic_init(&staged->n_users, 1);
    *o = (archive_out){.base = {.ops = &out_ops}, .store = s, .staged = staged};
    *ret = &o->base;
    return 0;
}

/* The out is whole: its size and checksum. */
static int finish(archive_out *o, daf_error *err) {
    daf__staged *s = o->staged;
    int rc = daf__out_flush(&o->base, err);
    if (rc)
        return rc;
    s->bytes = o->base.size;
    s->crc = 0;
    if (s->fd < 0) {
        s->crc = (uint32_t)crc32_z(0, s->memory.data, s->memory.size);
        return 0;
    }
    uint8_t *piece = malloc(COPY_BYTES);
    if (!piece)
        return daf__no_memory(err);
    for (uint64_t at = 0; at < s->bytes && rc == 0;) {
        size_t n = s->bytes - at < COPY_BYTES ? (size_t)(s->bytes - at) : COPY_BYTES;
        int failed = daf__read_all(s->io, s->fd, piece, n, at);
        if (failed)
            rc = daf__fail(err, DAF_ERR_IO, failed > 0 ? failed : 0, at,
                           "%s: cannot read what is to become an entry", o->store->base.path);
        else
            s->crc = (uint32_t)crc32_z(s->crc, piece, n);
        at += n;
    }
    free(piece);
    return rc;
}

/* ---- staging */

static int refuse(const daf__archive_store *s, const char *name, const char *why, daf_error *err) {
    return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                     "ZipDaf is append-only; can't replace the entry %.300s in: %s%s", name,
                     s->base.full_path, why);
}

/* Whether an entry is a payload that no descriptor speaks of: an append was interrupted between the two, and nobody can
 * read it. */
static bool is_orphan(const daf__archive_store *s, const char *name) {
    const char *key = name + s->prefix_bytes;
    daf__kind kind;
    if (strncmp(key, "vectors/", 8) == 0)
        kind = DAF__VECTOR;
    else if (strncmp(key, "matrices/", 9) == 0)
        kind = DAF__MATRIX;
    else
        return false;
    size_t n = strlen(name);
    bool payload = false;
    for (const char *const *suffix = daf__suffixes(kind) + 1; *suffix; suffix++) {
        size_t k = strlen(*suffix);
        char *json;
        if (n <= k || strcmp(name + n - k, *suffix) != 0)
            continue;
        if (asprintf(&json, "%.*s.json", (int)(n - k), name) < 0)
            return false;
        uint32_t at = daf__archive_names_find(&s->archive->directory.names, json, strlen(json));
        free(json);
        if (at != DAF__NO_ENTRY)
            return false;
        payload = true;
    }
    return payload;
}

/* The name is free, or can be taken. */
static int check_name(const daf__archive_store *s, const char *name, daf_error *err) {
    const daf__archive_directory *d = &s->archive->directory;
    size_t n = strlen(name);
    if (n > MAX_NAME_BYTES)
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "%s: the name %.200s... is too long for an archive",
                         s->base.path, name);
    uint32_t at = daf__archive_names_find(&d->names, name, n);
    if (at == DAF__NO_ENTRY || (!d->entries[at].staged && is_orphan(s, name)))
        return 0;
    bool dead = n > 5 && strcmp(name + n - 5, ".json") == 0 && daf__archive_is_dead(s, name);
    return refuse(s, name,
                  dead ? "\nan append was interrupted: the descriptor is there, but its payload is not; "
                         "use another name, or copy the data set to a new archive"
                       : "",
                  err);
}

/* Lists the entry as staged; takes `staged`. */
static int stage(daf__archive_store *s, const char *key, daf__staged *staged, daf_error *err) {
    daf__archive_directory *d = &s->archive->directory;
    char *name;
    if (asprintf(&name, "%s%s", s->prefix, key) < 0)
        return daf__no_memory(err);
    uint32_t replaces = daf__archive_names_find(&d->names, name, strlen(name));
    int rc = replaces != DAF__NO_ENTRY && d->entries[replaces].staged ? refuse(s, name, "", err) : 0;
    daf__zip_entry e = {.name = (const uint8_t *)name,
                        .name_bytes = (uint16_t)strlen(name),
                        .flags = DAF__ZIP_UTF8_FLAG,
                        .method = DAF__ZIP_STORED,
                        .crc = staged->crc,
                        .packed_bytes = staged->bytes,
                        .raw_bytes = staged->bytes};
    if (rc == 0)
        rc = daf__archive_add_entry(d, &e, 0, 0, err);
    if (rc) {
        free(name);
        return rc;
    }
    daf__archive_entry *added = &d->entries[d->n - 1];
    added->staged = staged;
    added->name = name;
    added->owner = s;
    added->replaces = replaces;
    if (replaces != DAF__NO_ENTRY)
        d->entries[replaces].leaving = true;
    d->n_in_memory += staged->memory.capacity;
    d->n_staged_files += staged->fd >= 0;
    return 0;
}

/* Takes a staged entry out of the names; one whose name it took is back. */
static void drop(daf__archive_directory *d, daf__archive_entry e) {
    daf__archive_names_remove(&d->names, e.name, e.name_bytes);
    if (e.replaces != DAF__NO_ENTRY) {
        d->entries[e.replaces].leaving = false;
        (void)daf__archive_names_set(&d->names, e.name, e.name_bytes, e.replaces, NULL); /* has its node */
    }
    d->n_in_memory -= e.staged->memory.capacity;
    d->n_staged_files -= e.staged->fd >= 0;
    daf__staged_release(e.staged);
    free(e.name);
}

/* Takes the last staged entries back. */
static void unstage(daf__archive_directory *d, uint32_t n) {
    while (d->n > n && d->n > d->n_committed)
        drop(d, d->entries[--d->n]);
}

void daf__archive_drop_staged(daf__archive_store *s) {
    daf__archive_directory *d = &s->archive->directory;
    uint32_t kept = d->n_committed;
    for (uint32_t i = d->n_committed; i < d->n; i++) {
        daf__archive_entry e = d->entries[i];
        if (e.owner == s) {
            drop(d, e);
            continue;
        }
        (void)daf__archive_names_set(&d->names, e.name, e.name_bytes, kept, NULL);
        d->entries[kept++] = e;
    }
    d->n = kept;
}

/* ---- changes */

static int check_step(const daf__archive_store *s, const daf__step *step, daf_error *err) {
    const daf__archive_names *names = &s->archive->directory.names;
    char *name;
    int rc = 0;
    if (asprintf(&name, "%s%s", s->prefix, step->key) < 0)
        return daf__no_memory(err);
    if (step->kind == DAF__STEP_PUT)
        rc = check_name(s, name, err);
    else if (step->kind == DAF__STEP_REMOVE &&
             (daf__archive_names_find(names, name, strlen(name)) != DAF__NO_ENTRY ||
              daf__archive_names_count(names, name, strlen(name)) > 0))
        rc = refuse(s, name, "", err);
    free(name);
    return rc;
}

static int stage_all(daf__archive_store *s, daf__change *c, daf_error *err) {
    int rc = 0;
    for (size_t i = 0; i < c->n_steps && rc == 0; i++)
        rc = check_step(s, &c->steps[i], err);
    for (size_t i = 0; i < c->n_steps && rc == 0; i++) {
        daf__step *step = &c->steps[i];
        if (step->kind != DAF__STEP_PUT)
            continue;
        archive_out *o = (archive_out *)step->out;
        rc = stage(s, step->key, o->staged, err);
        if (rc == 0)
            atomic_fetch_add(&o->staged->n_users, 1); /* the out's own goes with the change */
    }
    return rc;
}

/* A batch of any size takes bounded memory and few descriptors. */
static bool is_full(const daf__archive_directory *d) {
    return d->n_in_memory > MAX_STAGED_MEMORY || d->n_staged_files > MAX_STAGED_FILES ||
           d->n - d->n_committed > MAX_STAGED_ENTRIES;
}

int daf__archive_apply(daf__store *base, daf__change *c, daf_error *err) {
    daf__archive_store *s = (daf__archive_store *)base;
    daf__archive *a = s->archive;
    int rc = 0;
    for (size_t i = 0; i < c->n_steps && rc == 0; i++)
        if (c->steps[i].kind == DAF__STEP_PUT)
            rc = finish((archive_out *)c->steps[i].out, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&a->lock);
    uint32_t before = a->directory.n;
    rc = daf__archive_check_usable(a, err);
    if (rc == 0)
        rc = stage_all(s, c, err);
    if (rc == 0 && (!base->batching || is_full(&a->directory)))
        rc = daf__archive_commit(a, &s->settings, NULL, NULL, err);
    if (rc)
        unstage(&a->directory, before);
    pthread_mutex_unlock(&a->lock);
    return rc;
}

int daf__archive_settle(daf__store *base, daf_error *err) {
    daf__archive_store *s = (daf__archive_store *)base;
    daf__archive *a = s->archive;
    int rc = 0;
    pthread_mutex_lock(&a->lock);
    if (a->directory.n > a->directory.n_committed)
        rc = daf__archive_commit(a, &s->settings, NULL, NULL, err);
    pthread_mutex_unlock(&a->lock);
    return rc;
}
