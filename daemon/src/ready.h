/* The ready file: for scripts that start photond and want to know when, and where, it listens. */
#ifndef PD_READY_H
#define PD_READY_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

/* Writes {"listen": [ADDRESS, ...], "control": ADDRESS or null, "pid": N}, whole or not at all (a file beside it,
 * renamed), with these permission bits and, unless it is negative, this group. control_path: "" for none. Returns 0, or -1 with err. */
PD_MUST_USE int pd_ready_write(const char *path, const char *const *addresses, size_t n,
                               const char *control_path, unsigned mode, int64_t gid, pd_error *err);

#endif
