/* The JSON of describe. */
#include <inttypes.h>
#include <string.h>

#include "report.h"

static void print_packing(const daf_part_info *p, bool two_dimensions, bool examined) {
    printf(",\"packed\":%s", p->packed ? "true" : "false");
    if (!p->packed)
        return;
    printf(",\"indexed\":%s,\"compression\":", p->indexed ? "true" : "false");
    print_json_string(stdout, p->compression);
    printf(",\"level\":%d,\"chunk_shape\":[%" PRIu64, p->level, p->chunk_rows);
    if (two_dimensions)
        printf(",%" PRIu64, p->chunk_columns);
    printf("],\"chunks\":%" PRIu64, p->n_chunks);
    if (examined)
        printf(",\"stored_chunks\":%" PRIu64, p->n_stored);
}

/* known: the bytes of Strings are, too. */
static void print_sizes(daf_type type, bool known, bool packed, uint64_t raw_bytes, uint64_t disk_bytes) {
    known = known || type != DAF_STRING;
    if (known)
        printf(",\"raw_bytes\":%" PRIu64, raw_bytes);
    printf(",\"disk_bytes\":%" PRIu64, disk_bytes);
    if (known && packed && raw_bytes && disk_bytes)
        printf(",\"ratio\":%.4g", (double)raw_bytes / (double)disk_bytes);
}

static void print_parts(const daf_info *i, bool examined) {
    double cells = (double)i->rows * (double)i->columns;
    printf(",\"nnz\":%" PRIu64 ",\"density\":%.6g,\"index_type\":\"%s\",\"packed\":%s,\"parts\":{", i->nnz,
           cells > 0 ? (double)i->nnz / cells : 0, daf_type_name(i->index_type),
           i->packed ? "true" : "false");
    for (unsigned k = 0; k < i->n_parts; k++) {
        const daf_part_info *p = &i->parts[k];
        printf("%s\"%s\":{\"type\":\"%s\",\"elements\":%" PRIu64, k ? "," : "", p->name,
               daf_type_name(p->type), p->n);
        print_packing(p, false, examined);
        print_sizes(p->type, examined, p->packed, p->raw_bytes, p->disk_bytes);
        putchar('}');
    }
    putchar('}');
}

static void print_info_json(const row *r, bool examined) {
    const daf_info *i = &r->info;
    bool matrix = r->kind == TARGET_MATRIX;
    printf("{\"type\":\"%s\",\"format\":\"%s\",\"rows\":%" PRIu64, daf_type_name(i->type),
           i->sparse ? "sparse" : "dense", i->rows);
    if (matrix)
        printf(",\"columns\":%" PRIu64, i->columns);
    if (i->sparse)
        print_parts(i, examined);
    else
        print_packing(&i->parts[0], matrix, examined);
    print_sizes(i->type, examined, i->packed, i->raw_bytes, i->disk_bytes);
    putchar('}');
}

static void print_value_json(const row *r, bool examined) {
    if (r->kind == TARGET_SCALAR) {
        printf("{\"type\":\"%s\",\"value\":", daf_type_name(r->scalar.type));
        print_json_scalar(stdout, &r->scalar);
        putchar('}');
    } else if (r->kind == TARGET_AXIS) {
        printf("{\"entries\":%" PRIu64 ",\"disk_bytes\":%" PRIu64 "}", r->length, r->bytes);
    } else {
        print_info_json(r, examined);
    }
}

/* The members of a map of maps that r opens: the levels in which it differs from the row before it. */
static void open_levels(const row *r, const row *before) {
    bool same_axis = before && r->axis && strcmp(before->axis, r->axis) == 0;
    bool same_columns = same_axis && r->columns && strcmp(before->columns, r->columns) == 0;
    if (before) {
        if (r->columns && !same_columns)
            putchar('}');
        if (r->axis && !same_axis)
            putchar('}');
        putchar(',');
    }
    if (r->axis && !same_axis) {
        print_json_string(stdout, r->axis);
        fputs(":{", stdout);
    }
    if (r->columns && !same_columns) {
        print_json_string(stdout, r->columns);
        fputs(":{", stdout);
    }
}

static void print_kind_json(const report *r, target_kind kind, const char *heading) {
    const row *before = NULL;
    printf(",\"%s\":{", heading);
    for (size_t i = 0; i < r->n; i++) {
        const row *this = &r->rows[i];
        if (this->kind != kind || this->problem)
            continue;
        open_levels(this, before);
        print_json_string(stdout, this->name);
        putchar(':');
        print_value_json(this, r->examines);
        before = this;
    }
    if (before && before->columns)
        putchar('}');
    if (before && before->axis)
        putchar('}');
    putchar('}');
}

static void print_problems(const report *r) {
    bool first = true;
    fputs(",\"problems\":[", stdout);
    for (size_t i = 0; i < r->n; i++) {
        if (!r->rows[i].problem)
            continue;
        if (!first)
            putchar(',');
        first = false;
        print_json_string(stdout, r->rows[i].problem);
    }
    putchar(']');
}

static uint64_t count_bytes(const report *r) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->n; i++)
        bytes += r->rows[i].problem ? 0 : r->rows[i].bytes + r->rows[i].info.disk_bytes;
    return bytes;
}

void report_print_json(report *r, const char *path) {
    int major, minor;
    daf_format_version(r->d, &major, &minor);
    fputs("{\"path\":", stdout);
    print_json_string(stdout, path);
    fputs(",\"name\":", stdout);
    print_json_string(stdout, daf_name(r->d));
    printf(",\"version\":[%d,%d],\"disk_bytes\":%" PRIu64, major, minor, count_bytes(r));
    print_kind_json(r, TARGET_SCALAR, "scalars");
    print_kind_json(r, TARGET_AXIS, "axes");
    print_kind_json(r, TARGET_VECTOR, "vectors");
    print_kind_json(r, TARGET_MATRIX, "matrices");
    print_problems(r);
    fputs("}\n", stdout);
}
