#include "run_stop.h"

#include "log.h"
#include "run.h"

#define STOP_MS_MAX (UINT64_C(100) * 366 * 86400 * 1000)

pd_run_stop pd_run_stop_over(pd_run_stop stop, pd_run_stop over) {
    return (pd_run_stop){.photons = over.photons ? over.photons : stop.photons,
                         .bytes = over.bytes ? over.bytes : stop.bytes,
                         .ms = over.ms ? over.ms : stop.ms};
}

uint64_t pd_run_stop_ms(double seconds) {
    double ms = seconds * 1e3;
    if (!(ms > 0))
        return 0;
    return ms < 1 ? 1 : ms < (double)STOP_MS_MAX ? (uint64_t)ms : STOP_MS_MAX;
}

static void stop_run(pd_run *run, const char *reason) {
    pd_log(PD_LOG_INFO, "run %s: %s", run->name, reason);
    pd_run_close(run, reason);
}

static void stop_time_over(uv_timer_t *timer) {
    stop_run(timer->data, "its time is over (stop condition)");
}

void pd_run__stop_start(pd_run *run) {
    uint64_t ms = run->stop.ms, elapsed = run->stop_elapsed_ms;
    if (ms)
        uv_timer_start(&run->stop_timer, stop_time_over, elapsed < ms ? ms - elapsed : 0, 0);
}

static uint64_t stop_bytes(const pd_run *run) {
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < run->n_groups; g++)
        bytes += run->groups[g].items * run->groups[g].item_bytes;
    return bytes;
}

void pd_run__stop_check(pd_run *run) {
    const pd_run_stop *stop = &run->stop;
    if (run->state != PD_RUN_RUNNING || run->turning)
        return;
    if (run->close_at && run->received >= run->close_at)
        pd_run_close(run, run->close_reason);
    else if (stop->photons && run->groups[run->photon_group].items >= stop->photons)
        stop_run(run, "it has its photons (stop condition)");
    else if (stop->bytes && stop_bytes(run) >= stop->bytes)
        stop_run(run, "it has its size (stop condition)");
}
