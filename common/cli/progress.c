#include "cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { BAR_CELLS = 30 };
#define REDRAW_NS 100000000u

static uint64_t progress_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cli_format_count(char *text, unsigned cap, double count) {
    static const char prefix[] = " kMGTPE";
    unsigned k = 0;
    while (count >= 999.5 && k < sizeof prefix - 2) {
        count /= 1000;
        k++;
    }
    if (k == 0)
        snprintf(text, cap, "%.0f ", count);
    else
        snprintf(text, cap, "%.3g %c", count, prefix[k]);
}

void cli_progress_start(cli_progress *bar, const char *title, const char *unit, uint64_t total) {
    *bar = (cli_progress){.title = title, .unit = unit, .total = total, .started_ns = progress_now_ns()};
    bar->terminal = isatty(STDERR_FILENO) == 1;
}

static void progress_draw(const cli_progress *bar, uint64_t done, uint64_t now_ns) {
    double seconds = (double)(now_ns - bar->started_ns) * 1e-9;
    char count[16], rate[16];
    cli_format_count(count, sizeof count, (double)done);
    cli_format_count(rate, sizeof rate, seconds > 0 ? (double)done / seconds : 0);
    fprintf(stderr, "\r%s ", bar->title);
    if (bar->total) {
        double part = done >= bar->total ? 1 : (double)done / (double)bar->total;
        fputc('[', stderr);
        for (int i = 0; i < BAR_CELLS; i++)
            fputc(i < (int)(part * BAR_CELLS) ? '#' : '.', stderr);
        fprintf(stderr, "] %3.0f %% ", part * 100);
    }
    fprintf(stderr, " %s%s  %s%s/s \033[K", count, bar->unit, rate, bar->unit);
    fflush(stderr);
}

void cli_progress_update(cli_progress *bar, uint64_t done) {
    if (!bar->terminal)
        return;
    uint64_t now = progress_now_ns();
    if (now - bar->drawn_ns < REDRAW_NS)
        return;
    bar->drawn_ns = now;
    progress_draw(bar, done, now);
}

void cli_progress_end(cli_progress *bar, uint64_t done) {
    if (!bar->terminal)
        return;
    progress_draw(bar, done, progress_now_ns());
    fputc('\n', stderr);
}
