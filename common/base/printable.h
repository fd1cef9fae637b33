/* Text from outside, shown to people: what a terminal would obey, or take for the end of a line, is spelled out. */
#ifndef COMMON_BASE_PRINTABLE_H
#define COMMON_BASE_PRINTABLE_H

#include <stddef.h>

enum { COMMON_PRINTABLE_MAX = 4 };

/* How the first character of text[0, bytes), bytes > 0, is shown: as it is, a line feed as \n, and the first byte of anything
 * else that is no printable UTF-8 (control characters, also those of two bytes) as \xNN. Spelled out twice, text stays the
 * same. Returns how many bytes of `out` that took; *ret_taken how many of `text`. Pure; any thread. */
size_t common_printable_next(const char *text, size_t bytes, char out[COMMON_PRINTABLE_MAX],
                             size_t *ret_taken);

/* As much of text[0, bytes) as fits `cap` bytes with the NUL that is added, cap > 0. Returns its length. */
size_t common_printable(char *out, size_t cap, const char *text, size_t bytes);

#endif
