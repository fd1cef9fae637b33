#include "recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "framing.h"
#include "index.h"
#include "messages.h"

enum { PLAIN_SLOT_BYTES = 2 * D7_TAIL_ALIGN_BYTES };

bool recorder_plain;

const uint8_t run_file_id[D7_TAIL_FILE_ID_BYTES] = "a run's own id.";
const d7_type run_types[RECORDER_DATASETS] = {D7_UINT16, D7_UINT64};

static const d7_tail_layout layout = {.bytes_per_page = RECORDER_PAGE_BYTES,
                                      .types = run_types,
                                      .n_datasets = RECORDER_DATASETS,
                                      .attribute_bytes = 128};

uint32_t run_batch_items(uint32_t count, unsigned dataset) {
    return dataset == 0 ? count : count / 7;
}

uint64_t run_value(uint64_t batch, uint64_t i, unsigned dataset) {
    uint64_t v = batch * 2654435761u + i * (dataset + 1);
    return dataset == 0 ? v & 0xFFFF : v;
}

void run_wrong(run *r, const char *what) {
    if (!r->wrong)
        r->wrong = what;
}

/* ---- writing ---- */

/* Appends to the file, in one or two writes. */
static int put_raw(recorder *r, const uint8_t *data, size_t bytes) {
    const d7_io *io = r->io;
    size_t first = disk_chance(r->run->disk, 200) ? (size_t)disk_random(r->run->disk, bytes + 1) : bytes;
    for (size_t done = 0; done < bytes;) {
        size_t n = done < first ? first - done : bytes - done;
        int64_t written = io->pwrite(io->ctx, r->file, data + done, n, r->length);
        if (written == -ENOSPC)
            continue; /* a pause */
        if (written < 0)
            return (int)written;
        done += (size_t)written;
        r->length += (uint64_t)written;
    }
    return 0;
}

static int put_entry(recorder *r, const uint8_t *entry, size_t bytes) {
    uint8_t framed[2 * RECORDER_PAGE_BYTES + 512];
    if (d7__frame_bound(bytes) > sizeof framed)
        return -EFBIG;
    return put_raw(r, framed, d7__frame(r->length, entry, bytes, framed));
}

static void store_value(uint8_t *to, size_t size, uint64_t value) {
    uint16_t narrow = (uint16_t)value;
    memcpy(to, size == 2 ? (const void *)&narrow : (const void *)&value, size);
}

static int put_page(recorder *r, unsigned dataset) {
    uint8_t entry[2 * RECORDER_PAGE_BYTES + 128];
    size_t bytes;
    if (d7_page_encode(dataset, run_types[dataset], r->partial[dataset], r->n_partial[dataset], entry,
                       sizeof entry, &bytes) != 0)
        return -EINVAL;
    r->n_partial[dataset] = 0;
    return put_entry(r, entry, bytes);
}

/* Values of a batch, as many as the page has room for. */
static uint32_t fill_page(recorder *r, unsigned dataset, uint32_t from, uint32_t n) {
    size_t size = d7_type_size(run_types[dataset]);
    uint32_t room = (uint32_t)(RECORDER_PAGE_BYTES / size) - r->n_partial[dataset];
    uint32_t take = n - from < room ? n - from : room;
    uint8_t *at = r->partial[dataset] + r->n_partial[dataset] * size;
    for (uint32_t i = 0; i < take; i++, at += size)
        store_value(at, size, run_value(r->batch, from + i, dataset));
    r->n_partial[dataset] += take;
    r->items[dataset] += take;
    return take;
}

int recorder_append(recorder *r, uint32_t count) {
    r->run->counts[++r->batch] = count;
    int rc = 0;
    for (unsigned d = 0; d < RECORDER_DATASETS; d++)
        for (uint32_t i = 0, n = run_batch_items(count, d); i < n && rc == 0;) {
            i += fill_page(r, d, i, n);
            if (r->n_partial[d] == d7_items_per_page(run_types[d], RECORDER_PAGE_BYTES))
                rc = put_page(r, d);
        }
    return rc;
}

/* ---- slots ---- */

/* What the recorder is now, for a slot. */
typedef struct recorder_mark {
    d7_tail_mark mark;
    d7_tail_dataset datasets[RECORDER_DATASETS];
    d7_attribute attribute;
    char text[24];
} recorder_mark;

static void fill_mark(const recorder *r, recorder_mark *m) {
    *m = (recorder_mark){0};
    for (unsigned d = 0; d < RECORDER_DATASETS; d++)
        m->datasets[d] = (d7_tail_dataset){.type = run_types[d],
                                           .items = r->items[d],
                                           .n_partial = r->n_partial[d],
                                           .partial = r->partial[d]};
    snprintf(m->text, sizeof m->text, "%" PRIu64, r->batch);
    m->attribute = (d7_attribute){.key = "last", .value = m->text};
    m->mark = (d7_tail_mark){.sequence = r->batch,
                             .producer = "producer",
                             .epoch = 7,
                             .datasets = m->datasets,
                             .n_datasets = RECORDER_DATASETS,
                             .attributes = &m->attribute,
                             .n_attributes = 1};
}

