/* Summaries against straightforward code. */
#include <math.h>
#include <stdbool.h>

#include "summary.h"
#include "testing.h"

/* ---- help ---- */

static uint64_t random_state = 88172645463325252u;

static uint64_t random_next(void) {
    return testing_random(&random_state);
}

static uint64_t random_below(uint64_t n) {
    return random_next() % n;
}

static pd_summary_options all_on(void) {
    return (pd_summary_options){
        .enabled = true, .image = true, .pixels = 64, .decay = true, .rate = true, .max_seconds = 1000};
}

static pd_summary *make(const pd_summary_setup *setup) {
    pd_summary *s = NULL;
    pd_error err = {.text = ""};
    if (pd_summary_create(&s, setup, &err) != 0)
        fail_msg("%s", err.text);
    return s;
}

static void freeze(const pd_summary *s, uint64_t number, pd_snapshot *snapshot) {
    pd_error err = {.text = ""};
    if (pd_summary_freeze(s, number, snapshot, &err) != 0)
        fail_msg("%s", err.text);
}

static const pd_property *find(const pd_snapshot *snapshot, pd_property_kind kind, const char *rows,
                               const char *name) {
    const pd_property *p = pd_snapshot_find(snapshot, kind, rows, name);
    if (!p)
        fail_msg("no property %s", name);
    return p;
}

static uint64_t scalar_u64(const pd_snapshot *snapshot, const char *name) {
    const pd_property *p = find(snapshot, PD_SCALAR, NULL, name);
    assert_int_equal(p->scalar.type, DAF_UINT64);
    return p->scalar.value.u;
}

static double scalar_f64(const pd_snapshot *snapshot, const char *name) {
    const pd_property *p = find(snapshot, PD_SCALAR, NULL, name);
    assert_int_equal(p->scalar.type, DAF_FLOAT64);
    return p->scalar.value.f;
}

static const uint64_t *vector_u64(const pd_snapshot *snapshot, const char *axis, const char *name,
                                  uint64_t n) {
    const pd_property *p = find(snapshot, PD_VECTOR, axis, name);
    assert_int_equal(p->type, DAF_UINT64);
    assert_int_equal(p->n, n);
    return p->values;
}

static uint64_t sum_u64(const uint64_t *values, uint64_t n) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

static uint64_t sum_of(const pd_snapshot *snapshot, pd_property_kind kind, const char *rows,
                       const char *name) {
    const pd_property *p = find(snapshot, kind, rows, name);
    if (p->type == DAF_UINT64)
        return sum_u64(p->values, p->n);
    assert_int_equal(p->type, DAF_UINT32);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < p->n; i++)
        sum += ((const uint32_t *)p->values)[i];
    return sum;
}

/* ---- values of any type ---- */

typedef struct column {
    d7_type type;
    void *values;
    double *plain; /* the same as numbers; types up to 32 bits and small others are exact */
} column;

static void column_store(column *c, size_t i, double value) {
    switch (c->type) {
#define STORE(number, element)                                                                               \
    case number:                                                                                             \
        ((element *)c->values)[i] = (element)value;                                                          \
        c->plain[i] = (double)((element *)c->values)[i];                                                     \
        break;
        STORE(D7_INT8, int8_t)
        STORE(D7_INT16, int16_t)
        STORE(D7_INT32, int32_t)
        STORE(D7_INT64, int64_t)
        STORE(D7_UINT8, uint8_t)
        STORE(D7_UINT16, uint16_t)
        STORE(D7_UINT32, uint32_t)
        STORE(D7_UINT64, uint64_t)
        STORE(D7_FLOAT, float)
        STORE(D7_DOUBLE, double)
#undef STORE
    }
}

static const double lowest[D7_N_TYPES] = {-128, -32768, -2147483648.0, -9e18, 0, 0, 0, 0, -1e9, -1e18};
static const double highest[D7_N_TYPES] = {127,   32767,        2147483647.0, 9e18, 255,
                                           65535, 4294967295.0, 1.8e19,       1e9,  1e18};

