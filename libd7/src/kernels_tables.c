#include "kernels_tables.h"

/* clang-format off */

/* Packing: a tree over the lanes, the last lane outermost, so that lane 0 is the index's lowest digit. Each level puts
 * what belongs to its lane, one sequence for each length, before that of the lanes after it. */
#define P2_LANE0(...) {0, __VA_ARGS__}, {0, 1, __VA_ARGS__},
#define P2_LANE1(...) P2_LANE0(2, __VA_ARGS__) P2_LANE0(2, 3, __VA_ARGS__)
#define P2_LANE2(...) P2_LANE1(4, __VA_ARGS__) P2_LANE1(4, 5, __VA_ARGS__)
#define P2_LANE3(...) P2_LANE2(6, __VA_ARGS__) P2_LANE2(6, 7, __VA_ARGS__)
#define P2_LANE4(...) P2_LANE3(8, __VA_ARGS__) P2_LANE3(8, 9, __VA_ARGS__)
#define P2_LANE5(...) P2_LANE4(10, __VA_ARGS__) P2_LANE4(10, 11, __VA_ARGS__)
#define P2_LANE6(...) P2_LANE5(12, __VA_ARGS__) P2_LANE5(12, 13, __VA_ARGS__)

const d7__shuffle d7__pack_2[256] = {P2_LANE6(14) P2_LANE6(14, 15)};

/* Length codes 0, 1, 2, 3 are the lengths 1, 2, 4, 3. */
#define P4_LANE0(...)                                                                                        \
    {0, __VA_ARGS__}, {0, 1, __VA_ARGS__}, {0, 1, 2, 3, __VA_ARGS__}, {0, 1, 2, __VA_ARGS__},
#define P4_LANE1(...)                                                                                        \
    P4_LANE0(4, __VA_ARGS__)                                                                                 \
    P4_LANE0(4, 5, __VA_ARGS__) P4_LANE0(4, 5, 6, 7, __VA_ARGS__) P4_LANE0(4, 5, 6, __VA_ARGS__)
#define P4_LANE2(...)                                                                                        \
    P4_LANE1(8, __VA_ARGS__)                                                                                 \
    P4_LANE1(8, 9, __VA_ARGS__) P4_LANE1(8, 9, 10, 11, __VA_ARGS__) P4_LANE1(8, 9, 10, __VA_ARGS__)

const d7__shuffle d7__pack_4[256] = {P4_LANE2(12) P4_LANE2(12, 13) P4_LANE2(12, 13, 14, 15)
                                         P4_LANE2(12, 13, 14)};

#define M4_LANE0(...)                                                                                        \
    {0, __VA_ARGS__}, {128, 0, __VA_ARGS__}, {128, 128, 128, 0, __VA_ARGS__}, {128, 128, 0, __VA_ARGS__},
#define M4_LANE1(...)                                                                                        \
    M4_LANE0(0, __VA_ARGS__)                                                                                 \
    M4_LANE0(128, 0, __VA_ARGS__) M4_LANE0(128, 128, 128, 0, __VA_ARGS__) M4_LANE0(128, 128, 0, __VA_ARGS__)
#define M4_LANE2(...)                                                                                        \
    M4_LANE1(0, __VA_ARGS__)                                                                                 \
    M4_LANE1(128, 0, __VA_ARGS__) M4_LANE1(128, 128, 128, 0, __VA_ARGS__) M4_LANE1(128, 128, 0, __VA_ARGS__)

const d7__shuffle d7__marks_4[256] = {M4_LANE2(0) M4_LANE2(128, 0) M4_LANE2(128, 128, 128, 0)
                                          M4_LANE2(128, 128, 0)};

/* The other tables: an entry is an expression of its index m. */
#define EACH_4(f, m) f(m), f((m) + 1), f((m) + 2), f((m) + 3)
#define EACH_16(f, m) EACH_4(f, m), EACH_4(f, (m) + 4), EACH_4(f, (m) + 8), EACH_4(f, (m) + 12)
#define EACH_64(f, m) EACH_16(f, m), EACH_16(f, (m) + 16), EACH_16(f, (m) + 32), EACH_16(f, (m) + 48)
#define EACH_256(f) EACH_64(f, 0), EACH_64(f, 64), EACH_64(f, 128), EACH_64(f, 192)
#define BIT(m, i) ((m) >> (i)&1)
#define NONE 0x80

/* Where lane i starts: a byte for each lane before, and one more for those that have two. */
#define BELOW(m, i, j) ((j) < (i) && BIT(m, j))
#define START_2(m, i)                                                                                        \
    ((i) + BELOW(m, i, 0) + BELOW(m, i, 1) + BELOW(m, i, 2) + BELOW(m, i, 3) + BELOW(m, i, 4) +              \
     BELOW(m, i, 5) + BELOW(m, i, 6))
#define U2_LANE(m, i) START_2(m, i), BIT(m, i) ? START_2(m, i) + 1 : NONE
#define U2(m)                                                                                                \
    {                                                                                                        \
        U2_LANE(m, 0), U2_LANE(m, 1), U2_LANE(m, 2), U2_LANE(m, 3), U2_LANE(m, 4), U2_LANE(m, 5),            \
            U2_LANE(m, 6), U2_LANE(m, 7)                                                                     \
    }

const d7__shuffle d7__unpack_2[256] = {EACH_256(U2)};

#define LENGTH(m, i) (1 + (BIT(m, 2 * (i)) ^ BIT(m, 2 * (i) + 1)) + 2 * BIT(m, 2 * (i) + 1))
#define LENGTH_4(m) LENGTH(m, 0) + LENGTH(m, 1) + LENGTH(m, 2) + LENGTH(m, 3)

const uint8_t d7__length_4[256] = {EACH_256(LENGTH_4)};

#define START_4(m, i) (((i) > 0) * LENGTH(m, 0) + ((i) > 1) * LENGTH(m, 1) + ((i) > 2) * LENGTH(m, 2))
#define U4_BYTE(m, i, b) (b) < LENGTH(m, i) ? START_4(m, i) + (b) : NONE
#define U4_LANE(m, i) U4_BYTE(m, i, 0), U4_BYTE(m, i, 1), U4_BYTE(m, i, 2), U4_BYTE(m, i, 3)
#define U4(m)                                                                                                \
    { U4_LANE(m, 0), U4_LANE(m, 1), U4_LANE(m, 2), U4_LANE(m, 3) }

const d7__shuffle d7__unpack_4[256] = {EACH_256(U4)};
