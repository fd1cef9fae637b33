/* Text that came from outside, made safe to show. */
#ifndef PD_TEXT_H
#define PD_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at `text` (NUL-terminated), 1 to 4; 0 when there is none: the end, a
 * control character, or bytes that are no UTF-8. */
size_t pd_text_character(const char *text);

/* Copies `text`, with control characters and bytes that are no UTF-8 as \xHH, cut at a whole character
 * to fit into `cap` bytes with the NUL (cap > 0). Returns the length without the NUL. */
size_t pd_text_escape(char *to, size_t cap, const char *text);

/* Writes n bytes as 2 n lower-case hexadecimal digits and a NUL. Returns `to`. */
const char *pd_text_hex(char *to, const uint8_t *bytes, size_t n);

/* Reads n bytes from exactly 2 n hexadecimal digits of either case. Returns 0, or -1: it is something else. */
int pd_text_unhex(uint8_t *to, size_t n, const char *text);

/* How many characters have to be put in, taken out, replaced or swapped with their neighbour to make b
 * of a; counts up to `limit`. For "did you mean". */
size_t pd_text_distance(const char *a, const char *b, size_t limit);

#endif
