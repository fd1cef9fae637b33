#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(void) {
    kill(getpid(), SIGKILL);
    pause();
}

/* Counts the call; whether the fault falls on it. */
static bool falls(test_faults *f) {
    f->calls++;
    if (f->at == 0 || (f->kind == TEST_FAIL_FOR_EVER ? f->calls < f->at : f->calls != f->at))
        return false;
    f->fired = true;
    return true;
}

/* A call that leaves the files as they are. A kill before it is one after the change before it. */
static bool hit_look(void *context) {
    test_faults *f = context;
    if (f->kind == TEST_KILL || !falls(f))
        return false;
    errno = f->os_errno;
    return true;
}

/* A call that changes files. Whether it fails. */
static bool hit(void *context) {
    test_faults *f = context;
    if (!falls(f))
        return false;
    if (f->kind == TEST_KILL)
        die();
    errno = f->os_errno;
    return true;
}

static int fault_open(void *x, int dirfd, const char *path, int flags, mode_t mode) {
    bool failed = flags & O_CREAT ? hit(x) : hit_look(x);
    return failed ? -1 : daf__system_io.open(NULL, dirfd, path, flags, mode);
}

static int fault_close(void *x, int fd) {
    bool failed = hit_look(x); /* the descriptor is gone all the same */
    int rc = daf__system_io.close(NULL, fd);
    if (failed)
        errno = ((test_faults *)x)->os_errno;
    return failed ? -1 : rc;
}

static size_t shorter(const test_faults *f, size_t bytes) {
    return f->short_counts && bytes > 3 ? 3 + bytes / 7 : bytes;
}

static ssize_t fault_pread(void *x, int fd, void *data, size_t bytes, off_t offset) {
    return hit_look(x) ? -1 : daf__system_io.pread(NULL, fd, data, shorter(x, bytes), offset);
}

static ssize_t fault_pwrite(void *x, int fd, const void *data, size_t bytes, off_t offset) {
    test_faults *f = x;
    if (hit(x))
        return -1;
    if (f->kind == TEST_KILL && falls(f)) {
        (void)daf__system_io.pwrite(NULL, fd, data, bytes / 2, offset);
        die();
    }
    return daf__system_io.pwrite(NULL, fd, data, shorter(x, bytes), offset);
}

static int fault_truncate(void *x, int fd, off_t bytes) {
    return hit(x) ? -1 : daf__system_io.truncate(NULL, fd, bytes);
}

static int fault_sync(void *x, int fd) {
    (void)fd; /* the tests need no disk */
    return hit_look(x) ? -1 : 0;
}

static int fault_rename(void *x, int dirfd, const char *from, const char *to) {
    return hit(x) ? -1 : daf__system_io.rename(NULL, dirfd, from, to);
}

static int fault_link(void *x, int dirfd, const char *from, const char *to) {
    return hit(x) ? -1 : daf__system_io.link(NULL, dirfd, from, to);
}

static int fault_link_from(void *x, int from_dirfd, const char *from, int dirfd, const char *to) {
    return hit(x) ? -1 : daf__system_io.link_from(NULL, from_dirfd, from, dirfd, to);
}

static int fault_unlink(void *x, int dirfd, const char *path, int flags) {
    return hit(x) ? -1 : daf__system_io.unlink(NULL, dirfd, path, flags);
}

static int fault_mkdir(void *x, int dirfd, const char *path, mode_t mode) {
    return hit(x) ? -1 : daf__system_io.mkdir(NULL, dirfd, path, mode);
}

daf_io test_faulty_io(test_faults *f) {
    return (daf_io){.context = f,
                    .open = fault_open,
                    .close = fault_close,
                    .pread = fault_pread,
                    .pwrite = fault_pwrite,
                    .truncate = fault_truncate,
                    .sync = fault_sync,
                    .rename = fault_rename,
                    .link = fault_link,
                    .link_from = fault_link_from,
                    .unlink = fault_unlink,
                    .mkdir = fault_mkdir};
}

/* The child's failure reaches the test through a pipe. */
static void run_child(int to_parent, unsigned n, test_act act, void *context) {
    test_faults f = {.kind = TEST_KILL, .at = n};
    daf_io io = test_faulty_io(&f);
    daf_error err = {0};
    int rc = act(context, &io, &err);
    if (rc && write(to_parent, err.text, strlen(err.text)) < 0)
        _exit(2);
    _exit(rc ? 1 : 0);
}

bool test_killed_at(unsigned n, test_act act, void *context) {
    int ends[2], status;
    char text[1100];
    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        run_child(ends[1], n, act, context);
    close(ends[1]);
    ssize_t bytes = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    text[bytes > 0 ? bytes : 0] = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child of call %u ended with status %x: %s", n, (unsigned)status, text);
    return false;
}
