#include "inbuf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void pd_budget_init(pd_budget *budget, size_t total, size_t longest_message) {
    size_t longest = longest_message + WIRE_PREFIX_BYTES_MAX;
    *budget = (pd_budget){.left = total > longest ? total - longest : 0, .longest = longest};
}

static void budget_note(pd_budget *budget, size_t taken) {
    budget->used += taken;
    if (budget->used > budget->high_water)
        budget->high_water = budget->used;
}

static void inbuf_give_back(pd_inbuf *in) {
    if (in->cap <= PD_INBUF_SMALL_BYTES)
        return;
    if (in->from_longest)
        in->budget->longest_in_use = false;
    else
        in->budget->left += in->cap;
    in->budget->used -= in->cap;
    in->from_longest = false;
}

int pd_inbuf_init(pd_inbuf *in, pd_budget *budget) {
    memset(in, 0, sizeof *in);
    in->data = malloc(PD_INBUF_SMALL_BYTES);
    if (!in->data)
        return -1;
    in->cap = PD_INBUF_SMALL_BYTES;
    in->budget = budget;
    return 0;
}

void pd_inbuf_free(pd_inbuf *in) {
    if (in->data)
        inbuf_give_back(in);
    free(in->data);
    memset(in, 0, sizeof *in);
}

/* Moves what is there into a buffer of another size. The caller has settled the budget for `cap`. */
static bool inbuf_move(pd_inbuf *in, size_t cap, bool from_longest) {
    uint8_t *data = malloc(cap);
    if (!data)
        return false;
    if (in->end > in->start)
        memcpy(data, in->data + in->start, in->end - in->start);
    free(in->data);
    inbuf_give_back(in);
    in->data = data;
    in->cap = cap;
    in->from_longest = from_longest;
    in->end -= in->start;
    in->start = 0;
    return true;
}

/* A buffer of `cap` bytes from the shared part, what this connection holds being given back. */
static bool inbuf_grow_shared(pd_inbuf *in, size_t cap, size_t keep) {
    pd_budget *budget = in->budget;
    if (budget->left < cap + keep)
        return false;
    budget->left -= cap;
    if (!inbuf_move(in, cap, false)) {
        budget->left += cap;
        return false;
    }
    budget_note(budget, cap);
    return true;
}

static bool inbuf_grow_longest(pd_inbuf *in) {
    pd_budget *budget = in->budget;
    if (budget->longest_in_use)
        return false;
    if (!inbuf_move(in, budget->longest, true))
        return false;
    budget->longest_in_use = true;
    budget_note(budget, budget->longest);
    return true;
}

/* Makes room for more of the message under way, or for larger reads where there is plenty of memory. Memory is taken
 * as the message comes, doubling: announcing a long one costs nobody anything. */
static bool inbuf_grow(pd_inbuf *in, bool first) {
    if (in->message > in->cap) {
        if (in->end - in->start < in->cap)
            return true;
        size_t cap = 2 * in->cap < PD_INBUF_FAST_BYTES ? (size_t)PD_INBUF_FAST_BYTES : 2 * in->cap;
        if (cap > in->message && in->message > PD_INBUF_FAST_BYTES)
            cap = in->message;
        if (inbuf_grow_shared(in, cap, 0))
            return true;
        return first && inbuf_grow_longest(in);
    }
    if (in->filled_all && in->cap < PD_INBUF_FAST_BYTES)
        (void)inbuf_grow_shared(in, PD_INBUF_FAST_BYTES, in->budget->left / 2);
    return true;
}

/* How much to read: to the end of the message under way, and on by whole messages like it. */
static size_t inbuf_read_size(const pd_inbuf *in) {
    size_t space = in->cap - in->end;
    size_t rest = in->message ? in->start + in->message - in->end : 0;
    size_t like = in->message ? in->message : in->last_message;
    if (!like || rest > space)
        return space;
    if (in->from_longest && rest)
        return rest; /* so that it is empty, and given back, when this message is done */
    size_t whole = rest + (space - rest) / like * like;
    return whole ? whole : space;
}

bool pd_inbuf_room(pd_inbuf *in, bool first, uint8_t **ret_at, size_t *ret_bytes) {
    if (in->start == in->end)
        in->start = in->end = 0;
    if (!inbuf_grow(in, first))
        return false;
    bool cramped =
        in->message ? in->start + in->message > in->cap : in->cap - in->end < WIRE_PREFIX_BYTES_MAX;
    if (cramped && in->start > 0) {
        memmove(in->data, in->data + in->start, in->end - in->start);
        in->end -= in->start;
        in->start = 0;
    }
    in->asked = inbuf_read_size(in);
    assert(in->asked > 0);
    *ret_at = in->data + in->end;
    *ret_bytes = in->asked;
    return true;
}

void pd_inbuf_filled(pd_inbuf *in, size_t n) {
    assert(n <= in->cap - in->end);
    in->end += n;
    in->filled_all = n == in->asked;
}

void pd_inbuf_consume(pd_inbuf *in, size_t n) {
    assert(n <= in->end - in->start);
    in->start += n;
    in->offset += n;
}

wire_status pd_inbuf_peek(pd_inbuf *in, size_t limit, const uint8_t **ret_message, uint64_t *ret_bytes) {
    size_t there = in->end - in->start;
    if (!in->message) {
        uint64_t length = 0;
        size_t used = 0;
        wire_status status = wire_prefix_get(in->data + in->start, there, limit, &length, &used);
        if (status == WIRE_LIMIT)
            *ret_bytes = length;
        if (status != WIRE_OK)
            return status;
        in->prefix = used;
        in->message = used + (size_t)length;
    }
    if (there < in->message)
        return WIRE_MORE;
    *ret_message = in->data + in->start + in->prefix;
    *ret_bytes = in->message - in->prefix;
    return WIRE_OK;
}

void pd_inbuf_next(pd_inbuf *in) {
    assert(in->message && in->end - in->start >= in->message);
    in->last_message = in->message;
    pd_inbuf_consume(in, in->message);
    in->message = 0;
    if (in->from_longest)
        pd_inbuf_relax(in);
}

bool pd_inbuf_relax(pd_inbuf *in) {
    if (in->cap <= PD_INBUF_SMALL_BYTES || in->end - in->start > PD_INBUF_SMALL_BYTES)
        return false;
    if (in->message > PD_INBUF_SMALL_BYTES)
        return false;
    in->filled_all = false;
    return inbuf_move(in, PD_INBUF_SMALL_BYTES, false);
}
