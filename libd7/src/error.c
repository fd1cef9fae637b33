#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

int d7__fail(d7_error *err, int code, int os_errno, uint64_t offset, const char *format, ...) {
    if (!err)
        return code;
    err->code = code;
    err->os_errno = os_errno;
    err->offset = offset;
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (os_errno && n >= 0 && (size_t)n < sizeof text) {
        char reason[128];
        snprintf(text + n, sizeof text - (size_t)n, ": %s", strerror_r(os_errno, reason, sizeof reason));
    }
    common_printable(err->text, sizeof err->text, text, strlen(text));
    return code;
}

const char *d7_error_name(int code) {
    switch (code) {
    case D7_OK:
        return "OK";
#define ERROR_NAME(number, name, text)                                                                       \
    case number:                                                                                             \
        return #name;
        D7_ERROR_MAP(ERROR_NAME)
#undef ERROR_NAME
    default:
        return "UNKNOWN";
    }
}

const char *d7_error_text(int code) {
    switch (code) {
    case D7_OK:
        return "no error";
#define ERROR_TEXT(number, name, text)                                                                       \
    case number:                                                                                             \
        return text;
        D7_ERROR_MAP(ERROR_TEXT)
#undef ERROR_TEXT
    default:
        return "unknown error";
    }
}
