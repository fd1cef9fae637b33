#include "daemon.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "commands.h"
#include "control.h"
#include "listener.h"
#include "log.h"
#include "look.h"
#include "ready.h"
#include "recovery.h"
#include "reload.h"
#include "server.h"
#include "service.h"
#include "stop_guard.h"
#include "watch.h"

enum {
    DAEMON_SIGNALS = 3,
    DAEMON_SPARE_FILES = 32,      /* descriptors for all but volumes, connections and runs */
    DAEMON_FILES_OF_A_VOLUME = 4, /* its folder, its lock, what is read again for a certificate */
    DAEMON_FILES_OF_A_RUN =
        6, /* events, tail, checksums; and those of the next part, while one becomes the other */
    DAEMON_MMAP_BYTES = 131072
};

typedef struct pd_daemon {
    pd_config *config;
    int argc; /* the command line, for reading the configuration again */
    char **argv;
    pd_passed passed; /* sockets of the service manager */
    uv_loop_t loop;
    pd_engine engine;
    pd_server server;
    pd_listener *listeners; /* [n_listeners] */
    size_t n_listeners;
    pd_control *control;
    uv_signal_t signals[DAEMON_SIGNALS];
    pd_look look;
    pd_watch watch;
    pd_commands commands;
    pd_stop_guard *guard; /* while it is stopping */
    bool stopping;
    bool ready_written;
    uint64_t failed_before_stop; /* runs */
} pd_daemon;

/* ---- the end ---- */

static void daemon_end(void *user) {
    pd_daemon *d = user;
    if (!d->stopping)
        return;
    pd_server_end(&d->server);
    pd_control_close(d->control, NULL, NULL);
    d->control = NULL;
    pd_watch_close(&d->watch);
    pd_look_close(&d->look);
    for (int i = 0; i < DAEMON_SIGNALS; i++)
        uv_close((uv_handle_t *)&d->signals[i], NULL);
}

static void daemon_stop(pd_daemon *d) {
    d->stopping = d->engine.stopping = true;
    d->failed_before_stop = pd_counted(&d->engine.counters.runs_failed);
    d->guard = pd_stop_guard_start(&d->engine);
    for (size_t i = 0; i < d->n_listeners; i++)
        pd_listener_close(&d->listeners[i]);
    pd_server_stop_reading(&d->server);
    size_t n = d->server.runs.n;
    pd_service_stopping();
    pd_log(PD_LOG_INFO, "stopping: %zu runs are being closed", n);
    if (n == 0)
        daemon_end(d);
    else
        pd_runs_close_all(&d->server.runs, "the daemon was stopped");
}

static json_t *daemon_reload(void *user, pd_error *err) {
    pd_daemon *d = user;
    json_t *changed = NULL, *restart = NULL;
    pd_service_reloading();
    int failed = pd_reload(d->config, d->argc, d->argv, &changed, &restart, err);
    if (!failed && pd_access_reload(&d->server.access, err) != 0) {
        pd_log(PD_LOG_ERROR, "tokens and certificates stay as they are: %s", err->text);
        json_decref(changed);
        json_decref(restart);
        pd_service_ready();
        return NULL;
    }
    pd_service_ready();
    if (!failed) {
        pd_engine_configured(&d->engine);
        pd_server_access_changed(&d->server);
        return json_pack("{s:o, s:o}", "changed", changed, "restart", restart);
    }
    pd_log(PD_LOG_ERROR, "the configuration stays as it is: %s", err->text);
    return NULL;
}

static void daemon_signal(uv_signal_t *handle, int number) {
    pd_daemon *d = handle->data;
    if (number == SIGHUP) {
        pd_error err = {""};
        pd_log(PD_LOG_INFO, "SIGHUP");
        json_decref(daemon_reload(d, &err));
    } else if (!d->stopping) {
        pd_log(PD_LOG_INFO, "%s", number == SIGTERM ? "SIGTERM" : "SIGINT");
        daemon_stop(d);
    } else {
        pd_log(PD_LOG_WARNING, "asked to stop again: a full disk is not waited for any more");
        for (uint32_t i = 0; i < d->engine.n_volumes; i++)
            pd_volume_give_up(d->engine.volumes[i]);
    }
}

