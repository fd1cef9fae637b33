#include "input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "cli/npy.h"

int input_fail(const input *in, const char *format, ...) {
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    cli_fail(in->self, "%s: %s", strcmp(in->path, "-") == 0 ? "standard input" : in->path,
             n < 0 ? "out of memory" : text);
    if (n >= 0)
        free(text);
    return -1;
}

void input_free(input *in) {
    free(in->content);
    free(in->numbers);
    free(in->texts);
    free(in->pool);
    free(in->row_names);
    free(in->column_names);
    free((void *)(uintptr_t)in->csc.colptr);
    free((void *)(uintptr_t)in->csc.indices);
    free((void *)(uintptr_t)in->csc.values);
}

/* ---- the file */

static int read_stream(input *in, FILE *f) {
    size_t capacity = 0, n;
    do {
        if (capacity - in->bytes < 2) {
            capacity = capacity ? 2 * capacity : 1 << 16;
            char *grown = realloc(in->content, capacity);
            if (!grown)
                return input_fail(in, "out of memory");
            in->content = grown;
        }
        n = fread(in->content + in->bytes, 1, capacity - in->bytes - 1, f);
        in->bytes += n;
    } while (n > 0);
    if (ferror(f))
        return input_fail(in, "%s", strerror(errno));
    in->content[in->bytes] = 0;
    return 0;
}

static int read_content(input *in) {
    if (strcmp(in->path, "-") == 0)
        return read_stream(in, stdin);
    FILE *f = fopen(in->path, "rb");
    if (!f)
        return input_fail(in, "%s", strerror(errno));
    int rc = read_stream(in, f);
    fclose(f);
    return rc;
}

/* ---- elements */

static int reserve(input *in, size_t n) {
    size_t width = in->type == DAF_STRING ? sizeof *in->texts : daf_type_bytes(in->type);
    if (n <= in->capacity && (in->numbers || in->texts))
        return 0;
    size_t capacity = in->capacity ? in->capacity : 1024;
    while (capacity < n)
        capacity *= 2;
    void *old = in->type == DAF_STRING ? (void *)in->texts : in->numbers;
    void *grown = realloc(old, capacity * width);
    if (!grown)
        return input_fail(in, "out of memory");
    in->capacity = capacity;
    if (in->type == DAF_STRING)
        in->texts = grown;
    else
        in->numbers = grown;
    return 0;
}

int input_add(input *in, const char *text) {
    if (reserve(in, (size_t)in->n + 1) != 0)
        return -1;
    if (in->type == DAF_STRING) {
        in->texts[in->n++] = text;
        return 0;
    }
    uint8_t *to = (uint8_t *)in->numbers + in->n * daf_type_bytes(in->type);
    if (parse_number(to, in->type, text) != 0)
        return input_fail(in, "element %" PRIu64 ", \"%.60s\", is no %s", in->n + 1, text,
                          daf_type_name(in->type));
    in->n++;
    return 0;
}

const uint8_t *input_begin_moving(const input *in, uint8_t **to, size_t *width) {
    *width = in->type == DAF_STRING ? sizeof *in->texts : daf_type_bytes(in->type);
    *to = malloc((size_t)in->n * *width + 1);
    if (!*to) {
        input_fail(in, "out of memory");
        return NULL;
    }
    if (in->n == 0)
        return *to;
    return in->type == DAF_STRING ? (const void *)in->texts : in->numbers;
}

void input_end_moving(input *in, uint8_t *to) {
    if (in->type == DAF_STRING) {
        free(in->texts);
        in->texts = (const char **)(void *)to;
    } else {
        free(in->numbers);
        in->numbers = to;
    }
}

int input_transpose(input *in) {
    size_t width;
    uint8_t *to;
    const uint8_t *from = input_begin_moving(in, &to, &width);
    if (!from)
        return -1;
    for (uint64_t r = 0; r < in->rows; r++)
        for (uint64_t c = 0; c < in->columns; c++)
            memcpy(to + (c * in->rows + r) * width, from + (r * in->columns + c) * width, width);
    input_end_moving(in, to);
    return 0;
}

/* ---- text */

/* Ends the line at *p with a NUL and moves on; NULL behind the last. */
static char *take_line(char **p, char *end) {
    if (*p >= end)
        return NULL;
    char *line = *p, *lf = memchr(line, '\n', (size_t)(end - line));
    *p = lf ? lf + 1 : end;
    *(lf ? lf : end) = 0;
    return line;
}

static int parse_list(input *in) {
    char *p = in->content, *end = p + in->bytes;
    for (char *line; (line = take_line(&p, end));)
        if (input_add(in, line) != 0)
            return -1;
    in->rows = in->n;
    in->columns = 1;
    return 0;
}

/* Numbers are separated by tabs or blanks, texts by single tabs. */
static int parse_row(input *in, char *line) {
    const char *separators = in->type == DAF_STRING ? "\t" : " \t";
    char *p = line;
    for (;;) {
        if (in->type != DAF_STRING)
            p += strspn(p, separators);
        if (in->type != DAF_STRING && !*p)
            return 0;
        char *end = p + strcspn(p, separators), separator = *end;
        *end = 0;
        if (input_add(in, p) != 0)
            return -1;
        if (!separator)
            return 0;
        p = end + 1;
    }
}

