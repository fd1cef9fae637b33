/* When a run ends by itself. */
#ifndef PD_RUN_STOP_H
#define PD_RUN_STOP_H

#include <stdint.h>

/* 0: no such condition. */
typedef struct pd_run_stop {
    uint64_t photons; /* the batch that reaches so many is the last */
    uint64_t bytes;   /* the same of column bytes */
    uint64_t ms;      /* since it was opened */
} pd_run_stop;

/* The conditions of `over` where it has them, else those of `stop`. */
pd_run_stop pd_run_stop_over(pd_run_stop stop, pd_run_stop over);

/* A time in seconds as milliseconds: at least one when it is any, at most a hundred years. */
uint64_t pd_run_stop_ms(double seconds);

struct pd_run;

/* The run is open: its time begins, or goes on after what is over of it. */
void pd_run__stop_start(struct pd_run *run);

/* Something was taken: a run that has what it was to have is closed. */
void pd_run__stop_check(struct pd_run *run);

#endif