/* Mostly values inside, with the edges, the type's extremes and (of floats) fractions and NaN among them. */
static double column_pick(d7_type type, double end) {
    double value;
    switch (random_below(16)) {
    case 0:
        value = end;
        break;
    case 1:
        value = end - 1;
        break;
    case 2:
        value = lowest[type];
        break;
    case 3:
        value = highest[type];
        break;
    case 4:
        value = type == D7_FLOAT || type == D7_DOUBLE ? NAN : 0;
        break;
    case 5:
        value = lowest[type] < 0 ? -1 : 1;
        break;
    default:
        value = (double)random_below((uint64_t)end + (uint64_t)end / 8 + 1);
        if (type == D7_FLOAT || type == D7_DOUBLE)
            value += 0.5;
    }
    return value < lowest[type] ? lowest[type] : value > highest[type] ? highest[type] : value;
}

static column column_make(d7_type type, size_t n, double end) {
    column c = {type, calloc(n, d7_type_size(type)), calloc(n, sizeof(double))};
    assert_non_null(c.values);
    assert_non_null(c.plain);
    for (size_t i = 0; i < n; i++)
        column_store(&c, i, column_pick(type, end));
    return c;
}

static void column_free(column *c) {
    free(c->values);
    free(c->plain);
}

static const void *column_at(const column *c, size_t i) {
    return (const char *)c->values + i * d7_type_size(c->type);
}

static bool inside(double value, double end) {
    return value >= 0 && value < end;
}

/* ---- image and decay ---- */

static void check_image(const pd_snapshot *snapshot, const column *x, const column *y, size_t n,
                        unsigned bits, unsigned side) {
    double end = ldexp(1, (int)bits);
    uint64_t outside = 0;
    uint32_t *expected = calloc((size_t)side * side, sizeof *expected);
    for (size_t i = 0; i < n; i++) {
        if (!inside(x->plain[i], end) || !inside(y->plain[i], end)) {
            outside++;
            continue;
        }
        uint64_t px = (uint64_t)x->plain[i] * side >> bits, py = (uint64_t)y->plain[i] * side >> bits;
        expected[py + px * side]++;
    }
    const pd_property *m = find(snapshot, PD_MATRIX, "y_pixel", "intensity");
    assert_string_equal(m->columns, "x_pixel");
    assert_int_equal(m->type, DAF_UINT32);
    assert_int_equal(m->n, (uint64_t)side * side);
    assert_memory_equal(m->values, expected, (size_t)m->n * sizeof *expected);
    assert_int_equal(scalar_u64(snapshot, "outside_image"), outside);
    assert_int_equal(sum_of(snapshot, PD_MATRIX, "y_pixel", "intensity") + outside, n);
    static const char *const axes[] = {"y_pixel", "x_pixel"};
    for (size_t a = 0; a < 2; a++) {
        const pd_property *axis = find(snapshot, PD_AXIS, NULL, axes[a]);
        assert_int_equal(axis->n, side);
        assert_int_equal(axis->first, 0);
        assert_int_equal(axis->step, (1 << bits) / (int)side);
    }
    free(expected);
}

static void check_decay(const pd_snapshot *snapshot, const column *dt, size_t n, unsigned bits) {
    uint64_t n_bins = UINT64_C(1) << bits, outside = 0;
    uint64_t *expected = calloc(n_bins, sizeof *expected);
    for (size_t i = 0; i < n; i++) {
        if (inside(dt->plain[i], (double)n_bins))
            expected[(uint64_t)dt->plain[i]]++;
        else
            outside++;
    }
    const uint64_t *counts = vector_u64(snapshot, "dt_bin", "counts", n_bins);
    assert_memory_equal(counts, expected, n_bins * sizeof *expected);
    assert_int_equal(scalar_u64(snapshot, "outside_decay"), outside);
    assert_int_equal(sum_u64(counts, n_bins) + outside, n);
    free(expected);
}

