#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int daf__fail(daf_error *err, int code, int os_errno, uint64_t offset, const char *format, ...) {
    if (!err)
        return code;
    err->code = code;
    err->os_errno = os_errno;
    err->offset = offset;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (os_errno && n >= 0 && (size_t)n < sizeof err->text) {
        char text[128];
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s",
                 strerror_r(os_errno, text, sizeof text));
    }
    return code;
}

int daf__pass(daf_error *err, const daf_error *details) {
    if (err)
        *err = *details;
    return details->code;
}

int daf__no_memory(daf_error *err) {
    return daf__fail(err, DAF_ERR_NOMEM, 0, 0, "out of memory");
}

const char *daf_strerror(int code) {
    switch (code) {
    case DAF_OK:
        return "success";
#define CASE(name, value, text)                                                                              \
    case value:                                                                                              \
        return text;
        DAF_ERROR_MAP(CASE)
#undef CASE
    default:
        return "unknown error";
    }
}

const char *daf_version(void) {
    return DAF_VERSION_TEXT;
}
