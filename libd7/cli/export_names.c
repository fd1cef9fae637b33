#include "export_names.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/output.h"

char export_kind(d7_type type) {
    return type >= D7_FLOAT ? 'f' : type >= D7_UINT8 ? 'u' : 'i';
}

/* ---- names ---- */

/* What is not plain text in a path becomes '_'. */
static size_t plain_part(const char *from, size_t bytes, char *to) {
    size_t used = 0;
    if (bytes == 0 || (bytes == 1 && from[0] == '.') || (bytes == 2 && from[0] == '.' && from[1] == '.')) {
        memset(to, '_', bytes ? bytes : 1);
        return bytes ? bytes : 1;
    }
    for (size_t i = 0; i < bytes;) {
        size_t n = common_utf8_sequence(from + i, bytes - i);
        bool plain =
            n > 1 || (n == 1 && (unsigned char)from[i] >= 0x20 && from[i] != 0x7F && from[i] != '\\');
        if (plain)
            memcpy(to + used, from + i, n);
        else
            to[used] = '_';
        used += plain ? n : 1;
        i += n ? n : 1;
    }
    return used;
}

/* Room for twice the name, and 24. */
static void plain_name(const char *name, char *to) {
    size_t used = 0;
    name += *name == '/';
    for (;;) {
        size_t bytes = strcspn(name, "/");
        used += plain_part(name, bytes, to + used);
        if (name[bytes] == 0)
            break;
        to[used++] = '/';
        name += bytes + 1;
    }
    to[used] = 0;
}

/* A name in use, or a folder that one is in. */
typedef struct used_name {
    char *text;
    bool is_key;
} used_name;

static int compare_used(const void *a, const void *b) {
    return strcmp(((const used_name *)a)->text, ((const used_name *)b)->text);
}

static const used_name *find_used(void *tree, const char *text) {
    used_name key = {.text = (char *)text};
    used_name *const *node = tfind(&key, &tree, compare_used);
    return node ? *node : NULL;
}

static int add_used(void **tree, const char *text, bool is_key) {
    if (find_used(*tree, text))
        return 0;
    used_name *name = malloc(sizeof *name);
    char *copy = strdup(text);
    if (name && copy) {
        *name = (used_name){copy, is_key};
        if (tsearch(name, tree, compare_used))
            return 0;
    }
    free(name);
    free(copy);
    return -1;
}

static void free_used(void *node) {
    used_name *name = node;
    free(name->text);
    free(name);
}

/* How much of the name is in the way of it: a folder that is a name in use, or all of it; 0: nothing is. */
static size_t taken_part(void *tree, char *key) {
    for (char *slash = strchr(key, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        const used_name *folder = find_used(tree, key);
        *slash = '/';
        if (folder && folder->is_key)
            return (size_t)(slash - key);
    }
    return find_used(tree, key) ? strlen(key) : 0;
}

static int take_key(void **tree, char *key) {
    int rc = add_used(tree, key, true);
    for (char *slash = strchr(key, '/'); slash && rc == 0; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        rc = add_used(tree, key, false);
        *slash = '/';
    }
    return rc;
}

/* Puts a number behind a part of the name, so that nothing is in use that begins so. Returns false when memory runs out. */
static bool make_other(void *tree, char *key, size_t part, uint32_t number) {
    char text[16], *other = malloc(part + sizeof text);
    if (!other)
        return false;
    memcpy(other, key, part);
    do {
        snprintf(text, sizeof text, "~%" PRIu32, number++);
        strcpy(other + part, text);
    } while (find_used(tree, other));
    free(other);
    memmove(key + part + strlen(text), key + part, strlen(key + part) + 1);
    memcpy(key + part, text, strlen(text));
    return true;
}

/* A name that is taken gets the dataset's number. */
static char *new_key(void **tree, const export_column *column) {
    char *key = malloc(2 * strlen(column->name) + 24);
    if (!key)
        return NULL;
    plain_name(column->name, key);
    size_t part = taken_part(*tree, key);
    if ((part == 0 || make_other(*tree, key, part, column->dataset_id)) && take_key(tree, key) == 0)
        return key;
    free(key);
    return NULL;
}

static int make_keys(export_job *job, void **tree, export_names *names) {
    for (size_t s = 0; s < job->n_sets; s++) {
        job->sets[s].first_key = names->n;
        for (size_t i = 0; i < job->sets[s].n; i++) {
            char *key = new_key(tree, &job->sets[s].columns[i]);
            if (!key)
                return -1;
            names->keys[names->n++] = key;
        }
    }
    return 0;
}

int export_names_make(export_job *job, const char *taken, export_names *ret) {
    void *tree = NULL;
    size_t n = 0;
    for (size_t s = 0; s < job->n_sets; s++)
        n += job->sets[s].n;
    *ret = (export_names){.keys = calloc(n ? n : 1, sizeof *ret->keys)};
    int rc = ret->keys && add_used(&tree, taken, true) == 0 ? make_keys(job, &tree, ret) : -1;
    tdestroy(tree, free_used);
    return rc;
}

void export_names_free(export_names *names) {
    for (size_t i = 0; i < names->n; i++)
        free(names->keys[i]);
    free(names->keys);
}

/* ---- metadata ---- */

static void put_attributes(const export_job *job, FILE *out) {
    d7_attribute a;
    fputs("{", out);
    for (size_t i = 0; d7_reader_attribute(job->reader, i, &a) == 0; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        cli_write_json_text(out, a.key, a.key_bytes);
        fputs(": ", out);
        cli_write_json_text(out, a.value, a.value_bytes);
    }
    fputs("\n  }", out);
}

static void put_column(const export_set *set, const export_column *column, const char *key, FILE *out) {
    fputs("{\"key\": ", out);
    cli_write_json_string(out, key);
    fputs(", \"name\": ", out);
    cli_write_json_string(out, column->name);
    fprintf(out, ", \"type\": \"%s\", \"items\": %" PRIu64 ", \"ranges\": [", d7_type_name(column->type),
            set->rows);
    for (size_t i = 0; i < set->n_ranges; i++)
        fprintf(out, "%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "", set->ranges[i].from, set->ranges[i].to);
    fputs("]}", out);
}

static void put_metadata(const export_job *job, const export_names *names, FILE *out) {
    size_t at = 0;
    const char *slash = strrchr(job->path, '/');
    fputs("{\n  \"file\": ", out);
    cli_write_json_string(out, slash ? slash + 1 : job->path);
    fputs(",\n  \"attributes\": ", out);
    put_attributes(job, out);
    fputs(",\n  \"datasets\": [", out);
    for (size_t s = 0; s < job->n_sets; s++)
        for (size_t i = 0; i < job->sets[s].n; i++) {
            fputs(at ? ",\n    " : "\n    ", out);
            put_column(&job->sets[s], &job->sets[s].columns[i], names->keys[at++], out);
        }
    fputs("\n  ]\n}\n", out);
}

int export_metadata(const export_job *job, const export_names *names, char **ret_text, size_t *ret_bytes) {
    FILE *out = open_memstream(ret_text, ret_bytes);
    if (!out)
        return -errno;
    put_metadata(job, names, out);
    int failed = ferror(out);
    return fclose(out) != 0 || failed ? -ENOMEM : 0;
}
