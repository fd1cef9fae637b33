/* The repaired file: pages in the order of the old one, as they are wherever nothing of them is taken out and none before
 * them was cut; else their values. Then what only the tail holds. */
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "repair.h"
#include "writer.h"

enum { PIECE_ITEMS = 8192, RELABEL_BYTES = 16 };

typedef struct writing {
    const d7__repair_plan *p;
    d7_writer *w;
    d7__buffer values, mapped, entry;
} writing;

static int no_memory(const writing *x, d7_error *err) {
    return d7__reader_no_memory(x->p->r, err);
}

/* ---- values ---- */

static size_t item_bytes(const writing *x, uint32_t ds) {
    return d7_type_size(x->p->r->header.datasets[ds].type);
}

static int room_for(const writing *x, d7__buffer *b, size_t bytes, d7_error *err) {
    b->n = 0;
    return d7__buffer_reserve(&x->p->r->alloc, b, bytes) != 0 ? no_memory(x, err) : 0;
}

/* Values of ms are indices of photons. */
static void map_ms(const writing *x, const uint64_t *from, uint64_t *to, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = d7__taken_map(&x->p->takens[D7__TAKEN_PHOTONS], from[i]);
}

/* Copies items [from, from + n), all of which are kept. */
static int copy_items(writing *x, uint32_t ds, uint64_t from, size_t n, d7_error *err) {
    size_t bytes = n * item_bytes(x, ds);
    int rc = room_for(x, &x->values, bytes, err);
    if (rc == 0)
        rc = d7__repair_read(x->p, ds, from, n, x->values.data, err);
    if (rc == 0 && ds == x->p->ms)
        map_ms(x, (const uint64_t *)(void *)x->values.data, (uint64_t *)(void *)x->values.data, n);
    return rc == 0 ? d7_writer_append(x->w, ds, x->values.data, n, err) : rc;
}

/* Copies what is kept of items [from, to), a page's or a part of the tail. */
static int copy_kept(writing *x, uint32_t ds, uint64_t from, uint64_t to, d7_error *err) {
    const d7__repair_column *c = &x->p->columns[ds];
    d7__range range;
    int rc = 0;
    while (rc == 0 && d7__taken_kept(&x->p->takens[c->taken], c->limit, from, to, &range)) {
        rc = copy_items(x, ds, range.from, (size_t)(range.to - range.from), err);
        from = range.to;
    }
    return rc;
}

/* ---- whole pages ---- */

/* Can the page go over as it is? A short one only as the dataset's last. */
static bool fits_as_it_is(const writing *x, uint32_t ds, const d7_page_info *page) {
    const d7__repair_column *c = &x->p->columns[ds];
    const d7__writer_dataset *to = &x->w->datasets[ds];
    uint64_t end = page->first_item + page->n_items;
    d7__range kept;
    if (to->n_pending || to->ended || page->n_items > to->items_per_page ||
        !d7__taken_kept(&x->p->takens[c->taken], c->limit, page->first_item, end, &kept) ||
        kept.to - kept.from != page->n_items)
        return false;
    return page->n_items == to->items_per_page || end == c->limit;
}

/* Are the indices of this page of ms the same afterwards? */
static int ms_stays(writing *x, const d7_page_info *page, bool *ret, d7_error *err) {
    size_t n = (size_t)page->n_items, bytes = n * sizeof(uint64_t);
    int rc = room_for(x, &x->values, bytes, err);
    if (rc == 0)
        rc = room_for(x, &x->mapped, bytes, err);
    if (rc == 0)
        rc = d7_reader_read(x->p->r, x->p->ms, page->first_item, n, x->values.data, err);
    if (rc != 0)
        return rc;
    map_ms(x, (const uint64_t *)(void *)x->values.data, (uint64_t *)(void *)x->mapped.data, n);
    *ret = memcmp(x->values.data, x->mapped.data, bytes) == 0;
    return 0;
}

