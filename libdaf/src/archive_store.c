/* The store of one handle: the entries of an archive whose names begin with a prefix. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "archive.h"
#include "archive_decode.h"
#include "error.h"
#include "json.h"

#define MARKER "daf.json"

/* ---- names */

/* PREFIX + KEY; free it. */
static char *full_name(const daf__archive_store *s, const char *key) {
    char *name;
    return asprintf(&name, "%s%s", s->prefix, key) < 0 ? NULL : name;
}

static uint32_t find(const daf__archive_store *s, const char *name) {
    return daf__archive_names_find(&s->archive->directory.names, name, strlen(name));
}

/* ---- descriptors without payload */

static bool has_suffix(const daf__archive_store *s, const char *base, size_t bytes, const char *suffix) {
    char *name;
    if (asprintf(&name, "%.*s%s", (int)bytes, base, suffix) < 0)
        return true;
    bool there = find(s, name) != DAF__NO_ENTRY;
    free(name);
    return there;
}

static bool has_component(const daf__archive_store *s, const char *base, size_t bytes, const char *flat,
                          const char *packed) {
    return has_suffix(s, base, bytes, flat) || has_suffix(s, base, bytes, packed);
}

static int read_entry(const daf__archive *a, const daf__archive_entry *e, daf__buf *ret) {
    daf__archive_whole w;
    uint64_t at;
    if (e->staged || e->raw_bytes > DAF__MAX_JSON_BYTES)
        return DAF_ERR_LIMIT;
    int rc = daf__archive_look(&w, a->io, a->fd, a->path, NULL);
    if (rc == 0)
        rc = daf__archive_locate(&at, &w.base, e, "", NULL);
    return rc ? rc : daf__archive_decode(ret, &w.base, at, e, "", NULL);
}

/* Whether the sparse property's descriptor says that there are values in a file of their own. */
static bool wants_values(const daf__archive_store *s, const char *name) {
    const daf__archive *a = s->archive;
    daf__buf text = {0};
    json_t *object;
    if (read_entry(a, &a->directory.entries[find(s, name)], &text) != 0)
        return false;
    bool wants = false;
    if (daf__json_object(&object, text.data, text.size, name, NULL) == 0) {
        const char *type = json_string_value(json_object_get(object, "eltype")); /* the 1.0 form */
        wants = type ? strcasecmp(type, "Bool") != 0 : json_object_get(object, "nzval") != NULL;
        json_decref(object);
    }
    daf__buf_free(&text);
    return wants;
}

bool daf__archive_is_dead(const daf__archive_store *s, const char *name) {
    const char *key = name + s->prefix_bytes;
    size_t bytes = strlen(name);
    bool matrix = strncmp(key, "matrices/", 9) == 0;
    if (s->settings.other_form)
        return false;
    if ((!matrix && strncmp(key, "vectors/", 8) != 0) || bytes < 5 || strcmp(name + bytes - 5, ".json") != 0)
        return false;
    bytes -= 5;
    if (has_component(s, name, bytes, ".data", ".zip") || has_suffix(s, name, bytes, ".txt"))
        return false;
    bool indices = matrix ? has_component(s, name, bytes, ".colptr", ".colptr.zip") &&
                                has_component(s, name, bytes, ".rowval", ".rowval.zip")
                          : has_component(s, name, bytes, ".nzind", ".nzind.zip");
    if (!indices)
        return true;
    return !has_component(s, name, bytes, ".nzval", ".nzval.zip") && !has_suffix(s, name, bytes, ".nztxt") &&
           wants_values(s, name);
}

/* ---- finding */

