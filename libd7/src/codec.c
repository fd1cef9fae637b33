#include "codec.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "error.h"
#include "kernels.h"

enum {
    ENTRY_DATA = D7__TAG(2, D7__BYTES),
    DATA_DATASET = D7__TAG(1, D7__VARINT),
    DATA_SEED = D7__TAG(3, D7__VARINT),
    DATA_INTEGERS = D7__TAG(4, D7__BYTES),
    DATA_LONGS = D7__TAG(5, D7__BYTES),
    DATA_FLOATS = D7__TAG(6, D7__BYTES),
    DATA_DOUBLES = D7__TAG(7, D7__BYTES),
    DATA_RAW = D7__TAG(8, D7__BYTES),
    /* tag and length of the entry; tag and id; tag and seed; tag and length of the payload */
    HEAD_MAX = 1 + 5 + 1 + 5 + 1 + D7__VARINT_MAX + 1 + 5,
};

/* How a type is stored. */
typedef struct form {
    uint8_t tag;   /* of the payload */
    uint8_t worst; /* most bytes an item takes */
    bool raw;      /* little-endian values instead of differences */
} form;

static const form forms[D7_N_TYPES] = {
    [D7_INT8] = {DATA_RAW, 1, true},        [D7_UINT8] = {DATA_RAW, 1, true},
    [D7_FLOAT] = {DATA_FLOATS, 4, true},    [D7_DOUBLE] = {DATA_DOUBLES, 8, true},
    [D7_INT16] = {DATA_INTEGERS, 3, false}, [D7_UINT16] = {DATA_INTEGERS, 3, false},
    [D7_INT32] = {DATA_INTEGERS, 5, false}, [D7_UINT32] = {DATA_INTEGERS, 5, false},
    [D7_INT64] = {DATA_LONGS, 10, false},   [D7_UINT64] = {DATA_LONGS, 10, false},
};

size_t d7_page_bound(d7_type type, size_t n) {
    if ((unsigned)type >= D7_N_TYPES || n > (SIZE_MAX - HEAD_MAX - D7__ENCODE_SLOP) / forms[type].worst)
        return SIZE_MAX;
    return HEAD_MAX + D7__ENCODE_SLOP + n * forms[type].worst;
}

/* The first value as the format's signed seed. */
static uint64_t page_seed(d7_type type, const void *values) {
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    switch (type) {
    case D7_INT16:
        memcpy(&i16, values, sizeof i16);
        return d7__zigzag(i16);
    case D7_UINT16:
        memcpy(&u16, values, sizeof u16);
        return d7__zigzag(u16);
    case D7_INT32:
        memcpy(&i32, values, sizeof i32);
        return d7__zigzag(i32);
    case D7_UINT32:
        memcpy(&u32, values, sizeof u32);
        return d7__zigzag(u32);
    default:
        memcpy(&i64, values, sizeof i64);
        return d7__zigzag(i64);
    }
}

/* Returns the payload's length. */
static size_t page_payload(d7_type type, const void *values, size_t n, uint8_t *out) {
    const d7__kernels *k = d7__kernels_best();
    switch (type) {
    case D7_INT16:
        return (size_t)(k->encode_int16(values, n, out) - out);
    case D7_UINT16:
        return (size_t)(k->encode_uint16(values, n, out) - out);
    case D7_INT32:
    case D7_UINT32:
        return (size_t)(k->encode_32(values, n, out) - out);
    case D7_INT64:
    case D7_UINT64:
        return (size_t)(k->encode_64(values, n, out) - out);
    default:
        bytes_copy_le(out, values, n, d7_type_size(type));
        return n * d7_type_size(type);
    }
}

/* Writes what comes before a payload of that length; returns how many bytes. */
static size_t page_head(uint32_t dataset_id, d7_type type, const void *values, size_t payload,
                        uint8_t head[HEAD_MAX]) {
    uint8_t body[HEAD_MAX], *b = body, *p = head;
    *b++ = DATA_DATASET;
    b = d7__put_varint(b, dataset_id);
    if (!forms[type].raw) {
        *b++ = DATA_SEED;
        b = d7__put_varint(b, page_seed(type, values));
    }
    *b++ = forms[type].tag;
    b = d7__put_varint(b, payload);
    size_t body_head = (size_t)(b - body);
    *p++ = ENTRY_DATA;
    p = d7__put_varint(p, body_head + payload);
    memcpy(p, body, body_head);
    return (size_t)(p - head) + body_head;
}

