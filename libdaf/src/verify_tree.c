/* The folders: what is in them, and what does not belong there. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "metadata.h"
#include "store_dir_journal.h"
#include "utf8.h"
#include "verify.h"

static int list(daf__verifier *v, daf_names *ret, const char *folder, daf__list_what what) {
    daf__store *s = v->d->store;
    return s->ops->list(s, ret, folder, what, v->err);
}

/* The bytes of the name before the suffix; 0: it does not end in it. */
static size_t stem_bytes(const char *name, const char *suffix) {
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && strcmp(name + n - k, suffix) == 0 ? n - k : 0;
}

/* ---- names */

/* What the R implementation refuses. */
static bool is_risky(const char *name) {
    size_t n = strlen(name);
    return strpbrk(name, "\\:,\t\r\n") || name[0] == ' ' || name[n - 1] == ' ';
}

static void verify_name(daf__verifier *v, const daf__property *p) {
    daf__key key = daf__property_key(p);
    daf_error details;
    if (daf__check_readable(p, &details) != 0)
        daf__tell(v, DAF_PROBLEM_NAME_HIDDEN, key.text, DAF_NO_OFFSET, "%s", details.text);
    else if (daf__check_writable(p, &details) != 0)
        daf__tell(v, DAF_PROBLEM_NAME, key.text, DAF_NO_OFFSET, "%s", details.text);
    else if (is_risky(p->name))
        daf__tell(v, DAF_PROBLEM_NAME_RISKY, key.text, DAF_NO_OFFSET,
                  "a backslash, colon, comma, tab, line end or outer blank in the name");
}

/* ---- files of properties */

/* Whether `file` is the one of property `stem` with one of the suffixes that its descriptor speaks of. */
static bool is_used(const daf__used_suffixes *used, const char *suffix) {
    for (unsigned i = 0; i < used->n; i++)
        if (strcmp(used->suffix[i], suffix) == 0)
            return true;
    return !used->known;
}

/* One folder of properties of one kind. */
typedef struct folder_check {
    daf__verifier *v;
    daf__kind kind;
    const char *path;
    daf__property at; /* the axes */
    daf_names files;
    daf__used_suffixes *used; /* of each file that is a property's main one */
} folder_check;

static size_t find_file(const folder_check *f, const char *name) {
    size_t low = 0, high = f->files.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(f->files.names[middle], name);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return SIZE_MAX;
}

/* What owns the file that is no property's main one: a property with that suffix. */
typedef enum owner { OWNER_NONE, OWNER_DEAD, OWNER_LIVING } owner;

static owner find_owner(const folder_check *f, const char *name) {
    const char *main_suffix = daf__main_suffix(f->kind);
    owner found = OWNER_NONE;
    for (const char *const *suffix = daf__suffixes(f->kind); *suffix; suffix++) {
        size_t stem = stem_bytes(name, *suffix);
        char property[DAF__MAX_FILE_NAME + 16];
        if (stem == 0 || (size_t)snprintf(property, sizeof property, "%.*s%s", (int)stem, name,
                                          main_suffix) >= sizeof property)
            continue;
        size_t at = find_file(f, property);
        if (at != SIZE_MAX && is_used(&f->used[at], *suffix))
            return OWNER_LIVING;
        found = OWNER_DEAD;
    }
    return found;
}

static void verify_other_file(const folder_check *f, const char *name) {
    daf__key key;
    if (snprintf(key.text, sizeof key.text, "%s/%s", f->path, name) >= (int)sizeof key.text)
        return;
    owner o = find_owner(f, name);
    if (strcmp(name, daf__main_suffix(f->kind)) == 0)
        daf__tell(f->v, DAF_PROBLEM_NAME_HIDDEN, key.text, DAF_NO_OFFSET, "the name is empty");
    else if (o == OWNER_DEAD)
        daf__tell(f->v, DAF_PROBLEM_ORPHAN, key.text, DAF_NO_OFFSET, "no descriptor speaks of it");
    else if (o == OWNER_NONE && !(f->kind == DAF__AXIS && strcmp(name, "metadata.json") == 0))
        daf__tell(f->v, DAF_PROBLEM_FOREIGN, key.text, DAF_NO_OFFSET, "not a file of the format");
}

static int verify_file(folder_check *f, size_t i, size_t stem) {
    char *name = daf__copy_text(f->files.names[i], stem);
    if (!name)
        return daf__no_memory(f->v->err);
    daf__property p = f->at;
    p.kind = f->kind;
    p.name = name;
    int rc = 0;
    f->v->summary.properties++;
    verify_name(f->v, &p);
    if (f->kind == DAF__AXIS)
        rc = daf__verify_axis(f->v, &p);
    else if (f->kind == DAF__SCALAR)
        rc = daf__verify_scalar(f->v, &p);
    else
        rc = daf__verify_described(f->v, &p, &f->used[i]);
    free(name);
    return rc;
}

