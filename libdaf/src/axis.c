/* Axes: adding, their length, their entries. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "edit.h"
#include "error.h"

/* ---- length */

static daf__axis_length *find_length(daf *d, const char *axis) {
    daf__axis_length *a = d->axis_lengths;
    while (a && strcmp(a->axis, axis) != 0)
        a = a->next;
    return a;
}

/* Remembering is a convenience: without memory for it the file is counted again. */
static void remember_length(daf *d, const char *axis, const daf__stamp *stamp, uint64_t n) {
    daf__axis_length *a = find_length(d, axis);
    if (!a) {
        a = calloc(1, sizeof *a);
        char *copy = strdup(axis);
        if (!a || !copy) {
            free(a);
            free(copy);
            return;
        }
        a->axis = copy;
        a->next = d->axis_lengths;
        d->axis_lengths = a;
    }
    a->stamp = *stamp;
    a->n = n;
}

static int open_axis(daf *d, daf__file **ret, const daf__property *p, daf_error *err) {
    daf_error details;
    daf__key base = daf__property_key(p), key = daf__key_with(&base, ".txt");
    int rc = d->store->ops->open(d->store, ret, key.text, &details);
    if (rc == DAF_ERR_MISSING)
        return daf__no_property(d, p, err);
    return rc ? daf__pass(err, &details) : 0;
}

int daf_axis_length(daf *d, uint64_t *ret, const char *axis, daf_error *err) {
    daf__property p = daf__axis_property(axis);
    int rc = daf__check_readable(&p, err);
    if (rc)
        return rc;
    if (d->store->ops->axis_length) {
        daf_error details;
        rc = d->store->ops->axis_length(d->store, ret, axis, &details);
        if (rc == DAF_ERR_MISSING)
            return daf__no_property(d, &p, err);
        return rc ? daf__pass(err, &details) : 0;
    }
    daf__axis_length *known = find_length(d, axis);
    daf__key base = daf__property_key(&p), key = daf__key_with(&base, ".txt");
    daf__stamp stamp;
    if (known && d->store->ops->stamp(d->store, &stamp, key.text, NULL) == 0 &&
        daf__stamps_equal(&stamp, &known->stamp)) {
        *ret = known->n;
        return 0;
    }
    daf__file *f;
    uint64_t n;
    rc = open_axis(d, &f, &p, err);
    if (rc)
        return rc;
    rc = daf__count_lines(f, &n, err);
    if (rc == 0) {
        remember_length(d, axis, &f->stamp, n);
        *ret = n;
    }
    daf__file_close(f);
    return rc;
}

int daf__lengths(daf *d, const daf__property *p, uint64_t *rows, uint64_t *columns, daf_error *err) {
    uint64_t n_rows = 0, n_columns = 1;
    int rc = daf_axis_length(d, &n_rows, p->axis, err);
    if (rc == 0 && p->kind == DAF__MATRIX)
        rc = daf_axis_length(d, &n_columns, p->columns, err);
    if (rc)
        return rc;
    *rows = n_rows;
    *columns = n_columns;
    return 0;
}

int daf__check_size(const daf *d, uint64_t rows, uint64_t columns, daf_error *err) {
    uint64_t n;
    if (__builtin_mul_overflow(rows, columns, &n) || n > (uint64_t)SIZE_MAX / DAF__MAX_TYPE_BYTES / 2)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: %" PRIu64 " x %" PRIu64 " elements are too many",
                         d->store->path, rows, columns);
    return 0;
}

int daf__shape(daf *d, const daf__property *p, uint64_t *rows, uint64_t *columns, daf_error *err) {
    int rc = daf__lengths(d, p, rows, columns, err);
    return rc ? rc : daf__check_size(d, *rows, *columns, err);
}

/* ---- entries */

static int check_empty(const daf__buf *content, const char *where, daf_error *err) {
    const uint8_t *second = daf__texts_second_empty(content);
    if (!second)
        return 0;
    return daf__fail(err, DAF_ERR_CORRUPT, 0, (uint64_t)(second - content->data),
                     "%s: the entries are not unique: \"\" stands twice", where);
}

static int check_unique(const daf__texts *t, const char *where, daf_error *err) {
    uint64_t twice;
    int rc = daf__texts_find_twice(t->next, t->n, &twice, err);
    if (rc == 0 && twice < t->n)
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, (uint64_t)(t->next[twice] - t->pool),
                       "%s: the entries are not unique: \"%.60s\" stands twice", where, t->next[twice]);
    return rc;
}

int daf_get_axis(daf *d, daf_array **ret, const char *axis, daf_error *err) {
    daf__property p = daf__axis_property(axis);
    daf__buf content = {0};
    daf__texts texts = {0};
    daf__file *f;
    int rc = daf__check_readable(&p, err);
    if (rc == 0)
        rc = open_axis(d, &f, &p, err);
    if (rc)
        return rc;
    rc = daf__file_read_whole(f, &content, UINT64_MAX, err);
    if (rc == 0)
        rc = check_empty(&content, f->where, err);
    if (rc)
        daf__buf_free(&content);
    if (rc == 0)
        rc = daf__texts_split(&texts, &content, f->where, err);
    if (rc == 0)
        rc = check_unique(&texts, f->where, err);
    daf__file_close(f);
    daf_array *a = rc == 0 ? daf__array_new(DAF_STRING, texts.n, 1) : NULL;
    if (!a) {
        daf__texts_free(&texts);
        return rc ? rc : daf__no_memory(err);
    }
    a->texts = texts;
    *ret = a;
    return 0;
}

