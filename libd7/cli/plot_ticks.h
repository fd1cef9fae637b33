/* Where an axis has its ticks, and what they say. */
#ifndef D7_CLI_PLOT_TICKS_H
#define D7_CLI_PLOT_TICKS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct plot_tick {
    double at;
    char label[16]; /* "": a small tick without a number */
} plot_tick;

enum { PLOT_TICKS_MAX = 128 };

/* Ticks of [low, high] at multiples of 1, 2 or 5 times a power of ten, at most `most` with numbers (at least 2), and small
 * ones between. whole: none between whole numbers. Returns how many; 0 where the range is none. */
size_t plot_ticks_linear(double low, double high, unsigned most, bool whole, plot_tick ret[PLOT_TICKS_MAX]);

/* Ticks of [low, high], low > 0, at powers of ten; where there are fewer than two of those, at 2 and 5 times powers of
 * ten too. */
size_t plot_ticks_log(double low, double high, unsigned most, plot_tick ret[PLOT_TICKS_MAX]);

#endif
