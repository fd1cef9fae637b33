#include "out.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "framing.h"

uint64_t d7__out_framed(const d7__out *o) {
    return o->written + d7__out_pending(o);
}

size_t d7__out_pending(const d7__out *o) {
    return o->pending.n - o->taken;
}

int d7__out_reserve(d7__out *o, size_t n_entries, size_t bytes) {
    size_t each = d7__frame_bound(0);
    if (o->taken) {
        memmove(o->pending.data, o->pending.data + o->taken, d7__out_pending(o));
        o->pending.n -= o->taken;
        o->taken = 0;
    }
    if (o->sums && d7__sums_reserve(o->sums, n_entries) != 0)
        return D7_ERR_NOMEM;
    return d7__buffer_reserve(o->alloc, &o->pending, d7__frame_bound(bytes) + n_entries * each);
}

uint64_t d7__out_entry(d7__out *o, const uint8_t *entry, size_t bytes) {
    uint64_t at = d7__out_framed(o);
    o->pending.n += d7__frame(at, entry, bytes, o->pending.data + o->pending.n);
    if (o->sums)
        d7__sums_add(o->sums, d7__frame_begin(at), entry, bytes);
    return d7__frame_begin(at);
}

void d7__out_pad(d7__out *o) {
    size_t used = (size_t)(d7__out_framed(o) % D7_BLOCK_BYTES);
    if (used) {
        memset(o->pending.data + o->pending.n, 0, D7_BLOCK_BYTES - used);
        o->pending.n += D7_BLOCK_BYTES - used;
    }
}

static int out_failed(const d7__out *o, int64_t rc, d7_error *err) {
    int e = rc < 0 ? (int)-rc : EIO;
    bool full = e == ENOSPC || e == EDQUOT;
    return d7__fail(err, full ? D7_ERR_NOSPACE : D7_ERR_IO, e, o->written,
                    "%s: writing at byte %" PRIu64 " failed", o->path, o->written);
}

int d7__out_flush(d7__out *o, d7_error *err) {
    while (d7__out_pending(o) > 0) {
        int64_t n =
            o->io->pwrite(o->io->ctx, o->file, o->pending.data + o->taken, d7__out_pending(o), o->written);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return out_failed(o, n, err);
        o->taken += (size_t)n;
        o->written += (uint64_t)n;
    }
    o->pending.n = o->taken = 0;
    if (o->sums)
        d7__sums_flush(o->sums, false);
    return 0;
}
