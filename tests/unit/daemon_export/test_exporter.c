/* Exports: whole or absent, whoever looks and whatever fails. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture.h"
#include "exporter.h"
#include "log.h"
#include "testing.h"
#include "tree.h"

enum { SIDE = 64, N_SECONDS = 3000, PATH_BYTES = 256 };

/* ---- a data folder, an exporter in it, one run ---- */

typedef struct fixture {
    char dir[64];
    pd_exporter_options options;
    pd_exporter *exporter;
    pd_export_target target;
    pd_snapshot snapshot;
    pthread_mutex_t lock;
    pthread_cond_t finished;
    unsigned n_done;
} fixture;

static void start(fixture *f) {
    pd_error err;
    if (pd_exporter_start(&f->exporter, &f->options, &err) != 0)
        fail_msg("%s", err.text);
}

static void stop(fixture *f) {
    pd_exporter_stop(f->exporter);
    f->exporter = NULL;
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->dir, "/tmp/photond-export-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->options = (pd_exporter_options){.data_dir = f->dir,
                                       .data_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                       .file_mode = 0640,
                                       .dir_mode = 0750,
                                       .gid = -1,
                                       .grace_ms = 60000,
                                       .codec = PD_CODEC_ZSTD,
                                       .level = 3};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->finished, NULL);
    pd_snapshot_init(&f->snapshot);
    pd_export_target_init(&f->target, "run");
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    pd_exporter_stop(f->exporter);
    pd_snapshot_clear(&f->snapshot);
    pd_export_target_clear(&f->target);
    if (f->options.data_fd >= 0)
        close(f->options.data_fd);
    pd_error err;
    assert_int_equal(pd_tree_remove(AT_FDCWD, f->dir, &err), 0);
    pthread_cond_destroy(&f->finished);
    pthread_mutex_destroy(&f->lock);
    free(f);
    return 0;
}

/* Every value of export k is k: a mix of two shows. */
static void fill(pd_snapshot *s, uint64_t number) {
    pd_snapshot_reset(s);
    s->export_number = number;
    assert_int_equal(pd_snapshot_string(s, "name", "run"), 0);
    assert_int_equal(pd_snapshot_uint64(s, "export", number), 0);
    assert_int_equal(pd_snapshot_axis(s, "y_pixel", 0, 8, SIDE), 0);
    assert_int_equal(pd_snapshot_axis(s, "x_pixel", 0, 8, SIDE), 0);
    assert_int_equal(pd_snapshot_axis(s, "second", 0, 1, N_SECONDS), 0);
    uint32_t *image = pd_snapshot_matrix(s, "y_pixel", "x_pixel", "intensity", DAF_UINT32, SIDE * SIDE);
    uint64_t *counts = pd_snapshot_vector(s, "second", "counts", DAF_UINT64, N_SECONDS);
    assert_non_null(image);
    assert_non_null(counts);
    for (size_t i = 0; i < SIDE * SIDE; i++)
        image[i] = (uint32_t)number;
    for (size_t i = 0; i < N_SECONDS; i++)
        counts[i] = number;
}

static void on_done(pd_export_job *job) {
    fixture *f = job->user;
    pthread_mutex_lock(&f->lock);
    f->n_done++;
    pthread_cond_signal(&f->finished);
    pthread_mutex_unlock(&f->lock);
}

/* Submits an export of that number and waits for it; its outcome is in *job. */
static int export_job(fixture *f, pd_export_job *job, uint64_t number, bool final) {
    fill(&f->snapshot, number);
    *job = (pd_export_job){
        .target = &f->target, .snapshot = &f->snapshot, .final = final, .done = on_done, .user = f};
    pthread_mutex_lock(&f->lock);
    unsigned before = f->n_done;
    assert_int_equal(pd_exporter_submit(f->exporter, job), 0);
    while (f->n_done == before)
        pthread_cond_wait(&f->finished, &f->lock);
    pthread_mutex_unlock(&f->lock);
    return job->result;
}

static void export_good(fixture *f, uint64_t number, bool final) {
    pd_export_job job;
    if (export_job(f, &job, number, final) != 0)
        fail_msg("%s", job.error.text);
    assert_true(job.bytes > 100);
    assert_int_equal(job.n_skipped, 0);
}

