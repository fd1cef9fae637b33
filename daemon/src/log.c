#include "log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

enum { LOG_MESSAGE_BYTES = 2000, LOG_LINE_BYTES = 2 * LOG_MESSAGE_BYTES, LOG_WAIT_MS = 200 };

static _Atomic int log_level = PD_LOG_INFO;
static _Atomic int log_fd = STDERR_FILENO;
static atomic_bool log_to_journal;
static _Atomic uint64_t log_n_lost;
static atomic_bool log_left; /* nobody reads what is written */

static const char *const log_level_names[PD_N_LOG_LEVELS] = {"error", "warning", "info", "debug"};

const char *pd_log_level_name(pd_log_level level) {
    return (unsigned)level < PD_N_LOG_LEVELS ? log_level_names[level] : NULL;
}

void pd_log_set_level(pd_log_level level) {
    atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

void pd_log_set_fd(int fd) {
    atomic_store_explicit(&log_fd, fd, memory_order_relaxed);
}

void pd_log_detect_journal(void) {
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char here[64];
    if (!stream || fstat(STDERR_FILENO, &st) != 0)
        return;
    snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    atomic_store_explicit(&log_to_journal, strcmp(stream, here) == 0, memory_order_relaxed);
}

bool pd_log_enabled(pd_log_level level) {
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

uint64_t pd_log_lost(void) {
    return atomic_load_explicit(&log_n_lost, memory_order_relaxed);
}

static size_t log_head(char *line, size_t cap, pd_log_level level) {
    static const char *const priorities[PD_N_LOG_LEVELS] = {SD_ERR, SD_WARNING, SD_INFO, SD_DEBUG};
    if (atomic_load_explicit(&log_to_journal, memory_order_relaxed))
        return (size_t)snprintf(line, cap, "%s", priorities[level]);
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(line, cap, "%Y-%m-%dT%H:%M:%S", &utc);
    int more = snprintf(line + n, cap - n, ".%03ldZ %s ", now.tv_nsec / 1000000, log_level_names[level]);
    return n + (size_t)more;
}

/* Waits a moment for a reader that is slow; for one that has taken nothing for so long no more, until it reads again:
 * nobody's reading of the log may hold up the events. */
static bool log_is_read(int fd) {
    struct pollfd to = {.fd = fd, .events = POLLOUT};
    bool left = atomic_load_explicit(&log_left, memory_order_relaxed);
    bool read = poll(&to, 1, left ? 0 : LOG_WAIT_MS) != 0;
    if (left == read)
        atomic_store_explicit(&log_left, !read, memory_order_relaxed);
    return read;
}

/* One write is one line, also in a file or pipe that others write to. What a full pipe did not take of a
 * line is lost with it: the rest would only tear the next line. */
static void log_write(const char *line, size_t n) {
    int fd = atomic_load_explicit(&log_fd, memory_order_relaxed);
    ssize_t done = 0;
    if (log_is_read(fd))
        do {
            done = write(fd, line, n);
        } while (done < 0 && errno == EINTR);
    if (done != (ssize_t)n)
        atomic_fetch_add_explicit(&log_n_lost, 1, memory_order_relaxed);
}

void pd_log(pd_log_level level, const char *format, ...) {
    if (!pd_log_level_name(level) || !pd_log_enabled(level))
        return;
    int saved = errno;
    char message[LOG_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);

    char line[LOG_LINE_BYTES];
    size_t n = log_head(line, sizeof line, level);
    n += pd_text_escape(line + n, sizeof line - 1 - n, message);
    line[n++] = '\n';
    log_write(line, n);
    errno = saved;
}