/* Appends the page's own entry; *ret_done: or it has a form that only its values survive. */
static int copy_entry(writing *x, uint32_t ds, uint64_t number, size_t n_items, bool *ret_done,
                      d7_error *err) {
    const uint8_t *entry;
    size_t bytes;
    int rc = d7_reader_page_entry(x->p->r, ds, number, &entry, &bytes, err);
    if (rc == 0)
        rc = room_for(x, &x->entry, bytes + RELABEL_BYTES, err);
    if (rc != 0)
        return rc;
    d7_error failure;
    rc = d7_writer_append_page(x->w, ds, entry, bytes, n_items, &failure);
    if (rc == D7_ERR_ARG && d7_page_relabel(entry, bytes, ds, x->entry.data, x->entry.cap, &x->entry.n) == 0)
        rc = d7_writer_append_page(x->w, ds, x->entry.data, x->entry.n, n_items, &failure);
    *ret_done = rc == 0;
    return d7__passed_on(rc == D7_ERR_ARG ? 0 : rc, &failure, err);
}

/* A lost page of ms: photons of its milliseconds are counted to the one before, so that those after keep their time. */
static int fill_ms(writing *x, uint64_t number, const d7_page_info *page, d7_error *err) {
    const d7__repair_column *c = &x->p->columns[x->p->ms];
    d7_page_info next;
    uint64_t value = 0;
    do {
        if (d7_reader_page(x->p->r, x->p->ms, ++number, &next) != 0)
            return 0;
    } while (next.damaged);
    int rc = d7_reader_read(x->p->r, x->p->ms, next.first_item, 1, &value, err);
    map_ms(x, &value, &value, 1);
    for (uint64_t i = page->first_item; i < page->first_item + page->n_items && i < c->limit && rc == 0; i++)
        rc = d7_writer_append(x->w, x->p->ms, &value, 1, err);
    return rc;
}

static int write_page(writing *x, uint32_t ds, uint64_t number, d7_error *err) {
    const d7__repair_column *c = &x->p->columns[ds];
    d7_page_info page;
    bool as_it_is = false;
    int rc = 0;
    if (d7_reader_page(x->p->r, ds, number, &page) != 0 || page.first_item >= c->limit)
        return 0;
    if (page.damaged)
        return ds == x->p->ms ? fill_ms(x, number, &page, err) : 0;
    if (fits_as_it_is(x, ds, &page)) {
        as_it_is = true;
        if (ds == x->p->ms)
            rc = ms_stays(x, &page, &as_it_is, err);
        if (rc == 0 && as_it_is)
            rc = copy_entry(x, ds, number, (size_t)page.n_items, &as_it_is, err);
    }
    return rc != 0 || as_it_is ? rc : copy_kept(x, ds, page.first_item, page.first_item + page.n_items, err);
}

static int write_pages(writing *x, d7_progress_fn *progress, void *ctx, d7_error *err) {
    const d7_reader *r = x->p->r;
    d7__map_walk walk;
    d7__page_ref page;
    size_t number;
    int rc = d7__map_walk_begin(&walk, r) != 0 ? no_memory(x, err) : 0;
    for (size_t i = 0; rc == 0 && d7__map_walk_next(&walk, &page, &number); i++) {
        rc = write_page(x, page.dataset_id, number, err);
        if (rc == 0 && i % 64 == 0 && progress && progress(ctx, page.offset, r->source.size) != 0)
            rc = d7__fail(err, D7_ERR_CANCELLED, 0, D7_NO_OFFSET, "%s: stopped", r->source.path);
    }
    d7__map_walk_end(&walk);
    return rc;
}

/* What pages do not hold, dataset by dataset. */
static int write_tail(writing *x, d7_error *err) {
    int rc = 0;
    for (uint32_t ds = 0; ds < x->p->r->header.n_datasets && rc == 0; ds++) {
        const d7__repair_column *c = &x->p->columns[ds];
        for (uint64_t at = c->paged; at < c->limit && rc == 0; at += PIECE_ITEMS) {
            uint64_t to = c->limit - at < PIECE_ITEMS ? c->limit : at + PIECE_ITEMS;
            rc = copy_kept(x, ds, at, to, err);
        }
    }
    return rc;
}

/* ---- the file ---- */

/* Attributes go right behind the header: nothing that happens to the new file later takes them. They are handed over
 * with their lengths, since those of other programs may hold a NUL. */
