/* Which rows or columns of a property are wanted. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "name_index.h"
#include "source.h"

void selection_free(selection *s) {
    free(s->runs);
}

/* An index from the text up to `end`; of an empty text `otherwise`. */
static bool parse_index(const char *text, size_t bytes, uint64_t otherwise, uint64_t *ret) {
    char digits[24];
    if (bytes == 0) {
        *ret = otherwise;
        return true;
    }
    if (bytes >= sizeof digits)
        return false;
    memcpy(digits, text, bytes);
    digits[bytes] = 0;
    return parse_number(ret, DAF_UINT64, digits) == 0;
}

static int select_range(const cli_command *self, uint64_t length, const selecting *how, selection *s) {
    const char *colon = strchr(how->range, ':');
    uint64_t first = 0, end = 0;
    bool right;
    if (colon) {
        right = parse_index(how->range, (size_t)(colon - how->range), 0, &first) &&
                parse_index(colon + 1, strlen(colon + 1), length, &end);
    } else {
        right = *how->range && parse_index(how->range, strlen(how->range), 0, &first) && first < length;
        end = first + 1;
    }
    if (!right || first > end || end > length)
        return cli_fail(self, "--%s: \"%s\" is no range FIRST:END within %" PRIu64 " entries", how->option,
                        how->range, length);
    s->runs[0] = (run){first, end - first};
    s->n_runs = end > first;
    s->n = end - first;
    return CLI_OK;
}

static int select_names(const cli_command *self, daf *d, const char *axis, const selecting *how,
                        selection *s) {
    daf_error err;
    daf_array *entries;
    int code = CLI_OK;
    if (daf_get_axis(d, &entries, axis, &err) != 0)
        return command_fail(self, &err);
    name_index *x = name_index_new(entries);
    if (!x)
        code = cli_fail(self, "out of memory");
    for (size_t i = 0; i < how->n_names && code == CLI_OK; i++) {
        uint64_t at = name_index_find(x, how->names[i]);
        run *last = s->n_runs ? &s->runs[s->n_runs - 1] : NULL;
        if (at == NO_INDEX)
            code = cli_fail(self, "axis \"%s\" has no entry \"%s\"", axis, how->names[i]);
        else if (last && last->first + last->n == at)
            last->n++;
        else
            s->runs[s->n_runs++] = (run){at, 1};
        s->n++;
    }
    name_index_free(x);
    daf_array_free(entries);
    return code;
}

int select_entries(const cli_command *self, daf *d, const char *axis, uint64_t length, const selecting *how,
                   selection *ret) {
    selection s = {.runs = malloc((how->n_names + 1) * sizeof *s.runs)};
    int code = CLI_OK;
    if (!s.runs)
        return cli_fail(self, "out of memory");
    if (how->range && how->n_names) {
        code = cli_misused(self, "--%s goes without the names of entries", how->option);
    } else if (how->range) {
        code = select_range(self, length, how, &s);
    } else if (how->n_names) {
        code = select_names(self, d, axis, how, &s);
    } else {
        s.runs[0] = (run){0, length};
        s.n_runs = length > 0;
        s.n = length;
    }
    if (code)
        selection_free(&s);
    else
        *ret = s;
    return code;
}
