/* Writing a vector or matrix: the plan, the steps, both layouts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bands.h"
#include "error.h"
#include "json.h"

/* ---- the plan */

/* An archive cannot have its marker raised. */
static bool is_held_at_1_0(const daf *d) {
    return d->store->append_only && d->major == 1 && d->minor < 1;
}

static bool may_be_packed(const daf *d, const daf__content *c, daf__part part) {
    bool texts = part == DAF__VALUES && c->type == DAF_STRING;
    return !is_held_at_1_0(d) && !(texts && (c->sparse || d->store->append_only));
}

static int plan_part(daf__component *ret, const daf *d, const daf__content *c, daf__part part,
                     const daf_set_options *o, daf_error *err) {
    daf__extent extent = {c->kind, c->rows, c->columns};
    daf__component component = {.present = true, .type = part == DAF__VALUES ? c->type : c->index_type};
    int rc = 0;
    if (c->sparse) {
        extent = (daf__extent){DAF__VECTOR, part == DAF__POINTERS ? c->columns + 1 : c->nnz, 1};
        component.counted = true;
        component.n_elements = extent.rows;
    }
    if (may_be_packed(d, c, part))
        rc = daf__component_choose(&component, &extent, &d->settings, o, err);
    if (rc == 0)
        *ret = component;
    return rc;
}

int daf__property_plan(daf__descriptor *ret, const daf *d, const daf__content *c, const daf_set_options *o,
                       daf_error *err) {
    daf__descriptor plan = {.type = c->type,
                            .sparse = c->sparse,
                            .old_form = c->sparse && is_held_at_1_0(d),
                            .index_type = c->index_type};
    int rc = 0;
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        if (c->data[i] || (i == DAF__VALUES && !c->sparse))
            rc = plan_part(&plan.parts[i], d, c, (daf__part)i, o, err);
    if (rc == 0)
        *ret = plan;
    return rc;
}

/* ---- the steps */

typedef struct staging {
    daf__edit *edit;
    const daf__property *property;
    const daf__content *content;
    const daf__descriptor *descriptor;
    daf__key base;
    char suffixes[DAF__N_PARTS][DAF__SUFFIX_TEXT];
    const char *kept[DAF__N_PARTS + 2]; /* the suffixes of what is written; NULL-terminated */
    unsigned n_parts;
    daf__out *filled[DAF__N_PARTS]; /* payloads that are written already; owned */
} staging;

static staging staging_of(daf__edit *e, const daf__property *p, const daf__content *c,
                          const daf__descriptor *descriptor) {
    return (staging){
        .edit = e, .property = p, .content = c, .descriptor = descriptor, .base = daf__property_key(p)};
}

static void name_parts(staging *s) {
    unsigned n = 0;
    s->kept[n++] = ".json";
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        if (!s->descriptor->parts[i].present)
            continue;
        s->kept[n++] = daf__part_suffix(s->suffixes[i], s->property->kind, s->descriptor, (daf__part)i);
        s->n_parts++;
    }
}

static int stage_payload(staging *s, daf__part part, daf_error *err) {
    const daf__component *c = &s->descriptor->parts[part];
    daf__extent extent = {s->content->kind, s->content->rows, s->content->columns};
    daf__key key = daf__key_with(&s->base, s->suffixes[part]);
    daf__out *out = s->filled[part];
    if (out) {
        s->filled[part] = NULL;
        return daf__change_put(&s->edit->change, key.text, out, err);
    }
    if (s->content->sparse)
        extent =
            (daf__extent){DAF__VECTOR, part == DAF__POINTERS ? s->content->columns + 1 : s->content->nnz, 1};
    int rc = daf__edit_create(s->edit, &out, err);
    if (rc)
        return rc;
    rc = daf__component_write(out, &extent, c, s->content->data[part], s->edit->d, s->base.text, err);
    return daf__edit_put(s->edit, key.text, out, rc, err);
}

static int stage_payloads(staging *s, daf_error *err) {
    static const daf__part order[] = {DAF__POINTERS, DAF__INDICES, DAF__VALUES};
    int rc = 0;
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        if (s->descriptor->parts[order[i]].present)
            rc = stage_payload(s, order[i], err);
    return rc;
}