int daf__archive_find(daf__archive_store *s, daf__archive_entry *ret, char **name, const char *key,
                      daf_error *err) {
    daf__archive *a = s->archive;
    char *full = full_name(s, key);
    if (!full)
        return daf__no_memory(err);
    pthread_mutex_lock(&a->lock);
    int rc = daf__archive_refresh(a, err);
    uint32_t at = rc ? DAF__NO_ENTRY : find(s, full);
    if (at != DAF__NO_ENTRY && !s->shows_dead && daf__archive_is_dead(s, full))
        at = DAF__NO_ENTRY;
    if (at != DAF__NO_ENTRY) {
        *ret = a->directory.entries[at];
        if (ret->staged)
            atomic_fetch_add(&ret->staged->n_users, 1);
    }
    pthread_mutex_unlock(&a->lock);
    if (rc == 0 && at == DAF__NO_ENTRY)
        rc = daf__fail(err, DAF_ERR_MISSING, 0, 0, "%s/%s: no such entry", s->base.path, key);
    if (rc) {
        free(full);
        return rc;
    }
    *name = full;
    return 0;
}

/* ---- the store */

static int archive_open(daf__store *base, daf__file **ret, const char *key, daf_error *err) {
    return daf__archive_file_open((daf__archive_store *)base, ret, key, err);
}

static int archive_stamp(daf__store *base, daf__stamp *ret, const char *key, daf_error *err) {
    daf__archive_store *s = (daf__archive_store *)base;
    daf__archive_entry e;
    char *name;
    int rc = daf__archive_find(s, &e, &name, key, err);
    if (rc)
        return rc;
    *ret = daf__archive_stamp(s->archive, &e);
    daf__staged_release(e.staged);
    free(name);
    return 0;
}

/* Takes descriptors without payload out of the list. */
static void hide_dead(const daf__archive_store *s, daf_names *names, const char *folder) {
    size_t kept = 0;
    for (size_t i = 0; i < names->n; i++) {
        char *name;
        bool dead = false;
        if (asprintf(&name, "%s/%s", folder, names->names[i]) >= 0) {
            dead = daf__archive_is_dead(s, name);
            free(name);
        }
        if (dead)
            free(names->names[i]);
        else
            names->names[kept++] = names->names[i];
    }
    names->n = kept;
}

static int archive_list(daf__store *base, daf_names *ret, const char *folder, daf__list_what what,
                        daf_error *err) {
    daf__archive_store *s = (daf__archive_store *)base;
    daf__archive *a = s->archive;
    char *name = full_name(s, folder);
    if (!name)
        return daf__no_memory(err);
    size_t bytes = strlen(name);
    if (bytes > 0 && name[bytes - 1] == '/')
        bytes--; /* the root of a group */
    pthread_mutex_lock(&a->lock);
    int rc = daf__archive_refresh(a, err);
    if (rc == 0)
        rc = daf__archive_names_list(&a->directory.names, ret, name, bytes, what, err);
    if (rc == 0 && what != DAF__LIST_FOLDERS && !s->shows_dead && bytes > s->prefix_bytes)
        hide_dead(s, ret, name);
    pthread_mutex_unlock(&a->lock);
    free(name);
    return rc;
}

static void archive_free(daf__store *base) {
    daf__archive_store *s = (daf__archive_store *)base;
    if (s->archive) {
        pthread_mutex_lock(&s->archive->lock);
        daf__archive_drop_staged(s);
        pthread_mutex_unlock(&s->archive->lock);
        daf__archive_release(s->archive);
    }
    free(base->path);
    free(base->full_path);
    free(s->prefix);
    free(s);
}

const daf__store_ops daf__archive_ops = {
    .open = archive_open,
    .stamp = archive_stamp,
    .list = archive_list,
    .create = daf__archive_create,
    .apply = daf__archive_apply,
    .settle = daf__archive_settle,
    .free = archive_free,
};

/* ---- opening */

