/* export_columns DATA_DIR NAME COLUMNS [PIXELS [KEY=VALUE...]]: bins the LINCam columns in a folder
 * (x.u16, y.u16, dt.u16, ms.u64) and exports them as DATA_DIR/NAME.daf, three times on the way; the
 * seconds it takes go to standard output. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporter.h"
#include "summary.h"

enum { TILE = 8192, N_EXPORTS = 3 };

static const pd_dataset datasets[] = {{"/photons/x", D7_UINT16, "photons", PD_ROLE_POSITION_X, "", 1},
                                      {"/photons/y", D7_UINT16, "photons", PD_ROLE_POSITION_Y, "", 1},
                                      {"/photons/dt", D7_UINT16, "photons", PD_ROLE_MICRO_TIME, "", 1},
                                      {"/photons/ms", D7_UINT64, "ms", PD_ROLE_MS_INDEX, "", 1}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static bool done;

static void fail(const char *why) {
    fprintf(stderr, "export_columns: %s\n", why);
    exit(1);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void *load(const char *folder, const char *name, size_t item, size_t *n) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        fail(path);
    long bytes = ftell(f);
    rewind(f);
    void *values = bytes < 0 ? NULL : malloc((size_t)bytes + 1);
    if (!values || fread(values, 1, (size_t)bytes, f) != (size_t)bytes)
        fail(path);
    fclose(f);
    *n = (size_t)bytes / item;
    return values;
}

static void on_done(pd_export_job *job) {
    (void)job;
    pthread_mutex_lock(&lock);
    done = true;
    pthread_cond_signal(&finished);
    pthread_mutex_unlock(&lock);
}

static double export(pd_exporter *exporter, pd_export_target *target, const pd_summary *s,
                     pd_snapshot *snapshot, uint64_t number) {
    pd_error err;
    if (pd_summary_freeze(s, number, snapshot, &err) != 0)
        fail(err.text);
    pd_export_job job = {
        .target = target, .snapshot = snapshot, .final = number == N_EXPORTS, .done = on_done};
    done = false;
    if (pd_exporter_submit(exporter, &job) != 0)
        fail("the exporter takes no job");
    pthread_mutex_lock(&lock);
    while (!done)
        pthread_cond_wait(&finished, &lock);
    pthread_mutex_unlock(&lock);
    if (job.result != 0)
        fail(job.error.text);
    return (double)job.elapsed_ns * 1e-9;
}

static pd_summary *make_summary(const char *name, int n_arguments, char **arguments) {
    static pd_attribute attributes[16];
    pd_summary_setup setup = {.name = name,
                              .datasets = datasets,
                              .n_datasets = 4,
                              .attributes = attributes,
                              .options = {.enabled = true,
                                          .image = true,
                                          .pixels = n_arguments > 0 ? (uint32_t)atoi(arguments[0]) : 512,
                                          .decay = true,
                                          .rate = true,
                                          .max_seconds = 86400}};
    for (int i = 1; i < n_arguments && i < 16; i++) {
        char *equals = strchr(arguments[i], '=');
        if (!equals)
            fail("an attribute is KEY=VALUE");
        *equals = '\0';
        attributes[setup.n_attributes++] = (pd_attribute){arguments[i], equals + 1};
    }
    pd_summary *s = NULL;
    pd_error err;
    if (pd_summary_create(&s, &setup, &err) != 0)
        fail(err.text);
    return s;
}

int main(int argc, char **argv) {
    if (argc < 4)
        fail("usage: export_columns DATA_DIR NAME COLUMNS [PIXELS [KEY=VALUE...]]");
    size_t n, n_ms;
    uint16_t *x = load(argv[3], "x.u16", 2, &n), *y = load(argv[3], "y.u16", 2, &n),
             *dt = load(argv[3], "dt.u16", 2, &n);
    uint64_t *ms = load(argv[3], "ms.u64", 8, &n_ms);
    pd_summary *s = make_summary(argv[2], argc - 4, argv + 4);

    pd_exporter *exporter = NULL;
    pd_exporter_options options = {
        .data_dir = argv[1], .file_mode = 0644, .dir_mode = 0755, .gid = -1, .level = 3};
    options.data_fd = open(argv[1], O_RDONLY | O_DIRECTORY);
    pd_export_target target;
    pd_snapshot snapshot;
    pd_error err;
    if (pd_exporter_start(&exporter, &options, &err) != 0)
        fail(err.text);
    pd_export_target_init(&target, argv[2]);
    pd_snapshot_init(&snapshot);

    double binning = 0, exporting = 0;
    const void *column_ms[] = {ms};
    pd_summary_bin(s, 1, column_ms, 0, n_ms);
    for (size_t i = 0, number = 1; i < n || number <= N_EXPORTS; number++) {
        size_t end = number == N_EXPORTS ? n : n * number / N_EXPORTS;
        double from = seconds();
        for (; i < end; i += TILE < end - i ? TILE : end - i) {
            const void *columns[] = {x + i, y + i, dt + i};
            pd_summary_bin(s, 0, columns, i, TILE < end - i ? TILE : end - i);
        }
        binning += seconds() - from;
        exporting += export(exporter, &target, s, &snapshot, number);
    }
    printf("{\"photons\": %zu, \"binning_s\": %.6f, \"export_s\": %.6f}\n", n, binning,
           exporting / N_EXPORTS);
    pd_exporter_stop(exporter);
    pd_export_target_clear(&target);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
    free(x);
    free(y);
    free(dt);
    free(ms);
    return 0;
}
