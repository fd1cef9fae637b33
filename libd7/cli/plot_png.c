/* Pictures as PNG files, by libpng where the command is built with it. */
#include "plot_canvas.h"

#ifdef D7_WITH_PNG

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

bool plot_has_png(void) {
    return true;
}

/* libpng's way out: to the setjmp() in plot_write_png(). */
static void png_failed(png_structp png, png_const_charp text) {
    snprintf(png_get_error_ptr(png), 128, "%s", text);
    png_longjmp(png, 1);
}

static void png_warned(png_structp png, png_const_charp text) {
    (void)png, (void)text;
}

static void put_notes(png_structp png, png_infop info, const plot_note *notes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        char key[80], *text = strdup(notes[i].text);
        snprintf(key, sizeof key, "%s", notes[i].key);
        png_text entry = {.compression = PNG_ITXT_COMPRESSION_NONE,
                          .key = key,
                          .text = text,
                          .itxt_length = text ? strlen(text) : 0};
        if (text)
            png_set_text(png, info, &entry, 1);
        free(text);
    }
}

static void put_picture(png_structp png, png_infop info, const plot_canvas *canvas, const plot_note *notes,
                        size_t n, FILE *out) {
    png_init_io(png, out);
    png_set_IHDR(png, info, (png_uint_32)canvas->width, (png_uint_32)canvas->height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(png, 0, PNG_FILTER_NONE); /* few colors in long runs: filters only cost */
    put_notes(png, info, notes, n);
    png_write_info(png, info);
    for (int y = 0; y < canvas->height; y++)
        png_write_row(png, canvas->rgb + (size_t)y * (size_t)canvas->width * 3);
    png_write_end(png, info);
}

const char *plot_write_png(const plot_canvas *canvas, const plot_note *notes, size_t n, FILE *out) {
    static _Thread_local char reason[128];
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, reason, png_failed, png_warned);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return "out of memory";
    }
    if (setjmp(png_jmpbuf(png)) != 0) {
        int error = errno;
        png_destroy_write_struct(&png, &info);
        errno = error;
        return ferror(out) ? strerror(error) : reason;
    }
    put_picture(png, info, canvas, notes, n, out);
    png_destroy_write_struct(&png, &info);
    return fflush(out) == 0 ? NULL : strerror(errno);
}

#else

bool plot_has_png(void) {
    return false;
}

const char *plot_write_png(const plot_canvas *canvas, const plot_note *notes, size_t n, FILE *out) {
    (void)canvas, (void)notes, (void)n, (void)out;
    return "this d7 was built without libpng";
}

#endif
