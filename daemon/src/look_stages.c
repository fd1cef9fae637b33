/* What is in each stage. Everything looked at here is the loop's own, so it is exact also in the midst of things: a page that the
 * pool or the writer has finished counts as theirs until the loop has it back. */
#include "look.h"

/* Slots that are on their way to a file; one that only the summary holds still is not. */
static void look_pages(const pd_server *server, pd_status_stage *stages) {
    const pd_ring *ring = &server->engine->ring;
    for (uint32_t i = 0; i < ring->n_slots; i++) {
        const pd_page *page = (const pd_page *)(const void *)ring->slots[i];
        pd_slot_state state = page->slot.state;
        if (state == PD_SLOT_FREE || page->written || page->column != pd_run_photon_column(page->run))
            continue;
        if (page->run->state != PD_RUN_FAILED && !page->run->turning)
            stages[PD_STAGE_RING].in_flight += page->n_items;
        if (state == PD_SLOT_ENCODING)
            stages[PD_STAGE_ENCODER].in_flight += page->n_items;
        if (state == PD_SLOT_WRITING)
            stages[PD_STAGE_WRITER].in_flight += page->n_items;
    }
}

void pd_look_stages(const pd_server *server, pd_status_stage stages[PD_STAGES]) {
    for (int i = 0; i < PD_STAGES; i++)
        stages[i] = (pd_status_stage){.count = server->engine->stages.of[i]};
    for (const pd_connection *c = server->connections; c; c = c->next)
        if (c->session.batch_waits)
            stages[PD_STAGE_SOCKET].in_flight += c->session.batch_photons;
    look_pages(server, stages);
    for (size_t i = 0; i < server->runs.n; i++) {
        const pd_run *run = server->runs.items[i];
        if (run->state != PD_RUN_FAILED)
            stages[PD_STAGE_DISK].in_flight += pd_run_photons_in_flight(run);
        stages[PD_STAGE_SUMMARY].in_flight += pd_run_summary_backlog(run);
        stages[PD_STAGE_EXPORTER].in_flight += run->summary.exporting;
    }
}
