/* What pictures are made of: ticks, characters, colors, places in the plot area. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "plot_font.h"
#include "plot_ticks.h"
#include "testing.h"

/* ---- ticks ---- */

static const plot_tick *find_label(const plot_tick *ticks, size_t n, const char *label) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(ticks[i].label, label) == 0)
            return &ticks[i];
    return NULL;
}

static size_t count_labels(const plot_tick *ticks, size_t n) {
    size_t labels = 0;
    for (size_t i = 0; i < n; i++)
        labels += ticks[i].label[0] != '\0';
    return labels;
}

static void assert_at(const plot_tick *ticks, size_t n, const char *label, double at) {
    const plot_tick *t = find_label(ticks, n, label);
    if (!t)
        fail_msg("there is no %s", label);
    assert_true(fabs(t->at - at) <= 1e-9 * fabs(at) + 1e-12);
}

static void linear_ticks(void **state) {
    (void)state;
    plot_tick t[PLOT_TICKS_MAX];
    size_t n = plot_ticks_linear(0, 512, 6, true, t);
    assert_int_equal(count_labels(t, n), 6);
    assert_at(t, n, "0", 0);
    assert_at(t, n, "500", 500);

    n = plot_ticks_linear(0, 13.4, 10, false, t);
    assert_at(t, n, "12", 12);
    assert_int_equal(count_labels(t, n), 7);

    n = plot_ticks_linear(-0.3, 0.25, 6, false, t);
    assert_at(t, n, "-0.3", -0.3);
    assert_at(t, n, "0", 0);
    assert_at(t, n, "0.2", 0.2);

    n = plot_ticks_linear(0, 2.5e6, 6, true, t);
    assert_at(t, n, "0.5M", 5e5);
    assert_at(t, n, "2.5M", 2.5e6);

    n = plot_ticks_linear(1e6, 1e6 + 10, 6, true, t);
    assert_at(t, n, "1.000002M", 1000002);
}

static void whole_ticks(void **state) {
    (void)state;
    plot_tick t[PLOT_TICKS_MAX];
    for (unsigned high = 1; high < 300; high++) {
        size_t n = plot_ticks_linear(0, high, 8, true, t);
        for (size_t i = 0; i < n; i++)
            assert_true(t[i].at == floor(t[i].at));
    }
}

/* Any range has at least two numbers and not too many, in it, rising. */
static void any_range_has_ticks(void **state) {
    (void)state;
    plot_tick t[PLOT_TICKS_MAX];
    for (int e = -12; e < 15; e++)
        for (unsigned k = 1; k < 100; k++) {
            double low = pow(10, e) * (k % 7), high = low + pow(10, e) * k / 3;
            size_t n = plot_ticks_linear(low, high, 8, false, t);
            assert_in_range(n, 3, PLOT_TICKS_MAX - 1);
            assert_in_range(count_labels(t, n), 2, 9);
            for (size_t i = 0; i < n; i++) {
                assert_true(t[i].at >= low - (high - low) * 1e-5 && t[i].at <= high + (high - low) * 1e-5);
                assert_true(i == 0 || t[i].at > t[i - 1].at);
            }
        }
    assert_int_equal(plot_ticks_linear(1, 1, 8, false, t), 0);
    assert_int_equal(plot_ticks_linear(0, INFINITY, 8, false, t), 0);
    assert_int_equal(plot_ticks_linear(NAN, 1, 8, false, t), 0);
}

static void log_ticks(void **state) {
    (void)state;
    plot_tick t[PLOT_TICKS_MAX];
    size_t n = plot_ticks_log(0.5, 30000, 8, t);
    assert_at(t, n, "1", 1);
    assert_at(t, n, "1000", 1000);
    assert_at(t, n, "10k", 10000);
    assert_int_equal(count_labels(t, n), 5);
    assert_int_equal(n, 5 + 4 * 8 + 2 + 5);

    n = plot_ticks_log(2, 60, 8, t);
    assert_at(t, n, "2", 2);
    assert_at(t, n, "50", 50);
    n = plot_ticks_log(1, 1e12, 4, t);
    assert_in_range(count_labels(t, n), 2, 4);
    assert_at(t, n, "1", 1);
    assert_int_equal(plot_ticks_log(0, 10, 4, t), 0);
}

/* ---- characters ---- */

static unsigned black_quarters(unsigned char c) {
    unsigned n = 0;
    for (int row = 0; row < 2 * PLOT_GLYPH_HEIGHT; row++)
        for (int column = 0; column < 2 * PLOT_GLYPH_WIDTH; column++)
            n += plot_font_quarter(c, column, row);
    return n;
}

