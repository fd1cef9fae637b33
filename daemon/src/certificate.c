#include "certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock_fit.h"
#include "told.h"

#define CERTIFICATE_NS_PER_S 1000000000

/* ---- the bytes ---- */

static int certificate_digest_one(pd_certificate_file *ret, int dir_fd, const char *file,
                                  proof_progress *progress, void *ctx, pd_error *err) {
    struct stat there;
    int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int failed = fd < 0 || fstat(fd, &there) != 0 ? -errno : S_ISREG(there.st_mode) ? 0 : -EINVAL;
    if (!failed)
        failed = proof_sha256_file(fd, &ret->bytes, ret->sha256, progress, ctx);
    if (fd >= 0)
        close(fd);
    if (failed)
        pd_error_set(err, "%s: cannot be read: %s", file, strerror(-failed));
    return failed;
}

int pd_certificate_digest(pd_certificate_files *ret, int dir_fd, const char *name, proof_progress *progress,
                          void *ctx, pd_error *err) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s.photons", name);
    int failed = certificate_digest_one(&ret->photons, dir_fd, file, progress, ctx, err);
    if (failed)
        return failed;
    snprintf(file, sizeof file, "%s.photons" D7_CHECKSUMS_SUFFIX, name);
    failed = certificate_digest_one(&ret->checksums, dir_fd, file, progress, ctx, err);
    ret->has_checksums = failed == 0;
    return failed == -ENOENT ? 0 : failed;
}

int pd_certificate_configuration(const pd_config *config, char hex[PROOF_HEX_BYTES]) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    int failed = out ? pd_config_print(config, out) : -1;
    if (out && fclose(out) != 0)
        failed = -1;
    if (!failed && proof_sha256(text, bytes, hex) != 0)
        failed = -1;
    free(text);
    return failed;
}

/* ---- records ---- */

/* What is gathered from the attributes of the file. */
typedef struct certificate_records {
    json_t *gaps; /* array */
    size_t n_markers;
    pd_clock_pair *utc, *monotonic; /* [n_pairs] of clock records with the instrument's time */
    size_t n_pairs, cap_pairs;
    bool monotonic_rises;
    int64_t first_utc, last_utc; /* of all clock records; 0: none */
} certificate_records;

static void records_free(certificate_records *r) {
    json_decref(r->gaps);
    free(r->utc);
    free(r->monotonic);
}

static int records_pair(certificate_records *r, int64_t ticks, int64_t monotonic, int64_t utc) {
    if (r->n_pairs == r->cap_pairs) {
        size_t cap = r->cap_pairs ? 2 * r->cap_pairs : 64;
        pd_clock_pair *a = realloc(r->utc, cap * sizeof *a);
        r->utc = a ? a : r->utc;
        pd_clock_pair *b = a ? realloc(r->monotonic, cap * sizeof *b) : NULL;
        r->monotonic = b ? b : r->monotonic;
        if (!a || !b)
            return -1;
        r->cap_pairs = cap;
    }
    if (r->n_pairs > 0 && monotonic <= r->monotonic[r->n_pairs - 1].ns)
        r->monotonic_rises = false; /* the machine was started anew */
    r->utc[r->n_pairs] = (pd_clock_pair){ticks, utc};
    r->monotonic[r->n_pairs++] = (pd_clock_pair){ticks, monotonic};
    return 0;
}

static int records_clock(certificate_records *r, const json_t *clock) {
    const json_t *instrument = json_object_get(clock, "instrument");
    int64_t utc = json_integer_value(json_object_get(clock, "utc"));
    if (!r->first_utc)
        r->first_utc = utc;
    r->last_utc = utc;
    return json_is_integer(instrument)
               ? records_pair(r, json_integer_value(instrument),
                              json_integer_value(json_object_get(clock, "monotonic")), utc)
               : 0;
}

/* Returns 0, or -1 when out of memory. */
static int records_take(certificate_records *r, const d7_attribute *a) {
    int failed = 0;
    r->n_markers += strncmp(a->key, "photond.marker.", 15) == 0;
    bool gap = strncmp(a->key, "photond.gap.", 12) == 0;
    if (!gap && strncmp(a->key, "photond.clock.", 14) != 0)
        return 0;
    json_t *json = json_loads(a->value, 0, NULL);
    if (gap)
        failed = json_array_append(r->gaps, json ? json : json_null());
    else if (json)
        failed = records_clock(r, json);
    json_decref(json);
    return failed;
}

static int records_read(certificate_records *r, const d7_reader *reader) {
    *r = (certificate_records){.gaps = json_array(), .monotonic_rises = true};
    for (size_t i = 0; r->gaps && i < d7_reader_n_attributes(reader); i++) {
        d7_attribute a;
        if (d7_reader_attribute(reader, i, &a) == 0 && records_take(r, &a) != 0)
            return -1;
    }
    return r->gaps ? 0 : -1;
}

/* ---- clocks ---- */

static json_t *fit_json(const pd_clock_pair *pairs, size_t n, double tick_ps) {
    pd_clock_fit fit;
    if (!pd_clock_fit_make(&fit, pairs, n))
        return json_null();
    json_t *json = json_pack("{s:I, s:I, s:f, s:f, s:f}", "first_tick", (json_int_t)fit.first_tick,
                             "ns_at_first_tick", (json_int_t)fit.ns_at_first, "ns_per_tick", fit.ns_per_tick,
                             "residual_rms_ns", fit.residual_rms_ns, "residual_max_ns", fit.residual_max_ns);
    if (json && tick_ps > 0)
        json_object_set_new(json, "rate_ppm", json_real((fit.ns_per_tick * 1e3 / tick_ps - 1) * 1e6));
    return json;
}