int d7_page_encode(uint32_t dataset_id, d7_type type, const void *values, size_t n, void *out, size_t cap,
                   size_t *ret_bytes) {
    if ((unsigned)type >= D7_N_TYPES || !values || n == 0)
        return D7_ERR_ARG;
    size_t bound = d7_page_bound(type, n);
    if (n > D7_ENTRY_BYTES_MAX || cap < bound)
        return D7_ERR_LIMIT;

    /* The head's length depends on the payload's: a guess puts the payload where it belongs nearly always. */
    uint8_t *start = out, head[HEAD_MAX];
    size_t guess = page_head(dataset_id, type, values, n * (forms[type].raw ? d7_type_size(type) : 2), head);
    size_t payload = page_payload(type, values, n, start + guess);
    if (payload > D7_ENTRY_BYTES_MAX - HEAD_MAX)
        return D7_ERR_LIMIT;
    size_t head_bytes = page_head(dataset_id, type, values, payload, head);
    if (head_bytes != guess)
        memmove(start + head_bytes, start + guess, payload);
    memcpy(start, head, head_bytes);
    *ret_bytes = head_bytes + payload;
    return 0;
}

bool d7__entry_kind(const uint8_t *entry, size_t bytes, d7__kind *ret_kind, d7__cursor *ret_body) {
    d7__cursor c = {entry, entry + bytes};
    *ret_kind = D7__KIND_NONE;
    while (c.at < c.end) {
        d7__field f;
        if (!d7__get_field(&c, &f))
            return false;
        if (f.number >= D7__KIND_HEADER && f.number <= D7__KIND_EPILOGUE && f.wire_type == D7__BYTES) {
            *ret_kind = (d7__kind)f.number;
            *ret_body = (d7__cursor){f.bytes, f.bytes + f.n_bytes};
        }
    }
    return true;
}

bool d7__page_dataset(d7__cursor body, uint64_t *ret_dataset_id) {
    uint64_t id = 0;
    while (body.at < body.end) {
        d7__field f;
        if (!d7__get_field(&body, &f))
            return false;
        if (f.number == 1 && f.wire_type != D7__VARINT)
            return false; /* as in an index that a bit has made a page */
        if (f.number == 1)
            id = f.value;
    }
    *ret_dataset_id = id;
    return true;
}

bool d7__head_parse(const uint8_t *bytes, size_t n, d7__head *ret_head) {
    d7__cursor c = {bytes, bytes + n};
    d7__head head = {0};
    uint64_t tag;
    if (!d7__get_varint(&c, &tag) || !d7__get_varint(&c, &head.body_bytes))
        return false;
    head.head_bytes = (uint64_t)(c.at - bytes);
    if (tag == ENTRY_DATA) {
        head.kind = D7__KIND_DATA;
        if (!d7__get_varint(&c, &tag) || tag != DATA_DATASET || !d7__get_varint(&c, &head.dataset_id))
            return false;
    } else if (tag == D7__TAG(D7__KIND_INDEX, D7__BYTES)) {
        head.kind = D7__KIND_INDEX;
    } else {
        return false;
    }
    *ret_head = head;
    return true;
}

uint32_t d7__payload_field(d7_type type) {
    return forms[type].tag >> 3;
}

bool d7__payload_is_raw(d7_type type) {
    return forms[type].raw;
}

bool d7__page_head_fits(uint32_t dataset_id, const uint8_t *entry, size_t bytes) {
    d7__cursor c = {entry, entry + bytes};
    uint64_t value;
    if (bytes < 2 || *c.at++ != ENTRY_DATA || !d7__get_varint(&c, &value) ||
        value != (uint64_t)(c.end - c.at))
        return false;
    return c.at < c.end && *c.at++ == DATA_DATASET && d7__get_varint(&c, &value) && value == dataset_id;
}

/* What a Data message says, before its payload is decoded. The payload is the chunks of one field: one chunk
 * when packed, one an item when not. */
typedef struct page_view {
    const uint8_t *entry; /* offsets in errors count from here */
    d7__cursor body;
    uint64_t dataset_id;
    uint64_t seed;
    uint64_t payload_field; /* 0: no payload, or an empty one */
    size_t n_items;
} page_view;

static int page_corrupt(const page_view *v, const uint8_t *at, const char *what, d7_error *err) {
    uint64_t offset = (uint64_t)(at - v->entry);
    return d7__fail(err, D7_ERR_CORRUPT, 0, offset, "byte %" PRIu64 " of the page's entry: %s", offset, what);
}

static bool is_payload(const d7__field *f) {
    return f->number >= 4 && f->number <= 8 && f->n_bytes > 0;
}

