/* d7 decay: how long after the laser pulse the photons came. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bins.h"
#include "cli/output.h"
#include "view.h"

enum { BITS_DEFAULT = 12, BITS_MAX = 16, WIDTH = 900, HEIGHT = 500, PAIR_BINS = 1024, SAMPLE_ROWS = 65536 };

typedef struct decay {
    view v;
    uint64_t bins_wanted; /* 0: one a TAC channel */
    bool linear, channels;
    /* what was counted */
    bins *bins;
    size_t n;
    unsigned channels_a_bin;   /* 0: differences of time stamps */
    double first_ps, width_ps; /* of the first bin; of a bin, NAN where it is not known */
    int64_t *sample;           /* [n_sample] of differences, to choose bins by */
    size_t n_sample;
} decay;

enum { OPTION_BINS = 256, OPTION_CHANNELS, OPTION_LOG, OPTION_LINEAR };

static bool decay_option(void *ctx, int option, const char *argument) {
    decay *d = ctx;
    switch (option) {
    case OPTION_BINS:
        if (parse_count(argument, &d->bins_wanted) && d->bins_wanted >= 1 &&
            d->bins_wanted <= 1u << BITS_MAX && (d->bins_wanted & (d->bins_wanted - 1)) == 0)
            return true;
        command_fail(d->v.self, "--bins is a power of two up to %u, not %s", 1u << BITS_MAX, argument);
        return false;
    case OPTION_CHANNELS:
        return d->channels = true;
    case OPTION_LINEAR:
        return d->linear = true;
    case OPTION_LOG:
        d->linear = false;
        return true;
    default:
        return view_option(&d->v, option, argument);
    }
}

/* ---- by TAC channels ---- */

static int count_rows(decay *d, const uint32_t *ids, const bins_rule *rule) {
    d->bins = bins_new(d->n, rule, d->v.pool);
    if (!d->bins)
        return command_fail(d->v.self, "out of memory");
    int code = view_rows(&d->v, ids, rule->columns, d->v.from, view_end_of_range(&d->v), bins_clear,
                         bins_take, d->bins);
    bins_finish(d->bins);
    return code;
}

static int count_channels(decay *d) {
    view *v = &d->v;
    uint32_t id;
    d7_dataset_info info;
    int code = view_need(v, D7_ROLE_MICRO_TIME, "/photons/dt", &id);
    if (code != 0 || d7_reader_dataset(v->reader, id, &info) != 0)
        return code;
    unsigned bits = view_bits(v, "/photons/TacBits", 1, BITS_MAX, BITS_DEFAULT), shift = 0;
    uint64_t wanted = d->bins_wanted ? d->bins_wanted : 1u << bits;
    if (wanted > 1u << bits)
        return command_fail(v->self, "%s: micro times have %u bits: at most %u bins", v->path, bits,
                            1u << bits);
    while (wanted << shift < 1u << bits)
        shift++;
    d->n = (size_t)wanted;
    d->channels_a_bin = 1u << shift;
    d->width_ps = view_number(v, "/photons/TacChannel") * d->channels_a_bin;
    if (isnan(d->width_ps))
        command_fail(v->self,
                     "%s: attribute /photons/TacChannel is missing or not usable: times are not known",
                     v->path);
    bins_rule rule = {.columns = 1, .types = {info.type}, .bits = bits, .shift = shift};
    return count_rows(d, &id, &rule);
}

/* ---- by time stamps of start and stop ---- */

static void forget_sample(void *ctx) {
    ((decay *)ctx)->n_sample = 0;
}

static void take_sample(void *ctx, const d7_chunk *chunk) {
    decay *d = ctx;
    const uint64_t *start = chunk->values[0], *stop = chunk->values[1];
    for (size_t i = 0; i < chunk->n && d->n_sample < SAMPLE_ROWS; i++)
        d->sample[d->n_sample++] = (int64_t)(stop[i] - start[i]);
}

