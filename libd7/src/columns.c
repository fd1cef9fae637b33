/* Several datasets row by row.
 *
 * Rows are decoded into a buffer of each column, a run of whole pages at a time, and given out from there
 * in pieces. The page map knows after decoding which pages are damaged, so rows between damaged pages are
 * found in the map and nothing is remembered here. A page of unexpected length changes the map: the rows to
 * come are taken from the new one, unless that says that rows already given had other numbers. */
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "reader.h"

#define NOWHERE UINT64_MAX

enum { CHUNK_ITEMS_DEFAULT = 1 << 18, CHUNK_BYTES_DEFAULT = 32 << 20, ALIGNED_BYTES_MAX = 32 << 20 };

typedef struct column {
    uint32_t dataset_id;
    d7_type type;
    size_t size;       /* of an item */
    size_t page_items; /* of a whole page */
    uint8_t *buffer;   /* [rows_cap] */
    uint64_t
        page_start; /* first item of the page that holds the next row, by the map as it was; NOWHERE: none */
} column;

struct d7_columns {
    d7_reader *reader;
    column *columns; /* [n] */
    d7__want *wants; /* [n] of one reading */
    const void **values;
    size_t n;
    uint64_t at, end; /* the next row, and one past the last */
    bool to_the_end;  /* `end` is where the shortest column ends */
    bool skip_damaged;
    size_t chunk_items;
    size_t rows_cap, align; /* of the buffers; decoded runs end at multiples of `align` */
    uint64_t first;         /* the buffers hold rows [first, first + rows) */
    size_t rows;
    uint64_t skipped;
    bool begun; /* rows were given or left out */
};

void d7_columns_options_init(d7_columns_options *options) {
    *options = (d7_columns_options){.to = UINT64_MAX};
}

/* ---- opening ---- */

static uint64_t column_items(const d7_columns *c, size_t i) {
    d7_dataset_info info = {0};
    int rc = d7_reader_dataset(c->reader, c->columns[i].dataset_id, &info);
    return rc == 0 ? info.items : 0;
}

static uint64_t shortest_column(const d7_columns *c) {
    uint64_t items = UINT64_MAX;
    for (size_t i = 0; i < c->n; i++) {
        uint64_t n = column_items(c, i);
        items = n < items ? n : items;
    }
    return items;
}

static int take_column(d7_columns *c, size_t i, uint32_t dataset_id, d7_error *err) {
    d7_dataset_info info;
    if (d7_reader_dataset(c->reader, dataset_id, &info) != 0)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: there is no dataset %" PRIu32,
                        c->reader->source.path, dataset_id);
    c->columns[i].dataset_id = dataset_id;
    c->columns[i].type = info.type;
    c->columns[i].size = d7_type_size(info.type);
    c->columns[i].page_items = d7_items_per_page(info.type, c->reader->header.bytes_per_page);
    return 0;
}

static int take_range(d7_columns *c, uint64_t from, uint64_t to, d7_error *err) {
    uint64_t items = shortest_column(c);
    c->to_the_end = to == UINT64_MAX;
    c->at = from;
    c->end = c->to_the_end ? items : to;
    c->first = from;
    if (c->at <= c->end && c->end <= items)
        return 0;
    return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET,
                    "%s: the shortest column holds %" PRIu64 " items, asked for %" PRIu64 " to %" PRIu64,
                    c->reader->source.path, items, from, c->end);
}

/* How many rows are decoded at a time: whole pages, unless they would be very large. */
static void choose_rows(d7_columns *c, size_t chunk_items) {
    size_t row_bytes = 0, page = 1;
    for (size_t i = 0; i < c->n; i++) {
        row_bytes += c->columns[i].size;
        page = c->columns[i].page_items > page ? c->columns[i].page_items : page;
    }
    size_t fit = CHUNK_BYTES_DEFAULT / row_bytes;
    fit = fit < 1 ? 1 : fit > CHUNK_ITEMS_DEFAULT ? CHUNK_ITEMS_DEFAULT : fit;
    c->chunk_items = chunk_items ? chunk_items : fit;
    c->rows_cap = c->chunk_items;
    c->align = 1;
    size_t pages = c->chunk_items / page + (c->chunk_items % page != 0);
    if (pages <= ALIGNED_BYTES_MAX / page / row_bytes || c->chunk_items % page == 0) {
        c->rows_cap = pages * page;
        c->align = page;
    }
    if (!c->to_the_end && c->rows_cap > c->end - c->at)
        c->rows_cap = (size_t)(c->end - c->at);
}

