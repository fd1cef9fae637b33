/* Any bytes as a file: opened in each way, every page read, checked and verified. Nothing may crash or leak,
 * and what two ways of reading give must agree. */
#include "read_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_all(data, size);
    return 0;
}