/* ---- the beginning ---- */

/* Sockets of the service manager take the place of the configured addresses. */
static int daemon_adopt(pd_daemon *d, pd_error *err) {
    for (size_t i = 0; i < d->passed.n; i++) {
        pd_passed_socket *socket = &d->passed.sockets[i];
        if (socket->fd < 0)
            continue;
        if (pd_listener_adopt(&d->listeners[d->n_listeners], &d->server, socket->fd, socket->name, err) != 0)
            return -1;
        socket->fd = -1;
        d->n_listeners++;
    }
    return 0;
}

static int daemon_listen(pd_daemon *d, pd_error *err) {
    const pd_text_list *list = &d->config->listen;
    d->listeners = calloc(d->passed.n + list->n + 1, sizeof *d->listeners);
    if (!d->listeners)
        return pd_error_set(err, "out of memory");
    if (daemon_adopt(d, err) != 0)
        return -1;
    if (d->n_listeners > 0)
        return 0;
    for (; d->n_listeners < list->n; d->n_listeners++)
        if (pd_listener_start(&d->listeners[d->n_listeners], &d->server, list->items[d->n_listeners], err) !=
            0)
            return -1;
    return 0;
}

static unsigned daemon_control_rights(void *user, int fd) {
    const pd_commands *commands = user;
    return pd_access_controller(&commands->server->access, fd);
}

/* The control socket is configured, or passed, or both. */
static int daemon_control(pd_daemon *d, char *path, size_t cap, pd_error *err) {
    bool none = strcmp(d->config->control, "none") == 0;
    *path = 0;
    if (!none && pd_control_path(d->config->control, path, cap, err) != 0)
        return -1;
    int fd = pd_service_control_socket(&d->passed, path);
    if (none && fd < 0)
        return 0;
    d->commands = (pd_commands){.look = &d->look, .server = &d->server, .reload = daemon_reload, .user = d};
    return pd_control_start(&d->control, &d->loop,
                            &(pd_control_options){.path = path,
                                                  .fd = fd,
                                                  .mode = d->config->control_mode,
                                                  .gid = d->engine.gid,
                                                  .commands = pd_command_list,
                                                  .n_commands = pd_n_commands,
                                                  .user = &d->commands,
                                                  .rights = daemon_control_rights},
                            err);
}

static void daemon_watch_signals(pd_daemon *d) {
    static const int numbers[DAEMON_SIGNALS] = {SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < DAEMON_SIGNALS; i++) {
        uv_signal_init(&d->loop, &d->signals[i]);
        d->signals[i].data = d;
        uv_signal_start(&d->signals[i], daemon_signal, numbers[i]);
    }
}

static int daemon_ready(pd_daemon *d, const char *control_path, pd_error *err) {
    const char **addresses = pd_look_listen(&d->look, d->listeners, d->n_listeners);
    if (!addresses)
        return pd_error_set(err, "out of memory");
    for (size_t i = 0; i < d->n_listeners; i++)
        pd_log(PD_LOG_INFO, "ready: listening on %s", addresses[i]);
    if (*control_path)
        pd_log(PD_LOG_INFO, "ready: control at unix:%s", control_path);
    if (*d->config->ready_file && pd_ready_write(d->config->ready_file, addresses, d->n_listeners,
                                                 control_path, d->config->file_mode, d->engine.gid, err) != 0)
        return -1;
    d->ready_written = *d->config->ready_file != '\0';
    pd_service_ready();
    return 0;
}

/* From here on everything is up, or taken down again. Returns the exit status. */
static int daemon_serve(pd_daemon *d, pd_error *err) {
    char control_path[256];
    pd_recovery_run(&d->engine, &d->server.runs, &d->server.producers);
    pd_look_init(&d->look, &d->server);
    int failed = pd_service_sockets(&d->passed, err);
    if (!failed)
        failed = daemon_control(d, control_path, sizeof control_path, err);
    if (!failed)
        failed = daemon_listen(d, err);
    daemon_watch_signals(d);
    pd_watch_start(&d->watch, &d->look);
    d->server.runs.emptied = daemon_end;
    d->server.runs.emptied_user = d;
    if (!failed)
        failed = daemon_ready(d, control_path, err);
    if (failed) {
        pd_log(PD_LOG_ERROR, "%s", err->text);
        daemon_stop(d);
    }
    uv_run(&d->loop, UV_RUN_DEFAULT);
    if (d->ready_written)
        unlink(d->config->ready_file);
    pd_server_close(&d->server);
    pd_stop_guard_joining(d->guard);
    pd_engine_stop(&d->engine);
    uv_run(&d->loop, UV_RUN_DEFAULT);
    return failed ? 2 : 0;
}