/* Binned in pieces of random length, among them none and more than a block. */
static void bin_in_pieces(pd_summary *s, size_t group, const column *columns, size_t n_columns, size_t n) {
    for (size_t done = 0; done < n;) {
        size_t piece = (size_t)random_below(random_below(2) ? 50 : 5000);
        if (piece > n - done)
            piece = n - done;
        const void *at[8];
        for (size_t c = 0; c < n_columns; c++)
            at[c] = column_at(&columns[c], done);
        pd_summary_bin(s, group, at, done, piece);
        done += piece;
    }
}

static void one_random_camera(d7_type type_x, d7_type type_y, d7_type type_dt) {
    enum { N = 20000 };
    unsigned bits = (unsigned)random_below(14) + 1, tac_bits = (unsigned)random_below(14) + 1;
    unsigned pixels = 16u << random_below(6), side = pixels < 1u << bits ? pixels : 1u << bits;
    char bits_text[8], tac_text[8];
    snprintf(bits_text, sizeof bits_text, "%u", bits);
    snprintf(tac_text, sizeof tac_text, "%u", tac_bits);
    pd_attribute attributes[] = {{"/photons/PositionBits", bits_text},
                                 {"/photons/TacBits", tac_text},
                                 {"/photons/TacChannel", "12.3"}};
    pd_dataset datasets[] = {{"/y", type_y, "g", PD_ROLE_POSITION_Y, "", 1},
                             {"/dt", type_dt, "g", PD_ROLE_MICRO_TIME, "", 1},
                             {"/x", type_x, "g", PD_ROLE_POSITION_X, "", 1}};
    pd_summary_setup setup = {.name = "r",
                              .datasets = datasets,
                              .n_datasets = 3,
                              .attributes = attributes,
                              .n_attributes = 3,
                              .options = all_on()};
    setup.options.pixels = pixels;
    pd_summary *s = make(&setup);
    assert_int_equal(pd_summary_n_warnings(s), 0);
    column columns[3] = {column_make(type_y, N, ldexp(1, (int)bits)),
                         column_make(type_dt, N, ldexp(1, (int)tac_bits)),
                         column_make(type_x, N, ldexp(1, (int)bits))};
    bin_in_pieces(s, 0, columns, 3, N);

    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    check_image(&snapshot, &columns[2], &columns[0], N, bits, side);
    check_decay(&snapshot, &columns[1], N, tac_bits);
    assert_int_equal(scalar_u64(&snapshot, "photons"), N);
    assert_int_equal(
        sum_of(&snapshot, PD_VECTOR, "second", "counts") + scalar_u64(&snapshot, "outside_second"), N);
    const pd_property *time = find(&snapshot, PD_VECTOR, "dt_bin", "time_ps");
    assert_int_equal(time->type, DAF_FLOAT64);
    assert_true(((const double *)time->values)[1] == 12.3);
    pd_snapshot_clear(&snapshot);
    for (size_t c = 0; c < 3; c++)
        column_free(&columns[c]);
    pd_summary_free(s);
}

static void image_and_decay_of_every_type(void **state) {
    (void)state;
    for (int t = 0; t < D7_N_TYPES; t++)
        for (int round = 0; round < 4; round++)
            one_random_camera((d7_type)t, (d7_type)((t + round) % D7_N_TYPES),
                              (d7_type)((t + 3) % D7_N_TYPES));
}

static const pd_dataset lincam[] = {{"/photons/x", D7_UINT16, "photons", PD_ROLE_POSITION_X, "", 1},
                                    {"/photons/y", D7_UINT16, "photons", PD_ROLE_POSITION_Y, "", 1},
                                    {"/photons/dt", D7_UINT16, "photons", PD_ROLE_MICRO_TIME, "", 1},
                                    {"/photons/ms", D7_UINT64, "ms", PD_ROLE_MS_INDEX, "", 1}};

static pd_summary_setup lincam_setup(void) {
    return (pd_summary_setup){.name = "run", .datasets = lincam, .n_datasets = 4, .options = all_on()};
}

