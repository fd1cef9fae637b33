/* What a connection has received: bytes in, whole messages out, in place.
 *
 * A message is handed out where it was received; nothing is moved but, at most, the part of one message
 * that a read cut off and that has no room behind it. Reads are sized to end where a message ends (of
 * the message under way, or, before the next one's length is known, as long as the last one), so that a
 * producer whose messages are alike has none of its bytes moved.
 *
 * Memory. Every connection has a small buffer. What is more comes from a budget that all connections
 * share: a larger buffer where there is plenty (it makes reads fewer), and room for a long message as it
 * comes, doubling. The budget keeps room for one longest message apart, for the one that has waited
 * longest: so someone always gets on. (Who holds memory that others wait for and sends nothing is the
 * server's to end.)
 *
 * Thread: the loop's. Nothing here does input or output.
 */
#ifndef PD_INBUF_H
#define PD_INBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/frame.h"

enum { PD_INBUF_SMALL_BYTES = 16384, PD_INBUF_FAST_BYTES = 262144 };

typedef struct pd_budget {
    size_t left;         /* of the shared part */
    size_t longest;      /* a message with its length: the part kept apart */
    bool longest_in_use; /* by one connection */
    size_t used;         /* both parts, now */
    size_t high_water;
} pd_budget;

/* total: both parts; at least `longest_message` + WIRE_PREFIX_BYTES_MAX. */
void pd_budget_init(pd_budget *budget, size_t total, size_t longest_message);

typedef struct pd_inbuf {
    uint8_t *data; /* [cap] */
    size_t cap;
    size_t start, end;   /* what is there and not consumed: data[start .. end) */
    uint64_t offset;     /* in the stream, of data[start] */
    size_t message;      /* bytes of the message at start with its prefix; 0: not known yet */
    size_t prefix;       /* bytes of its prefix */
    size_t last_message; /* bytes of the one before */
    size_t asked;        /* room given for the read under way */
    bool filled_all;     /* the last read filled all it was given */
    bool from_longest;   /* the buffer is the part kept apart */
    pd_budget *budget;
} pd_inbuf;

/* Returns 0, or -1 when out of memory. */
int pd_inbuf_init(pd_inbuf *in, pd_budget *budget);
void pd_inbuf_free(pd_inbuf *in);

/* Where the next bytes go. To be asked for only while the message at the start is not whole.
 *  first   the connection is the one that has waited longest: it may use the part kept apart
 *  Returns false when the budget has no room for the message under way: read no more, and ask again when
 *  others have
 *          given back (pd_inbuf_relax(), pd_inbuf_free()); or when out of memory, which is the same */
bool pd_inbuf_room(pd_inbuf *in, bool first, uint8_t **ret_at, size_t *ret_bytes);

/* n bytes have come. */
void pd_inbuf_filled(pd_inbuf *in, size_t n);

/* Bytes that are there: for what is not a message (the preamble). */
static inline const uint8_t *pd_inbuf_bytes(const pd_inbuf *in, size_t *ret_n) {
    *ret_n = in->end - in->start;
    return in->data + in->start;
}
void pd_inbuf_consume(pd_inbuf *in, size_t n);

/* The message at the start, when it is whole. It stays until pd_inbuf_next(), and may be asked for again.
 *  limit   the longest that is allowed
 *  Returns WIRE_OK; WIRE_MORE; WIRE_MALFORMED (no length); WIRE_LIMIT, *ret_bytes being the length asked
 *  for
 *          (at most UINT64_MAX) */
wire_status pd_inbuf_peek(pd_inbuf *in, size_t limit, const uint8_t **ret_message, uint64_t *ret_bytes);

/* Done with the message that was peeked at. */
void pd_inbuf_next(pd_inbuf *in);

/* Gives back what an idle connection, or one of many that wait, does not need. Returns true when it gave
 * something.
 */
bool pd_inbuf_relax(pd_inbuf *in);

#endif
