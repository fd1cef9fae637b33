/* The checks of kernels_checks.h as a program of its own, for processors that the build does not run on.
 *
 *   kernels_main MAX_ITEMS
 *
 * Prints the variants that were checked. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels_checks.h"

int main(int argc, char **argv) {
    const d7__kernels *k;
    if (argc != 2)
        return 2;
    size_t max_items = (size_t)atoi(argv[1]);
    for (const kernel_check *c = kernel_checks; c->name; c++)
        for (int t = 0; t < KERNEL_N_TYPES; t++)
            c->run((kernel_type)t, max_items < KERNEL_MAX_ITEMS ? max_items : KERNEL_MAX_ITEMS);
    for (size_t i = 0; (k = kernel_next_usable(&i));)
        puts(k->name);
    return 0;
}
