/* What went wrong, in one sentence for people. Caller-owned; NULL where nobody wants to know. */
#ifndef PD_ERROR_H
#define PD_ERROR_H

#include <stdarg.h>

#define PD_MUST_USE __attribute__((warn_unused_result))

typedef struct pd_error {
    char text[1024]; /* one sentence, always terminated, no line end: what, where and why */
} pd_error;

/* Writes the sentence (cut to fit) and returns -1, so that `return pd_error_set(err, ...)` fails. `err`
 * may be NULL, and the arguments may point into it. Any thread. */
int pd_error_set(pd_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "WHERE: " before the sentence that is there. Returns -1. */
int pd_error_prefix(pd_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
