/* Color maps: from a number between 0 and 1 to a color. */
#ifndef D7_CLI_PLOT_COLORS_H
#define D7_CLI_PLOT_COLORS_H

#include <stddef.h>

#include "plot_canvas.h"

typedef struct plot_colormap plot_colormap;

/* The map of that name, NULL: there is none. */
const plot_colormap *plot_colormap_find(const char *name);

/* Names of all maps, with commas. */
void plot_colormap_names(char *text, size_t cap);

/* The color of `part`, which is cut to [0, 1], in steps of 1/255. */
plot_color plot_colormap_at(const plot_colormap *map, double part);

#endif
