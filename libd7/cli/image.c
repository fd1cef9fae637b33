/* d7 image: where the photons were. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bins.h"
#include "cli/npy.h"
#include "cli/output.h"
#include "view.h"

enum { PIXELS_DEFAULT = 512, PIXELS_MAX = 4096, BITS_DEFAULT = 12, AREA_DOTS = 512 };

typedef struct image {
    view v;
    unsigned pixels; /* a side; a power of two */
    unsigned bits;   /* of positions */
    bool no_flip, log;
    const plot_colormap *colors;
    double max;     /* counts of the brightest color; 0: by percent */
    double percent; /* of the pixels that have photons, at most so bright */
    uint64_t largest;
    bins *bins;
} image;

enum { OPTION_PIXELS = 256, OPTION_COLORMAP, OPTION_NO_FLIP, OPTION_LOG, OPTION_MAX };

/* ---- options ---- */

static bool take_pixels(image *im, const char *text) {
    uint64_t n;
    if (parse_count(text, &n) && n >= 1 && n <= PIXELS_MAX && (n & (n - 1)) == 0) {
        im->pixels = (unsigned)n;
        return true;
    }
    command_fail(im->v.self, "--pixels is a power of two up to %d, not %s", PIXELS_MAX, text);
    return false;
}

static bool take_max(image *im, const char *text) {
    char *end;
    double value = strtod(text, &end);
    bool percent = *end == '%' && end[1] == '\0';
    if (end == text || (*end && !percent) || !(value > 0) || !isfinite(value) || (percent && value > 100)) {
        command_fail(im->v.self, "--max is a number of photons (50) or of percent (99.5%%), not %s", text);
        return false;
    }
    im->max = percent ? 0 : value;
    im->percent = percent ? value : 0;
    return true;
}

static bool take_colormap(image *im, const char *name) {
    char names[128];
    im->colors = plot_colormap_find(name);
    if (im->colors)
        return true;
    plot_colormap_names(names, sizeof names);
    command_fail(im->v.self, "--colormap is one of %s, not %s", names, name);
    return false;
}

static bool image_option(void *ctx, int option, const char *argument) {
    image *im = ctx;
    switch (option) {
    case OPTION_PIXELS:
        return take_pixels(im, argument);
    case OPTION_COLORMAP:
        return take_colormap(im, argument);
    case OPTION_MAX:
        return take_max(im, argument);
    case OPTION_NO_FLIP:
        return im->no_flip = true;
    case OPTION_LOG:
        return im->log = true;
    default:
        return view_option(&im->v, option, argument);
    }
}

/* ---- counting ---- */

static unsigned log2_of(unsigned power) {
    unsigned n = 0;
    while (power >> (n + 1))
        n++;
    return n;
}

static int count_photons(image *im) {
    view *v = &im->v;
    uint32_t ids[2];
    d7_dataset_info x, y;
    int code = view_need(v, D7_ROLE_X, "/photons/x", &ids[0]);
    if (code == 0)
        code = view_need(v, D7_ROLE_Y, "/photons/y", &ids[1]);
    if (code != 0)
        return code;
    im->bits = view_bits(v, "/photons/PositionBits", 1, 16, BITS_DEFAULT);
    if (im->pixels >> im->bits > 1)
        return command_fail(v->self, "%s: positions have %u bits: at most %u pixels can be told apart",
                            v->path, im->bits, 1u << im->bits);
    if (d7_reader_dataset(v->reader, ids[0], &x) != 0 || d7_reader_dataset(v->reader, ids[1], &y) != 0)
        return command_fail(v->self, "%s: datasets are gone", v->path);
    bins_rule rule = {.columns = 2,
                      .types = {x.type, y.type},
                      .bits = im->bits,
                      .shift = im->bits - log2_of(im->pixels),
                      .row_shift = log2_of(im->pixels)};
    im->bins = bins_new((size_t)im->pixels * im->pixels, &rule, v->pool);
    if (!im->bins)
        return command_fail(v->self, "out of memory");
    code = view_rows(v, ids, 2, v->from, view_end_of_range(v), bins_clear, bins_take, im->bins);
    bins_finish(im->bins);
    return code;
}

/* ---- numbers ---- */

