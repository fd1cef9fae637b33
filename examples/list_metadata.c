/* Lists what a .photons file holds: its state, datasets, attributes and problems.
 *
 *   cc list_metadata.c $(pkg-config --cflags --libs d7) -o list_metadata
 *   ./list_metadata demo.photons
 */
#include <d7/d7.h>
#include <inttypes.h>
#include <stdio.h>

static void list_datasets(const d7_reader *r) {
    for (uint32_t i = 0; i < d7_reader_n_datasets(r); i++) {
        d7_dataset_info d;
        if (d7_reader_dataset(r, i, &d) == 0)
            printf("%-16s %-7s %12" PRIu64 " items in %" PRIu64 " pages\n", d.name, d7_type_name(d.type),
                   d.items, d.pages);
    }
}

static void list_attributes(const d7_reader *r) {
    for (size_t i = 0; i < d7_reader_n_attributes(r); i++) {
        d7_attribute a;
        if (d7_reader_attribute(r, i, &a) == 0)
            printf("%s = %s\n", a.key, a.value);
    }
}

static void list_problems(const d7_reader *r) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(r, i, &p) == 0; i++)
        printf("%s: %s\n", d7_problem_name(p.code), p.text);
}

int main(int argc, char **argv) {
    d7_reader *r;
    d7_error err;
    if (argc != 2) {
        fprintf(stderr, "usage: list_metadata FILE\n");
        return 2;
    }
    if (d7_reader_open(&r, argv[1], NULL, &err) != 0) {
        fprintf(stderr, "list_metadata: %s\n", err.text);
        return 2;
    }
    printf("%s: %s\n", argv[1], d7_reader_state(r) == D7_STATE_CLOSED ? "closed" : "open");
    list_datasets(r);
    list_attributes(r);
    list_problems(r);
    int code = d7_reader_n_damages(r) > 0;
    d7_reader_free(r);
    return code;
}
