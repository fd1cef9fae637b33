/* Loaded before a program (LD_PRELOAD), gives it a disk that hangs, lags or fails and a wall clock that is wrong, as the files of the
 * folder in PHOTOND_FAULTS say at each call:
 *
 *   hang       while it is there, fdatasync() and fsync() do not return
 *   stall      while it is there, pwrite() does not return
 *   sync_ms    so long fdatasync() takes, at least
 *   pwrite     the errno with which every pwrite() fails
 *   fdatasync  the errno with which every fdatasync() fails
 *   ..._once   the same two, but one call fails: the next, or as many later as the number has thousands
 *   partial    while it is there, pread() and pwrite() are interrupted (EINTR) every second time, and do but a part of what they were
 *              asked for; fdatasync() is interrupted every second time
 *   loop       while it is there, epoll_wait() and epoll_pwait() do not return: the loop stands still
 *   only       hang and stall concern only files whose path has the text of this one in it
 *   clock      seconds that CLOCK_REALTIME and time() are ahead, or behind
 *
 * A fault that was met leaves a file of its name and ".met". */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int fd);
int fsync(int fd);
ssize_t pread64(int fd, void *buffer, size_t bytes, off64_t offset);
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset);

static int fault_open(const char *name, const char *suffix, int flags) {
    char path[512];
    const char *folder = getenv("PHOTOND_FAULTS");
    if (!folder)
        return -1;
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    return open(path, flags | O_CLOEXEC, 0600);
}

static void fault_sleep(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* The number in a file; 0: there is none, or no file. */
static long fault_number(const char *name) {
    char text[32] = "";
    int fd = fault_open(name, "", O_RDONLY);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

static void fault_met(const char *name) {
    int fd = fault_open(name, ".met", O_WRONLY | O_CREAT);
    if (fd >= 0)
        close(fd);
}

/* Whether `only` leaves this file out. */
static int fault_spares(int of) {
    char text[256] = "", link[64], path[512] = "";
    int fd = fault_open("only", "", O_RDONLY);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    snprintf(link, sizeof link, "/proc/self/fd/%d", of);
    return n > 0 && readlink(link, path, sizeof path - 1) > 0 && !strstr(path, text);
}

static void fault_wait(const char *name, int of) {
    for (int fd; !(of >= 0 && fault_spares(of)) && (fd = fault_open(name, "", O_RDONLY)) >= 0;) {
        close(fd);
        fault_met(name);
        fault_sleep(20);
    }
}

/* Whether a call fails; errno says by what. */
static int fault_fails(const char *name) {
    long code = fault_number(name);
    if (!code)
        return 0;
    fault_met(name);
    errno = (int)code;
    return 1;
}

static void fault_later(const char *path, long code) {
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd >= 0) {
        dprintf(fd, "%ld", code);
        close(fd);
    }
}

/* The same, once: of all threads that call one takes it. */
static int fault_fails_once(const char *name) {
    char path[512];
    long code = fault_number(name);
    if (!code || snprintf(path, sizeof path, "%s/%s", getenv("PHOTOND_FAULTS"), name) >= (int)sizeof path)
        return 0;
    if (code >= 1000) {
        fault_later(path, code - 1000);
        return 0;
    }
    if (unlink(path) != 0)
        return 0;
    fault_met(name);
    errno = (int)code;
    return 1;
}

static int fault_is_partial(void) {
    int fd = fault_open("partial", "", O_RDONLY);
    if (fd < 0)
        return 0;
    close(fd);
    fault_met("partial");
    return 1;
}

static int fault_interrupts(void) {
    static atomic_uint calls;
    if (atomic_fetch_add(&calls, 1) % 2)
        return 0;
    errno = EINTR;
    return 1;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    fault_wait("hang", fd);
    fault_sleep(fault_number("sync_ms"));
    if (fault_fails("fdatasync") || fault_fails_once("fdatasync_once") ||
        (fault_is_partial() && fault_interrupts()))
        return -1;
    return real(fd);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    fault_wait("hang", fd);
    return real(fd);
}

ssize_t pread64(int fd, void *buffer, size_t bytes, off64_t offset) {
    static ssize_t (*real)(int, void *, size_t, off64_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pread64");
    if (!fault_is_partial())
        return real(fd, buffer, bytes, offset);
    return fault_interrupts() ? -1 : real(fd, buffer, bytes > 1 ? bytes / 2 + 1 : bytes, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pwrite64");
    fault_wait("stall", fd);
    if (fault_fails("pwrite") || fault_fails_once("pwrite_once"))
        return -1;
    if (!fault_is_partial())
        return real(fd, data, bytes, offset);
    return fault_interrupts() ? -1 : real(fd, data, bytes > 1 ? bytes / 2 + 1 : bytes, offset);
}

int epoll_wait(int fd, struct epoll_event *events, int most, int ms) {
    static int (*real)(int, struct epoll_event *, int, int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
    fault_wait("loop", -1);
    return real(fd, events, most, ms);
}

int epoll_pwait(int fd, struct epoll_event *events, int most, int ms, const sigset_t *signals) {
    static int (*real)(int, struct epoll_event *, int, int, const sigset_t *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "epoll_pwait");
    fault_wait("loop", -1);
    return real(fd, events, most, ms, signals);
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, ret);
    if (code == 0 && clock == CLOCK_REALTIME)
        ret->tv_sec += fault_number("clock");
    return code;
}

time_t time(time_t *ret) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