static int verify_folder(daf__verifier *v, daf__kind kind, const char *path, const daf__property *at) {
    folder_check f = {.v = v, .kind = kind, .path = path};
    if (at)
        f.at = *at;
    int rc = list(v, &f.files, path, DAF__LIST_FILES);
    if (rc)
        return rc;
    f.used = calloc(f.files.n + 1, sizeof *f.used);
    if (!f.used)
        rc = daf__no_memory(v->err);
    for (size_t i = 0; i < f.files.n && rc == 0; i++) {
        size_t stem = stem_bytes(f.files.names[i], daf__main_suffix(kind));
        f.used[i].known = true;
        if (stem)
            rc = verify_file(&f, i, stem);
    }
    for (size_t i = 0; i < f.files.n && rc == 0; i++)
        if (stem_bytes(f.files.names[i], daf__main_suffix(kind)) == 0)
            verify_other_file(&f, f.files.names[i]);
    daf_names_clear(&f.files);
    free(f.used);
    return rc;
}

/* ---- folders of axes */

static int holds_files(daf__verifier *v, const char *path, bool *ret) {
    daf_names files = {0}, folders = {0};
    int rc = list(v, &files, path, DAF__LIST_FILES);
    if (rc == 0)
        rc = list(v, &folders, path, DAF__LIST_FOLDERS);
    *ret = files.n > 0;
    for (size_t i = 0; i < folders.n && rc == 0 && !*ret; i++) {
        daf__key inner;
        if (snprintf(inner.text, sizeof inner.text, "%s/%s", path, folders.names[i]) < (int)sizeof inner.text)
            rc = holds_files(v, inner.text, ret);
    }
    daf_names_clear(&files);
    daf_names_clear(&folders);
    return rc;
}

/* Folders in `path` that are of no axis, and axes that have no folder. `folders`: what is there. */
static int verify_axis_folders(daf__verifier *v, const char *path, const daf_names *folders) {
    int rc = 0;
    daf__key key;
    for (size_t i = 0; i < folders->n && rc == 0; i++) {
        bool holds = false;
        if (daf__is_listed(&v->axes, folders->names[i]) ||
            snprintf(key.text, sizeof key.text, "%s/%s", path, folders->names[i]) >= (int)sizeof key.text)
            continue;
        rc = holds_files(v, key.text, &holds);
        if (rc == 0 && holds)
            daf__tell(v, DAF_PROBLEM_NO_AXIS, key.text, DAF_NO_OFFSET,
                      "holds files, but there is no axis of this name");
    }
    for (size_t i = 0; i < v->axes.n && v->is_directory && rc == 0; i++) {
        if (daf__is_listed(folders, v->axes.names[i]))
            continue;
        snprintf(key.text, sizeof key.text, "%s/%s", path, v->axes.names[i]);
        daf__tell(v, DAF_PROBLEM_FOLDER_MISSING, key.text, DAF_NO_OFFSET, "there is no such folder");
    }
    return rc;
}

static int verify_vectors(daf__verifier *v) {
    daf_names folders = {0};
    int rc = list(v, &folders, "vectors", DAF__LIST_FOLDERS);
    if (rc == 0)
        rc = verify_axis_folders(v, "vectors", &folders);
    for (size_t i = 0; i < v->axes.n && rc == 0; i++) {
        const daf__property at = {.axis = v->axes.names[i]};
        daf__key path;
        snprintf(path.text, sizeof path.text, "vectors/%s", at.axis);
        if (daf__is_listed(&folders, at.axis))
            rc = verify_folder(v, DAF__VECTOR, path.text, &at);
    }
    daf_names_clear(&folders);
    return rc;
}

static int verify_matrices_of(daf__verifier *v, const char *rows) {
    daf_names folders = {0};
    daf__key path;
    snprintf(path.text, sizeof path.text, "matrices/%s", rows);
    int rc = list(v, &folders, path.text, DAF__LIST_FOLDERS);
    if (rc == 0)
        rc = verify_axis_folders(v, path.text, &folders);
    for (size_t i = 0; i < v->axes.n && rc == 0; i++) {
        const daf__property at = {.axis = rows, .columns = v->axes.names[i]};
        snprintf(path.text, sizeof path.text, "matrices/%s/%s", rows, at.columns);
        if (daf__is_listed(&folders, at.columns))
            rc = verify_folder(v, DAF__MATRIX, path.text, &at);
    }
    daf_names_clear(&folders);
    return rc;
}

