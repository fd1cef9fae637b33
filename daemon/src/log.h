/* The log: one line per event to standard error, "2026-01-31T12:00:00.123Z LEVEL message"; for the journal, which keeps the
 * time itself, "<PRIORITY>message" (sd-daemon(3)).
 *
 * A line is written by one write(2), so that lines of different threads never mix. Control characters
 * and bytes that are no UTF-8 are escaped (\xHH), since names and texts from the network end up here.
 * Over-long lines are cut at 2000 bytes. A line that cannot be written is lost and counted; logging
 * never fails and never waits for more than the write.
 */
#ifndef PD_LOG_H
#define PD_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pd_log_level { PD_LOG_ERROR = 0, PD_LOG_WARNING, PD_LOG_INFO, PD_LOG_DEBUG } pd_log_level;

#define PD_N_LOG_LEVELS 4

/* "error", "warning", "info", "debug"; NULL for other numbers. */
const char *pd_log_level_name(pd_log_level level);

/* The least important level that is written; info until set. Any thread. */
void pd_log_set_level(pd_log_level level);

/* Where lines go; standard error until set. The descriptor stays the caller's. For tests. */
void pd_log_set_fd(int fd);

/* Lines are for the journal from now on when standard error goes there, as JOURNAL_STREAM of the environment tells. */
void pd_log_detect_journal(void);

/* Whether a line of this level would be written. */
bool pd_log_enabled(pd_log_level level);

/* Writes a line. Any thread; never called by pure code (codecs, summaries), whose callers log. */
void pd_log(pd_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Lines that could not be written. */
uint64_t pd_log_lost(void);

#endif
