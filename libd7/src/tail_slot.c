/* A slot of the tail: a pure function from a claim and a mark to bytes, and back.
 *
 * Everything in a slot has one form only, padding included, so that decoding and encoding again gives the
 * same bytes. A slot that a power cut or a concurrent writer tore fails its checksum; a slot that does not is
 * held against every limit before anything in it is used. */
#include "tail_slot.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/utf8.h"
#include "error.h"

static const uint8_t slot_magic[8] = {'d', '7', ' ', 't', 'a', 'i', 'l', '\n'};

enum { ATTRIBUTE_HEAD_BYTES = 8, ATTRIBUTE_NULS = 2 };

static uint64_t padded(uint64_t bytes) {
    return (bytes + 7) & ~(uint64_t)7;
}

size_t d7__slot_written_bytes(size_t used_bytes) {
    return (used_bytes + D7_TAIL_ALIGN_BYTES - 1) & ~((size_t)D7_TAIL_ALIGN_BYTES - 1);
}

/* ---- sizes ---- */

static bool layout_valid(const d7_tail_layout *l) {
    if (!l || !l->types || l->n_datasets == 0 || l->n_datasets > D7_DATASETS_MAX ||
        l->bytes_per_page < D7_PAGE_BYTES_MIN || l->bytes_per_page > D7_PAGE_BYTES_MAX)
        return false;
    for (size_t i = 0; i < l->n_datasets; i++)
        if (!d7_type_size(l->types[i]))
            return false;
    return true;
}

/* What a slot has besides datasets and attributes, with the longest name of a producer. */
enum { FIXED_BYTES = D7__SLOT_HEAD_END + D7_TAIL_PRODUCER_BYTES_MAX + 1 + D7__SLOT_TRAILER_BYTES };

/* Of a dataset whose partial page is as full as it can be. */
static uint64_t dataset_bytes(d7_type type, uint32_t bytes_per_page) {
    uint64_t items = d7_items_per_page(type, bytes_per_page) - 1;
    return D7__RECORD_BYTES + padded(items * d7_type_size(type));
}

static uint64_t bytes_without_attributes(const d7_tail_layout *l) {
    uint64_t sum = FIXED_BYTES;
    for (size_t i = 0; i < l->n_datasets; i++)
        sum += dataset_bytes(l->types[i], l->bytes_per_page);
    return sum;
}

int d7_tail_slot_bytes(const d7_tail_layout *l, size_t *ret_bytes) {
    if (!layout_valid(l))
        return D7_ERR_ARG;
    uint64_t sum = bytes_without_attributes(l) + padded(l->attribute_bytes);
    if (sum > D7_TAIL_SLOT_BYTES_MAX)
        return D7_ERR_LIMIT;
    *ret_bytes = d7__slot_written_bytes((size_t)sum);
    return 0;
}

uint32_t d7__slot_attribute_room(const d7_tail_layout *l, size_t slot_bytes) {
    uint64_t rest = bytes_without_attributes(l);
    return rest <= slot_bytes ? (uint32_t)(slot_bytes - rest) & ~(uint32_t)7 : 0;
}

size_t d7_tail_attribute_bytes(const d7_attribute *attributes, size_t n) {
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        size_t key = strlen(attributes[i].key), value = strlen(attributes[i].value);
        size_t more = ATTRIBUTE_HEAD_BYTES + ATTRIBUTE_NULS;
        if (key > UINT32_MAX || value > UINT32_MAX || key + value > SIZE_MAX - more - sum)
            return SIZE_MAX;
        sum += more + key + value;
    }
    return sum;
}

/* ---- encoding ---- */

typedef struct encoder {
    uint8_t *slot;
    size_t at;
} encoder;

static void put_bytes(encoder *e, const void *data, size_t bytes) {
    if (bytes)
        memcpy(e->slot + e->at, data, bytes);
    e->at += bytes;
}

static void put_padding(encoder *e, size_t to) {
    memset(e->slot + e->at, 0, to - e->at);
    e->at = to;
}

static int bad_mark(d7_error *err, const char *reason) {
    return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a mark of the tail: %s", reason);
}

