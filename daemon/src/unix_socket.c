#include "unix_socket.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int unix_address(struct sockaddr_un *to, const char *path, pd_error *err) {
    size_t n = strlen(path);
    memset(to, 0, sizeof *to);
    to->sun_family = AF_UNIX;
    if (n == 0 || n >= sizeof to->sun_path)
        return pd_error_set(err, "unix:%s: the path must have 1 to %zu bytes", path, sizeof to->sun_path - 1);
    memcpy(to->sun_path, path, n + 1);
    return 0;
}

static int unix_fail(const char *path, const char *what, pd_error *err) {
    return pd_error_set(err, "unix:%s: %s: %s", path, what, strerror(errno));
}

/* Makes the folder of the path when only that is missing. */
static void unix_make_folder(const char *path) {
    char folder[sizeof((struct sockaddr_un *)0)->sun_path];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    (void)mkdir(folder, 0755); /* a failure shows at the bind */
}

/* Removes a socket that nobody listens to. */
static int unix_remove_stale(const struct sockaddr_un *address, pd_error *err) {
    const char *path = address->sun_path;
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? 0 : unix_fail(path, "cannot be looked at", err);
    if (!S_ISSOCK(st.st_mode))
        return pd_error_set(err, "unix:%s: is there and is no socket", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return unix_fail(path, "no socket can be made", err);
    int code = connect(fd, (const struct sockaddr *)address, sizeof *address);
    int why = code == 0 ? 0 : errno;
    close(fd);
    if (why == 0 || why == EAGAIN || why == EINPROGRESS)
        return pd_error_set(err, "unix:%s: another program listens there", path);
    errno = why;
    if (why != ECONNREFUSED && why != ENOENT)
        return unix_fail(path, "cannot be tried", err);
    return unlink(path) == 0 || errno == ENOENT
               ? 0
               : unix_fail(path, "the socket of a dead program cannot be removed", err);
}

/* Nobody can connect before the listen, and by then mode and group are right. */
static int unix_bind(int fd, const struct sockaddr_un *address, unsigned mode, int64_t gid, pd_error *err) {
    const char *path = address->sun_path;
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0)
        return unix_fail(path, "cannot be bound", err);
    const char *what = NULL;
    if (gid >= 0 && lchown(path, (uid_t)-1, (gid_t)gid) != 0)
        what = "cannot be given to its group";
    else if (chmod(path, mode) != 0)
        what = "cannot be given its mode";
    else if (listen(fd, SOMAXCONN) != 0)
        what = "cannot be listened at";
    if (!what)
        return 0;
    unix_fail(path, what, err);
    unlink(path);
    return -1;
}

int pd_unix_listen(const char *path, unsigned mode, int64_t gid, pd_error *err) {
    struct sockaddr_un address;
    if (unix_address(&address, path, err) != 0)
        return -1;
    unix_make_folder(path);
    if (unix_remove_stale(&address, err) != 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return unix_fail(path, "no socket can be made", err);
    if (unix_bind(fd, &address, mode, gid, err) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

int pd_unix_connect(const char *path, pd_error *err) {
    struct sockaddr_un address;
    if (unix_address(&address, path, err) != 0)
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return unix_fail(path, "no socket can be made", err);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    unix_fail(path, "cannot be reached", err);
    close(fd);
    return -1;
}
