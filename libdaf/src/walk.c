/* The properties that a repository's tree holds. Axes come from axes/, and only folders of axes are looked into. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "metadata.h"

typedef struct walk_context {
    daf__store *store;
    daf__list_what files;
    daf__visit visit;
    void *context;
    daf_error *err;
    daf_names axes;
} walk_context;

/* The length of `name` without `suffix`; 0 when it does not end in it, or what is left is no name of a property. */
static size_t stem_bytes(const char *name, const char *suffix) {
    size_t n = strlen(name), k = strlen(suffix);
    bool ends = n > k && strcmp(name + n - k, suffix) == 0;
    return ends && daf__is_path_part(name, n - k) ? n - k : 0;
}

/* Visits the files of the folder that end in the kind's main suffix. */
static int walk_folder(walk_context *w, daf__kind kind, const char *folder) {
    daf_names files;
    int rc = w->store->ops->list(w->store, &files, folder, w->files, w->err);
    if (rc)
        return rc;
    for (size_t i = 0; i < files.n && rc == 0; i++) {
        daf__key key;
        size_t stem = stem_bytes(files.names[i], daf__main_suffix(kind));
        if (stem == 0)
            continue;
        if (snprintf(key.text, sizeof key.text, "%s/%.*s", folder, (int)stem, files.names[i]) >=
            (int)sizeof key.text)
            continue;
        rc = w->visit(w->context, kind, &key, w->err);
    }
    daf_names_clear(&files);
    return rc;
}

static int collect_axes(walk_context *w) {
    daf_names files;
    int rc = w->store->ops->list(w->store, &files, "axes", DAF__LIST_FILES, w->err);
    if (rc)
        return rc;
    for (size_t i = 0; i < files.n && rc == 0; i++) {
        size_t stem = stem_bytes(files.names[i], ".txt");
        if (stem)
            rc = daf__names_add(&w->axes, files.names[i], stem, w->err);
    }
    daf_names_clear(&files);
    return rc;
}

static int compare_to_name(const void *key, const void *name) {
    return strcmp(key, *(char *const *)name);
}

static int walk_matrices(walk_context *w, const char *rows) {
    daf__key folder;
    daf_names columns;
    snprintf(folder.text, sizeof folder.text, "matrices/%s", rows);
    int rc = w->store->ops->list(w->store, &columns, folder.text, DAF__LIST_FOLDERS, w->err);
    if (rc)
        return rc;
    for (size_t i = 0; i < w->axes.n && rc == 0; i++) {
        const char *axis = w->axes.names[i];
        if (columns.n == 0 ||
            !bsearch(axis, columns.names, columns.n, sizeof *columns.names, compare_to_name))
            continue;
        snprintf(folder.text, sizeof folder.text, "matrices/%s/%s", rows, axis);
        rc = walk_folder(w, DAF__MATRIX, folder.text);
    }
    daf_names_clear(&columns);
    return rc;
}

int daf__walk(daf__store *s, daf__list_what files, daf__visit visit, void *context, daf_error *err) {
    walk_context w = {.store = s, .files = files, .visit = visit, .context = context, .err = err};
    daf__key folder;
    int rc = collect_axes(&w);
    if (rc == 0)
        rc = walk_folder(&w, DAF__AXIS, "axes");
    if (rc == 0)
        rc = walk_folder(&w, DAF__SCALAR, "scalars");
    for (size_t i = 0; i < w.axes.n && rc == 0; i++) {
        snprintf(folder.text, sizeof folder.text, "vectors/%s", w.axes.names[i]);
        rc = walk_folder(&w, DAF__VECTOR, folder.text);
    }
    for (size_t i = 0; i < w.axes.n && rc == 0; i++)
        rc = walk_matrices(&w, w.axes.names[i]);
    daf_names_clear(&w.axes);
    return rc;
}