static bool same_glyph(unsigned char a, unsigned char b) {
    for (int row = 0; row < 2 * PLOT_GLYPH_HEIGHT; row++)
        for (int column = 0; column < 2 * PLOT_GLYPH_WIDTH; column++)
            if (plot_font_quarter(a, column, row) != plot_font_quarter(b, column, row))
                return false;
    return true;
}

static void font_is_whole(void **state) {
    (void)state;
    assert_int_equal(black_quarters(' '), 0);
    for (unsigned a = '!'; a <= '~'; a++) {
        assert_true(black_quarters((unsigned char)a) >= 8);
        for (unsigned b = a + 1; b <= '~'; b++)
            assert_false(same_glyph((unsigned char)a, (unsigned char)b));
    }
    assert_true(same_glyph(200, '?') && same_glyph(7, '?') && same_glyph(127, '?'));
    assert_false(plot_font_quarter('M', -1, 0) || plot_font_quarter('M', 0, -1));
    assert_false(plot_font_quarter('M', 2 * PLOT_GLYPH_WIDTH, 0) ||
                 plot_font_quarter('g', 0, 2 * PLOT_GLYPH_HEIGHT));
}

/* The slash is dots that touch by their corners: the quarters between them are filled. */
static void slanted_strokes_are_smooth(void **state) {
    (void)state;
    assert_true(plot_font_quarter('/', 8, 2) && plot_font_quarter('/', 7, 5));
    assert_true(plot_font_quarter('/', 7, 3)); /* between the dots in rows 1 and 2 */
    assert_false(plot_font_quarter('/', 2, 2));
}

static const uint8_t *dot_at(const plot_canvas *c, int x, int y) {
    return c->rgb + ((size_t)y * (size_t)c->width + (size_t)x) * 3;
}

static bool is_color(const plot_canvas *c, int x, int y, plot_color color) {
    const uint8_t *dot = dot_at(c, x, y);
    return dot[0] == color.red && dot[1] == color.green && dot[2] == color.blue;
}

static const plot_color red = {255, 0, 0}, white = {255, 255, 255};

static void text_is_placed(void **state) {
    (void)state;
    plot_canvas a, b;
    assert_true(plot_canvas_init(&a, 100, 30) && plot_canvas_init(&b, 30, 100));
    plot_text(&a, 5, 3, "Fg", red);
    plot_text_upwards(&b, 3, 5, "Fg", red);
    assert_true(is_color(&a, 5, 3, red)); /* the corner of the F */
    int width = plot_text_width("Fg");
    assert_int_equal(width, 24);
    for (int y = 0; y < PLOT_TEXT_HEIGHT; y++)
        for (int x = 0; x < width; x++)
            assert_memory_equal(dot_at(&a, 5 + x, 3 + y), dot_at(&b, 3 + y, 5 + width - 1 - x), 3);
    assert_int_equal(plot_text_width("\xc3\xbc"), 12);
    plot_canvas_free(&a);
    plot_canvas_free(&b);
}

static void drawing_is_clipped(void **state) {
    (void)state;
    plot_canvas c;
    assert_false(plot_canvas_init(&c, 0, 5) || plot_canvas_init(&c, 5, -1) ||
                 plot_canvas_init(&c, 1 << 20, 5));
    assert_true(plot_canvas_init(&c, 20, 10));
    plot_fill(&c, (plot_box){-5, -5, 8, 7}, red);
    plot_fill(&c, (plot_box){18, 8, 100, 100}, red);
    plot_fill(&c, (plot_box){30, 3, 5, 5}, red);
    plot_text(&c, -6, 5, "clipped at all sides", red);
    assert_true(is_color(&c, 2, 1, red) && is_color(&c, 3, 1, white) && is_color(&c, 2, 2, white));
    assert_true(is_color(&c, 19, 9, red));
    plot_canvas_free(&c);
}

/* ---- colors ---- */

static double lightness(plot_color c) {
    return 0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue;
}

static void maps_get_lighter(void **state) {
    (void)state;
    static const char *const names[] = {"inferno", "viridis", "hot", "grey"};
    char all[128];
    plot_colormap_names(all, sizeof all);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const plot_colormap *map = plot_colormap_find(names[i]);
        assert_non_null(map);
        assert_non_null(strstr(all, names[i]));
        for (int k = 8; k < 256; k++) /* colors are whole numbers: neighbours may be equally light */
            assert_true(lightness(plot_colormap_at(map, k / 255.0)) >
                        lightness(plot_colormap_at(map, (k - 8) / 255.0)));
        assert_memory_equal(&(plot_color[]){plot_colormap_at(map, -3)},
                            &(plot_color[]){plot_colormap_at(map, 0)}, 3);
        assert_memory_equal(&(plot_color[]){plot_colormap_at(map, 7)},
                            &(plot_color[]){plot_colormap_at(map, 1)}, 3);
    }
    assert_null(plot_colormap_find("rainbow"));
    assert_int_equal(plot_colormap_at(plot_colormap_find("grey"), 0.5).red, 128);
}

