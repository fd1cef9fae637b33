/* The characters of pictures: printable ASCII, on a grid of 5 by 9 dots. */
#ifndef D7_CLI_PLOT_FONT_H
#define D7_CLI_PLOT_FONT_H

#include <stdbool.h>

enum {
    PLOT_GLYPH_WIDTH = 5,
    PLOT_GLYPH_HEIGHT = 9,  /* of which */
    PLOT_GLYPH_DESCENT = 2, /* are below the base line */
    PLOT_GLYPH_ADVANCE = 6  /* from one character to the next */
};

/* Is a quarter of a dot black? Columns from 0 to twice the width, rows to twice the height, from the top left;
 * anything outside is white. Characters that are not printable ASCII look like '?'. */
bool plot_font_quarter(unsigned char c, int column, int row);

#endif
