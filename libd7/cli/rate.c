/* d7 rate: how many photons or tags came when. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/output.h"
#include "rate_bins.h"

enum { WIDTH = 900, HEIGHT = 420 };

enum { OPTION_BIN = 256, OPTION_CHANNEL };

static bool take_bin(rate *r, const char *text) {
    range_end end;
    if (range_parse(text, &end) && end.is_time && end.time_ps > 0) {
        r->bin_ps = end.time_ps;
        return true;
    }
    command_fail(r->v.self, "--bin is a time (1s, 100ms, 1min), not %s", text);
    return false;
}

static bool take_channel(rate *r, const char *text) {
    if (r->n_channels == RATE_CURVES_MAX) {
        command_fail(r->v.self, "--channel can be given %d times", RATE_CURVES_MAX);
        return false;
    }
    if (parse_count(text, &r->channels[r->n_channels])) {
        r->n_channels++;
        return true;
    }
    command_fail(r->v.self, "--channel is a whole number, not %s", text);
    return false;
}

static bool rate_option(void *ctx, int option, const char *argument) {
    rate *r = ctx;
    switch (option) {
    case OPTION_BIN:
        return take_bin(r, argument);
    case OPTION_CHANNEL:
        return take_channel(r, argument);
    default:
        return view_option(&r->v, option, argument);
    }
}

/* ---- numbers ---- */

static uint64_t bin_start_ps(const rate *r, size_t bin) {
    return r->start_ps + bin * r->bin_ps;
}

/* Seconds, exactly. */
static void print_seconds(uint64_t ps, FILE *out) {
    char decimals[16];
    int n = snprintf(decimals, sizeof decimals, "%012" PRIu64, ps % 1000000000000u);
    while (n > 0 && decimals[n - 1] == '0')
        decimals[--n] = '\0';
    fprintf(out, "%" PRIu64 "%s%s", ps / 1000000000000u, n ? "." : "", decimals);
}

static double table_value(const void *ctx, size_t row, size_t column) {
    const rate *r = ctx;
    return column == 0 ? (double)bin_start_ps(r, row) * 1e-12 : (double)r->counts[column - 1][row];
}

static void table_print(const void *ctx, size_t row, FILE *out) {
    const rate *r = ctx;
    print_seconds(bin_start_ps(r, row), out);
    for (size_t i = 0; i < r->n_curves; i++)
        fprintf(out, ",%" PRIu64, r->counts[i][row]);
}

static int write_numbers(rate *r) {
    char names[256] = "time_s,count";
    size_t at = r->n_channels ? (size_t)snprintf(names, sizeof names, "time_s") : sizeof names;
    for (size_t i = 0; i < r->n_channels && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, ",count_%" PRIu64, r->channels[i]);
    view_table table = {names, r->n, 1 + r->n_curves, r, table_value, table_print};
    return view_write_table(&r->v, &table);
}

/* ---- the picture ---- */

typedef struct unit {
    const char *name;
    double size;
} unit;

static unit time_unit(double duration_ps) {
    static const unit units[] = {{"h", 3.6e15}, {"min", 6e13}, {"s", 1e12},
                                 {"ms", 1e9},   {"us", 1e6},   {"ns", 1e3}};
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof *units && duration_ps < units[i].size * (i < 2 ? 10 : 2))
        i++;
    return units[i];
}

static unit rate_unit(double largest) {
    return largest >= 1e7   ? (unit){"Mcounts/s", 1e6}
           : largest >= 1e4 ? (unit){"kcounts/s", 1e3}
                            : (unit){"counts/s", 1};
}

/* Bins to draw: a last one that less than half is known of says little. */
static size_t drawn_bins(const rate *r) {
    uint64_t known = r->end_ps > r->start_ps ? r->end_ps - r->start_ps : 0;
    size_t n = (size_t)((known + r->bin_ps / 2) / r->bin_ps);
    return n > r->n ? r->n : n ? n : 1;
}

/* Seconds that are known of a bin. */
static double bin_seconds(const rate *r, size_t bin) {
    uint64_t start = bin_start_ps(r, bin), end = start + r->bin_ps;
    end = end > r->end_ps && r->end_ps > start ? r->end_ps : end;
    return (double)(end - start) * 1e-12;
}

/* [n_curves][n] rates in counts/s. NULL: out of memory. */
static double *make_rates(const rate *r, size_t n, double *ret_largest) {
    double *rates = malloc(r->n_curves * n * sizeof *rates), largest = 0;
    for (size_t c = 0; rates && c < r->n_curves; c++)
        for (size_t i = 0; i < n; i++) {
            rates[c * n + i] = (double)r->counts[c][i] / bin_seconds(r, i);
            largest = fmax(largest, rates[c * n + i]);
        }
    *ret_largest = largest;
    return rates;
}

static void draw_curves(const rate *r, plot_figure *f, const double *rates, size_t n) {
    char text[RATE_CURVES_MAX][40];
    const char *names[RATE_CURVES_MAX];
    plot_color colors[RATE_CURVES_MAX];
    for (size_t c = 0; c < r->n_curves; c++) {
        colors[c] = plot_curve_color(c);
        plot_figure_steps(f, f->x.low, f->x.high, rates + c * n, n, colors[c], r->n_curves == 1);
        snprintf(text[c], sizeof text[c], "channel %" PRIu64, r->channels[c]);
        names[c] = text[c];
    }
    if (r->n_channels)
        plot_figure_legend(f, names, colors, r->n_curves);
}

