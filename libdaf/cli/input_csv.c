/* The CSV form: a heading line, then one line for each entry of the (rows) axis, which begins with the entry. Cells may be
 * quoted; lines may end in CRLF. Each cell is unquoted in its place. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"

typedef struct csv {
    input *in;
    char *p; /* what comes next */
    uint64_t line;
    bool line_ended; /* by the cell that was just taken */
} csv;

/* Ends the cell at the separator behind it, and moves on. */
static bool end_cell(csv *c, char *end, char *text_end) {
    char separator = *end;
    char *next = end + (separator != 0);
    if (separator == '\r' && end[1] == '\n')
        next = end + 2;
    c->line_ended = separator != ',';
    *text_end = 0;
    c->p = next;
    return true;
}

static bool take_quoted(csv *c, char **ret) {
    char *from = c->p + 1, *to = from;
    *ret = from;
    for (; *from && !(*from == '"' && from[1] != '"'); from++) {
        if (*from == '"')
            from++;
        *to++ = *from;
    }
    if (*from != '"' || !strchr(",\r\n", from[1]))
        return false;
    return end_cell(c, from + 1, to);
}

static int take_cell(csv *c, char **ret) {
    if (*c->p == '"') {
        if (take_quoted(c, ret))
            return 0;
        return input_fail(c->in, "line %" PRIu64 ": a quoted cell does not end", c->line);
    }
    *ret = c->p;
    char *end = c->p + strcspn(c->p, ",\r\n");
    end_cell(c, end, end);
    return 0;
}

static const char **grow(const char **names, uint64_t n) {
    if (n & (n - 1)) /* the capacity is the next power of two */
        return names;
    return realloc(names, (size_t)(n ? 2 * n : 1) * sizeof *names);
}

static int add_name(csv *c, const char ***names, uint64_t *n, const char *name) {
    const char **grown = grow(*names, *n);
    if (!grown)
        return input_fail(c->in, "out of memory");
    *names = grown;
    grown[(*n)++] = name;
    return 0;
}

static int take_heading(csv *c) {
    char *cell;
    uint64_t n = 0;
    int rc = take_cell(c, &cell);
    c->in->names[0] = cell;
    while (rc == 0 && !c->line_ended) {
        rc = take_cell(c, &cell);
        if (rc == 0)
            rc = add_name(c, &c->in->column_names, &n, cell);
    }
    c->in->columns = n;
    if (rc == 0 && c->in->rank == 1 && n > 1)
        rc = input_fail(c->in, "%" PRIu64 " columns, but a vector has one behind its entries", n);
    if (rc == 0 && n)
        c->in->names[1] = c->in->column_names[0];
    return rc;
}

static int take_line(csv *c) {
    char *cell;
    input *in = c->in;
    uint64_t n = 0;
    int rc = take_cell(c, &cell);
    if (rc == 0)
        rc = add_name(c, &in->row_names, &in->rows, cell);
    for (; rc == 0 && !c->line_ended; n++) {
        rc = take_cell(c, &cell);
        if (rc == 0)
            rc = input_add(in, cell);
    }
    if (rc == 0 && n != in->columns)
        rc = input_fail(in, "line %" PRIu64 " has %" PRIu64 " cells, the heading has %" PRIu64, c->line,
                        n + 1, in->columns + 1);
    return rc;
}

/* Without a second column the first one is the values: the entries of an axis. */
static int take_entries_as_values(input *in) {
    int rc = 0;
    for (uint64_t i = 0; i < in->rows && rc == 0; i++)
        rc = input_add(in, in->row_names[i]);
    free(in->row_names);
    in->row_names = NULL;
    in->columns = 1;
    return rc;
}

int input_parse_csv(input *in) {
    csv c = {.in = in, .p = in->content, .line = 1};
    int rc = take_heading(&c);
    while (rc == 0 && *c.p) {
        c.line++;
        rc = take_line(&c);
    }
    if (rc == 0 && in->rank == 1 && in->columns == 0)
        rc = take_entries_as_values(in);
    return rc || in->rank < 2 ? rc : input_transpose(in);
}
