#include "transfer_ms.h"

#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

enum { READ_ITEMS = 8192 };

int ms_begin(ms_stream *ret, mover *m, const move_source *source) {
    ms_stream s = {.m = m, .source = source};
    for (size_t i = 0; i < m->n && !s.column; i++)
        if (m->columns[i].set == SET_MS) {
            s.column = &m->columns[i];
            s.dataset_id = source->ids[i];
            s.next = s.first = source->ranges[i].from;
            s.to = source->ranges[i].to;
        }
    if (s.column) {
        s.cap = s.column->page_items + READ_ITEMS;
        s.values = malloc(s.cap * sizeof *s.values);
        if (!s.values)
            return command_fail(m->self, "out of memory");
    }
    *ret = s;
    return 0;
}

void ms_free(ms_stream *s) {
    free(s->values);
    s->values = NULL;
}

static size_t room_of_page(const ms_stream *s) {
    return s->column->page_items - (size_t)(s->column->items % s->column->page_items);
}

/* Milliseconds cannot be left out: those after them would be other times. */
static int fail_read(const ms_stream *s, const d7_error *err) {
    if (err->code != D7_ERR_CORRUPT || !s->source->in->skip_damaged)
        return input_fail(s->source->in, err);
    command_fail(
        s->m->self,
        "%s; without these milliseconds the times of the others would be wrong: leave them all out with "
        "--exclude",
        err->text);
    return CLI_PROBLEMS;
}

static int fill(ms_stream *s, size_t wanted) {
    d7_error err;
    if (s->n >= wanted || s->next >= s->to)
        return 0;
    size_t n = s->cap - s->n;
    if (n > s->to - s->next)
        n = (size_t)(s->to - s->next);
    if (d7_reader_read(s->source->in->reader, s->dataset_id, s->next, n, s->values + s->n, &err) != 0)
        return fail_read(s, &err);
    s->n += n;
    s->next += n;
    return 0;
}

static void take_next(ms_stream *s) {
    uint64_t *value = &s->values[s->ready++];
    uint64_t moved = *value < s->row ? s->out_row : *value - s->row + s->out_row;
    s->changed |= moved != *value;
    *value = moved;
}

static void forget(ms_stream *s, size_t n) {
    memmove(s->values, s->values + n, (s->n - n) * sizeof *s->values);
    s->n -= n;
    s->ready -= n;
    s->first += n;
    s->changed = false;
}

/* Writes n ready items, which end a page or the file. */
static int put(ms_stream *s, size_t n) {
    mover_column *c = s->column;
    bool whole = c->items % c->page_items == 0 && !s->changed && (n == c->page_items || s->source->last) &&
                 mover_finds_page(s->source, s->dataset_id, s->first, n, &c->page);
    int code = 0;
    if (whole) {
        c->waits = true;
        c->source_id = s->dataset_id;
        c->page_from = s->first;
        c->page_n = n;
        c->items += n;
        if (n == c->page_items)
            code = mover_put_page(s->m, s->source, c);
    } else {
        code = mover_append(s->m, c, s->values, n);
    }
    forget(s, n);
    return code;
}

static int write_ready(ms_stream *s, bool all, uint64_t row) {
    for (;;) {
        size_t room = room_of_page(s);
        int code = fill(s, room);
        if (code != 0)
            return code;
        while (s->ready < s->n && s->ready < room && s->first + s->ready < s->to &&
               (all || s->values[s->ready] <= row))
            take_next(s);
        if (s->ready < room)
            return 0;
        code = put(s, room);
        if (code != 0)
            return code;
    }
}

int ms_until(ms_stream *s, uint64_t row) {
    return s->column ? write_ready(s, false, row) : 0;
}

uint64_t ms_stop(const ms_stream *s) {
    size_t room = s->column ? room_of_page(s) : SIZE_MAX;
    return s->n >= room ? s->values[room - 1] : UINT64_MAX;
}

void ms_jump(ms_stream *s, uint64_t row, uint64_t out_row) {
    s->row = row;
    s->out_row = out_row;
}

int ms_end(ms_stream *s) {
    if (!s->column)
        return 0;
    int code = write_ready(s, true, 0);
    return code == 0 && s->ready ? put(s, s->ready) : code;
}