static json_t *clock_json(const d7_reader *reader, const certificate_records *r) {
    json_t *told = pd_told_json(reader, "photond.time_base", 0);
    pd_time_base t = pd_told_time_base(told);
    json_decref(told);
    double tick_ps = t.tick_ps_denominator ? (double)t.tick_ps_numerator / (double)t.tick_ps_denominator : 0;
    return json_pack("{s:I, s:o, s:o, s:o}", "pairs", (json_int_t)r->n_pairs, "tick_ps",
                     tick_ps > 0 ? json_real(tick_ps) : json_null(), "utc",
                     fit_json(r->utc, r->n_pairs, tick_ps), "monotonic",
                     fit_json(r->monotonic, r->monotonic_rises ? r->n_pairs : 0, tick_ps));
}

/* {ns, text}, null where the moment is not known. */
static json_t *moment_json(int64_t utc_ns) {
    char text[40];
    time_t seconds = (time_t)(utc_ns / CERTIFICATE_NS_PER_S);
    struct tm parts;
    if (utc_ns <= 0 || !gmtime_r(&seconds, &parts))
        return json_null();
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + n, sizeof text - n, ".%09dZ", (int)(utc_ns % CERTIFICATE_NS_PER_S));
    return json_pack("{s:I, s:s}", "utc_ns", (json_int_t)utc_ns, "utc", text);
}

/* ---- all of it ---- */

static json_t *datasets_json(const d7_reader *reader) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < d7_reader_n_datasets(reader); i++) {
        d7_dataset_info d;
        if (d7_reader_dataset(reader, (uint32_t)i, &d) == 0)
            json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "name", d.name, "type",
                                                  d7_type_name(d.type), "items", (json_int_t)d.items));
    }
    return list;
}

static json_t *text_json(const d7_reader *reader, const char *key) {
    const char *text = d7_reader_find_attribute(reader, key);
    return text ? json_string(text) : json_null();
}

static json_t *number_json(const d7_reader *reader, const char *key) {
    const char *text = d7_reader_find_attribute(reader, key);
    return text ? json_integer((json_int_t)strtoull(text, NULL, 10)) : json_null();
}

static json_t *file_json(const char *name, const char *suffix, const pd_certificate_file *file) {
    char text[PD_FILE_NAME_BYTES];
    snprintf(text, sizeof text, "%s.photons%s", name, suffix);
    return json_pack("{s:s, s:I, s:s}", "name", text, "bytes", (json_int_t)file->bytes, "sha256",
                     file->sha256);
}

static json_t *certificate_pack(const d7_reader *reader, const char *name, const pd_certificate_files *files,
                                const certificate_records *r) {
    json_t *checksums =
        files->has_checksums ? file_json(name, D7_CHECKSUMS_SUFFIX, &files->checksums) : json_null();
    return json_pack("{s:i, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:O, s:o}",
                     "certificate", PD_CERTIFICATE_VERSION, "file", file_json(name, "", &files->photons),
                     "checksums", checksums, "name", name, "run", text_json(reader, "photond.run"), "part",
                     number_json(reader, "photond.part"), "producer", text_json(reader, "photond.producer"),
                     "sequence", number_json(reader, "photond.sequence"), "software",
                     text_json(reader, "photond.software"), "configuration",
                     text_json(reader, "photond.configuration"), "start", moment_json(r->first_utc), "end",
                     moment_json(r->last_utc), "datasets", datasets_json(reader), "markers",
                     (json_int_t)r->n_markers, "gaps", r->gaps, "clock", clock_json(reader, r));
}

static json_t *certificate_of(const d7_reader *reader, const char *name, const pd_certificate_files *files,
                              pd_error *err) {
    certificate_records records;
    json_t *json = NULL;
    if (d7_reader_state(reader) != D7_STATE_CLOSED || !d7_reader_find_attribute(reader, "photond.run")) {
        pd_error_set(err, "%s.photons: it is not a closed file of a run", name);
        return NULL;
    }
    if (records_read(&records, reader) == 0)
        json = certificate_pack(reader, name, files, &records);
    records_free(&records);
    if (!json)
        pd_error_set(err, "%s.photons: out of memory, or an attribute of ours is no text", name);
    return json;
}

json_t *pd_certificate_json(const pd_datadir *dir, const char *name, const pd_certificate_files *files,
                            pd_error *err) {
    char path[PATH_MAX];
    d7_error why = {.text = ""};
    d7_reader *reader;
    d7_reader_options options;
    d7_reader_options_init(&options);
    options.io = pd_datadir_io(dir);
    pd_datadir_file_path(dir, name, path);
    if (d7_reader_open(&reader, path, &options, &why) != 0) {
        pd_error_set(err, "%s", why.text);
        return NULL;
    }
    json_t *json = certificate_of(reader, name, files, err);
    d7_reader_free(reader);
    return json;
}

char *pd_certificate_text(const json_t *certificate, size_t *ret_bytes) {
    char *text = json_dumps(certificate, JSON_INDENT(2));
    size_t n = text ? strlen(text) : 0;
    char *longer = text ? realloc(text, n + 2) : NULL;
    if (!longer) {
        free(text);
        return NULL;
    }
    memcpy(longer + n, "\n", 2);
    *ret_bytes = n + 1;
    return longer;
}