static int compare_differences(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Bins of 1, 2 or 5 times a power of ten of ps that hold all but the farthest differences of the sample. */
static void choose_bins(decay *d, bins_rule *rule) {
    uint64_t wanted = d->bins_wanted ? d->bins_wanted : PAIR_BINS, step = 1;
    double low = 0, high = 1;
    if (d->n_sample) {
        qsort(d->sample, d->n_sample, sizeof *d->sample, compare_differences);
        low = (double)d->sample[d->n_sample / 200];
        high = (double)d->sample[d->n_sample - 1 - d->n_sample / 200];
    }
    double margin = (high - low) / 20 + 1, range = high - low + 2 * margin;
    static const uint64_t times[] = {1, 2, 5};
    for (unsigned i = 0;
         (double)step * (double)times[i % 3] < range / (double)wanted && step < UINT64_MAX / 100; i++) {
        rule->width = step * times[(i + 1) % 3];
        step = i % 3 == 2 ? step * 10 : step;
    }
    rule->width = rule->width ? rule->width : 1;
    rule->low = (int64_t)(floor((low - margin) / (double)rule->width) * (double)rule->width);
    d->n = (size_t)ceil((high + margin - (double)rule->low) / (double)rule->width);
}

static int sample_differences(decay *d, const uint32_t ids[2]) {
    view *v = &d->v;
    uint64_t end = v->to - v->from > SAMPLE_ROWS ? v->from + SAMPLE_ROWS : view_end_of_range(v),
             skipped = v->skipped;
    d->sample = malloc(SAMPLE_ROWS * sizeof *d->sample);
    if (!d->sample)
        return command_fail(v->self, "out of memory");
    int code = view_rows(v, ids, 2, v->from, end, forget_sample, take_sample, d);
    v->skipped = skipped;
    return code;
}

static int count_pairs(decay *d) {
    view *v = &d->v;
    uint32_t ids[2];
    d7_dataset_info start, stop;
    bins_rule rule = {.columns = 2};
    int code = view_need(v, D7_ROLE_START, "/start/time", &ids[0]);
    if (code == 0)
        code = view_need(v, D7_ROLE_STOP, "/stop/time", &ids[1]);
    if (code != 0 || d7_reader_dataset(v->reader, ids[0], &start) != 0 ||
        d7_reader_dataset(v->reader, ids[1], &stop) != 0)
        return code;
    if (d7_type_size(start.type) != 8 || d7_type_size(stop.type) != 8)
        return command_fail(v->self, "%s: /start/time and /stop/time are not of 64 bits", v->path);
    code = sample_differences(d, ids);
    if (code != 0)
        return code;
    choose_bins(d, &rule);
    d->first_ps = (double)rule.low;
    d->width_ps = (double)rule.width;
    return count_rows(d, ids, &rule);
}

static int count_photons(decay *d) {
    uint32_t id;
    if (d7_reader_find_role(d->v.reader, D7_ROLE_MICRO_TIME, &id) == 0)
        return count_channels(d);
    if (d7_reader_find_role(d->v.reader, D7_ROLE_START, &id) != 0 ||
        d7_reader_find_role(d->v.reader, D7_ROLE_STOP, &id) != 0)
        return command_fail(
            d->v.self,
            "%s: there are neither micro times (/photons/dt) nor pairs of time stamps (/start/time and "
            "/stop/time); d7 info shows what there is",
            d->v.path);
    return count_pairs(d);
}

/* ---- numbers ---- */

static double table_value(const void *ctx, size_t row, size_t column) {
    const decay *d = ctx;
    if (column == 0)
        return d->channels_a_bin ? (double)(row * d->channels_a_bin) : (double)row;
    return column == 1 ? d->first_ps + (double)row * d->width_ps : (double)bins_count(d->bins, row);
}

static void table_print(const void *ctx, size_t row, FILE *out) {
    const decay *d = ctx;
    fprintf(out, "%.0f,", table_value(ctx, row, 0));
    if (!isnan(d->width_ps))
        fprintf(out, "%.15g", table_value(ctx, row, 1));
    fprintf(out, ",%" PRIu64, bins_count(d->bins, row));
}

static int write_numbers(decay *d) {
    view_table table = {"channel,time_ps,count", d->n, 3, d, table_value, table_print};
    return view_write_table(&d->v, &table);
}

/* ---- the picture ---- */

/* Bins that are shown: without those after the last count, when they are many. */
static size_t shown_bins(const decay *d) {
    size_t n = d->n;
    while (n > 1 && bins_count(d->bins, n - 1) == 0)
        n--;
    n += n / 30 + 1;
    return n < d->n - d->n / 16 ? n : d->n;
}

/* The y axis: everything that was counted, and some air. */
static plot_axis count_axis(const decay *d) {
    uint64_t largest = 0, smallest = UINT64_MAX;
    for (size_t i = 0; i < d->n; i++) {
        uint64_t count = bins_count(d->bins, i);
        largest = count > largest ? count : largest;
        smallest = count && count < smallest ? count : smallest;
    }
    plot_axis y = {.log = !d->linear && largest > 0, .whole = true, .grid = true};
    y.low = y.log ? (double)smallest / 1.5 : 0;
    y.high = y.log ? (double)largest * 1.8 : fmax((double)largest * 1.06, 1);
    return y;
}

static void decay_facts(const decay *d, char *text, size_t cap) {
    char inside[32], outside[32];
    uint64_t lost = bins_outside(d->bins);
    view_count_text(inside, bins_inside(d->bins));
    view_count_text(outside, lost);
    snprintf(text, cap, "%s photons%s%s%s%s", inside, lost ? ", " : "", lost ? outside : "",
             lost ? " outside" : "", d->channels_a_bin ? "" : ", stop - start");
}

static int write_picture(decay *d) {
    char facts[160], count_label[80];
    view_titles titles;
    plot_figure f;
    bool times = !isnan(d->width_ps) && !(d->channels && d->channels_a_bin);
    size_t shown = shown_bins(d);
    double *values = malloc(shown * sizeof *values);
    double from = times ? d->first_ps / 1e3 : 0,
           width = times ? d->width_ps / 1e3 : fmax(d->channels_a_bin, 1);
    decay_facts(d, facts, sizeof facts);
    view_make_titles(&d->v, &titles, facts);
    if (isnan(d->width_ps))
        snprintf(count_label, sizeof count_label, "photons per %u channels", d->channels_a_bin);
    else
        snprintf(count_label, sizeof count_label, "photons per %.4g ps", d->width_ps);
    plot_layout layout = {.width = WIDTH,
                          .height = HEIGHT,
                          .titles = {titles.name, titles.facts, titles.part[0] ? titles.part : NULL},
                          .x = {.low = from,
                                .high = from + width * (double)shown,
                                .whole = !times,
                                .grid = true,
                                .label = times ? d->channels_a_bin ? "micro time (ns)" : "stop - start (ns)"
                                               : "micro time (TAC channel)"},
                          .y = count_axis(d)};
    layout.y.label = count_label;
    if (!values || !plot_figure_begin(&f, &layout)) {
        free(values);
        return command_fail(d->v.self, "out of memory");
    }
    for (size_t i = 0; i < shown; i++)
        values[i] = (double)bins_count(d->bins, i);
    plot_figure_steps(&f, layout.x.low, layout.x.high, values, shown, plot_curve_color(0), true);
    int code = view_write_png(&d->v, &f, titles.name);
    plot_figure_free(&f);
    free(values);
    return code;
}

/* ---- the command ---- */

static void say_outside(const decay *d) {
    uint64_t outside = bins_outside(d->bins);
    if (outside)
        command_fail(d->v.self, "%s: %" PRIu64 " of %" PRIu64 " photons are outside: %s", d->v.path, outside,
                     outside + bins_inside(d->bins),
                     d->channels_a_bin ? "micro times beyond TacBits" : "differences far from the others");
}

static int decay_make(decay *d, const char *path) {
    int code = view_begin(&d->v, path);
    if (code == 0)
        code = count_photons(d);
    if (code == 0) {
        say_outside(d);
        code = d->v.format == VIEW_PNG ? write_picture(d) : write_numbers(d);
    }
    bins_free(d->bins);
    free(d->sample);
    return view_finish(&d->v, code);
}

static int decay_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"bins", required_argument, NULL, OPTION_BINS},
                                            {"channels", no_argument, NULL, OPTION_CHANNELS},
                                            {"log", no_argument, NULL, OPTION_LOG},
                                            {"linear", no_argument, NULL, OPTION_LINEAR},
                                            VIEW_OPTIONS};
    decay d = {.v = {.self = self}};
    int code = command_options(self, argc, argv, options, decay_option, &d, 1);
    return code >= 0 ? code : decay_make(&d, argv[optind]);
}