static int make_buffers(d7_columns *c, d7_error *err) {
    const d7_alloc *a = &c->reader->alloc;
    for (size_t i = 0; i < c->n; i++) {
        if (c->rows_cap > SIZE_MAX / c->columns[i].size)
            return d7__reader_no_memory(c->reader, err);
        c->columns[i].buffer = a->resize(a->ctx, NULL, c->rows_cap * c->columns[i].size + 1);
        if (!c->columns[i].buffer)
            return d7__reader_no_memory(c->reader, err);
    }
    return 0;
}

static int columns_prepare(d7_columns *c, const uint32_t *dataset_ids, const d7_columns_options *o,
                           d7_error *err) {
    const d7_alloc *a = &c->reader->alloc;
    c->columns = d7__new(a, c->n * sizeof *c->columns);
    c->wants = d7__new(a, c->n * sizeof *c->wants);
    c->values = d7__new(a, c->n * sizeof *c->values);
    if (!c->columns || !c->wants || !c->values)
        return d7__reader_no_memory(c->reader, err);
    int rc = 0;
    for (size_t i = 0; i < c->n && rc == 0; i++)
        rc = take_column(c, i, dataset_ids[i], err);
    if (rc == 0)
        rc = take_range(c, o->from, o->to, err);
    if (rc != 0)
        return rc;
    c->skip_damaged = o->skip_damaged;
    choose_rows(c, o->chunk_items);
    return make_buffers(c, err);
}

int d7_columns_open(d7_columns **ret_columns, d7_reader *r, const uint32_t *dataset_ids, size_t n,
                    const d7_columns_options *options, d7_error *err) {
    d7_columns_options defaults;
    d7_columns_options_init(&defaults);
    if (!dataset_ids || n == 0 || n > SIZE_MAX / sizeof(column))
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: columns are needed", r->source.path);
    d7_columns *c = d7__new(&r->alloc, sizeof *c);
    if (!c)
        return d7__reader_no_memory(r, err);
    c->reader = r;
    c->n = n;
    int rc = columns_prepare(c, dataset_ids, options ? options : &defaults, err);
    if (rc != 0) {
        d7_columns_free(c);
        return rc;
    }
    *ret_columns = c;
    return 0;
}

void d7_columns_free(d7_columns *c) {
    if (!c)
        return;
    const d7_alloc *a = &c->reader->alloc;
    for (size_t i = 0; c->columns && i < c->n; i++)
        d7__release(a, c->columns[i].buffer);
    d7__release(a, c->columns);
    d7__release(a, c->wants);
    d7__release(a, c->values);
    d7__release(a, c);
}

/* ---- the page map ---- */

/* The page that holds a row of a column. Returns false where none does: it is in the tail, or past the end. */
static bool page_at(const d7_columns *c, size_t i, uint64_t row, uint64_t *ret_page, d7_page_info *ret_info) {
    uint32_t ds = c->columns[i].dataset_id;
    return d7_reader_find_page(c->reader, ds, row, ret_page) == 0 &&
           d7_reader_page(c->reader, ds, *ret_page, ret_info) == 0;
}

static uint64_t page_start(const d7_columns *c, size_t i, uint64_t row) {
    uint64_t page;
    d7_page_info info;
    return page_at(c, i, row, &page, &info) ? info.first_item : NOWHERE;
}

/* Goes on to a row. */
static void go_to(d7_columns *c, uint64_t row) {
    c->begun = c->begun || row > c->at;
    c->at = row;
    for (size_t i = 0; i < c->n; i++)
        c->columns[i].page_start = page_start(c, i, row);
}

static int map_error(const d7_columns *c, size_t i, const char *what, d7_error *err) {
    return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET,
                    "%s: %s: rows of column %zu have other numbers than was thought, begin anew",
                    c->reader->source.path, what, i);
}

/* The map may have changed: is it still true of the rows given so far? Pages before the first row may turn
 * out to be shorter or longer; and a refresh may find that the file was cut. */
static int check_map(d7_columns *c, d7_error *err) {
    for (size_t i = 0; i < c->n; i++) {
        const column *o = &c->columns[i];
        d7_dataset_info info;
        if (d7_reader_dataset(c->reader, o->dataset_id, &info) != 0 || info.type != o->type)
            return map_error(c, i, "the file holds other datasets now", err);
        uint64_t start = page_start(c, i, c->at);
        if (c->begun && start != o->page_start && start != NOWHERE && o->page_start != NOWHERE)
            return map_error(c, i, "pages before the first row do not hold what they should", err);
    }
    uint64_t items = shortest_column(c);
    if (c->to_the_end && (items >= c->at || !c->begun))
        c->end = items > c->at ? items : c->at;
    if (c->end <= items || (c->at == c->end && !c->begun))
        return 0;
    return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET,
                    "%s: the shortest column holds %" PRIu64 " items, not %" PRIu64
                    " as was thought; begin anew",
                    c->reader->source.path, items, c->end);
}

