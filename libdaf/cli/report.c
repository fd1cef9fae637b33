#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char *copy_of(const char *text) {
    return text ? strdup(text) : NULL;
}

static row *add_row(report *r, target_kind kind, const char *axis, const char *columns, const char *name) {
    if (r->n == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 32;
        row *rows = realloc(r->rows, capacity * sizeof *rows);
        if (!rows) {
            r->failed = true;
            snprintf(r->err.text, sizeof r->err.text, "out of memory");
            return NULL;
        }
        r->rows = rows;
        r->capacity = capacity;
    }
    row *new = &r->rows[r->n++];
    *new = (row){.kind = kind, .axis = copy_of(axis), .columns = copy_of(columns), .name = copy_of(name)};
    return new;
}

static void mark_broken(row *new, int rc, const daf_error *err) {
    if (rc)
        new->problem = copy_of(err->text);
}

static void gather_scalar(report *r, const char *name) {
    daf_error err;
    row *new = add_row(r, TARGET_SCALAR, NULL, NULL, name);
    if (new)
        mark_broken(new, daf_get_scalar(r->d, &new->scalar, name, &err), &err);
}

static void gather_axis(report *r, const char *name) {
    daf_error err;
    daf_array *entries = NULL;
    row *new = add_row(r, TARGET_AXIS, NULL, NULL, name);
    if (!new)
        return;
    mark_broken(new, daf_get_axis(r->d, &entries, name, &err), &err);
    if (entries)
        new->length = daf_array_count(entries);
    for (uint64_t i = 0; i < new->length; i++)
        new->bytes += daf_array_string_bytes(entries, i) + 1;
    daf_array_free(entries);
}

/* Of what is not examined: whether some file has not the size that its elements need. Not every store knows sizes: it is
 * asked for values then. */
static bool is_suspect(const daf_info *info) {
    bool suspect = false;
    for (unsigned i = 0; i < info->n_parts; i++) {
        const daf_part_info *p = &info->parts[i];
        bool sized = !p->packed && p->type != DAF_STRING;
        suspect = suspect || (p->disk_bytes == 0 && p->n) || (sized && p->disk_bytes != p->raw_bytes);
    }
    return suspect;
}

static void gather_vector(report *r, const char *axis, const char *name) {
    daf_error err;
    row *new = add_row(r, TARGET_VECTOR, axis, NULL, name);
    if (!new)
        return;
    int rc = r->examines ? daf_examine_vector(r->d, &new->info, axis, name, &err)
                         : daf_vector_info(r->d, &new->info, axis, name, &err);
    daf_array *none = NULL;
    if (rc == 0 && !r->examines && is_suspect(&new->info))
        rc = daf_get_vector_range(r->d, &none, axis, name, 0, 0, &err);
    mark_broken(new, rc, &err);
    daf_array_free(none);
}

static void gather_matrix(report *r, const char *rows, const char *columns, const char *name) {
    daf_error err;
    row *new = add_row(r, TARGET_MATRIX, rows, columns, name);
    if (!new)
        return;
    const daf_range nothing = {0};
    int rc = r->examines ? daf_examine_matrix(r->d, &new->info, rows, columns, name, &err)
                         : daf_matrix_info(r->d, &new->info, rows, columns, name, &err);
    daf_array *none = NULL;
    if (rc == 0 && !r->examines && is_suspect(&new->info))
        rc = daf_get_matrix_range(r->d, &none, rows, columns, name, &nothing, &err);
    mark_broken(new, rc, &err);
    daf_array_free(none);
}

/* Takes over a list that was just asked for, or its failure. */
static size_t listed(report *r, int rc) {
    r->failed |= rc != 0;
    return r->failed ? 0 : SIZE_MAX;
}

static void gather_vectors(report *r, const char *axis) {
    daf_names names = {0};
    size_t limit = listed(r, daf_list_vectors(r->d, &names, axis, &r->err));
    for (size_t i = 0; i < names.n && i < limit; i++)
        gather_vector(r, axis, names.names[i]);
    daf_names_clear(&names);
}

static void gather_matrices(report *r, const char *rows, const char *columns) {
    daf_names names = {0};
    size_t limit = listed(r, daf_list_matrices(r->d, &names, rows, columns, &r->err));
    for (size_t i = 0; i < names.n && i < limit; i++)
        gather_matrix(r, rows, columns, names.names[i]);
    daf_names_clear(&names);
}

