#ifndef DAF_SRC_UTF8_H
#define DAF_SRC_UTF8_H

#include <stddef.h>

/* The length of the longest prefix that is valid UTF-8 (no surrogates, no overlong forms); `bytes` when all is.
 */
size_t daf__utf8_prefix(const char *text, size_t bytes);

#endif
