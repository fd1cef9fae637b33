/* Vectors and matrices: descriptors, payloads that are not packed, the rules of sparse data. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json.h"
#include "property.h"
#include "text.h"
#include "verify.h"

/* Reads a .json file; *whole: it is one JSON object. */
static int read_json(daf__verifier *v, const char *place, daf__buf *text, json_t **object) {
    daf_error details = {.code = 0};
    daf__store *s = v->d->store;
    char where[DAF__WHERE_TEXT];
    *object = NULL;
    int rc = daf__store_read(s, text, NULL, place, DAF__MAX_JSON_BYTES, &details);
    if (rc)
        return daf__tell_error(v, DAF_PROBLEM_UNREADABLE, place, &details);
    rc = daf__json_object(object, text->data, text->size, daf__store_where(where, s, place), &details);
    if (rc)
        rc = daf__tell_error(v, DAF_PROBLEM_JSON, place, &details);
    return rc ? rc : daf__looked_at(v, text->size);
}

/* ---- descriptors */

/* One vector or matrix. */
typedef struct subject {
    daf__verifier *v;
    const daf__property *property;
    daf__key base;
    daf__descriptor descriptor;
    uint64_t rows, columns, nnz;
    daf__file *files[DAF__N_PARTS];
    bool whole; /* nothing that keeps the values from being read was found so far */
} subject;

/* Which word of the descriptor is wrong, if it is one. */
static daf_problem_code blame(const json_t *object) {
    const char *format = daf__json_text(object, "format"), *type = daf__json_text(object, "eltype");
    const char *packed = daf__json_text(object, "packed_format");
    daf_type parsed;
    if (!format || (strcmp(format, "dense") != 0 && strcmp(format, "sparse") != 0))
        return DAF_PROBLEM_FORMAT;
    if (type && daf_type_parse(&parsed, type) != 0)
        return DAF_PROBLEM_ELTYPE;
    if (packed && strcmp(packed, "indexed+zipped") != 0 && strcmp(packed, "zipped") != 0)
        return DAF_PROBLEM_PACKED_FORMAT;
    return DAF_PROBLEM_DESCRIPTOR;
}

static daf_problem_code blame_all(json_t *object) {
    daf_problem_code code = blame(object);
    const char *key;
    json_t *part;
    if (code == DAF_PROBLEM_DESCRIPTOR)
        json_object_foreach(object, key, part) {
            if (json_is_object(part) && code == DAF_PROBLEM_DESCRIPTOR)
                code = blame(part);
        }
    return code;
}

static int parse_descriptor(subject *s, const char *place, const daf__buf *text, json_t *object) {
    daf_error details = {.code = 0};
    char where[DAF__WHERE_TEXT];
    daf__verifier *v = s->v;
    int rc = daf__descriptor_parse(&s->descriptor, s->property->kind, text->data, text->size,
                                   daf__store_where(where, v->d->store, place), &details);
    if (rc)
        return daf__tell_error(v, blame_all(object), place, &details);
    s->whole = true;
    daf__buf written = {0};
    daf__descriptor_write(&written, s->property->kind, &s->descriptor);
    rc = daf__buf_check(&written, v->err);
    if (rc == 0)
        daf__verify_form(v, place, text, &written);
    daf__buf_free(&written);
    return rc;
}

static int read_descriptor(subject *s) {
    daf__key key = daf__key_with(&s->base, ".json");
    daf__buf text = {0};
    json_t *object;
    int rc = read_json(s->v, key.text, &text, &object);
    if (rc == 0 && object)
        rc = parse_descriptor(s, key.text, &text, object);
    json_decref(object);
    daf__buf_free(&text);
    return rc;
}

