/* Opening a file and what is known of it then.
 *
 *   header -> epilogue and global index (reader_closed.c)
 *          or else islands and scan (reader_recover.c)     -> page map (reader_pages.c)
 *
 * Only the header must be good. Whatever else is damaged becomes a problem, and what is whole can be read.
 * The lock is asked for before the size is taken: a writer that ends in between then leaves a note, never a
 * false alarm. */
#include "reader.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "codec.h"
#include "error.h"
#include "reader_pages.h"

void d7_reader_options_init(d7_reader_options *options) {
    *options = (d7_reader_options){0};
}

int d7__reader_no_memory(const d7_reader *r, d7_error *err) {
    return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", r->source.path);
}

/* ---- what entries tell ---- */

bool d7__reader_knows_dataset(d7_reader *r, uint64_t dataset_id, uint64_t offset) {
    if (dataset_id < r->header.n_datasets)
        return true;
    d7_problem p = d7__problem(D7_PROBLEM_UNKNOWN_DATASET, offset,
                               "a page of dataset %" PRIu64 ", but the header lists %zu datasets", dataset_id,
                               r->header.n_datasets);
    d7__problems_add(&r->problems, &p);
    return false;
}

bool d7__reader_page_is_possible(d7_reader *r, uint64_t dataset_id, uint64_t offset) {
    if (!d7__reader_knows_dataset(r, dataset_id, offset))
        return false;
    if (offset >= r->data_start && offset < r->source.size)
        return true;
    d7_problem p = d7__problem(D7_PROBLEM_MISSING_PAGE, offset, "the index lists a page %s",
                               offset < r->data_start ? "inside the header" : "past the end of the file");
    p.dataset_id = (uint32_t)dataset_id;
    d7__problems_add(&r->problems, &p);
    return false;
}

uint64_t d7__reader_page_begin(const d7_reader *r, uint64_t offset) {
    return r->framing.unframed ? offset : d7__frame_begin(offset);
}

/* Do whole entries that were found fill this place? */
static bool is_solid(const d7_reader *r, uint64_t offset) {
    size_t low = 0, high = r->n_solid;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (r->solid[middle].to <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n_solid && r->solid[low].from <= offset;
}

/* A page that an index lists, and that is possible. */
static int take_listed(d7_reader *r, uint32_t ds, uint64_t offset) {
    const d7__reader_dataset *d = &r->datasets[ds];
    if (!d->unsorted && d7__map_has(d, offset))
        return 0;
    if (offset < r->progress.known) {
        r->progress.stale |= !r->unplaced_from || offset < r->unplaced_from;
        return 0;
    }
    if (!d->unsorted && is_solid(r, offset)) {
        d7_problem p =
            d7__problem(D7_PROBLEM_MISSING_PAGE, offset, "an index lists a page where none begins");
        p.dataset_id = ds;
        d7__problems_add(&r->problems, &p);
        return 0;
    }
    /* An index may point at the spare byte before a page. */
    return d7__map_add(r, ds, d7__frame_begin(offset));
}

typedef struct index_taker {
    d7_reader *reader;
    uint64_t offset;
    bool skip_pages;
    bool has_attributes;
    d7__index_seen seen;
} index_taker;

static int take_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    index_taker *t = ctx;
    if (!t->seen.has_pages || offset < t->seen.first_page)
        t->seen.first_page = offset;
    t->seen.has_pages = true;
    t->seen.last_page = offset > t->seen.last_page ? offset : t->seen.last_page;
    if (t->skip_pages)
        return 0;
    offset = d7__reader_page_begin(t->reader, offset);
    if (d7__reader_page_is_possible(t->reader, dataset_id, offset))
        return take_listed(t->reader, (uint32_t)dataset_id, offset);
    t->seen.impossible = true;
    return 0;
}

static int take_attribute(void *ctx, const d7_attribute *a) {
    index_taker *t = ctx;
    d7_reader *r = t->reader;
    if (d7__is_marker(a)) {
        t->seen.has_marker = true;
        return 0;
    }
    if (!common_utf8_valid(a->key, a->key_bytes) || !common_utf8_valid(a->value, a->value_bytes)) {
        d7_problem p =
            d7__problem(D7_PROBLEM_BAD_ATTRIBUTE, t->offset, "attribute \"%.*s\" is not valid UTF-8",
                        a->key_bytes < 100 ? (int)a->key_bytes : 100, a->key);
        d7__problems_add(&r->problems, &p);
    }
    t->has_attributes = true;
    size_t have = d7__attributes_find(&r->attributes, a->key, a->key_bytes);
    if (have != SIZE_MAX && r->attributes.items[have].value_bytes == a->value_bytes &&
        memcmp(r->attributes.items[have].value, a->value, a->value_bytes) == 0)
        return 0;
    r->n_attribute_changes++;
    return d7__attributes_set(&r->attributes, a, NULL);
}

