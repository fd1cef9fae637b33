#include "certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "proof/digest.h"
#include "proof/signature.h"
#include "result.h"

enum { CERTIFICATE_VERSION = 1, CERTIFICATE_BYTES_MAX = 64 << 20 };

typedef struct check {
    const command *self;
    const char *path;
    const d7_reader *r;
    d7_problem_fn *tell;
    void *ctx;
    certificate_result *result;
} check;

__attribute__((format(printf, 3, 4))) static void check_tell(check *c, d7_problem_code code,
                                                             const char *format, ...) {
    d7_problem p = {.code = code,
                    .severity = code == D7_PROBLEM_CERTIFICATE_FILE ? D7_STYLE : D7_DAMAGE,
                    .offset = D7_NO_OFFSET,
                    .dataset_id = D7_NO_DATASET};
    va_list args;
    va_start(args, format);
    vsnprintf(p.text, sizeof p.text, format, args);
    va_end(args);
    c->result->n_problems[p.severity == D7_STYLE]++;
    c->tell(c->ctx, &p);
}

/* ---- reading ---- */

/* Reads a file whole: *ret is to be freed, NULL when there is none. Returns 0, or -1 with errno. */
static int read_whole(const char *path, char **ret, size_t *ret_bytes) {
    struct stat there;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *ret = NULL;
    *ret_bytes = 0;
    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    bool usual = fstat(fd, &there) == 0 && S_ISREG(there.st_mode) && there.st_size <= CERTIFICATE_BYTES_MAX;
    char *text = usual ? malloc((size_t)there.st_size + 1) : NULL;
    size_t n = 0;
    for (ssize_t got = 1; text && got > 0 && n<(size_t)there.st_size; n += got> 0 ? (size_t)got : 0)
        got = pread(fd, text + n, (size_t)there.st_size - n, (off_t)n);
    close(fd);
    if (!text || n < (size_t)there.st_size) {
        free(text);
        errno = usual ? EIO : EFBIG;
        return -1;
    }
    *ret = text;
    *ret_bytes = n;
    return 0;
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* SHA-256 of a file. Returns 0; -1: it cannot be read, with errno; an exit code after saying why it was stopped. */
static int digest_of(check *c, const char *path, uint64_t *ret_bytes, char hex[PROOF_HEX_BYTES]) {
    cli_progress bar;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    cli_progress_start(&bar, "proving", "B", 0);
    int failed = proof_sha256_file(fd, ret_bytes, hex, command_progress, &bar);
    cli_progress_end(&bar, bar.total);
    close(fd);
    errno = -failed;
    return failed == -ECANCELED ? command_stopped_code(c->self) : failed ? -1 : 0;
}

/* ---- what it says ---- */

static int check_bytes(check *c, const json_t *certificate) {
    const json_t *file = json_object_get(certificate, "file");
    uint64_t bytes = (uint64_t)json_integer_value(json_object_get(file, "bytes")), found;
    char hex[PROOF_HEX_BYTES];
    if (bytes != d7_reader_file_bytes(c->r)) {
        check_tell(c, D7_PROBLEM_CERTIFICATE, "it has %" PRIu64 " bytes, was certified with %" PRIu64,
                   d7_reader_file_bytes(c->r), bytes);
        return 0;
    }
    int code = digest_of(c, c->path, &found, hex);
    if (code < 0)
        return command_fail(c->self, "%s: cannot be read: %s", c->path, strerror(errno));
    if (code == 0 && (found != bytes || strcmp(hex, text_of(file, "sha256")) != 0))
        check_tell(c, D7_PROBLEM_CERTIFICATE,
                   "its bytes are not those that were certified: SHA-256 %s, certified %.64s", hex,
                   text_of(file, "sha256"));
    return code;
}

/* The checksums beside it are evidence only. */
static int check_checksums(check *c, const json_t *certificate) {
    const json_t *checksums = json_object_get(certificate, "checksums");
    char hex[PROOF_HEX_BYTES];
    uint64_t found;
    if (!json_is_object(checksums))
        return 0;
    char *path = command_beside(c->path, "", D7_CHECKSUMS_SUFFIX);
    if (!path)
        return command_fail(c->self, "out of memory");
    int code = digest_of(c, path, &found, hex);
    free(path);
    if (code < 0)
        check_tell(c, D7_PROBLEM_CERTIFICATE_FILE, "the certified file of checksums cannot be read: %s",
                   strerror(errno));
    else if (code == 0 && strcmp(hex, text_of(checksums, "sha256")) != 0)
        check_tell(c, D7_PROBLEM_CERTIFICATE_FILE, "the file of checksums is not the one that was certified");
    return code < 0 ? 0 : code;
}

static const json_t *find_dataset(const json_t *datasets, const char *name) {
    size_t i;
    const json_t *dataset;
    json_array_foreach(datasets, i, dataset) {
        if (strcmp(text_of(dataset, "name"), name) == 0)
            return dataset;
    }
    return NULL;
}

static void check_datasets(check *c, const json_t *certificate) {
    const json_t *datasets = json_object_get(certificate, "datasets");
    size_t n = d7_reader_n_datasets(c->r);
    if (json_array_size(datasets) != n)
        check_tell(c, D7_PROBLEM_CERTIFICATE, "it has %zu datasets, was certified with %zu", n,
                   json_array_size(datasets));
    for (size_t i = 0; i < n; i++) {
        d7_dataset_info d;
        if (d7_reader_dataset(c->r, (uint32_t)i, &d) != 0)
            continue;
        const json_t *said = find_dataset(datasets, d.name);
        uint64_t items = (uint64_t)json_integer_value(json_object_get(said, "items"));
        if (!said || items != d.items || strcmp(text_of(said, "type"), d7_type_name(d.type)) != 0)
            check_tell(c, D7_PROBLEM_CERTIFICATE,
                       "dataset %.100s holds %" PRIu64 " items, was certified with %" PRIu64, d.name, d.items,
                       items);
    }
}

/* What the file says of itself. */
static void check_attribute(check *c, const json_t *certificate, const char *member, const char *key) {
    const json_t *said = json_object_get(certificate, member);
    const char *value = d7_reader_find_attribute(c->r, key);
    char number[24];
    const char *text = json_string_value(said);
    if (json_is_integer(said)) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(said));
        text = number;
    }
    if (!value != !text || (value && strcmp(value, text) != 0))
        check_tell(c, D7_PROBLEM_CERTIFICATE, "its %s is %.100s, was certified as %.100s", member,
                   value ? value : "not told", text ? text : "not told");
}

