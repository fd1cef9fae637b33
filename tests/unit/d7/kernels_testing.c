#include "kernels_testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

size_t kernel_width(kernel_type t) {
    return t == KERNEL_64 ? 8 : t == KERNEL_32 ? 4 : 2;
}

size_t kernel_bound(kernel_type t, size_t n) {
    size_t worst = t == KERNEL_64 ? 10 : t == KERNEL_32 ? 5 : 3;
    return (n - 1) * worst + D7__ENCODE_SLOP;
}

d7__encode_fn *kernel_encoder(const d7__kernels *k, kernel_type t) {
    d7__encode_fn *const functions[] = {k->encode_int16, k->encode_uint16, k->encode_32, k->encode_64};
    return functions[t];
}

d7__decode_fn *kernel_decoder(const d7__kernels *k, kernel_type t) {
    return t == KERNEL_64 ? k->decode_64 : t == KERNEL_32 ? k->decode_32 : k->decode_16;
}

uint64_t plain_load(kernel_type t, const uint8_t *at) {
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (t) {
    case KERNEL_INT16:
        memcpy(&v16, at, sizeof v16);
        return (uint64_t)(int64_t)(int16_t)v16;
    case KERNEL_UINT16:
        memcpy(&v16, at, sizeof v16);
        return v16;
    case KERNEL_32:
        memcpy(&v32, at, sizeof v32);
        return v32;
    default:
        memcpy(&v64, at, sizeof v64);
        return v64;
    }
}

void plain_store(kernel_type t, uint8_t *at, uint64_t x) {
    uint16_t v16 = (uint16_t)x;
    uint32_t v32 = (uint32_t)x;
    size_t width = kernel_width(t);
    memcpy(at, width == 2 ? (void *)&v16 : width == 4 ? (void *)&v32 : (void *)&x, width);
}

uint8_t *plain_encode(kernel_type t, const uint8_t *values, size_t n, uint8_t *out) {
    size_t width = kernel_width(t);
    for (size_t i = 1; i < n; i++) {
        uint64_t d = plain_load(t, values + i * width) - plain_load(t, values + (i - 1) * width);
        int64_t s = t == KERNEL_64 ? (int64_t)d : (int32_t)(uint32_t)d;
        uint64_t u = s < 0 ? ~((uint64_t)s * 2) : (uint64_t)s * 2;
        for (; u > 127; u /= 128)
            *out++ = (uint8_t)(128 + u % 128);
        *out++ = (uint8_t)u;
    }
    return out;
}

const uint8_t *plain_decode(kernel_type t, const uint8_t *in, size_t bytes, uint64_t *sum, uint8_t *out) {
    size_t width = kernel_width(t), i = 0;
    uint64_t x = *sum;
    while (i < bytes) {
        size_t start = i;
        uint64_t u = 0;
        do {
            if (i - start == 10)
                return in + start;
            u |= (uint64_t)(in[i] & 127) << 7 * (i - start);
        } while (in[i++] > 127);
        x += u & 1 ? ~(u / 2) : u / 2;
        plain_store(t, out, x);
        out += width;
    }
    *sum = width == 2 ? (uint16_t)x : width == 4 ? (uint32_t)x : x;
    return NULL;
}

size_t plain_count(const uint8_t *in, size_t bytes) {
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += in[i] < 128;
    return n;
}

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

guarded guarded_make(size_t bytes) {
    size_t page = page_bytes(), inner = (bytes / page + 1) * page;
    uint8_t *all = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + page, inner, PROT_READ | PROT_WRITE) != 0)
        abort();
    return (guarded){all + page, inner};
}

uint8_t *guarded_at(const guarded *g, size_t bytes, bool at_end) {
    if (bytes > g->bytes)
        abort();
    return at_end ? g->start + g->bytes - bytes : g->start;
}
