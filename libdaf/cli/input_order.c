/* The entries of a CSV and those of the axes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "name_index.h"

/* places[i]: the entry of the axis that name i of the input is. */
static int find_places(const input *in, const char *axis, const daf_array *entries, const char *const *names,
                       uint64_t n, uint64_t *places) {
    if (daf_array_count(entries) != n)
        return input_fail(in, "%" PRIu64 " entries of axis \"%s\", but it has %" PRIu64, n, axis,
                          daf_array_count(entries));
    name_index *x = name_index_new(entries);
    int rc = x ? 0 : input_fail(in, "out of memory");
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        places[i] = name_index_find(x, names[i]);
        if (places[i] == NO_INDEX)
            rc = input_fail(in, "\"%.100s\" is no entry of axis \"%s\"", names[i], axis);
    }
    name_index_free(x);
    return rc;
}

/* Each place once, since there are as many names as entries. */
static int check_places(const input *in, const uint64_t *places, uint64_t n, const char *const *names) {
    uint8_t *seen = calloc((size_t)n + 1, 1);
    int rc = seen ? 0 : input_fail(in, "out of memory");
    for (uint64_t i = 0; i < n && rc == 0; i++)
        if (seen[places[i]]++)
            rc = input_fail(in, "\"%.100s\" stands twice", names[i]);
    free(seen);
    return rc;
}

static int place_names(const input *in, const char *axis, const daf_array *entries, const char *const *names,
                       uint64_t n, uint64_t *places) {
    int rc = find_places(in, axis, entries, names, n, places);
    return rc ? rc : check_places(in, places, n, names);
}

static int move_values(input *in, const uint64_t *row_places, const uint64_t *column_places) {
    size_t width;
    uint8_t *to;
    const uint8_t *from = input_begin_moving(in, &to, &width);
    if (!from)
        return -1;
    for (uint64_t c = 0; c < in->columns; c++)
        for (uint64_t k = 0; k < in->rows; k++)
            memcpy(to + ((column_places ? column_places[c] : c) * in->rows + row_places[k]) * width,
                   from + (c * in->rows + k) * width, width);
    input_end_moving(in, to);
    return 0;
}

int input_order(input *in, daf *d, const target *t) {
    daf_array *rows = NULL, *columns = NULL;
    daf_error err;
    if (!in->row_names)
        return CLI_OK;
    int rc = daf_get_axis(d, &rows, t->axis, &err);
    if (rc == 0 && t->kind == TARGET_MATRIX)
        rc = daf_get_axis(d, &columns, t->columns, &err);
    int code = rc ? command_fail(in->self, &err) : CLI_OK;
    uint64_t *row_places = malloc((size_t)(in->rows + 1) * sizeof *row_places);
    uint64_t *column_places = malloc((size_t)(in->columns + 1) * sizeof *column_places);
    if (code == CLI_OK && (!row_places || !column_places))
        code = cli_fail(in->self, "out of memory");
    if (code == CLI_OK && place_names(in, t->axis, rows, in->row_names, in->rows, row_places) != 0)
        code = CLI_USAGE;
    if (code == CLI_OK && columns &&
        place_names(in, t->columns, columns, in->column_names, in->columns, column_places) != 0)
        code = CLI_USAGE;
    if (code == CLI_OK && move_values(in, row_places, columns ? column_places : NULL) != 0)
        code = CLI_USAGE;
    free(row_places);
    free(column_places);
    daf_array_free(rows);
    daf_array_free(columns);
    return code;
}