static int encode_check_datasets(const d7_tail_layout *l, const d7_tail_mark *m, d7_error *err) {
    if (m->n_datasets != l->n_datasets || !m->datasets)
        return bad_mark(err, "the datasets are not those of the layout");
    for (size_t i = 0; i < m->n_datasets; i++) {
        const d7_tail_dataset *d = &m->datasets[i];
        size_t per_page = d7_items_per_page(l->types[i], l->bytes_per_page);
        if (d->type != l->types[i])
            return bad_mark(err, "a dataset's type is not that of the layout");
        if (d->n_partial >= per_page || (d->n_partial && !d->partial))
            return bad_mark(err, "a partial page is full or missing");
        if (d->items < d->n_partial || (d->items - d->n_partial) % per_page != 0)
            return bad_mark(err, "a dataset's pages before the partial one are not whole");
    }
    return 0;
}

static int encode_check_attributes(const d7_tail_layout *l, const d7_tail_mark *m, d7_error *err) {
    if (m->n_attributes && !m->attributes)
        return bad_mark(err, "the attributes are missing");
    for (size_t i = 0; i < m->n_attributes; i++) {
        const d7_attribute *a = &m->attributes[i];
        if (!a->key || !*a->key || !a->value || !common_utf8_valid(a->key, strlen(a->key)) ||
            !common_utf8_valid(a->value, strlen(a->value)))
            return bad_mark(err, "an attribute has no key or is not valid UTF-8");
    }
    size_t bytes = d7_tail_attribute_bytes(m->attributes, m->n_attributes);
    if (bytes > l->attribute_bytes)
        return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET,
                        "the attributes that no index holds take %zu bytes, a slot of the tail has %" PRIu32
                        " for them: write them to the file first",
                        bytes, l->attribute_bytes);
    return 0;
}

static int encode_check(const d7_tail_layout *l, const d7_tail_identity *id, const d7_tail_claim *c,
                        const d7_tail_mark *m, d7_error *err) {
    size_t producer_bytes = m->producer ? strlen(m->producer) : 0;
    if (c->generation == 0 || c->base > c->length || (c->base == c->length && c->crc32c != 0))
        return bad_mark(err, "the claim contradicts itself");
    if (id->head_bytes > D7_TAIL_HEAD_BYTES_MAX || id->head_bytes > c->length)
        return bad_mark(err, "the head is longer than it may be");
    if (m->sequence < id->first_sequence)
        return bad_mark(err, "the sequence number is before the part's first");
    if (producer_bytes > D7_TAIL_PRODUCER_BYTES_MAX ||
        (m->producer && !common_utf8_valid(m->producer, producer_bytes)))
        return bad_mark(err, "the producer's name is too long or not valid UTF-8");
    int rc = encode_check_datasets(l, m, err);
    return rc != 0 ? rc : encode_check_attributes(l, m, err);
}

static void put_claim(uint8_t *slot, const d7_tail_claim *c) {
    bytes_store64(slot + D7__SLOT_GENERATION, c->generation);
    bytes_store64(slot + D7__SLOT_LENGTH, c->length);
    bytes_store64(slot + D7__SLOT_BASE, c->base);
    bytes_store32(slot + D7__SLOT_CRC, c->crc32c);
}

