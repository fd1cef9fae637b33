/* A growable byte buffer whose failure sticks: append freely, look at `failed` once at the end. */
#ifndef DAF_SRC_BUF_H
#define DAF_SRC_BUF_H

#include "daf/daf.h"

typedef struct daf__buf {
    uint8_t *data;
    size_t size;
    size_t capacity;
    bool failed; /* out of memory; the content is then incomplete */
} daf__buf;

void daf__buf_free(daf__buf *b);

/* Makes room for `bytes` more and returns where they go (the size does not change yet); NULL on failure. */
uint8_t *daf__buf_reserve(daf__buf *b, size_t bytes);

void daf__buf_append(daf__buf *b, const void *data, size_t bytes);
void daf__buf_text(daf__buf *b, const char *text);
void daf__buf_printf(daf__buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A copy of `bytes` bytes with a NUL behind it, to be freed; NULL without memory. */
char *daf__copy_text(const void *text, size_t bytes);

/* 0, or DAF_ERR_NOMEM when something did not fit in memory. */
int daf__buf_check(const daf__buf *b, daf_error *err);

#endif