/* Two slots in turns. */
static int plain_mark(recorder *r, const d7_tail_mark *mark) {
    const d7_io *io = disk_io(r->run->disk);
    uint8_t slot[PLAIN_SLOT_BYTES];
    d7_tail_identity identity = {0};
    d7_tail_claim claim = {.generation = ++r->plain_generation, .length = r->length, .base = r->length};
    size_t bytes;
    int rc = d7_tail_slot_encode(&layout, &identity, &claim, mark, slot, sizeof slot, &bytes, NULL);
    if (rc != 0)
        return rc;
    int64_t n = io->pwrite(io->ctx, r->plain_tail, slot, bytes, r->plain_generation % 2 * PLAIN_SLOT_BYTES);
    return n == (int64_t)bytes ? 0 : n == -ENOSPC ? D7_ERR_NOSPACE : D7_ERR_IO;
}

int recorder_mark_slot(recorder *r) {
    recorder_mark m;
    fill_mark(r, &m);
    return r->tail ? d7_tail_mark_slot(r->tail, r->length, &m.mark, NULL) : plain_mark(r, &m.mark);
}

int recorder_begin_sync(recorder *r) {
    recorder_mark m;
    fill_mark(r, &m);
    return r->tail ? d7_tail_begin_sync(r->tail, r->length, &m.mark, NULL) : plain_mark(r, &m.mark);
}

int recorder_finish_sync(recorder *r, uint64_t batch, bool synced) {
    int rc = synced ? 0 : D7_ERR_IO;
    if (r->tail)
        rc = d7_tail_finish_sync(r->tail, synced, NULL);
    if (rc == 0)
        r->run->acknowledged = r->tail ? d7_tail_durable_sequence(r->tail) : batch;
    return rc;
}

/* ---- beginning and end ---- */

static int put_header(recorder *r) {
    static const d7_dataset datasets[RECORDER_DATASETS] = {{"/x", D7_UINT16}, {"/time", D7_UINT64}};
    d7_alloc alloc = d7__alloc_or_default(NULL);
    uint8_t *entry;
    size_t bytes;
    if (d7__header_pack(&alloc, datasets, RECORDER_DATASETS, 512, RECORDER_PAGE_BYTES, &entry, &bytes) != 0)
        return -ENOMEM;
    int rc = put_entry(r, entry, bytes);
    d7__release(&alloc, entry);
    return rc;
}

static int sync_path(recorder *r, void *file) {
    const d7_io *io = disk_io(r->run->disk);
    return io->sync_data(io->ctx, file);
}

/* The first slot, synced. */
static int begin_part(recorder *r) {
    const d7_io *io = disk_io(r->run->disk);
    int rc = recorder_begin_sync(r);
    if (rc == 0)
        rc = sync_path(r, r->file);
    if (rc == 0)
        rc = r->tail ? d7_tail_sync_data(r->tail, NULL) : sync_path(r, r->plain_tail);
    if (rc == 0)
        rc = recorder_finish_sync(r, r->batch, true);
    return rc == 0 ? io->sync_directory(io->ctx, "") : rc;
}

static int create_tail(recorder *r, const struct run_part *part) {
    const d7_io *io = disk_io(r->run->disk);
    d7_tail_options options;
    d7_tail_options_init(&options);
    options.io = io;
    r->io = io;
    if (recorder_plain)
        return io->open(io->ctx, part->tail_path, D7_IO_WRITE | D7_IO_CREATE, 0, &r->plain_tail);
    int rc = d7_tail_create(&r->tail, part->tail_path, &layout, run_file_id, r->run->n_parts - 1,
                            part->first_sequence, &options, NULL);
    if (rc == 0)
        r->io = d7_tail_io(r->tail);
    return rc;
}

void recorder_create(recorder *r, run *owner, uint64_t first_sequence) {
    unsigned n = owner->n_parts++;
    struct run_part *part = &owner->parts[n];
    *part = (struct run_part){.first_sequence = first_sequence};
    snprintf(part->path, sizeof part->path, "run.%04u.photons", n);
    snprintf(part->tail_path, sizeof part->tail_path, "run.%04u.photons" D7_TAIL_SUFFIX, n);
    *r = (recorder){.run = owner, .batch = first_sequence};
    int rc = create_tail(r, part);
    if (rc == 0)
        rc = r->io->open(r->io->ctx, part->path, D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE, 0, &r->file);
    if (rc == 0)
        rc = put_header(r);
    if (rc == 0)
        rc = begin_part(r);
    if (rc != 0)
        run_wrong(owner, "a part cannot be made");
}

