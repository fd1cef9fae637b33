/* What d7 image, decay and rate share: their options, the file and its range, the result as a picture or as numbers. */
#ifndef D7_CLI_VIEW_H
#define D7_CLI_VIEW_H

#include "cli/pool.h"
#include "commands.h"
#include "plot.h"
#include "range.h"
#include "result.h"

typedef enum view_format { VIEW_BY_NAME, VIEW_PNG, VIEW_CSV, VIEW_NPY } view_format;

typedef struct view {
    const command *self;
    /* as given */
    const char *path, *output;
    view_format format;
    bool overwrite, unframed;
    range_end from_end, to_end;
    /* the file */
    cli_pool *pool;
    d7_reader *reader;
    bool tags;         /* its group is tags, not photons */
    uint64_t from, to; /* rows of that group */
    uint32_t used[4];  /* [n_used] datasets that were read, for their problems */
    size_t n_used;
    uint64_t skipped; /* rows in damaged pages */
    bool warned;      /* about missing attributes, not to be said twice */
    /* the result */
    result_file result;
    FILE *out;
} view;

/* Options that all three have; for arrays of struct option. */
enum {
    VIEW_OPTION_FROM = 512,
    VIEW_OPTION_TO,
    VIEW_OPTION_FORMAT,
    VIEW_OPTION_OVERWRITE,
    VIEW_OPTION_UNFRAMED,
    VIEW_OPTION_OUTPUT = 'o'
};
/* clang-format off */
#define VIEW_OPTIONS                                              \
    {"output", required_argument, NULL, VIEW_OPTION_OUTPUT},      \
    {"from", required_argument, NULL, VIEW_OPTION_FROM},          \
    {"to", required_argument, NULL, VIEW_OPTION_TO},              \
    {"format", required_argument, NULL, VIEW_OPTION_FORMAT},      \
    {"overwrite", no_argument, NULL, VIEW_OPTION_OVERWRITE},      \
    {"unframed", no_argument, NULL, VIEW_OPTION_UNFRAMED},        \
    {"help", no_argument, NULL, 'h'},                             \
    {0}
/* clang-format on */

#define VIEW_HELP                                                                                            \
    "  -o, --output OUT  where to; - is standard output. The name's end chooses the format\n"                \
    "  --format F        png: a picture; csv; npy: for NumPy. Default by the name's end, else csv\n"         \
    "  --overwrite       replace OUT if it is there; default: refuse\n"                                      \
    "  --from A          the first photon or tag (10000), or the time since the start (12.5s; ms, min, h)\n" \
    "  --to B            where to stop: the first that does not belong to it any more\n"                     \
    "  --unframed        also read a file whose blocks have no begin and end bits\n"

/* Takes one of VIEW_OPTIONS. Returns false when it is not usable, after saying why. */
bool view_option(view *v, int option, const char *argument);

/* Prepares the result, opens the file and finds the range. Returns 0, or an exit code after saying why. view_end() in
 * any case. */
int view_begin(view *v, const char *path);

/* Its problems are said at the end. */
void view_note_used(view *v, uint32_t dataset_id);

/* Finds the dataset of a role and notes that it is used. It must hold whole numbers. Returns 0, or an exit code after saying
 * why. */
int view_need(view *v, d7_role role, const char *name, uint32_t *ret_dataset_id);

/* Gets rows; they are good for the call. */
typedef void view_rows_fn(void *ctx, const d7_chunk *chunk);

/* Reads [from, to) of columns that belong together, around damaged pages, with a progress bar. restart(ctx) forgets what was
 * taken: before the first rows, and when reading has to begin anew. to of UINT64_MAX: the end. Returns 0, or an exit code after
 * saying why. */
int view_rows(view *v, const uint32_t *dataset_ids, size_t n, uint64_t from, uint64_t to,
              void (*restart)(void *ctx), view_rows_fn *take, void *ctx);

/* The end that the range has, UINT64_MAX where it is the file's: pages of unexpected length may move that. */
uint64_t view_end_of_range(const view *v);

/* A whole number attribute in [low, high], or `otherwise` after a warning. */
unsigned view_bits(view *v, const char *key, unsigned low, unsigned high, unsigned otherwise);

/* The value of a number attribute; NAN where it is missing, no number or not positive. */
double view_number(const view *v, const char *key);

/* Value i of a column of whole numbers; a negative one is UINT64_MAX. */
uint64_t view_value(d7_type type, const void *values, size_t i);

/* "1,234,567". */
void view_count_text(char text[32], uint64_t count);

/* Titles of a figure: the file's name; `facts`; when it was made and what part of it this is. */
typedef struct view_titles {
    char name[256], facts[256], part[256];
} view_titles;
void view_make_titles(const view *v, view_titles *titles, const char *facts);

/* Opens v->out for the result, and sees that all is written. Return 0, or an exit code after saying why. */
int view_open_stream(view *v);
int view_flush(view *v);

/* Writes the figure as PNG. Returns 0, or an exit code after saying why. */
int view_write_png(view *v, const plot_figure *figure, const char *title);

/* Writes a table as CSV with a line of names, or as npy of float64 [rows][columns] in rows. print() writes the row's CSV. Returns
 * 0, or an exit code after saying why. */
typedef struct view_table {
    const char *names; /* with commas */
    size_t rows, columns;
    void *ctx;
    double (*value)(const void *ctx, size_t row, size_t column);
    void (*print)(const void *ctx, size_t row, FILE *out);
} view_table;
int view_write_table(view *v, const view_table *table);

/* Gives the result its name when `code` is 0, says what is wrong with the data, releases everything. Returns the exit code. */
int view_finish(view *v, int code);

#endif