const command command_decay = {
    .name = "decay",
    .summary = "the histogram of micro times: a picture, or counts",
    .help =
        "usage: d7 decay FILE -o OUT [--bins N] [--from A] [--to B] [--format png|csv|npy] [--overwrite] "
        "[--unframed]\n"
        "                [--log|--linear] [--channels]\n\n"
        "Counts the photons of each TAC channel (/photons/dt) and draws the decay, or writes a table of "
        "channel,\n"
        "time in ps (the channel's lower edge) and count. Of files with time stamps of start and stop "
        "(/start/time,\n"
        "/stop/time) the differences stop - start are counted, in bins chosen to hold all but the farthest; "
        "which of\n"
        "the two is the photon depends on the set-up. What is outside of the bins is counted and "
        "named.\n\n" VIEW_HELP
        "  --bins N          that many bins, a power of two, instead of one a channel\n"
        "  --log, --linear   counts by their logarithm (default), or not\n"
        "  --channels        the axis in TAC channels instead of ns\n"
        "  --help            this text\n\n"
        "Exit status: 0 good, 1 the data has problems, 2 usage, or the file cannot be read.\n\n"
        "Examples:\n"
        "  d7 decay run.photons -o decay.png\n"
        "  d7 decay run.photons -o decay.csv --bins 256\n"
        "  d7 decay run.photons -o - --from 10min --to 20min | head\n",
    .run = decay_run,
    .letters = "o:",
    .makes = true,
};
