/* A run whose file a crash left open is there again: what is in no page yet comes from the slot of its tail. */

#include "ingest.pb-c.h"
#include "run.h"

static int resume_refuse(pd_refusal *why, const char *text) {
    return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_RUN_FAILED, "", text);
}

/* How far the columns are; those of a group must be equally far. */
static int resume_count(pd_run *run, const d7_tail_slot *slot, pd_refusal *why) {
    for (uint32_t c = 0; c < run->n_columns; c++) {
        pd_column *column = &run->columns[c];
        pd_group *group = &run->groups[column->group];
        d7_tail_dataset d = {0};
        if (d7_tail_slot_dataset(slot, c, &d) != 0 || d.type != column->dataset.type ||
            d.n_partial >= column->page_items)
            return resume_refuse(why, "its tail is of other datasets than its attributes tell");
        if (d.items > 0) {
            column->items = column->part_row + d.items;
            column->part_repeats = false;
        }
        if (c != group->columns[0] && group->items != column->items)
            return resume_refuse(why, "columns of a group differ in length");
        if (c == pd_run_photon_column(run))
            run->photons_paged = column->items - d.n_partial;
        group->items = column->durable_items = column->written_items = column->safe_items = column->items;
    }
    return 0;
}

static void resume_pages(pd_run *run, const d7_tail_slot *slot) {
    for (uint32_t c = 0; c < run->n_columns; c++) {
        d7_tail_dataset d = {0};
        if (d7_tail_slot_dataset(slot, c, &d) == 0 && d.n_partial > 0)
            pd_run__refill(run, c, slot, d.n_partial);
    }
}

int pd_run_resume(pd_run **ret, pd_engine *engine, const pd_run_spec *spec, pd_file *file,
                  const d7_tail_slot *slot, pd_run_ended *ended, void *ended_user, pd_refusal *why) {
    pd_run *run;
    if (pd_run__make(&run, engine, spec, ended, ended_user, why) != 0)
        return -1;
    int failed = slot->n_datasets == run->n_columns
                     ? resume_count(run, slot, why)
                     : resume_refuse(why, "its tail has another number of datasets");
    if (!failed && pd_run_replay_begin(run) != 0)
        failed = resume_refuse(why, "out of memory");
    if (failed) {
        pd_run__unreserve(run);
        pd_run__free(run);
        return -1;
    }
    pd_run__init_handles(run);
    run->received = run->durable = run->safe = run->marked = run->synced = slot->sequence;
    run->last_durable_ns = uv_hrtime();
    resume_pages(run, slot);
    pd_stage_in(&engine->stages, PD_STAGE_SUMMARY, pd_run_summary_backlog(run));
    pd_run__running(run, file, spec->name);
    pd_run__records_resume(run, spec->attributes, spec->n_attributes);
    pd_run__made_by(run, spec->attributes, spec->n_attributes);
    pd_run__flush(run);
    pd_run_summary_start(run);
    pd_run_summary_kick(run);
    pd_run__wait_for_producer(run);
    *ret = run;
    return 0;
}