typedef struct own {
    const d7_reader *r;
    uint64_t offset; /* of the index */
    bool any;
} own;

static int own_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    own *o = ctx;
    o->any |= dataset_id < o->r->header.n_datasets && offset >= o->r->data_start && offset < o->offset;
    return 0;
}

bool d7__index_is_foreign(const d7_reader *r, uint64_t offset, d7__cursor body) {
    own o = {.r = r, .offset = offset};
    d7__index_form form = {0};
    const d7__index_sink sink = {.ctx = &o, .form = &form, .page = own_page};
    return (d7__index_read(body, &sink) != 0 || d7__index_is_mute(&form)) && !o.any;
}

int d7__reader_take_index(d7_reader *r, const d7__entry *entry, d7__cursor body, bool skip_pages,
                          d7__index_seen *ret_seen) {
    index_taker taker = {.reader = r, .offset = entry->offset, .skip_pages = skip_pages};
    d7__index_form form = {0};
    d7__index_sink sink = {.ctx = &taker, .form = &form, .page = take_page, .attribute = take_attribute};
    int rc = d7__index_read(body, &sink);
    taker.seen.odd = d7__index_is_odd(&form);
    if (rc == D7_ERR_CORRUPT || d7__index_is_mute(&form)) {
        d7_problem p = d7__problem(D7_PROBLEM_BAD_ENTRY, entry->offset, "an index entry is malformed");
        d7__problems_add(&r->problems, &p);
        taker.seen.malformed = rc == D7_ERR_CORRUPT;
        taker.seen.foreign = d7__index_is_foreign(r, entry->offset, body);
        rc = rc == D7_ERR_CORRUPT ? 0 : rc;
    }
    if (taker.has_attributes && entry->offset > r->progress.last_attributes)
        r->progress.last_attributes = entry->offset;
    *ret_seen = taker.seen;
    return rc;
}

void d7__reader_forget(d7_reader *r) {
    d7__map_clear(r);
    d7__attributes_free(&r->attributes);
}

/* ---- opening ---- */

/* What the first bytes of a file without a good header look like. */
typedef enum look { LOOK_CUT, LOOK_UNFRAMED, LOOK_FOREIGN } look;

/* Blocks of one other writer carry only a length: its first fragment has no begin bit, and the header
 * follows. */
static look look_at_start(d7_reader *r) {
    static const char signature[] = "D7 Photons Data";
    const uint8_t *p;
    size_t n = r->source.size < 64 ? (size_t)r->source.size : 64;
    if (n < 3)
        return LOOK_CUT;
    if (d7__source_get(&r->source, 0, n, &p, NULL) != 0 || p[2] != D7__TAG(D7__KIND_HEADER, D7__BYTES))
        return LOOK_FOREIGN;
    if (bytes_load16(p) & 0x8000)
        return LOOK_CUT;
    return memmem(p, n, signature, sizeof signature - 1) ? LOOK_UNFRAMED : LOOK_FOREIGN;
}

static int no_header(d7_reader *r, d7__found found, const d7__entry *entry, d7_error *err) {
    const char *path = r->source.path;
    look what = look_at_start(r);
    if (what == LOOK_UNFRAMED)
        return d7__fail(
            err, D7_ERR_UNSUPPORTED, 0, 0,
            "%s: unframed: blocks without begin and end bits, as one other writer makes them, are not valid "
            "D7; "
            "they are read when that is asked for (--unframed), and d7 repair makes a valid file of them",
            path);
    if (r->source.size == 0)
        return d7__fail(err, D7_ERR_TRUNCATED, 0, 0, "%s: the file is empty", path);
    if (found == D7__FOUND_TORN && what == LOOK_CUT)
        return d7__fail(err, D7_ERR_TRUNCATED, 0, 0, "%s: the file ends inside its header, at byte %" PRIu64,
                        path, r->source.size);
    return d7__fail(err, D7_ERR_CORRUPT, 0, 0, "%s: no D7 file: %s", path,
                    found == D7__FOUND_BAD ? entry->reason : "it does not begin with a header");
}

