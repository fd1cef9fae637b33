#include "kernels_tables.h"

/* Packing: a tree over the lanes, the last lane outermost, so that lane 0 is the index's lowest digit. Each level puts
 * the bytes of its lane, one sequence for each length, before those of the lanes after it. */
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

/* Unpacking: an entry is an expression of its index m. */
#define NONE 0x80
#define BIT(m, i) ((m) >> (i)&1)
#define EACH_16(f, m)                                                                                        \
    f(m), f((m) + 1), f((m) + 2), f((m) + 3), f((m) + 4), f((m) + 5), f((m) + 6), f((m) + 7), f((m) + 8),    \
        f((m) + 9), f((m) + 10), f((m) + 11), f((m) + 12), f((m) + 13), f((m) + 14), f((m) + 15)
#define EACH_256(f)                                                                                          \
    EACH_16(f, 0), EACH_16(f, 16), EACH_16(f, 32), EACH_16(f, 48), EACH_16(f, 64), EACH_16(f, 80),           \
        EACH_16(f, 96), EACH_16(f, 112), EACH_16(f, 128), EACH_16(f, 144), EACH_16(f, 160), EACH_16(f, 176), \
        EACH_16(f, 192), EACH_16(f, 208), EACH_16(f, 224), EACH_16(f, 240)

/* Bits set below bit i: how many of the lanes before have a second byte. */
#define BELOW(m, i)                                                                                          \
    (((i) > 0 && BIT(m, 0)) + ((i) > 1 && BIT(m, 1)) + ((i) > 2 && BIT(m, 2)) + ((i) > 3 && BIT(m, 3)) +     \
     ((i) > 4 && BIT(m, 4)) + ((i) > 5 && BIT(m, 5)) + ((i) > 6 && BIT(m, 6)))
#define U2_LANE(m, i) (i) + BELOW(m, i), BIT(m, i) ? (i) + BELOW(m, i) + 1 : NONE
#define U2(m)                                                                                                \
    {                                                                                                        \
        U2_LANE(m, 0), U2_LANE(m, 1), U2_LANE(m, 2), U2_LANE(m, 3), U2_LANE(m, 4), U2_LANE(m, 5),            \
            U2_LANE(m, 6), U2_LANE(m, 7)                                                                     \
    }

const d7__shuffle d7__unpack_2[256] = {EACH_256(U2)};

#define LENGTH(m, i) (1 + (BIT(m, 2 * (i)) ^ BIT(m, 2 * (i) + 1)) + 2 * BIT(m, 2 * (i) + 1))
#define START(m, i)                                                                                          \
    (((i) > 0 ? LENGTH(m, 0) : 0) + ((i) > 1 ? LENGTH(m, 1) : 0) + ((i) > 2 ? LENGTH(m, 2) : 0))
#define U4_BYTE(m, i, b) (b) < LENGTH(m, i) ? START(m, i) + (b) : NONE
#define U4_LANE(m, i) U4_BYTE(m, i, 0), U4_BYTE(m, i, 1), U4_BYTE(m, i, 2), U4_BYTE(m, i, 3)
#define U4(m)                                                                                                \
    { U4_LANE(m, 0), U4_LANE(m, 1), U4_LANE(m, 2), U4_LANE(m, 3) }

const d7__shuffle d7__unpack_4[256] = {EACH_256(U4)};