/* Counts the items of one chunk into v. */
static int page_count_chunk(page_view *v, d7_type type, const d7__field *f, d7_error *err) {
    if (forms[type].raw != (f->number >= 6))
        return page_corrupt(v, f->bytes, "values are stored in a form that the dataset's type does not have",
                            err);
    if (v->payload_field && v->payload_field != f->number)
        return page_corrupt(v, f->bytes, "values are stored in two fields", err);
    v->payload_field = f->number;
    size_t size = d7_type_size(type);
    if (forms[type].raw) {
        if (f->wire_type == D7__VARINT || f->n_bytes % size)
            return page_corrupt(v, f->bytes, "the values are not a whole number of items", err);
        v->n_items += f->n_bytes / size;
        return 0;
    }
    if ((f->wire_type != D7__BYTES && f->wire_type != D7__VARINT) || f->bytes[f->n_bytes - 1] > 127)
        return page_corrupt(v, f->bytes, "the differences end in the middle of one", err);
    v->n_items += d7__kernels_best()->count(f->bytes, f->n_bytes);
    return 0;
}

static int page_view_read(page_view *v, d7_type type, const void *entry, size_t bytes, d7_error *err) {
    *v = (page_view){.entry = entry};
    if ((unsigned)type >= D7_N_TYPES || !entry)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "no such element type, or no entry");
    d7__kind kind;
    if (!d7__entry_kind(entry, bytes, &kind, &v->body) || kind != D7__KIND_DATA)
        return page_corrupt(v, entry, "the entry is not a page", err);
    v->n_items = forms[type].raw ? 0 : 1;
    for (d7__cursor c = v->body; c.at < c.end;) {
        d7__field f;
        const uint8_t *at = c.at;
        if (!d7__get_field(&c, &f))
            return page_corrupt(v, at, "a field is malformed or runs past its message", err);
        if ((f.number == 1 || f.number == 3) && f.wire_type != D7__VARINT)
            return page_corrupt(v, at, "a field is of another type than it should be", err);
        if (f.number == 1)
            v->dataset_id = f.value;
        else if (f.number == 3)
            v->seed = d7__unzigzag(f.value);
        else if (is_payload(&f)) {
            int rc = page_count_chunk(v, type, &f, err);
            if (rc != 0)
                return rc;
        }
    }
    if (v->dataset_id > UINT32_MAX)
        return page_corrupt(v, v->body.at, "the dataset's number is absurd", err);
    return 0;
}

static d7__decode_fn *page_decoder(d7_type type) {
    const d7__kernels *k = d7__kernels_best();
    size_t size = d7_type_size(type);
    return size == 2 ? k->decode_16 : size == 4 ? k->decode_32 : k->decode_64;
}

/* Stores one value of `size` bytes, cut from x. */
static void store_value(uint8_t *out, size_t size, uint64_t x) {
    uint16_t v16 = (uint16_t)x;
    uint32_t v32 = (uint32_t)x;
    if (size == 2)
        memcpy(out, &v16, size);
    else if (size == 4)
        memcpy(out, &v32, size);
    else
        memcpy(out, &x, size);
}

/* Decodes the chunks that page_view_read() has counted; `out` has room for them. */
static int page_decode_payload(const page_view *v, d7_type type, uint8_t *out, d7_error *err) {
    size_t size = d7_type_size(type);
    uint64_t sum = v->seed;
    if (!forms[type].raw) {
        store_value(out, size, sum);
        out += size;
    }
    for (d7__cursor c = v->body; c.at < c.end;) {
        d7__field f;
        if (!d7__get_field(&c, &f))
            return page_corrupt(v, c.at, "a field is malformed or runs past its message", err);
        if (!is_payload(&f))
            continue;
        if (forms[type].raw) {
            bytes_copy_le(out, f.bytes, f.n_bytes / size, size);
            out += f.n_bytes;
            continue;
        }
        const uint8_t *bad = page_decoder(type)(f.bytes, f.n_bytes, &sum, out);
        if (bad)
            return page_corrupt(v, bad, "a difference is longer than 10 bytes", err);
        if (c.at < c.end)
            out += size * d7__kernels_best()->count(f.bytes, f.n_bytes);
    }
    return 0;
}

int d7_page_decode(d7_type type, const void *entry, size_t bytes, void *out, size_t cap,
                   uint32_t *ret_dataset_id, size_t *ret_n, d7_error *err) {
    page_view v;
    int rc = page_view_read(&v, type, entry, bytes, err);
    if (rc != 0)
        return rc;
    if (v.n_items > cap)
        return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET, "the page holds %zu items, there is room for %zu",
                        v.n_items, cap);
    rc = page_decode_payload(&v, type, out, err);
    if (rc != 0)
        return rc;
    *ret_dataset_id = (uint32_t)v.dataset_id;
    *ret_n = v.n_items;
    return 0;
}

int d7_page_count(d7_type type, const void *entry, size_t bytes, uint32_t *ret_dataset_id, size_t *ret_n,
                  d7_error *err) {
    page_view v;
    int rc = page_view_read(&v, type, entry, bytes, err);
    if (rc != 0)
        return rc;
    *ret_dataset_id = (uint32_t)v.dataset_id;
    if (ret_n)
        *ret_n = v.n_items;
    return 0;
}