/* What appendix A says of kinds of properties. */
static void verify_reach(const subject *s) {
    const daf__descriptor *d = &s->descriptor;
    daf__key key = daf__key_with(&s->base, ".json");
    daf__verifier *v = s->v;
    if (d->old_form && d->type == DAF_BOOL && v->is_archive)
        daf__tell(v, DAF_PROBLEM_OLD_BOOL, key.text, DAF_NO_OFFSET,
                  "a sparse Bool of the 1.0 form in an archive");
    if (d->sparse && d->type == DAF_STRING && s->property->kind == DAF__MATRIX)
        daf__tell(v, DAF_PROBLEM_SPARSE_STRING, key.text, DAF_NO_OFFSET, "a sparse matrix of Strings");
    if (d->sparse && d->type == DAF_STRING && d->parts[DAF__VALUES].packed)
        daf__tell(v, DAF_PROBLEM_SPARSE_STRING, key.text, DAF_NO_OFFSET,
                  "packed Strings of a sparse property");
    else if (d->type == DAF_STRING && d->parts[DAF__VALUES].packed && v->is_archive)
        daf__tell(v, DAF_PROBLEM_PACKED_STRING, key.text, DAF_NO_OFFSET, "packed Strings in an archive");
    for (unsigned i = DAF__INDICES; i < DAF__N_PARTS; i++)
        if (d->parts[i].packed && (d->parts[i].type == DAF_UINT16 || d->parts[i].type == DAF_UINT32))
            daf__tell(v, DAF_PROBLEM_PACKED_INDEX, key.text, DAF_NO_OFFSET, "%s is packed %s",
                      daf__part_name(s->property->kind, true, (daf__part)i), daf_type_name(d->parts[i].type));
}

/* ---- payloads */

static daf__key part_key(const subject *s, daf__part part) {
    char suffix[DAF__SUFFIX_TEXT];
    return daf__key_with(&s->base, daf__part_suffix(suffix, s->property->kind, &s->descriptor, part));
}

static int open_part(subject *s, daf__part part, bool optional) {
    daf__key key = part_key(s, part);
    daf__store *store = s->v->d->store;
    daf_error details = {.code = 0};
    int rc = store->ops->open(store, &s->files[part], key.text, &details);
    if (rc == 0)
        return 0;
    s->files[part] = NULL;
    if (rc == DAF_ERR_MISSING && optional)
        return 0;
    s->whole = false;
    if (rc == DAF_ERR_MISSING) {
        daf__tell(s->v, DAF_PROBLEM_PAYLOAD_MISSING, key.text, DAF_NO_OFFSET, "there is no such file");
        return 0;
    }
    return daf__tell_error(s->v, DAF_PROBLEM_UNREADABLE, key.text, &details);
}

static int open_parts(subject *s) {
    daf__descriptor *d = &s->descriptor;
    int rc = 0;
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        if (d->parts[i].present)
            rc = open_part(s, (daf__part)i, false);
    /* Some writers of the 1.0 form store the values of a Bool property all the same. */
    if (rc == 0 && d->old_form && d->type == DAF_BOOL) {
        rc = open_part(s, DAF__VALUES, true);
        d->parts[DAF__VALUES].present = s->files[DAF__VALUES] != NULL;
    }
    return rc;
}

static void note_used(const subject *s, daf__used_suffixes *used) {
    used->known = true;
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        if (s->descriptor.parts[i].present)
            daf__part_suffix(used->suffix[used->n++], s->property->kind, &s->descriptor, (daf__part)i);
}

static daf__extent extent_of(const subject *s, daf__part part) {
    if (!s->descriptor.sparse)
        return (daf__extent){s->property->kind, s->rows, s->columns};
    return (daf__extent){DAF__VECTOR, part == DAF__POINTERS ? s->columns + 1 : s->nnz, 1};
}

void daf__tell_size(daf__verifier *v, const char *place, uint64_t is, uint64_t wanted, uint64_t at,
                    const char *unit) {
    daf__tell(v, is < wanted ? DAF_PROBLEM_PAYLOAD_SHORT : DAF_PROBLEM_PAYLOAD_LONG, place, at,
              "%" PRIu64 " %s, but %" PRIu64 " are needed", is, unit, wanted);
}

static int verify_lines(subject *s, daf__file *f, const char *place, uint64_t n) {
    daf__texts texts = {0};
    bool whole;
    int rc = daf__verify_lines(s->v, f, place, &n, &texts, &whole);
    s->whole = s->whole && whole;
    daf__texts_free(&texts);
    return rc;
}

