/* The parts of d7 follow: follow.c (the command), follow_file.c (which file, and what happens to it), follow_print.c (what
 * is printed). */
#ifndef D7_CLI_FOLLOW_H
#define D7_CLI_FOLLOW_H

#include "commands.h"

typedef struct follow_options {
    const command *self;
    const char *path;
    char **names; /* [n_names] of datasets; none: summary lines */
    size_t n_names;
    bool json, unframed;
    bool from_given;
    uint64_t from;
    uint64_t interval_ns, wait_ns;
} follow_options;

typedef struct follow {
    const follow_options *o;
    d7_reader *reader;
    char *path;     /* of the file that is followed now */
    uint32_t *ids;  /* [o->n_names] */
    d7_type *types; /* likewise */
    uint64_t at;    /* the next item to be printed */
    bool begun;     /* a file was opened before this one: it is printed from its start */
    bool replaced;  /* another file lies at the path, or none */
    bool headless;  /* it was told that the file is cut into its header */
    bool unheld;    /* it was told that nobody writes */
    bool damaged;   /* something could not be printed */

    uint64_t told_ns; /* when the last summary was printed, and what it said */
    uint64_t told_items, told_bytes;
    bool told;
} follow;

/* ---- follow_file.c ---- */

/* Opens a file to be followed. Returns 0, or an exit code after saying why. */
int follow_open(follow *f, const char *path);
void follow_close(follow *f);

/* Looks at the file again and tells what happened to it. Returns 0, or an exit code. */
int follow_refresh(follow *f);

/* The name of the next part of a recording: NAME.photons, NAME.0001.photons, NAME.0002.photons; NULL: the name is of no
 * such form, or out of memory. To be freed. */
char *follow_next_part(const char *path);

/* Items that can be printed now: those of the named datasets, all of which have them. */
uint64_t follow_items(const follow *f);

/* ---- follow_print.c ---- */

/* Prints what is new. Returns 0, or an exit code. */
int follow_print(follow *f);

/* Something that happened: a line on standard error or, with --json, an object on standard output. `name` is a word. */
void follow_tell(const follow *f, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Nanoseconds that only grow. */
uint64_t follow_now_ns(void);

#endif