static int parse_table(input *in) {
    char *p = in->content, *end = p + in->bytes;
    for (char *line; (line = take_line(&p, end)); in->rows++) {
        uint64_t before = in->n;
        if (parse_row(in, line) != 0)
            return -1;
        if (in->rows == 0)
            in->columns = in->n;
        if (in->n - before != in->columns)
            return input_fail(in, "row %" PRIu64 " has %" PRIu64 " values, the first has %" PRIu64,
                              in->rows + 1, in->n - before, in->columns);
    }
    return input_transpose(in);
}

/* Everything below takes texts as NUL-terminated. */
static int refuse_nul(const input *in) {
    return strlen(in->content) == in->bytes ? 0 : input_fail(in, "holds a NUL, which no text can");
}

static int parse_text(input *in) {
    if (refuse_nul(in) != 0)
        return -1;
    if (in->rank == 1)
        return parse_list(in);
    if (in->rank == 2)
        return parse_table(in);
    if (in->bytes > 0 && in->content[in->bytes - 1] == '\n')
        in->content[--in->bytes] = 0;
    return input_add(in, in->content);
}

/* ---- raw and npy */

static int copy_numbers(input *in, const char *from, uint64_t n, bool big_endian) {
    size_t width = daf_type_bytes(in->type);
    if (reserve(in, (size_t)n) != 0)
        return -1;
    bool swap = big_endian == (BYTES_HOST_IS_LITTLE != 0);
    uint8_t *to = in->numbers;
    for (uint64_t i = 0; i < n; i++)
        for (size_t b = 0; b < width; b++)
            to[i * width + b] = (uint8_t)from[i * width + (swap ? width - 1 - b : b)];
    in->n = n;
    return 0;
}

/* The shape of raw data is that of the axes: rows stays the number of elements. */
static int parse_raw(input *in) {
    if (in->type == DAF_STRING && refuse_nul(in) != 0)
        return -1;
    if (in->type == DAF_STRING)
        return in->rank ? parse_list(in) : input_add(in, in->content);
    size_t width = daf_type_bytes(in->type);
    if (in->bytes % width)
        return input_fail(in, "%zu bytes are no whole number of %s values", in->bytes,
                          daf_type_name(in->type));
    in->rows = in->bytes / width;
    in->columns = 1;
    return copy_numbers(in, in->content, in->rows, false);
}

int input_npy_type(const cli_npy_array *a, daf_type *ret) {
    for (int t = 0; t < DAF_STRING; t++) {
        if (type_letter((daf_type)t) == a->kind && daf_type_bytes((daf_type)t) == a->item_bytes) {
            *ret = (daf_type)t;
            return 0;
        }
    }
    return -1;
}

static int parse_npy(input *in) {
    cli_npy_array a;
    daf_type type;
    if (cli_npy_parse(&a, (const uint8_t *)in->content, in->bytes) != 0 || input_npy_type(&a, &type) != 0)
        return input_fail(in, "no NumPy array of numbers with at most two dimensions");
    if (in->typed && type != in->type)
        return input_fail(in, "holds %s, not %s", daf_type_name(type), daf_type_name(in->type));
    if (a.rank != in->rank)
        return input_fail(in, "has %zu dimensions, not %zu", a.rank, in->rank);
    in->type = type;
    in->rows = a.rank > 0 ? a.shape[0] : 1;
    in->columns = a.rank > 1 ? a.shape[1] : 1;
    uint64_t n, bytes, here = in->bytes - a.data_offset;
    if (__builtin_mul_overflow(in->rows, in->columns, &n) ||
        __builtin_mul_overflow(n, a.item_bytes, &bytes) || bytes != here)
        return input_fail(in, "its shape does not fit its %" PRIu64 " bytes of data", here);
    if (copy_numbers(in, in->content + a.data_offset, n, a.big_endian) != 0)
        return -1;
    return a.rank == 2 && !a.fortran ? input_transpose(in) : 0;
}

int input_read(input *in) {
    if (read_content(in) != 0)
        return -1;
    int rc;
    switch (in->form) {
    case FORMAT_RAW:
        rc = parse_raw(in);
        break;
    case FORMAT_NPY:
        rc = parse_npy(in);
        break;
    case FORMAT_CSV:
        rc = refuse_nul(in) != 0 ? -1 : input_parse_csv(in);
        break;
    case FORMAT_NPZ:
        return input_parse_npz(in);
    case FORMAT_JSON:
        rc = input_parse_json(in);
        if (rc == 0 && in->rank == 2)
            rc = input_transpose(in);
        break;
    default:
        rc = parse_text(in);
    }
    if (rc == 0 && in->rank == 0 && in->n != 1)
        rc = input_fail(in, "%" PRIu64 " values, but a scalar is one", in->n);
    return rc ? rc : reserve(in, 1); /* no values: still a pointer */
}