static void put_head(encoder *e, const d7_tail_layout *l, const d7_tail_identity *id, const d7_tail_mark *m,
                     size_t slot_bytes) {
    uint8_t *p = e->slot;
    const d7_tail_clock *clock = &m->clock;
    memset(p, 0, D7__SLOT_HEAD_END);
    memcpy(p + D7__SLOT_MAGIC, slot_magic, sizeof slot_magic);
    bytes_store32(p + D7__SLOT_VERSION, D7__SLOT_VERSION_NOW);
    memcpy(p + D7__SLOT_FILE_ID, id->file_id, sizeof id->file_id);
    bytes_store32(p + D7__SLOT_PART, id->part);
    bytes_store32(p + D7__SLOT_BYTES_PER_PAGE, l->bytes_per_page);
    bytes_store32(p + D7__SLOT_HEAD_CRC, id->head_crc32c);
    bytes_store64(p + D7__SLOT_HEAD_BYTES, id->head_bytes);
    bytes_store64(p + D7__SLOT_FIRST_SEQUENCE, id->first_sequence);
    bytes_store64(p + D7__SLOT_SEQUENCE, m->sequence);
    bytes_store64(p + D7__SLOT_EPOCH, m->epoch);
    bytes_store64(p + D7__SLOT_INSTRUMENT, clock->instrument_valid ? (uint64_t)clock->instrument : 0);
    bytes_store64(p + D7__SLOT_MONOTONIC, clock->monotonic_ns);
    bytes_store64(p + D7__SLOT_UTC, (uint64_t)clock->utc_ns);
    bytes_store32(p + D7__SLOT_FLAGS, clock->instrument_valid ? D7__SLOT_INSTRUMENT_VALID : 0);
    bytes_store32(p + D7__SLOT_N_DATASETS, (uint32_t)l->n_datasets);
    bytes_store32(p + D7__SLOT_N_ATTRIBUTES, (uint32_t)m->n_attributes);
    bytes_store32(p + D7__SLOT_ATTRIBUTE_BYTES,
                  (uint32_t)d7_tail_attribute_bytes(m->attributes, m->n_attributes));
    bytes_store32(p + D7__SLOT_PRODUCER_BYTES, m->producer ? (uint32_t)strlen(m->producer) : 0);
    bytes_store32(p + D7__SLOT_SLOT_BYTES, (uint32_t)slot_bytes);
    e->at = D7__SLOT_HEAD_END;
}

static void put_producer(encoder *e, const char *producer) {
    const char *text = producer ? producer : "";
    put_bytes(e, text, strlen(text) + 1);
    put_padding(e, padded(e->at));
}

static void put_datasets(encoder *e, const d7_tail_mark *m) {
    uint8_t *record = e->slot + e->at;
    e->at += m->n_datasets * D7__RECORD_BYTES;
    for (size_t i = 0; i < m->n_datasets; i++, record += D7__RECORD_BYTES) {
        const d7_tail_dataset *d = &m->datasets[i];
        size_t size = d7_type_size(d->type), bytes = d->n_partial * size;
        memset(record, 0, D7__RECORD_BYTES);
        bytes_store64(record + D7__RECORD_ITEMS, d->items);
        bytes_store32(record + D7__RECORD_N_PARTIAL, d->n_partial);
        bytes_store32(record + D7__RECORD_PARTIAL, (uint32_t)e->at);
        record[D7__RECORD_TYPE] = (uint8_t)d->type;
        if (bytes)
            bytes_copy_le(e->slot + e->at, d->partial, d->n_partial, size);
        e->at += bytes;
        put_padding(e, padded(e->at));
    }
}

static void put_attributes(encoder *e, const d7_tail_mark *m) {
    for (size_t i = 0; i < m->n_attributes; i++) {
        const d7_attribute *a = &m->attributes[i];
        size_t key = strlen(a->key), value = strlen(a->value);
        bytes_store32(e->slot + e->at, (uint32_t)key);
        bytes_store32(e->slot + e->at + 4, (uint32_t)value);
        e->at += ATTRIBUTE_HEAD_BYTES;
        put_bytes(e, a->key, key + 1);
        put_bytes(e, a->value, value + 1);
    }
    put_padding(e, padded(e->at));
}

/* Fills in what is known last: how long it is, the claim, and the checksum over all before it. */
static void put_trailer(uint8_t *slot, size_t used_bytes, const d7_tail_claim *claim) {
    uint8_t *trailer = slot + used_bytes - D7__SLOT_TRAILER_BYTES;
    bytes_store32(slot + D7__SLOT_USED_BYTES, (uint32_t)used_bytes);
    put_claim(slot, claim);
    bytes_store32(trailer, (uint32_t)claim->generation);
    bytes_store32(trailer + 4, common_crc32c(0, slot, used_bytes - 4));
}

