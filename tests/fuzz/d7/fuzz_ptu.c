/* Any bytes as a PTU file, given in pieces whose length the first byte chooses: the header reads the same in any pieces, the
 * records decode the same one by one and in batches, and what is counted is what came out. */
#include <stdlib.h>
#include <string.h>

#include "ptu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good) {
    if (!good)
        abort();
}

typedef struct memory {
    const uint8_t *data;
    size_t bytes, piece;
} memory;

static int64_t read_memory(void *ctx, void *buffer, size_t bytes) {
    memory *m = ctx;
    size_t n = bytes < m->bytes ? bytes : m->bytes;
    n = n < m->piece ? n : m->piece;
    if (n)
        memcpy(buffer, m->data, n);
    m->data += n;
    m->bytes -= n;
    return (int64_t)n;
}

static int count_tag(void *ctx, const char *key, const char *value) {
    size_t *sum = ctx;
    require(key[0] != 0);
    *sum = *sum * 31 + strlen(key) + strlen(value);
    return 0;
}

static ptu_events events_new(void) {
    return (ptu_events){.time = malloc(PTU_BATCH_RECORDS * sizeof(uint64_t)),
                        .dt = malloc(PTU_BATCH_RECORDS * sizeof(uint16_t)),
                        .channel = malloc(PTU_BATCH_RECORDS),
                        .marker_time = malloc(PTU_BATCH_RECORDS * sizeof(uint64_t)),
                        .marker_photon = malloc(PTU_BATCH_RECORDS * sizeof(uint64_t)),
                        .marker_bits = malloc(PTU_BATCH_RECORDS * sizeof(uint16_t))};
}

static void events_free(ptu_events *e) {
    free(e->time);
    free(e->dt);
    free(e->channel);
    free(e->marker_time);
    free(e->marker_photon);
    free(e->marker_bits);
}

static void decode(const ptu_header *header, const uint8_t *records, size_t n) {
    ptu_decoder whole = {.format = header->format, .max_time = UINT64_C(1) << 60}, single = whole;
    ptu_events all = events_new(), one = events_new();
    size_t decoded = ptu_decode(&whole, records, n, &all), photon = 0, marker = 0;
    for (size_t i = 0; i < decoded; i++) {
        require(ptu_decode(&single, records + 4 * i, 1, &one) == 1 && one.n + one.n_markers <= 1);
        if (one.n)
            require(one.time[0] == all.time[photon] && one.dt[0] == all.dt[photon] &&
                    one.channel[0] == all.channel[photon]);
        if (one.n_markers)
            require(one.marker_time[0] == all.marker_time[marker] && one.marker_bits[0] != 0 &&
                    one.marker_photon[0] == photon);
        photon += one.n;
        marker += one.n_markers;
    }
    require(photon == all.n && marker == all.n_markers && memcmp(&whole, &single, sizeof whole) == 0);
    require(whole.photons + whole.markers + whole.overflows + whole.unknown == decoded);
    require(whole.overflow <= whole.max_time);
    events_free(&all);
    events_free(&one);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ptu_header headers[2];
    ptu_fault faults[2];
    size_t sums[2] = {0, 0};
    int rc[2];
    if (size == 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        memory m = {data + 1, size - 1, i ? (size_t)data[0] + 1 : SIZE_MAX};
        ptu_input in = {.ctx = &m, .read = read_memory};
        rc[i] = ptu_read_header(&in, count_tag, &sums[i], &headers[i], &faults[i]);
        require(rc[i] == 0 || (rc[i] == -1 && faults[i].text[0] != 0 && faults[i].offset <= size));
    }
    require(rc[0] == rc[1] && sums[0] == sums[1]);
    if (rc[0] != 0)
        return 0;
    require(headers[0].records_offset == headers[1].records_offset && headers[0].records_offset < size);
    size_t n = (size - 1 - (size_t)headers[0].records_offset) / 4;
    decode(&headers[0], data + 1 + headers[0].records_offset, n < PTU_BATCH_RECORDS ? n : PTU_BATCH_RECORDS);
    return 0;
}