/* Values that R cannot hold, piece by piece. */
static int verify_numbers(subject *s, daf__file *f, const char *place, daf_type type,
                          daf__number_check *numbers) {
    enum { PIECE_BYTES = 1 << 20 };
    if (!s->v->options.strict || (type != DAF_UINT32 && type != DAF_UINT64 && type != DAF_INT64))
        return daf__looked_at(s->v, f->size);
    void *raw = malloc(PIECE_BYTES), *piece = malloc(PIECE_BYTES);
    int rc = raw && piece ? 0 : daf__no_memory(s->v->err);
    for (uint64_t at = 0; at < f->size && rc == 0; at += PIECE_BYTES) {
        size_t bytes = f->size - at < PIECE_BYTES ? (size_t)(f->size - at) : PIECE_BYTES;
        daf_error details = {.code = 0};
        size_t n = bytes / daf_type_bytes(type);
        if (f->ops->read(f, raw, bytes, at, &details) != 0) {
            rc = daf__tell_error(s->v, DAF_PROBLEM_UNREADABLE, place, &details);
            break;
        }
        daf__values_copy(piece, type, raw, n);
        daf__check_numbers(numbers, piece, n);
        rc = daf__looked_at(s->v, bytes);
    }
    free(raw);
    free(piece);
    return rc;
}

static int verify_flat(subject *s, daf__part part, daf__file *f, const char *place, uint64_t n,
                       daf__number_check *numbers) {
    const daf__component *c = &s->descriptor.parts[part];
    size_t width = daf_type_bytes(c->type);
    uint64_t bytes;
    if (c->type == DAF_STRING)
        return verify_lines(s, f, place, n);
    if (__builtin_mul_overflow(n, (uint64_t)width, &bytes))
        bytes = UINT64_MAX;
    if (f->size != bytes) {
        s->whole = false;
        daf__tell_size(s->v, place, f->size, bytes, f->size < bytes ? f->size : bytes, "bytes");
    }
    if (f->size != bytes || part != DAF__VALUES)
        return daf__looked_at(s->v, f->size);
    return verify_numbers(s, f, place, c->type, numbers);
}

/* What the descriptor says of the number of elements, against what it must be. */
static bool is_count_right(subject *s, daf__part part, uint64_t n) {
    const daf__component *c = &s->descriptor.parts[part];
    if (!c->counted || c->n_elements == n)
        return true;
    daf__key key = daf__key_with(&s->base, ".json");
    daf__tell(s->v, DAF_PROBLEM_COUNT, key.text, DAF_NO_OFFSET,
              "%s has n_elements %" PRIu64 ", but %" PRIu64 " are needed",
              daf__part_name(s->property->kind, true, part), c->n_elements, n);
    s->whole = false;
    return false;
}

static int verify_part(subject *s, daf__part part) {
    daf__file *f = s->files[part];
    const daf__component *c = &s->descriptor.parts[part];
    daf__number_check numbers = {.type = c->type,
                                 .sparse = s->descriptor.sparse && s->property->kind == DAF__MATRIX};
    uint64_t n;
    if (!f)
        return 0;
    daf__extent x = extent_of(s, part);
    daf__key key = part_key(s, part);
    int rc = 0;
    if (s->descriptor.sparse && !is_count_right(s, part, x.rows))
        return daf__looked_at(s->v, f->size);
    if (__builtin_mul_overflow(x.rows, x.columns, &n))
        n = UINT64_MAX;
    bool whole = true;
    if (c->packed && n)
        rc = daf__verify_shard(s->v, f, key.text, &x, c, part == DAF__VALUES ? &numbers : NULL, &whole);
    else
        rc = verify_flat(s, part, f, key.text, n, &numbers);
    s->whole = s->whole && whole;
    if (numbers.n_wide)
        daf__tell(s->v, DAF_PROBLEM_WIDE_INTEGER, key.text, DAF_NO_OFFSET,
                  "%" PRIu64 " values are more than R can hold", numbers.n_wide);
    return rc;
}

/* ---- sparse rules */

/* What a part holds, to be read on; *good: it could be opened. */
static int open_indices(subject *s, daf__part part, daf__file **ret, bool *good) {
    daf__extent x = extent_of(s, part);
    daf__key key = part_key(s, part);
    daf_error details = {.code = 0};
    if (!s->descriptor.parts[part].present)
        return 0;
    *good =
        daf__component_as_file(ret, s->v->d, s->files[part], &x, &s->descriptor.parts[part], &details) == 0;
    return *good ? 0 : daf__tell_error(s->v, DAF_PROBLEM_UNREADABLE, key.text, &details);
}

