#include "index.h"

#include <string.h>

enum {
    ENTRY_INDEX = D7__TAG(3, D7__BYTES),
    INDEX_PAGE = D7__TAG(1, D7__BYTES),
    INDEX_ATTRIBUTE = D7__TAG(2, D7__BYTES),
    PAGE_DATASET = D7__TAG(1, D7__VARINT),
    PAGE_OFFSET = D7__TAG(2, D7__VARINT),
    ATTRIBUTE_KEY = D7__TAG(1, D7__BYTES),
    ATTRIBUTE_VALUE = D7__TAG(2, D7__BYTES),
};

static size_t page_inner_bytes(const d7__page_ref *page) {
    return 2 + d7__varint_bytes(page->dataset_id) + d7__varint_bytes(page->offset);
}

static size_t text_bytes(size_t n) {
    return 1 + d7__varint_bytes(n) + n;
}

static size_t attribute_inner_bytes(const d7_attribute *a) {
    return text_bytes(a->key_bytes) + text_bytes(a->value_bytes);
}

size_t d7__index_page_bytes(const d7__page_ref *page) {
    return text_bytes(page_inner_bytes(page));
}

size_t d7__index_attribute_bytes(const d7_attribute *attribute) {
    return text_bytes(attribute_inner_bytes(attribute));
}

static size_t content_attributes(const d7__index_content *c) {
    return c->n_attributes + (c->marker != NULL);
}

static const d7_attribute *content_attribute(const d7__index_content *c, size_t i) {
    if (i == c->n_attributes)
        return c->marker;
    return &c->attributes[c->order ? c->order[i] : i];
}

/* The page at the cursor, which there is, and the cursor behind it. */
static d7__page_ref content_page(const d7__index_content *c, d7__page_cursor *cursor) {
    d7__page_ref page = {0};
    if (c->pages)
        page = c->pages[cursor->n++];
    else
        d7__page_log_next(c->log, cursor, &page);
    return page;
}

static void take_attributes(const d7__index_content *c, d7__index_part *p) {
    for (size_t i = p->first_attribute; i < content_attributes(c); i++, p->n_attributes++) {
        size_t bytes = d7__index_attribute_bytes(content_attribute(c, i));
        if (p->body_bytes + bytes > D7_INDEX_BODY_MAX)
            return;
        p->body_bytes += bytes;
    }
}

static void take_pages(const d7__index_content *c, d7__index_part *p) {
    while (p->end.n - c->from.n < c->n_pages) {
        d7__page_cursor next = p->end;
        d7__page_ref page = content_page(c, &next);
        size_t bytes = d7__index_page_bytes(&page);
        if (p->body_bytes + bytes > D7_INDEX_BODY_MAX)
            return;
        p->body_bytes += bytes;
        p->end = next;
    }
}

bool d7__index_next_part(const d7__index_content *c, d7__index_part *p) {
    d7__page_cursor from = p->begun ? p->end : c->from;
    size_t attribute = p->first_attribute + p->n_attributes;
    if (p->begun && from.n - c->from.n == c->n_pages && attribute == content_attributes(c))
        return false;
    *p = (d7__index_part){.begin = from, .end = from, .first_attribute = attribute, .begun = true};
    take_attributes(c, p);
    take_pages(c, p);
    return true;
}

size_t d7__index_entry_bytes(const d7__index_part *part) {
    return text_bytes(part->body_bytes);
}

size_t d7__index_room(const d7__index_part *part) {
    size_t bytes = d7__index_entry_bytes(part);
    return bytes > D7_ENTRY_BYTES_MAX / 2 ? D7_ENTRY_BYTES_MAX : bytes;
}

static uint8_t *put_page(uint8_t *p, const d7__page_ref *page) {
    *p++ = INDEX_PAGE;
    p = d7__put_varint(p, page_inner_bytes(page));
    *p++ = PAGE_DATASET;
    p = d7__put_varint(p, page->dataset_id);
    *p++ = PAGE_OFFSET;
    return d7__put_varint(p, page->offset);
}

static uint8_t *put_text(uint8_t *p, uint8_t tag, const char *text, size_t n) {
    *p++ = tag;
    p = d7__put_varint(p, n);
    if (n)
        memcpy(p, text, n);
    return p + n;
}