static int verify_matrices(daf__verifier *v) {
    daf_names folders = {0};
    int rc = list(v, &folders, "matrices", DAF__LIST_FOLDERS);
    if (rc == 0)
        rc = verify_axis_folders(v, "matrices", &folders);
    for (size_t i = 0; i < v->axes.n && rc == 0; i++)
        if (daf__is_listed(&folders, v->axes.names[i]))
            rc = verify_matrices_of(v, v->axes.names[i]);
    daf_names_clear(&folders);
    return rc;
}

/* ---- the root */

static const char *const top_folders[] = {"axes", "matrices", "scalars", "vectors"};
enum { N_TOP_FOLDERS = sizeof top_folders / sizeof top_folders[0] };

static bool is_top(const char *name, bool folder) {
    static const char *const files[] = {"daf.json", "metadata.json", "metadata.zip"};
    const char *const *names = folder ? top_folders : files;
    size_t n = folder ? (size_t)N_TOP_FOLDERS : sizeof files / sizeof files[0];
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_temporary(const char *name) {
    return strncmp(name, DAF__STAGING_PREFIX, strlen(DAF__STAGING_PREFIX)) == 0 ||
           strcmp(name, "metadata.json.new") == 0 || strcmp(name, DAF__METADATA_STALE_KEY) == 0;
}

/* A writer that is at work has such files. */
static void tell_leftover(daf__verifier *v, const char *name) {
    if (!daf__dir_store_is_locked(v->d->store))
        daf__tell(v, DAF_PROBLEM_LEFTOVER, name, DAF_NO_OFFSET,
                  "a temporary file; the next writable open removes it");
}

/* An empty one is of a change that is final. */
static void tell_journal(daf__verifier *v) {
    daf__stamp stamp;
    if (v->d->store->ops->stamp(v->d->store, &stamp, DAF__JOURNAL, NULL) == 0 && stamp.bytes == 0)
        tell_leftover(v, DAF__JOURNAL);
    else
        daf__tell(v, DAF_PROBLEM_UNFINISHED, DAF__JOURNAL, DAF_NO_OFFSET,
                  "a change is under way, or its writer was killed; the next writable open undoes it");
}

static void verify_top_name(daf__verifier *v, const char *name, bool folder) {
    if (is_top(name, folder))
        return;
    if (v->is_archive)
        daf__tell(v, DAF_PROBLEM_FOREIGN, name, DAF_NO_OFFSET, "not a file of the format");
    else if (strcmp(name, DAF__JOURNAL) == 0)
        tell_journal(v);
    else if (strcmp(name, DAF__BACKUP) == 0)
        daf__tell(v, DAF_PROBLEM_UNFINISHED, name, DAF_NO_OFFSET,
                  "the reorder of an axis was interrupted; the next writable open rolls it back");
    else if (is_temporary(name))
        tell_leftover(v, name);
    else
        daf__tell(v, DAF_PROBLEM_FOREIGN, name, DAF_NO_OFFSET, "not a %s of the format",
                  folder ? "folder" : "file");
}

static int verify_root(daf__verifier *v) {
    daf_names files = {0}, folders = {0};
    const char *root = v->is_archive ? "" : ".";
    int rc = list(v, &files, root, DAF__LIST_FILES);
    if (rc == 0)
        rc = list(v, &folders, root, DAF__LIST_FOLDERS);
    for (size_t i = 0; i < files.n && rc == 0; i++)
        verify_top_name(v, files.names[i], false);
    for (size_t i = 0; i < folders.n && rc == 0; i++)
        verify_top_name(v, folders.names[i], true);
    for (size_t i = 0; i < N_TOP_FOLDERS && rc == 0 && v->is_directory; i++)
        if (!daf__is_listed(&folders, top_folders[i]))
            daf__tell(v, DAF_PROBLEM_FOLDER_MISSING, top_folders[i], DAF_NO_OFFSET,
                      "there is no such folder");
    daf_names_clear(&files);
    daf_names_clear(&folders);
    return rc;
}

int daf__verify_tree(daf__verifier *v) {
    int rc = v->is_archive || v->is_directory ? verify_root(v) : 0;
    if (rc == 0)
        rc = verify_folder(v, DAF__AXIS, "axes", NULL);
    if (rc == 0)
        rc = verify_folder(v, DAF__SCALAR, "scalars", NULL);
    if (rc == 0)
        rc = verify_vectors(v);
    if (rc == 0)
        rc = verify_matrices(v);
    return rc;
}
