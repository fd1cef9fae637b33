/* A .photons file, read by libd7. Pages are decoded in windows, so that small batches cost no more than large ones. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "d7/d7.h"
#include "say.h"
#include "stored.h"

enum { PHOTONS_WINDOW = 1 << 17 };

typedef struct photons_window {
    uint8_t *data;
    size_t cap_items;
    uint64_t first; /* holds items [first, first + n) */
    uint64_t n;
    uint64_t length; /* of the dataset */
    size_t item_bytes;
    uint32_t dataset_id;
} photons_window;

typedef struct photons_file {
    d7_reader *reader;
    photons_window windows[SEND_DATASETS_MAX];
    size_t n;
} photons_file;

static void photons_close(void *own) {
    photons_file *f = own;
    for (size_t i = 0; i < f->n; i++)
        free(f->windows[i].data);
    d7_reader_free(f->reader);
}

static int photons_reserve(photons_window *w, size_t items) {
    if (items <= w->cap_items)
        return 0;
    uint8_t *more = realloc(w->data, items * w->item_bytes);
    if (!more)
        return -1;
    w->data = more;
    w->cap_items = items;
    w->n = 0;
    return 0;
}

/* Fills the window. Returns as d7_reader_read(). */
static int photons_load(photons_file *f, photons_window *w, uint64_t from, size_t n, d7_error *err) {
    w->n = 0;
    int rc = d7_reader_read(f->reader, w->dataset_id, from, n, w->data, err);
    if (rc == 0) {
        w->first = from;
        w->n = n;
    }
    return rc;
}

static const void *photons_fetch(void *own, size_t dataset, uint64_t from, size_t n, send_fault *fault) {
    photons_file *f = own;
    photons_window *w = &f->windows[dataset];
    d7_error err;
    if (from >= w->first && from + n <= w->first + w->n)
        return w->data + (from - w->first) * w->item_bytes;
    uint64_t left = w->length > from ? w->length - from : 0;
    size_t ahead = left < PHOTONS_WINDOW ? (size_t)left : PHOTONS_WINDOW;
    if (photons_reserve(w, n > ahead ? n : ahead) != 0) {
        send_refuse(fault, "no memory");
        return NULL;
    }
    if (ahead > n && photons_load(f, w, from, ahead, &err) == 0)
        return w->data;
    if (photons_load(f, w, from, n, &err) == 0) /* what is damaged is beyond it */
        return w->data;
    send_refuse(fault, "%s", err.text);
    return NULL;
}

static int photons_ask(void *own, size_t dataset, uint64_t items, send_fault *fault) {
    photons_file *f = own;
    photons_window *w = &f->windows[dataset];
    d7_problem p;
    if (items < w->length)
        w->length = items;
    for (size_t i = 0; d7_reader_problem(f->reader, i, &p) == 0; i++)
        if (p.severity == D7_DAMAGE && p.dataset_id == w->dataset_id && p.n_items && p.first_item < items)
            return send_refuse(
                fault, "items %llu to %llu of dataset %u are damaged: %s", (unsigned long long)p.first_item,
                (unsigned long long)(p.first_item + p.n_items - 1), (unsigned)p.dataset_id, p.text);
    return 0;
}

static int photons_datasets(send_source *s, photons_file *f, const char *path, uint64_t *lengths,
                            send_fault *fault) {
    size_t n = d7_reader_n_datasets(f->reader);
    for (uint32_t id = 0; id < n; id++) {
        d7_dataset_info info;
        if (d7_reader_dataset(f->reader, id, &info) != 0)
            return send_refuse(fault, "%s: dataset %u cannot be read", path, (unsigned)id);
        if (info.name_bytes != strlen(info.name))
            return send_refuse(fault, "%s: the name of dataset %u holds a NUL", path, (unsigned)id);
        int at = send_add_dataset(s, info.name, (uint32_t)info.type, fault);
        if (at < 0)
            return -1;
        lengths[at] = info.items;
        f->windows[at] =
            (photons_window){.dataset_id = id, .length = info.items, .item_bytes = d7_type_size(info.type)};
        f->n = (size_t)at + 1;
    }
    return n ? 0 : send_refuse(fault, "%s: the file has no datasets", path);
}

/* Those of the recorder that wrote the file are for that recording only. */
static bool photons_is_the_recorders(const char *key) {
    return strncmp(key, "photond.", 8) == 0;
}

/* photond.time_base, but for the moment of the start, which is another one now. One that makes no sense is none. */
static void photons_time_base(send_source *s, const char *text) {
    json_t *o = json_loads(text, 0, NULL);
    json_int_t numerator = json_integer_value(json_object_get(o, "tick_ps_numerator"));
    json_int_t denominator = json_integer_value(json_object_get(o, "tick_ps_denominator"));
    json_int_t bits = json_integer_value(json_object_get(o, "counter_bits"));
    double laser_ps = json_number_value(json_object_get(o, "laser_period_ps"));
    if (numerator > 0 && denominator > 0) {
        s->recorded.tick_ps_numerator = (uint64_t)numerator;
        s->recorded.tick_ps_denominator = (uint64_t)denominator;
        s->recorded.counter_bits = bits > 0 && bits <= 64 ? (uint32_t)bits : 0;
    }
    if (laser_ps > 0 && laser_ps < 1e18)
        s->recorded.laser_period_ps = laser_ps;
    json_decref(o);
}

static int photons_attributes(send_source *s, const photons_file *f, const char *path, send_fault *fault) {
    size_t n = d7_reader_n_attributes(f->reader);
    for (size_t i = 0; i < n; i++) {
        d7_attribute a;
        if (d7_reader_attribute(f->reader, i, &a) != 0)
            return send_refuse(fault, "%s: attribute %zu cannot be read", path, i);
        bool text = a.key_bytes == strlen(a.key) && a.value_bytes == strlen(a.value) &&
                    common_utf8_valid(a.key, a.key_bytes) && common_utf8_valid(a.value, a.value_bytes);
        if (!text || !*a.key)
            send_say("%s: attribute %zu is left out: it is no UTF-8 text", path, i);
        else if (strcmp(a.key, "photond.time_base") == 0)
            photons_time_base(s, a.value);
        else if (!photons_is_the_recorders(a.key) && send_add_attribute(s, a.key, a.value, fault) != 0)
            return -1;
    }
    return 0;
}

/* What the user should know: it is sent as it can be read. */
static void photons_warn(const photons_file *f, const char *path) {
    uint64_t damages = d7_reader_n_damages(f->reader);
    if (d7_reader_state(f->reader) == D7_STATE_OPEN)
        send_say("%s: the file is not closed; what its whole pages hold is sent", path);
    if (damages)
        send_say("%s: the file is damaged (%llu problems, see d7 verify)", path, (unsigned long long)damages);
}

static int photons_open(send_source *s, void *own, const void *arguments, uint64_t *lengths,
                        send_fault *fault) {
    photons_file *f = own;
    const char *path = arguments;
    d7_error err;
    if (d7_reader_open(&f->reader, path, NULL, &err) != 0)
        return send_refuse(fault, "%s", err.text);
    photons_warn(f, path);
    if (photons_datasets(s, f, path, lengths, fault) != 0)
        return -1;
    return photons_attributes(s, f, path, fault);
}

send_source *send_open_photons(const char *path, uint64_t count, send_fault *fault) {
    static const send_stored_kind kind = {sizeof(photons_file), photons_open,   photons_fetch, photons_ask,
                                          photons_close,        PHOTONS_WINDOW, false};
    return send_stored_open(&kind, path, path, count, fault);
}
