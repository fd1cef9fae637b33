#include "plot.h"

#include <math.h>
#include <string.h>

#include "plot_ticks.h"

enum {
    LINE = 2,   /* thickness of frames, ticks and curves */
    TICK = 8,   /* length of ticks with a number; others have half of it */
    GAP = 8,    /* between things */
    MARGIN = 14 /* around the figure */
};

enum { BAR_WIDTH = 24, BAR_DISTANCE = 24, BAR_POINT = 14 };

static const plot_color black = {0, 0, 0}, grey = {225, 225, 225}, white = {255, 255, 255};

/* ---- axes ---- */

double plot_axis_part(const plot_axis *axis, double value) {
    double part;
    if (axis->log)
        part = value > 0 ? log(value / axis->low) / log(axis->high / axis->low) : -0.1;
    else
        part = (value - axis->low) / (axis->high - axis->low);
    return part > -0.1 ? part < 1.1 ? part : 1.1 : -0.1;
}

static size_t axis_ticks(const plot_axis *axis, unsigned most, plot_tick *ret) {
    return axis->log ? plot_ticks_log(axis->low, axis->high, most, ret)
                     : plot_ticks_linear(axis->low, axis->high, most, axis->whole, ret);
}

/* Numbers at this distance at least, in dots. */
static unsigned most_numbers(int length, int distance) {
    return length / distance > 2 ? (unsigned)(length / distance) : 2;
}

static int place_x(const plot_figure *f, double value) {
    double part = plot_axis_part(&f->x, value);
    return f->area.x + (int)lround((f->x.reversed ? 1 - part : part) * f->area.width);
}

static int place_y(const plot_box *area, const plot_axis *axis, double value) {
    double part = plot_axis_part(axis, value);
    return area->y + (int)lround((axis->reversed ? part : 1 - part) * area->height);
}

