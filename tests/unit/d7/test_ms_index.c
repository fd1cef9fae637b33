/* Roles and groups by name; photons and milliseconds; what --from and --to of the commands mean. */
#include "../../../libd7/cli/range.h"
#include "d7_testing.h"
#include "testing.h"

enum { PHOTONS = 30000, MS = 1000 };

typedef struct fixture {
    memio file;
    d7_io io;
    d7_reader *r;
    d7_error err;
} fixture;

static const command self = {.name = "test"};

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_reader_free(f->r);
    memio_free(&f->file);
    free(f);
    return 0;
}

/* Millisecond k of the test's recording begins with this photon: every tenth is empty, the first photon is the third. */
static uint64_t first_photon(uint64_t k) {
    return 3 + (k - k / 10) * 30;
}

static void write_file(fixture *f, const d7_dataset *datasets, size_t n, const d7_attribute *attribute,
                       const uint64_t *stamps) {
    d7_writer_options o = testing_writer_options(&f->io);
    d7_writer *w;
    o.attributes = attribute;
    o.n_attributes = attribute ? 1 : 0;
    o.bytes_per_page = 256;
    o.overwrite = true;
    assert_int_equal(d7_writer_create(&w, "memory", datasets, n, &o, &f->err), 0);
    uint16_t *x = testing_noise(1, PHOTONS);
    for (uint32_t i = 0; i < n; i++) {
        if (datasets[i].type == D7_UINT16)
            assert_int_equal(d7_writer_append(w, i, x, PHOTONS, &f->err), 0);
        else if (stamps)
            assert_int_equal(d7_writer_append(w, i, stamps, PHOTONS, &f->err), 0);
        else
            for (uint64_t k = 0; k < MS; k++)
                assert_int_equal(d7_writer_append(w, i, &(uint64_t){first_photon(k)}, 1, &f->err), 0);
    }
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    d7_writer_free(w);
    free(x);
    d7_reader_free(f->r);
    f->r = testing_open(&f->io, false, false);
}

static void names_have_roles_and_groups(void **state) {
    (void)state;
    assert_int_equal(d7_role_of("/photons/x"), D7_ROLE_X);
    assert_int_equal(d7_role_of("/photons/y"), D7_ROLE_Y);
    assert_int_equal(d7_role_of("/photons/dt"), D7_ROLE_MICRO_TIME);
    assert_int_equal(d7_role_of("/photons/ms"), D7_ROLE_MS);
    assert_int_equal(d7_role_of("/photons/aat"), D7_ROLE_ABSOLUTE_TIME);
    assert_int_equal(d7_role_of("/start/time"), D7_ROLE_START);
    assert_int_equal(d7_role_of("/stop/time"), D7_ROLE_STOP);
    assert_int_equal(d7_role_of("/tags/channel"), D7_ROLE_CHANNEL);
    assert_int_equal(d7_role_of("/tags/time"), D7_ROLE_TIME);
    assert_int_equal(d7_role_of("/photons/z"), D7_ROLE_OTHER);
    assert_int_equal(d7_role_of(NULL), D7_ROLE_OTHER);
    assert_int_equal(d7_group_of("/photons/z"), D7_GROUP_PHOTONS);
    assert_int_equal(d7_group_of("/photons/ms"), D7_GROUP_NONE);
    assert_int_equal(d7_group_of("/stop/time"), D7_GROUP_PHOTONS);
    assert_int_equal(d7_group_of("/stop/other"), D7_GROUP_NONE);
    assert_int_equal(d7_group_of("/tags/x"), D7_GROUP_TAGS);
    assert_int_equal(d7_group_of("temperature"), D7_GROUP_NONE);
    assert_int_equal(d7_group_of(NULL), D7_GROUP_NONE);
}

