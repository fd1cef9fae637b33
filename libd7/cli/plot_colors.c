#include "plot_colors.h"

#include <string.h>

enum { POINTS_MAX = 7 };

/* Points from 0 to 1 at equal distances, between which colors are interpolated. In all of them the lightness rises all the
 * way, so that they also read in grey. */
struct plot_colormap {
    const char *name;
    unsigned n;
    plot_color points[POINTS_MAX];
};

static const plot_colormap maps[] = {
    {"inferno",
     7,
     {{0, 0, 5},
      {52, 14, 96},
      {122, 28, 108},
      {190, 50, 82},
      {238, 104, 38},
      {250, 178, 44},
      {252, 253, 168}}},
    {"viridis", 5, {{66, 6, 86}, {58, 84, 138}, {34, 144, 140}, {96, 200, 98}, {252, 230, 40}}},
    {"hot", 4, {{0, 0, 0}, {230, 20, 0}, {255, 210, 0}, {255, 255, 255}}},
    {"grey", 2, {{0, 0, 0}, {255, 255, 255}}},
};

enum { N_MAPS = sizeof maps / sizeof *maps };

const plot_colormap *plot_colormap_find(const char *name) {
    for (size_t i = 0; i < N_MAPS; i++)
        if (strcmp(maps[i].name, name) == 0)
            return &maps[i];
    return NULL;
}

void plot_colormap_names(char *text, size_t cap) {
    size_t at = 0;
    for (size_t i = 0; i < N_MAPS && at < cap; i++)
        at += (size_t)snprintf(text + at, cap - at, "%s%s", i ? ", " : "", maps[i].name);
}

static uint8_t between(uint8_t from, uint8_t to, double part) {
    return (uint8_t)(from + (to - from) * part + 0.5);
}

plot_color plot_colormap_at(const plot_colormap *map, double part) {
    part = part > 0 ? part < 1 ? part : 1 : 0;
    double at = (int)(part * 255 + 0.5) / 255.0 * (map->n - 1);
    unsigned i = at >= map->n - 1 ? map->n - 2 : (unsigned)at;
    plot_color low = map->points[i], high = map->points[i + 1];
    return (plot_color){between(low.red, high.red, at - i), between(low.green, high.green, at - i),
                        between(low.blue, high.blue, at - i)};
}
