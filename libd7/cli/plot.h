/* A figure: a title, a plot area with a frame and two axes, curves in it, and a color bar where it shows an image. */
#ifndef D7_CLI_PLOT_H
#define D7_CLI_PLOT_H

#include "plot_canvas.h"
#include "plot_colors.h"

/* A direction of the plot area. */
typedef struct plot_axis {
    double low, high;  /* what its ends stand for, low < high */
    bool log;          /* powers of ten at equal distances; low > 0 */
    bool reversed;     /* low is on the right, or at the top */
    bool whole;        /* no ticks between whole numbers */
    bool grid;         /* lines through the plot area at its numbers */
    const char *label; /* what it is, with its unit */
} plot_axis;

/* What to draw. Borrowed for the call. */
typedef struct plot_layout {
    int width, height;     /* of the plot area, in dots */
    const char *titles[3]; /* lines above it, NULL: none; too long ones are cut */
    plot_axis x, y;
    const plot_colormap *colors; /* of the bar at the right; NULL: no bar */
    plot_axis bar;               /* of its values */
    bool bar_exceeded;           /* there are values past its end: it gets a pointed top */
} plot_layout;

typedef struct plot_figure {
    plot_canvas canvas;
    plot_box area; /* the plot area */
    plot_axis x, y;
} plot_figure;

/* Draws everything but what is in the plot area. Returns false when memory is short. */
bool plot_figure_begin(plot_figure *figure, const plot_layout *layout);
void plot_figure_free(plot_figure *figure);

/* How far along an axis a value is: 0 at low, 1 at high, cut to a little outside. */
double plot_axis_part(const plot_axis *axis, double value);

/* A curve of steps: n values for bins of equal width from `from` to `to` on the x axis. fill: the area below it is
 * tinted. */
void plot_figure_steps(plot_figure *figure, double from, double to, const double *values, size_t n,
                       plot_color color, bool fill);

/* Names the curves, in a box in the upper right corner. */
void plot_figure_legend(plot_figure *figure, const char *const *names, const plot_color *colors, size_t n);

/* Colors of curves, one after the other. */
plot_color plot_curve_color(size_t i);

#endif
