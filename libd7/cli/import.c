/* d7 import: a recording of another instrument as a .photons file.
 *
 * PicoQuant's PTU files, in one pass from front to back. What is whole of a file that was cut is imported, and the exit
 * says that it was not all. Which tag, record and number becomes what is in docs/exchange.md. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/pool.h"
#include "cli/progress.h"
#include "import.h"
#include "result.h"

enum { OPTION_OVERWRITE = 256, OPTION_SYNC_RATE };

typedef struct import_options {
    const command *self;
    const char *output;
    bool overwrite;
    double sync_rate_hz; /* 0: as the header says */
} import_options;

static bool import_option(void *ctx, int option, const char *argument) {
    import_options *o = ctx;
    char *end;
    switch (option) {
    case 'o':
        o->output = argument;
        return true;
    case OPTION_OVERWRITE:
        o->overwrite = true;
        return true;
    default:
        o->sync_rate_hz = strtod(argument, &end);
        if (*end == 0 && isfinite(o->sync_rate_hz) && o->sync_rate_hz > 0)
            return true;
        command_fail(o->self, "--sync-rate takes pulses a second, not %s", argument);
        return false;
    }
}

/* ---- reading ---- */

static int64_t read_file(void *ctx, void *buffer, size_t bytes) {
    const int *fd = ctx;
    ssize_t n = read(*fd, buffer, bytes);
    return n < 0 ? -errno : n;
}

static int import_fault(const import_job *job, const ptu_fault *fault) {
    return command_fail(job->self, "%s: byte %" PRIu64 ": %s", job->path, fault->offset, fault->text);
}