/* `zip -r run.daf.zip run.daf` puts the folder's name in front of all names. */
static char *only_folder(const daf__archive_directory *d, daf_error *err) {
    daf_names folders, files;
    char *prefix = NULL;
    if (daf__archive_names_list(&d->names, &folders, "", 0, DAF__LIST_FOLDERS, err) != 0)
        return NULL;
    if (daf__archive_names_list(&d->names, &files, "", 0, DAF__LIST_FILES, err) == 0) {
        char *name = NULL;
        if (folders.n == 1 && files.n == 0 && asprintf(&name, "%s/" MARKER, folders.names[0]) >= 0 &&
            daf__archive_names_find(&d->names, name, strlen(name)) != DAF__NO_ENTRY &&
            asprintf(&prefix, "%s/", folders.names[0]) < 0)
            prefix = NULL;
        free(name);
        daf_names_clear(&files);
    }
    daf_names_clear(&folders);
    return prefix;
}

static int choose_prefix(daf__archive_store *s, const char *group, daf_error *err) {
    const daf__archive_directory *d = &s->archive->directory;
    if (group) {
        if (asprintf(&s->prefix, "%s/", group) < 0)
            s->prefix = NULL;
    } else {
        if (daf__archive_names_find(&d->names, MARKER, strlen(MARKER)) == DAF__NO_ENTRY)
            s->prefix = only_folder(d, NULL);
        if (!s->prefix)
            s->prefix = strdup("");
    }
    if (!s->prefix)
        return daf__no_memory(err);
    s->prefix_bytes = strlen(s->prefix);
    return 0;
}

static bool is_no_index(void *context, uint32_t entry) {
    const daf__archive_store *s = context;
    const daf__archive_directory *d = &s->archive->directory;
    size_t bytes = d->entries[entry].name_bytes;
    const char *name = daf__archive_plain_name(daf__archive_entry_name(d, &d->entries[entry]), &bytes);
    size_t n = strlen("metadata.json");
    return bytes != s->prefix_bytes + n || memcmp(name, s->prefix, s->prefix_bytes) != 0 ||
           memcmp(name + s->prefix_bytes, "metadata.json", n) != 0;
}

/* An index would be out of date with the first append. */
static int strip_index(daf__archive_store *s, daf_error *err) {
    char *name = full_name(s, "metadata.json");
    if (!name)
        return daf__no_memory(err);
    bool there = find(s, name) != DAF__NO_ENTRY;
    free(name);
    return there ? daf__archive_commit(s->archive, &s->settings, is_no_index, s, err) : 0;
}

int daf__archive_store_prepare(daf__store *base, daf_error *err) {
    daf__archive_store *s = (daf__archive_store *)base;
    pthread_mutex_lock(&s->archive->lock);
    int rc = daf__archive_repair(s->archive, s->settings.sync, err);
    if (rc == 0)
        rc = strip_index(s, err);
    pthread_mutex_unlock(&s->archive->lock);
    return rc;
}

int daf__archive_store_open(daf__store **ret, int dirfd, const char *path, const daf__archive_path *where,
                            daf__open_mode mode, const daf__archive_settings *settings, daf_error *err) {
    daf__archive_store *s = calloc(1, sizeof *s);
    if (!s)
        return daf__no_memory(err);
    *s = (daf__archive_store){
        .base = {.ops = &daf__archive_ops, .kind = "daf zip archive", .append_only = true},
        .settings = *settings};
    s->base.path = strdup(path);
    s->base.full_path = strdup(where->full);
    int rc = s->base.path && s->base.full_path ? 0 : daf__no_memory(err);
    if (rc == 0)
        rc = daf__archive_open(&s->archive, &s->base.made, dirfd, where, mode, settings, err);
    if (rc == 0) {
        pthread_mutex_lock(&s->archive->lock);
        rc = choose_prefix(s, where->group, err);
        pthread_mutex_unlock(&s->archive->lock);
    }
    if (rc == 0) {
        bool marked = false;
        rc = daf__store_has(&s->base, &marked, MARKER, err);
        s->base.fresh = !marked;
    }
    if (rc) {
        archive_free(&s->base);
        return rc;
    }
    *ret = &s->base;
    return 0;
}
