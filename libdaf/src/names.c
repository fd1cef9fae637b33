#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "error.h"
#include "utf8.h"

daf__property daf__scalar_property(const char *name) {
    return (daf__property){.kind = DAF__SCALAR, .name = name};
}

daf__property daf__axis_property(const char *axis) {
    return (daf__property){.kind = DAF__AXIS, .name = axis};
}

daf__property daf__vector_property(const char *axis, const char *name) {
    return (daf__property){.kind = DAF__VECTOR, .axis = axis, .name = name};
}

daf__property daf__matrix_property(const char *rows, const char *columns, const char *name) {
    return (daf__property){.kind = DAF__MATRIX, .axis = rows, .columns = columns, .name = name};
}

daf__property daf__other_layout(const daf__property *matrix) {
    return daf__matrix_property(matrix->columns, matrix->axis, matrix->name);
}

/* What keeps a name from being a part of a path. */
typedef enum part_fault { PART_GOOD, PART_EMPTY, PART_DOTS, PART_SLASH, PART_LONG } part_fault;

static part_fault judge_part(const char *name, size_t bytes) {
    if (bytes == 0)
        return PART_EMPTY;
    if (bytes <= 2 && memcmp(name, "..", bytes) == 0)
        return PART_DOTS;
    if (memchr(name, '/', bytes))
        return PART_SLASH;
    return bytes > DAF__MAX_FILE_NAME ? PART_LONG : PART_GOOD;
}

bool daf__is_path_part(const char *name, size_t bytes) {
    return judge_part(name, bytes) == PART_GOOD;
}

static int check_path_part(const char *what, const char *name, daf_error *err) {
    if (!name)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s is NULL", what);
    switch (judge_part(name, strlen(name))) {
    case PART_EMPTY:
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "%s is empty", what);
    case PART_DOTS:
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "%s \"%s\" is a folder's own name", what, name);
    case PART_SLASH:
        return daf__fail(err, DAF_ERR_NAME, 0, strcspn(name, "/"), "%s \"%.300s\" holds a /", what, name);
    case PART_LONG:
        return daf__fail(err, DAF_ERR_NAME, 0, 0,
                         "%s \"%.40s...\" is longer than a file name can be (%d bytes)", what, name,
                         DAF__MAX_FILE_NAME);
    default:
        return 0;
    }
}

int daf__check_readable(const daf__property *p, daf_error *err) {
    int rc = 0;
    if (p->kind == DAF__VECTOR)
        rc = check_path_part("the axis name", p->axis, err);
    if (p->kind == DAF__MATRIX) {
        rc = check_path_part("the rows axis name", p->axis, err);
        if (rc == 0)
            rc = check_path_part("the columns axis name", p->columns, err);
    }
    return rc ? rc : check_path_part(p->kind == DAF__AXIS ? "the axis name" : "the name", p->name, err);
}

static bool ends_with(const char *text, size_t bytes, const char *end) {
    size_t n = strlen(end);
    return bytes >= n && memcmp(text + bytes - n, end, n) == 0;
}

int daf__check_writable(const daf__property *p, daf_error *err) {
    static const char *const colliding[] = {".nzind", ".nzval", ".nztxt", ".colptr", ".rowval"};
    int rc = daf__check_readable(p, err);
    if (rc)
        return rc;
    const char *name = p->name;
    size_t bytes = strlen(name);
    if (bytes > DAF__MAX_NAME)
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "name \"%.40s...\" of %zu bytes is longer than %d", name,
                         bytes, DAF__MAX_NAME);
    size_t valid = daf__utf8_prefix(name, bytes);
    if (valid < bytes)
        return daf__fail(err, DAF_ERR_NAME, 0, valid, "name is not valid UTF-8 at byte %zu", valid);
    if (p->kind == DAF__VECTOR && (strcmp(name, "name") == 0 || strcmp(name, "index") == 0))
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "a vector may not be called \"%s\": the name is reserved",
                         name);
    for (size_t i = 0; p->kind != DAF__AXIS && i < sizeof colliding / sizeof colliding[0]; i++)
        if (ends_with(name, bytes, colliding[i]))
            return daf__fail(
                err, DAF_ERR_NAME, 0, 0,
                "name \"%s\" ends in %s: its files would collide with those of a sparse property", name,
                colliding[i]);
    return 0;
}

daf__key daf__property_key(const daf__property *p) {
    daf__key key;
    switch (p->kind) {
    case DAF__SCALAR:
        snprintf(key.text, sizeof key.text, "scalars/%s", p->name);
        break;
    case DAF__AXIS:
        snprintf(key.text, sizeof key.text, "axes/%s", p->name);
        break;
    case DAF__VECTOR:
        snprintf(key.text, sizeof key.text, "vectors/%s/%s", p->axis, p->name);
        break;
    case DAF__MATRIX:
        snprintf(key.text, sizeof key.text, "matrices/%s/%s/%s", p->axis, p->columns, p->name);
        break;
    }
    return key;
}

daf__key daf__key_with(const daf__key *base, const char *suffix) {
    daf__key key = *base;
    size_t n = strlen(key.text);
    snprintf(key.text + n, sizeof key.text - n, "%s", suffix);
    return key;
}

const char *const *daf__suffixes(daf__kind kind) {
    static const char *const scalar[] = {".json", NULL};
    static const char *const axis[] = {".txt", NULL};
    static const char *const vector[] = {".json",      ".txt",   ".data",      ".zip",   ".nzind",
                                         ".nzind.zip", ".nzval", ".nzval.zip", ".nztxt", NULL};
    static const char *const matrix[] = {".json",   ".data",       ".txt",    ".zip",
                                         ".colptr", ".colptr.zip", ".rowval", ".rowval.zip",
                                         ".nzval",  ".nzval.zip",  ".nztxt",  NULL};
    switch (kind) {
    case DAF__SCALAR:
        return scalar;
    case DAF__AXIS:
        return axis;
    case DAF__VECTOR:
        return vector;
    default:
        return matrix;
    }
}

const char *daf__main_suffix(daf__kind kind) {
    return daf__suffixes(kind)[0];
}

void daf_names_clear(daf_names *names) {
    if (!names)
        return;
    for (size_t i = 0; i < names->n; i++)
        free(names->names[i]);
    free(names->names);
    *names = (daf_names){0};
}

int daf__names_add(daf_names *names, const char *name, size_t bytes, daf_error *err) {
    size_t n = names->n;
    if ((n & (n - 1)) == 0) { /* the capacity is the next power of two */
        char **grown = realloc(names->names, (n ? 2 * n : 1) * sizeof *grown);
        if (!grown)
            return daf__no_memory(err);
        names->names = grown;
    }
    names->names[n] = daf__copy_text(name, bytes);
    if (!names->names[n])
        return daf__no_memory(err);
    names->n++;
    return 0;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void daf__names_sort(daf_names *names) {
    if (names->n > 1)
        qsort(names->names, names->n, sizeof *names->names, compare_names);
}

void daf__names_drop_twins(daf_names *names) {
    size_t kept = 0;
    for (size_t i = 0; i < names->n; i++) {
        if (kept && strcmp(names->names[kept - 1], names->names[i]) == 0)
            free(names->names[i]);
        else
            names->names[kept++] = names->names[i];
    }
    names->n = kept;
}
