#include "page_log.h"

#include "wire.h"

enum { PAGE_BYTES_MAX = 2 * D7__VARINT_MAX };

int d7__page_log_reserve(const d7_alloc *a, d7__page_log *log) {
    return d7__chunks_reserve(a, &log->bytes, log->n_bytes + PAGE_BYTES_MAX);
}

static void put(d7__page_log *log, uint64_t value) {
    uint8_t bytes[D7__VARINT_MAX];
    size_t n = (size_t)(d7__put_varint(bytes, value) - bytes);
    for (size_t i = 0; i < n; i++)
        *d7__chunks_u8(&log->bytes, log->n_bytes++) = bytes[i];
}

void d7__page_log_add(d7__page_log *log, d7__page_ref page) {
    put(log, page.dataset_id);
    put(log, page.offset - log->last);
    log->last = page.offset;
    log->n++;
}

static uint64_t get(const d7__page_log *log, size_t *at) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *d7__chunks_u8(&log->bytes, (*at)++);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
}

bool d7__page_log_next(const d7__page_log *log, d7__page_cursor *cursor, d7__page_ref *ret_page) {
    if (cursor->n == log->n)
        return false;
    uint32_t dataset_id = (uint32_t)get(log, &cursor->at);
    cursor->last += get(log, &cursor->at);
    cursor->n++;
    *ret_page = (d7__page_ref){.offset = cursor->last, .dataset_id = dataset_id};
    return true;
}

d7__page_cursor d7__page_log_end(const d7__page_log *log) {
    return (d7__page_cursor){.at = log->n_bytes, .n = log->n, .last = log->last};
}

void d7__page_log_clear(d7__page_log *log) {
    log->n_bytes = log->n = 0;
    log->last = 0;
}

void d7__page_log_free(const d7_alloc *a, d7__page_log *log) {
    d7__chunks_free(a, &log->bytes);
    d7__page_log_clear(log);
}
