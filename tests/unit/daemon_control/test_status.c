/* What the daemon tells: log lines, status, rates, texts from outside. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "capture.h"
#include "log.h"
#include "rate.h"
#include "status.h"
#include "testing.h"
#include "text.h"

/* ---- texts ---- */

static void texts_from_outside_are_made_safe(void **state) {
    (void)state;
    static const struct {
        const char *text, *safe;
    } cases[] = {{"plain", "plain"},
                 {"Größe ✓ 🙂", "Größe ✓ 🙂"},
                 {"a\nb\033[31m\177", "a\\x0ab\\x1b[31m\\x7f"},
                 {"\xff\xc3", "\\xff\\xc3"},
                 {"\xc0\x80", "\\xc0\\x80"},          /* over-long NUL */
                 {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
                 {"\xc2\x9b", "\\xc2\\x9b"},          /* a control character of two bytes */
                 {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char safe[128];
        assert_int_equal(pd_text_escape(safe, sizeof safe, cases[i].text), strlen(cases[i].safe));
        assert_string_equal(safe, cases[i].safe);
    }
    char cut[8];
    pd_text_escape(cut, sizeof cut, "aaaaaß\n");
    assert_string_equal(cut, "aaaaaß");
    pd_text_escape(cut, sizeof cut, "aaaaaaß");
    assert_string_equal(cut, "aaaaaa");
    pd_text_escape(cut, 1, "x");
    assert_string_equal(cut, "");
}

static void distances(void **state) {
    (void)state;
    assert_int_equal(pd_text_distance("ring_mb", "ring_mb", 9), 0);
    assert_int_equal(pd_text_distance("rnig_mb", "ring_mb", 9), 1);
    assert_int_equal(pd_text_distance("ring", "ring_mb", 9), 3);
    assert_int_equal(pd_text_distance("ring", "ring_mb", 2), 2);
    assert_int_equal(pd_text_distance("", "abc", 9), 3);
    assert_int_equal(pd_text_distance("kitten", "sitting", 9), 3);
}

/* ---- log ---- */

static void a_line_for_each_event(void **state) {
    (void)state;
    capture c;
    pd_log_set_level(PD_LOG_INFO);
    assert_true(pd_log_enabled(PD_LOG_INFO));
    assert_false(pd_log_enabled(PD_LOG_DEBUG));
    capture_start(&c, STDERR_FILENO);
    pd_log(PD_LOG_WARNING, "run %s: %d\nforged 2026 error line", "a\x01", 7);
    pd_log(PD_LOG_DEBUG, "not this");
    capture_end(&c);
    assert_int_equal(strlen(c.text), strlen("2026-01-31T12:00:00.123Z ") +
                                         strlen("warning run a\\x01: 7\\x0aforged 2026 error line\n"));
    assert_string_equal(c.text + 24, " warning run a\\x01: 7\\x0aforged 2026 error line\n");
    assert_int_equal(c.text[23], 'Z');

    char *longest = malloc(10001);
    assert_non_null(longest);
    memset(longest, 'y', 10000);
    longest[10000] = '\0';
    capture_start(&c, STDERR_FILENO);
    pd_log(PD_LOG_ERROR, "%s", longest);
    capture_end(&c);
    free(longest);
    assert_int_equal(strlen(c.text), strlen("2026-01-31T12:00:00.123Z error ") + 1999 + 1);
}

static void a_line_that_cannot_be_written_is_counted(void **state) {
    (void)state;
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    uint64_t lost = pd_log_lost();
    pd_log_set_fd(full);
    pd_log(PD_LOG_ERROR, "x");
    pd_log_set_fd(STDERR_FILENO);
    close(full);
    assert_int_equal(pd_log_lost(), lost + 1);
}

static void *write_lines(void *arg) {
    for (int i = 0; i < 500; i++)
        pd_log(PD_LOG_INFO, "thread %c says something of a certain length %d", *(const char *)arg, i);
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pd_log_set_fd(ends[1]);
    pthread_t threads[4];
    static const char names[] = "abcd";
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, (void *)&names[i]), 0);
    FILE *f = fdopen(ends[0], "r");
    assert_non_null(f);
    char line[200];
    for (int n = 0; n < 2000; n++) {
        assert_non_null(fgets(line, sizeof line, f));
        assert_int_equal(line[23], 'Z');
        assert_int_equal(strncmp(line + 24, " info thread ", 13), 0);
        assert_int_equal(line[strlen(line) - 1], '\n');
    }
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pd_log_set_fd(STDERR_FILENO);
    fclose(f);
    close(ends[1]);
}

/* ---- rates ---- */

