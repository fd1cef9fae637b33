#include "users.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { USER_NAME_BYTES = 64, USER_GROUPS_MAX = 1024 };

static bool users_number(const char *text, unsigned long *ret) {
    char *end = NULL;
    errno = 0;
    *ret = strtoul(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == 0 && errno == 0 && *ret < UINT32_MAX;
}

static int users_add_group(pd_users *users, const char *name, pd_error *err) {
    unsigned long number = 0;
    if (!users_number(name, &number)) {
        const struct group *group = getgrnam(name);
        if (!group)
            return pd_error_set(err, "there is no group %s", name);
        number = group->gr_gid;
    }
    users->gids[users->n_gids++] = (gid_t)number;
    return 0;
}

static int users_add_user(pd_users *users, const char *name, pd_error *err) {
    unsigned long number = 0;
    if (!users_number(name, &number)) {
        const struct passwd *user = getpwnam(name);
        if (!user)
            return pd_error_set(err, "there is no user %s", name);
        number = user->pw_uid;
    }
    users->uids[users->n_uids++] = (uid_t)number;
    return 0;
}

int pd_users_parse(pd_users *users, const char *text, pd_error *err) {
    memset(users, 0, sizeof *users);
    users->any = *text == 0;
    for (const char *at = text; *at;) {
        char name[USER_NAME_BYTES];
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof name || (at[n] == ',' && at[n + 1] == 0))
            return pd_error_set(err, "\"%.100s\" is no list of users and @groups", text);
        memcpy(name, at, n);
        name[n] = 0;
        if (users->n_uids == PD_USERS_MAX || users->n_gids == PD_USERS_MAX)
            return pd_error_set(err, "more than %d users or groups", PD_USERS_MAX);
        int failed = *name == '@' ? users_add_group(users, name + 1, err) : users_add_user(users, name, err);
        if (failed)
            return -1;
        at += n + (at[n] == ',');
    }
    return 0;
}

static bool users_has_group(const pd_users *users, gid_t gid) {
    for (size_t i = 0; i < users->n_gids; i++)
        if (users->gids[i] == gid)
            return true;
    return false;
}

static bool users_has_groups_of(const pd_users *users, int fd) {
    gid_t groups[USER_GROUPS_MAX];
    socklen_t bytes = sizeof groups;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) != 0)
        return false;
    for (size_t i = 0; i < bytes / sizeof *groups; i++)
        if (users_has_group(users, groups[i]))
            return true;
    return false;
}

bool pd_users_has_peer(const pd_users *users, int fd) {
    struct ucred who;
    socklen_t bytes = sizeof who;
    if (users->any)
        return true;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0)
        return false;
    if (who.uid == 0 || who.uid == geteuid())
        return true;
    for (size_t i = 0; i < users->n_uids; i++)
        if (users->uids[i] == who.uid)
            return true;
    return users_has_group(users, who.gid) || (users->n_gids > 0 && users_has_groups_of(users, fd));
}
