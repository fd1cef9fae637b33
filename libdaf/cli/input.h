/* The values that daf set reads: from a file or standard input, in any of the formats that daf get writes. */
#ifndef DAF_CLI_INPUT_H
#define DAF_CLI_INPUT_H

#include "cli/npy.h"
#include "command.h"

/* What is read, and how it is laid out. */
typedef struct input {
    /* in */
    const cli_command *self;
    const char *path; /* "-": standard input */
    value_format form;
    bool typed;    /* `type` was given */
    daf_type type; /* of String when it was not and the format does not tell */
    size_t rank;   /* 0 a scalar, 1 a list, 2 a matrix */
    /* out */
    char *content; /* the file, with a NUL behind it */
    size_t bytes;
    uint64_t rows, columns; /* of a matrix; of a list: its length and 1 */
    void *numbers;          /* [rows * columns], column-major, host order; NULL for String */
    const char **texts;     /* [rows * columns], column-major; NULL for numeric types */
    char *pool;             /* what some of the texts point into */
    size_t capacity;        /* elements that numbers or texts have room for */
    uint64_t n;             /* elements so far */
    /* csv: the entries of the axes, as the input has them; [rows], [columns] (of a list: NULL). */
    const char **row_names, **column_names;
    const char *names[2]; /* csv: of the first column, and of a list's values */
    /* npz: in place of numbers. */
    bool is_sparse;
    daf_csc csc;
} input;

/* Reads and parses. Returns 0, or -1 after a message on standard error. */
int input_read(input *in);
void input_free(input *in);

/* Says "daf COMMAND: FILE: ..." and returns -1. */
int input_fail(const input *in, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends an element in the order of the input; text is NUL-terminated. Returns 0, or -1 after a message. */
int input_add(input *in, const char *text);

/* The forms that have a file of their own. */
int input_parse_json(input *in);
int input_parse_csv(input *in);
int input_parse_npz(input *in);

/* Turns the elements, which were given row by row, into columns. */
int input_transpose(input *in);

/* Moving all elements: gives them, and where they go, [n] of `width` bytes; what is there takes their place. NULL: out of
 * memory, after a message. */
const uint8_t *input_begin_moving(const input *in, uint8_t **to, size_t *width);
void input_end_moving(input *in, uint8_t *to);

/* The type of an array's elements. Returns 0, or -1. */
int input_npy_type(const cli_npy_array *a, daf_type *ret);

/* Brings the values of a CSV, whose entries may come in any order, into the order of the axes. Returns 0, or an exit code
 * after saying why. */
int input_order(input *in, daf *d, const target *t);

/* Parses a number of a numeric type to its own bytes in host order. Returns 0, or -1. */
int parse_number(void *to, daf_type type, const char *text);

#endif
