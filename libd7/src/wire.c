#include "wire.h"

bool d7__get_varint(d7__cursor *c, uint64_t *ret_value) {
    uint64_t value = 0;
    const uint8_t *p = c->at;
    for (unsigned shift = 0; shift < 64 && p < c->end; shift += 7) {
        uint8_t byte = *p++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            c->at = p;
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool take(d7__cursor *c, uint64_t n, d7__field *f) {
    if (n > (uint64_t)(c->end - c->at))
        return false;
    f->bytes = c->at;
    f->n_bytes = (size_t)n;
    c->at += n;
    return true;
}

bool d7__get_field(d7__cursor *c, d7__field *f) {
    uint64_t tag, n;
    if (!d7__get_varint(c, &tag) || tag >> 3 == 0)
        return false;
    f->number = tag >> 3;
    f->wire_type = (unsigned)(tag & 7);
    switch (f->wire_type) {
    case D7__VARINT:
        f->bytes = c->at;
        if (!d7__get_varint(c, &f->value))
            return false;
        f->n_bytes = (size_t)(c->at - f->bytes);
        return true;
    case D7__FIXED64:
        return take(c, 8, f);
    case D7__FIXED32:
        return take(c, 4, f);
    case D7__BYTES:
        return d7__get_varint(c, &n) && take(c, n, f);
    default:
        return false;
    }
}
