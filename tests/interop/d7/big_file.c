/* big_file PATH ROWS [PAGE_BYTES]: a recording of so many photons, quickly: x, y and dt are noise of 12 bits, aat rises, a
 * millisecond begins with every fourth photon. In pages of 16 bytes there are as many pages as photons. */
#include <stdio.h>
#include <stdlib.h>

#include "d7/d7.h"

enum { PIECE = 1 << 18, PHOTONS_A_MS = 4 };

static uint16_t x[PIECE], y[PIECE], dt[PIECE];
static uint64_t aat[PIECE], ms[PIECE / PHOTONS_A_MS];

static const d7_dataset datasets[] = {{.name = "/photons/x", .type = D7_UINT16},
                                      {.name = "/photons/y", .type = D7_UINT16},
                                      {.name = "/photons/dt", .type = D7_UINT16},
                                      {.name = "/photons/aat", .type = D7_UINT64},
                                      {.name = "/photons/ms", .type = D7_UINT64}};

static uint64_t state = 1;

static uint64_t noise(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 28;
}

static void make_rows(uint64_t from, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = noise();
        x[i] = bits & 4095;
        y[i] = bits >> 12 & 4095;
        dt[i] = bits >> 24 & 4095;
        aat[i] = 40 * (from + i) + (bits & 31);
        ms[i / PHOTONS_A_MS] = from + i / PHOTONS_A_MS * PHOTONS_A_MS;
    }
}

static int write_rows(d7_writer *w, uint64_t rows, d7_error *err) {
    const void *const columns[] = {x, y, dt, aat};
    int rc = 0;
    for (uint64_t from = 0; from < rows && rc == 0; from += PIECE) {
        size_t n = rows - from < PIECE ? (size_t)(rows - from) : PIECE;
        make_rows(from, n);
        for (uint32_t i = 0; i < 4 && rc == 0; i++)
            rc = d7_writer_append(w, i, columns[i], n, err);
        if (rc == 0)
            rc = d7_writer_append(w, 4, ms, (n + PHOTONS_A_MS - 1) / PHOTONS_A_MS, err);
    }
    return rc == 0 ? d7_writer_close(w, err) : rc;
}

int main(int argc, char **argv) {
    static const d7_attribute attributes[] = {{.key = "/photons/PositionBits", .value = "12"},
                                              {.key = "/photons/TacBits", .value = "12"},
                                              {.key = "/photons/TacChannel", .value = "4"},
                                              {.key = "/photons/TimerFrequency", .value = "40000000"}};
    d7_writer_options options;
    d7_writer *w;
    d7_error err;
    if (argc != 3 && argc != 4)
        return 2;
    d7_writer_options_init(&options);
    if (argc == 4)
        options.bytes_per_page = (uint32_t)strtoul(argv[3], NULL, 10);
    options.attributes = attributes;
    options.n_attributes = sizeof attributes / sizeof *attributes;
    int rc = d7_writer_create(&w, argv[1], datasets, sizeof datasets / sizeof *datasets, &options, &err);
    if (rc == 0) {
        rc = write_rows(w, strtoull(argv[2], NULL, 10), &err);
        d7_writer_free(w);
    }
    if (rc != 0)
        fprintf(stderr, "%s\n", err.text);
    return rc != 0;
}