static void write_csv(const image *im, FILE *out) {
    for (size_t y = 0; y < im->pixels && !ferror(out) && !cli_stopped; y++)
        for (size_t x = 0; x < im->pixels; x++)
            fprintf(out, "%" PRIu64 "%c", bins_count(im->bins, y * im->pixels + x),
                    x + 1 == im->pixels ? '\n' : ',');
}

/* 32 bits a count where they suffice. */
static void write_npy(const image *im, FILE *out) {
    uint64_t shape[2] = {im->pixels, im->pixels}, wide[PIXELS_MAX];
    uint32_t narrow[PIXELS_MAX];
    bool is_wide = im->largest > UINT32_MAX;
    size_t size = is_wide ? sizeof *wide : sizeof *narrow;
    if (cli_npy_header(out, 'u', size, shape, 2, false) != 0)
        return;
    for (size_t y = 0; y < im->pixels && !cli_stopped; y++) {
        for (size_t x = 0; x < im->pixels; x++) {
            wide[x] = bins_count(im->bins, y * im->pixels + x);
            narrow[x] = (uint32_t)wide[x];
        }
        if (cli_write_raw(out, size, is_wide ? (const void *)wide : narrow, im->pixels) != 0)
            return;
    }
}

static int write_numbers(image *im) {
    int code = view_open_stream(&im->v);
    if (code != 0)
        return code;
    if (im->v.format == VIEW_NPY)
        write_npy(im, im->v.out);
    else
        write_csv(im, im->v.out);
    return view_flush(&im->v);
}

/* ---- the picture ---- */

/* The smallest number of photons that so many of the lit pixels do not exceed: a walk through counts of counts, which
 * are taken exactly up to a limit that pictures of so few pixels seldom reach. */
static double percentile(const image *im) {
    enum { EXACT = 1 << 16 };
    size_t n = (size_t)im->pixels * im->pixels, lit = 0;
    uint32_t *pixels = calloc(EXACT, sizeof *pixels);
    double step = (double)im->largest / (EXACT - 1);
    step = step > 1 ? step : 1;
    for (size_t i = 0; pixels && i < n; i++) {
        uint64_t count = bins_count(im->bins, i);
        if (count) {
            pixels[(size_t)((double)count / step)]++;
            lit++;
        }
    }
    double wanted = ceil((double)lit * im->percent / 100), seen = 0, at = (double)im->largest;
    for (size_t i = 0; pixels && i < EXACT; i++) {
        seen += pixels[i];
        if (seen >= wanted) {
            at = fmin(ceil((double)(i + 1) * step) - 1, at);
            break;
        }
    }
    free(pixels);
    return at;
}

static double brightest(const image *im) {
    double max = im->max;
    if (max == 0)
        max = im->percent > 0 && im->percent < 100 ? percentile(im) : (double)im->largest;
    return max > 1 ? max : 1;
}

static void draw_pixels(const image *im, plot_figure *f, const plot_axis *bar) {
    int dots = f->area.width / (int)im->pixels;
    for (unsigned y = 0; y < im->pixels; y++)
        for (unsigned x = 0; x < im->pixels; x++) {
            double count = (double)bins_count(im->bins, (size_t)y * im->pixels + x);
            unsigned column = im->no_flip ? x : im->pixels - 1 - x;
            plot_fill(&f->canvas,
                      (plot_box){f->area.x + (int)column * dots, f->area.y + (int)y * dots, dots, dots},
                      plot_colormap_at(im->colors, plot_axis_part(bar, count)));
        }
}

static void image_facts(const image *im, char *text, size_t cap) {
    char inside[32], outside[32];
    view_count_text(inside, bins_inside(im->bins));
    view_count_text(outside, bins_outside(im->bins));
    bool some = bins_outside(im->bins) > 0;
    snprintf(text, cap, "%s photons%s%s%s", inside, some ? ", " : "", some ? outside : "",
             some ? " outside" : "");
}