static void rates_over_a_sliding_window(void **state) {
    (void)state;
    const uint64_t ms = 1000000;
    pd_rate rate;
    pd_rate_init(&rate);
    assert_true(pd_rate_per_second(&rate, 5000 * ms, 100) == 0);
    for (uint64_t t = 0; t <= 20000; t += 50) /* 1000 a second */
        pd_rate_sample(&rate, t * ms, t);
    double r = pd_rate_per_second(&rate, 20000 * ms, 20000);
    assert_true(r > 999.9 && r < 1000.1);
    for (uint64_t t = 20050; t <= 30000; t += 50) /* it stopped */
        pd_rate_sample(&rate, t * ms, 20000);
    assert_true(pd_rate_per_second(&rate, 30000 * ms, 20000) == 0);
    pd_rate_sample(&rate, 30250 * ms, 20500);
    r = pd_rate_per_second(&rate, 30250 * ms, 20500);
    assert_true(r > 100 && r < 150); /* 500 within the 4 s of the window */
}

/* ---- status ---- */

static void a_status_is_json_with_all_that_is_known(void **state) {
    (void)state;
    const pd_status_dataset datasets[] = {{"/photons/x", "uint16", 1000, 900}};
    const pd_status_run runs[] = {{.name = "scan",
                                   .id = "00ff",
                                   .state = "running",
                                   .profile = "lincam",
                                   .client = "bad\xff",
                                   .path = "/d/scan.photons",
                                   .photons = UINT64_MAX,
                                   .durable_age_s = -1,
                                   .photons_per_s = 1.0 / 3,
                                   .datasets = datasets,
                                   .n_datasets = 1}};
    const pd_status_connection connections[] = {{"unix: pid 1", "cam", "sw", "i", 1, 2, true, false, 1, 7}};
    const char *const reasons[] = {"cam is silent"};
    const char *const listen[] = {"tcp://127.0.0.1:7777"};
    const pd_status_volume volumes[] = {
        {.name = "", .data_dir = "/d", .free_bytes = UINT64_MAX},
        {.name = "second", .data_dir = "/e", .n_runs = 3, .free_bytes = 7, .full = true}};
    pd_status status = {.version = "1",
                        .listen = listen,
                        .n_listen = 1,
                        .health = PD_HEALTH_DEGRADED,
                        .reasons = reasons,
                        .n_reasons = 1,
                        .volumes = volumes,
                        .n_volumes = 2,
                        .counters = {.photons_received = 5},
                        .runs = runs,
                        .n_runs = 1,
                        .connections = connections,
                        .n_connections = 1};
    json_t *j = pd_status_json(&status);
    assert_non_null(j);
    assert_string_equal(json_string_value(json_object_get(j, "health")), "degraded");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "counters"), "photons_received")),
                     5);
    assert_int_equal(json_object_size(json_object_get(j, "counters")),
                     sizeof(pd_status_counters) / sizeof(uint64_t));
    assert_true(json_is_null(json_object_get(json_object_get(j, "disk"), "free_bytes")));
    const json_t *second = json_array_get(json_object_get(j, "volumes"), 1);
    assert_string_equal(json_string_value(json_object_get(second, "data_dir")), "/e");
    assert_int_equal(json_integer_value(json_object_get(second, "free_bytes")), 7);
    assert_true(json_is_true(json_object_get(second, "full")));
    const json_t *run = json_array_get(json_object_get(j, "runs"), 0);
    assert_string_equal(json_string_value(json_object_get(run, "client")), "bad\\xff");
    assert_true(json_is_null(json_object_get(run, "durable_age_s")));
    assert_true(json_is_null(json_object_get(run, "failure")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(run, "counters"), "photons")),
                     INT64_MAX);
    const json_t *dataset = json_array_get(json_object_get(run, "datasets"), 0);
    assert_int_equal(json_integer_value(json_object_get(dataset, "durable")), 900);
    const json_t *connection = json_array_get(json_object_get(j, "connections"), 0);
    assert_true(json_is_true(json_object_get(connection, "silent")));
    json_decref(j);
}

static void the_document_has_a_line_for_each_counter(void **state) {
    (void)state;
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    FILE *f = fopen(TEST_FIXTURES "/../../docs/operations.md", "r");
    assert_non_null(f);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
#define LINE(name, what)                                                                                     \
    if (!strstr(text, "\n| `" #name "` | " what " |\n"))                                                     \
        fail_msg("docs/operations.md has no line for the counter %s: %s", #name, what);
    PD_STATUS_COUNTER_MAP(LINE)
#undef LINE
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_from_outside_are_made_safe),
        cmocka_unit_test(distances),
        cmocka_unit_test(a_line_for_each_event),
        cmocka_unit_test(a_line_that_cannot_be_written_is_counted),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        cmocka_unit_test(rates_over_a_sliding_window),
        cmocka_unit_test(a_status_is_json_with_all_that_is_known),
        cmocka_unit_test(the_document_has_a_line_for_each_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
