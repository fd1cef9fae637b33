/* verify-summaries: the export of a run held against its events, which are summarised again. Works on files alone. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "recount.h"

typedef struct verify {
    const cli_command *self;
    const char *path; /* of the export */
    daf *export;
    bool json;
    uint64_t n_compared, n_different;
    json_t *different; /* sentences, for --json */
} verify;

__attribute__((format(printf, 2, 3))) static void verify_differs(verify *v, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    v->n_different++;
    json_array_append_new(v->different, json_string(text));
    if (!v->json)
        cli_print_line(stdout, "%s", text);
}

/* ---- what the export covers, and how it was made ---- */

static uint64_t verify_uint64(const verify *v, const char *name, uint64_t otherwise) {
    daf_scalar scalar;
    if (daf_get_scalar(v->export, &scalar, name, NULL) != 0)
        return otherwise;
    uint64_t value = scalar.type == DAF_UINT64 ? scalar.value.u : otherwise;
    daf_scalar_clear(&scalar);
    return value;
}

/* "/photons/x" is covered as far as the scalar items.photons.x says. */
static uint64_t verify_limit(void *user, const char *dataset) {
    char name[300];
    snprintf(name, sizeof name, "items.%s", dataset[0] == '/' ? dataset + 1 : dataset);
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '.' : *at;
    return verify_uint64(user, name, UINT64_MAX);
}

static uint64_t verify_axis(const verify *v, const char *axis) {
    uint64_t n = 0;
    return daf_axis_length(v->export, &n, axis, NULL) == 0 ? n : 0;
}

/* The axis `second` ends as the export's does when it may have as many entries as that has. */
static void verify_options(const verify *v, pd_summary_options *options) {
    uint64_t pixels = verify_axis(v, "y_pixel"), seconds = verify_axis(v, "second");
    *options =
        (pd_summary_options){.enabled = true,
                             .image = pixels > 0,
                             .pixels = pixels >= 16 && pixels <= 4096 ? (uint32_t)pixels : 512,
                             .decay = verify_axis(v, "dt_bin") > 0,
                             .rate = seconds > 0,
                             .max_seconds = seconds < 2 || seconds > UINT32_MAX ? 2 : (uint32_t)seconds};
}

/* ---- one property ---- */

/* Names the export and not the events, or goes by a clock that is not in the file. */
static bool verify_passes_over(const pd_property *p) {
    static const char *const names[] = {"name", "export", "duration_s"};
    for (size_t i = 0; p->kind == PD_SCALAR && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], p->name) == 0)
            return true;
    return false;
}

static bool scalars_agree(const daf_scalar *a, const daf_scalar *b) {
    if (a->type != b->type)
        return false;
    if (a->type == DAF_STRING)
        return a->value.s.bytes == b->value.s.bytes &&
               memcmp(a->value.s.text, b->value.s.text, a->value.s.bytes) == 0;
    return a->type == DAF_FLOAT64 ? memcmp(&a->value.f, &b->value.f, sizeof a->value.f) == 0
                                  : a->value.u == b->value.u;
}

static void verify_scalar(verify *v, const pd_property *p) {
    daf_scalar there;
    daf_error why = {0};
    if (daf_get_scalar(v->export, &there, p->name, &why) != 0) {
        verify_differs(v, "scalar %s: %s", p->name, why.text);
        return;
    }
    if (!scalars_agree(&there, &p->scalar)) {
        if (there.type == DAF_UINT64 && p->scalar.type == DAF_UINT64)
            verify_differs(v, "scalar %s: %" PRIu64 " in the export, %" PRIu64 " by the events", p->name,
                           there.value.u, p->scalar.value.u);
        else
            verify_differs(v, "scalar %s: another value than by the events", p->name);
    }
    daf_scalar_clear(&there);
}

static void verify_entries(verify *v, const pd_property *p) {
    daf_array *there = NULL;
    daf_error why = {0};
    if (daf_get_axis(v->export, &there, p->name, &why) != 0) {
        verify_differs(v, "axis %s: %s", p->name, why.text);
        return;
    }
    const char *const *texts = daf_array_strings(there);
    uint64_t n = daf_array_count(there), i = 0;
    for (; n == p->n && i < n; i++) {
        char expected[32];
        snprintf(expected, sizeof expected, "%" PRId64, p->first + (int64_t)i * p->step);
        if (strcmp(texts[i], expected) != 0)
            break;
    }
    if (n != p->n)
        verify_differs(v, "axis %s: %" PRIu64 " entries in the export, %" PRIu64 " by the events", p->name, n,
                       p->n);
    else if (i < n)
        verify_differs(v, "axis %s: entry %" PRIu64 " is another than by the events", p->name, i);
    daf_array_free(there);
}

