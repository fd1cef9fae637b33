/* Index entries: which pages are where, and attributes. Islands and the global index have the same form.
 *
 * They are written and read without a message tree: at the format's largest index, 1.6 million pages, that
 * tree would take over 100 MB. A test holds the bytes against protobuf-c's. Source: the D7 specification,
 * section 4. */
#ifndef D7_SRC_INDEX_H
#define D7_SRC_INDEX_H

#include "page_log.h"
#include "wire.h"

/* What is to be written. */
typedef struct d7__index_content {
    const d7__page_ref *pages; /* [n_pages] in the order of the file; NULL: those of `log` behind `from` */
    const d7__page_log *log;
    d7__page_cursor from;
    size_t n_pages;
    const d7_attribute *attributes;
    const size_t *order; /* [n_attributes] places in `attributes`; NULL: the first n_attributes */
    size_t n_attributes;
    const d7_attribute *marker; /* written after them; NULL: none */
} d7__index_content;

/* What one Index entry of several holds. All zero: before the first. */
typedef struct d7__index_part {
    d7__page_cursor begin, end;           /* its pages, counted from the start of `pages` or `log` */
    size_t first_attribute, n_attributes; /* the marker counts as the last */
    size_t body_bytes;
    bool begun;
} d7__index_part;

/* Bytes that a page or an attribute takes in an Index body. */
size_t d7__index_page_bytes(const d7__page_ref *page);
size_t d7__index_attribute_bytes(const d7_attribute *attribute);

/* Goes on to the next entry: all attributes in the first ones, then as many pages as fit. There is at least
 * one entry. Returns false after the last. */
bool d7__index_next_part(const d7__index_content *content, d7__index_part *part);

/* Bytes of the serialised FileEntry of a part. */
size_t d7__index_entry_bytes(const d7__index_part *part);

/* Memory for it: of a large one as much as for any other, so that those that follow fit it too. */
size_t d7__index_room(const d7__index_part *part);

/* Writes that entry; returns its length. */
size_t d7__index_pack(const d7__index_content *content, const d7__index_part *part, uint8_t *out);

/* How the pages' messages of an Index look. Unknown fields are another writer's where all have them. */
typedef struct d7__index_form {
    size_t n_pages, n_unknown; /* of them, those that have unknown fields */
    size_t n_attributes;
    bool others; /* there are fields besides pages and attributes */
    bool
        twisted; /* one has a field twice, or of another type; or something unknown stands before what is known */
} d7__index_form;

/* Does it say nothing, and holds something? So does a page that a bit has made an index. */
static inline bool d7__index_is_mute(const d7__index_form *f) {
    return f->n_pages == 0 && f->n_attributes == 0 && f->others;
}

/* Is it so that bits of it may have changed? */
static inline bool d7__index_is_odd(const d7__index_form *f) {
    return f->twisted || (f->n_unknown && f->n_unknown != f->n_pages);
}

/* Takes what an Index holds, in order; anything but 0 stops the reading and is returned. NULL: not asked for. */
typedef struct d7__index_sink {
    void *ctx;
    d7__index_form *form; /* NULL: not asked for */
    int (*page)(void *ctx, uint64_t dataset_id, uint64_t offset);
    int (*attribute)(void *ctx, const d7_attribute *attribute);
} d7__index_sink;

/* Reads the body of an Index message. Returns 0; D7_ERR_CORRUPT: malformed, which a field of another type than it has is too
 * (what can be read is taken); the sink's. */
int d7__index_read(d7__cursor body, const d7__index_sink *sink);

#endif
