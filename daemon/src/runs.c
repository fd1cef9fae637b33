#include "runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ingest.pb-c.h"
#include "reply.h"

enum { PAST_RUNS_MAX = 1024, PAST_BYTES_MAX = 4 << 20 };

int pd_runs_init(pd_runs *runs, pd_engine *engine) {
    *runs = (pd_runs){.engine = engine, .cap = engine->config->max_runs, .most = engine->config->max_runs};
    runs->items = calloc(runs->cap, sizeof(pd_run *));
    return runs->items ? 0 : -1;
}

static void past_free(pd_past_run *past) {
    free(past->failure);
    free(past->closed);
    free(past);
}

void pd_runs_free(pd_runs *runs) {
    while (runs->oldest) {
        pd_past_run *past = runs->oldest;
        runs->oldest = past->next;
        past_free(past);
    }
    free(runs->items);
    *runs = (pd_runs){0};
}

static void runs_forget_oldest(pd_runs *runs) {
    pd_past_run *past = runs->oldest;
    runs->oldest = past->next;
    if (!runs->oldest)
        runs->newest = NULL;
    runs->n_past--;
    runs->past_bytes -= past->closed_bytes;
    past_free(past);
}

/* Remembers how a run ended. What cannot be remembered for want of memory is forgotten. */
static void runs_remember(pd_runs *runs, const pd_run *run) {
    pd_past_run *past = calloc(1, sizeof *past);
    if (!past)
        return;
    memcpy(past->id, run->id, sizeof past->id);
    snprintf(past->instance, sizeof past->instance, "%s", run->instance);
    snprintf(past->name, sizeof past->name, "%s", run->name);
    past->dropped_photons = run->dropped.photons;
    past->unexported = run->summary.last_failed;
    if (run->failure.text[0])
        past->failure = strdup(run->failure.text);
    else
        past->closed = pd_reply_closed(run, 0, &past->closed_bytes);
    if (!past->failure && !past->closed) {
        past_free(past);
        return;
    }
    if (runs->newest)
        runs->newest->next = past;
    else
        runs->oldest = past;
    runs->newest = past;
    runs->n_past++;
    runs->past_bytes += past->closed_bytes;
    while (runs->n_past > PAST_RUNS_MAX || (runs->past_bytes > PAST_BYTES_MAX && runs->n_past > 1))
        runs_forget_oldest(runs);
}

static void runs_ended(void *user, pd_run *run) {
    pd_runs *runs = user;
    size_t i = 0;
    while (runs->items[i] != run)
        i++;
    memmove(&runs->items[i], &runs->items[i + 1], (runs->n - i - 1) * sizeof(pd_run *));
    runs->n--;
    /* An opening that was refused may be tried again under the same id. */
    if (run->open_outcome == PD_OPEN_DONE || run->open_outcome == PD_OPEN_CLOSED)
        runs_remember(runs, run);
    if (runs->n == 0 && runs->emptied)
        runs->emptied(runs->emptied_user);
}

static int runs_check_room(const pd_runs *runs, size_t most, pd_refusal *why) {
    if (runs->n < most)
        return 0;
    why->code = PHOTON__ERROR_CODE__ERROR_NO_ROOM;
    snprintf(why->text, sizeof why->text, "%zu runs are open, more are not allowed", runs->n);
    return -1;
}

int pd_runs_open(pd_runs *runs, const pd_run_spec *spec, pd_run **ret, pd_refusal *why) {
    if (runs_check_room(runs, runs->most, why) != 0 ||
        pd_run_create(ret, runs->engine, spec, runs_ended, runs, why) != 0)
        return -1;
    runs->items[runs->n++] = *ret;
    return 0;
}

int pd_runs_resume(pd_runs *runs, const pd_run_spec *spec, pd_file *file, const d7_tail_slot *slot,
                   pd_refusal *why) {
    pd_run *run;
    if (pd_runs_find(runs, spec->id))
        return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_RUN_FAILED, "", "another file is of the same run");
    if (runs_check_room(runs, runs->cap, why) != 0 ||
        pd_run_resume(&run, runs->engine, spec, file, slot, runs_ended, runs, why) != 0)
        return -1;
    runs->items[runs->n++] = run;
    return 0;
}

pd_run *pd_runs_find_name(const pd_runs *runs, const char *name) {
    for (size_t i = 0; i < runs->n; i++)
        if (strcmp(runs->items[i]->name, name) == 0)
            return runs->items[i];
    return NULL;
}

pd_run *pd_runs_find(const pd_runs *runs, const uint8_t id[PD_RUN_ID_BYTES]) {
    for (size_t i = 0; i < runs->n; i++)
        if (memcmp(runs->items[i]->id, id, PD_RUN_ID_BYTES) == 0)
            return runs->items[i];
    return NULL;
}

const pd_past_run *pd_runs_find_past(const pd_runs *runs, const uint8_t id[PD_RUN_ID_BYTES]) {
    for (const pd_past_run *past = runs->oldest; past; past = past->next)
        if (memcmp(past->id, id, PD_RUN_ID_BYTES) == 0)
            return past;
    return NULL;
}

void pd_runs_close_all(pd_runs *runs, const char *reason) {
    for (size_t i = runs->n; i-- > 0;)
        pd_run_close(runs->items[i], reason);
}
