#include "buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

void daf__buf_free(daf__buf *b) {
    free(b->data);
    *b = (daf__buf){0};
}

uint8_t *daf__buf_reserve(daf__buf *b, size_t bytes) {
    if (b->failed || bytes > SIZE_MAX / 2 - b->size) {
        b->failed = true;
        return NULL;
    }
    if (b->capacity - b->size < bytes || !b->data) {
        size_t capacity = b->capacity < 64 ? 64 : b->capacity;
        while (capacity - b->size < bytes)
            capacity *= 2;
        uint8_t *data = realloc(b->data, capacity);
        if (!data) {
            b->failed = true;
            return NULL;
        }
        b->data = data;
        b->capacity = capacity;
    }
    return b->data + b->size;
}

void daf__buf_append(daf__buf *b, const void *data, size_t bytes) {
    uint8_t *to = daf__buf_reserve(b, bytes);
    if (!to || !bytes)
        return;
    memcpy(to, data, bytes);
    b->size += bytes;
}

void daf__buf_text(daf__buf *b, const char *text) {
    daf__buf_append(b, text, strlen(text));
}

void daf__buf_printf(daf__buf *b, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        b->failed = true;
    else
        daf__buf_append(b, text, (size_t)n);
}

char *daf__copy_text(const void *text, size_t bytes) {
    char *copy = malloc(bytes + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

int daf__buf_check(const daf__buf *b, daf_error *err) {
    return b->failed ? daf__no_memory(err) : 0;
}
