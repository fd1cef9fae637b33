/* Scalars, axes, and files of lines. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "scalar.h"
#include "verify.h"

void daf__verify_form(daf__verifier *v, const char *place, const daf__buf *text, const daf__buf *written) {
    if (text->size != written->size || memcmp(text->data, written->data, text->size) != 0)
        daf__tell(v, DAF_PROBLEM_JSON_FORM, place, DAF_NO_OFFSET, "is not written as writers do: \"%.*s\"",
                  (int)written->size - 1, (const char *)written->data);
}

/* ---- scalars */

/* Whether a Float64 needs more digits than the R implementation keeps. */
static bool has_many_digits(double value) {
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    return strtod(text, NULL) != value;
}

static void verify_value(daf__verifier *v, const char *place, const daf_scalar *s) {
    bool floats = s->type == DAF_FLOAT32 || s->type == DAF_FLOAT64;
    if (floats && !isfinite(s->value.f))
        daf__tell(v, DAF_PROBLEM_NON_FINITE, place, DAF_NO_OFFSET, "is no finite number");
    else if (s->type == DAF_FLOAT64 && has_many_digits(s->value.f))
        daf__tell(v, DAF_PROBLEM_DIGITS, place, DAF_NO_OFFSET, "has more than 15 significant digits");
    else if (s->type == DAF_UINT64 && s->value.u > INT64_MAX)
        daf__tell(v, DAF_PROBLEM_WIDE_INTEGER, place, DAF_NO_OFFSET, "%" PRIu64 " is more than R can hold",
                  s->value.u);
}

int daf__verify_scalar(daf__verifier *v, const daf__property *p) {
    daf__key base = daf__property_key(p), key = daf__key_with(&base, ".json");
    char where[DAF__WHERE_TEXT];
    daf__buf text = {0}, written = {0};
    daf_scalar scalar;
    daf_error details = {.code = 0};
    int rc = daf__store_read(v->d->store, &text, NULL, key.text, DAF__MAX_JSON_BYTES, &details);
    if (rc)
        return daf__tell_error(v, DAF_PROBLEM_UNREADABLE, key.text, &details);
    rc = daf__scalar_parse(&scalar, text.data, text.size, daf__store_where(where, v->d->store, key.text),
                           &details);
    if (rc) {
        json_t *object = NULL;
        bool is_json = daf__json_object(&object, text.data, text.size, where, NULL) == 0;
        json_decref(object);
        rc = daf__tell_error(v, is_json ? DAF_PROBLEM_SCALAR : DAF_PROBLEM_JSON, key.text, &details);
    } else {
        verify_value(v, key.text, &scalar);
        daf__scalar_write(&written, &scalar);
        rc = daf__buf_check(&written, v->err);
        if (rc == 0)
            daf__verify_form(v, key.text, &text, &written);
        daf_scalar_clear(&scalar);
    }
    if (rc == 0)
        rc = daf__looked_at(v, text.size);
    daf__buf_free(&text);
    daf__buf_free(&written);
    return rc;
}

/* ---- texts */

/* Not split then: very many empty entries fit into a small file. */
static bool tell_second_empty(daf__verifier *v, const char *place, const daf__buf *content) {
    const uint8_t *second = daf__texts_second_empty(content);
    if (second)
        daf__tell(v, DAF_PROBLEM_AXIS_DUPLICATE, place, (uint64_t)(second - content->data),
                  "the empty entry stands twice");
    return second != NULL;
}

/* Not split, either: there may be very many more than are needed. */
static bool tell_lines(daf__verifier *v, const char *place, const daf__buf *content, uint64_t wanted) {
    uint64_t n = daf__texts_count(content);
    if (n != wanted)
        daf__tell_size(v, place, n, wanted, content->size, "lines");
    return n != wanted;
}

int daf__verify_lines(daf__verifier *v, daf__file *f, const char *place, const uint64_t *n, daf__texts *ret,
                      bool *whole) {
    daf__buf content = {0};
    daf_error details = {.code = 0};
    *whole = false;
    int rc = daf__file_read_whole(f, &content, UINT64_MAX, &details);
    if (rc)
        return daf__tell_error(v, DAF_PROBLEM_UNREADABLE, place, &details);
    if (content.size && content.data[content.size - 1] != '\n')
        daf__tell(v, DAF_PROBLEM_TEXT_END, place, content.size, "the last line has no line end");
    const uint8_t *cr = content.size ? memchr(content.data, '\r', content.size) : NULL;
    if (cr)
        daf__tell(v, DAF_PROBLEM_TEXT_CR, place, (uint64_t)(cr - content.data), "a carriage return");
    if (n ? tell_lines(v, place, &content, *n) : tell_second_empty(v, place, &content)) {
        daf__buf_free(&content);
        return daf__looked_at(v, f->size);
    }
    rc = daf__texts_split(ret, &content, f->where, &details);
    if (rc)
        return daf__tell_error(v, DAF_PROBLEM_TEXT, place, &details);
    *whole = true;
    return daf__looked_at(v, f->size);
}

static int verify_entries(daf__verifier *v, const char *place, const daf__texts *t) {
    daf__tally empty = {.code = DAF_PROBLEM_AXIS_EMPTY};
    uint64_t twice;
    for (uint64_t i = 0; i < t->n; i++)
        if (t->next[i][0] == 0)
            daf__count(&empty, (uint64_t)(t->next[i] - t->pool), "entry %" PRIu64 " is empty", i + 1);
    daf__tell_tally(v, &empty, place);
    int rc = daf__texts_find_twice(t->next, t->n, &twice, v->err);
    if (rc == 0 && twice < t->n)
        daf__tell(v, DAF_PROBLEM_AXIS_DUPLICATE, place, (uint64_t)(t->next[twice] - t->pool),
                  "entry %" PRIu64 ", \"%.100s\", stands twice", twice + 1, t->next[twice]);
    return rc;
}

int daf__verify_axis(daf__verifier *v, const daf__property *p) {
    daf__key base = daf__property_key(p), key = daf__key_with(&base, ".txt");
    daf_error details = {.code = 0};
    daf__file *f;
    daf__texts texts = {0};
    bool whole;
    if (v->d->store->ops->open(v->d->store, &f, key.text, &details) != 0)
        return daf__tell_error(v, DAF_PROBLEM_UNREADABLE, key.text, &details);
    int rc = daf__verify_lines(v, f, key.text, NULL, &texts, &whole);
    if (rc == 0 && whole)
        rc = verify_entries(v, key.text, &texts);
    daf__texts_free(&texts);
    daf__file_close(f);
    return rc;
}
