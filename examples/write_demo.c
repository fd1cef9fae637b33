/* Writes a small .photons file: an image of rings and a decay, a thousand photons a millisecond.
 *
 *   cc write_demo.c $(pkg-config --cflags --libs d7) -o write_demo
 *   ./write_demo demo.photons
 */
#include <d7/d7.h>
#include <stdio.h>

enum { N_PHOTONS = 100000, PER_MS = 1000, X = 0, Y = 1, DT = 2, MS = 3 };

static const d7_dataset datasets[] = {{"/photons/x", D7_UINT16},
                                      {"/photons/y", D7_UINT16},
                                      {"/photons/dt", D7_UINT16},
                                      {"/photons/ms", D7_UINT64}};

static const d7_attribute attributes[] = {{.key = "/photons/PositionBits", .value = "12"},
                                          {.key = "/photons/TacBits", .value = "12"},
                                          {.key = "/photons/TacChannel", .value = "12.3"},
                                          {.key = "Comment", .value = "made by write_demo"}};

static unsigned random_bits(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* A position between 0 and 4095 that lies on one of four rings. */
static void make_position(unsigned *state, uint16_t *x, uint16_t *y) {
    int dx, dy;
    unsigned distance;
    do {
        *x = (uint16_t)(random_bits(state) & 0xFFF);
        *y = (uint16_t)(random_bits(state) & 0xFFF);
        dx = *x - 2048;
        dy = *y - 2048;
        distance = (unsigned)(dx * dx + dy * dy) >> 14;
    } while (distance > 250 || distance % 64 > 24);
}

/* A micro time: channel 400, and then each further 64 channels with a chance of three in four. */
static uint16_t make_dt(unsigned *state) {
    unsigned dt = 400;
    while (random_bits(state) % 4 && dt < 4000)
        dt += 64;
    return (uint16_t)(dt + random_bits(state) % 64);
}

static int write_photons(d7_writer *w, d7_error *err) {
    unsigned state = 1;
    int rc = 0;
    for (uint64_t done = 0; done < N_PHOTONS && rc == 0; done += PER_MS) {
        uint16_t x[PER_MS], y[PER_MS], dt[PER_MS];
        for (int i = 0; i < PER_MS; i++) {
            make_position(&state, &x[i], &y[i]);
            dt[i] = make_dt(&state);
        }
        rc = d7_writer_append(w, MS, &done, 1, err); /* the index of the first photon of every millisecond */
        if (rc == 0)
            rc = d7_writer_append(w, X, x, PER_MS, err);
        if (rc == 0)
            rc = d7_writer_append(w, Y, y, PER_MS, err);
        if (rc == 0)
            rc = d7_writer_append(w, DT, dt, PER_MS, err);
    }
    return rc;
}

int main(int argc, char **argv) {
    d7_writer_options options;
    d7_writer *w = NULL;
    d7_error err;
    if (argc != 2) {
        fprintf(stderr, "usage: write_demo FILE\n");
        return 2;
    }
    d7_writer_options_init(&options);
    options.attributes = attributes;
    options.n_attributes = sizeof attributes / sizeof *attributes;
    int rc = d7_writer_create(&w, argv[1], datasets, 4, &options, &err);
    if (rc == 0)
        rc = write_photons(w, &err);
    if (rc == 0)
        rc = d7_writer_close(w, &err);
    d7_writer_free(w);
    if (rc != 0) {
        fprintf(stderr, "write_demo: %s\n", err.text);
        return 1;
    }
    printf("%s: %d photons\n", argv[1], N_PHOTONS);
    return 0;
}
