#include "hook.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "log.h"

extern char **environ;

enum {
    HOOK_VARIABLES = 7,
    HOOK_TICK_MS = 100,
    HOOK_LINES_MAX = 200,
    HOOK_LINE_BYTES = 512,
    HOOK_END_MS = 2000
};

typedef struct hook_process {
    const pd_hook *hook;
    const char *name; /* of the file */
    char *variables[HOOK_VARIABLES];
    size_t n_variables;
    int out; /* of its pipe: what it writes */
    pid_t pid;
    char line[HOOK_LINE_BYTES];
    size_t n_line;
    unsigned n_lines;
} hook_process;

static uint64_t hook_now_ms(void) {
    return uv_hrtime() / 1000000;
}

/* ---- what it is told ---- */

static int hook_tell(hook_process *p, const char *key, const char *value) {
    if (asprintf(&p->variables[p->n_variables], "%s=%s", key, value) < 0)
        return -1;
    p->n_variables++;
    return 0;
}

static int hook_tell_place(hook_process *p, const pd_datadir *dir, const char *key, const char *name,
                           const char *suffix) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s%s", dir->path, name, suffix);
    return n > 0 && (size_t)n < sizeof path ? hook_tell(p, key, path) : -1;
}

static int hook_tell_certificate(hook_process *p, const pd_datadir *dir, const char *name) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s" PD_CERTIFICATE_SUFFIX, name);
    int fd = pd_datadir_open_file(dir, file, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fd == -ENOENT ? 0 : -1;
    json_t *json = json_loadfd(fd, JSON_DISABLE_EOF_CHECK, NULL);
    close(fd);
    const char *sha256 = json_string_value(json_object_get(json_object_get(json, "file"), "sha256"));
    int failed = hook_tell_place(p, dir, "PHOTOND_CERTIFICATE", name, PD_CERTIFICATE_SUFFIX);
    if (!failed && sha256)
        failed = hook_tell(p, "PHOTOND_SHA256", sha256);
    json_decref(json);
    return failed;
}

static int hook_tell_all(hook_process *p, const pd_datadir *dir, const char *name) {
    char run[PD_PART_NAME_BYTES + 1], part[24];
    snprintf(part, sizeof part, "%u", (unsigned)pd_datadir_name_part(name, run));
    if (hook_tell(p, "PHOTOND_NAME", name) != 0 || hook_tell(p, "PHOTOND_RUN", run) != 0 ||
        hook_tell(p, "PHOTOND_PART", part) != 0 ||
        hook_tell_place(p, dir, "PHOTOND_FILE", name, ".photons") != 0)
        return -1;
    const char *export = pd_datadir_has(dir, run, ".daf")        ? ".daf"
                         : pd_datadir_has(dir, run, ".daf.zarr") ? ".daf.zarr"
                                                                 : NULL;
    if (export && hook_tell_place(p, dir, "PHOTOND_EXPORT", run, export) != 0)
        return -1;
    return hook_tell_certificate(p, dir, name);
}

/* The daemon's environment and these. NULL: out of memory. Free. */
static char **hook_environment(const hook_process *p) {
    size_t n = 0;
    while (environ[n])
        n++;
    char **all = calloc(n + p->n_variables + 1, sizeof *all);
    if (!all)
        return NULL;
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "PHOTOND_", 8) != 0 && strncmp(environ[i], "NOTIFY_SOCKET=", 14) != 0)
            all[k++] = environ[i];
    memcpy(all + k, p->variables, p->n_variables * sizeof *all);
    return all;
}

/* ---- the process ---- */

static int hook_actions(posix_spawn_file_actions_t *actions, const pd_datadir *dir, int out) {
    return posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0) ||
           posix_spawn_file_actions_adddup2(actions, out, 1) ||
           posix_spawn_file_actions_adddup2(actions, out, 2) ||
           posix_spawn_file_actions_addfchdir_np(actions, dir->fd);
}

/* A process group of its own, which can be ended as one, and signals as a program expects them. */
static int hook_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    return posix_spawnattr_setflags(attributes,
                                    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF) ||
           posix_spawnattr_setpgroup(attributes, 0) || posix_spawnattr_setsigmask(attributes, &none) ||
           posix_spawnattr_setsigdefault(attributes, &all);
}

