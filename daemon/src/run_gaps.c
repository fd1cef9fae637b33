/* What interrupts a run although nothing is lost, as records of the file (photond.gap.N): a disk that was full, a clock that was set,
 * another start of the producer. Who looks at the times of the photons later needs to know. */
#include "run.h"

#define GAPS_PAUSE_NS UINT64_C(1000000000)

void pd_run__held(pd_run *run) {
    if (run->held_ns == 0 && pd_volume_look(run->volume).full)
        run->held_ns = uv_hrtime();
}

void pd_run__goes_on(pd_run *run) {
    uint64_t held_ns = run->held_ns ? uv_hrtime() - run->held_ns : 0;
    run->held_ns = 0;
    if (held_ns > GAPS_PAUSE_NS)
        pd_run__gap(run, &run->engine->counters.gaps_disk_pause, "disk_pause", "seconds",
                    (double)held_ns / 1e9);
}

void pd_run__epoch(pd_run *run, uint64_t epoch) {
    bool restarted = epoch > run->epoch;
    run->epoch = epoch;
    if (restarted && run->state == PD_RUN_RUNNING)
        pd_run__gap(run, &run->engine->counters.gaps_source_restart, "source_restart", NULL, 0);
}

void pd_run_clock_stepped(pd_run *run, double seconds) {
    if (run->state != PD_RUN_RUNNING)
        return;
    run->last_clock_ns = 0; /* a new pair goes along */
    pd_run__gap(run, &run->engine->counters.gaps_clock_step, "clock_step", "seconds", seconds);
}
