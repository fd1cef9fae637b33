#include "cli/npy.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"

int cli_npy_header(FILE *out, char kind, size_t item_bytes, const uint64_t *shape, size_t rank,
                   bool fortran) {
    char dims[64];
    if (rank == 1)
        snprintf(dims, sizeof dims, "(%" PRIu64 ",)", shape[0]);
    else
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
