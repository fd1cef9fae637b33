#include "connects.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

/* IPv4 as ::ffff:a.b.c.d is the same address. */
static void connects_key(const struct sockaddr *from, uint8_t key[8]) {
    memset(key, 0, 8);
    if (from->sa_family == AF_INET) {
        memcpy(key, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        return;
    }
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(six))
        memcpy(key, six->s6_addr + 12, 4);
    else
        memcpy(key, six->s6_addr, 8);
}

static size_t connects_set(const uint8_t key[8]) {
    uint64_t hash = 0;
    for (int i = 0; i < 8; i++)
        hash = (hash ^ key[i]) * UINT64_C(0x100000001b3) + 0x9e37;
    return (size_t)(hash >> 20) % PD_CONNECTS_SETS;
}

bool pd_connects_allow(pd_connects *connects, const struct sockaddr *from, uint64_t now_ns, uint32_t per_s) {
    uint8_t key[8];
    if (per_s == 0 || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
        return true;
    connects_key(from, key);
    size_t set = connects_set(key), way = 0;
    for (size_t i = 0; i < PD_CONNECTS_WAYS; i++) {
        if (memcmp(connects->seen[set][i].address, key, 8) == 0) {
            way = i;
            break;
        }
        if (connects->seen[set][i].spent_ns < connects->seen[set][way].spent_ns)
            way = i;
    }
    uint64_t cost = 1000000000u / per_s, spent = connects->seen[set][way].spent_ns;
    if (memcmp(connects->seen[set][way].address, key, 8) != 0 || spent < now_ns)
        spent = now_ns;
    if (spent + cost > now_ns + PD_CONNECTS_RESERVE_S * UINT64_C(1000000000))
        return false;
    memcpy(connects->seen[set][way].address, key, 8);
    connects->seen[set][way].spent_ns = spent + cost;
    return true;
}
