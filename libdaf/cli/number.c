/* Numbers that people and files spell. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "input.h"

static int parse_bool(void *to, const char *text) {
    bool yes = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (!yes && strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return -1;
    memcpy(to, &(uint8_t){yes}, 1);
    return 0;
}

static int parse_float(void *to, daf_type type, const char *text) {
    char *end;
    errno = 0;
    if (type == DAF_FLOAT32) {
        float f = strtof(text, &end);
        if (*end || (errno == ERANGE && isinf(f)))
            return -1;
        memcpy(to, &f, sizeof f);
        return 0;
    }
    double d = strtod(text, &end);
    if (*end || (errno == ERANGE && isinf(d)))
        return -1;
    memcpy(to, &d, sizeof d);
    return 0;
}

static void store_low_bytes(void *to, size_t n, uint64_t word) {
    uint8_t u8 = (uint8_t)word;
    uint16_t u16 = (uint16_t)word;
    uint32_t u32 = (uint32_t)word;
    memcpy(to, n == 1 ? (void *)&u8 : n == 2 ? (void *)&u16 : n == 4 ? (void *)&u32 : (void *)&word, n);
}

static int parse_integer(void *to, daf_type type, const char *text) {
    char *end;
    size_t n = daf_type_bytes(type);
    unsigned spare = 64 - 8 * (unsigned)n;
    errno = 0;
    if (type_letter(type) == 'i') {
        int64_t v = strtoll(text, &end, 10);
        if (*end || errno || v > INT64_MAX >> spare || v < INT64_MIN >> spare)
            return -1;
        store_low_bytes(to, n, (uint64_t)v);
        return 0;
    }
    uint64_t v = strtoull(text, &end, 10);
    if (*end || errno || strchr(text, '-') || v > UINT64_MAX >> spare)
        return -1;
    store_low_bytes(to, n, v);
    return 0;
}

int parse_number(void *to, daf_type type, const char *text) {
    if (!*text || strchr(" \t\r\n", *text))
        return -1;
    if (type == DAF_BOOL)
        return parse_bool(to, text);
    if (type_letter(type) == 'f')
        return parse_float(to, type, text);
    return parse_integer(to, type, text);
}
