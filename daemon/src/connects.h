/* How often each address connects: at most so many a second, after a reserve of ten seconds' worth. IPv6 addresses count by
 * their first 64 bits. A few hundred addresses are remembered, those that connected lately; forgetting errs on the kind side.
 * Thread: the loop's. */
#ifndef PD_CONNECTS_H
#define PD_CONNECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { PD_CONNECTS_SETS = 128, PD_CONNECTS_WAYS = 4, PD_CONNECTS_RESERVE_S = 10 };

typedef struct pd_connects {
    struct {
        uint8_t address[8];
        uint64_t spent_ns; /* when all its connections will be paid for */
    } seen[PD_CONNECTS_SETS][PD_CONNECTS_WAYS];
} pd_connects;

/* Whether one more connection from there is within `per_s` (0: any number), and if so counts it. */
bool pd_connects_allow(pd_connects *connects, const struct sockaddr *from, uint64_t now_ns, uint32_t per_s);

#endif
