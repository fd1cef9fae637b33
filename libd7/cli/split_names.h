/* Names of the parts of a recording: NAME.photons, NAME.0001.photons, NAME.0002.photons, ... */
#ifndef D7_CLI_SPLIT_NAMES_H
#define D7_CLI_SPLIT_NAMES_H

#include "commands.h"

/* The first part's path for `-o OUT`: OUT itself, or in the folder OUT the name of the file that is split. In new memory;
 * NULL: out of memory. */
char *split_first_path(const char *out, const char *in);

/* The path of part `number`; in new memory. NULL: out of memory. */
char *split_path(const char *first, uint64_t number);

/* Looks whether the parts may be written: none of the first n paths is there (unless `overwrite`), and none is the file that
 * is split. Returns 0, or an exit code after saying why. */
int split_check_paths(const command *self, const char *in, const char *first, uint64_t n, bool overwrite);

/* "2GB", "500MiB", "1000000": bytes. "10M", "5k": a count. Returns false for anything else, or 0. */
bool split_parse_bytes(const char *text, uint64_t *ret);
bool split_parse_count(const char *text, uint64_t *ret);

#endif
