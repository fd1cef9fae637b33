/* As much of protobuf-c's runtime as the messages of seven.proto need in the library, for processors that no protobuf-c is
 * installed for: cross_files.py. Numbers, bytes and messages; optional, repeated, or of a oneof; unknown fields are
 * dropped. Lack of memory ends in NULL, and so does what is malformed. */
#include <protobuf-c/protobuf-c.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

typedef ProtobufCFieldDescriptor field;

static void *member(const void *message, unsigned offset) {
    return (uint8_t *)(uintptr_t)message + offset;
}

static uint32_t number32(const void *at) {
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static size_t number_size(const void *at) {
    size_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static void *pointer(const void *at) {
    void *v;
    memcpy(&v, at, sizeof v);
    return v;
}

static size_t element_bytes(const field *f) {
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT32:
        return sizeof(uint32_t);
    case PROTOBUF_C_TYPE_UINT64:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        abort();
    }
}

static unsigned wire_type(const field *f) {
    return f->type == PROTOBUF_C_TYPE_BYTES || f->type == PROTOBUF_C_TYPE_MESSAGE ? D7__BYTES : D7__VARINT;
}

/* How many elements of a field a message holds. */
static size_t count(const ProtobufCMessage *m, const field *f) {
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return number_size(member(m, f->quantifier_offset));
    if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return number32(member(m, f->quantifier_offset)) == f->id;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return pointer(member(m, f->offset)) != NULL;
    return number32(member(m, f->quantifier_offset)) != 0;
}

static uint8_t *element(const ProtobufCMessage *m, const field *f, size_t i) {
    uint8_t *start = member(m, f->offset);
    return f->label == PROTOBUF_C_LABEL_REPEATED ? (uint8_t *)pointer(start) + i * element_bytes(f) : start;
}

/* ---- packing ---- */

/* Counts where out is NULL. */
static size_t put_varint(uint8_t *out, uint64_t v) {
    uint8_t scratch[D7__VARINT_MAX];
    return (size_t)(d7__put_varint(out ? out : scratch, v) - (out ? out : scratch));
}

static size_t put_message(const ProtobufCMessage *m, uint8_t *out);

static size_t put_element(const field *f, const uint8_t *at, uint8_t *out) {
    size_t n = put_varint(out, (uint64_t)f->id << 3 | wire_type(f));
    ProtobufCBinaryData bytes;
    uint64_t number;
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT32:
        return n + put_varint(out ? out + n : NULL, number32(at));
    case PROTOBUF_C_TYPE_UINT64:
        memcpy(&number, at, sizeof number);
        return n + put_varint(out ? out + n : NULL, number);
    case PROTOBUF_C_TYPE_BYTES:
        memcpy(&bytes, at, sizeof bytes);
        n += put_varint(out ? out + n : NULL, bytes.len);
        if (out && bytes.len)
            memcpy(out + n, bytes.data, bytes.len);
        return n + bytes.len;
    default:
        n += put_varint(out ? out + n : NULL, put_message(pointer(at), NULL));
        return n + put_message(pointer(at), out ? out + n : NULL);
    }
}

static size_t put_message(const ProtobufCMessage *m, uint8_t *out) {
    size_t n = 0;
    for (unsigned k = 0; k < m->descriptor->n_fields; k++) {
        const field *f = &m->descriptor->fields[k];
        for (size_t i = 0; i < count(m, f); i++)
            n += put_element(f, element(m, f, i), out ? out + n : NULL);
    }
    return n;
}

size_t protobuf_c_message_get_packed_size(const ProtobufCMessage *message) {
    return put_message(message, NULL);
}

size_t protobuf_c_message_pack(const ProtobufCMessage *message, uint8_t *out) {
    return put_message(message, out);
}

size_t protobuf_c_message_pack_to_buffer(const ProtobufCMessage *message, ProtobufCBuffer *buffer) {
    (void)message;
    (void)buffer;
    abort();
}

/* ---- unpacking ---- */

