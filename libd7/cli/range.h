/* The part of a file that --from and --to mean: items, or times since the start. */
#ifndef D7_CLI_RANGE_H
#define D7_CLI_RANGE_H

#include "commands.h"

/* One end. `given` is false where the option is not there: the file's own end. */
typedef struct range_end {
    bool given, is_time;
    uint64_t item;    /* counted from 0 */
    uint64_t time_ps; /* since the start of the recording */
} range_end;

/* "1000000": an item. "250ms", "12.5s", "3min", "2h", also us, ns, ps: a time. Returns false for anything else. */
bool range_parse(const char *text, range_end *ret);

/* For command_options(): as range_parse(), and says what is wrong. `option` is the option's name, "--from". */
bool range_option(const command *self, const char *option, const char *text, range_end *ret);

/* The group that a range of this file counts in: photons if it has them, else tags, else none. */
d7_group range_group(const d7_reader *r);

/* Items [*ret_from, *ret_to) of that group's columns (of a file without groups: of all datasets but the milliseconds). A time
 * is found by the milliseconds (rounded down to whole ones), else by the stamps of photons or tags, counted from the first. An
 * end past the last item is that; a beginning past it is an error. Returns 0, or an exit code after
 * saying why. */
int range_resolve(const command *self, d7_reader *r, const char *path, const range_end *from,
                  const range_end *to, uint64_t *ret_from, uint64_t *ret_to);

/* The same for the columns of a group of the caller's choice. */
int range_resolve_in(const command *self, d7_reader *r, const char *path, d7_group group,
                     const range_end *from, const range_end *to, uint64_t *ret_from, uint64_t *ret_to);

/* What --help says about both options, in commands that take them. */
#define RANGE_HELP                                                                                           \
    "  --from A     the first item (10000), or the time since the start (12.5s; ps, ns, us, ms, s, min, "    \
    "h)\n"                                                                                                   \
    "  --to B       where to stop: the first item, or time, that does not belong to it any more\n"

#endif