static int widest_label(const plot_tick *ticks, size_t n) {
    int widest = 0;
    for (size_t i = 0; i < n; i++) {
        int width = plot_text_width(ticks[i].label);
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void draw_x_axis(plot_figure *f) {
    plot_tick ticks[PLOT_TICKS_MAX];
    size_t n = axis_ticks(&f->x, most_numbers(f->area.width, 76), ticks);
    int bottom = f->area.y + f->area.height + LINE;
    for (size_t i = 0; i < n; i++) {
        int x = place_x(f, ticks[i].at), length = ticks[i].label[0] ? TICK : TICK / 2;
        if (f->x.grid && ticks[i].label[0])
            plot_fill(&f->canvas, (plot_box){x, f->area.y, 1, f->area.height}, grey);
        plot_fill(&f->canvas, (plot_box){x - LINE / 2, bottom, LINE, length}, black);
        plot_text(&f->canvas, x - plot_text_width(ticks[i].label) / 2 + 1, bottom + TICK + 4, ticks[i].label,
                  black);
    }
    plot_text(&f->canvas, f->area.x + (f->area.width - plot_text_width(f->x.label)) / 2,
              bottom + TICK + PLOT_TEXT_HEIGHT + GAP + 2, f->x.label, black);
}

/* An axis along the left or right side of a box; returns how wide it was with its label. */
static int draw_upright_axis(plot_canvas *canvas, const plot_box *box, const plot_axis *axis, bool left,
                             const plot_box *grid) {
    plot_tick ticks[PLOT_TICKS_MAX];
    size_t n = axis_ticks(axis, most_numbers(box->height, 50), ticks);
    int widest = widest_label(ticks, n), side = left ? box->x - LINE : box->x + box->width + LINE;
    for (size_t i = 0; i < n; i++) {
        int y = place_y(box, axis, ticks[i].at), length = ticks[i].label[0] ? TICK : TICK / 2;
        if (grid && ticks[i].label[0])
            plot_fill(canvas, (plot_box){grid->x, y, grid->width, 1}, grey);
        plot_fill(canvas, (plot_box){left ? side - length : side, y - LINE / 2, length, LINE}, black);
        int at = left ? side - TICK - 5 - plot_text_width(ticks[i].label) : side + TICK + 5;
        plot_text(canvas, at, y - PLOT_TEXT_ASCENT / 2, ticks[i].label, black);
    }
    int away = TICK + 5 + widest + GAP, middle = box->y + (box->height - plot_text_width(axis->label)) / 2;
    plot_text_upwards(canvas, left ? side - away - PLOT_TEXT_HEIGHT : side + away, middle > 0 ? middle : 0,
                      axis->label, black);
    return LINE + away + PLOT_TEXT_HEIGHT;
}

/* How wide draw_upright_axis() will draw. */
static int upright_axis_width(const plot_axis *axis, int height) {
    plot_tick ticks[PLOT_TICKS_MAX];
    size_t n = axis_ticks(axis, most_numbers(height, 50), ticks);
    return LINE + TICK + 5 + widest_label(ticks, n) + GAP + PLOT_TEXT_HEIGHT;
}

/* ---- the figure ---- */

/* What is too wide loses its middle: a file's name and a line's end say most. */
static void draw_title(plot_canvas *canvas, int x, int y, int room, const char *title) {
    char text[256];
    size_t length = strlen(title), most = (size_t)(room / PLOT_TEXT_ADVANCE);
    most = most < sizeof text - 1 ? most : sizeof text - 1;
    if (plot_text_width(title) <= room && length < sizeof text) {
        plot_text(canvas, x, y, title, black);
        return;
    }
    size_t head = most > 3 ? (most - 3) / 2 : 0, tail = most > 3 ? most - 3 - head : 0;
    tail = tail < length ? tail : length;
    snprintf(text, sizeof text, "%.*s...%s", (int)head, title, title + length - tail);
    plot_text(canvas, x, y, text, black);
}

static void draw_bar(plot_figure *f, const plot_layout *layout) {
    plot_box box = {f->area.x + f->area.width + BAR_DISTANCE, f->area.y, BAR_WIDTH, f->area.height};
    if (layout->bar_exceeded) {
        box.y += BAR_POINT;
        box.height -= BAR_POINT;
    }
    plot_frame(&f->canvas, box, LINE, black);
    for (int i = 0; i < box.height; i++)
        plot_fill(&f->canvas, (plot_box){box.x, box.y + box.height - 1 - i, box.width, 1},
                  plot_colormap_at(layout->colors, (i + 0.5) / box.height));
    for (int i = 0; layout->bar_exceeded && i < BAR_POINT; i++) {
        int inset = i * (BAR_WIDTH / 2 + LINE) / BAR_POINT - LINE;
        plot_box row = {box.x + inset, box.y - 1 - i, BAR_WIDTH - 2 * inset, 1};
        plot_fill(&f->canvas, row, black);
        row.x += LINE + 1;
        row.width -= 2 * LINE + 2;
        if (row.width > 0)
            plot_fill(&f->canvas, row, plot_colormap_at(layout->colors, 1));
    }
    draw_upright_axis(&f->canvas, &box, &layout->bar, false, NULL);
}

bool plot_figure_begin(plot_figure *f, const plot_layout *layout) {
    int n_titles = 0, left = MARGIN + upright_axis_width(&layout->y, layout->height), right = 3 * MARGIN;
    while (n_titles < 3 && layout->titles[n_titles])
        n_titles++;
    if (layout->colors)
        right = MARGIN + BAR_DISTANCE + BAR_WIDTH + upright_axis_width(&layout->bar, layout->height);
    int top = MARGIN + n_titles * (PLOT_TEXT_HEIGHT + 6) + GAP;
    int bottom = LINE + TICK + 2 * PLOT_TEXT_HEIGHT + GAP + MARGIN;
    *f = (plot_figure){.area = {left, top, layout->width, layout->height}, .x = layout->x, .y = layout->y};
    if (!plot_canvas_init(&f->canvas, left + layout->width + right, top + layout->height + bottom))
        return false;
    for (int i = 0; i < n_titles; i++)
        draw_title(&f->canvas, left, MARGIN + i * (PLOT_TEXT_HEIGHT + 6), f->canvas.width - left - MARGIN,
                   layout->titles[i]);
    draw_x_axis(f);
    draw_upright_axis(&f->canvas, &f->area, &f->y, true, f->y.grid ? &f->area : NULL);
    plot_frame(&f->canvas, f->area, LINE, black);
    if (layout->colors)
        draw_bar(f, layout);
    return true;
}

void plot_figure_free(plot_figure *f) {
    plot_canvas_free(&f->canvas);
}

/* ---- curves ---- */

plot_color plot_curve_color(size_t i) {
    static const plot_color colors[] = {{24, 78, 150},  {196, 70, 20}, {20, 130, 80}, {150, 40, 130},
                                        {120, 100, 10}, {90, 90, 90},  {0, 140, 170}, {220, 20, 80}};
    return colors[i % (sizeof colors / sizeof *colors)];
}

static plot_color tint(plot_color c) {
    return (plot_color){(uint8_t)(255 - (255 - c.red) / 6), (uint8_t)(255 - (255 - c.green) / 6),
                        (uint8_t)(255 - (255 - c.blue) / 6)};
}

/* The bins of a curve that a column of dots shows, as [*ret_first, *ret_last]. Returns false: none. */
static bool column_bins(int column, int columns, size_t n, size_t *ret_first, size_t *ret_last) {
    double per = (double)n / columns, first = column * per, end = (column + 1) * per;
    if (first < 0 || column >= columns)
        return false;
    *ret_first = (size_t)first;
    *ret_last = end > first + 1 ? (size_t)ceil(end) - 1 : *ret_first;
    *ret_first = *ret_first < n ? *ret_first : n - 1;
    *ret_last = *ret_last < n ? *ret_last : n - 1;
    return true;
}

/* A rectangle between two heights of a column, cut to the plot area. */
static void fill_column(plot_figure *f, int x, int width, int top, int bottom, plot_color color) {
    int end = f->area.y + f->area.height, right = f->area.x + f->area.width;
    top = top < f->area.y ? f->area.y : top;
    bottom = bottom > end ? end : bottom;
    width = x + width > right ? right - x : width;
    if (bottom > top && x >= f->area.x)
        plot_fill(&f->canvas, (plot_box){x, top, width, bottom - top}, color);
}

static void draw_column(plot_figure *f, int x, double low, double high, double before, plot_color color) {
    double reach_low = fmin(low, before), reach_high = fmax(high, before);
    int top = place_y(&f->area, &f->y, reach_high) - LINE / 2;
    fill_column(f, x, LINE, top, place_y(&f->area, &f->y, reach_low) + LINE / 2, color);
}

void plot_figure_steps(plot_figure *f, double from, double to, const double *values, size_t n,
                       plot_color color, bool fill) {
    int left = place_x(f, from), columns = place_x(f, to) - left;
    for (int pass = fill ? 0 : 1; pass < 2; pass++) {
        double before = n ? values[0] : 0;
        for (int c = 0; c < columns && n; c++) {
            size_t first, last;
            if (!column_bins(c, columns, n, &first, &last))
                continue;
            double low = values[first], high = values[first];
            for (size_t i = first + 1; i <= last; i++) {
                low = fmin(low, values[i]);
                high = fmax(high, values[i]);
            }
            if (pass == 0)
                fill_column(f, left + c, 1, place_y(&f->area, &f->y, high), f->area.y + f->area.height,
                            tint(color));
            else
                draw_column(f, left + c, low, high, before, color);
            before = values[last];
        }
    }
}

void plot_figure_legend(plot_figure *f, const char *const *names, const plot_color *colors, size_t n) {
    enum { SAMPLE = 30, ROW = PLOT_TEXT_HEIGHT + 6 };
    int widest = 0;
    for (size_t i = 0; i < n; i++)
        widest = plot_text_width(names[i]) > widest ? plot_text_width(names[i]) : widest;
    plot_box box = {0, f->area.y + 2 * GAP, widest + SAMPLE + 4 * GAP, (int)n * ROW + GAP};
    box.x = f->area.x + f->area.width - 2 * GAP - box.width;
    plot_fill(&f->canvas, box, white);
    plot_frame(&f->canvas, box, 1, grey);
    for (size_t i = 0; i < n; i++) {
        int y = box.y + GAP + (int)i * ROW;
        plot_fill(&f->canvas, (plot_box){box.x + GAP, y + PLOT_TEXT_ASCENT / 2 - LINE, SAMPLE, 2 * LINE},
                  colors[i]);
        plot_text(&f->canvas, box.x + 2 * GAP + SAMPLE, y, names[i], black);
    }
}