static void verify_values(verify *v, const pd_property *p) {
    daf_array *there = NULL;
    daf_error why = {0};
    int code = p->kind == PD_VECTOR ? daf_get_vector(v->export, &there, p->rows, p->name, &why)
                                    : daf_get_matrix(v->export, &there, p->rows, p->columns, p->name, &why);
    if (code != 0) {
        verify_differs(v, "%s: %s", p->name, why.text);
        return;
    }
    size_t size = daf_type_bytes(p->type);
    const char *a = daf_array_values(there), *b = p->values;
    uint64_t n_different = 0, first = 0;
    bool alike = daf_array_type(there) == p->type && daf_array_count(there) == p->n;
    for (uint64_t i = p->n; alike && i-- > 0;)
        if (memcmp(a + i * size, b + i * size, size) != 0) {
            n_different++;
            first = i;
        }
    if (!alike)
        verify_differs(v, "%s: %s: of another type or length than by the events", p->rows, p->name);
    else if (n_different)
        verify_differs(v,
                       "%s: %s: %" PRIu64 " of %" PRIu64
                       " values are others than by the events, the first is number %" PRIu64,
                       p->rows, p->name, n_different, p->n, first);
    daf_array_free(there);
}

static void verify_property(verify *v, const pd_property *p) {
    if (verify_passes_over(p))
        return;
    v->n_compared++;
    switch (p->kind) {
    case PD_SCALAR:
        verify_scalar(v, p);
        break;
    case PD_AXIS:
        verify_entries(v, p);
        break;
    case PD_VECTOR:
    case PD_MATRIX:
        verify_values(v, p);
        break;
    }
}

/* ---- all of it ---- */

static int verify_report(const verify *v) {
    if (v->json) {
        json_t *answer = json_pack("{s:b, s:I, s:O}", "good", v->n_different == 0, "compared",
                                   (json_int_t)v->n_compared, "different", v->different);
        ctl_print_json(answer);
        json_decref(answer);
    } else {
        cli_print_line(stdout, "%s: %" PRIu64 " properties compared with the events, %" PRIu64 " different",
                       v->path, v->n_compared, v->n_different);
    }
    return v->n_different ? CLI_PROBLEMS : CLI_OK;
}

static int verify_against(verify *v, const char *const *parts, size_t n) {
    pd_summary_options options;
    pd_summary *summary = NULL;
    pd_snapshot snapshot;
    pd_error err = {""};
    verify_options(v, &options);
    if (pd_recount(&summary, "", parts, n, &options, verify_limit, v, &err) != 0)
        return cli_fail(v->self, "%s", err.text);
    pd_snapshot_init(&snapshot);
    int code = pd_summary_freeze(summary, 1, &snapshot, &err);
    for (size_t i = 0; code == 0 && i < snapshot.n_properties; i++)
        verify_property(v, &snapshot.properties[i]);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(summary);
    return code != 0 ? cli_fail(v->self, "%s", err.text) : verify_report(v);
}

static bool verify_option(void *context, int option, const char *argument) {
    (void)argument;
    if (option == 'j')
        ((verify *)context)->json = true;
    return option == 'j';
}

static int verify_run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    verify v = {.self = self};
    daf_error why = {0};
    int code = cli_options(self, argc, argv, options, verify_option, &v, 2, 100000);
    if (code >= 0)
        return code;
    v.path = argv[optind];
    if (daf_open(&v.export, v.path, "r", NULL, &why) != 0)
        return cli_fail(self, "%s", why.text);
    v.different = json_array();
    code = verify_against(&v, (const char *const *)(argv + optind + 1), (size_t)(argc - optind - 1));
    json_decref(v.different);
    daf_free(v.export);
    return code;
}

const cli_command ctl_verify_summaries = {
    .name = "verify-summaries",
    .summary = "hold an export against the events it was made of",
    .help = "Usage: photonctl verify-summaries RUN.daf PART.photons... [--json]\n"
            "Summarises the events again, as far as the export covers them, and compares: images, decays, "
            "rates and "
            "counts to the\n"
            "last one. Needs no daemon. The parts of a run are given in their order. Not compared are the "
            "export's "
            "number and\n"
            "name, and its duration.\n\n"
            "  --json             the answer as one JSON object\n"
            "  --help             this help\n\n"
            "Exit status: 0 all agrees, 1 something differs, 2 something cannot be read.\n",
    .run = verify_run};
