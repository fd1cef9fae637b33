/* Where a rehearsal takes place: a folder in the data folder, one for the sockets, and the daemon, a process of its own. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/output.h"
#include "config_keys.h"
#include "daemon.h"
#include "rehearse_private.h"
#include "tree.h"
#include "unix_socket.h"

enum {
    PLACE_START_S = 180, /* for the daemon to be ready, and to end */
    PLACE_POLL_MS = 20,
    PLACE_ANSWER_BYTES = 1 << 20,
    PLACE_STALE_S = 60
};

#define PLACE_HIDDEN ".photond-rehearsal."
#define PLACE_SOCKETS "/tmp/photond-rehearsal."
#define PLACE_LINK "sockets"

/* ---- folders ---- */

/* The folder of its sockets, which a link in it names. */
static void folder_clear_sockets(int fd) {
    char path[64];
    pd_error ignored;
    ssize_t n = readlinkat(fd, PLACE_LINK, path, sizeof path - 1);
    path[n > 0 ? (size_t)n : 0] = 0;
    if (strncmp(path, PLACE_SOCKETS, strlen(PLACE_SOCKETS)) == 0 &&
        !strchr(path + strlen(PLACE_SOCKETS), '/'))
        (void)!pd_tree_remove(AT_FDCWD, path, &ignored);
}

