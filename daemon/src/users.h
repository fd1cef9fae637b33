/* Users and groups of this machine, as in "alice,1000,@lab,@100": who is at the other end of a Unix socket. */
#ifndef PD_USERS_H
#define PD_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "error.h"

enum { PD_USERS_MAX = 64 };

typedef struct pd_users {
    bool any; /* no list was given */
    size_t n_uids, n_gids;
    uid_t uids[PD_USERS_MAX];
    gid_t gids[PD_USERS_MAX];
} pd_users;

/* Reads a list; "" is anyone. Returns 0; -1 with err: a name that this machine does not know. */
PD_MUST_USE int pd_users_parse(pd_users *users, const char *text, pd_error *err);

/* Whether the process at the other end of a Unix socket, as it was when it connected, is one of them: by its user or one of
 * its groups. Root and the user that runs this process always are. */
bool pd_users_has_peer(const pd_users *users, int fd);

#endif