/* Whether the descriptor that is there has the same bytes, and whether a payload would take the place of an old file. */
static int compare_old(const staging *s, const daf__buf *json, bool *same, bool *in_place, daf_error *err) {
    daf__store *store = s->edit->d->store;
    daf__key json_key = daf__key_with(&s->base, ".json");
    daf__buf old = {0};
    daf_error details;
    int rc = daf__store_read(store, &old, NULL, json_key.text, DAF__MAX_JSON_BYTES, &details);
    if (rc == DAF_ERR_NOMEM || rc == DAF_ERR_IO)
        return daf__pass(err, &details);
    *same = rc == 0 && old.size == json->size && memcmp(old.data, json->data, json->size) == 0;
    daf__buf_free(&old);
    *in_place = false;
    rc = 0;
    for (unsigned i = 1; s->kept[i] && rc == 0 && !*in_place; i++) {
        daf__key key = daf__key_with(&s->base, s->kept[i]);
        rc = daf__store_has(store, in_place, key.text, err);
    }
    return rc;
}

/* What version 1.0 does not know comes after the marker says 1.1. */
static int stage_marker(const staging *s, daf_error *err) {
    static const char marker[] = "{\"version\":[1,1]}\n";
    const daf *d = s->edit->d;
    if (!daf__descriptor_needs_1_1(s->descriptor) || d->major != 1 || d->minor >= 1 || s->edit->raises_minor)
        return 0;
    s->edit->raises_minor = true;
    return daf__edit_put_bytes(s->edit, "daf.json", marker, sizeof marker - 1, err);
}

static int stage_steps(staging *s, bool there, const daf__buf *json, daf_error *err) {
    daf__key json_key = daf__key_with(&s->base, ".json");
    bool same = false, in_place = false;
    int rc = stage_marker(s, err);
    if (rc == 0 && there)
        rc = compare_old(s, json, &same, &in_place, err);
    bool replaces_descriptor = in_place && (!same || s->n_parts > 1);
    if (rc == 0 && replaces_descriptor)
        rc = daf__change_remove(&s->edit->change, json_key.text, err);
    if (rc == 0)
        rc = stage_payloads(s, err);
    if (rc == 0 && (!same || replaces_descriptor))
        rc = daf__edit_put_bytes(s->edit, json_key.text, json->data, json->size, err);
    if (rc == 0 && there)
        rc = daf__edit_remove(s->edit, s->property, s->kept, err);
    if (rc == 0)
        rc = daf__edit_list(s->edit, &s->base, json->data, json->size, err);
    return rc;
}

static int stage(staging *s, bool there, daf_error *err) {
    daf__buf json = {0};
    name_parts(s);
    daf__descriptor_write(&json, s->property->kind, s->descriptor);
    int rc = daf__buf_check(&json, err);
    if (rc == 0)
        rc = stage_steps(s, there, &json, err);
    daf__buf_free(&json);
    return rc;
}

int daf__property_stage(daf__edit *e, const daf__property *p, const daf__content *c,
                        const daf__descriptor *descriptor, bool there, daf_error *err) {
    staging s = staging_of(e, p, c, descriptor);
    return stage(&s, there, err);
}

int daf__property_stage_filled(daf__edit *e, const daf__property *p, const daf__descriptor *descriptor,
                               daf__out *const outs[DAF__N_PARTS], bool there, daf_error *err) {
    const daf__content none = {.kind = p->kind, .type = descriptor->type};
    staging s = staging_of(e, p, &none, descriptor);
    memcpy(s.filled, outs, sizeof s.filled);
    int rc = stage(&s, there, err);
    for (unsigned i = 0; i < DAF__N_PARTS; i++) /* where it did not come so far */
        daf__out_discard(s.filled[i]);
    return rc;
}

/* ---- form and layouts */

static bool all_true(const daf__content *c) {
    const uint8_t *v = c->data[DAF__VALUES];
    for (uint64_t i = 0; v && i < c->nnz; i++)
        if (!v[i])
            return false;
    return true;
}

/* The values of a sparse Bool property are stored only when some are false. */
static void drop_true_values(daf__content *c) {
    if (c->sparse && c->type == DAF_BOOL && all_true(c))
        c->data[DAF__VALUES] = NULL;
}