/* Returns 0 or an errno. */
static int hook_spawn(hook_process *p, const pd_datadir *dir, int out) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *const argv[] = {(char *)(uintptr_t)p->hook->program, NULL};
    char **environment = hook_environment(p);
    if (!environment)
        return ENOMEM;
    int failed = posix_spawn_file_actions_init(&actions);
    if (!failed) {
        failed = posix_spawnattr_init(&attributes);
        if (!failed) {
            failed = hook_actions(&actions, dir, out) || hook_attributes(&attributes)
                         ? ENOMEM
                         : posix_spawn(&p->pid, p->hook->program, &actions, &attributes, argv, environment);
            posix_spawnattr_destroy(&attributes);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    free(environment);
    return failed;
}

static void hook_say(hook_process *p) {
    p->line[p->n_line] = 0;
    if (p->n_line > 0 && p->n_lines < HOOK_LINES_MAX)
        pd_log(PD_LOG_INFO, "hook for %s: %s", p->name, p->line);
    else if (p->n_line > 0 && p->n_lines == HOOK_LINES_MAX)
        pd_log(PD_LOG_INFO, "hook for %s: (more is not shown)", p->name);
    p->n_lines += p->n_line > 0;
    p->n_line = 0;
}

/* Takes what it has written. Returns false at the end of its output. */
static bool hook_listen(hook_process *p, int timeout_ms) {
    struct pollfd wait = {.fd = p->out, .events = POLLIN};
    char bytes[4096];
    if (poll(&wait, 1, timeout_ms) <= 0)
        return true;
    ssize_t n = read(p->out, bytes, sizeof bytes);
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || p->n_line == sizeof p->line - 1)
            hook_say(p);
        if (bytes[i] != '\n')
            p->line[p->n_line++] = bytes[i];
    }
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static int hook_status(const hook_process *p, int status, pd_error *why) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (WIFEXITED(status))
        return pd_error_set(why, "%s ended with status %d", p->hook->program, WEXITSTATUS(status));
    return pd_error_set(why, "%s was ended by signal %d", p->hook->program, WTERMSIG(status));
}

/* Ends it and all that it has started: politely, then not. */
static void hook_end(hook_process *p, int *status) {
    uint64_t until = hook_now_ms() + HOOK_END_MS;
    kill(-p->pid, SIGTERM);
    while (waitpid(p->pid, status, WNOHANG) == 0 && hook_now_ms() < until)
        nanosleep(&(struct timespec){.tv_nsec = HOOK_TICK_MS * 1000000L}, NULL);
    kill(-p->pid, SIGKILL);
    while (waitpid(p->pid, status, 0) < 0 && errno == EINTR)
        ;
}

static int hook_wait(hook_process *p, pd_error *why) {
    uint64_t until = hook_now_ms() + p->hook->timeout_ms;
    int status = 0;
    bool open = true;
    for (;;) {
        if (open)
            open = hook_listen(p, HOOK_TICK_MS);
        else
            nanosleep(&(struct timespec){.tv_nsec = HOOK_TICK_MS * 1000000L}, NULL);
        pid_t ended = waitpid(p->pid, &status, WNOHANG);
        if (ended == p->pid)
            break;
        bool late = hook_now_ms() >= until;
        if (late || p->hook->stopping(p->hook->ctx)) {
            hook_end(p, &status);
            return pd_error_set(
                why, late ? "%s did not end in time, and was ended" : "%s was ended: photond stops",
                p->hook->program);
        }
    }
    for (int i = 0; open && i < HOOK_LINES_MAX && hook_listen(p, 0); i++)
        ;
    hook_say(p);
    return hook_status(p, status, why);
}

int pd_hook_run(const pd_hook *hook, const pd_datadir *dir, const char *name, pd_error *why) {
    hook_process p = {.hook = hook, .name = name};
    int ends[2];
    int failed = hook_tell_all(&p, dir, name);
    if (failed) {
        pd_error_set(why, "out of memory, or its certificate cannot be read");
    } else if (pipe2(ends, O_CLOEXEC) != 0) {
        failed = pd_error_set(why, "no pipe: %s", strerror(errno));
    } else {
        p.out = ends[0];
        int code = fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0 ? errno : hook_spawn(&p, dir, ends[1]);
        close(ends[1]);
        failed = code ? pd_error_set(why, "%s cannot be started: %s", hook->program, strerror(code))
                      : hook_wait(&p, why);
        close(ends[0]);
    }
    for (size_t i = 0; i < p.n_variables; i++)
        free(p.variables[i]);
    return failed;
}
