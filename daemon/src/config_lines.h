/* Where a value stands in a JSON text: the parser tells no lines of values, so the text is walked again. */
#ifndef PD_CONFIG_LINES_H
#define PD_CONFIG_LINES_H

#include <stddef.h>

/* The line (from 1) at which the member or element of `path` ("a.b[2].c") begins in a text that is valid
 * JSON; 0 when it is not there. */
size_t pd_json_line(const char *text, size_t bytes, const char *path);

#endif
