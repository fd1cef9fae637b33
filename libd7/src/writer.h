/* The writer's parts, shared by writer.c (creation, attributes, getters), writer_pages.c (values to pages,
 * islands) and writer_close.c. */
#ifndef D7_SRC_WRITER_H
#define D7_SRC_WRITER_H

#include <stdatomic.h>

#include "attributes.h"
#include "index.h"
#include "out.h"

/* Where the writer is in its life. OPEN is the only state that takes values; the CLOSING ones are the steps
 * of d7_writer_close(), each of which is begun once and may be gone on with after a full disk. */
typedef enum d7__writer_stage {
    D7__WRITER_OPEN,
    D7__WRITER_CLOSING_PAGES, /* last pages are being framed */
    D7__WRITER_CLOSING_INDEX, /* the global index, entry by entry, */
    D7__WRITER_CLOSING_SYNC,  /* is framed; to be written and synced */
    D7__WRITER_CLOSING_END,   /* epilogue framed; to be written and synced */
    D7__WRITER_CLOSED,
    D7__WRITER_FAILED
} d7__writer_stage;

typedef struct d7__writer_dataset {
    d7_type type;
    size_t items_per_page;
    uint8_t
        *pending; /* [n_pending] items that wait for their page, of the cap_pending that there is room for */
    size_t n_pending, cap_pending;
    uint64_t paged_items;
    bool ended; /* takes no more: by call, or a short page was the last */
} d7__writer_dataset;

struct d7_writer {
    d7_io io;
    d7_alloc alloc;
    d7_executor executor;
    bool has_executor;
    char *path;
    d7__out out;
    d7__sums_writer sums; /* beside the file; alloc is NULL when none are kept */
    size_t buffer_bytes;
    unsigned warnings;

    d7__writer_stage stage;
    d7_error failure;   /* in FAILED: the first error */
    atomic_bool failed; /* so, for d7_writer_sync_data(), which may be on another thread; `failure` is set */
    atomic_int sync_errno; /* set by d7_writer_sync_data(), maybe on another thread; 0: none failed */

    size_t n_datasets;
    d7__writer_dataset *datasets;
    uint32_t index_step, bytes_per_page;

    d7__page_log pages;             /* all */
    d7__page_cursor unlisted_pages; /* the running list of the next island begins here */
    uint64_t next_island;           /* block at or past which one is due */

    d7__attributes attributes;
    uint8_t *in_span; /* [attributes.cap] D7__ATTRIBUTE_ bits */
    size_t cap_in_span;
    size_t *span; /* [n_span] those for the next island, in the order of setting */
    size_t n_span, cap_span;
    size_t *unlisted; /* [n_unlisted] those that no Index entry holds yet, likewise */
    size_t n_unlisted, cap_unlisted;
    bool index_run; /* all since the header, or since the last island, are Index entries */

    uint64_t index_bytes;         /* of all pages and attributes in a global index, without the marker */
    bool allocates;               /* space was asked for beyond the end */
    uint64_t allocated;           /* up to there it is set aside */
    uint64_t global_index_offset; /* once the first entry of it, */
    d7__index_part global_index;  /* this is the last, is framed */
    d7__buffer encoded;           /* pages and */
    d7__buffer scratch;           /* index entries on their way to `out` */
};

/* Fills in the lengths of an attribute given as strings, and checks it. Returns 0; D7_ERR_ARG; D7_ERR_LIMIT.
 */
int d7__attribute_check(const char *path, const char *key, const char *value, d7_attribute *ret,
                        d7_error *err);

/* Keeps an attribute, and what is to happen to it: D7__ATTRIBUTE_ bits. Returns 0; D7_ERR_NOMEM. */
enum {
    D7__ATTRIBUTE_SPAN = 1,    /* the next island lists it */
    D7__ATTRIBUTE_UNLISTED = 2 /* the next Index entry, island or not, does */
};
int d7__writer_keep_attribute(d7_writer *w, const d7_attribute *a, unsigned bits);

/* Everything that needs no file, in a writer that is all zero but for `alloc`. Returns 0; D7_ERR_ARG;
 * D7_ERR_LIMIT; D7_ERR_NOMEM. */
int d7__writer_prepare(d7_writer *w, const char *path, const d7_dataset *datasets, size_t n,
                       const d7_writer_options *o, d7_error *err);

/* Gives the writer checksums to keep, in memory. Returns 0; D7_ERR_NOMEM. */
int d7__writer_keep_sums(d7_writer *w, d7_error *err);

/* Removes checksums beside the file that are no longer true, if there are any. */
void d7__writer_forget_sums(d7_writer *w);

/* Locks the open file. Returns 0; D7_ERR_LOCKED; D7_ERR_UNSUPPORTED. */
int d7__writer_lock(d7_writer *w, d7_locking locking, d7_error *err);

/* Returns 0 in OPEN; else why values cannot be taken. */
int d7__writer_check_open(d7_writer *w, d7_error *err);

/* Turns the first failure of a sync on another thread into FAILED; returns 0 unless the writer has failed. */
int d7__writer_check_failed(d7_writer *w, d7_error *err);

/* Flushes; D7_ERR_NOSPACE leaves the writer as it is, anything else makes it FAILED. */
int d7__writer_drain(d7_writer *w, d7_error *err);

/* The same where a piece of buffer_bytes is ready. */
int d7__writer_drain_if_large(d7_writer *w, d7_error *err);

/* Gives back what was set aside beyond the end. */
void d7__writer_give_back(d7_writer *w);

/* Makes the writer FAILED with this error, and copies that to err. Returns its code. */
int d7__writer_fail(d7_writer *w, const d7_error *failure, d7_error *err);

int d7__writer_no_memory(const d7_writer *w, d7_error *err);

/* Frames a page, and an island before it where one is due. Returns 0; D7_ERR_NOMEM with nothing changed. */
int d7__writer_put_page(d7_writer *w, uint32_t dataset_id, const uint8_t *entry, size_t bytes,
                        size_t n_items);

/* Encodes and frames what waits in a dataset. Returns 0; D7_ERR_NOMEM with nothing changed. */
int d7__writer_put_pending(d7_writer *w, uint32_t dataset_id);

/* Frames an index; the offset of its first entry goes to *ret_offset. Returns 0; D7_ERR_NOMEM with nothing
 * changed. */
int d7__writer_put_index(d7_writer *w, const d7__index_content *content, uint64_t *ret_offset);

/* The same of one entry of it. */
int d7__writer_put_part(d7_writer *w, const d7__index_content *content, const d7__index_part *part,
                        uint64_t *ret_offset);

#endif
