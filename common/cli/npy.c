#include "cli/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

int cli_npy_header(FILE *out, char kind, size_t item_bytes, const uint64_t *shape, size_t rank,
                   bool fortran) {
    char dims[64] = "()";
    if (rank == 1)
        snprintf(dims, sizeof dims, "(%" PRIu64 ",)", shape[0]);
    else if (rank == 2)
        snprintf(dims, sizeof dims, "(%" PRIu64 ", %" PRIu64 ")", shape[0], shape[1]);

    char text[256];
    int n = snprintf(text, sizeof text, "{'descr': '%c%c%zu', 'fortran_order': %s, 'shape': %s, }",
                     item_bytes == 1 ? '|' : '<', kind, item_bytes, fortran ? "True" : "False", dims);
    size_t length = (size_t)n;
    size_t padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    memset(text + length, ' ', padded - length - 1);
    text[padded - 1] = '\n';

    uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    bytes_store16(head + 8, (uint16_t)padded);
    if (fwrite(head, 1, sizeof head, out) != sizeof head || fwrite(text, 1, padded, out) != padded)
        return -1;
    return 0;
}

enum { MAX_HEADER_BYTES = 4096 };

/* The text behind `'key':` in the dictionary, NULL when it has no such key. */
static const char *find_value(const char *text, const char *key) {
    char quoted[24];
    snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *p = strstr(text, quoted);
    if (!p)
        return NULL;
    p += strlen(quoted);
    return p + strspn(p, " ");
}

static bool parse_descr(cli_npy_array *a, const char *p) {
    if (!p || *p++ != '\'' || !strchr("<>|=", *p) || !*p)
        return false;
    a->big_endian = *p++ == '>';
    a->kind = *p++;
    if (!a->kind || !strchr("iufb", a->kind) || !strchr("1248", *p) || !*p || p[1] != '\'')
        return false;
    a->item_bytes = (size_t)(*p - '0');
    return (a->kind != 'f' || a->item_bytes >= 4) && (a->kind != 'b' || a->item_bytes == 1);
}

static bool parse_shape(cli_npy_array *a, const char *p) {
    if (!p || *p++ != '(')
        return false;
    for (a->rank = 0; *p != ')'; a->rank++) {
        char *end;
        if (a->rank == 2 || *p < '0' || *p > '9')
            return false;
        errno = 0;
        a->shape[a->rank] = strtoull(p, &end, 10);
        if (errno)
            return false;
        p = end + strspn(end, " ,");
    }
    return true;
}

int cli_npy_parse(cli_npy_array *ret, const uint8_t *data, size_t bytes) {
    static const uint8_t magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    char text[MAX_HEADER_BYTES + 1];
    cli_npy_array a = {.rank = 0};
    if (bytes < 12 || memcmp(data, magic, sizeof magic) != 0 || data[6] < 1 || data[6] > 3)
        return -1;
    size_t start = data[6] == 1 ? 10 : 12;
    size_t length = data[6] == 1 ? bytes_load16(data + 8) : bytes_load32(data + 8);
    if (length > MAX_HEADER_BYTES || length > bytes - start)
        return -1;
    memcpy(text, data + start, length);
    text[length] = 0;
    const char *order = find_value(text, "fortran_order");
    if (!order || !parse_descr(&a, find_value(text, "descr")) || !parse_shape(&a, find_value(text, "shape")))
        return -1;
    a.fortran = strncmp(order, "True", 4) == 0;
    a.data_offset = start + length;
    *ret = a;
    return 0;
}