int d7_tail_slot_encode(const d7_tail_layout *layout, const d7_tail_identity *identity,
                        const d7_tail_claim *claim, const d7_tail_mark *mark, void *out, size_t cap,
                        size_t *ret_bytes, d7_error *err) {
    size_t slot_bytes;
    if (!identity || !claim || !mark || !out)
        return bad_mark(err, "an argument is missing");
    int rc = d7_tail_slot_bytes(layout, &slot_bytes);
    if (rc != 0)
        return d7__fail(err, rc, 0, D7_NO_OFFSET, "a tail of this layout %s",
                        rc == D7_ERR_LIMIT ? "would need slots of over 256 MiB" : "cannot be");
    if (cap < slot_bytes)
        return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET,
                        "a slot of the tail takes %zu bytes, there are %zu", slot_bytes, cap);
    rc = encode_check(layout, identity, claim, mark, err);
    if (rc != 0)
        return rc;

    encoder e = {.slot = out};
    put_head(&e, layout, identity, mark, slot_bytes);
    put_producer(&e, mark->producer);
    put_datasets(&e, mark);
    put_attributes(&e, mark);
    size_t used = e.at + D7__SLOT_TRAILER_BYTES;
    put_trailer(out, used, claim);
    e.at = used;
    put_padding(&e, d7__slot_written_bytes(used));
    *ret_bytes = e.at;
    return 0;
}

void d7__slot_restamp(uint8_t *slot, size_t used_bytes, const d7_tail_claim *claim) {
    put_trailer(slot, used_bytes, claim);
}

/* ---- decoding ---- */

size_t d7__slot_used_bytes(const uint8_t *head, size_t slot_bytes) {
    size_t used = bytes_load32(head + D7__SLOT_USED_BYTES);
    bool sound = memcmp(head, slot_magic, sizeof slot_magic) == 0 && used % 8 == 0 && used <= slot_bytes &&
                 used >= D7__SLOT_HEAD_END + D7__SLOT_TRAILER_BYTES;
    return sound ? used : 0;
}

static int bad_slot(d7_error *err, size_t offset, const char *reason) {
    return d7__fail(err, D7_ERR_CORRUPT, 0, offset, "a slot of the tail: %s", reason);
}