/* ---- adding */

static int add_folder(daf__edit *e, const char *format, const char *a, const char *b, daf_error *err) {
    daf__key key;
    int n = b ? snprintf(key.text, sizeof key.text, "%s/%s/%s", format, a, b)
              : snprintf(key.text, sizeof key.text, "%s/%s", format, a);
    if (n < 0 || (size_t)n >= sizeof key.text)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "the path of a folder is too long");
    return daf__change_make_folder(&e->change, key.text, err);
}

/* Other implementations cannot list a repository that lacks one of these folders. */
static int add_folders(daf__edit *e, const char *axis, daf_error *err) {
    daf_names others;
    int rc = daf_list_axes(e->d, &others, err);
    if (rc)
        return rc;
    rc = add_folder(e, "vectors", axis, NULL, err);
    if (rc == 0)
        rc = add_folder(e, "matrices", axis, NULL, err);
    if (rc == 0)
        rc = add_folder(e, "matrices", axis, axis, err);
    for (size_t i = 0; i < others.n && rc == 0; i++) {
        rc = add_folder(e, "matrices", axis, others.names[i], err);
        if (rc == 0)
            rc = add_folder(e, "matrices", others.names[i], axis, err);
    }
    daf_names_clear(&others);
    return rc;
}

static int stage_entries(daf__edit *e, const daf__key *base, const char *const *entries, uint64_t n,
                         daf_error *err) {
    daf__out *out;
    int rc = daf__edit_create(e, &out, err);
    if (rc)
        return rc;
    daf__key key = daf__key_with(base, ".txt");
    rc = daf__texts_write(out, entries, n, err);
    rc = daf__edit_put(e, key.text, out, rc, err);
    char descriptor[64];
    int bytes = snprintf(descriptor, sizeof descriptor, "{\"format\":\"axis\",\"n_entries\":%" PRIu64 "}", n);
    return rc ? rc : daf__edit_list(e, base, descriptor, (size_t)bytes, err);
}

int daf_add_axis(daf *d, const char *axis, const char *const *entries, uint64_t n, daf_error *err) {
    daf__property p = daf__axis_property(axis);
    daf__edit e;
    bool there;
    int rc = daf__edit_begin(&e, d, err);
    if (rc == 0)
        rc = daf__check_writable(&p, err);
    if (rc == 0)
        rc = daf__property_is_free(d, &there, &p, false, err);
    if (rc == 0)
        rc = daf__texts_check(entries, n, true, err);
    if (rc == 0)
        rc = add_folders(&e, axis, err);
    daf__key base = {""};
    if (rc == 0) {
        base = daf__property_key(&p);
        rc = stage_entries(&e, &base, entries, n, err);
    }
    return daf__edit_end(&e, rc, err);
}

enum { INTEGER_TEXT = 24 };

/* Whether first + (n - 1) * step has 64 bits; the distance may have one more than a step can. */
static bool ends_within(int64_t first, int64_t step, uint64_t n) {
    uint64_t magnitude = step < 0 ? -(uint64_t)step : (uint64_t)step, distance;
    uint64_t room = step < 0 ? (uint64_t)first - (uint64_t)INT64_MIN : (uint64_t)INT64_MAX - (uint64_t)first;
    return !__builtin_mul_overflow(n - 1, magnitude, &distance) && distance <= room;
}

int daf_add_axis_integers(daf *d, const char *axis, int64_t first, int64_t step, uint64_t n, daf_error *err) {
    if (n > (uint64_t)SIZE_MAX / INTEGER_TEXT / 2)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "axis \"%.60s\": %" PRIu64 " entries are too many", axis,
                         n);
    if (n > 1 && step == 0)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "axis \"%.60s\": the step is 0", axis);
    if (n > 1 && !ends_within(first, step, n))
        return daf__fail(err, DAF_ERR_VALUE, 0, 0, "axis \"%.60s\": the last entry exceeds 64 bits", axis);
    char *pool = malloc((size_t)n * INTEGER_TEXT + 1);
    const char **entries = malloc((size_t)(n + 1) * sizeof *entries);
    int rc = pool && entries ? 0 : daf__no_memory(err);
    if (rc == 0) {
        for (uint64_t i = 0; i < n; i++) {
            entries[i] = pool + i * INTEGER_TEXT;
            snprintf(pool + i * INTEGER_TEXT, INTEGER_TEXT, "%" PRId64,
                     (int64_t)((uint64_t)first + i * (uint64_t)step));
        }
        rc = daf_add_axis(d, axis, entries, n, err);
    }
    free(pool);
    free(entries);
    return rc;
}