/* Opens the file where a slot says that it ends. */
static void resume(recorder *r, const char *path, const d7_tail_slot *slot) {
    r->length = slot->claim.length;
    r->batch = slot->sequence;
    int rc = r->io->open(r->io->ctx, path, D7_IO_WRITE, 0, &r->file);
    for (unsigned i = 0; i < RECORDER_DATASETS && rc == 0; i++) {
        d7_tail_dataset d = {0};
        rc = d7_tail_slot_dataset(slot, i, &d);
        if (rc == 0)
            rc = d7_tail_slot_values(slot, i, 0, d.n_partial, r->partial[i]);
        r->items[i] = d.items;
        r->n_partial[i] = d.n_partial;
    }
    if (rc != 0)
        run_wrong(r->run, "a recovered part cannot be gone on with");
}

void recorder_resume(recorder *r, run *owner, unsigned part, d7_tail *tail) {
    *r = (recorder){.run = owner, .tail = tail, .io = d7_tail_io(tail)};
    resume(r, owner->parts[part].path, d7_tail_recovered(tail));
}

/* The newer slot that is whole and lies within the file. */
static bool plain_choose(const recorder *r, const uint8_t *tail, size_t bytes, uint64_t size,
                         d7_tail_slot *ret_slot) {
    bool found = false;
    for (unsigned i = 0; i < 2 && (i + 1) * PLAIN_SLOT_BYTES <= bytes; i++) {
        d7_tail_slot s;
        if (d7_tail_slot_decode(tail + i * PLAIN_SLOT_BYTES, PLAIN_SLOT_BYTES, &s, NULL) != 0 ||
            s.claim.length > size || s.claim.generation < r->plain_generation)
            continue;
        if (!found || s.claim.generation > ret_slot->claim.generation)
            *ret_slot = s;
        found = true;
    }
    return found;
}

int recorder_plain_recover(recorder *r, run *owner, unsigned part) {
    const struct run_part *p = &owner->parts[part];
    const d7_io *io = disk_io(owner->disk);
    size_t bytes = 0, size = 0;
    d7_tail_slot slot;
    *r = (recorder){.run = owner, .io = io};
    const uint8_t *tail = disk_content(owner->disk, p->tail_path, &bytes);
    disk_content(owner->disk, p->path, &size);
    if (!tail || !plain_choose(r, tail, bytes, size, &slot))
        return D7_ERR_CORRUPT;
    if (slot.sequence < owner->acknowledged)
        run_wrong(owner, "acknowledged batches lost");
    resume(r, p->path, &slot);
    r->plain_generation = slot.claim.generation;
    int rc = io->truncate(io->ctx, r->file, r->length);
    run_check_part(owner, part, slot.sequence, &slot);
    if (rc == 0)
        rc = io->open(io->ctx, p->tail_path, D7_IO_WRITE, 0, &r->plain_tail);
    return rc == 0 ? begin_part(r) : rc;
}

void recorder_free(recorder *r) {
    if (r->file)
        r->io->close(r->io->ctx, r->file);
    if (r->plain_tail)
        r->io->close(r->io->ctx, r->plain_tail);
    d7_tail_free(r->tail);
    *r = (recorder){0};
}

static int put_end(recorder *r, uint64_t index_offset) {
    static const uint8_t zeros[D7_BLOCK_BYTES];
    uint8_t entry[D7__EPILOGUE_MAX];
    size_t bytes = d7__epilogue_pack(index_offset, entry), used = (size_t)(r->length % D7_BLOCK_BYTES);
    int rc = used ? put_raw(r, zeros, D7_BLOCK_BYTES - used) : 0;
    return rc == 0 ? put_entry(r, entry, bytes) : rc;
}

static int put_index(recorder *r, uint64_t *ret_offset) {
    uint8_t entry[64];
    const d7__index_content empty = {0};
    d7__index_part part = {0};
    d7__index_next_part(&empty, &part);
    *ret_offset = d7__frame_begin(r->length);
    return put_entry(r, entry, d7__index_pack(&empty, &part, entry));
}

int recorder_close(recorder *r) {
    const d7_io *io = disk_io(r->run->disk);
    struct run_part *part = &r->run->parts[r->run->n_parts - 1];
    uint64_t index_offset = 0;
    int rc = 0;
    for (unsigned d = 0; d < RECORDER_DATASETS && rc == 0; d++)
        rc = r->n_partial[d] ? put_page(r, d) : 0;
    if (rc == 0)
        rc = put_index(r, &index_offset);
    if (rc == 0)
        rc = io->sync_data(io->ctx, r->file);
    if (rc == 0)
        rc = put_end(r, index_offset);
    r->ended = rc == 0;
    if (rc == 0)
        rc = io->sync_data(io->ctx, r->file);
    if (rc == 0)
        rc = io->remove(io->ctx, part->tail_path);
    return rc == 0 ? io->sync_directory(io->ctx, part->path) : rc;
}

