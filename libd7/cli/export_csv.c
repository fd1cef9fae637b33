/* Text: the columns of one group side by side under a line of names, or one dataset by itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "export.h"
#include "export_names.h"

enum { NUMBER_BYTES = 40, LINES = 1024 };

typedef struct csv_job {
    export_job *job;
    export_set *set;
    FILE *out;
    char *text; /* room for LINES lines */
    bool begun;
} csv_job;

static int csv_failed(const csv_job *c, int error) {
    return c->out == stdout
               ? cli_stdout_failed()
               : command_fail(c->job->self, "%s: cannot be written: %s", c->job->final, strerror(error));
}

/* The photons, else the tags, else the only dataset; what else is asked for needs a file of its own. */
static int choose_set(csv_job *c) {
    const export_job *job = c->job;
    c->set = export_find_set(job, D7_GROUP_PHOTONS);
    if (!c->set)
        c->set = export_find_set(job, D7_GROUP_TAGS);
    if (!c->set && job->n_sets == 1)
        c->set = &job->sets[0];
    if (!c->set)
        return command_fail(
            job->self, "%s: has neither photons nor tags: choose a dataset for the CSV file by --dataset",
            job->path);
    if (job->chosen && job->n_sets > 1)
        return command_fail(job->self,
                            "a CSV file takes the columns of one group: %s and %s are of different lengths",
                            job->sets[0].columns[0].name, job->sets[1].columns[0].name);
    return 0;
}

static void put_name(const char *name, FILE *out) {
    if (!strpbrk(name, "\",\r\n")) {
        fputs(name, out);
        return;
    }
    fputc('"', out);
    for (; *name; name++) {
        if (*name == '"')
            fputc('"', out);
        fputc(*name, out);
    }
    fputc('"', out);
}

static void put_head(csv_job *c) {
    if (c->begun)
        return;
    c->begun = true;
    for (size_t i = 0; i < c->set->n; i++) {
        if (i)
            fputc(',', c->out);
        put_name(c->set->columns[i].name, c->out);
    }
    fputc('\n', c->out);
}

static size_t format_lines(const csv_job *c, const d7_chunk *chunk, size_t from, size_t to) {
    char *p = c->text;
    for (size_t row = from; row < to; row++) {
        for (size_t i = 0; i < c->set->n; i++) {
            d7_type type = c->set->columns[i].type;
            size_t size = d7_type_size(type);
            p += cli_format_number(p, NUMBER_BYTES, export_kind(type), size,
                                   (const char *)chunk->values[i] + row * size);
            *p++ = ',';
        }
        p[-1] = '\n';
    }
    return (size_t)(p - c->text);
}

static int csv_take(void *ctx, const d7_chunk *chunk) {
    csv_job *c = ctx;
    put_head(c);
    for (size_t from = 0, to; from < chunk->n; from = to) {
        to = chunk->n - from < LINES ? chunk->n : from + LINES;
        size_t bytes = format_lines(c, chunk, from, to);
        if (fwrite(c->text, 1, bytes, c->out) != bytes)
            return csv_failed(c, errno);
    }
    return 0;
}

static int csv_write(csv_job *c) {
    c->text = malloc(LINES * c->set->n * NUMBER_BYTES);
    if (!c->text)
        return command_fail(c->job->self, "out of memory");
    int code = export_stream(c->job, c->set, csv_take, c);
    if (code == 0)
        put_head(c);
    if (code == 0 && c->out == stdout)
        code = cli_flush_stdout();
    if (code == EXPORT_AGAIN && c->out == stdout && c->begun)
        code = command_fail(
            c->job->self, "%s: pages hold another number of items than they should; export to a file instead",
            c->job->path);
    free(c->text);
    return code;
}

int export_csv(export_job *job) {
    csv_job c = {.job = job};
    int code = choose_set(&c);
    if (code != 0)
        return code;
    c.out = job->temporary ? fopen(job->temporary, "we") : stdout;
    if (!c.out)
        return csv_failed(&c, errno);
    code = csv_write(&c);
    if (c.out == stdout)
        return code;
    if ((ferror(c.out) | fclose(c.out)) != 0 && code == 0)
        code = csv_failed(&c, errno);
    return code;
}
