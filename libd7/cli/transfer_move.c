#include "transfer_move.h"

#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "result.h"
#include "transfer_ms.h"

static const size_t chunk_bytes = 24u << 20; /* of decoded rows, about */

static int write_failed(const mover *m, const d7_error *err) {
    return command_fail(m->self, "%s", err->text);
}

static int no_memory(const mover *m) {
    return command_fail(m->self, "out of memory");
}

/* ---- pages ---- */

int mover_append(mover *m, mover_column *c, const void *values, size_t n) {
    d7_error err;
    c->items += n;
    return d7_writer_append(m->writer, c->id, values, n, &err) != 0 ? write_failed(m, &err) : 0;
}

bool mover_finds_page(const move_source *source, uint32_t dataset_id, uint64_t item, uint64_t n,
                      uint64_t *ret_page) {
    d7_page_info info;
    return n && d7_reader_find_page(source->in->reader, dataset_id, item, ret_page) == 0 &&
           d7_reader_page(source->in->reader, dataset_id, *ret_page, &info) == 0 && info.first_item == item &&
           info.n_items == n && !info.damaged;
}

/* The entry under the column's number, in the form that the writer takes. */
static int relabel(mover *m, const mover_column *c, const uint8_t *entry, size_t bytes, size_t *ret_bytes) {
    if (m->entry_cap < bytes + 64) {
        uint8_t *larger = realloc(m->entry, bytes + 64);
        if (!larger)
            return no_memory(m);
        m->entry = larger;
        m->entry_cap = bytes + 64;
    }
    int rc = d7_page_relabel(entry, bytes, c->id, m->entry, m->entry_cap, ret_bytes);
    return rc == 0 ? 0 : command_fail(m->self, "a page cannot be moved: %s", d7_error_text(rc));
}

int mover_put_page(mover *m, const move_source *source, mover_column *c) {
    const uint8_t *entry;
    size_t bytes;
    d7_error err;
    c->waits = false;
    if (d7_reader_page_entry(source->in->reader, c->source_id, c->page, &entry, &bytes, &err) != 0)
        return input_fail(source->in, &err);
    int rc = c->source_id != c->id
                 ? D7_ERR_ARG
                 : d7_writer_append_page(m->writer, c->id, entry, bytes, (size_t)c->page_n, &err);
    if (rc != D7_ERR_ARG)
        return rc != 0 ? write_failed(m, &err) : 0;
    int code = relabel(m, c, entry, bytes, &bytes);
    if (code == 0 && d7_writer_append_page(m->writer, c->id, m->entry, bytes, (size_t)c->page_n, &err) != 0)
        code = write_failed(m, &err);
    return code;
}

/* ---- rows ---- */

/* Columns that are moved together. */
typedef struct rows {
    mover *m;
    move_source *source;
    column_set set;
    size_t *columns; /* [n] places in m->columns */
    uint32_t *ids;   /* [n] of the source */
    size_t n;
    size_t row_bytes;
    uint64_t row, to; /* of the source: the next, one past the last */
    uint64_t wait_to; /* a page that ends here may be a column's last */
    ms_stream *ms;    /* NULL: none */
} rows;

static mover_column *column_of(const rows *s, size_t i) {
    return &s->m->columns[s->columns[i]];
}

/* Values of a page that was to be moved whole go out after all, because its rows do not stay together. */
static int flush_waiting(rows *s) {
    for (size_t i = 0; i < s->n; i++) {
        mover_column *c = column_of(s, i);
        d7_error err;
        if (!c->waits || (c->page_n < c->page_items && s->row == c->page_from + c->page_n))
            continue;
        size_t n = (size_t)(s->row - c->page_from);
        void *values = malloc(n * c->item_bytes + 1);
        if (!values)
            return no_memory(s->m);
        c->waits = false;
        c->items -= n;
        int code = d7_reader_read(s->source->in->reader, c->source_id, c->page_from, n, values, &err) != 0
                       ? input_fail(s->source->in, &err)
                       : mover_append(s->m, c, values, n);
        free(values);
        if (code != 0)
            return code;
    }
    return 0;
}

/* Does a page begin here that can be moved as it is? */
static void try_to_wait(const rows *s, mover_column *c, uint32_t dataset_id) {
    uint64_t left = s->to - s->row, n = left < c->page_items ? left : c->page_items;
    if (c->items % c->page_items != 0 || (n < c->page_items && !(s->source->last && s->to == s->wait_to)))
        return;
    c->waits = mover_finds_page(s->source, dataset_id, s->row, n, &c->page);
    c->source_id = dataset_id;
    c->page_from = s->row;
    c->page_n = n;
}

static int put_values(rows *s, size_t i, const uint8_t *values, size_t n) {
    mover_column *c = column_of(s, i);
    if (!c->waits)
        try_to_wait(s, c, s->ids[i]);
    if (!c->waits)
        return mover_append(s->m, c, values, n);
    c->items += n;
    bool whole = c->page_n == c->page_items && s->row + n == c->page_from + c->page_n;
    return whole ? mover_put_page(s->m, s->source, c) : 0;
}