static void photons_and_milliseconds_are_found(void **state) {
    fixture *f = *state;
    static const d7_dataset lincam[] = {{"/photons/x", D7_UINT16}, {"/photons/ms", D7_UINT64}};
    uint64_t first, n, ms;
    write_file(f, lincam, 2, NULL, NULL);
    for (uint64_t k = 0; k < MS; k++) {
        assert_int_equal(d7_reader_photons_of_ms(f->r, k, &first, &n, &f->err), 0);
        assert_int_equal(first, first_photon(k));
        assert_int_equal(n, k + 1 == MS ? PHOTONS - first : first_photon(k + 1) - first);
        if (n == 0)
            continue;
        assert_int_equal(d7_reader_ms_of_photon(f->r, first, &ms, &f->err), 0);
        assert_int_equal(ms, k);
        assert_int_equal(d7_reader_ms_of_photon(f->r, first + n - 1, &ms, &f->err), 0);
        assert_int_equal(ms, k);
    }
    assert_int_equal(d7_reader_photons_of_ms(f->r, MS, &first, &n, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_reader_ms_of_photon(f->r, 2, &ms, &f->err), D7_ERR_NOTFOUND);
    assert_int_equal(d7_reader_ms_of_photon(f->r, PHOTONS, &ms, &f->err), D7_ERR_ARG);
}

static void append_and_count(fixture *f, d7_writer *w, uint16_t *x, size_t n, uint64_t counted) {
    assert_int_equal(d7_writer_append(w, 0, x, n, &f->err), 0);
    assert_int_equal(d7_writer_flush(w, &f->err), 0);
    d7_reader_free(f->r);
    f->r = testing_open(&f->io, false, false);
    assert_int_equal(d7_reader_group_items(f->r, D7_GROUP_PHOTONS), counted);
}

/* x holds values, channel none: it was not in use, unless the file is still being written and its first page may come. */
static void columns_not_in_use_do_not_count(void **state) {
    fixture *f = *state;
    static const d7_dataset datasets[] = {{"/photons/x", D7_UINT16}, {"/photons/channel", D7_UINT8}};
    d7_writer_options o = testing_writer_options(&f->io);
    d7_writer *w;
    uint16_t *x = testing_noise(1, 8192);
    assert_int_equal(d7_writer_create(&w, "memory", datasets, 2, &o, &f->err), 0);
    append_and_count(f, w, x, 8192, 0);
    append_and_count(f, w, x, 8192, 0);
    append_and_count(f, w, x, 8192, 24576);
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    d7_writer_free(w);
    d7_reader_free(f->r);
    f->r = testing_open(&f->io, false, false);
    assert_int_equal(d7_reader_group_items(f->r, D7_GROUP_PHOTONS), 24576);
    assert_int_equal(d7_reader_group_items(f->r, D7_GROUP_TAGS), 0);
    free(x);
}

static void without_milliseconds_there_is_an_error(void **state) {
    fixture *f = *state;
    static const d7_dataset none[] = {{"/photons/x", D7_UINT16}};
    uint64_t first, n;
    write_file(f, none, 1, NULL, NULL);
    assert_int_equal(d7_reader_photons_of_ms(f->r, 0, &first, &n, &f->err), D7_ERR_NOTFOUND);
    assert_int_equal(d7_reader_ms_of_photon(f->r, 0, &n, &f->err), D7_ERR_NOTFOUND);
}

static void ends_are_parsed(void **state) {
    static const struct {
        const char *text;
        bool good, is_time;
        uint64_t value;
    } cases[] = {{"0", true, false, 0},
                 {"18446744073709551615", true, false, UINT64_MAX},
                 {"250ms", true, true, 250000000000},
                 {"12.5s", true, true, 12500000000000},
                 {"3min", true, true, 180000000000000},
                 {"2h", true, true, 7200000000000000},
                 {"7ps", true, true, 7},
                 {"1e3us", true, true, 1000000000},
                 {"", false, false, 0},
                 {"-1", false, false, 0},
                 {"-1s", false, false, 0},
                 {"1.5", false, false, 0},
                 {"3 s", false, false, 0},
                 {"5m", false, false, 0},
                 {"nan s", false, false, 0},
                 {"1e300h", false, false, 0},
                 {"18446744073709551616", false, false, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        range_end end = {0};
        assert_int_equal(range_parse(cases[i].text, &end), cases[i].good);
        assert_int_equal(end.given, cases[i].good);
        assert_int_equal(end.is_time, cases[i].is_time);
        assert_int_equal(end.is_time ? end.time_ps : end.item, cases[i].value);
    }
}

static void resolve(fixture *f, const char *from, const char *to, uint64_t want_from, uint64_t want_to) {
    range_end a = {0}, b = {0};
    uint64_t first, end;
    assert_true((!from || range_parse(from, &a)) && (!to || range_parse(to, &b)));
    assert_int_equal(range_resolve(&self, f->r, "memory", &a, &b, &first, &end), 0);
    assert_int_equal(first, want_from);
    assert_int_equal(end, want_to);
}

static void ranges_by_milliseconds(void **state) {
    fixture *f = *state;
    static const d7_dataset lincam[] = {{"/photons/x", D7_UINT16}, {"/photons/ms", D7_UINT64}};
    uint64_t first, end;
    write_file(f, lincam, 2, NULL, NULL);
    resolve(f, NULL, NULL, 0, PHOTONS);
    resolve(f, "10", "20", 10, 20);
    resolve(f, "10", "40000", 10, PHOTONS);
    resolve(f, "0s", "0.1s", first_photon(0), first_photon(100));
    resolve(f, "12.9ms", "1h", first_photon(12), PHOTONS);
    range_end a = {.given = true, .item = 20}, b = {.given = true, .item = 10};
    assert_int_equal(range_resolve(&self, f->r, "memory", &a, &b, &first, &end), 2);
}

/* Stamp k is 1000 + 7 k. */
static void ranges_by_stamps(void **state) {
    fixture *f = *state;
    static const d7_dataset tags[] = {{"/tags/time", D7_UINT64}}, aat[] = {{"/photons/aat", D7_UINT64}};
    static const d7_attribute clock = {.key = "/photons/TimerFrequency", .value = "1e11"};
    uint64_t *stamps = malloc(PHOTONS * sizeof *stamps);
    for (uint64_t k = 0; k < PHOTONS; k++)
        stamps[k] = 1000 + 7 * k;
    write_file(f, tags, 1, NULL, stamps);
    resolve(f, "0s", "70ps", 0, 10);
    resolve(f, "71ps", "1s", 11, PHOTONS);
    write_file(f, aat, 1, &clock, stamps);
    resolve(f, "0s", "700ps", 0, 10);
    resolve(f, "701ps", NULL, 11, PHOTONS);
    write_file(f, aat, 1, NULL, stamps);
    range_end a = {.given = true, .is_time = true, .time_ps = 5}, b = {0};
    uint64_t first, end;
    assert_int_equal(range_resolve(&self, f->r, "memory", &a, &b, &first, &end), 2);
    free(stamps);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(names_have_roles_and_groups),
        CASE(photons_and_milliseconds_are_found),
        CASE(columns_not_in_use_do_not_count),
        CASE(without_milliseconds_there_is_an_error),
        CASE(ends_are_parsed),
        CASE(ranges_by_milliseconds),
        CASE(ranges_by_stamps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
