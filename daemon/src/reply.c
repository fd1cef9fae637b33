#include "reply.h"

#include <stdlib.h>

static uint8_t *reply_pack(const Photon__ServerMessage *message, size_t *ret_bytes) {
    size_t bytes = photon__server_message__get_packed_size(message);
    uint8_t *packed = malloc(bytes);
    if (!packed)
        return NULL;
    *ret_bytes = photon__server_message__pack(message, packed);
    return packed;
}

/* The array and what it points to, in one block. */
static Photon__DatasetState **reply_datasets(const pd_run *run) {
    Photon__DatasetState **list = malloc(run->n_columns * (sizeof *list + sizeof **list));
    if (!list)
        return NULL;
    Photon__DatasetState *states = (Photon__DatasetState *)(void *)(list + run->n_columns);
    for (uint32_t c = 0; c < run->n_columns; c++) {
        const pd_column *column = &run->columns[c];
        states[c] = (Photon__DatasetState)PHOTON__DATASET_STATE__INIT;
        states[c].name = (char *)(uintptr_t)column->dataset.name;
        states[c].group = (char *)(uintptr_t)column->dataset.group;
        states[c].type = (Photon__ElementType)column->dataset.type;
        states[c].items = column->items;
        states[c].role = (Photon__Role)column->dataset.role;
        list[c] = &states[c];
    }
    return list;
}

uint8_t *pd_reply_opened(const pd_run *run, uint32_t handle, size_t *ret_bytes) {
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Opened opened = PHOTON__OPENED__INIT;
    Photon__DatasetState **datasets = reply_datasets(run);
    char **groups = calloc(run->n_groups, sizeof *groups);
    uint8_t *packed = NULL;
    if (datasets && groups) {
        for (uint32_t g = 0; g < run->n_groups; g++)
            groups[g] = (char *)(uintptr_t)run->groups[g].name;
        opened.run_id = (ProtobufCBinaryData){sizeof run->id, (uint8_t *)(uintptr_t)run->id};
        opened.run = handle;
        opened.name = (char *)(uintptr_t)run->name;
        opened.next_sequence = run->received + 1;
        opened.n_datasets = run->n_columns;
        opened.datasets = datasets;
        opened.n_groups = run->n_groups;
        opened.groups = groups;
        opened.batch_bytes = run->batch_bytes;
        opened.window_bytes = PD_WINDOW_BYTES;
        opened.path = run->path;
        opened.part = run->part->number;
        message.body_case = PHOTON__SERVER_MESSAGE__BODY_OPENED;
        message.opened = &opened;
        packed = reply_pack(&message, ret_bytes);
    }
    free(datasets);
    free(groups);
    return packed;
}

/* What the client did not ask for. */
static const char *reply_remark(const pd_run *run) {
    if (run->end_reason)
        return run->end_reason;
    return run->summary.last_failed ? "the last export of the summaries failed; the events are stored" : "";
}

uint8_t *pd_reply_closed(const pd_run *run, uint32_t handle, size_t *ret_bytes) {
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Closed closed = PHOTON__CLOSED__INIT;
    Photon__DatasetState **datasets = reply_datasets(run);
    if (!datasets)
        return NULL;
    closed.run_id = (ProtobufCBinaryData){sizeof run->id, (uint8_t *)(uintptr_t)run->id};
    closed.run = handle;
    closed.last_sequence = run->received;
    closed.n_datasets = run->n_columns;
    closed.datasets = datasets;
    closed.name = (char *)(uintptr_t)run->name;
    closed.path = run->path;
    closed.parts = run->part->number + 1;
    closed.text = (char *)(uintptr_t)reply_remark(run);
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_CLOSED;
    message.closed = &closed;
    uint8_t *packed = reply_pack(&message, ret_bytes);
    free(datasets);
    return packed;
}