static void missing_bits_are_assumed_with_a_warning(void **state) {
    (void)state;
    pd_summary_setup setup = lincam_setup();
    pd_summary *s = make(&setup);
    assert_int_equal(pd_summary_n_warnings(s), 3);
    assert_non_null(strstr(pd_summary_warning(s, 0), "PositionBits is not given: 12 bits assumed"));
    assert_non_null(strstr(pd_summary_warning(s, 1), "TacBits is not given: 12 bits assumed"));
    assert_non_null(strstr(pd_summary_warning(s, 2), "no axis in picoseconds"));
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_int_equal(find(&snapshot, PD_AXIS, NULL, "dt_bin")->n, 4096);
    assert_int_equal(find(&snapshot, PD_AXIS, NULL, "x_pixel")->step, 4096 / 64);
    assert_null(pd_snapshot_find(&snapshot, PD_VECTOR, "dt_bin", "time_ps"));
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

static void bad_bits_are_assumed_with_a_warning(void **state) {
    (void)state;
    static const char *const bad[] = {"", "0", "32", "12.5", "twelve", "12 bits", "-3", "nan", "1e99"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pd_attribute attributes[] = {
            {"/photons/PositionBits", bad[i]}, {"/photons/TacBits", "8"}, {"/photons/TacChannel", "97"}};
        pd_summary_setup setup = lincam_setup();
        setup.attributes = attributes;
        setup.n_attributes = 3;
        pd_summary *s = make(&setup);
        assert_int_equal(pd_summary_n_warnings(s), 1);
        assert_non_null(strstr(pd_summary_warning(s, 0), "12 bits assumed"));
        pd_summary_free(s);
    }
}

static void attributes_after_open_move_the_axes_until_something_is_binned(void **state) {
    (void)state;
    pd_summary_setup setup = lincam_setup();
    pd_summary *s = make(&setup);
    pd_error err;
    assert_int_equal(pd_summary_attribute(s, "/photons/TacBits", "8", &err), 0);
    assert_int_equal(pd_summary_attribute(s, "/photons/PositionBits", "10", &err), 0);
    assert_int_equal(pd_summary_n_warnings(s), 1);
    uint16_t x = 1023, y = 0, dt = 255;
    const void *columns[] = {&x, &y, &dt};
    pd_summary_bin(s, 0, columns, 0, 1);
    assert_int_equal(pd_summary_attribute(s, "/photons/TacBits", "4", &err), 0);
    assert_int_equal(pd_summary_attribute(s, "/photons/TacChannel", "50", &err), 0);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_int_equal(vector_u64(&snapshot, "dt_bin", "counts", 256)[255], 1);
    const pd_property *m = find(&snapshot, PD_MATRIX, "y_pixel", "intensity");
    assert_int_equal(((const uint32_t *)m->values)[63 * 64], 1);
    assert_true(((const double *)find(&snapshot, PD_VECTOR, "dt_bin", "time_ps")->values)[3] == 150);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

static void switched_off_kinds_leave_nothing(void **state) {
    (void)state;
    pd_summary_setup setup = lincam_setup();
    setup.options.image = false;
    setup.options.rate = false;
    pd_summary *s = make(&setup);
    pd_summary_tick(s, 2500000000u);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 7, &snapshot);
    assert_null(pd_snapshot_find(&snapshot, PD_AXIS, NULL, "x_pixel"));
    assert_null(pd_snapshot_find(&snapshot, PD_AXIS, NULL, "second"));
    assert_non_null(pd_snapshot_find(&snapshot, PD_AXIS, NULL, "dt_bin"));
    assert_int_equal(scalar_u64(&snapshot, "export"), 7);
    assert_true(scalar_f64(&snapshot, "duration_s") == 2.5);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

static void options_out_of_range_are_refused(void **state) {
    (void)state;
    static const uint32_t bad[] = {0, 8, 100, 8192};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pd_summary_setup setup = lincam_setup();
        setup.options.pixels = bad[i];
        pd_summary *s = NULL;
        pd_error err;
        assert_int_equal(pd_summary_create(&s, &setup, &err), -1);
        assert_null(s);
        assert_non_null(strstr(err.text, "power of two"));
    }
}

/* ---- seconds ---- */

/* Photon i is of the last millisecond whose index is at most i; before the first one, of second 0. */
static void check_ms_seconds(const pd_snapshot *snapshot, const uint64_t *ms, size_t n_ms, uint64_t photons) {
    uint64_t n = n_ms ? (n_ms - 1) / 1000 + 1 : 1;
    uint64_t *expected = calloc(n, sizeof *expected);
    size_t k = 0;
    for (uint64_t i = 0; i < photons; i++) {
        while (k + 1 < n_ms && ms[k + 1] <= i)
            k++;
        expected[k / 1000]++;
    }
    const uint64_t *counts = vector_u64(snapshot, "second", "counts", n);
    assert_memory_equal(counts, expected, n * sizeof *expected);
    assert_int_equal(scalar_u64(snapshot, "outside_second"), 0);
    assert_true(scalar_f64(snapshot, "second_width_s") == 1);
    assert_true(scalar_f64(snapshot, "duration_s") == (double)n_ms / 1000);
    free(expected);
}

static void seconds_of_an_ms_index(void **state) {
    (void)state;
    enum { N_MS = 7300 };
    uint64_t *ms = calloc(N_MS, sizeof *ms), photons = 0;
    for (size_t k = 0; k < N_MS; k++) {
        ms[k] = photons;
        photons += random_below(8) ? random_below(6) : 0;
        if (k == 2500)
            photons += 10000;
    }
    uint16_t *zeros = calloc(photons, sizeof *zeros);
    pd_summary_setup setup = lincam_setup();
    pd_summary *s = make(&setup);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    uint64_t done_photons = 0;
    size_t done_ms = 0;
    /* photons and index come in pieces that run ahead of each other by up to seconds */
    for (uint64_t number = 1; done_photons < photons || done_ms < N_MS; number++) {
        size_t n_ms = (size_t)random_below(2500);
        uint64_t n = random_below(9000);
        n_ms = n_ms < N_MS - done_ms ? n_ms : N_MS - done_ms;
        n = n < photons - done_photons ? n : photons - done_photons;
        const void *column_ms[] = {ms + done_ms}, *columns[] = {zeros, zeros, zeros};
        pd_summary_bin(s, 1, column_ms, done_ms, n_ms);
        pd_summary_bin(s, 0, columns, done_photons, (size_t)n);
        done_ms += n_ms;
        done_photons += n;
        freeze(s, number, &snapshot);
        const pd_property *counts = find(&snapshot, PD_VECTOR, "second", "counts");
        assert_int_equal(sum_u64(counts->values, counts->n), done_photons);
        if (done_ms < N_MS || done_photons < photons)
            continue;
        check_ms_seconds(&snapshot, ms, N_MS, photons);
    }
    assert_int_equal(scalar_u64(&snapshot, "items.photons.ms"), N_MS);
    assert_int_equal(scalar_u64(&snapshot, "items.photons.x"), photons);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
    free(zeros);
    free(ms);
}

/* A damaged index cannot make the counts wrong in sum. */
static void an_ms_index_that_falls_or_leaps(void **state) {
    (void)state;
    uint64_t ms[5000];
    for (size_t k = 0; k < 5000; k++)
        ms[k] = random_below(4) ? random_next() : 0;
    uint16_t zeros[3000] = {0};
    pd_summary_setup setup = lincam_setup();
    pd_summary *s = make(&setup);
    const void *column_ms[] = {ms}, *columns[] = {zeros, zeros, zeros};
    pd_summary_bin(s, 1, column_ms, 0, 5000);
    pd_summary_bin(s, 0, columns, 0, 3000);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_int_equal(sum_of(&snapshot, PD_VECTOR, "second", "counts"), 3000);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

static const pd_dataset lintag[] = {{"/tags/channel", D7_UINT8, "tags", PD_ROLE_CHANNEL, "", 1},
                                    {"/tags/time", D7_UINT64, "tags", PD_ROLE_TIME_STAMP, "ps", 1}};

static pd_summary_setup lintag_setup(void) {
    return (pd_summary_setup){.name = "tags", .datasets = lintag, .n_datasets = 2, .options = all_on()};
}

static void bin_stamps(pd_summary *s, const uint64_t *stamps, size_t n) {
    uint8_t *channels = calloc(n ? n : 1, 1);
    for (size_t done = 0; done < n;) {
        size_t piece = 1 + (size_t)random_below(700);
        piece = piece < n - done ? piece : n - done;
        const void *columns[] = {channels + done, stamps + done};
        pd_summary_bin(s, 0, columns, pd_summary_items(s, 0), piece);
        done += piece;
    }
    free(channels);
}

static void seconds_of_time_stamps(void **state) {
    (void)state;
    enum { N = 50000 };
    uint64_t *stamps = calloc(N, sizeof *stamps), at = 123456789012345u;
    uint64_t expected[100] = {0}, outside = 0;
    for (size_t i = 0; i < N; i++) {
        at += random_below(2000000000u);                                    /* a millisecond on the average */
        stamps[i] = at - (random_below(5) ? 0 : random_below(3000000000u)); /* and some come late */
        if (i == 0)
            at = stamps[0];
        if (stamps[i] < stamps[0])
            outside++;
        else
            expected[(stamps[i] - stamps[0]) / 1000000000000u]++;
    }
    pd_summary_setup setup = lintag_setup();
    pd_summary *s = make(&setup);
    assert_int_equal(pd_summary_n_warnings(s), 0);
    bin_stamps(s, stamps, N);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    const pd_property *counts = find(&snapshot, PD_VECTOR, "second", "counts");
    assert_memory_equal(counts->values, expected, counts->n * sizeof *expected);
    assert_int_equal(scalar_u64(&snapshot, "outside_second"), outside);
    assert_int_equal(sum_u64(counts->values, counts->n) + outside, N);
    assert_int_equal(scalar_u64(&snapshot, "photons"), N);
    assert_null(pd_snapshot_find(&snapshot, PD_AXIS, NULL, "x_pixel"));
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
    free(stamps);
}

/* A counter of 40 bits and ticks of 12.5 / 3 ns. */
static void stamps_that_wrap_in_fractions_of_a_nanosecond(void **state) {
    (void)state;
    enum { N = 30000 };
    uint64_t *stamps = calloc(N, sizeof *stamps), ticks = 0, expected[2000] = {0};
    const uint64_t first = (UINT64_C(1) << 40) - 5000;
    for (size_t i = 0; i < N; i++) {
        stamps[i] = (first + ticks) & ((UINT64_C(1) << 40) - 1);
        expected[(unsigned __int128)ticks * 12500 / (3 * (unsigned __int128)1000000000000u)]++;
        ticks += i == 100 ? UINT64_C(1) << 38 : random_below(1000000);
    }
    pd_dataset datasets[] = {{"/t", D7_UINT64, "", PD_ROLE_TIME_STAMP, "", 1}};
    pd_summary_setup setup = {
        .name = "r", .datasets = datasets, .n_datasets = 1, .time_base = {12500, 3, 40}, .options = all_on()};
    setup.options.max_seconds = 100000;
    pd_summary *s = make(&setup);
    const void *columns[] = {stamps};
    pd_summary_bin(s, 0, columns, 0, N);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_int_equal(scalar_u64(&snapshot, "outside_second"), 0);
    const pd_property *counts = find(&snapshot, PD_VECTOR, "second", "counts");
    assert_memory_equal(counts->values, expected, counts->n * sizeof *expected);
    assert_int_equal(sum_u64(counts->values, counts->n), N);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
    free(stamps);
}

static void the_axis_of_seconds_merges_in_pairs(void **state) {
    (void)state;
    pd_summary_setup setup = lintag_setup();
    setup.options.max_seconds = 60;
    pd_summary *s = make(&setup);
    uint64_t stamps[1000], expected[60] = {0};
    for (size_t i = 0; i < 1000; i++)
        stamps[i] = i * UINT64_C(1000000000000) / 2; /* 500 s: a width of 16 s */
    for (size_t i = 0; i < 1000; i++)
        expected[i / 2 / 16]++;
    bin_stamps(s, stamps, 1000);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_true(scalar_f64(&snapshot, "second_width_s") == 16);
    assert_int_equal(find(&snapshot, PD_AXIS, NULL, "second")->step, 16);
    const uint64_t *counts = vector_u64(&snapshot, "second", "counts", 499 / 16 + 1);
    assert_memory_equal(counts, expected, (499 / 16 + 1) * sizeof *expected);
    assert_true(fabs(scalar_f64(&snapshot, "duration_s") - 499.5) < 1e-9);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

static void a_stamp_out_of_all_reason_is_outside(void **state) {
    (void)state;
    pd_summary_setup setup = lintag_setup();
    setup.options.max_seconds = 60;
    pd_summary *s = make(&setup);
    uint64_t stamps[] = {5000, 4999, UINT64_MAX / 2, 6000, UINT64_MAX};
    bin_stamps(s, stamps, 5);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_true(scalar_f64(&snapshot, "second_width_s") == 1);
    assert_int_equal(vector_u64(&snapshot, "second", "counts", 1)[0], 2);
    assert_int_equal(scalar_u64(&snapshot, "outside_second"), 3);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

static void alive_without_photons_moves_the_axis_on(void **state) {
    (void)state;
    pd_summary_setup setup = lintag_setup();
    pd_summary *s = make(&setup);
    pd_summary_instrument_time(s, 77); /* before the first event: no start to count from */
    uint64_t stamps[] = {1000};
    bin_stamps(s, stamps, 1);
    pd_summary_instrument_time(s, INT64_C(1000) + INT64_C(30500000000000));
    pd_summary_instrument_time(s, INT64_C(1000) + INT64_C(2000000000000));
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_int_equal(find(&snapshot, PD_AXIS, NULL, "second")->n, 31);
    assert_true(fabs(scalar_f64(&snapshot, "duration_s") - 30.5) < 1e-9);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

static void without_a_clock_of_the_instrument_the_servers_counts(void **state) {
    (void)state;
    pd_dataset datasets[] = {{"/dt", D7_UINT16, "", PD_ROLE_MICRO_TIME, "ns", 0.5}};
    pd_summary_setup setup = {.name = "r", .datasets = datasets, .n_datasets = 1, .options = all_on()};
    pd_summary *s = make(&setup);
    uint16_t dt[10] = {0};
    const void *columns[] = {dt};
    pd_summary_bin(s, 0, columns, 0, 3);
    pd_summary_tick(s, 2900000000u);
    pd_summary_tick(s, 1000000000u); /* does not go back */
    pd_summary_bin(s, 0, columns, 3, 10);
    pd_summary_tick(s, 4100000000u);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    static const uint64_t expected[] = {3, 0, 10, 0, 0};
    assert_memory_equal(vector_u64(&snapshot, "second", "counts", 5), expected, sizeof expected);
    assert_true(fabs(scalar_f64(&snapshot, "duration_s") - 4.1) < 1e-9);
    /* and the unit of the data set gives the decay its axis */
    assert_true(((const double *)find(&snapshot, PD_VECTOR, "dt_bin", "time_ps")->values)[2] == 1000);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

/* ---- scalars ---- */

static const char *text_of(const pd_snapshot *snapshot, const char *name) {
    const pd_property *p = pd_snapshot_find(snapshot, PD_SCALAR, NULL, name);
    return p && p->scalar.type == DAF_STRING ? p->scalar.value.s.text : NULL;
}

static void attributes_become_scalars(void **state) {
    (void)state;
    pd_attribute attributes[] = {{"/photons/TacChannel", "12.3"},
                                 {"Comment", "Größe µm ✓"},
                                 {"a/b/c", "deep"},
                                 {"photons", "ours already"},
                                 {"/photons.TacChannel", "2"},
                                 {"", "no name"},
                                 {"/", "no name"},
                                 {"x.nzind", "reserved"},
                                 {"bad\nname", "v"},
                                 {"..", "dots"},
                                 {"Comment", "changed"},
                                 {"bad\xffutf", "v"}};
    pd_summary_setup setup = lincam_setup();
    setup.attributes = attributes;
    setup.n_attributes = sizeof attributes / sizeof attributes[0];
    pd_summary *s = make(&setup);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_string_equal(text_of(&snapshot, "photons.TacChannel"), "12.3");
    assert_string_equal(text_of(&snapshot, "Comment"), "changed");
    assert_string_equal(text_of(&snapshot, "a.b.c"), "deep");
    assert_string_equal(text_of(&snapshot, "name"), "run");
    assert_int_equal(scalar_u64(&snapshot, "photons"), 0);
    assert_int_equal(scalar_u64(&snapshot, "attributes_skipped"), 8);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

static void too_many_or_too_long_attributes_are_skipped_and_counted(void **state) {
    (void)state;
    pd_summary_setup setup = lincam_setup();
    pd_summary *s = make(&setup);
    pd_error err;
    char key[32], *longest = calloc(PD_SUMMARY_VALUE_MAX + 2, 1);
    memset(longest, 'v', PD_SUMMARY_VALUE_MAX + 1);
    for (unsigned i = 0; i < PD_SUMMARY_ATTRIBUTES_MAX + 10; i++) {
        snprintf(key, sizeof key, "key%u", i);
        assert_int_equal(pd_summary_attribute(s, key, "v", &err), 0);
    }
    assert_int_equal(pd_summary_attribute(s, "key0", longest, &err), 0);
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    assert_int_equal(scalar_u64(&snapshot, "attributes_skipped"), 11);
    assert_null(text_of(&snapshot, "key0"));
    assert_string_equal(text_of(&snapshot, "key999"), "v");
    assert_null(text_of(&snapshot, "key1000"));
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
    free(longest);
}

static void a_snapshot_is_a_copy_and_keeps_its_memory(void **state) {
    (void)state;
    pd_summary_setup setup = lincam_setup();
    pd_summary *s = make(&setup);
    uint16_t values[100] = {0};
    const void *columns[] = {values, values, values};
    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    freeze(s, 1, &snapshot);
    size_t bytes = pd_snapshot_bytes(&snapshot);
    assert_true(bytes > 64 * 64 * 4 && bytes < pd_summary_bytes(s));
    for (uint64_t i = 0; i < 20; i++) {
        pd_summary_bin(s, 0, columns, i * 100, 100);
        assert_int_equal(sum_of(&snapshot, PD_MATRIX, "y_pixel", "intensity"), i * 100);
        freeze(s, i + 2, &snapshot);
        assert_int_equal(pd_snapshot_bytes(&snapshot), bytes);
    }
    assert_int_equal(snapshot.export_number, 21);
    pd_snapshot_clear(&snapshot);
    pd_summary_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(image_and_decay_of_every_type),
        cmocka_unit_test(missing_bits_are_assumed_with_a_warning),
        cmocka_unit_test(bad_bits_are_assumed_with_a_warning),
        cmocka_unit_test(attributes_after_open_move_the_axes_until_something_is_binned),
        cmocka_unit_test(switched_off_kinds_leave_nothing),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(seconds_of_an_ms_index),
        cmocka_unit_test(an_ms_index_that_falls_or_leaps),
        cmocka_unit_test(seconds_of_time_stamps),
        cmocka_unit_test(stamps_that_wrap_in_fractions_of_a_nanosecond),
        cmocka_unit_test(the_axis_of_seconds_merges_in_pairs),
        cmocka_unit_test(a_stamp_out_of_all_reason_is_outside),
        cmocka_unit_test(alive_without_photons_moves_the_axis_on),
        cmocka_unit_test(without_a_clock_of_the_instrument_the_servers_counts),
        cmocka_unit_test(attributes_become_scalars),
        cmocka_unit_test(too_many_or_too_long_attributes_are_skipped_and_counted),
        cmocka_unit_test(a_snapshot_is_a_copy_and_keeps_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