static bool is_header(d7__found found, const d7__entry *entry, d7__cursor *ret_body) {
    d7__kind kind;
    return found == D7__FOUND_ENTRY && d7__entry_kind(entry->data, entry->bytes, &kind, ret_body) &&
           kind == D7__KIND_HEADER;
}

static int read_header(d7_reader *r, d7_error *err) {
    d7__found found;
    d7__entry entry;
    d7__cursor body;
    int rc = d7__entry_at(&r->framing, 0, &found, &entry, err);
    if (rc == 0 && !is_header(found, &entry, &body) && r->options.unframed &&
        look_at_start(r) == LOOK_UNFRAMED) {
        r->framing.unframed = true;
        rc = d7__entry_at(&r->framing, 0, &found, &entry, err);
    }
    if (rc != 0)
        return rc;
    if (!is_header(found, &entry, &body))
        return no_header(r, found, &entry, err);
    r->data_start = entry.next;
    rc = d7__header_unpack(&r->alloc, r->source.path, body, &r->header, err);
    return rc != 0 ? rc : d7__map_start(r, err);
}

static void check_names(d7_reader *r) {
    for (size_t i = 0; i < r->header.n_datasets; i++) {
        const d7__toc_item *item = &r->header.datasets[i];
        if (item->name_bytes && common_utf8_valid(item->name, item->name_bytes))
            continue;
        d7_problem p = d7__problem(D7_PROBLEM_BAD_HEADER, 0, "the name of dataset %zu is %s", i,
                                   item->name_bytes ? "not valid UTF-8" : "missing");
        p.dataset_id = (uint32_t)i;
        d7__problems_add(&r->problems, &p);
    }
}

/* The tail before the size, so that what it counts on is in the file. */
int d7__reader_measure(d7_reader *r, d7_error *err) {
    /* A file system without locks tells nothing: then nobody is known to hold the file. */
    if (r->io.held(r->io.ctx, r->source.file, &r->held) < 0)
        r->held = false;
    int rc = d7__tail_look(r, err);
    return rc != 0 ? rc : d7__source_measure(&r->source, err);
}

/* Pages and attributes. */
int d7__reader_learn(d7_reader *r, d7_error *err) {
    bool valid;
    int rc = d7__reader_closed(r, &valid, err);
    if (rc != 0)
        return rc;
    r->state = valid ? D7_STATE_CLOSED : D7_STATE_OPEN;
    check_names(r);
    if (!valid || r->options.recover || r->options.full) {
        d7__reader_forget(r);
        rc = d7__reader_recover(r, err);
    }
    if (valid)
        r->progress = (d7__progress){.covered = r->source.size, .last_entry = r->epilogue};
    if (rc == 0)
        rc = d7__reader_map_pages(r, err);
    if (rc == 0)
        rc = d7__tail_accept(r, err);
    r->seen_bytes = r->source.size;
    r->seen_held = r->held;
    return rc != 0 ? rc : d7__mark_set(r, err);
}

/* ---- making a reader ---- */

void d7__reader_bind(d7_reader *r) {
    r->attributes.alloc = &r->alloc;
    r->problems.alloc = &r->alloc;
    r->tail.attributes.alloc = &r->alloc;
    r->framing.source = &r->source;
    r->source.io = &r->io;
    r->source.alloc = &r->alloc;
}

static d7_reader *new_reader(const d7_reader_options *options, const d7_io *io, const d7_alloc *alloc) {
    d7_reader *r = d7__new(alloc, sizeof *r);
    if (!r)
        return NULL;
    r->alloc = *alloc;
    r->io = *io;
    r->options = *options;
    r->problems.keep = true;
    d7__reader_bind(r);
    if (options->executor) {
        r->executor = *options->executor;
        r->has_executor = true;
        r->n_lanes = options->lanes;
    }
    return r;
}

int d7__reader_open_header(d7_reader **ret_reader, const char *path, const d7_reader_options *options,
                           d7_error *err) {
    if (!path || !*path)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a path is needed");
    d7_reader_options none = {0};
    d7_alloc alloc = d7__alloc_or_default(options ? options->alloc : NULL);
    d7_reader *r =
        new_reader(options ? options : &none, options && options->io ? options->io : d7_io_system(), &alloc);
    if (!r)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    int rc = d7__source_open(&r->source, path, &r->io, &r->alloc, err);
    if (rc == 0)
        rc = d7__reader_measure(r, err);
    if (rc == 0)
        rc = read_header(r, err);
    if (rc != 0) {
        d7_reader_free(r);
        return rc;
    }
    *ret_reader = r;
    return 0;
}

