/* Numbers as text, whatever the locale. */
#ifndef DAF_SRC_NUMBER_H
#define DAF_SRC_NUMBER_H

#include "daf/daf.h"

enum { DAF__NUMBER_TEXT = 40 };

/* A finite value as the shortest text that reads back to it: "3.0", "0.0001", "1.0e300" (the spelling of the
 * Julia implementation). single: the value is a Float32. Returns the length. */
size_t daf__format_float(char text[DAF__NUMBER_TEXT], double value, bool single);

/* Parses a JSON number, or NaN, Infinity, -Infinity, Inf, -Inf, as a value of a numeric type other than Bool.
 * Integers also accept an integral float ("3.0").
 * Returns 0; DAF_ERR_CORRUPT no number; DAF_ERR_LIMIT out of the type's range, or not integral. */
int daf__parse_number(daf_scalar *ret, daf_type type, const char *text);

/* The scalar's value is one of its type (range of the integer, of the Float32). */
bool daf__number_fits(const daf_scalar *scalar);

#endif