/* How many of the next rows, at most n, go to the file before a page is full. */
static size_t step_rows(const rows *s, size_t n) {
    for (size_t i = 0; i < s->n; i++) {
        const mover_column *c = column_of(s, i);
        size_t room = c->page_items - (size_t)(c->items % c->page_items);
        n = n < room ? n : room;
    }
    uint64_t stop = s->ms ? ms_stop(s->ms) : UINT64_MAX;
    return stop > s->row && stop - s->row < n ? (size_t)(stop - s->row) : n;
}

/* The most that the file can need for the next `rows` rows and its end. */
static uint64_t bytes_after(const rows *s, size_t rows_more) {
    const mover *m = s->m;
    uint64_t bytes =
        d7_writer_framed_bytes(m->writer) + d7_writer_index_bytes(m->writer) + 2 * D7_BLOCK_BYTES;
    for (size_t i = 0; i < m->n; i++) {
        const mover_column *c = &m->columns[i];
        size_t items = (size_t)(c->items % c->page_items) + (c->set == s->set ? rows_more : 0);
        for (; items > c->page_items; items -= c->page_items)
            bytes += d7_page_bound(c->type, c->page_items) + 16;
        bytes += d7_page_bound(c->type, items ? items : 1) + 16;
    }
    return bytes;
}

/* May the file end here, and would it grow beyond its limit otherwise? */
static bool is_full(const rows *s) {
    size_t longest = 1;
    if (s->source->max_bytes == 0 || s->set == SET_OWN)
        return false;
    for (size_t i = 0; i < s->n; i++)
        longest = longest < column_of(s, i)->page_items ? column_of(s, i)->page_items : longest;
    if (s->m->rows[s->set] % longest != 0)
        return false;
    return bytes_after(s, longest) > s->source->max_bytes;
}

/* Rows [at, chunk->n) of a chunk. *ret_full: the file has become as large as it may. */
static int put_chunk(rows *s, const d7_chunk *chunk, bool *ret_full) {
    int code = 0;
    for (size_t at = 0; at < chunk->n && code == 0;) {
        if (is_full(s)) {
            *ret_full = true;
            return 0;
        }
        if (s->ms)
            code = ms_until(s->ms, s->row);
        size_t n = step_rows(s, chunk->n - at);
        for (size_t i = 0; i < s->n && code == 0; i++)
            code = put_values(s, i, (const uint8_t *)chunk->values[i] + at * column_of(s, i)->item_bytes, n);
        at += n;
        s->row += n;
        s->m->rows[s->set] += n;
        s->m->done_bytes += n * s->row_bytes;
    }
    cli_progress_update(s->m->bar, s->m->done_bytes);
    return code;
}

static bool add_skipped(rows *s, uint64_t next) {
    move_source *source = s->source;
    size_t n = source->n_skipped, cap = n == 0 ? 1 : n & (n - 1) ? 0 : 2 * n;
    skipped_rows *more = cap ? realloc(source->skipped, cap * sizeof *more) : source->skipped;
    if (!more)
        return false;
    source->skipped = more;
    more[source->n_skipped++] =
        (skipped_rows){s->ids[0], s->set, s->row, next - s->row, source->rows_skipped[s->set]};
    source->rows_skipped[s->set] += next - s->row;
    return true;
}

/* Rows from here to `next` are left out. */
static int skip_rows(rows *s, uint64_t next) {
    if (next == s->row)
        return 0;
    int code = flush_waiting(s);
    if (code == 0 && s->ms)
        code = ms_until(s->ms, s->row);
    if (!add_skipped(s, next))
        return no_memory(s->m);
    s->row = next;
    if (s->ms)
        ms_jump(s->ms, s->row, s->m->rows[s->set]);
    return code;
}

/* Pages of unexpected length make the reader count a dataset anew, which may have fewer items than it seemed. */
static int columns_failed(const rows *s, const d7_error *err) {
    d7_dataset_info info;
    for (size_t i = 0; i < s->n; i++)
        if (d7_reader_dataset(s->source->in->reader, s->ids[i], &info) == 0 && info.items < s->to)
            return MOVE_AGAIN;
    return err->code == D7_ERR_STATE ? MOVE_AGAIN : input_fail(s->source->in, err);
}

static int put_rows(rows *s, d7_columns *columns) {
    bool full = false;
    while (!full) {
        d7_chunk chunk;
        d7_error err;
        if (cli_stopped)
            return command_stopped_code(s->m->self);
        if (d7_columns_next(columns, &chunk, &err) != 0)
            return columns_failed(s, &err);
        int code = skip_rows(s, chunk.n ? chunk.first_item : s->to);
        if (code == 0)
            code = put_chunk(s, &chunk, &full);
        if (code != 0)
            return code;
        if (chunk.n == 0)
            break;
    }
    s->source->end_row = s->row;
    return flush_waiting(s);
}

