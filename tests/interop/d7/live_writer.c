/* Records like an instrument, as lines on standard input say, each answered by "ok":
 *
 *   live_writer FILE [tail|resume]       with a tail beside it; resume: a recording that was killed
 *   append N | flush | mark | close      mark: a slot of the tail
 *
 * Photon i has x = 7919 i, y = 104729 i and dt = 31 i, of each the low 12 bits; every 50th gives a millisecond. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "d7/d7.h"

enum { N_DATASETS = 4, PHOTONS_PER_MS = 50, PAGE_BYTES = 1024 };

static const d7_dataset datasets[N_DATASETS] = {{"/photons/x", D7_UINT16},
                                                {"/photons/y", D7_UINT16},
                                                {"/photons/dt", D7_UINT16},
                                                {"/photons/ms", D7_UINT64}};

typedef struct recording {
    d7_tail *tail;
    d7_writer *writer;
    uint64_t photons;
    uint64_t sequence;
} recording;

static void check(int rc, const d7_error *err) {
    if (rc == 0)
        return;
    fprintf(stderr, "live_writer: %s\n", err->text);
    exit(1);
}

static uint16_t value(uint32_t ds, uint64_t photon) {
    static const uint64_t factors[] = {7919, 104729, 31};
    return (uint16_t)(photon * factors[ds] & 0xFFF);
}

static void append(recording *r, uint64_t n) {
    d7_error err;
    for (; n > 0; n--, r->photons++) {
        for (uint32_t ds = 0; ds < 3; ds++) {
            uint16_t v = value(ds, r->photons);
            check(d7_writer_append(r->writer, ds, &v, 1, &err), &err);
        }
        if (r->photons % PHOTONS_PER_MS == 0)
            check(d7_writer_append(r->writer, 3, &r->photons, 1, &err), &err);
    }
    r->sequence++;
}

/* Writes what waits for its page as a slot. */
static void mark(recording *r) {
    static uint16_t columns[3][PAGE_BYTES];
    static uint64_t ms[PAGE_BYTES];
    d7_tail_dataset partial[N_DATASETS];
    d7_error err;
    for (uint32_t ds = 0; ds < N_DATASETS; ds++) {
        uint64_t items = d7_writer_items(r->writer, ds), paged = d7_writer_paged_items(r->writer, ds);
        for (uint64_t i = paged; i < items; i++) {
            if (ds == 3)
                ms[i - paged] = i * PHOTONS_PER_MS;
            else
                columns[ds][i - paged] = value(ds, i);
        }
        partial[ds] = (d7_tail_dataset){.type = datasets[ds].type,
                                        .items = items,
                                        .n_partial = (uint32_t)(items - paged),
                                        .partial = ds == 3 ? (const void *)ms : columns[ds]};
    }
    d7_tail_mark m = {.sequence = r->sequence, .datasets = partial, .n_datasets = N_DATASETS};
    check(d7_writer_flush(r->writer, &err), &err);
    check(d7_tail_begin_sync(r->tail, d7_writer_framed_bytes(r->writer), &m, &err), &err);
    check(d7_writer_sync_data(r->writer, &err), &err);
    check(d7_tail_sync_data(r->tail, &err), &err);
    check(d7_tail_finish_sync(r->tail, true, &err), &err);
}

static void begin(recording *r, const char *path, bool with_tail) {
    static const d7_type types[N_DATASETS] = {D7_UINT16, D7_UINT16, D7_UINT16, D7_UINT64};
    static const uint8_t id[D7_TAIL_FILE_ID_BYTES] = "live writer";
    const d7_tail_layout layout = {
        .bytes_per_page = PAGE_BYTES, .types = types, .n_datasets = N_DATASETS, .attribute_bytes = 1024};
    d7_writer_options options;
    d7_error err;
    char tail[4096];
    d7_writer_options_init(&options);
    options.bytes_per_page = PAGE_BYTES;
    options.index_step = 4;
    snprintf(tail, sizeof tail, "%s%s", path, D7_TAIL_SUFFIX);
    if (with_tail) {
        check(d7_tail_create(&r->tail, tail, &layout, id, 0, 0, NULL, &err), &err);
        options.io = d7_tail_io(r->tail);
    }
    check(d7_writer_create(&r->writer, path, datasets, N_DATASETS, &options, &err), &err);
    if (with_tail)
        mark(r);
}

static void resume(recording *r, const char *path) {
    d7_writer_options options;
    d7_tail_recovery recovery;
    d7_error err;
    check(d7_tail_recover(&r->tail, path, NULL, &recovery, &err), &err);
    d7_writer_options_init(&options);
    options.io = d7_tail_io(r->tail);
    check(d7_writer_resume(&r->writer, path, d7_tail_recovered(r->tail), &options, &err), &err);
    r->photons = d7_writer_items(r->writer, 0);
    r->sequence = d7_tail_recovered(r->tail)->sequence;
}

static void run_line(recording *r, const char *path, const char *line) {
    d7_error err;
    char tail[4096];
    if (strncmp(line, "append ", 7) == 0)
        append(r, strtoull(line + 7, NULL, 10));
    else if (strcmp(line, "flush\n") == 0)
        check(d7_writer_flush(r->writer, &err), &err);
    else if (strcmp(line, "mark\n") == 0)
        mark(r);
    else if (strcmp(line, "close\n") == 0) {
        check(d7_writer_close(r->writer, &err), &err);
        snprintf(tail, sizeof tail, "%s%s", path, D7_TAIL_SUFFIX);
        remove(tail);
    }
    printf("ok\n");
    fflush(stdout);
}

int main(int argc, char **argv) {
    recording r = {0};
    char line[256];
    if (argc < 2)
        return 2;
    if (argc > 2 && strcmp(argv[2], "resume") == 0)
        resume(&r, argv[1]);
    else
        begin(&r, argv[1], argc > 2);
    printf("ok\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin))
        run_line(&r, argv[1], line);
    d7_writer_free(r.writer);
    d7_tail_free(r.tail);
    return 0;
}
