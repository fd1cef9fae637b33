/* Loaded before a program (LD_PRELOAD), gives it a disk that hangs and a wall clock that is wrong, as the files of the folder
 * in PHOTOND_FAULTS say at each call:
 *
 *   hang    while it is there, fdatasync() and fsync() do not return
 *   clock   seconds that CLOCK_REALTIME and time() are ahead, or behind
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int fdatasync(int fd);
int fsync(int fd);

static int fault_open(const char *name) {
    char path[512];
    const char *folder = getenv("PHOTOND_FAULTS");
    if (!folder)
        return -1;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void fault_hang(void) {
    for (int fd; (fd = fault_open("hang")) >= 0;) {
        close(fd);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

static long fault_clock_s(void) {
    char text[32] = "";
    int fd = fault_open("clock");
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    fault_hang();
    return real(fd);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    fault_hang();
    return real(fd);
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, ret);
    if (code == 0 && clock == CLOCK_REALTIME)
        ret->tv_sec += fault_clock_s();
    return code;
}

time_t time(time_t *ret) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