static const char *path_of(const fixture *f, const char *name, char path[PATH_BYTES]) {
    snprintf(path, PATH_BYTES, "%s/%s", f->dir, name);
    return path;
}

static size_t count_entries(const fixture *f, const char *folder) {
    char path[PATH_BYTES];
    DIR *dir = opendir(path_of(f, folder, path));
    assert_non_null(dir);
    size_t n = 0;
    struct dirent *entry;
    while ((entry = readdir(dir)))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static size_t count_hidden(const fixture *f) {
    return count_entries(f, ".photond/exports");
}

/* ---- reading ---- */

static uint64_t read_number(daf *d) {
    daf_scalar scalar;
    daf_error err;
    if (daf_get_scalar(d, &scalar, "export", &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(scalar.type, DAF_UINT64);
    return scalar.value.u;
}

/* The value that all values have. */
static uint64_t read_all(daf *d) {
    daf_array *image, *counts;
    daf_error err;
    if (daf_get_matrix(d, &image, "y_pixel", "x_pixel", "intensity", &err) != 0 ||
        daf_get_vector(d, &counts, "second", "counts", &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(daf_array_count(image), SIDE * SIDE);
    assert_int_equal(daf_array_count(counts), N_SECONDS);
    const uint32_t *pixels = daf_array_values(image);
    const uint64_t *seconds = daf_array_values(counts);
    for (size_t i = 0; i < SIDE * SIDE; i++)
        assert_int_equal(pixels[i], pixels[0]);
    for (size_t i = 0; i < N_SECONDS; i++)
        assert_int_equal(seconds[i], pixels[0]);
    uint64_t number = seconds[0];
    daf_array_free(image);
    daf_array_free(counts);
    return number;
}

static daf *open_named(const fixture *f, const char *name) {
    char path[PATH_BYTES];
    daf *d = NULL;
    daf_error err;
    if (daf_open(&d, path_of(f, name, path), "r", NULL, &err) != 0)
        fail_msg("%s", err.text);
    return d;
}

static daf *open_export(const fixture *f) {
    return open_named(f, "run.daf");
}

static void check_named(const fixture *f, const char *name, uint64_t number) {
    daf *d = open_named(f, name);
    assert_int_equal(read_number(d), number);
    assert_int_equal(read_all(d), number);
    daf_free(d);
}

static void check_shown(const fixture *f, uint64_t number) {
    check_named(f, "run.daf", number);
}

/* ---- tests ---- */

static void an_export_reads_back(void **state) {
    fixture *f = *state;
    start(f);
    export_good(f, 1, false);
    check_shown(f, 1);
    export_good(f, 2, false);
    export_good(f, 3, true);
    check_shown(f, 3);
    daf *d = open_export(f);
    daf_info info;
    assert_int_equal(daf_matrix_info(d, &info, "y_pixel", "x_pixel", "intensity", NULL), 0);
    assert_true(info.packed);
    assert_string_equal(info.compression, "zstd");
    daf_free(d);
    pd_exporter_counters counters;
    pd_exporter_read_counters(f->exporter, &counters);
    assert_int_equal(counters.exports, 3);
    assert_int_equal(counters.failures, 0);
    assert_true(counters.bytes > 0 && counters.longest_ns > 0 && counters.elapsed_ns >= counters.longest_ns);
}

static bool is_there(const fixture *f, const char *name) {
    char path[PATH_BYTES];
    struct stat st;
    return lstat(path_of(f, name, path), &st) == 0;
}

/* The Zarr tree and the directory show the same export; the tree's payloads are the directory's files. */
static void exports_are_zarr_trees_when_asked(void **state) {
    fixture *f = *state;
    for (int links = 0; links < 2; links++) {
        f->options.links = links;
        f->options.format = PD_FORMAT_BOTH;
        pd_export_target_clear(&f->target);
        pd_export_target_init(&f->target, links ? "linked" : "run");
        const char *directory = links ? "linked.daf" : "run.daf",
                   *tree = links ? "linked.daf.zarr" : "run.daf.zarr";
        start(f);
        for (uint64_t k = 1; k <= 3; k++) {
            export_good(f, k, k == 3);
            check_named(f, directory, k);
            check_named(f, tree, k);
        }
        stop(f);
        assert_int_equal(count_hidden(f), 0);
        check_named(f, directory, 3);
        check_named(f, tree, 3);
        char path[PATH_BYTES];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s/vectors/second/counts.zip", f->dir, directory);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_nlink, 2);
    }
    f->options.links = false;
    f->options.format = PD_FORMAT_ZARR;
    pd_export_target_clear(&f->target);
    pd_export_target_init(&f->target, "alone");
    start(f);
    export_good(f, 4, false);
    export_good(f, 5, true);
    stop(f);
    check_named(f, "alone.daf.zarr", 5);
    assert_false(is_there(f, "alone.daf"));
    assert_int_equal(count_hidden(f), 0);
}

/* What a killed daemon was making of them. */
static void half_made_zarr_trees_are_removed(void **state) {
    static const char *const left[] = {".photond/exports/run.7", ".photond/exports/run.7.daf.zarr",
                                       ".photond/exports/.run.7.daf.zarr.new"};
    fixture *f = *state;
    char path[PATH_BYTES];
    pd_export_job job;
    f->options.format = PD_FORMAT_BOTH;
    start(f);
    stop(f);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(mkdir(path_of(f, left[i], path), 0700), 0);
    start(f);
    assert_int_equal(count_hidden(f), 0);

    /* One that is not ours is left alone, and the directory is exported all the same. */
    assert_int_equal(mkdir(path_of(f, "run.daf.zarr", path), 0700), 0);
    assert_int_equal(export_job(f, &job, 1, false), -1);
    assert_string_equal(job.error.text,
                        "run.daf.zarr is there already and is not of this run: it is left alone");
    check_shown(f, 1);
    assert_int_equal(count_entries(f, "run.daf.zarr"), 0);
    assert_int_equal(rmdir(path_of(f, "run.daf.zarr", path)), 0);
    export_good(f, 2, true);
    check_named(f, "run.daf.zarr", 2);
}

typedef struct watcher {
    const fixture *f;
    _Atomic bool over;
    uint64_t n_held, n_by_path, newest;
} watcher;

/* Holds a directory over several exports: what it sees is of one export. By path, equal numbers before
 * and after say the same. */
static void *watch(void *arg) {
    watcher *w = arg;
    while (!atomic_load(&w->over)) {
        daf *held = open_export(w->f);
        uint64_t number = read_number(held);
        assert_true(number >= w->newest);
        w->newest = number;
        for (int i = 0; i < 3; i++) {
            assert_int_equal(read_all(held), number);
            assert_int_equal(read_number(held), number);
            w->n_held++;
            daf *first = open_export(w->f), *second = open_export(w->f), *third = open_export(w->f);
            uint64_t before = read_number(first), seen = read_all(second), after = read_number(third);
            assert_true(before <= seen && seen <= after);
            w->n_by_path++;
            daf_free(first);
            daf_free(second);
            daf_free(third);
        }
        daf_free(held);
    }
    return NULL;
}

static void readers_see_one_export_whole_while_200_go_by(void **state) {
    fixture *f = *state;
    start(f);
    export_good(f, 1, false);
    watcher w = {.f = f};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    for (uint64_t k = 2; k <= 201; k++)
        export_good(f, k, false);
    atomic_store(&w.over, true);
    pthread_join(thread, NULL);
    assert_true(w.n_held > 0 && w.n_by_path > 0);
    check_shown(f, 201);
    assert_int_equal(count_hidden(f), 200);
    stop(f);
    assert_int_equal(count_hidden(f), 0);
    check_shown(f, 201);
}

static void a_replaced_export_is_kept_for_the_grace_time(void **state) {
    fixture *f = *state;
    f->options.grace_ms = 200;
    start(f);
    export_good(f, 1, false);
    daf *held = open_export(f);
    export_good(f, 2, false);
    assert_int_equal(read_all(held), 1);
    daf_free(held);
    for (int i = 0; i < 1000 && count_hidden(f); i++)
        usleep(10000);
    assert_int_equal(count_hidden(f), 0);
    f->options.grace_ms = 0;
    stop(f);
    start(f);
    export_good(f, 3, false);
    assert_int_equal(count_hidden(f), 0);
    check_shown(f, 3);
}

static void a_directory_of_others_is_left_alone(void **state) {
    fixture *f = *state;
    char path[PATH_BYTES], file[PATH_BYTES];
    pd_export_job job;
    capture log;
    assert_int_equal(mkdir(path_of(f, "run.daf", path), 0700), 0);
    int fd = open(path_of(f, "run.daf/mine", file), O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    start(f);
    capture_start(&log, STDERR_FILENO);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(export_job(f, &job, (uint64_t)i, i == 3), -1);
        assert_string_equal(job.error.text,
                            "run.daf is there already and is not of this run: it is left alone");
    }
    capture_end(&log);
    assert_int_equal(count_entries(f, "run.daf"), 1);
    assert_int_equal(count_hidden(f), 0);
    char *first = strstr(log.text, "warning run run: export 1 failed");
    assert_non_null(first);
    assert_null(strstr(first + 1, "warning")); /* told once */
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(path), 0);
    capture_start(&log, STDERR_FILENO);
    export_good(f, 4, false);
    capture_end(&log);
    assert_non_null(strstr(log.text, "info run run: exports succeed again"));
    check_shown(f, 4);
    pd_exporter_counters counters;
    pd_exporter_read_counters(f->exporter, &counters);
    assert_int_equal(counters.failures, 3);
    assert_int_equal(counters.exports, 1);
}

static void an_export_that_somebody_replaced_or_removed(void **state) {
    fixture *f = *state;
    char path[PATH_BYTES], aside[PATH_BYTES];
    pd_export_job job;
    start(f);
    export_good(f, 1, false);
    assert_int_equal(rename(path_of(f, "run.daf", path), path_of(f, "kept.daf", aside)), 0);
    export_good(f, 2, false); /* moved away: the next one takes the place */
    check_shown(f, 2);
    pd_error err;
    assert_int_equal(pd_tree_remove(AT_FDCWD, path, &err), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    capture log;
    capture_start(&log, STDERR_FILENO);
    assert_int_equal(export_job(f, &job, 3, false), -1);
    capture_end(&log);
    assert_int_equal(count_entries(f, "run.daf"), 0);
    assert_int_equal(rmdir(path), 0);
    export_good(f, 4, true);
    check_shown(f, 4);
}

static void a_failed_write_leaves_the_export_before(void **state) {
    fixture *f = *state;
    pd_export_job job;
    capture log;
    start(f);
    export_good(f, 1, false);
    struct rlimit was, tight;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    tight = was;
    tight.rlim_cur = 600; /* enough for scalars, not for the image */
    signal(SIGXFSZ, SIG_IGN);
    capture_start(&log, STDERR_FILENO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    int result = export_job(f, &job, 2, false);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    capture_end(&log);
    assert_int_equal(result, -1);
    assert_true(strlen(job.error.text) > 0);
    assert_int_equal(count_hidden(f), 0);
    check_shown(f, 1);
    export_good(f, 3, false);
    check_shown(f, 3);
}

static void modes_do_not_depend_on_the_umask(void **state) {
    fixture *f = *state;
    char path[PATH_BYTES];
    struct stat st;
    mode_t was = umask(0077);
    start(f);
    export_good(f, 1, false);
    umask(was);
    assert_int_equal(stat(path_of(f, "run.daf", path), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(stat(path_of(f, "run.daf/scalars", path), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
    assert_int_equal(stat(path_of(f, "run.daf/scalars/export.json", path), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(stat(path_of(f, "run.daf/metadata.json", path), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(stat(path_of(f, ".photond/exports", path), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0750);
}

static void scalars_that_cannot_be_stored_are_skipped(void **state) {
    fixture *f = *state;
    start(f);
    fill(&f->snapshot, 1);
    assert_int_equal(pd_snapshot_string(&f->snapshot, "a/b", "name"), 0);
    assert_int_equal(pd_snapshot_string(&f->snapshot, "bytes", "\xff"), 0);
    assert_int_equal(pd_snapshot_string(&f->snapshot, "good", "text\nof two lines"), 0);
    pd_export_job job = {.target = &f->target, .snapshot = &f->snapshot, .done = on_done, .user = f};
    assert_int_equal(pd_exporter_submit(f->exporter, &job), 0);
    stop(f); /* does what is queued first */
    assert_int_equal(job.result, 0);
    assert_int_equal(job.n_skipped, 2);
    check_shown(f, 1);
    daf *d = open_export(f);
    daf_scalar scalar;
    assert_int_equal(daf_get_scalar(d, &scalar, "good", NULL), 0);
    assert_string_equal(scalar.value.s.text, "text\nof two lines");
    daf_scalar_clear(&scalar);
    daf_free(d);
}

static void make_hidden(const fixture *f, const char *name) {
    char path[PATH_BYTES], file[PATH_BYTES + 16];
    assert_int_equal(mkdir(path_of(f, name, path), 0700), 0);
    snprintf(file, sizeof file, "%s/file", path);
    int fd = open(file, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void the_start_removes_what_a_killed_daemon_left(void **state) {
    fixture *f = *state;
    char path[PATH_BYTES];
    assert_int_equal(mkdir(path_of(f, ".photond", path), 0700), 0);
    assert_int_equal(mkdir(path_of(f, ".photond/exports", path), 0700), 0);
    make_hidden(f, ".photond/exports/run.12");
    make_hidden(f, ".photond/exports/other-run.1.0001");
    make_hidden(f, ".photond/exports/of somebody else");
    make_hidden(f, ".photond/exports/run.12a");
    make_hidden(f, "run.daf");
    make_hidden(f, "run.13");
    start(f);
    assert_int_equal(count_hidden(f), 2);
    assert_int_equal(count_entries(f, "run.daf"), 1);
    assert_int_equal(count_entries(f, "run.13"), 1);
}

static bool is_link(const fixture *f) {
    char path[PATH_BYTES];
    struct stat st;
    assert_int_equal(lstat(path_of(f, "run.daf", path), &st), 0);
    return S_ISLNK(st.st_mode);
}

static void links_where_directories_cannot_be_exchanged(void **state) {
    fixture *f = *state;
    f->options.links = true;
    start(f);
    export_good(f, 1, false);
    assert_true(is_link(f));
    check_shown(f, 1);
    daf *held = open_export(f);
    export_good(f, 2, false);
    assert_true(is_link(f));
    check_shown(f, 2);
    assert_int_equal(read_all(held), 1);
    daf_free(held);
    export_good(f, 3, true);
    assert_false(is_link(f));
    check_shown(f, 3);
    assert_int_equal(count_hidden(f), 2);
    stop(f);
    assert_int_equal(count_hidden(f), 0);
    check_shown(f, 3);
}

static void a_link_of_a_killed_daemon_becomes_a_directory(void **state) {
    fixture *f = *state;
    f->options.links = true;
    f->options.grace_ms = 0;
    start(f);
    export_good(f, 1, false);
    export_good(f, 2, false);
    stop(f);
    pd_export_target_clear(&f->target);
    assert_true(is_link(f));
    check_shown(f, 2);
    start(f);
    assert_false(is_link(f));
    check_shown(f, 2);
    assert_int_equal(count_hidden(f), 0);
}

static void a_data_folder_that_is_not_open(void **state) {
    fixture *f = *state;
    pd_exporter *x = NULL;
    pd_error err;
    close(f->options.data_fd);
    f->options.data_fd = -1;
    assert_int_equal(pd_exporter_start(&x, &f->options, &err), -1);
    assert_null(x);
    assert_non_null(strstr(err.text, f->dir));
    assert_non_null(strstr(err.text, " cannot be held: Bad file descriptor"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_export_reads_back),
        TEST(exports_are_zarr_trees_when_asked),
        TEST(half_made_zarr_trees_are_removed),
        TEST(readers_see_one_export_whole_while_200_go_by),
        TEST(a_replaced_export_is_kept_for_the_grace_time),
        TEST(a_directory_of_others_is_left_alone),
        TEST(an_export_that_somebody_replaced_or_removed),
        TEST(a_failed_write_leaves_the_export_before),
        TEST(modes_do_not_depend_on_the_umask),
        TEST(scalars_that_cannot_be_stored_are_skipped),
        TEST(the_start_removes_what_a_killed_daemon_left),
        TEST(links_where_directories_cannot_be_exchanged),
        TEST(a_link_of_a_killed_daemon_becomes_a_directory),
        TEST(a_data_folder_that_is_not_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
