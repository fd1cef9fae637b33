/* Pages as they are in a file: their serialised entries, unknown fields included, for copies that keep them. */
#include <inttypes.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "reader.h"

int d7_reader_page_entry(d7_reader *r, uint32_t dataset_id, uint64_t page, const uint8_t **ret_entry,
                         size_t *ret_bytes, d7_error *err) {
    d7_page_info info;
    d7__found found;
    d7__entry entry;
    d7_error reason;
    uint32_t id = 0;
    if (d7_reader_page(r, dataset_id, page, &info) != 0)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: dataset %" PRIu32 " has no page %" PRIu64,
                        r->source.path, dataset_id, page);
    int rc = d7__entry_at(&r->framing, info.offset, &found, &entry, err);
    if (rc != 0)
        return rc;
    const char *why = NULL;
    if (found != D7__FOUND_ENTRY)
        why = found == D7__FOUND_BAD ? entry.reason : "the file ends inside it";
    else if (d7_page_count(r->header.datasets[dataset_id].type, entry.data, entry.bytes, &id, NULL, &reason))
        why = reason.text;
    else if (id != dataset_id)
        why = "it is of another dataset";
    if (why)
        return d7__fail(err, D7_ERR_CORRUPT, 0, info.offset,
                        "%s: page %" PRIu64 " of dataset %s at byte %" PRIu64 " is damaged: %s",
                        r->source.path, page, r->header.datasets[dataset_id].name, info.offset, why);
    *ret_entry = entry.data;
    *ret_bytes = entry.bytes;
    return 0;
}

/* Fields of a Data message but the dataset's number, as they are. Returns their length; SIZE_MAX: malformed. */
static size_t copy_fields(d7__cursor body, uint8_t *out) {
    size_t n = 0;
    while (body.at < body.end) {
        const uint8_t *from = body.at;
        d7__field f;
        if (!d7__get_field(&body, &f))
            return SIZE_MAX;
        if (f.number == 1)
            continue;
        if (out)
            memcpy(out + n, from, (size_t)(body.at - from));
        n += (size_t)(body.at - from);
    }
    return n;
}

int d7_page_relabel(const void *entry, size_t bytes, uint32_t dataset_id, void *out, size_t cap,
                    size_t *ret_bytes) {
    d7__kind kind;
    d7__cursor body;
    if (!entry || !d7__entry_kind(entry, bytes, &kind, &body))
        return D7_ERR_CORRUPT;
    size_t rest = kind == D7__KIND_DATA ? copy_fields(body, NULL) : SIZE_MAX;
    if (rest == SIZE_MAX)
        return D7_ERR_CORRUPT;
    size_t body_bytes = 1 + d7__varint_bytes(dataset_id) + rest;
    size_t needed = 1 + d7__varint_bytes(body_bytes) + body_bytes;
    if (needed > D7_ENTRY_BYTES_MAX || needed > cap)
        return D7_ERR_LIMIT;
    uint8_t *p = out;
    *p++ = D7__TAG(D7__KIND_DATA, D7__BYTES);
    p = d7__put_varint(p, body_bytes);
    *p++ = D7__TAG(1, D7__VARINT);
    p = d7__put_varint(p, dataset_id);
    copy_fields(body, p);
    *ret_bytes = needed;
    return 0;
}