static bool zeros(const uint8_t *p, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

/* A section being read: everything before `at` has been checked. */
typedef struct decoder {
    const uint8_t *slot;
    size_t at, end; /* end: where the trailer begins */
    d7_error *err;
} decoder;

static int decode_envelope(const uint8_t *slot, size_t n, size_t *ret_used, d7_error *err) {
    if (n < D7__SLOT_HEAD_END)
        return bad_slot(err, n, "it ends inside its head");
    if (memcmp(slot, slot_magic, sizeof slot_magic) != 0)
        return bad_slot(err, D7__SLOT_MAGIC, zeros(slot, n) ? "it is empty" : "it does not begin like one");
    size_t used = d7__slot_used_bytes(slot, n);
    if (used == 0)
        return bad_slot(err, D7__SLOT_USED_BYTES, "its length cannot be");
    const uint8_t *trailer = slot + used - D7__SLOT_TRAILER_BYTES;
    if (bytes_load32(trailer + 4) != common_crc32c(0, slot, used - 4))
        return bad_slot(err, used - 4, "its checksum does not hold: it is torn, or being written");
    uint32_t version = bytes_load32(slot + D7__SLOT_VERSION);
    if (version != D7__SLOT_VERSION_NOW)
        return d7__fail(err, D7_ERR_UNSUPPORTED, 0, D7__SLOT_VERSION,
                        "a slot of the tail is of version %" PRIu32 ", this library knows version %d",
                        version, D7__SLOT_VERSION_NOW);
    if (bytes_load32(trailer) != bytes_load32(slot + D7__SLOT_GENERATION))
        return bad_slot(err, used - D7__SLOT_TRAILER_BYTES, "its two generations differ");
    *ret_used = used;
    return 0;
}

static void decode_numbers(const uint8_t *p, d7_tail_slot *s) {
    memcpy(s->identity.file_id, p + D7__SLOT_FILE_ID, sizeof s->identity.file_id);
    s->identity.part = bytes_load32(p + D7__SLOT_PART);
    s->identity.first_sequence = bytes_load64(p + D7__SLOT_FIRST_SEQUENCE);
    s->identity.head_bytes = bytes_load64(p + D7__SLOT_HEAD_BYTES);
    s->identity.head_crc32c = bytes_load32(p + D7__SLOT_HEAD_CRC);
    s->claim.generation = bytes_load64(p + D7__SLOT_GENERATION);
    s->claim.length = bytes_load64(p + D7__SLOT_LENGTH);
    s->claim.base = bytes_load64(p + D7__SLOT_BASE);
    s->claim.crc32c = bytes_load32(p + D7__SLOT_CRC);
    s->sequence = bytes_load64(p + D7__SLOT_SEQUENCE);
    s->epoch = bytes_load64(p + D7__SLOT_EPOCH);
    s->clock.instrument_valid = bytes_load32(p + D7__SLOT_FLAGS) & D7__SLOT_INSTRUMENT_VALID;
    s->clock.instrument = (int64_t)bytes_load64(p + D7__SLOT_INSTRUMENT);
    s->clock.monotonic_ns = bytes_load64(p + D7__SLOT_MONOTONIC);
    s->clock.utc_ns = (int64_t)bytes_load64(p + D7__SLOT_UTC);
    s->bytes_per_page = bytes_load32(p + D7__SLOT_BYTES_PER_PAGE);
    s->n_datasets = bytes_load32(p + D7__SLOT_N_DATASETS);
    s->n_attributes = bytes_load32(p + D7__SLOT_N_ATTRIBUTES);
    s->slot_bytes = bytes_load32(p + D7__SLOT_SLOT_BYTES);
}

static int decode_check_numbers(const uint8_t *p, const d7_tail_slot *s, d7_error *err) {
    const d7_tail_claim *c = &s->claim;
    if (c->generation == 0)
        return bad_slot(err, D7__SLOT_GENERATION, "its generation is 0");
    if (c->base > c->length || (c->base == c->length && c->crc32c != 0))
        return bad_slot(err, D7__SLOT_BASE, "its claim contradicts itself");
    if (s->identity.head_bytes > D7_TAIL_HEAD_BYTES_MAX || s->identity.head_bytes > c->length)
        return bad_slot(err, D7__SLOT_HEAD_BYTES, "the head is longer than it may be");
    if (s->sequence < s->identity.first_sequence)
        return bad_slot(err, D7__SLOT_SEQUENCE, "its sequence number is before the part's first");
    if (s->bytes_per_page < D7_PAGE_BYTES_MIN || s->bytes_per_page > D7_PAGE_BYTES_MAX)
        return bad_slot(err, D7__SLOT_BYTES_PER_PAGE, "pages cannot be of this size");
    if (bytes_load32(p + D7__SLOT_FLAGS) & ~(uint32_t)D7__SLOT_INSTRUMENT_VALID)
        return bad_slot(err, D7__SLOT_FLAGS, "a flag is set that has no meaning");
    if (!s->clock.instrument_valid && s->clock.instrument != 0)
        return bad_slot(err, D7__SLOT_INSTRUMENT, "a time that is not valid is not 0");
    if (s->n_datasets == 0 || s->n_datasets > D7_DATASETS_MAX)
        return bad_slot(err, D7__SLOT_N_DATASETS, "no file has so many datasets");
    if (s->slot_bytes % D7_TAIL_ALIGN_BYTES != 0 || s->slot_bytes > D7_TAIL_SLOT_BYTES_MAX ||
        s->slot_bytes < s->used_bytes)
        return bad_slot(err, D7__SLOT_SLOT_BYTES, "its place cannot be of this size");
    if (!zeros(p + D7__SLOT_RESERVED, D7__SLOT_HEAD_END - D7__SLOT_RESERVED))
        return bad_slot(err, D7__SLOT_RESERVED, "reserved bytes are not 0");
    return 0;
}

static size_t left(const decoder *d) {
    return d->end - d->at;
}

/* Passes over zeros up to a multiple of 8; sections end there, so that the trailer is never passed. */
static bool skip_padding(decoder *d) {
    size_t n = padded(d->at) - d->at;
    if (n > left(d) || !zeros(d->slot + d->at, n))
        return false;
    d->at += n;
    return true;
}

/* A text of n bytes, and its NUL. */
static bool take_text(decoder *d, size_t n, const char **ret_text) {
    const char *text = (const char *)d->slot + d->at;
    if (n >= left(d) || text[n] != '\0' || memchr(text, '\0', n) || !common_utf8_valid(text, n))
        return false;
    d->at += n + 1;
    *ret_text = text;
    return true;
}

static int decode_producer(decoder *d, d7_tail_slot *s) {
    size_t n = bytes_load32(d->slot + D7__SLOT_PRODUCER_BYTES);
    if (n > D7_TAIL_PRODUCER_BYTES_MAX)
        return bad_slot(d->err, D7__SLOT_PRODUCER_BYTES, "the producer's name is too long");
    if (!take_text(d, n, &s->producer) || !skip_padding(d))
        return bad_slot(d->err, d->at, "the producer's name is no text");
    return 0;
}

static int decode_dataset(decoder *d, const uint8_t *record, uint32_t bytes_per_page) {
    size_t where = (size_t)(record - d->slot);
    uint64_t items = bytes_load64(record + D7__RECORD_ITEMS);
    uint32_t n = bytes_load32(record + D7__RECORD_N_PARTIAL);
    size_t size = d7_type_size((d7_type)record[D7__RECORD_TYPE]);
    if (size == 0 || !zeros(record + D7__RECORD_TYPE + 1, D7__RECORD_BYTES - D7__RECORD_TYPE - 1))
        return bad_slot(d->err, where + D7__RECORD_TYPE, "a dataset is of an unknown type");
    size_t per_page = bytes_per_page / size;
    if (n >= per_page || items < n || (items - n) % per_page != 0)
        return bad_slot(d->err, where, "a dataset's count cannot be");
    if (bytes_load32(record + D7__RECORD_PARTIAL) != d->at || n * size > left(d))
        return bad_slot(d->err, where + D7__RECORD_PARTIAL, "a partial page is not where it belongs");
    d->at += n * size;
    return skip_padding(d) ? 0 : bad_slot(d->err, d->at, "padding is not 0");
}

/* Room for the fullest slot of this layout, attributes left out, is at least what its place has. */
static int decode_check_place(const decoder *d, const d7_tail_slot *s, const uint8_t *records) {
    uint64_t sum = FIXED_BYTES;
    for (size_t i = 0; i < s->n_datasets; i++)
        sum += dataset_bytes((d7_type)records[i * D7__RECORD_BYTES + D7__RECORD_TYPE], s->bytes_per_page);
    return sum <= s->slot_bytes
               ? 0
               : bad_slot(d->err, D7__SLOT_SLOT_BYTES, "its place is too small for its datasets");
}

static int decode_datasets(decoder *d, const d7_tail_slot *s) {
    if (s->n_datasets > left(d) / D7__RECORD_BYTES)
        return bad_slot(d->err, D7__SLOT_N_DATASETS, "it ends inside the datasets");
    const uint8_t *records = d->slot + d->at;
    d->at += s->n_datasets * D7__RECORD_BYTES;
    int rc = 0;
    for (size_t i = 0; i < s->n_datasets && rc == 0; i++)
        rc = decode_dataset(d, records + i * D7__RECORD_BYTES, s->bytes_per_page);
    return rc != 0 ? rc : decode_check_place(d, s, records);
}

static bool take_attribute(decoder *d, d7_attribute *a) {
    if (left(d) < ATTRIBUTE_HEAD_BYTES)
        return false;
    size_t key = bytes_load32(d->slot + d->at), value = bytes_load32(d->slot + d->at + 4);
    d->at += ATTRIBUTE_HEAD_BYTES;
    *a = (d7_attribute){.key_bytes = key, .value_bytes = value};
    return key > 0 && take_text(d, key, &a->key) && take_text(d, value, &a->value);
}

static int decode_attributes(decoder *d, const d7_tail_slot *s) {
    size_t begin = d->at;
    for (size_t i = 0; i < s->n_attributes; i++) {
        d7_attribute a;
        size_t at = d->at;
        if (!take_attribute(d, &a))
            return bad_slot(d->err, at, "an attribute is malformed");
    }
    if (d->at - begin != bytes_load32(d->slot + D7__SLOT_ATTRIBUTE_BYTES))
        return bad_slot(d->err, D7__SLOT_ATTRIBUTE_BYTES, "the attributes are not as long as they should be");
    return skip_padding(d) ? 0 : bad_slot(d->err, d->at, "padding is not 0");
}

int d7_tail_slot_decode(const void *bytes, size_t n, d7_tail_slot *ret_slot, d7_error *err) {
    d7_tail_slot s = {.bytes = bytes};
    int rc = decode_envelope(bytes, n, &s.used_bytes, err);
    if (rc != 0)
        return rc;
    decode_numbers(bytes, &s);
    decoder d = {
        .slot = bytes, .at = D7__SLOT_HEAD_END, .end = s.used_bytes - D7__SLOT_TRAILER_BYTES, .err = err};
    rc = decode_check_numbers(bytes, &s, err);
    if (rc == 0)
        rc = decode_producer(&d, &s);
    if (rc == 0)
        rc = decode_datasets(&d, &s);
    if (rc == 0)
        rc = decode_attributes(&d, &s);
    if (rc == 0 && left(&d) != 0)
        rc = bad_slot(err, d.at, "bytes follow the attributes");
    if (rc == 0)
        *ret_slot = s;
    return rc;
}

/* ---- what a decoded slot holds ---- */

static size_t records_at(const d7_tail_slot *s) {
    return D7__SLOT_HEAD_END + padded(bytes_load32(s->bytes + D7__SLOT_PRODUCER_BYTES) + 1);
}

int d7_tail_slot_dataset(const d7_tail_slot *s, size_t i, d7_tail_dataset *ret_dataset) {
    if (i >= s->n_datasets)
        return D7_ERR_ARG;
    const uint8_t *record = s->bytes + records_at(s) + i * D7__RECORD_BYTES;
    *ret_dataset = (d7_tail_dataset){.type = (d7_type)record[D7__RECORD_TYPE],
                                     .items = bytes_load64(record + D7__RECORD_ITEMS),
                                     .n_partial = bytes_load32(record + D7__RECORD_N_PARTIAL)};
    return 0;
}

int d7_tail_slot_values(const d7_tail_slot *s, size_t i, size_t from, size_t n, void *out) {
    d7_tail_dataset d;
    if (d7_tail_slot_dataset(s, i, &d) != 0 || from > d.n_partial || n > d.n_partial - from)
        return D7_ERR_ARG;
    size_t size = d7_type_size(d.type);
    size_t at = bytes_load32(s->bytes + records_at(s) + i * D7__RECORD_BYTES + D7__RECORD_PARTIAL);
    bytes_copy_le(out, s->bytes + at + from * size, n, size);
    return 0;
}

/* The attributes lie before the trailer and its padding. */
static size_t attributes_at(const d7_tail_slot *s) {
    size_t bytes = bytes_load32(s->bytes + D7__SLOT_ATTRIBUTE_BYTES);
    return s->used_bytes - D7__SLOT_TRAILER_BYTES - (size_t)padded(bytes);
}

bool d7_tail_slot_attribute(const d7_tail_slot *s, size_t *cursor, d7_attribute *ret_attribute) {
    size_t begin = attributes_at(s), bytes = bytes_load32(s->bytes + D7__SLOT_ATTRIBUTE_BYTES);
    if (*cursor >= bytes)
        return false;
    decoder d = {.slot = s->bytes, .at = begin + *cursor, .end = begin + bytes};
    if (!take_attribute(&d, ret_attribute))
        return false;
    *cursor = d.at - begin;
    return true;
}