static bool is_gap(const d7_attribute *a) {
    return strncmp(a->key, "photond.gap.", 12) == 0;
}

static void check_gaps(check *c, const json_t *certificate) {
    const json_t *gaps = json_object_get(certificate, "gaps");
    size_t n = 0;
    bool same = true;
    for (size_t i = 0; i < d7_reader_n_attributes(c->r); i++) {
        d7_attribute a;
        if (d7_reader_attribute(c->r, i, &a) != 0 || !is_gap(&a))
            continue;
        json_t *found = json_loads(a.value, JSON_DECODE_ANY, NULL);
        const json_t *said = json_array_get(gaps, n++);
        same &= found ? said && json_equal(found, said) != 0 : json_is_null(said);
        json_decref(found);
    }
    if (!same || n != json_array_size(gaps))
        check_tell(c, D7_PROBLEM_CERTIFICATE, "its gaps are not those that were certified");
}

static int check_members(check *c, const json_t *certificate) {
    static const char *const said[][2] = {
        {"run", "photond.run"},           {"producer", "photond.producer"},
        {"part", "photond.part"},         {"sequence", "photond.sequence"},
        {"software", "photond.software"}, {"configuration", "photond.configuration"}};
    uint64_t before = c->result->n_problems[0];
    int code = check_bytes(c, certificate);
    if (code == 0)
        code = check_checksums(c, certificate);
    if (code)
        return code;
    check_datasets(c, certificate);
    check_gaps(c, certificate);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        check_attribute(c, certificate, said[i][0], said[i][1]);
    c->result->agrees = c->result->n_problems[0] == before;
    return 0;
}

static int check_text(check *c, const char *text, size_t bytes) {
    json_error_t where;
    json_t *certificate = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    json_int_t version = json_integer_value(json_object_get(certificate, "certificate"));
    int code = 0;
    if (!certificate)
        check_tell(c, D7_PROBLEM_CERTIFICATE_FILE, "the certificate is no JSON: line %d: %s", where.line,
                   where.text);
    else if (version != CERTIFICATE_VERSION)
        check_tell(c, D7_PROBLEM_CERTIFICATE_FILE, "the certificate is none, or of a later version");
    else
        code = check_members(c, certificate);
    json_decref(certificate);
    return code;
}

/* ---- signature ---- */

static int check_signature(check *c, const char *beside, const char *text, size_t bytes,
                           const char *key_path) {
    char why[PROOF_WHY_BYTES], *path = NULL, *signature = NULL;
    size_t n = 0;
    proof_key *key = NULL;
    c->result->asked = true;
    if (proof_key_read_public(&key, key_path, why) != 0)
        return command_fail(c->self, "%s", why);
    int failed = asprintf(&path, "%s.sig", beside) < 0   ? ENOMEM
                 : read_whole(path, &signature, &n) != 0 ? errno
                                                         : 0;
    if (failed || !signature)
        check_tell(c, D7_PROBLEM_SIGNATURE, "the certificate's signature %s",
                   failed ? "cannot be read" : "is not there: nobody signed it");
    else if (!proof_signed(key, text, bytes, (const uint8_t *)signature, n))
        check_tell(c, D7_PROBLEM_SIGNATURE, "this key did not sign the certificate as it is now");
    else
        c->result->signed_by_key = true;
    free(signature);
    free(path);
    proof_key_free(key);
    return 0;
}

static int check_beside(check *c, const char *beside, const char *key) {
    char *text = NULL;
    size_t bytes = 0;
    if (read_whole(beside, &text, &bytes) != 0) {
        check_tell(c, key ? D7_PROBLEM_SIGNATURE : D7_PROBLEM_CERTIFICATE_FILE,
                   "the certificate cannot be read: %s", strerror(errno));
        return 0;
    }
    if (!text)
        return 0;
    c->result->there = true;
    int code = key ? check_signature(c, beside, text, bytes, key) : 0;
    if (code == 0)
        code = check_text(c, text, bytes);
    free(text);
    return code;
}

int certificate_check(const command *self, const char *path, const d7_reader *r, const char *key,
                      d7_problem_fn *tell, void *ctx, certificate_result *ret) {
    check c = {.self = self, .path = path, .r = r, .tell = tell, .ctx = ctx, .result = ret};
    *ret = (certificate_result){0};
    char *beside = certificate_beside(path);
    int code = beside ? check_beside(&c, beside, key) : 0;
    free(beside);
    if (code == 0 && key && !ret->there && ret->n_problems[0] == 0) {
        ret->asked = true;
        check_tell(&c, D7_PROBLEM_SIGNATURE, "there is no certificate beside the file");
    }
    return code;
}
