#include "error.h"

#include <stdio.h>
#include <string.h>

int pd_error_set(pd_error *err, const char *format, ...) {
    if (!err)
        return -1;
    char text[sizeof err->text]; /* the arguments may point into err->text */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(err->text, text, sizeof text);
    return -1;
}

int pd_error_prefix(pd_error *err, const char *format, ...) {
    if (!err)
        return -1;
    char where[512];
    va_list args;
    va_start(args, format);
    vsnprintf(where, sizeof where, format, args);
    va_end(args);
    return pd_error_set(err, "%s: %s", where, err->text);
}
