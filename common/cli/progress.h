/* A progress bar on standard error, drawn only when that is a terminal, at most ten times a second. */
#ifndef COMMON_CLI_PROGRESS_H
#define COMMON_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_progress {
    const char *title; /* what is being done; must outlive the bar */
    const char *unit;  /* of done and total: "photons", "bytes" */
    uint64_t total;    /* 0: unknown, shown as a count */
    uint64_t started_ns;
    uint64_t drawn_ns;
    bool terminal;
} cli_progress;

void cli_progress_start(cli_progress *bar, const char *title, const char *unit, uint64_t total);
void cli_progress_update(cli_progress *bar, uint64_t done);

/* Draws the last state and ends the line. */
void cli_progress_end(cli_progress *bar, uint64_t done);

/* A count with a metric prefix: 12345678 gives "12.3 M". */
void cli_format_count(char *text, unsigned cap, double count);

#endif
