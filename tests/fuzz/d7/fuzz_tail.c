/* Slots of the tail, and whole tails beside a small file. The first byte chooses: even, one slot follows;
 * odd, the three slots of a tail, a third of the bytes each. Checksums are made right, since no fuzzer finds
 * them; as they come the bytes are tried too. What decodes is gone through and encodes again to the very
 * bytes; a recovery that succeeds is done again and changes nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "disk_model.h"
#include "tail_slot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLACE_MAX = 64 * 1024, DATASETS_MAX = 256 };

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

/* ---- a slot ---- */

static void *checked(void *memory) {
    REQUIRE(memory);
    return memory;
}

/* Encodes again what was decoded. */
static void encode_again(const d7_tail_slot *s, const d7_tail_dataset *datasets, const d7_type *types,
                         const d7_attribute *attributes) {
    d7_tail_layout layout = {
        .bytes_per_page = s->bytes_per_page, .types = types, .n_datasets = s->n_datasets};
    d7_tail_mark mark = {.sequence = s->sequence,
                         .producer = s->producer,
                         .epoch = s->epoch,
                         .clock = s->clock,
                         .datasets = datasets,
                         .n_datasets = s->n_datasets,
                         .attributes = attributes,
                         .n_attributes = s->n_attributes};
    size_t place, bytes;
    layout.attribute_bytes = d7__slot_attribute_room(&layout, s->slot_bytes);
    if (d7_tail_slot_bytes(&layout, &place) != 0 || place != s->slot_bytes || place > PLACE_MAX ||
        d7_tail_attribute_bytes(attributes, s->n_attributes) > layout.attribute_bytes)
        return;
    uint8_t *again = checked(malloc(place));
    REQUIRE(d7_tail_slot_encode(&layout, &s->identity, &s->claim, &mark, again, place, &bytes, NULL) == 0);
    REQUIRE(bytes == d7__slot_written_bytes(s->used_bytes) && memcmp(again, s->bytes, s->used_bytes) == 0);
    free(again);
}

static size_t take_attributes(const d7_tail_slot *s, d7_attribute *attributes) {
    size_t cursor = 0, n = 0;
    for (d7_attribute a; d7_tail_slot_attribute(s, &cursor, &a); n++) {
        REQUIRE(n < s->n_attributes && strlen(a.key) == a.key_bytes && strlen(a.value) == a.value_bytes);
        attributes[n] = a;
    }
    return n;
}

static void go_through(const d7_tail_slot *s) {
    if (s->n_datasets > DATASETS_MAX)
        return;
    static d7_tail_dataset datasets[DATASETS_MAX];
    static d7_type types[DATASETS_MAX];
    uint8_t *values = checked(malloc(s->used_bytes)), *at = values;
    d7_attribute *attributes = checked(calloc(s->n_attributes + 1, sizeof *attributes));
    for (size_t i = 0; i < s->n_datasets; i++) {
        REQUIRE(d7_tail_slot_dataset(s, i, &datasets[i]) == 0);
        types[i] = datasets[i].type;
        REQUIRE(d7_tail_slot_values(s, i, 0, datasets[i].n_partial, at) == 0);
        datasets[i].partial = at;
        at += datasets[i].n_partial * d7_type_size(types[i]);
    }
    REQUIRE(take_attributes(s, attributes) == s->n_attributes);
    encode_again(s, datasets, types, attributes);
    free(attributes);
    free(values);
}

static void try_slot(const uint8_t *data, size_t size) {
    d7_tail_slot s;
    d7_error err = {0};
    int rc = d7_tail_slot_decode(data, size, &s, &err);
    if (rc == 0)
        go_through(&s);
    else
        REQUIRE((rc == D7_ERR_CORRUPT || rc == D7_ERR_UNSUPPORTED) && err.offset <= size && err.text[0]);
}

/* Makes what a slot's checksum covers consistent. Returns how many bytes the slot uses; 0 where there are too
 * few. */