/* ---- figures ---- */

static void axes_place_values(void **state) {
    (void)state;
    plot_axis linear = {.low = 10, .high = 20}, logarithmic = {.low = 1, .high = 1000, .log = true};
    assert_true(plot_axis_part(&linear, 10) == 0 && plot_axis_part(&linear, 15) == 0.5 &&
                plot_axis_part(&linear, 20) == 1);
    assert_true(fabs(plot_axis_part(&logarithmic, 10) - 1 / 3.0) < 1e-12);
    assert_true(plot_axis_part(&logarithmic, 0) < 0 && plot_axis_part(&linear, 1e300) <= 1.1);
}

static plot_layout bare_layout(void) {
    return (plot_layout){.width = 100,
                         .height = 50,
                         .titles = {"a title that is much too long for the little figure below it, by far"},
                         .x = {.high = 10, .label = "x"},
                         .y = {.high = 4, .label = "y"}};
}

static void steps_reach_their_values(void **state) {
    (void)state;
    plot_layout layout = bare_layout();
    plot_figure f;
    const double values[10] = {0, 0, 0, 0, 0, 2, 2, 2, 2, 2};
    assert_true(plot_figure_begin(&f, &layout));
    plot_figure_steps(&f, 0, 10, values, 10, red, false);
    int middle = f.area.y + f.area.height / 2, left = f.area.x;
    assert_true(is_color(&f.canvas, left + 75, middle, red));      /* the value 2 of 4 */
    assert_true(is_color(&f.canvas, left + 50, middle + 15, red)); /* the step up to it */
    assert_true(is_color(&f.canvas, left + 25, middle, white) &&
                is_color(&f.canvas, left + 75, middle + 15, white));
    assert_true(is_color(&f.canvas, left + 25, f.area.y + f.area.height - 1, red));
    plot_figure_free(&f);
}

/* Many values in a column of dots: it shows the least and the largest. */
static void no_spike_is_lost(void **state) {
    (void)state;
    enum { N = 100000 };
    plot_layout layout = bare_layout();
    plot_figure f;
    double *values = calloc(N, sizeof *values);
    assert_non_null(values);
    values[77777] = 3.9;
    assert_true(plot_figure_begin(&f, &layout));
    plot_figure_steps(&f, 0, 10, values, N, red, false);
    assert_true(is_color(&f.canvas, f.area.x + 77, f.area.y + 10, red));
    free(values);
    plot_figure_free(&f);
}

static void a_curve_stays_in_the_area(void **state) {
    (void)state;
    plot_layout layout = bare_layout();
    plot_figure f, bare;
    const double values[3] = {-5, 1000, 2};
    assert_true(plot_figure_begin(&f, &layout) && plot_figure_begin(&bare, &layout));
    plot_figure_steps(&f, 0, 10, values, 3, red, true);
    plot_figure_steps(&f, 0, 10, values, 0, red, true);
    for (int y = 0; y < f.canvas.height; y++)
        for (int x = 0; x < f.canvas.width; x++)
            if (x < f.area.x || x >= f.area.x + f.area.width || y < f.area.y || y >= f.area.y + f.area.height)
                assert_memory_equal(dot_at(&f.canvas, x, y), dot_at(&bare.canvas, x, y), 3);
    plot_figure_free(&f);
    plot_figure_free(&bare);
}

static void long_words_fit(void **state) {
    (void)state;
    char title[2000];
    plot_layout layout = bare_layout();
    plot_figure f;
    memset(title, 'W', sizeof title - 1);
    title[sizeof title - 1] = '\0';
    layout.titles[0] = layout.titles[1] = layout.titles[2] = layout.y.label = layout.x.label = title;
    layout.colors = plot_colormap_find("hot");
    layout.bar = (plot_axis){.low = 0.5, .high = 2e9, .log = true, .label = title};
    layout.bar_exceeded = true;
    assert_true(plot_figure_begin(&f, &layout));
    plot_figure_free(&f);
    plot_figure_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_ticks),
        cmocka_unit_test(whole_ticks),
        cmocka_unit_test(any_range_has_ticks),
        cmocka_unit_test(log_ticks),
        cmocka_unit_test(font_is_whole),
        cmocka_unit_test(slanted_strokes_are_smooth),
        cmocka_unit_test(text_is_placed),
        cmocka_unit_test(drawing_is_clipped),
        cmocka_unit_test(maps_get_lighter),
        cmocka_unit_test(axes_place_values),
        cmocka_unit_test(steps_reach_their_values),
        cmocka_unit_test(no_spike_is_lost),
        cmocka_unit_test(a_curve_stays_in_the_area),
        cmocka_unit_test(long_words_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