void report_gather(report *r, daf *d, bool examines) {
    daf_names scalars = {0}, axes = {0};
    *r = (report){.d = d, .examines = examines};
    size_t limit = listed(r, daf_list_scalars(d, &scalars, &r->err));
    for (size_t i = 0; i < scalars.n && i < limit; i++)
        gather_scalar(r, scalars.names[i]);
    limit = listed(r, daf_list_axes(d, &axes, &r->err));
    for (size_t i = 0; i < axes.n && i < limit; i++)
        gather_axis(r, axes.names[i]);
    for (size_t i = 0; i < axes.n && !r->failed; i++)
        gather_vectors(r, axes.names[i]);
    for (size_t i = 0; i < axes.n; i++)
        for (size_t k = 0; k < axes.n && !r->failed; k++)
            gather_matrices(r, axes.names[i], axes.names[k]);
    daf_names_clear(&scalars);
    daf_names_clear(&axes);
}

void report_free(report *r) {
    for (size_t i = 0; i < r->n; i++) {
        free(r->rows[i].axis);
        free(r->rows[i].columns);
        free(r->rows[i].name);
        free(r->rows[i].problem);
        daf_scalar_clear(&r->rows[i].scalar);
    }
    free(r->rows);
}

size_t report_count_problems(const report *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->rows[i].problem != NULL;
    return n;
}

/* ---- for people */

static void print_codec(FILE *out, const daf_part_info *part, bool two_dimensions) {
    cli_write_printable(out, part->compression, strlen(part->compression));
    fprintf(out, " %d, %" PRIu64 " %s of %" PRIu64, part->level, part->n_chunks,
            part->n_chunks == 1 ? "chunk" : "chunks", part->chunk_rows);
    if (two_dimensions)
        fprintf(out, " x %" PRIu64, part->chunk_columns);
    if (part->n_stored && part->n_stored < part->n_chunks)
        fprintf(out, " (%" PRIu64 " stored)", part->n_stored);
}

static void print_sparse(FILE *out, const daf_info *info) {
    double cells = (double)info->rows * (double)info->columns;
    fprintf(out, "sparse, %" PRIu64 " stored", info->nnz);
    if (cells > 0)
        fprintf(out, " (density %.3g)", (double)info->nnz / cells);
    for (unsigned i = 0; i < info->n_parts; i++) {
        if (!info->parts[i].packed)
            continue;
        fprintf(out, ", %s ", info->parts[i].name);
        print_codec(out, &info->parts[i], false);
    }
}

/* Of Strings not without having been examined. */
static bool has_raw_bytes(const daf_info *info) {
    bool known = info->raw_bytes > 0;
    for (unsigned i = 0; i < info->n_parts; i++)
        known = known && (info->parts[i].type != DAF_STRING || info->parts[i].raw_bytes || !info->parts[i].n);
    return known;
}

void print_info(FILE *out, const row *r) {
    const daf_info *info = &r->info;
    fprintf(out, "%-8s %10" PRIu64, daf_type_name(info->type), info->rows);
    if (r->kind == TARGET_MATRIX)
        fprintf(out, " x %-8" PRIu64, info->columns);
    fputs("  ", out);
    if (info->sparse)
        print_sparse(out, info);
    else if (info->packed)
        print_codec(out, &info->parts[0], r->kind == TARGET_MATRIX);
    else
        fputs(info->type == DAF_STRING ? "flat lines" : "flat", out);
    fprintf(out, ", %" PRIu64 " bytes on disk", info->disk_bytes);
    if (info->packed && has_raw_bytes(info) && info->disk_bytes)
        fprintf(out, " (ratio %.2f)", (double)info->raw_bytes / (double)info->disk_bytes);
}

void print_facts(FILE *out, const row *r) {
    if (r->problem) {
        fputs("PROBLEM: ", out);
        cli_write_printable(out, r->problem, strlen(r->problem));
    } else if (r->kind == TARGET_SCALAR) {
        fprintf(out, "%-8s ", daf_type_name(r->scalar.type));
        print_json_scalar(out, &r->scalar);
    } else if (r->kind == TARGET_AXIS) {
        fprintf(out, "%" PRIu64 " entries", r->length);
    } else {
        print_info(out, r);
    }
}