static int write_picture(image *im) {
    char facts[160], across[64], down[64];
    view_titles titles;
    plot_figure f;
    unsigned positions = (1u << im->bits) / im->pixels,
             dots = im->pixels < AREA_DOTS ? AREA_DOTS : im->pixels;
    double max = brightest(im);
    image_facts(im, facts, sizeof facts);
    view_make_titles(&im->v, &titles, facts);
    snprintf(across, sizeof across, "x (pixel of %u position%s)", positions, positions > 1 ? "s" : "");
    snprintf(down, sizeof down, "y (pixel of %u position%s)", positions, positions > 1 ? "s" : "");
    plot_layout layout = {.width = (int)dots,
                          .height = (int)dots,
                          .titles = {titles.name, titles.facts, titles.part[0] ? titles.part : NULL},
                          .x = {.high = im->pixels, .reversed = !im->no_flip, .whole = true, .label = across},
                          .y = {.high = im->pixels, .reversed = true, .whole = true, .label = down},
                          .colors = im->colors,
                          .bar = {.low = im->log ? 0.5 : 0,
                                  .high = max,
                                  .log = im->log,
                                  .whole = true,
                                  .label = "photons per pixel"},
                          .bar_exceeded = max < (double)im->largest};
    if (!plot_figure_begin(&f, &layout))
        return command_fail(im->v.self, "out of memory");
    draw_pixels(im, &f, &layout.bar);
    int code = view_write_png(&im->v, &f, titles.name);
    plot_figure_free(&f);
    return code;
}

/* ---- the command ---- */

static void say_outside(const image *im) {
    if (bins_outside(im->bins))
        command_fail(im->v.self,
                     "%s: %" PRIu64 " of %" PRIu64 " photons are outside: positions of %u bits were expected",
                     im->v.path, bins_outside(im->bins), bins_outside(im->bins) + bins_inside(im->bins),
                     im->bits);
}

static int image_make(image *im, const char *path) {
    int code = view_begin(&im->v, path);
    if (code == 0)
        code = count_photons(im);
    if (code == 0) {
        im->largest = bins_largest(im->bins);
        say_outside(im);
        code = im->v.format == VIEW_PNG ? write_picture(im) : write_numbers(im);
    }
    bins_free(im->bins);
    return view_finish(&im->v, code);
}

static int image_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"pixels", required_argument, NULL, OPTION_PIXELS},
                                            {"colormap", required_argument, NULL, OPTION_COLORMAP},
                                            {"no-flip", no_argument, NULL, OPTION_NO_FLIP},
                                            {"log", no_argument, NULL, OPTION_LOG},
                                            {"max", required_argument, NULL, OPTION_MAX},
                                            VIEW_OPTIONS};
    image im = {.v = {.self = self},
                .pixels = PIXELS_DEFAULT,
                .colors = plot_colormap_find("inferno"),
                .percent = 99.9};
    int code = command_options(self, argc, argv, options, image_option, &im, 1);
    return code >= 0 ? code : image_make(&im, argv[optind]);
}

const command command_image = {
    .name = "image",
    .summary = "where the photons were: a picture, or counts per pixel",
    .help =
        "usage: d7 image FILE -o OUT [--pixels N] [--from A] [--to B] [--format png|csv|npy] [--overwrite] "
        "[--unframed]\n"
        "                [--colormap NAME] [--log] [--max N|P%] [--no-flip]\n\n"
        "Counts the photons of /photons/x and /photons/y in pixels and draws them, with y downwards and x "
        "from\n"
        "right to left as the camera's viewer does, or writes the counts: one row for each y from 0, in it "
        "one\n"
        "number for each x from 0, as recorded. Photons outside of the positions are counted and "
        "named.\n\n" VIEW_HELP "  --pixels N        pixels a side, a power of two up to 4096; default 512\n"
        "  --colormap NAME   inferno (default), viridis, hot or grey\n"
        "  --log             brightness by the logarithm of the counts\n"
        "  --max M           counts of the brightest color: a number (50), or that of so many of the lit "
        "pixels;\n"
        "                    default 99.9%. The color bar ends in a point where there are brighter ones\n"
        "  --no-flip         x from left to right\n"
        "  --help            this text\n\n"
        "Exit status: 0 good, 1 the data has problems, 2 usage, or the file cannot be read.\n\n"
        "Examples:\n"
        "  d7 image run.photons -o run.png\n"
        "  d7 image run.photons -o minute2.png --from 1min --to 2min --colormap grey --log\n"
        "  d7 image run.photons -o counts.npy --pixels 256\n",
    .run = image_run,
    .letters = "o:",
    .makes = true,
};
