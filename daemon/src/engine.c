#include "engine.h"

#include <string.h>

static int engine_start_volume(pd_engine *engine, pd_error *err) {
    return pd_volume_start(&engine->volume,
                           &(pd_volume_options){.data_dir = engine->config->data_dir,
                                                .file_mode = engine->config->file_mode,
                                                .dir_mode = engine->config->dir_mode,
                                                .checksums = engine->config->checksums,
                                                .gid = engine->gid,
                                                .io = engine->io,
                                                .inbox = &engine->inbox,
                                                .counters = &engine->counters},
                           err);
}

static int engine_start_exporter(pd_engine *engine, pd_error *err) {
    pd_exporter_options options;
    pd_exporter_options_from_config(&options, engine->config);
    options.gid = engine->gid;
    return pd_exporter_start(&engine->exporter, &options, err);
}

int pd_engine_start(pd_engine *engine, uv_loop_t *loop, const pd_config *config, const d7_io *io,
                    pd_error *err) {
    memset(engine, 0, sizeof *engine);
    engine->loop = loop;
    engine->config = config;
    engine->io = io;
    pd_budget_init(&engine->receive, config->receive_bytes, config->message_bytes);
    if (pd_config_gid(config, &engine->gid, err) != 0)
        return -1;
    int failed = pd_inbox_init(&engine->inbox, loop);
    if (failed)
        return pd_error_set(err, "the loop's inbox cannot be made: %s", strerror(-failed));
    uv_unref(
        (uv_handle_t *)&engine->inbox.async); /* until the end it is the signals that keep the loop going */
    if (pd_ring_init(&engine->ring, config->ring_bytes, sizeof(pd_page), err) != 0)
        goto err_inbox;
    if (engine_start_volume(engine, err) != 0)
        goto err_ring;
    if (engine_start_exporter(engine, err) != 0)
        goto err_volume;
    return 0;
err_volume:
    pd_volume_stop(engine->volume);
err_ring:
    pd_ring_free(&engine->ring);
err_inbox:
    pd_inbox_close(&engine->inbox);
    return -1;
}

void pd_engine_stop(pd_engine *engine) {
    pd_exporter_stop(engine->exporter);
    pd_volume_stop(engine->volume);
    pd_inbox_close(&engine->inbox);
}

void pd_engine_free(pd_engine *engine) {
    pd_ring_free(&engine->ring);
    pd_recovery_state_free(&engine->recovery);
}
