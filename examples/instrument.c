/* An instrument: sends simulated LINCam photons to photond for a while.
 *
 *   cc instrument.c $(pkg-config --cflags --libs photon-client) -o instrument
 *   ./instrument tcp://127.0.0.1:7777 first-light
 */
#include <photon_client.h>
#include <stdio.h>
#include <stdlib.h>

enum { MILLISECONDS = 2000, PER_MS = 500 };

/* What a camera would have seen in a millisecond: a spot, and a decay of 200 channels. */
static void expose(uint16_t *x, uint16_t *y, uint16_t *dt) {
    for (int i = 0; i < PER_MS; i++) {
        x[i] = (uint16_t)(1024 + (rand() % 1024 + rand() % 1024));
        y[i] = (uint16_t)(1024 + (rand() % 1024 + rand() % 1024));
        dt[i] = 400;
        while (rand() % 200 && dt[i] < 4095)
            dt[i]++;
    }
}

static int record(photon_client *client, const char *name, photon_client_error *err) {
    static const photon_client_attribute attributes[] = {
        {"/photons/PositionBits", "12"}, {"/photons/TacBits", "12"}, {"/photons/TacChannel", "12.3"}};
    photon_client_run_options options;
    photon_client_run *run;
    photon_client_result result;
    uint16_t x[PER_MS], y[PER_MS], dt[PER_MS];
    photon_client_run_options_init(&options);
    options.name = name;
    options.mode = PHOTON_CLIENT_COUNTER;
    options.profile =
        "lincam"; /* x, y, dt of each photon; ms: the index of the first photon of each millisecond */
    options.attributes = attributes;
    options.n_attributes = 3;
    if (photon_client_open(client, &options, &run, err) != 0)
        return -1;
    for (uint64_t ms = 0; ms < MILLISECONDS; ms++) {
        uint64_t first = ms * PER_MS, counts[2] = {PER_MS, 1};
        const void *columns[4] = {x, y, dt, &first};
        expose(x, y, dt);
        if (photon_client_send(run, columns, counts, err) != 0)
            return -1;
    }
    if (photon_client_close_run(run, PHOTON_CLIENT_FOREVER, &result, err) != 0)
        return -1;
    printf("%s: %llu photons are on the disk\n", result.name, (unsigned long long)result.datasets[0].items);
    return 0;
}

int main(int argc, char **argv) {
    photon_client_options options;
    photon_client *client;
    photon_client_error err;
    if (argc != 3) {
        fprintf(stderr, "usage: instrument ADDRESS RUN\n");
        return 2;
    }
    photon_client_options_init(&options);
    options.address = argv[1];
    options.client_name = "instrument";
    int rc = photon_client_connect(&client, &options, &err);
    if (rc == 0) {
        rc = record(client, argv[2], &err);
        photon_client_free(client);
    }
    if (rc != 0)
        fprintf(stderr, "instrument: %s\n", err.text);
    return rc == 0 ? 0 : 1;
}
