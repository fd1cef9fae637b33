#include "engine.h"

#include <string.h>

#include "certificate.h"

static int engine_start_volume(pd_engine *engine, uint32_t i, const char *name, const char *data_dir,
                               pd_error *err) {
    return pd_volume_start(
        &engine->volumes[i],
        &(pd_volume_options){.name = name,
                             .data_dir = data_dir,
                             .file_mode = engine->config->file_mode,
                             .dir_mode = engine->config->dir_mode,
                             .checksums = engine->config->checksums,
                             .certificates = engine->config->certificates,
                             .certificate_key = engine->config->certificate_key,
                             .keeper = {.hook = engine->config->hook,
                                        .hook_timeout_ms = engine->config->hook_timeout_ms,
                                        .keep_last = engine->config->keep_last,
                                        .max_total_bytes = engine->config->max_total_bytes},
                             .gid = engine->gid,
                             .io = engine->io,
                             .inbox = &engine->inbox,
                             .counters = &engine->counters,
                             .names = engine->names},
        err);
}

static int engine_start_exporter(pd_engine *engine, uint32_t i, pd_error *err) {
    const pd_datadir *dir = pd_volume_datadir(engine->volumes[i]);
    pd_exporter_options options;
    pd_exporter_options_from_config(&options, engine->config);
    options.data_dir = dir->path;
    options.data_fd = dir->fd;
    options.gid = engine->gid;
    return pd_exporter_start(&engine->exporters[i], &options, err);
}

static void engine_stop_volumes(pd_engine *engine) {
    for (uint32_t i = 0; i < engine->n_volumes; i++) {
        pd_exporter_stop(engine->exporters[i]);
        pd_volume_stop(engine->volumes[i]);
    }
    pd_run_names_free(engine->names);
    engine->names = NULL;
}

static int engine_start_volumes(pd_engine *engine, pd_error *err) {
    const pd_volume_places *more = &engine->config->volumes;
    int failed = more->n > 0 ? pd_run_names_create(&engine->names, err) : 0;
    for (uint32_t i = 0; !failed && i <= more->n; i++) {
        const char *name = i ? more->items[i - 1].name : "";
        const char *data_dir = i ? more->items[i - 1].data_dir : engine->config->data_dir;
        failed = engine_start_volume(engine, i, name, data_dir, err);
        if (failed)
            break;
        engine->n_volumes++;
        failed = engine_start_exporter(engine, i, err);
    }
    if (failed)
        engine_stop_volumes(engine);
    return failed;
}

pd_volume *pd_engine_volume(const pd_engine *engine, const char *name) {
    for (uint32_t i = 0; i < engine->n_volumes; i++)
        if (strcmp(pd_volume_name(engine->volumes[i]), name) == 0)
            return engine->volumes[i];
    return NULL;
}

pd_exporter *pd_engine_exporter(const pd_engine *engine, const pd_volume *volume) {
    for (uint32_t i = 0; i < engine->n_volumes; i++)
        if (engine->volumes[i] == volume)
            return engine->exporters[i];
    return NULL;
}

void pd_engine_configured(pd_engine *engine) {
    if (pd_certificate_configuration(engine->config, engine->configuration) != 0)
        engine->configuration[0] = 0;
}

int pd_engine_start(pd_engine *engine, uv_loop_t *loop, const pd_config *config, const d7_io *io,
                    pd_error *err) {
    memset(engine, 0, sizeof *engine);
    engine->loop = loop;
    engine->config = config;
    engine->io = io;
    pd_engine_configured(engine);
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
    if (engine_start_volumes(engine, err) != 0)
        goto err_ring;
    return 0;
err_ring:
    pd_ring_free(&engine->ring);
err_inbox:
    pd_inbox_close(&engine->inbox);
    return -1;
}

void pd_engine_stop(pd_engine *engine) {
    engine_stop_volumes(engine);
    pd_inbox_close(&engine->inbox);
}

void pd_engine_free(pd_engine *engine) {
    pd_ring_free(&engine->ring);
    pd_recovery_state_free(&engine->recovery);
}
