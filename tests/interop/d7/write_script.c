/* Writes a D7 file as a script on standard input says, so that scripts in other languages can drive the
 * library:
 *
 *   values FILE                     raw little-endian values that `append` and `page` take one after the other
 *   dataset TYPE NAME | step N | bytes N | threads N | early HEXKEY HEXVALUE | checksums
 *   create FILE
 *   set HEXKEY HEXVALUE | append DATASET N | page DATASET N | end DATASET | flush
 *   close | abandon
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "d7/d7.h"
#include "executor.h"

enum { MAX_DATASETS = 300, MAX_EARLY = 64, LINE_BYTES = 1 << 20 };

typedef struct script {
    d7_dataset datasets[MAX_DATASETS];
    d7_attribute early[MAX_EARLY];
    size_t n_datasets, n_early;
    d7_writer_options options;
    d7_writer *writer;
    FILE *values;
    executor *threads;
    d7_executor table;
} script;

static _Noreturn void die(const char *what, const char *why) {
    fprintf(stderr, "write_script: %s: %s\n", what, why);
    exit(1);
}

static void check(int rc, const d7_error *err, const char *what) {
    if (rc != 0)
        die(what, err->text);
}

static char *from_hex(const char *hex) {
    size_t n = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
    char *text = calloc(n + 1, 1);
    if (!text)
        die("hex", "memory");
    for (size_t i = 0; i < n; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
        text[i] = (char)strtoul(pair, NULL, 16);
    }
    return text;
}

/* The next n values of a dataset. */
static void *take_values(script *s, uint32_t ds, size_t n) {
    size_t bytes = n * d7_type_size(s->datasets[ds].type);
    void *values = malloc(bytes ? bytes : 1);
    if (!values || !s->values || fread(values, 1, bytes, s->values) != bytes)
        die("values", "too few");
    return values;
}

static void append(script *s, uint32_t ds, size_t n, bool as_page) {
    d7_error err;
    void *values = take_values(s, ds, n);
    if (!as_page) {
        check(d7_writer_append(s->writer, ds, values, n, &err), &err, "append");
    } else {
        size_t cap = d7_page_bound(s->datasets[ds].type, n), bytes;
        void *entry = malloc(cap);
        if (!entry || d7_page_encode(ds, s->datasets[ds].type, values, n, entry, cap, &bytes) != 0)
            die("page", "encoding");
        check(d7_writer_append_page(s->writer, ds, entry, bytes, n, &err), &err, "page");
        free(entry);
    }
    free(values);
}

static void create(script *s, const char *path) {
    d7_error err;
    s->options.attributes = s->early;
    s->options.n_attributes = s->n_early;
    s->options.overwrite = true;
    if (s->threads) {
        s->table = executor_table(s->threads);
        s->options.executor = &s->table;
    }
    check(d7_writer_create(&s->writer, path, s->datasets, s->n_datasets, &s->options, &err), &err, "create");
}

static void run_line(script *s, char *line) {
    d7_error err;
    char *verb = strtok(line, " \n"), *a = strtok(NULL, " \n"), *b = strtok(NULL, "\n");
    if (!verb)
        return;
    if (strcmp(verb, "values") == 0) {
        s->values = fopen(a, "rb");
    } else if (strcmp(verb, "dataset") == 0) {
        d7_dataset *d = &s->datasets[s->n_datasets++];
        d->name = strdup(b);
        if (d7_type_parse(a, &d->type) != 0)
            die("type", a);
    } else if (strcmp(verb, "step") == 0) {
        s->options.index_step = (uint32_t)strtoul(a, NULL, 10);
    } else if (strcmp(verb, "bytes") == 0) {
        s->options.bytes_per_page = (uint32_t)strtoul(a, NULL, 10);
    } else if (strcmp(verb, "checksums") == 0) {
        s->options.checksums = true;
    } else if (strcmp(verb, "threads") == 0) {
        s->threads = executor_new((unsigned)strtoul(a, NULL, 10));
    } else if (strcmp(verb, "early") == 0) {
        s->early[s->n_early++] = (d7_attribute){.key = from_hex(a), .value = from_hex(b)};
    } else if (strcmp(verb, "create") == 0) {
        create(s, a);
    } else if (strcmp(verb, "set") == 0) {
        char *key = from_hex(a), *value = from_hex(b);
        check(d7_writer_set_attribute(s->writer, key, value, &err), &err, "set");
        free(key);
        free(value);
    } else if (strcmp(verb, "append") == 0 || strcmp(verb, "page") == 0) {
        append(s, (uint32_t)strtoul(a, NULL, 10), strtoul(b, NULL, 10), verb[0] == 'p');
    } else if (strcmp(verb, "end") == 0) {
        check(d7_writer_end_dataset(s->writer, (uint32_t)strtoul(a, NULL, 10), &err), &err, "end");
    } else if (strcmp(verb, "flush") == 0) {
        check(d7_writer_flush(s->writer, &err), &err, "flush");
    } else if (strcmp(verb, "close") == 0) {
        check(d7_writer_close(s->writer, &err), &err, "close");
    } else if (strcmp(verb, "abandon") != 0) {
        die("unknown verb", verb);
    }
}

static void script_free(script *s) {
    d7_writer_free(s->writer);
    executor_free(s->threads);
    for (size_t i = 0; i < s->n_datasets; i++)
        free((void *)(uintptr_t)s->datasets[i].name);
    for (size_t i = 0; i < s->n_early; i++) {
        free((void *)(uintptr_t)s->early[i].key);
        free((void *)(uintptr_t)s->early[i].value);
    }
    if (s->values)
        fclose(s->values);
}

int main(void) {
    static script s;
    static char line[LINE_BYTES];
    d7_writer_options_init(&s.options);
    while (fgets(line, sizeof line, stdin))
        run_line(&s, line);
    script_free(&s);
    return 0;
}
