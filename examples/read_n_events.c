/* Prints the first photons of a .photons file: position and micro time, one photon a line.
 *
 *   cc read_n_events.c $(pkg-config --cflags --libs d7) -o read_n_events
 *   ./read_n_events demo.photons 10
 */
#include <d7/d7.h>
#include <stdio.h>
#include <stdlib.h>

enum { N_COLUMNS = 3, PIECE = 4096 };

static const char *const names[N_COLUMNS] = {"/photons/x", "/photons/y", "/photons/dt"};

/* Finds the columns; *n becomes the number of photons that all of them hold, if that is less. */
static int find_columns(const d7_reader *r, uint32_t ids[N_COLUMNS], uint64_t *n) {
    for (int c = 0; c < N_COLUMNS; c++) {
        d7_dataset_info info;
        if (d7_reader_find_dataset(r, names[c], &ids[c]) != 0 || d7_reader_dataset(r, ids[c], &info) != 0 ||
            info.type != D7_UINT16) {
            fprintf(stderr, "read_n_events: the file has no %s of type uint16\n", names[c]);
            return -1;
        }
        if (info.items < *n)
            *n = info.items;
    }
    return 0;
}

static int print_photons(d7_reader *r, const uint32_t ids[N_COLUMNS], uint64_t n, d7_error *err) {
    static uint16_t values[N_COLUMNS][PIECE];
    for (uint64_t at = 0; at < n; at += PIECE) {
        size_t count = n - at < PIECE ? (size_t)(n - at) : PIECE;
        for (int c = 0; c < N_COLUMNS; c++) {
            int rc = d7_reader_read(r, ids[c], at, count, values[c], err);
            if (rc != 0)
                return rc;
        }
        for (size_t i = 0; i < count; i++)
            printf("%u %u %u\n", values[0][i], values[1][i], values[2][i]);
    }
    return 0;
}

int main(int argc, char **argv) {
    uint32_t ids[N_COLUMNS];
    d7_reader *r;
    d7_error err;
    if (argc != 3) {
        fprintf(stderr, "usage: read_n_events FILE N\n");
        return 2;
    }
    uint64_t n = strtoull(argv[2], NULL, 10);
    if (d7_reader_open(&r, argv[1], NULL, &err) != 0) {
        fprintf(stderr, "read_n_events: %s\n", err.text);
        return 2;
    }
    int code = find_columns(r, ids, &n) == 0 ? 0 : 2;
    if (code == 0 && print_photons(r, ids, n, &err) != 0) {
        fprintf(stderr, "read_n_events: %s\n", err.text);
        code = 1;
    }
    d7_reader_free(r);
    return code;
}