static void *take_memory(ProtobufCAllocator *a, size_t bytes) {
    void *memory = a ? a->alloc(a->allocator_data, bytes) : malloc(bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

static void give_memory(ProtobufCAllocator *a, void *memory) {
    if (memory && a)
        a->free(a->allocator_data, memory);
    else
        free(memory);
}

static const field *find_field(const ProtobufCMessageDescriptor *d, const d7__field *got) {
    for (unsigned k = 0; k < d->n_fields; k++)
        if (d->fields[k].id == got->number)
            return &d->fields[k];
    return NULL;
}

/* Room for the elements of the repeated fields. */
static bool make_arrays(ProtobufCMessage *m, ProtobufCAllocator *a, d7__cursor c) {
    const ProtobufCMessageDescriptor *d = m->descriptor;
    size_t counts[16] = {0};
    for (d7__field got; c.at < c.end;) {
        if (!d7__get_field(&c, &got))
            return false;
        const field *f = find_field(d, &got);
        if (f && wire_type(f) != got.wire_type)
            return false;
        if (f && f->label == PROTOBUF_C_LABEL_REPEATED)
            counts[f - d->fields]++;
    }
    for (unsigned k = 0; k < d->n_fields; k++) {
        void *array = counts[k] ? take_memory(a, counts[k] * element_bytes(&d->fields[k])) : NULL;
        if (counts[k] && !array)
            return false;
        if (array)
            memcpy(member(m, d->fields[k].offset), &array, sizeof array);
    }
    return true;
}

static bool take_element(const field *f, ProtobufCAllocator *a, const d7__field *got, uint8_t *to) {
    uint32_t v32 = (uint32_t)got->value;
    ProtobufCBinaryData bytes = {.len = got->n_bytes};
    void *inner;
    switch (f->type) {
    case PROTOBUF_C_TYPE_UINT32:
        memcpy(to, &v32, sizeof v32);
        return true;
    case PROTOBUF_C_TYPE_UINT64:
        memcpy(to, &got->value, sizeof got->value);
        return true;
    case PROTOBUF_C_TYPE_BYTES:
        memcpy(&inner, to + offsetof(ProtobufCBinaryData, data), sizeof inner);
        give_memory(a, inner);
        bytes.data = bytes.len ? take_memory(a, bytes.len) : NULL;
        if (bytes.data)
            memcpy(bytes.data, got->bytes, bytes.len);
        if (bytes.data || !bytes.len)
            memcpy(to, &bytes, sizeof bytes);
        return bytes.data || !bytes.len;
    default:
        inner = protobuf_c_message_unpack(f->descriptor, a, got->n_bytes, got->bytes);
        memcpy(to, &inner, sizeof inner);
        return inner != NULL;
    }
}

static bool take_field(ProtobufCMessage *m, ProtobufCAllocator *a, const d7__field *got) {
    const field *f = find_field(m->descriptor, got);
    if (!f)
        return true;
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t n = count(m, f) + 1;
        bool taken = take_element(f, a, got, element(m, f, n - 1));
        memcpy(member(m, f->quantifier_offset), &n, sizeof n);
        return taken;
    }
    uint32_t there = f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF ? f->id : 1;
    if (f->type != PROTOBUF_C_TYPE_MESSAGE || f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        memcpy(member(m, f->quantifier_offset), &there, sizeof there);
    return take_element(f, a, got, element(m, f, 0));
}

ProtobufCMessage *protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                            ProtobufCAllocator *allocator, size_t len, const uint8_t *data) {
    ProtobufCMessage *m = take_memory(allocator, descriptor->sizeof_message);
    d7__cursor c = {data, data + len};
    if (!m)
        return NULL;
    descriptor->message_init(m);
    bool good = make_arrays(m, allocator, c);
    for (d7__field got; good && c.at < c.end;)
        good = d7__get_field(&c, &got) && take_field(m, allocator, &got);
    if (!good)
        protobuf_c_message_free_unpacked(m, allocator);
    return good ? m : NULL;
}

void protobuf_c_message_free_unpacked(ProtobufCMessage *message, ProtobufCAllocator *allocator) {
    for (unsigned k = 0; message && k < message->descriptor->n_fields; k++) {
        const field *f = &message->descriptor->fields[k];
        for (size_t i = 0; i < count(message, f); i++) {
            ProtobufCBinaryData bytes;
            if (f->type == PROTOBUF_C_TYPE_MESSAGE)
                protobuf_c_message_free_unpacked(pointer(element(message, f, i)), allocator);
            if (f->type != PROTOBUF_C_TYPE_BYTES)
                continue;
            memcpy(&bytes, element(message, f, i), sizeof bytes);
            give_memory(allocator, bytes.data);
        }
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            give_memory(allocator, pointer(member(message, f->offset)));
    }
    give_memory(allocator, message);
}
