/* What datasets are called in another format, and what a file says about itself. */
#ifndef D7_CLI_EXPORT_NAMES_H
#define D7_CLI_EXPORT_NAMES_H

#include "export.h"

/* 'i', 'u' or 'f'. */
char export_kind(d7_type type);

/* Names of all columns, in the order of the sets: without the leading slash, as paths that stay inside (no empty part, no "."
 * and ".."), each once, and not one inside another. */
typedef struct export_names {
    char **keys; /* [n] */
    size_t n;
} export_names;

/* Tells the sets where theirs begin. `taken` is in use already. Returns 0, or -1: out of memory. export_names_free() in any case. */
int export_names_make(export_job *job, const char *taken, export_names *ret);
void export_names_free(export_names *names);

/* One JSON object with "file", "attributes" and "datasets", in new memory. Returns 0 or a negative errno; then *ret_text is
 * NULL or to be freed too. */
int export_metadata(const export_job *job, const export_names *names, char **ret_text, size_t *ret_bytes);

#endif
