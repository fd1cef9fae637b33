#include <string.h>

#include "internal.h"

/* What is kept of a batch, followed by counts and places, one of each for every group. */
typedef struct again_place {
    uint64_t lost_before;
    int64_t first_time;
    int64_t last_time;
    uint32_t crc32c;
    bool times_valid;
} again_place;

static size_t again_list_bytes(const photon_client_run *run) {
    return run->n_groups * sizeof(uint64_t);
}

size_t client__again_bytes(const photon_client_run *run) {
    return sizeof(again_place) + 2 * again_list_bytes(run);
}

void client__again_put(const photon_client_run *run, uint8_t *to) {
    const wire_batch *b = &run->room->batch;
    again_place place;
    memset(&place, 0, sizeof place);
    place.lost_before = b->lost_before;
    place.first_time = b->first_time;
    place.last_time = b->last_time;
    place.crc32c = b->crc32c;
    place.times_valid = b->times_valid;
    memcpy(to, &place, sizeof place);
    to += sizeof place;
    memcpy(to, b->counts, again_list_bytes(run));
    to += again_list_bytes(run);
    for (size_t g = 0; g < run->n_groups; g++) {
        uint64_t first = run->items_sent[g] + run->done[g];
        memcpy(to + g * sizeof first, &first, sizeof first);
    }
}

static size_t again_fail(photon_client_run *run, uint64_t sequence, const char *what) {
    photon_client_error err;
    client__error(&err, PHOTON_CLIENT_ERR_INCOMPLETE, "message %llu has to be sent, but its source %s",
                  (unsigned long long)sequence, what);
    client__run_fail(run, &err);
    return 0;
}

size_t client__again_get(photon_client_run *run, uint64_t sequence, const uint8_t *from) {
    wire_batch *b = &run->again->batch;
    again_place place;
    uint64_t first[WIRE_MAX_GROUPS];
    const void *columns[WIRE_MAX_COLUMNS];
    memcpy(&place, from, sizeof place);
    from += sizeof place;
    memcpy(b->counts, from, again_list_bytes(run));
    memcpy(first, from + again_list_bytes(run), again_list_bytes(run));
    b->run = run->handle;
    b->sequence = sequence;
    b->crc32c = place.crc32c;
    b->lost_before = place.lost_before;
    b->first_time = place.first_time;
    b->last_time = place.last_time;
    b->times_valid = place.times_valid;
    b->n_counts = (uint32_t)run->n_groups;
    b->n_columns = (uint32_t)run->n_datasets;
    memset(columns, 0, run->n_datasets * sizeof *columns);
    if (run->read_again(run->read_context, first, b->counts, columns) != 0)
        return again_fail(run, sequence, "cannot be read again");
    for (size_t i = 0; i < run->n_datasets; i++) {
        uint64_t n = b->counts[run->datasets[i].group_index];
        b->columns[i] = (wire_column){columns[i], (size_t)n * run->datasets[i].item_bytes};
        if (n && !columns[i])
            return again_fail(run, sequence, "cannot be read again");
    }
    if (wire_batch_crc32c(b) != place.crc32c)
        return again_fail(run, sequence, "has others now than it had at first");
    size_t n_pieces = 0;
    wire_batch_frame(b, run->again->head, run->again->pieces, &n_pieces);
    return n_pieces;
}