static uint32_t at_most(rlim_t value, uint32_t most) {
    return value < most ? (uint32_t)value : most;
}

/* Every connection and every run takes descriptors: as many as the system allows. They are given out beforehand, so that what has begun
 * can always go on, and there is one to refuse the next with. */
static void daemon_share_files(const pd_config *config, pd_server *server, rlim_t files) {
    rlim_t spare = DAEMON_SPARE_FILES + DAEMON_FILES_OF_A_VOLUME * server->engine->n_volumes;
    rlim_t left = files > spare ? files - spare : 0;
    uint32_t runs = at_most(left / 2 / DAEMON_FILES_OF_A_RUN, config->max_runs);
    server->runs.most = runs ? runs : 1;
    left -= runs * DAEMON_FILES_OF_A_RUN;
    server->max_refused = at_most(left / 4, PD_CONNECTIONS_BEING_REFUSED);
    left -= server->max_refused;
    server->max_connections = at_most(left ? left : 1, config->max_connections);
}

static void daemon_raise_limits(const pd_config *config, pd_server *server) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    daemon_share_files(config, server, files.rlim_cur);
    if (server->max_connections < config->max_connections || server->runs.most < config->max_runs)
        pd_log(PD_LOG_WARNING,
               "only %llu file descriptors are allowed: at most %u connections (configured: %u) and %zu runs "
               "(%u)",
               (unsigned long long)files.rlim_cur, server->max_connections, config->max_connections,
               server->runs.most, config->max_runs);
}

static unsigned daemon_threads(const pd_config *config) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (config->encoder_threads)
        return config->encoder_threads;
    return processors < 1 ? 1 : processors > 1024 ? 1024 : (unsigned)processors;
}

static void daemon_prepare_process(const pd_config *config) {
    char threads[16];
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that is not allowed to grow is an error of its run */
    pd_log_detect_journal();
    pd_log_set_level(config->log_level);
    snprintf(threads, sizeof threads, "%u", daemon_threads(config));
    setenv("UV_THREADPOOL_SIZE", threads, 1); /* read by libuv at its first job */
    /* Large buffers come and go with connections and runs: given back to the system at once. */
    mallopt(M_MMAP_THRESHOLD, DAEMON_MMAP_BYTES);
}

int pd_daemon_run(pd_config *config, int argc, char **argv) {
    pd_error err = {""};
    int code = 2;
    daemon_prepare_process(config);
    pd_daemon *d = calloc(1, sizeof *d);
    if (!d || uv_loop_init(&d->loop) != 0) {
        pd_log(PD_LOG_ERROR, "out of memory");
        free(d);
        return 2;
    }
    d->config = config;
    d->argc = argc;
    d->argv = argv;
    if (pd_engine_start(&d->engine, &d->loop, config, NULL, &err) != 0) {
        pd_log(PD_LOG_ERROR, "%s", err.text);
    } else if (pd_server_init(&d->server, &d->engine, &err) != 0) {
        pd_log(PD_LOG_ERROR, "%s", err.text);
        pd_engine_stop(&d->engine);
    } else {
        daemon_raise_limits(config, &d->server);
        code = daemon_serve(d, &err);
        if (code == 0 && pd_counted(&d->engine.counters.runs_failed) > d->failed_before_stop)
            code = 1;
        pd_log(PD_LOG_INFO, "stopped%s",
               code == 1 ? "; runs that could not be closed are left as they are" : "");
    }
    uv_run(&d->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&d->loop) != 0)
        pd_log(PD_LOG_ERROR, "the loop was left with open handles");
    pd_stop_guard_end(d->guard);
    pd_look_free(&d->look);
    pd_server_free(&d->server);
    pd_engine_free(&d->engine);
    free(d->listeners);
    free(d);
    return code;
}