static void rate_facts(const rate *r, char *text, size_t cap) {
    char counted[32];
    unit u = time_unit((double)r->bin_ps * 5);
    view_count_text(counted, r->counted);
    snprintf(text, cap, "%s %s, bins of %.4g %s", counted, r->v.tags ? "tags" : "photons",
             (double)r->bin_ps / u.size, u.name);
}

static int draw(rate *r, double *rates, size_t n, double largest) {
    char facts[160], x_label[32], y_label[48];
    view_titles titles;
    plot_figure f;
    double low = (double)r->start_ps, high = (double)bin_start_ps(r, n);
    unit x = time_unit(high), y = rate_unit(largest);
    rate_facts(r, facts, sizeof facts);
    view_make_titles(&r->v, &titles, facts);
    snprintf(x_label, sizeof x_label, "time (%s)", x.name);
    snprintf(y_label, sizeof y_label, "rate (%s)", y.name);
    plot_layout layout = {
        .width = WIDTH,
        .height = HEIGHT,
        .titles = {titles.name, titles.facts, titles.part[0] ? titles.part : NULL},
        .x = {.low = low / x.size, .high = high / x.size, .grid = true, .label = x_label},
        .y = {.high = largest > 0 ? largest / y.size * 1.08 : 1, .grid = true, .label = y_label}};
    if (!plot_figure_begin(&f, &layout))
        return command_fail(r->v.self, "out of memory");
    for (size_t i = 0; i < r->n_curves * n; i++)
        rates[i] /= y.size;
    draw_curves(r, &f, rates, n);
    int code = view_write_png(&r->v, &f, titles.name);
    plot_figure_free(&f);
    return code;
}

static int write_picture(rate *r) {
    size_t n = drawn_bins(r);
    double largest, *rates = make_rates(r, n, &largest);
    int code = rates ? draw(r, rates, n, largest) : command_fail(r->v.self, "out of memory");
    free(rates);
    return code;
}

/* ---- the command ---- */

static void say_oddities(const rate *r) {
    if (r->unplaced)
        command_fail(r->v.self, "%s: %" PRIu64 " %s have no place in time: %s", r->v.path, r->unplaced,
                     r->v.tags ? "tags" : "photons",
                     d7_reader_state(r->v.reader) == D7_STATE_OPEN
                         ? "their time is not known yet, or cannot be read"
                         : "their time cannot be read, or is before the start");
    if (r->odd)
        command_fail(
            r->v.self,
            "%s: the index of milliseconds falls, or counts more photons than there are: it is wrong "
            "somewhere; d7 verify shows more",
            r->v.path);
}

static int rate_make(rate *r, const char *path) {
    int code = view_begin(&r->v, path);
    if (code == 0)
        code = rate_count(r);
    if (code == 0) {
        say_oddities(r);
        code = r->v.format == VIEW_PNG ? write_picture(r) : write_numbers(r);
    }
    bool odd = r->odd;
    rate_free_bins(r);
    code = view_finish(&r->v, code);
    return code == CLI_OK && odd ? CLI_PROBLEMS : code;
}

static int rate_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"bin", required_argument, NULL, OPTION_BIN},
                                            {"channel", required_argument, NULL, OPTION_CHANNEL},
                                            VIEW_OPTIONS};
    rate r = {.v = {.self = self}};
    int code = command_options(self, argc, argv, options, rate_option, &r, 1);
    return code >= 0 ? code : rate_make(&r, argv[optind]);
}

const command command_rate = {
    .name = "rate",
    .summary = "counts over time: a picture, or numbers",
    .help =
        "usage: d7 rate FILE -o OUT [--bin T] [--channel N...] [--from A] [--to B] [--format png|csv|npy]\n"
        "               [--overwrite] [--unframed]\n\n"
        "Counts photons or tags in bins of time and draws the rate, or writes a table of time in s since the "
        "start\n"
        "(where the bin begins) and count. Photons have their time from the index of milliseconds "
        "(/photons/ms), else\n"
        "from /photons/aat, /stop/time or /start/time; tags from /tags/time. In the picture a last bin that "
        "is only\n"
        "half known is left out.\n\n" VIEW_HELP
        "  --bin T           how long a bin is: 1s, 100ms, 1min; default: so that there are some hundred\n"
        "  --channel N       only tags of this channel; up to 8 times, each has a curve, or a column, of its "
        "own\n"
        "  --help            this text\n\n"
        "Exit status: 0 good, 1 the data has problems, 2 usage, or the file cannot be read.\n\n"
        "Examples:\n"
        "  d7 rate run.photons -o rate.png\n"
        "  d7 rate run.photons -o rate.csv --bin 1s\n"
        "  d7 rate tags.photons -o channels.png --channel 1 --channel 3\n",
    .run = rate_run,
    .letters = "o:",
    .makes = true,
};
