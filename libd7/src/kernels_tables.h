/* Byte shuffles between varints and lanes of equal width, for the vector variants. Pure data.
 *
 * Two-byte lanes, eight of them: bit i of the index is set where the varint of lane i has two bytes.
 * Four-byte lanes, four of them: bits 2i and 2i+1 of the index are the length of lane i as D7__LENGTH_CODE has it. */
#ifndef D7_SRC_KERNELS_TABLES_H
#define D7_SRC_KERNELS_TABLES_H

#include <stdint.h>

/* A length of 1 to 4 bytes in two bits, from what is known of its bytes: are there a second, a third and a fourth? Lengths
 * 1, 2, 3, 4 become 0, 1, 3, 2: one exclusive-or, whether the answers are bits of masks or lanes of vectors. */
#define D7__LENGTH_CODE_LOW(second, fourth) ((second) ^ (fourth))
#define D7__LENGTH_CODE_HIGH(third) (third)

typedef uint8_t d7__shuffle[16];

/* From lanes to varints, end to end. What follows the last varint is arbitrary. */
extern const d7__shuffle d7__pack_2[256];
extern const d7__shuffle d7__pack_4[256];

/* For four varints, end to end: 128 where a byte is not its varint's last, else 0. And how many bytes they have. */
extern const d7__shuffle d7__marks_4[256];
extern const uint8_t d7__length_4[256];

/* From varints, end to end, to lanes; missing bytes become 0. */
extern const d7__shuffle d7__unpack_2[256];
extern const d7__shuffle d7__unpack_4[256];

#endif
