/* How messages lie on the stream: the preamble, then messages each preceded by its length as a varint.
 * docs/protocol.md, sections "Preamble" and "Framing". All functions are pure; any thread. */
#ifndef COMMON_WIRE_FRAME_H
#define COMMON_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

/* The versions of the protocol that this code speaks. */
enum { WIRE_VERSION_MIN = 1, WIRE_VERSION_MAX = 1 };

enum { WIRE_PREAMBLE_BYTES = 8, WIRE_PREFIX_BYTES_MAX = 10 };

/* The first message of a client may not be longer. */
enum { WIRE_HELLO_BYTES_MAX = 4096 };

/* A message is never longer than this, whatever a configuration says. */
#define WIRE_MESSAGE_BYTES_MAX (1024u * 1024 * 1024)

typedef enum wire_status {
    WIRE_OK = 0,
    WIRE_MORE = 1,       /* valid so far, bytes are missing */
    WIRE_MALFORMED = -1, /* will never become valid */
    WIRE_LIMIT = -2,     /* valid, but over a limit */
    WIRE_OTHER = -3      /* valid, but not what was asked for */
} wire_status;

/* Why a message was refused, and where. Owned by the caller; written only on failure. */
typedef struct wire_fault {
    size_t offset;  /* in the message, of the field that is wrong */
    char field[96]; /* its path: "open.datasets[2].name"; empty where none applies */
    char text[160]; /* the reason, one sentence without a full stop */
} wire_fault;

/* What the server answers to bytes that are not the preamble: one line of ASCII with its newline. */
extern const char wire_stray_answer[];

/* Writes "PHOTON" and the two versions. */
void wire_preamble_put(uint8_t out[WIRE_PREAMBLE_BYTES], uint8_t version_min, uint8_t version_max);

/* Reads a preamble from the first `n` bytes of a stream (n may be less or more than it takes).
 * Returns WIRE_OK and the versions; WIRE_MORE; WIRE_MALFORMED as soon as one byte is wrong, also when the
 * lower version is 0 or above the higher. */
wire_status wire_preamble_get(const uint8_t *bytes, size_t n, uint8_t *version_min, uint8_t *version_max);

/* The highest version that both ranges hold; 0 where they have none in common. */
uint8_t wire_version_choose(uint8_t min_a, uint8_t max_a, uint8_t min_b, uint8_t max_b);

/* Reads a message's length.
 * limit    the longest message that is allowed
 * Returns  WIRE_OK, the length (0 is possible) and the bytes that the prefix took; WIRE_MORE; WIRE_MALFORMED
 *          (no varint of 64 bits); WIRE_LIMIT, with *length set, as soon as the whole prefix is there */
wire_status wire_prefix_get(const uint8_t *bytes, size_t n, uint64_t limit, uint64_t *length, size_t *used);

/* Writes a length. Returns the bytes used. */
size_t wire_prefix_put(uint8_t out[WIRE_PREFIX_BYTES_MAX], uint64_t length);

#endif
