#include "reload.h"

#include <string.h>

#include "config_keys.h"
#include "log.h"

/* The keys whose value is looked at anew whenever it is needed, on the loop. All others have become memory, threads,
 * descriptors, files that are there, or promises to clients. */
static const char *const reload_live[] = {
    "max_runs_per_connection",
    "max_datasets",
    "max_attributes",
    "sync_interval_ms",
    "part_max_bytes",
    "part_max_s",
    "resume_timeout_s",
    "stop_timeout_s",
    "hello_timeout_s",
    "connects_per_s",
    "export_interval_s",
    "summaries.enabled",
    "summaries.image.enabled",
    "summaries.image.pixels",
    "summaries.decay.enabled",
    "summaries.rate.enabled",
    "summaries.rate.max_seconds",
    "name_pattern",
    "profiles",
    "log_level",
};

static bool reload_is_live(const char *path) {
    for (size_t i = 0; i < sizeof reload_live / sizeof *reload_live; i++)
        if (strcmp(reload_live[i], path) == 0)
            return true;
    return false;
}

static bool reload_differs(const pd_config_key *key, const pd_config *now, const pd_config *next) {
    json_t *a = pd_config_key_json(key, now), *b = pd_config_key_json(key, next);
    bool differs = !a || !b || !json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return differs;
}

static void reload_tell(const char *what, const json_t *paths) {
    const json_t *path;
    size_t i;
    json_array_foreach(paths, i, path) {
        pd_log(PD_LOG_INFO, "configuration: %s %s", json_string_value(path), what);
    }
}

int pd_reload(pd_config *config, int argc, char **argv, json_t **changed, json_t **restart, pd_error *err) {
    pd_config next;
    if (pd_config_again(&next, argc, argv, err) != 0) {
        pd_config_free(&next);
        return -1;
    }
    *changed = json_array();
    *restart = json_array();
    for (size_t i = 0; i < pd_config_n_keys; i++) {
        const pd_config_key *key = &pd_config_keys[i];
        if (!reload_differs(key, config, &next))
            continue;
        bool live = reload_is_live(key->path);
        if (live)
            pd_config_key_swap(key, config, &next);
        json_array_append_new(live ? *changed : *restart, json_string(key->path));
    }
    pd_config_free(&next);
    pd_log_set_level(config->log_level);
    if (json_array_size(*changed) + json_array_size(*restart) == 0)
        pd_log(PD_LOG_INFO, "configuration: read again, nothing has changed");
    reload_tell("has changed", *changed);
    reload_tell("differs, which needs a restart", *restart);
    return 0;
}
