/* For tests: what code under test writes to a file descriptor. */
#ifndef TESTS_LIB_CAPTURE_H
#define TESTS_LIB_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct capture {
    int fd, kept;
    FILE *file;
    char text[65536]; /* after capture_end: what was written, cut to fit */
} capture;

static inline void capture_require(int good, const char *what) {
    if (!good) {
        perror(what);
        abort();
    }
}

/* From now on what is written to `fd` goes to a temporary file. */
static inline void capture_start(capture *c, int fd) {
    fflush(NULL);
    c->fd = fd;
    c->kept = dup(fd);
    c->file = tmpfile();
    capture_require(c->kept >= 0 && c->file && dup2(fileno(c->file), fd) == fd, "capture");
}

static inline void capture_end(capture *c) {
    fflush(NULL);
    capture_require(dup2(c->kept, c->fd) == c->fd, "capture");
    close(c->kept);
    rewind(c->file);
    size_t n = fread(c->text, 1, sizeof c->text - 1, c->file);
    c->text[n] = '\0';
    fclose(c->file);
}

#endif
