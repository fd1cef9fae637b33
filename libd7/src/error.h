/* Filling the caller's d7_error. */
#ifndef D7_SRC_ERROR_H
#define D7_SRC_ERROR_H

#include "d7/d7.h"

/* Writes code, errno, offset and the sentence to err (may be NULL) and returns code. */
int d7__fail(d7_error *err, int code, int os_errno, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Passes on what a call said in `failure`, unless its failure is none to the caller (rc is 0). */
static inline int d7__passed_on(int rc, const d7_error *failure, d7_error *err) {
    if (rc != 0 && err)
        *err = *failure;
    return rc;
}

#endif
