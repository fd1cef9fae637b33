/* A picture being drawn: dots in rows from the top left, in red, green and blue. Everything drawn is clipped to it. */
#ifndef D7_CLI_PLOT_CANVAS_H
#define D7_CLI_PLOT_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct plot_color {
    uint8_t red, green, blue;
} plot_color;

typedef struct plot_canvas {
    int width, height;
    uint8_t *rgb; /* [height][width][3] */
} plot_canvas;

/* A place in a picture. */
typedef struct plot_box {
    int x, y, width, height;
} plot_box;

/* White. Returns false when memory is short or the size is no size. */
bool plot_canvas_init(plot_canvas *canvas, int width, int height);
void plot_canvas_free(plot_canvas *canvas);

void plot_fill(plot_canvas *canvas, plot_box box, plot_color color);

/* A frame of `thick` dots around the outside of a box. */
void plot_frame(plot_canvas *canvas, plot_box box, int thick, plot_color color);

/* Text is drawn in one size. */
enum { PLOT_TEXT_ASCENT = 14, PLOT_TEXT_HEIGHT = 18, PLOT_TEXT_ADVANCE = 12 };

/* How many dots wide a text is drawn; a character of several bytes (UTF-8) counts once. */
int plot_text_width(const char *text);

/* Writes text with its top left at x, y. Characters that are not printable ASCII become '?'. */
void plot_text(plot_canvas *canvas, int x, int y, const char *text, plot_color color);

/* The same turned left by a right angle: x, y is the top left of what is drawn, which is plot_text_width() high. */
void plot_text_upwards(plot_canvas *canvas, int x, int y, const char *text, plot_color color);

/* A line of text that a PNG file carries beside the picture. */
typedef struct plot_note {
    const char *key, *text;
} plot_note;

/* Whether plot_write_png() can write. */
bool plot_has_png(void);

/* Writes the picture as a PNG file. notes: [n]. Returns NULL, or what failed. */
const char *plot_write_png(const plot_canvas *canvas, const plot_note *notes, size_t n, FILE *out);

#endif