static void tell_breach(subject *s, const daf__rule_breach *b) {
    daf__key key = part_key(s, b->part);
    const daf__component *part = &s->descriptor.parts[b->part];
    daf_problem_code code = DAF_PROBLEM_COLPTR;
    if (b->part == DAF__INDICES)
        code = b->index < 1 || b->index > s->rows ? DAF_PROBLEM_INDEX_RANGE : DAF_PROBLEM_INDEX_ORDER;
    daf__tell(s->v, code, key.text, part->packed ? DAF_NO_OFFSET : b->element * daf_type_bytes(part->type),
              "element %" PRIu64 ": %s", b->element + 1, b->text);
}

static int verify_rules(subject *s) {
    daf__file *files[DAF__N_PARTS] = {NULL};
    daf__rule_breach breach;
    const daf__content c = {.kind = s->property->kind,
                            .type = s->descriptor.type,
                            .rows = s->rows,
                            .columns = s->columns,
                            .sparse = true,
                            .index_type = s->descriptor.index_type,
                            .nnz = s->nnz};
    daf_error details = {.code = 0};
    bool good = true, obeys = true;
    int rc = open_indices(s, DAF__POINTERS, &files[DAF__POINTERS], &good);
    if (rc == 0 && good)
        rc = open_indices(s, DAF__INDICES, &files[DAF__INDICES], &good);
    if (rc == 0 && good && daf__content_check(&c, files, &obeys, &breach, &details) != 0)
        rc = daf__tell_error(s->v, DAF_PROBLEM_UNREADABLE, s->base.text, &details);
    else if (rc == 0 && good && !obeys)
        tell_breach(s, &breach);
    daf__file_close(files[DAF__POINTERS]);
    daf__file_close(files[DAF__INDICES]);
    return rc;
}

/* How many values a sparse property stores. */
static void count_stored(subject *s) {
    const daf__component *c = &s->descriptor.parts[DAF__INDICES];
    const daf__file *f = s->files[DAF__INDICES];
    s->nnz = c->counted ? c->n_elements : f ? f->size / daf_type_bytes(c->type) : 0;
}

/* Whether the axes have room for so many; seen before they are read. */
static bool is_stored_right(subject *s) {
    const daf__component *c = &s->descriptor.parts[DAF__INDICES];
    daf__key key = c->counted ? daf__key_with(&s->base, ".json") : part_key(s, DAF__INDICES);
    if (daf__stored_fit(s->nnz, s->rows, s->columns))
        return true;
    s->whole = false;
    daf__tell(s->v, c->counted ? DAF_PROBLEM_COUNT : DAF_PROBLEM_PAYLOAD_LONG, key.text, DAF_NO_OFFSET,
              "%" PRIu64 " stored values, but only %" PRIu64 " x %" PRIu64 " there can be", s->nnz, s->rows,
              s->columns);
    return false;
}

static int verify_payloads(subject *s) {
    daf_error details = {.code = 0};
    if (daf__lengths(s->v->d, s->property, &s->rows, &s->columns, &details) != 0)
        return daf__tell_error(s->v, DAF_PROBLEM_AXIS_UNREADABLE, s->base.text, &details);
    int rc = open_parts(s);
    if (rc == 0 && s->descriptor.sparse) {
        count_stored(s);
        if (!is_stored_right(s))
            return 0;
    }
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        rc = verify_part(s, (daf__part)i);
    if (rc == 0 && s->whole && s->descriptor.sparse)
        rc = verify_rules(s);
    return rc;
}

int daf__verify_described(daf__verifier *v, const daf__property *p, daf__used_suffixes *used) {
    subject s = {.v = v, .property = p, .base = daf__property_key(p)};
    used->known = false;
    int rc = read_descriptor(&s);
    if (rc == 0 && s.whole) {
        verify_reach(&s);
        rc = verify_payloads(&s);
        note_used(&s, used);
    }
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        daf__file_close(s.files[i]);
    return rc;
}
