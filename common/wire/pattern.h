/* Names of runs as they are asked for. What stands in braces is filled in by the server:
 *   {date}     20261130, and
 *   {time}     174501: when the run is opened, by the server's local time
 *   {profile}  the name of the profile; "run" where the datasets were given
 *   {counter}  0001, 0002, ...: the first that makes a name that is free; once at most
 * Pure; any thread. */
#ifndef COMMON_WIRE_PATTERN_H
#define COMMON_WIRE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum { WIRE_RUN_NAME_ROOM = 129 }; /* of the longest name, its end included */

/* Whether anything is to be filled in. */
bool wire_pattern_is(const char *text);

/* Whether what is to be filled in holds {counter}. */
bool wire_pattern_counts(const char *text);

/* Why no name can come of it, also when it is a plain name; NULL: it can. Static text. */
const char *wire_pattern_fault(const char *text);

/* Fills in all but {counter}. Returns 0, or -1: more than WIRE_RUN_NAME_ROOM bytes, or not a pattern. */
int wire_pattern_fill(char ret[WIRE_RUN_NAME_ROOM], const char *pattern, const struct tm *when,
                      const char *profile);

/* Fills in {counter}, in at least four digits. Returns 0, or -1 as above. */
int wire_pattern_count(char ret[WIRE_RUN_NAME_ROOM], const char *pattern, unsigned number);

#endif
