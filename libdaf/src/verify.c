/* daf_verify: what is told, and in which order things are looked at. */
#include "verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "error.h"
#include "metadata.h"

#define MARKER "daf.json"

/* ---- codes */

static const struct problem_row {
    const char *name;
    daf_problem_class class;
    const char *meaning;
} problem_rows[] = {
#define PROBLEM_ROW(name, text, class, meaning) {text, DAF_CLASS_##class, meaning},
    DAF_PROBLEM_MAP(PROBLEM_ROW)
#undef PROBLEM_ROW
};

static bool is_code(daf_problem_code code) {
    return (unsigned)code < DAF_N_PROBLEMS;
}

const char *daf_problem_name(daf_problem_code code) {
    return is_code(code) ? problem_rows[code].name : NULL;
}

daf_problem_class daf_problem_class_of(daf_problem_code code) {
    return is_code(code) ? problem_rows[code].class : DAF_CLASS_DAMAGE;
}

const char *daf_problem_meaning(daf_problem_code code) {
    return is_code(code) ? problem_rows[code].meaning : NULL;
}

const char *daf_problem_class_name(daf_problem_class class_) {
    static const char *const names[] = {"damage", "fault", "style"};
    return (unsigned)class_ < sizeof names / sizeof names[0] ? names[class_] : NULL;
}

/* ---- telling */

static void tell(daf__verifier *v, daf_problem_code code, const char *place, uint64_t offset,
                 const char *text) {
    daf_problem_class class = daf_problem_class_of(code);
    if (class == DAF_CLASS_STYLE && !v->options.strict)
        return;
    v->summary.n[class]++;
    const daf_problem p = {.code = code, .place = place, .offset = offset, .text = text};
    if (v->options.problem)
        v->options.problem(v->options.context, &p);
}

