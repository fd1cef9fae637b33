/* Deleting properties (specification section 6). */
#include <stdio.h>
#include <string.h>

#include "edit.h"
#include "error.h"

static int delete_property(daf *d, const daf__property *p, daf_error *err) {
    daf__edit e;
    bool there = false, other_there = false;
    bool has_other = p->kind == DAF__MATRIX && p->axis && p->columns && strcmp(p->axis, p->columns) != 0;
    daf__property other = has_other ? daf__other_layout(p) : *p;
    int rc = daf__edit_begin(&e, d, err);
    if (rc == 0)
        rc = daf__property_has(d, &there, p, err);
    if (rc == 0 && has_other)
        rc = daf__property_has(d, &other_there, &other, err);
    if (rc == 0 && !there && !other_there)
        rc = daf__no_property(d, p, err);
    if (rc == 0 && there)
        rc = daf__edit_remove(&e, p, NULL, err);
    if (rc == 0 && other_there)
        rc = daf__edit_remove(&e, &other, NULL, err);
    return daf__edit_end(&e, rc, err);
}

int daf_delete_scalar(daf *d, const char *name, daf_error *err) {
    daf__property p = daf__scalar_property(name);
    return delete_property(d, &p, err);
}

int daf_delete_vector(daf *d, const char *axis, const char *name, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return delete_property(d, &p, err);
}

int daf_delete_matrix(daf *d, const char *rows, const char *columns, const char *name, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return delete_property(d, &p, err);
}

/* Removes a folder, and from the index what lies in it. */
static int remove_folder(daf__edit *e, const daf__key *folder, daf_error *err) {
    daf__key prefix = daf__key_with(folder, "/");
    int rc = daf__change_remove(&e->change, folder->text, err);
    return rc ? rc : daf__names_add(&e->leaving, prefix.text, strlen(prefix.text), err);
}

/* The folders of all that lies on the axis: vectors/A, matrices/A, matrices/ * /A. */
static int remove_folders(daf__edit *e, const char *axis, daf_error *err) {
    daf_names rows;
    daf__key folder;
    int rc = e->d->store->ops->list(e->d->store, &rows, "matrices", DAF__LIST_FOLDERS, err);
    if (rc)
        return rc;
    snprintf(folder.text, sizeof folder.text, "vectors/%s", axis);
    rc = remove_folder(e, &folder, err);
    snprintf(folder.text, sizeof folder.text, "matrices/%s", axis);
    if (rc == 0)
        rc = remove_folder(e, &folder, err);
    for (size_t i = 0; i < rows.n && rc == 0; i++) {
        snprintf(folder.text, sizeof folder.text, "matrices/%s/%s", rows.names[i], axis);
        if (strcmp(rows.names[i], axis) != 0)
            rc = remove_folder(e, &folder, err);
    }
    daf_names_clear(&rows);
    return rc;
}

int daf_delete_axis(daf *d, const char *axis, daf_error *err) {
    daf__property p = daf__axis_property(axis);
    daf__edit e;
    bool there = false;
    int rc = daf__edit_begin(&e, d, err);
    if (rc == 0)
        rc = daf__property_has(d, &there, &p, err);
    if (rc == 0 && !there)
        rc = daf__no_property(d, &p, err);
    if (rc == 0)
        rc = daf__edit_remove(&e, &p, NULL, err);
    if (rc == 0)
        rc = remove_folders(&e, axis, err);
    return daf__edit_end(&e, rc, err);
}