/* One that a rehearsal left which was killed: nobody holds it. */
static void folder_clear(const rehearsal *r, const char *name) {
    struct stat there;
    pd_error ignored;
    int fd = openat(r->data_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    if (fstat(fd, &there) == 0 && time(NULL) - there.st_mtime > PLACE_STALE_S &&
        flock(fd, LOCK_EX | LOCK_NB) == 0) {
        folder_clear_sockets(fd);
        (void)!pd_tree_remove(r->data_fd, name, &ignored);
    }
    close(fd);
}

static int folder_is_left(const struct dirent *entry) {
    return strncmp(entry->d_name, PLACE_HIDDEN, strlen(PLACE_HIDDEN)) == 0;
}

static void folders_clear(const rehearsal *r) {
    struct dirent **entries = NULL;
    int n = scandir(r->config.data_dir, &entries, folder_is_left, NULL);
    for (int i = 0; i < n; i++) {
        folder_clear(r, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
}

static bool folder_is_shared(const rehearsal *r) {
    int fd = openat(r->data_fd, ".photond.lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return held;
}

int pd_rehearse__place(rehearsal *r) {
    const char *data = r->config.data_dir;
    r->data_fd = open(data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->data_fd < 0)
        return pd_rehearse__fail("%s: the data folder cannot be opened: %s", data, strerror(errno));
    folders_clear(r);
    r->shared = folder_is_shared(r);
    int n = snprintf(r->folder, sizeof r->folder, "%s/" PLACE_HIDDEN "XXXXXX", data);
    if (n < 0 || (size_t)n >= sizeof r->folder || !mkdtemp(r->folder)) {
        r->folder[0] = 0;
        return pd_rehearse__fail("%s: no folder can be made in it: %s", data, strerror(errno));
    }
    snprintf(r->hidden, sizeof r->hidden, "%s", strrchr(r->folder, '/') + 1);
    r->lock_fd = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->lock_fd < 0 || flock(r->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return pd_rehearse__fail("%s: cannot be locked: %s", r->folder, strerror(errno));
    snprintf(r->sockets, sizeof r->sockets, PLACE_SOCKETS "XXXXXX");
    if (!mkdtemp(r->sockets) || symlinkat(r->sockets, r->lock_fd, PLACE_LINK) != 0) {
        r->sockets[0] = 0;
        return pd_rehearse__fail("/tmp: no folder for the sockets can be made in it: %s", strerror(errno));
    }
    return 0;
}

void pd_rehearse__place_remove(rehearsal *r) {
    pd_error why;
    if (r->sockets[0] && pd_tree_remove(AT_FDCWD, r->sockets, &why) != 0)
        pd_rehearse__fail("%s", why.text);
    if (r->folder[0] && pd_tree_remove(r->data_fd, r->hidden, &why) != 0)
        pd_rehearse__fail("%s/%s", r->config.data_dir, why.text);
    if (r->lock_fd >= 0)
        close(r->lock_fd);
    if (r->data_fd >= 0)
        close(r->data_fd);
}

/* ---- the daemon ---- */

void pd_rehearse__socket(const rehearsal *r, const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", r->sockets, name);
}

static int daemon_set(pd_config *config, const char *key, const char *value, pd_error *err) {
    return pd_config_key_set(pd_config_key_by_path(key), config, value, true, err);
}

/* As configured, but in the rehearsal's folder, for us alone. */
static int daemon_configure(const rehearsal *r, pd_config *config, pd_error *err) {
    static const char *const without[] = {"send_users",    "control_users",   "view_users",
                                          "tokens_file",   "tls_certificate", "tls_key",
                                          "tls_client_ca", "tls_client_crl"};
    char listen[160], control[160], ready[128], path[128];
    int failed = 0;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        failed |= daemon_set(config, without[i], "", err);
    pd_rehearse__socket(r, "ingest", path);
    snprintf(listen, sizeof listen, "unix:%s", path);
    pd_rehearse__socket(r, "control", path);
    snprintf(control, sizeof control, "unix:%s", path);
    pd_rehearse__socket(r, "ready", ready);
    pd_config_key_clear(pd_config_key_by_path("volumes"), config);
    failed |= daemon_set(config, "data_dir", r->folder, err) || daemon_set(config, "listen", listen, err) ||
              daemon_set(config, "control", control, err) || daemon_set(config, "ready_file", ready, err) ||
              daemon_set(config, "log_level", "warning", err);
    return failed ? -1 : pd_config_check(config, err);
}

/* In the child. */
static _Noreturn void daemon_be(rehearsal *r, pid_t parent) {
    pd_error err = {""};
    char *argv[] = {(char *)(uintptr_t) "photond", NULL};
    setpgid(0, 0); /* Ctrl-C is for the parent, which then ends this one */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    unsetenv("NOTIFY_SOCKET"); /* what a service manager gave is not for it */
    unsetenv("LISTEN_PID");
    if (getppid() != parent)
        _exit(CLI_USAGE);
    if (daemon_configure(r, &r->config, &err) != 0)
        _exit(pd_rehearse__fail("%s", err.text));
    _exit(pd_daemon_run(&r->config, 1, argv));
}

static bool daemon_ended(rehearsal *r) {
    int status;
    if (r->daemon > 0 && waitpid(r->daemon, &status, WNOHANG) == r->daemon)
        r->daemon = 0;
    return r->daemon == 0;
}

int pd_rehearse__daemon(rehearsal *r) {
    char ready[128];
    struct stat there;
    double deadline = pd_rehearse__now() + PLACE_START_S;
    pid_t self = getpid();
    fflush(NULL);
    r->daemon = fork();
    if (r->daemon == 0)
        daemon_be(r, self);
    if (r->daemon < 0) {
        r->daemon = 0;
        return pd_rehearse__fail("no process can be made: %s", strerror(errno));
    }
    pd_rehearse__socket(r, "ready", ready);
    while (stat(ready, &there) != 0 || there.st_size == 0) {
        if (pd_rehearse__stopped)
            return CLI_USAGE;
        if (daemon_ended(r) || pd_rehearse__now() > deadline)
            return pd_rehearse__fail("the daemon of the rehearsal did not start");
        pd_rehearse__sleep(PLACE_POLL_MS / 1e3);
    }
    return 0;
}

void pd_rehearse__daemon_end(rehearsal *r) {
    double deadline = pd_rehearse__now() + PLACE_START_S;
    if (!daemon_ended(r))
        kill(r->daemon, SIGTERM);
    while (!daemon_ended(r)) {
        if (pd_rehearse__now() > deadline)
            kill(r->daemon, SIGKILL);
        pd_rehearse__sleep(PLACE_POLL_MS / 1e3);
    }
}

/* Its status; NULL: it does not answer. */
json_t *pd_rehearse__status(const rehearsal *r) {
    static const char request[] = "{\"command\": \"status\"}\n";
    char path[128], *answer = malloc(PLACE_ANSWER_BYTES);
    size_t n = 0;
    pd_rehearse__socket(r, "control", path);
    int fd = answer ? pd_unix_connect(path, NULL) : -1;
    if (fd >= 0 && write(fd, request, sizeof request - 1) == (ssize_t)sizeof request - 1)
        for (ssize_t got = 1; got > 0 && n < PLACE_ANSWER_BYTES && !memchr(answer, '\n', n);
             n += got > 0 ? (size_t)got : 0)
            got = read(fd, answer + n, PLACE_ANSWER_BYTES - n);
    if (fd >= 0)
        close(fd);
    json_t *json = n ? json_loadb(answer, n, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    free(answer);
    return json;
}
