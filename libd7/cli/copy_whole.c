#include "copy_whole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "result.h"

enum { PIECE_BYTES = 1 << 20 };

typedef struct whole {
    const command *self;
    const char *from, *name;
    int in, out;
    uint64_t bytes;
    cli_progress *bar;
} whole;

static int write_all(const whole *w, const char *data, size_t n) {
    while (n) {
        ssize_t k = write(w->out, data, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return command_fail(w->self, "%s: cannot be written: %s", w->name,
                                strerror(k < 0 ? errno : ENOSPC));
        data += k;
        n -= (size_t)k;
    }
    return 0;
}

static int copy_bytes(const whole *w, char *piece) {
    for (uint64_t done = 0; done < w->bytes;) {
        if (cli_stopped)
            return command_stopped_code(w->self);
        uint64_t left = w->bytes - done;
        ssize_t k = read(w->in, piece, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return command_fail(w->self, "%s: cannot be read at byte %" PRIu64 ": %s", w->from, done,
                                k < 0 ? strerror(errno) : "the file has shrunk");
        int code = write_all(w, piece, (size_t)k);
        if (code != 0)
            return code;
        done += (uint64_t)k;
        cli_progress_update(w->bar, done);
    }
    return 0;
}

static int copy_open(whole *w, const char *to) {
    w->in = open(w->from, O_RDONLY | O_CLOEXEC);
    if (w->in < 0)
        return command_fail(w->self, "%s: cannot be read: %s", w->from, strerror(errno));
    w->out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (w->out < 0)
        return command_fail(w->self, "%s: cannot be created: %s", w->name, strerror(errno));
    char *piece = malloc(PIECE_BYTES);
    int code = piece ? copy_bytes(w, piece) : command_fail(w->self, "out of memory");
    free(piece);
    return code;
}

int copy_whole(const command *self, const char *from, uint64_t bytes, const char *to, const char *name,
               cli_progress *bar) {
    whole w = {.self = self, .from = from, .name = name, .in = -1, .out = -1, .bytes = bytes, .bar = bar};
    int code = copy_open(&w, to);
    if (w.in >= 0)
        close(w.in);
    if (w.out >= 0 && close(w.out) != 0 && code == 0)
        code = command_fail(self, "%s: cannot be written: %s", name, strerror(errno));
    return code;
}