void daf__tell(daf__verifier *v, daf_problem_code code, const char *place, uint64_t offset,
               const char *format, ...) {
    char text[sizeof(daf_error){.code = 0}.text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell(v, code, place, offset, text);
}

static bool is_ours_to_tell(int rc) {
    return rc == DAF_ERR_CORRUPT || rc == DAF_ERR_TRUNCATED || rc == DAF_ERR_UNSUPPORTED ||
           rc == DAF_ERR_LIMIT || rc == DAF_ERR_VERSION || rc == DAF_ERR_MISSING || rc == DAF_ERR_NAME;
}

/* The reason alone: without the path before it. */
static const char *reason_of(const daf__verifier *v, const char *place, const char *text) {
    const char *path = v->d->store->path;
    size_t n = strlen(path), k = strlen(place);
    if (strncmp(text, path, n) == 0 && text[n] == '/' && strncmp(text + n + 1, place, k) == 0 &&
        strncmp(text + n + 1 + k, ": ", 2) == 0)
        return text + n + 1 + k + 2;
    return text;
}

int daf__tell_error(daf__verifier *v, daf_problem_code code, const char *place, const daf_error *details) {
    daf_error d = *details;
    if (!is_ours_to_tell(d.code))
        return daf__pass(v->err, &d);
    if (v->is_archive && code == DAF_PROBLEM_UNREADABLE && d.code != DAF_ERR_MISSING &&
        d.code != DAF_ERR_LIMIT)
        return 0; /* told of the entry */
    d.text[strcspn(d.text, "\n")] = 0;
    tell(v, code, place, d.offset ? d.offset : DAF_NO_OFFSET, reason_of(v, place, d.text));
    return 0;
}

int daf__looked_at(daf__verifier *v, uint64_t bytes) {
    v->summary.bytes += bytes;
    if (v->options.progress && v->options.progress(v->options.context, v->summary.bytes, v->total_bytes))
        return daf__fail(v->err, DAF_ERR_CANCELLED, 0, 0, "%s: stopped", v->d->store->path);
    return 0;
}

void daf__count(daf__tally *t, uint64_t offset, const char *format, ...) {
    if (t->n++ > 0)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(t->text, sizeof t->text, format, args);
    va_end(args);
    t->offset = offset;
}

void daf__tell_tally(daf__verifier *v, const daf__tally *t, const char *place) {
    if (t->n > 1)
        daf__tell(v, t->code, place, t->offset, "%s (and %" PRIu64 " more)", t->text, t->n - 1);
    else if (t->n == 1)
        tell(v, t->code, place, t->offset, t->text);
}

static int compare_to_name(const void *key, const void *name) {
    return strcmp(key, *(char *const *)name);
}

bool daf__is_listed(const daf_names *names, const char *name) {
    return names->n && bsearch(name, names->names, names->n, sizeof *names->names, compare_to_name);
}

/* ---- the whole */

static int add_size(void *context, daf__kind kind, const daf__key *key, daf_error *err) {
    daf__verifier *v = context;
    daf__store *s = v->d->store;
    (void)err;
    for (const char *const *suffix = daf__suffixes(kind); *suffix; suffix++) {
        daf__key path = daf__key_with(key, *suffix);
        daf__stamp stamp;
        if (s->ops->stamp(s, &stamp, path.text, NULL) == 0)
            v->total_bytes += stamp.bytes;
    }
    return 0;
}

/* Returns 0 also when there is nothing more to look at: *go_on. */
static int verify_marker(daf__verifier *v, bool *go_on) {
    daf_error details = {.code = 0};
    int rc = daf__read_marker(v->d, &details);
    *go_on = rc == 0;
    if (rc == 0)
        return 0;
    if (rc == DAF_ERR_MISSING) {
        daf__tell(v, DAF_PROBLEM_NO_MARKER, MARKER, DAF_NO_OFFSET, "there is none: this is no repository");
        return 0;
    }
    daf_problem_code code = rc == DAF_ERR_VERSION ? DAF_PROBLEM_VERSION : DAF_PROBLEM_MARKER;
    return daf__tell_error(v, code, MARKER, &details);
}

static int verify_all(daf__verifier *v) {
    bool go_on;
    int rc = verify_marker(v, &go_on);
    if (rc || !go_on)
        return rc;
    if (v->options.progress)
        rc = daf__walk(v->d->store, DAF__LIST_FILES_ANYHOW, add_size, v, v->err);
    if (rc == 0)
        rc = daf_list_axes(v->d, &v->axes, v->err);
    if (rc == 0 && v->is_archive)
        rc = daf__verify_archive(v);
    if (rc == 0)
        rc = daf__verify_tree(v);
    if (rc == 0 && v->is_directory)
        rc = daf__verify_metadata(v);
    daf_names_clear(&v->axes);
    return rc;
}

void daf_verify_options_init(daf_verify_options *options) {
    *options = (daf_verify_options){.strict = false};
}

/* An archive whose directory cannot be found, or not read. */
static int tell_archive(daf__verifier *v, const daf_error *details) {
    const daf_problem p = {
        .code = DAF_PROBLEM_ARCHIVE, .place = "", .offset = DAF_NO_OFFSET, .text = details->text};
    v->summary.n[DAF_CLASS_DAMAGE]++;
    if (v->options.problem)
        v->options.problem(v->options.context, &p);
    return 0;
}

int daf_verify(const char *path, const daf_verify_options *options, daf_verify_summary *ret, daf_error *err) {
    daf__verifier v = {.err = err};
    daf_options opening;
    daf_error details = {.code = 0};
    if (!path)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "the path is NULL");
    if (options)
        v.options = *options;
    daf_options_init(&opening);
    opening.executor = v.options.executor;
    int rc = daf__open_untouched(&v.d, path, &opening, &details);
    if (rc == DAF_ERR_CORRUPT || rc == DAF_ERR_TRUNCATED) {
        rc = tell_archive(&v, &details);
    } else if (rc == 0) {
        v.is_directory = v.d->store->keeps_metadata;
        v.is_archive = v.d->store->ops == &daf__archive_ops;
        rc = verify_all(&v);
        daf_free(v.d);
    } else {
        daf__pass(err, &details);
    }
    if (rc == 0 && ret)
        *ret = v.summary;
    return rc;
}