static size_t repair(uint8_t *slot, size_t size) {
    if (size < D7__SLOT_HEAD_END)
        return 0;
    memcpy(slot, "d7 tail\n", 8);
    size_t used = d7__slot_used_bytes(slot, size);
    used = used ? used : size & ~(size_t)7;
    if (used < D7__SLOT_HEAD_END + D7__SLOT_TRAILER_BYTES)
        return 0;
    bytes_store32(slot + D7__SLOT_USED_BYTES, (uint32_t)used);
    bytes_store32(slot + used - 8, bytes_load32(slot + D7__SLOT_GENERATION));
    bytes_store32(slot + used - 4, common_crc32c(0, slot, used - 4));
    return used;
}

static void fuzz_slot(const uint8_t *data, size_t size) {
    try_slot(data, size);
    uint8_t *copy = checked(malloc(size + 1));
    memcpy(copy, data, size);
    size_t used = repair(copy, size);
    if (used) {
        uint8_t *exact = checked(malloc(used));
        memcpy(exact, copy, used);
        try_slot(exact, used);
        free(exact);
    }
    free(copy);
}

/* ---- a tail ---- */

static const char path[] = "f.photons", tail_path[] = "f.photons.tail";

/* A file of 700 bytes, and the tail; slots are told its head's checksum and that of what they claim, if they
 * ask by 0. */
static disk *make_disk(const uint8_t *data, size_t size) {
    static uint8_t file[700], tail[D7_TAIL_SLOTS * D7_TAIL_ALIGN_BYTES];
    size_t each = size / D7_TAIL_SLOTS;
    disk *d = disk_new(1);
    memset(tail, 0, sizeof tail);
    for (size_t i = 0; i < D7_TAIL_SLOTS; i++) {
        uint8_t *slot = tail + i * D7_TAIL_ALIGN_BYTES;
        size_t n = each < D7_TAIL_ALIGN_BYTES ? each : D7_TAIL_ALIGN_BYTES;
        memcpy(slot, data + i * each, n);
        if (n < D7__SLOT_HEAD_END)
            continue;
        uint64_t head = bytes_load64(slot + D7__SLOT_HEAD_BYTES), base = bytes_load64(slot + D7__SLOT_BASE),
                 length = bytes_load64(slot + D7__SLOT_LENGTH);
        if (head <= sizeof file && bytes_load32(slot + D7__SLOT_HEAD_CRC) == 0)
            bytes_store32(slot + D7__SLOT_HEAD_CRC, common_crc32c(0, file, (size_t)head));
        if (base <= length && length <= sizeof file && bytes_load32(slot + D7__SLOT_CRC) == 0)
            bytes_store32(slot + D7__SLOT_CRC, common_crc32c(0, file + base, (size_t)(length - base)));
        bytes_store32(slot + D7__SLOT_SLOT_BYTES, D7_TAIL_ALIGN_BYTES);
        repair(slot, n);
    }
    disk_put(d, path, file, sizeof file);
    disk_put(d, tail_path, tail, sizeof tail);
    return d;
}

static uint32_t sum(const disk *d, const char *name) {
    size_t n;
    const uint8_t *now = disk_content(d, name, &n);
    return now ? common_crc32c(0, now, n) : 0;
}

static void fuzz_tail(const uint8_t *data, size_t size) {
    disk *d = make_disk(data, size);
    d7_tail_recover_options options;
    d7_tail_recover_options_init(&options);
    options.io = disk_io(d);
    d7_tail *tail = NULL;
    d7_tail_recovery recovery;
    uint32_t file = sum(d, path), slots = sum(d, tail_path);
    int rc = d7_tail_recover(&tail, path, &options, &recovery, NULL);
    if (rc != 0) {
        REQUIRE(rc == D7_ERR_CORRUPT || rc == D7_ERR_UNSUPPORTED);
        REQUIRE(sum(d, path) == file && sum(d, tail_path) == slots);
    } else {
        uint64_t generation = d7_tail_recovered(tail)->claim.generation;
        d7_tail_free(tail);
        file = sum(d, path);
        slots = sum(d, tail_path);
        REQUIRE(d7_tail_recover(&tail, path, &options, &recovery, NULL) == 0 && recovery.cut_bytes == 0);
        REQUIRE(sum(d, path) == file && sum(d, tail_path) == slots);
        REQUIRE(d7_tail_recovered(tail)->claim.generation == generation);
        d7_tail_free(tail);
    }
    disk_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    if (data[0] % 2 == 0)
        fuzz_slot(data + 1, size - 1);
    else
        fuzz_tail(data + 1, size - 1);
    return 0;
}