/* ---- checking ---- */

/* Where in the run's values a dataset's check is. */
typedef struct expected {
    uint64_t batch;
    uint32_t i; /* in the batch */
    unsigned dataset;
} expected;

/* How many values of the present batch are left, going on to the next one that has any; 0 after `last`. */
static uint32_t expected_left(const run *r, expected *e, uint64_t last) {
    for (; e->batch <= last; e->batch++, e->i = 0)
        if (e->i < run_batch_items(r->counts[e->batch], e->dataset))
            return run_batch_items(r->counts[e->batch], e->dataset) - e->i;
    return 0;
}

static bool matches(const run *r, expected *e, uint64_t last, const void *values, size_t n) {
    size_t size = d7_type_size(run_types[e->dataset]);
    const uint8_t *at = values;
    while (n > 0) {
        size_t left = expected_left(r, e, last), take = n < left ? n : left;
        if (take == 0)
            return false;
        for (size_t i = 0; i < take; i++, at += size) {
            uint8_t value[sizeof(uint64_t)];
            store_value(value, size, run_value(e->batch, e->i++, e->dataset));
            if (memcmp(value, at, size) != 0)
                return false;
        }
        n -= take;
    }
    return true;
}

static bool page_matches(const run *r, expected *e, uint64_t last, const d7__entry *entry) {
    uint64_t values[RECORDER_PAGE_BYTES / sizeof(uint64_t)];
    uint32_t id;
    size_t n;
    if (d7_page_count(D7_UINT16, entry->data, entry->bytes, &id, &n, NULL) != 0 || id >= RECORDER_DATASETS)
        return false;
    size_t cap = sizeof values / d7_type_size(run_types[id]);
    return d7_page_decode(run_types[id], entry->data, entry->bytes, values, cap, &id, &n, NULL) == 0 &&
           matches(r, &e[id], last, values, n);
}

/* All pages of a file, in order. */
static bool pages_match(const run *r, expected *e, uint64_t last, d7__framing *f) {
    d7__found found;
    d7__entry entry;
    d7__kind kind;
    d7__cursor body;
    for (uint64_t at = 0;; at = entry.next) {
        if (d7__entry_next(f, at, &found, &entry, NULL) != 0)
            return false;
        if (found == D7__FOUND_END)
            return true;
        if (found != D7__FOUND_ENTRY || !d7__entry_kind(entry.data, entry.bytes, &kind, &body) ||
            (kind == D7__KIND_DATA && !page_matches(r, e, last, &entry)))
            return false;
    }
}

static bool slot_matches(const run *r, expected *e, uint64_t last, const d7_tail_slot *slot) {
    uint64_t values[RECORDER_PAGE_BYTES / sizeof(uint64_t)];
    d7_attribute a;
    size_t cursor = 0;
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, last);
    for (unsigned i = 0; i < RECORDER_DATASETS; i++) {
        d7_tail_dataset d;
        if (d7_tail_slot_dataset(slot, i, &d) != 0 ||
            d7_tail_slot_values(slot, i, 0, d.n_partial, values) != 0 ||
            !matches(r, &e[i], last, values, d.n_partial))
            return false;
    }
    return d7_tail_slot_attribute(slot, &cursor, &a) && strcmp(a.key, "last") == 0 &&
           strcmp(a.value, text) == 0;
}

void run_check_part(run *r, unsigned part, uint64_t last, const d7_tail_slot *slot) {
    expected e[RECORDER_DATASETS];
    for (unsigned d = 0; d < RECORDER_DATASETS; d++)
        e[d] = (expected){.batch = r->parts[part].first_sequence + 1, .dataset = d};
    d7_alloc alloc = d7__alloc_or_default(NULL);
    d7__source source = {0};
    d7__framing framing = {.source = &source};
    bool good = d7__source_open(&source, r->parts[part].path, disk_io(r->disk), &alloc, NULL) == 0 &&
                d7__source_measure(&source, NULL) == 0 && pages_match(r, e, last, &framing) &&
                (!slot || slot_matches(r, e, last, slot));
    for (unsigned d = 0; d < RECORDER_DATASETS && good; d++)
        good = expected_left(r, &e[d], last) == 0;
    d7__framing_free(&framing);
    d7__source_close(&source);
    if (!good)
        run_wrong(r, "wrong values");
}
