#include "transfer_output.h"

#include <stdlib.h>

uint32_t output_page_bytes(const d7_reader *like, const d7_dataset *datasets, size_t n) {
    return d7_writable_page_bytes(datasets, n, d7_reader_bytes_per_page(like));
}

/* What some readers cannot do with the file. */
static void tell_warnings(const transfer_output *out, const output_options *o) {
    static const struct {
        unsigned bit;
        const char *text;
    } known[] = {
        {D7_WARN_MANY_DATASETS, "there are more than 128 datasets: some readers lose those beyond"},
        {D7_WARN_LONG_HEADER, "the header is longer than a block: some readers cannot open the file"},
        {D7_WARN_PAGE_BYTES, "pages are not of 16384 bytes: some readers read other values, or nothing"}};
    unsigned warnings = d7_writer_warnings(out->writer);
    for (size_t i = 0; !o->quiet && i < sizeof known / sizeof *known; i++)
        if (warnings & known[i].bit)
            command_fail(out->self, "%s: %s", o->path, known[i].text);
}

static int create(transfer_output *out, const output_options *o) {
    d7_error err;
    d7_writer_options options;
    d7_writer_options_init(&options);
    options.index_step = d7_reader_index_step(o->like);
    options.bytes_per_page = o->page_bytes;
    options.like = o->like;
    options.executor = o->executor;
    options.n_attributes = o->attributes->n;
    d7_attribute *attributes = attribute_array(o->attributes);
    if (!attributes)
        return command_fail(out->self, "out of memory");
    options.attributes = attributes;
    int rc =
        d7_writer_create(&out->writer, out->result.temporary, o->datasets, o->n_datasets, &options, &err);
    free(attributes);
    if (rc != 0)
        return command_fail(out->self, "%s", err.text);
    tell_warnings(out, o);
    return 0;
}

int output_begin(transfer_output *ret, const command *self, const output_options *options) {
    transfer_output out = {.self = self};
    int code = result_begin(self, options->path, options->overwrite, &out.result);
    if (code == 0)
        code = create(&out, options);
    if (code != 0)
        output_drop(&out);
    else
        *ret = out;
    return code;
}

int output_end(transfer_output *out, uint64_t *ret_bytes) {
    d7_error err;
    int code = cli_stopped                               ? command_stopped_code(out->self)
               : d7_writer_close(out->writer, &err) != 0 ? command_fail(out->self, "%s", err.text)
                                                         : 0;
    *ret_bytes = d7_writer_written_bytes(out->writer);
    d7_writer_free(out->writer);
    out->writer = NULL;
    if (code == 0)
        code = result_commit(&out->result);
    output_drop(out);
    return code;
}

void output_drop(transfer_output *out) {
    d7_writer_free(out->writer);
    out->writer = NULL;
    result_drop(&out->result);
}