static uint8_t *put_attribute(uint8_t *p, const d7_attribute *a) {
    *p++ = INDEX_ATTRIBUTE;
    p = d7__put_varint(p, attribute_inner_bytes(a));
    p = put_text(p, ATTRIBUTE_KEY, a->key, a->key_bytes);
    return put_text(p, ATTRIBUTE_VALUE, a->value, a->value_bytes);
}

size_t d7__index_pack(const d7__index_content *c, const d7__index_part *part, uint8_t *out) {
    uint8_t *p = out;
    *p++ = ENTRY_INDEX;
    p = d7__put_varint(p, part->body_bytes);
    for (d7__page_cursor at = part->begin; at.n < part->end.n;) {
        d7__page_ref page = content_page(c, &at);
        p = put_page(p, &page);
    }
    for (size_t i = 0; i < part->n_attributes; i++)
        p = put_attribute(p, content_attribute(c, part->first_attribute + i));
    return (size_t)(p - out);
}

/* What the fields of a page's message are. */
typedef struct page_fields {
    uint64_t dataset_id, offset;
    unsigned n_dataset_id, n_offset, n_unknown;
    bool twisted;
} page_fields;

static bool parse_page(const d7__field *message, page_fields *ret) {
    *ret = (page_fields){0};
    for (d7__cursor c = {message->bytes, message->bytes + message->n_bytes}; c.at < c.end;) {
        d7__field f;
        if (!d7__get_field(&c, &f))
            return false;
        bool known = f.number == 1 || f.number == 2;
        if (known && f.wire_type == D7__VARINT) {
            *(f.number == 1 ? &ret->dataset_id : &ret->offset) = f.value;
            *(f.number == 1 ? &ret->n_dataset_id : &ret->n_offset) += 1;
        } else {
            ret->twisted |= known;
            ret->n_unknown++;
        }
    }
    ret->twisted |= ret->n_dataset_id > 1 || ret->n_offset > 1;
    return true;
}

static int read_page(const d7__field *message, const d7__index_sink *sink) {
    page_fields page;
    if (!parse_page(message, &page))
        return D7_ERR_CORRUPT;
    if (sink->form) {
        sink->form->n_pages++;
        sink->form->n_unknown += page.n_unknown > 0;
        sink->form->twisted |= page.twisted;
    }
    return sink->page ? sink->page(sink->ctx, page.dataset_id, page.offset) : 0;
}

static int read_attribute(const d7__field *message, const d7__index_sink *sink) {
    d7_attribute a = {.key = "", .value = ""};
    for (d7__cursor c = {message->bytes, message->bytes + message->n_bytes}; c.at < c.end;) {
        d7__field f;
        if (!d7__get_field(&c, &f))
            return D7_ERR_CORRUPT;
        if (f.number == 1 && f.wire_type == D7__BYTES) {
            a.key = (const char *)f.bytes;
            a.key_bytes = f.n_bytes;
        } else if (f.number == 2 && f.wire_type == D7__BYTES) {
            a.value = (const char *)f.bytes;
            a.value_bytes = f.n_bytes;
        }
    }
    return sink->attribute ? sink->attribute(sink->ctx, &a) : 0;
}

/* Writers put fields that are not known here behind the others. */
int d7__index_read(d7__cursor body, const d7__index_sink *sink) {
    d7__index_form none = {0}, *form = sink->form ? sink->form : &none;
    int malformed = 0;
    while (body.at < body.end) {
        d7__field f;
        if (!d7__get_field(&body, &f))
            return D7_ERR_CORRUPT;
        int rc = 0;
        bool ours = f.number == 1 || f.number == 2, known = ours && f.wire_type == D7__BYTES;
        malformed = ours && !known ? D7_ERR_CORRUPT : malformed;
        form->twisted |= known && form->others;
        form->others |= !known;
        form->n_attributes += known && f.number == 2;
        if (known)
            rc = f.number == 1 ? read_page(&f, sink) : read_attribute(&f, sink);
        if (rc != 0)
            return rc;
    }
    return malformed;
}