int d7__reader_again(d7_reader **ret_reader, d7_reader *r, d7_error *err) {
    d7_reader *again = new_reader(&r->options, &r->io, &r->alloc);
    if (!again)
        return d7__reader_no_memory(r, err);
    d7__source_borrow(&again->source, &r->source);
    d7__reader_bind(again);
    int rc = d7__reader_measure(again, err);
    if (rc == 0)
        rc = read_header(again, err);
    if (rc != 0) {
        d7_reader_free(again);
        return rc;
    }
    *ret_reader = again;
    return 0;
}

int d7_reader_open(d7_reader **ret_reader, const char *path, const d7_reader_options *options,
                   d7_error *err) {
    d7_reader *r = NULL;
    int rc = d7__reader_open_header(&r, path, options, err);
    if (rc != 0)
        return rc;
    rc = d7__reader_learn(r, err);
    if (rc != 0) {
        d7_reader_free(r);
        return rc;
    }
    *ret_reader = r;
    return 0;
}

void d7_reader_free(d7_reader *r) {
    if (!r)
        return;
    d7_alloc alloc = r->alloc;
    d7__map_free(r);
    d7__release(&alloc, r->page.data);
    d7__lanes_free(r);
    d7__release(&alloc, r->solid);
    d7__release(&alloc, r->holes);
    d7__tail_drop(r);
    d7__header_free(&alloc, &r->header);
    d7__attributes_free(&r->attributes);
    d7__problems_free(&r->problems);
    d7__framing_free(&r->framing);
    d7__source_close(&r->source);
    d7__release(&alloc, r);
}

/* ---- getters ---- */

d7_state d7_reader_state(const d7_reader *r) {
    return r->state;
}

bool d7_reader_unframed(const d7_reader *r) {
    return r->framing.unframed;
}

bool d7_reader_held(const d7_reader *r) {
    return r->held;
}

uint64_t d7_reader_file_bytes(const d7_reader *r) {
    return r->source.size;
}

void d7_reader_version(const d7_reader *r, uint32_t ret_version[3]) {
    memcpy(ret_version, r->header.version, sizeof r->header.version);
}

uint32_t d7_reader_index_step(const d7_reader *r) {
    return r->header.index_step;
}

uint32_t d7_reader_bytes_per_page(const d7_reader *r) {
    return r->header.bytes_per_page;
}

size_t d7_reader_n_datasets(const d7_reader *r) {
    return r->header.n_datasets;
}

int d7_reader_find_dataset(const d7_reader *r, const char *name, uint32_t *ret_dataset_id) {
    size_t place = d7__names_find(&r->header.names, name, strlen(name));
    if (place == SIZE_MAX)
        return D7_ERR_NOTFOUND;
    *ret_dataset_id = (uint32_t)place;
    return 0;
}

/* Those of the tail are newer, and those that the file does not have come last. */
size_t d7_reader_n_attributes(const d7_reader *r) {
    return r->attributes.n + r->tail.n_extra;
}

int d7_reader_attribute(const d7_reader *r, size_t i, d7_attribute *ret_attribute) {
    const d7__attributes *newer = &r->tail.attributes;
    if (i >= d7_reader_n_attributes(r))
        return D7_ERR_ARG;
    if (i >= r->attributes.n) {
        *ret_attribute = newer->items[r->tail.extra[i - r->attributes.n]];
        return 0;
    }
    const d7_attribute *a = &r->attributes.items[i];
    size_t again = d7__attributes_find(newer, a->key, a->key_bytes);
    *ret_attribute = again == SIZE_MAX ? *a : newer->items[again];
    return 0;
}

const char *d7_reader_find_attribute(const d7_reader *r, const char *key) {
    size_t n = strlen(key), i = d7__attributes_find(&r->tail.attributes, key, n);
    if (i != SIZE_MAX)
        return r->tail.attributes.items[i].value;
    i = d7__attributes_find(&r->attributes, key, n);
    return i == SIZE_MAX ? NULL : r->attributes.items[i].value;
}

uint64_t d7_reader_n_problems(const d7_reader *r) {
    return r->problems.total;
}

uint64_t d7_reader_n_damages(const d7_reader *r) {
    return r->problems.by_severity[D7_DAMAGE];
}

int d7_reader_problem(const d7_reader *r, size_t i, d7_problem *ret_problem) {
    if (i >= r->problems.n)
        return D7_ERR_ARG;
    *ret_problem = r->problems.items[i];
    return 0;
}
