/* A file that copy, split or merge writes: a writer under a temporary name. */
#ifndef D7_CLI_TRANSFER_OUTPUT_H
#define D7_CLI_TRANSFER_OUTPUT_H

#include "attribute_list.h"
#include "result.h"

typedef struct transfer_output {
    const command *self;
    result_file result;
    d7_writer *writer;
} transfer_output;

typedef struct output_options {
    const char *path;
    bool overwrite;
    const d7_reader *like; /* island step, header as of this file */
    uint32_t page_bytes;
    const d7_dataset *datasets;
    size_t n_datasets;
    const attribute_list *attributes; /* written at once */
    const d7_executor *executor;      /* NULL: pages are encoded by the calling thread */
    bool quiet;                       /* what some readers cannot do with such a file has been said */
} output_options;

/* The page size of `like`, where that can be written. */
uint32_t output_page_bytes(const d7_reader *like, const d7_dataset *datasets, size_t n);

/* Returns 0, or an exit code after saying why, with nothing left to end. */
int output_begin(transfer_output *ret, const command *self, const output_options *options);

/* Closes the file and gives it its name; its length goes to *ret_bytes. Returns 0, or an exit code after saying why, with
 * nothing left. */
int output_end(transfer_output *out, uint64_t *ret_bytes);

/* Takes back what was written; allowed at any time. */
void output_drop(transfer_output *out);

#endif