static int write_attributes(writing *x, d7_error *err) {
    d7__attributes all = {.alloc = &x->p->r->alloc};
    int rc = d7__repair_attributes(x->p, &all, err);
    for (size_t i = 0; i < all.n && rc == 0; i++)
        if (d7__writer_keep_attribute(x->w, &all.items[i], D7__ATTRIBUTE_SPAN | D7__ATTRIBUTE_UNLISTED) != 0)
            rc = no_memory(x, err);
    d7__attributes_free(&all);
    return rc == 0 ? d7_writer_put_attributes(x->w, err) : rc;
}

/* A name that is missing or taken gets a '_', and where that is taken too its dataset's number, or the next. */
static char *new_name(const d7_alloc *a, const d7__names *taken, const d7__toc_item *item, size_t number,
                      size_t *ret_bytes) {
    size_t bytes;
    char *name = d7__repair_text(a, item->name, strlen(item->name), &bytes);
    char *longer = name ? a->resize(a->ctx, name, bytes + 24) : NULL;
    if (!longer) {
        d7__release(a, name);
        return NULL;
    }
    *ret_bytes = bytes;
    if (bytes == 0 || d7__names_find(taken, longer, bytes) != SIZE_MAX)
        *ret_bytes = bytes + (size_t)snprintf(longer + bytes, 24, "_");
    for (; d7__names_find(taken, longer, *ret_bytes) != SIZE_MAX; number++)
        *ret_bytes = bytes + (size_t)snprintf(longer + bytes, 24, "_%zu", number);
    return longer;
}

/* Names that a writer takes: those that are missing, twice there or no UTF-8 are changed. */
static int name_datasets(const d7_reader *r, d7__attributes *names, d7_dataset *datasets) {
    for (size_t i = 0; i < r->header.n_datasets; i++) {
        const d7__toc_item *item = &r->header.datasets[i];
        d7_attribute a = {.value = ""};
        char *name = new_name(&r->alloc, &names->keys, item, i, &a.key_bytes);
        a.key = name;
        int rc = name ? d7__attributes_set(names, &a, NULL) : D7_ERR_NOMEM;
        d7__release(&r->alloc, name);
        if (rc != 0)
            return rc;
        datasets[i] = (d7_dataset){.name = names->items[i].key, .type = item->type};
    }
    return 0;
}

static int create(writing *x, const char *path, const d7_repair_options *o, d7_error *err) {
    const d7_reader *r = x->p->r;
    d7__attributes names = {.alloc = &r->alloc};
    d7_dataset *datasets = d7__new(&r->alloc, r->header.n_datasets * sizeof *datasets);
    int rc = datasets ? name_datasets(r, &names, datasets) : D7_ERR_NOMEM;
    d7_writer_options options;
    d7_writer_options_init(&options);
    options.index_step = r->header.index_step;
    options.bytes_per_page =
        d7_writable_page_bytes(datasets, rc == 0 ? r->header.n_datasets : 0, r->header.bytes_per_page);
    options.like = r;
    options.mode = o->mode;
    options.io = o->io;
    options.alloc = o->alloc;
    options.executor = o->executor;
    rc = rc != 0 ? no_memory(x, err)
                 : d7_writer_create(&x->w, path, datasets, r->header.n_datasets, &options, err);
    d7__attributes_free(&names);
    d7__release(&r->alloc, datasets);
    return rc;
}

int d7__repair_write(const d7__repair_plan *p, const char *path, const d7_repair_options *o,
                     d7_progress_fn *progress, void *ctx, d7_error *err) {
    writing x = {.p = p};
    const d7_alloc *a = &p->r->alloc;
    int rc = create(&x, path, o, err);
    bool made = rc == 0;
    if (rc == 0)
        rc = write_attributes(&x, err);
    if (rc == 0)
        rc = write_pages(&x, progress, ctx, err);
    if (rc == 0)
        rc = write_tail(&x, err);
    d7__map_free(p->r); /* an entry of the index that is now made may be large */
    if (rc == 0)
        rc = d7_writer_close(x.w, err);
    d7_writer_free(x.w);
    if (rc != 0 && made && p->r->io.remove)
        p->r->io.remove(p->r->io.ctx, path);
    d7__release(a, x.values.data);
    d7__release(a, x.mapped.data);
    d7__release(a, x.entry.data);
    return rc;
}
