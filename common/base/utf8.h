/* Text from outside. */
#ifndef COMMON_BASE_UTF8_H
#define COMMON_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the well-formed UTF-8 sequence at text[0, bytes), bytes > 0; 0 where there is none (overlong forms,
 * surrogates and numbers past U+10FFFF are none). Pure; any thread. */
size_t common_utf8_sequence(const char *text, size_t bytes);

/* Is it all well-formed UTF-8? Pure; any thread. */
bool common_utf8_valid(const char *text, size_t bytes);

#endif
