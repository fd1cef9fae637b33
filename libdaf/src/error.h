/* Filling a daf_error. */
#ifndef DAF_SRC_ERROR_H
#define DAF_SRC_ERROR_H

#include "daf/daf.h"

/* Describes a failure and returns `code`. A non-zero os_errno is appended as its text. err may be NULL. */
int daf__fail(daf_error *err, int code, int os_errno, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Hands on the details of a failure that was first looked at; returns its code. */
int daf__pass(daf_error *err, const daf_error *details);

int daf__no_memory(daf_error *err);

#endif
