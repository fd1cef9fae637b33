#include "plot_canvas.h"

#include <stdlib.h>
#include <string.h>

#include "plot_font.h"

enum { SIZE_MAX_DOTS = 1 << 16 };

bool plot_canvas_init(plot_canvas *canvas, int width, int height) {
    *canvas = (plot_canvas){0};
    if (width <= 0 || height <= 0 || width > SIZE_MAX_DOTS || height > SIZE_MAX_DOTS)
        return false;
    size_t bytes = (size_t)width * (size_t)height * 3;
    uint8_t *rgb = malloc(bytes);
    if (!rgb)
        return false;
    memset(rgb, 255, bytes);
    *canvas = (plot_canvas){.width = width, .height = height, .rgb = rgb};
    return true;
}

void plot_canvas_free(plot_canvas *canvas) {
    free(canvas->rgb);
    *canvas = (plot_canvas){0};
}

static int clip(int value, int end) {
    return value < 0 ? 0 : value > end ? end : value;
}

void plot_fill(plot_canvas *canvas, plot_box box, plot_color color) {
    int left = clip(box.x, canvas->width), right = clip(box.x + box.width, canvas->width);
    int top = clip(box.y, canvas->height), bottom = clip(box.y + box.height, canvas->height);
    for (int y = top; y < bottom; y++) {
        uint8_t *dot = canvas->rgb + ((size_t)y * (size_t)canvas->width + (size_t)left) * 3;
        for (int x = left; x < right; x++) {
            *dot++ = color.red;
            *dot++ = color.green;
            *dot++ = color.blue;
        }
    }
}

void plot_frame(plot_canvas *canvas, plot_box box, int thick, plot_color color) {
    int width = box.width + 2 * thick, left = box.x - thick, top = box.y - thick;
    plot_fill(canvas, (plot_box){left, top, width, thick}, color);
    plot_fill(canvas, (plot_box){left, box.y + box.height, width, thick}, color);
    plot_fill(canvas, (plot_box){left, box.y, thick, box.height}, color);
    plot_fill(canvas, (plot_box){box.x + box.width, box.y, thick, box.height}, color);
}

/* ---- text ---- */

/* Bytes that go on a character of UTF-8 begun before. */
static bool goes_on(char c) {
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t text_characters(const char *text) {
    size_t n = 0;
    for (; *text; text++)
        n += !goes_on(*text);
    return n;
}

int plot_text_width(const char *text) {
    size_t n = text_characters(text), most = SIZE_MAX_DOTS / PLOT_TEXT_ADVANCE;
    return (int)(n < most ? n : most) * PLOT_TEXT_ADVANCE;
}

static void draw_text(plot_canvas *canvas, int x, int y, const char *text, bool upwards, plot_color color) {
    int height = plot_text_width(text), at = 0;
    for (; *text; text++) {
        if (goes_on(*text))
            continue;
        for (int row = 0; row < 2 * PLOT_GLYPH_HEIGHT; row++)
            for (int column = 0; column < 2 * PLOT_GLYPH_WIDTH; column++) {
                if (!plot_font_quarter((unsigned char)*text, column, row))
                    continue;
                plot_box dot = {x + at + column, y + row, 1, 1};
                if (upwards)
                    dot = (plot_box){x + row, y + height - 1 - at - column, 1, 1};
                plot_fill(canvas, dot, color);
            }
        at += PLOT_TEXT_ADVANCE;
    }
}

void plot_text(plot_canvas *canvas, int x, int y, const char *text, plot_color color) {
    draw_text(canvas, x, y, text, false, color);
}

void plot_text_upwards(plot_canvas *canvas, int x, int y, const char *text, plot_color color) {
    draw_text(canvas, x, y, text, true, color);
}