static bool is_wanted_sparse(const daf *d, const daf__content *c, const daf_set_options *o) {
    daf_form form = o ? o->form : DAF_FORM_AS_GIVEN;
    /* Of a 1.0 Bool property in an archive other readers expect values that the form does not have. */
    if (c->type == DAF_BOOL && is_held_at_1_0(d))
        return false;
    if (form == DAF_FORM_AS_GIVEN)
        return c->sparse;
    if (form == DAF_FORM_SMALLER && !c->sparse)
        return daf__content_is_smaller_sparse(c);
    return form != DAF_FORM_DENSE;
}

/* The content in the form and with the index type that the options ask for. */
static int convert(daf__content *ret, const daf *d, const daf__content *c, const daf_set_options *o,
                   daf_error *err) {
    daf_type type = o ? o->index_type : DAF_BOOL;
    if (is_wanted_sparse(d, c, o))
        return c->sparse ? daf__content_with_index(ret, c, type, err)
                         : daf__content_to_sparse(ret, c, type, err);
    if (c->sparse)
        return daf__content_to_dense(ret, c, err);
    *ret = *c;
    memset(ret->owned, 0, sizeof ret->owned);
    return 0;
}

int daf__property_put(daf__edit *e, const daf__property *p, const daf__content *given,
                      const daf_set_options *o, bool there, daf_error *err) {
    daf__descriptor plan;
    daf__content c;
    int rc = convert(&c, e->d, given, o, err);
    if (rc)
        return rc;
    drop_true_values(&c);
    rc = daf__property_plan(&plan, e->d, &c, o, err);
    if (rc == 0)
        rc = daf__property_stage(e, p, &c, &plan, there, err);
    daf__content_free(&c);
    return rc;
}

int daf__property_stage_other(daf__edit *e, const daf__property *p, const daf__content *c,
                              const daf_set_options *o, daf_error *err) {
    if (!o || p->kind != DAF__MATRIX || strcmp(p->axis, p->columns) == 0 ||
        !(o->overwrite || o->both_layouts))
        return 0;
    daf__property other = daf__other_layout(p);
    daf__content transpose;
    bool there;
    int rc = daf__property_is_free(e->d, &there, &other, o->overwrite, err);
    if (rc == 0 && there && !o->both_layouts)
        return daf__edit_remove(e, &other, NULL, err);
    if (rc || !o->both_layouts)
        return rc;
    if (!c->sparse && daf__bands_suit(o, c->type)) {
        daf__bands bands = {
            .type = c->type, .rows = c->rows, .columns = c->columns, .values = c->data[DAF__VALUES]};
        return daf__bands_stage(e, &other, &bands, o, there, err);
    }
    rc = daf__content_transpose(&transpose, c, e->d->has_executor ? &e->d->executor : NULL, err);
    if (rc)
        return rc;
    rc = daf__property_put(e, &other, &transpose, o, there, err);
    daf__content_free(&transpose);
    return rc;
}

static int check_options(const daf *d, const daf_set_options *o, daf_error *err) {
    if ((unsigned)o->packing > DAF_PACK_LARGE)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no way of packing", (int)o->packing);
    if ((unsigned)o->form > DAF_FORM_SMALLER)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no form", (int)o->form);
    enum { ANY_LEVEL = 1 };
    return daf__check_codec(o->codec != DAF_CODEC_DEFAULT ? o->codec : d->settings.codec,
                            o->level ? o->level : ANY_LEVEL, err);
}

int daf__check_writing(daf *d, const daf__property *p, const daf_set_options *o, daf_error *err) {
    daf__edit e;
    int rc = daf__edit_begin(&e, d, err);
    if (rc == 0)
        rc = daf__check_writable(p, err);
    return rc || !o ? rc : check_options(d, o, err);
}

int daf__property_set(daf *d, const daf__property *p, const daf__content *c, const daf_set_options *o,
                      daf_error *err) {
    daf__edit e;
    bool there;
    int rc = daf__edit_begin(&e, d, err);
    if (rc == 0)
        rc = daf__property_is_free(d, &there, p, o && o->overwrite, err);
    if (rc == 0)
        rc = daf__property_put(&e, p, c, o, there, err);
    if (rc == 0)
        rc = daf__property_stage_other(&e, p, c, o, err);
    return daf__edit_end(&e, rc, err);
}