static int open_input(import_job *job) {
    struct stat st;
    result_source(job->path);
    job->fd = open(job->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (job->fd < 0 || fstat(job->fd, &st) != 0)
        return command_fail(job->self, "%s: cannot be opened: %s", job->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return command_fail(job->self, "%s: is %s, not a file", job->path,
                            S_ISDIR(st.st_mode) ? "a folder" : "a pipe or a device");
    job->file_bytes = (uint64_t)st.st_size;
    job->in = (ptu_input){.ctx = &job->fd, .read = read_file};
    return 0;
}

static int read_header(import_job *job, double sync_rate_hz) {
    ptu_fault fault;
    int rc = ptu_read_header(&job->in, import_take_tag, &job->attributes, &job->header, &fault);
    if (rc == -1)
        return import_fault(job, &fault);
    if (rc != 0)
        return command_fail(job->self, "out of memory");
    const ptu_format *f = job->header.format;
    if (f->t3 && sync_rate_hz > 0)
        job->header.global_resolution_s = 1 / sync_rate_hz;
    if (!(job->header.global_resolution_s > 0) || !(job->header.global_resolution_s < 1))
        return command_fail(job->self, "%s: the header does not tell %s (MeasDesc_GlobalResolution)%s",
                            job->path, f->t3 ? "how long it is from sync to sync" : "the unit of the times",
                            f->t3 ? "; --sync-rate does" : "");
    job->decoder = (ptu_decoder){
        .format = f, .max_time = (uint64_t)((double)PTU_SECONDS_MAX / job->header.global_resolution_s)};
    return 0;
}

/* ---- what is not as it should be ---- */

static void __attribute__((format(printf, 2, 3))) import_problem(import_job *job, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cli_write_printable(stderr, job->path, strlen(job->path));
    fputs(": ", stderr);
    cli_vprint_line(stderr, format, args);
    va_end(args);
    job->problems = true;
}

static uint64_t record_offset(const import_job *job, uint64_t record) {
    return job->header.records_offset + 4 * record;
}

/* How many records are wanted still; all that come where the header does not say. */
static uint64_t records_left(const import_job *job) {
    bool counted = job->header.has_n_records && job->header.n_records > 0;
    return counted ? job->header.n_records - job->records : UINT64_MAX;
}

static void check_end(import_job *job, size_t odd_bytes) {
    const ptu_header *h = &job->header;
    uint64_t left = records_left(job);
    char beyond;
    if (left == UINT64_MAX && job->records > 0)
        import_problem(
            job,
            "the header does not count the records, as where a recording was not ended; all %" PRIu64
            " were taken",
            job->records);
    else if (left != UINT64_MAX && left > 0)
        import_problem(job, "byte %" PRIu64 ": the file was cut: it holds %" PRIu64 " of %" PRIu64 " records",
                       record_offset(job, job->records) + odd_bytes, job->records, h->n_records);
    else if (ptu_read(&job->in, &beyond, 1) == 1)
        import_problem(job,
                       "byte %" PRIu64 ": bytes follow the %" PRIu64
                       " records that the header counts; they were not taken",
                       record_offset(job, job->records), job->records);
    if (odd_bytes && left == UINT64_MAX)
        import_problem(job, "byte %" PRIu64 ": the last record is not whole",
                       record_offset(job, job->records));
}

static void check_records(import_job *job) {
    const ptu_decoder *d = &job->decoder;
    if (d->unknown)
        import_problem(job, "%" PRIu64 " special records of an unknown kind were left out", d->unknown);
    if (d->odd_channels)
        import_problem(
            job, "%" PRIu64 " photons are of channels that this instrument does not have; they were taken",
            d->odd_channels);
    if (job->header.format->t3 && !(job->header.resolution_s > 0))
        import_problem(job, "the header does not tell the unit of the micro times (MeasDesc_Resolution)");
}

/* ---- from records to columns ---- */

static int import_batches(import_job *job, uint8_t *records, cli_progress *bar) {
    for (uint64_t left; (left = records_left(job)) > 0;) {
        size_t want = left < PTU_BATCH_RECORDS ? (size_t)left : PTU_BATCH_RECORDS;
        int64_t got = ptu_read(&job->in, records, 4 * want);
        if (got < 0)
            return command_fail(job->self, "%s: byte %" PRIu64 ": cannot be read: %s", job->path,
                                job->in.offset, strerror((int)-got));
        size_t n = (size_t)got / 4, decoded = ptu_decode(&job->decoder, records, n, &job->events);
        int code = import_write(job);
        job->records += decoded;
        if (code != 0)
            return code;
        if (decoded < n) {
            import_problem(
                job,
                "byte %" PRIu64 ": record %" PRIu64
                " would come more than 49 days after the first; it and what follows were not taken",
                record_offset(job, job->records), job->records);
            return 0;
        }
        if (n < want) {
            check_end(job, (size_t)got % 4);
            return 0;
        }
        if (cli_stopped)
            return command_stopped_code(job->self);
        cli_progress_update(bar, job->in.offset);
    }
    check_end(job, 0);
    return 0;
}

static int import_records(import_job *job) {
    cli_progress bar;
    uint8_t *records = malloc(4 * PTU_BATCH_RECORDS);
    if (!records || import_reserve(job) != 0) {
        free(records);
        return command_fail(job->self, "out of memory");
    }
    cli_progress_start(&bar, "importing", "B", job->file_bytes);
    int code = import_batches(job, records, &bar);
    cli_progress_end(&bar, job->in.offset);
    free(records);
    check_records(job);
    return code;
}

static void print_summary(const import_job *job, const char *output) {
    const ptu_decoder *d = &job->decoder;
    cli_print_line(stdout, "%s: %s, %" PRIu64 " photons and %" PRIu64 " markers in %.6g s", output,
                   job->header.format->name, d->photons, d->markers,
                   (double)job->last_time * job->header.global_resolution_s);
}

static int import_to(import_job *job, const import_options *o) {
    result_file result;
    cli_pool *pool = NULL;
    int code = result_begin(job->self, o->output, o->overwrite, &result);
    if (code == 0) {
        pool = cli_pool_new(0);
        code = import_create(job, result.temporary, pool);
    }
    if (code == 0)
        code = import_records(job);
    if (code == 0)
        code = import_close(job);
    d7_writer_free(job->writer);
    cli_pool_free(pool);
    if (code != 0) {
        result_drop(&result);
        return code;
    }
    code = result_commit(&result);
    if (code != 0)
        return code;
    print_summary(job, o->output);
    return job->problems ? CLI_PROBLEMS : CLI_OK;
}

static int import_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"overwrite", no_argument, NULL, OPTION_OVERWRITE},
                                            {"sync-rate", required_argument, NULL, OPTION_SYNC_RATE},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    import_options o = {.self = self};
    int code = command_options(self, argc, argv, options, import_option, &o, 1);
    if (code >= 0)
        return code;
    if (!o.output)
        return command_fail(self, "-o OUT.photons is missing");
    import_job job = {.self = self, .path = argv[optind], .fd = -1};
    code = open_input(&job);
    if (code == 0)
        code = read_header(&job, o.sync_rate_hz);
    if (code == 0)
        code = import_to(&job, &o);
    import_release(&job);
    if (job.fd >= 0)
        close(job.fd);
    return code;
}

const command command_import = {
    .name = "import",
    .summary = "a PicoQuant .ptu recording as a .photons file",
    .help =
        "usage: d7 import FILE.ptu -o OUT.photons [--sync-rate HZ] [--overwrite]\n\n"
        "Makes a .photons file of a PicoQuant recording: T2 and T3 files of PicoHarp, HydraHarp, TimeHarp "
        "260 "
        "and\n"
        "MultiHarp. T3: /photons/dt, /photons/aat (number of the sync), /photons/channel and /photons/ms; "
        "T2:\n"
        "/tags/time (ps) and /tags/channel. Markers go to /markers, the tags of the header to attributes "
        "ptu.NAME.\n"
        "Of a file that was cut, what is whole is imported, and the exit status is 1.\n\n"
        "  -o, --output OUT  the file to make\n"
        "  --overwrite       replace it if it is there\n"
        "  --sync-rate HZ    of a T3 file: laser pulses a second, in place of what its header says\n"
        "  --help            this text\n\n"
        "Exit status: 0 good, 1 the recording has problems (what is whole was imported), 2 usage, or nothing "
        "could\n"
        "be imported.\n\n"
        "Examples:\n"
        "  d7 import scan.ptu -o scan.photons\n"
        "  d7 import scan.ptu -o scan.photons && d7 rate scan.photons -o rate.png\n",
    .run = import_run,
    .letters = "o:",
    .makes = true,
};