/* ---- filling the buffers ---- */

static size_t rows_to_read(const d7_columns *c) {
    uint64_t left = c->end - c->at;
    if (left <= c->rows_cap)
        return (size_t)left;
    uint64_t stop = c->at + c->rows_cap;
    stop = stop - stop % c->align > c->at ? stop - stop % c->align : stop;
    return (size_t)(stop - c->at);
}

static int read_rows(d7_columns *c, size_t rows, bool *ret_recounted, d7_error *err) {
    for (size_t i = 0; i < c->n; i++) {
        const column *o = &c->columns[i];
        c->wants[i] = (d7__want){.dataset_id = o->dataset_id, .from = c->at, .n = rows, .out = o->buffer};
    }
    return d7__reader_read_wants(c->reader, c->wants, c->n, ret_recounted, err);
}

/* Damage is in the map afterwards, and no failure here. */
static int fill(d7_columns *c, d7_error *err) {
    c->rows = 0;
    for (size_t tries = 0; c->at < c->end; tries++) {
        if (tries > c->n)
            return d7__reader_pages_change(c->reader, err);
        bool recounted = false;
        size_t rows = rows_to_read(c);
        d7_error failure;
        int rc = read_rows(c, rows, &recounted, &failure);
        if (recounted && rc == 0) {
            rc = check_map(c, err);
            if (rc != 0)
                return rc;
            continue;
        }
        if (rc != 0 && rc != D7_ERR_CORRUPT)
            return d7__passed_on(rc, &failure, err);
        c->first = c->at;
        c->rows = rows;
        return 0;
    }
    return 0;
}

/* ---- giving rows ---- */

/* Where the damage ends that keeps the next row from being given, and in which column it is; 0: there is
 * none. */
static uint64_t damage_end(const d7_columns *c, size_t *ret_column) {
    uint64_t end = 0;
    for (size_t i = 0; i < c->n; i++) {
        uint64_t page;
        d7_page_info info;
        if (page_at(c, i, c->at, &page, &info) && info.damaged && info.first_item + info.n_items > end) {
            end = info.first_item + info.n_items;
            *ret_column = i;
        }
    }
    return end;
}

/* The first row in (at, stop] that a damaged page held, or stop. */
static uint64_t next_damage(const d7_columns *c, uint64_t stop) {
    for (size_t i = 0; i < c->n; i++) {
        uint64_t page;
        d7_page_info info;
        if (!c->reader->datasets[c->columns[i].dataset_id].marked || !page_at(c, i, c->at, &page, &info))
            continue;
        while (d7_reader_page(c->reader, c->columns[i].dataset_id, page++, &info) == 0 &&
               info.first_item < stop)
            if (info.damaged)
                stop = info.first_item;
    }
    return stop;
}

static void give(d7_columns *c, uint64_t stop, d7_chunk *ret_chunk) {
    for (size_t i = 0; i < c->n; i++)
        c->values[i] = c->columns[i].buffer + (size_t)(c->at - c->first) * c->columns[i].size;
    *ret_chunk = (d7_chunk){.first_item = c->at, .n = (size_t)(stop - c->at), .values = c->values};
    go_to(c, stop);
}

static int say_damage(d7_columns *c, size_t i, d7_error *err) {
    uint64_t value;
    return d7_reader_read(c->reader, c->columns[i].dataset_id, c->at, 1, &value, err);
}

int d7_columns_next(d7_columns *c, d7_chunk *ret_chunk, d7_error *err) {
    int rc = check_map(c, err);
    if (rc != 0)
        return rc;
    while (c->at < c->end) {
        if (c->at >= c->first + c->rows) {
            rc = fill(c, err);
            if (rc != 0)
                return rc;
            continue;
        }
        size_t damaged = 0;
        uint64_t bad = damage_end(c, &damaged);
        if (bad && !c->skip_damaged)
            return say_damage(c, damaged, err);
        if (bad) {
            bad = bad < c->end ? bad : c->end;
            c->skipped += bad - c->at;
            go_to(c, bad);
            continue;
        }
        uint64_t stop = c->first + c->rows;
        stop = stop - c->at > c->chunk_items ? c->at + c->chunk_items : stop;
        give(c, next_damage(c, stop), ret_chunk);
        return 0;
    }
    give(c, c->at, ret_chunk);
    return 0;
}

uint64_t d7_columns_skipped(const d7_columns *c) {
    return c->skipped;
}