static int open_rows(rows *s, d7_columns **ret) {
    d7_error err;
    d7_columns_options o;
    d7_columns_options_init(&o);
    o.from = s->row;
    o.to = s->to;
    o.skip_damaged = s->source->in->skip_damaged;
    o.chunk_items = chunk_bytes / s->row_bytes;
    o.chunk_items = o.chunk_items < 1024 ? 1024 : o.chunk_items > 262144 ? 262144 : o.chunk_items;
    return d7_columns_open(ret, s->source->in->reader, s->ids, s->n, &o, &err) != 0 ? columns_failed(s, &err)
                                                                                    : 0;
}

static int move_rows(rows *s) {
    d7_columns *columns;
    if (s->row >= s->to || s->n == 0)
        return 0;
    int code = open_rows(s, &columns);
    if (code != 0)
        return code;
    code = put_rows(s, columns);
    d7_columns_free(columns);
    return code;
}

/* ---- sets ---- */

/* One column, without regard to others. */
static int move_column(mover *m, move_source *source, size_t i, uint64_t from) {
    rows s = {.m = m,
              .source = source,
              .columns = &i,
              .ids = (uint32_t[]){source->ids[i]},
              .n = 1,
              .row_bytes = m->columns[i].item_bytes,
              .row = from,
              .to = source->ranges[i].to,
              .wait_to = source->ranges[i].to};
    return move_rows(&s);
}

/* The columns of a set, as far as all go; *ret_end is there. */
static int move_together(mover *m, move_source *source, rows *s) {
    uint64_t shortest = UINT64_MAX, longest = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (m->columns[i].set != s->set || source->ranges[i].from == source->ranges[i].to)
            continue;
        s->columns[s->n] = i;
        s->ids[s->n++] = source->ids[i];
        s->row_bytes += m->columns[i].item_bytes;
        s->row = source->ranges[i].from;
        shortest = shortest < source->ranges[i].to ? shortest : source->ranges[i].to;
        longest = longest > source->ranges[i].to ? longest : source->ranges[i].to;
    }
    if (s->n == 0)
        return 0;
    s->to = shortest;
    s->wait_to = longest;
    source->end_row = s->row;
    int code = move_rows(s);
    for (size_t i = 0; i < s->n && code == 0 && s->row == s->to; i++)
        code = move_column(m, source, s->columns[i], shortest);
    source->end_row = s->row;
    return code;
}

static int move_set(mover *m, move_source *source, column_set set, ms_stream *ms) {
    rows s = {.m = m, .source = source, .set = set, .ms = ms};
    s.columns = calloc(m->n, sizeof *s.columns);
    s.ids = calloc(m->n, sizeof *s.ids);
    int code = s.columns && s.ids ? move_together(m, source, &s) : no_memory(m);
    if (code == 0 && ms && s.n && s.row < s.to) { /* it stopped before the end */
        uint64_t first;
        code = input_ms_bounds(source->in, s.row, &first, &ms->to);
    }
    free(s.columns);
    free(s.ids);
    return code;
}

static int move_photons(mover *m, move_source *source) {
    ms_stream ms;
    int code = ms_begin(&ms, m, source);
    if (code == 0)
        ms_jump(&ms, source->first_row, m->rows[SET_PHOTONS]);
    if (code == 0)
        code = move_set(m, source, SET_PHOTONS, ms.column ? &ms : NULL);
    if (code == 0)
        code = ms_end(&ms);
    ms_free(&ms);
    return code;
}

/* The last pages in the order of the columns, those that are moved as they are among the others. */
static int end_columns(mover *m, const move_source *source) {
    int code = 0;
    for (size_t i = 0; i < m->n && code == 0; i++) {
        d7_error err;
        if (m->columns[i].waits)
            code = mover_put_page(m, source, &m->columns[i]);
        else if (d7_writer_end_dataset(m->writer, m->columns[i].id, &err) != 0)
            code = write_failed(m, &err);
    }
    return code;
}

int mover_move(mover *m, move_source *source) {
    int code = 0;
    for (size_t i = 0; i < m->n && code == 0; i++)
        if (m->columns[i].set == SET_OWN)
            code = move_column(m, source, i, source->ranges[i].from);
    if (code == 0)
        code = move_set(m, source, SET_TAGS, NULL);
    if (code == 0)
        code = move_photons(m, source);
    return code == 0 && source->last ? end_columns(m, source) : code;
}

int mover_begin(mover *ret, const command *self, d7_writer *w, const d7_dataset *datasets,
                const column_set *sets, size_t n, size_t bytes_per_page, cli_progress *bar) {
    mover m = {.self = self, .writer = w, .n = n, .bar = bar};
    m.columns = calloc(n, sizeof *m.columns);
    if (!m.columns)
        return no_memory(&m);
    for (size_t i = 0; i < n; i++) {
        m.columns[i].id = (uint32_t)i;
        m.columns[i].type = datasets[i].type;
        m.columns[i].set = sets[i];
        m.columns[i].item_bytes = d7_type_size(datasets[i].type);
        m.columns[i].page_items = d7_items_per_page(datasets[i].type, bytes_per_page);
    }
    *ret = m;
    return 0;
}

void mover_free(mover *m) {
    free(m->columns);
    free(m->entry);
    m->columns = NULL;
    m->entry = NULL;
}
