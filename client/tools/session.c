#include "session.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "dice.h"
#include "ledger.h"
#include "say.h"

enum {
    SESSION_TOKEN_BYTES = 1024,
    SESSION_SLICE_MS = 500,        /* how long a call waits before we look at the clock and at Ctrl-C */
    SESSION_TICK_MS = 10,          /* --speed real */
    SESSION_ALIVE_MS = 1000,       /* without events, how often we say that the instrument is alive */
    SESSION_LATE_MS = 100,         /* with --speed real: later than this, and than 3 %, is told */
    SESSION_FAREWELL_MS = 10000,   /* closing after Ctrl-C */
    SESSION_FIRST_BYTES = 1 << 18, /* of attributes, with Open */
    SESSION_RANDOM_BATCH = 100000
};

typedef struct session {
    const send_options *options;
    send_source *source;
    send_report *report;
    photon_client *client;
    photon_client_run *run;
    photon_client_run_info info;
    size_t column_of[SEND_DATASETS_MAX]; /* the source's dataset, by the run's */
    size_t group_of[SEND_DATASETS_MAX];  /* the source's group, by the run's */
    size_t event_group;                  /* of the run */
    send_ledger ledger;
    send_random random;
    cli_progress bar;
    uint64_t started_ns;
    uint64_t moved_ns;   /* when the server took something last */
    uint64_t until_ns;   /* --speed real: what happened by then, after the start, is due */
    uint64_t handing_ns; /* how long handing over to the server has taken */
    uint64_t connections;
    bool away;      /* the connection is lost, and that has been told */
    char title[48]; /* of the progress bar */
} session;

static volatile sig_atomic_t session_interrupted;

static void session_on_signal(int number) {
    (void)number;
    session_interrupted = 1;
}

/* The first Ctrl-C ends the run properly, the second ends the program. */
static void session_catch_signals(void) {
    struct sigaction action = {.sa_handler = session_on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static uint64_t session_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The first fault is the one that is told. */
static void session_fault(session *s, const char *what, const char *text) {
    if (s->report->fault[0])
        return;
    snprintf(s->report->fault, sizeof s->report->fault, "%s%s%.400s", what, *what ? ": " : "", text);
    if (s->bar.terminal)
        fputc('\n', stderr);
    send_say("%s", s->report->fault);
}

/* ---- what has to be sent again */

static int session_read_again(void *context, const uint64_t *first, const uint64_t *counts,
                              const void **columns) {
    const session *s = context;
    for (size_t i = 0; i < s->info.n_datasets; i++) {
        size_t g = s->info.datasets[i].group_index;
        if (counts[g])
            columns[i] = s->source->again(s->source, s->column_of[i], first[g]);
    }
    return 0;
}

/* ---- opening */

typedef struct session_profile {
    const char *name;
    size_t n;
    struct {
        const char *name;
        uint32_t type;
    } datasets[6];
} session_profile;

static const session_profile session_profiles[] = {
    {"lincam",
     4,
     {{"/photons/x", PHOTON_CLIENT_UINT16},
      {"/photons/y", PHOTON_CLIENT_UINT16},
      {"/photons/dt", PHOTON_CLIENT_UINT16},
      {"/photons/ms", PHOTON_CLIENT_UINT64}}},
    {"lincam-dual",
     6,
     {{"/photons/x", PHOTON_CLIENT_UINT16},
      {"/photons/y", PHOTON_CLIENT_UINT16},
      {"/photons/dt", PHOTON_CLIENT_UINT16},
      {"/photons/ms", PHOTON_CLIENT_UINT64},
      {"/start/time", PHOTON_CLIENT_UINT64},
      {"/stop/time", PHOTON_CLIENT_UINT64}}},
    {"lintag", 2, {{"/tags/channel", PHOTON_CLIENT_UINT8}, {"/tags/time", PHOTON_CLIENT_UINT64}}},
};

static size_t session_find_dataset(const send_source *source, const char *name) {
    size_t i = 0;
    while (i < source->n_datasets && strcmp(source->datasets[i].name, name) != 0)
        i++;
    return i;
}

static bool session_profile_fits(const session_profile *p, const send_source *source) {
    if (p->n != source->n_datasets)
        return false;
    for (size_t i = 0; i < p->n; i++) {
        size_t k = session_find_dataset(source, p->datasets[i].name);
        if (k == source->n_datasets || source->datasets[k].type != p->datasets[i].type)
            return false;
    }
    return true;
}

static const char *session_choose_profile(const send_options *o, const send_source *source) {
    if (o->profile)
        return strcmp(o->profile, "none") == 0 ? NULL : o->profile;
    for (size_t i = 0; i < sizeof session_profiles / sizeof *session_profiles; i++)
        if (session_profile_fits(&session_profiles[i], source))
            return session_profiles[i].name;
    return NULL;
}

/* How many attributes go with Open; the others follow. */
static size_t session_first_attributes(const session *s) {
    photon_client_server server;
    photon_client_server_info(s->client, &server);
    size_t n = 0, bytes = 0;
    for (; n < s->source->n_attributes && (server.attributes == 0 || n < server.attributes); n++) {
        bytes += strlen(s->source->attributes[n].key) + strlen(s->source->attributes[n].value);
        if (bytes > SESSION_FIRST_BYTES)
            break;
    }
    return n;
}

/* Which of the source's datasets and groups each of the run's is. */
static int session_map(session *s) {
    const send_source *source = s->source;
    photon_client_run_describe(s->run, &s->info);
    if (s->info.n_datasets > SEND_DATASETS_MAX || s->info.n_groups > SEND_DATASETS_MAX)
        return -1;
    bool seen[SEND_DATASETS_MAX] = {false};
    size_t used = 0;
    for (size_t i = 0; i < s->info.n_datasets; i++) {
        const photon_client_dataset_state *d = &s->info.datasets[i];
        size_t k = session_find_dataset(source, d->name), g = d->group_index;
        if (k == source->n_datasets || source->datasets[k].type != d->type ||
            (seen[g] && s->group_of[g] != source->group_of[k])) {
            char text[400];
            snprintf(text, sizeof text,
                     "the run has '%s' with another type or group than the source, or the source has none",
                     d->name);
            session_fault(s, "--profile", text);
            return -1;
        }
        s->column_of[i] = k;
        s->group_of[g] = source->group_of[k];
        seen[g] = true;
        used++;
        if (source->group_of[k] == source->event_group)
            s->event_group = g;
    }
    if (used == source->n_datasets)
        return 0;
    session_fault(s, "--profile", "the source has columns that the profile does not know");
    return -1;
}

/* The first line of the file. */
static int session_read_token(session *s, char token[SESSION_TOKEN_BYTES], size_t *ret_bytes) {
    FILE *f = fopen(s->options->token_file, "re");
    bool read = f && fgets(token, SESSION_TOKEN_BYTES, f);
    if (f)
        fclose(f);
    *ret_bytes = read ? strcspn(token, "\r\n") : 0;
    if (*ret_bytes > 0)
        return 0;
    session_fault(s, "--token-file", "no token can be read from it");
    return -1;
}

static int session_connect(session *s) {
    photon_client_options o;
    photon_client_error err;
    photon_client_options_init(&o);
    char software[64];
    snprintf(software, sizeof software, "photon-send %s", photon_client_version());
    o.address = s->options->to;
    o.client_name = "photon-send";
    o.software = software;
    o.instance = s->options->instance;
    o.ca_file = s->options->ca_file;
    o.certificate_file = s->options->certificate_file;
    o.key_file = s->options->key_file;
    char token[SESSION_TOKEN_BYTES];
    if (s->options->token_file) {
        if (session_read_token(s, token, &o.token_bytes) != 0)
            return -1;
        o.token = token;
    }
    o.reconnect = !s->options->no_reconnect;
    o.wait_for_server = s->options->wait_ms != 0;
    if (s->options->timeout_ms)
        o.connect_timeout_ms = o.reconnect_timeout_ms = s->options->timeout_ms;
    if (s->options->wait_ms)
        o.connect_timeout_ms = s->options->wait_ms;
    if (photon_client_connect(&s->client, &o, &err) == 0)
        return 0;
    session_fault(s, "", err.text);
    return -1;
}

static int session_open(session *s) {
    photon_client_run_options o;
    photon_client_error err;
    size_t first = session_first_attributes(s);
    photon_client_run_options_init(&o);
    o.name = s->options->run;
    o.mode = s->options->mode;
    o.volume = s->options->volume;
    o.profile = session_choose_profile(s->options, s->source);
    o.datasets = o.profile ? NULL : s->source->datasets;
    o.n_datasets = o.profile ? 0 : s->source->n_datasets;
    o.attributes = s->source->attributes;
    o.n_attributes = first;
    o.time_base = s->source->time_base;
    o.read_again = s->source->again ? session_read_again : NULL;
    o.read_context = s;
    o.overflow = s->options->drop ? PHOTON_CLIENT_DROP : PHOTON_CLIENT_BLOCK;
    if (s->options->timeout_ms)
        o.open_timeout_ms = s->options->timeout_ms;
    int rc = photon_client_open(s->client, &o, &s->run, &err);
    if (rc == 0 && session_map(s) != 0)
        return -1;
    if (rc == 0 && first < s->source->n_attributes)
        rc = photon_client_set_attributes(s->run, s->source->attributes + first,
                                          s->source->n_attributes - first, &err);
    if (rc != 0)
        session_fault(s, s->options->run, err.text);
    snprintf(s->report->run, sizeof s->report->run, "%s", rc == 0 ? s->info.name : s->options->run);
    snprintf(s->report->path, sizeof s->report->path, "%s", rc == 0 ? s->info.path : "");
    return rc;
}

/* ---- sending */

/* Says when the connection is lost, and when it stands again. */
static void session_watch(session *s, const photon_client_run_status *status) {
    photon_client_error err;
    bool back = status->connections > s->connections && s->connections;
    bool lost = !status->connected && !s->away && !s->options->no_reconnect;
    s->connections = status->connections;
    if ((back || lost) && s->bar.terminal)
        fputc('\n', stderr);
    if (back)
        send_say("connected again");
    if (lost && photon_client_check(s->client, &err) != 0)
        send_say("%s; coming back", err.text);
    s->away = !status->connected;
}

static void session_show(session *s, const photon_client_run_status *status) {
    static const char *const reasons[] = {"paused", "paused: server busy", "paused: disk full",
                                          "paused: disk slow"};
    char durable[16];
    session_watch(s, status);
    if (!s->bar.terminal)
        return;
    cli_format_count(durable, sizeof durable, (double)send_ledger_events(&s->ledger, status->durable));
    if (!status->connected)
        snprintf(s->title, sizeof s->title, "coming back, %sdurable", durable);
    else if (status->paused)
        snprintf(s->title, sizeof s->title, "%s",
                 reasons[status->pause_reason < 4 ? status->pause_reason : 0]);
    else
        snprintf(s->title, sizeof s->title, "sending, %sdurable", durable);
    s->bar.title = s->title;
    cli_progress_update(&s->bar, s->report->sent);
}

/* Keeps account of what has gone. Returns 0, or -1 when nothing has for longer than the user allows. */
static int session_account(session *s, const uint64_t *taken, const char *text) {
    photon_client_run_status status;
    uint64_t now = session_now_ns(), timeout_ns = s->options->timeout_ms * UINT64_C(1000000);
    photon_client_status(s->run, &status);
    for (size_t g = 0; g < s->info.n_groups; g++)
        if (taken[g])
            s->moved_ns = now;
    s->report->sent += taken[s->event_group];
    send_ledger_note(&s->ledger, status.sent, s->report->sent, status.durable);
    session_show(s, &status);
    if (timeout_ns == 0 || now - s->moved_ns < timeout_ns)
        return 0;
    session_fault(s, "--timeout", text);
    return -1;
}

/* Returns 0; 1: interrupted; -1: cannot go on. */
static int session_send(session *s, const send_chunk *chunk) {
    const void *columns[SEND_DATASETS_MAX];
    uint64_t counts[SEND_DATASETS_MAX], taken[SEND_DATASETS_MAX];
    photon_client_error err = {.code = 0};
    photon_client_batch batch = {.columns = columns, .counts = counts, .timeout_ms = SESSION_SLICE_MS};
    for (size_t i = 0; i < s->info.n_datasets; i++)
        columns[i] = chunk->columns[s->column_of[i]];
    for (size_t g = 0; g < s->info.n_groups; g++)
        counts[g] = chunk->counts[s->group_of[g]];
    for (;;) {
        int rc = photon_client_send_batch(s->run, &batch, taken, &err);
        if (rc != 0 && rc != PHOTON_CLIENT_ERR_TIMEOUT) {
            session_fault(s, "", err.text);
            return -1;
        }
        if (session_account(s, taken, err.text) != 0)
            return -1;
        if (rc == 0)
            return 0;
        if (session_interrupted)
            return 1;
        for (size_t i = 0; i < s->info.n_datasets; i++) {
            const photon_client_dataset_state *d = &s->info.datasets[i];
            if (counts[d->group_index])
                columns[i] = (const uint8_t *)columns[i] + taken[d->group_index] * d->item_bytes;
        }
        for (size_t g = 0; g < s->info.n_groups; g++)
            counts[g] -= taken[g];
    }
}

static uint64_t session_batch_events(session *s) {
    if (!s->options->batch_random)
        return s->options->batch ? s->options->batch : UINT64_MAX;
    uint64_t bits = send_random_bits(&s->random), n = 1 + (bits >> 32 & ((UINT64_C(1) << bits % 18) - 1));
    return n < SESSION_RANDOM_BATCH ? n : SESSION_RANDOM_BATCH;
}

/* All that was due has gone: waits for the next tick, unless it is over already. The run's time goes on though no
 * photon comes. */
static void session_idle(session *s) {
    uint64_t now = session_now_ns(), tick_ns = SESSION_TICK_MS * UINT64_C(1000000);
    if (now - s->moved_ns >= SESSION_ALIVE_MS * UINT64_C(1000000)) {
        photon_client_error err;
        if (photon_client_alive(s->run, NULL, &err) == 0) /* a failure shows at the next send */
            s->moved_ns = now;
    }
    s->until_ns += tick_ns;
    uint64_t due = s->started_ns + s->until_ns;
    if (due <= now)
        return;
    cli_progress_update(&s->bar, s->report->sent);
    nanosleep(&(struct timespec){.tv_nsec = (long)(due - now < tick_ns ? due - now : tick_ns)}, NULL);
}

static bool session_chunk_is_empty(const session *s, const send_chunk *chunk) {
    for (size_t g = 0; g < s->source->n_groups; g++)
        if (chunk->counts[g])
            return false;
    return true;
}

/* What a source that fails leaves: the run keeps what has gone. */
static void session_source_fault(session *s, const send_fault *fault) {
    char text[sizeof s->report->fault];
    unsigned long long sent = s->report->sent, all = s->source->n_events;
    if (s->source->n_events == SEND_UNKNOWN)
        snprintf(text, sizeof text, "%.300s; kept: the first %llu %s", fault->text, sent, s->source->unit);
    else if (sent < all)
        snprintf(text, sizeof text, "%.300s; kept: the first %llu of %llu %s, not sent: the last %llu",
                 fault->text, sent, all, s->source->unit, all - sent);
    else
        snprintf(text, sizeof text, "%.300s; kept: all %llu %s, but not all of the other datasets",
                 fault->text, all, s->source->unit);
    session_fault(s, "", text);
}

/* Returns 0: everything has been sent; 1: interrupted; -1. */
static int session_send_all(session *s) {
    send_chunk chunk;
    send_fault fault;
    for (;;) {
        send_want want = {session_batch_events(s), s->options->real ? (int64_t)s->until_ns : SEND_NO_TIME};
        int rc = s->source->next(s->source, &want, &chunk, &fault);
        if (rc < 0)
            session_source_fault(s, &fault);
        if (rc <= 0)
            return rc;
        if (session_interrupted)
            return 1;
        if (session_chunk_is_empty(s, &chunk)) {
            session_idle(s);
            continue;
        }
        uint64_t begun = session_now_ns();
        rc = session_send(s, &chunk);
        s->handing_ns += session_now_ns() - begun;
        if (rc != 0)
            return rc;
    }
}

/* --speed real that was not real. */
static void session_tell_late(const session *s) {
    uint64_t took_ns = session_now_ns() - s->started_ns;
    uint64_t late_ns = took_ns > s->until_ns ? took_ns - s->until_ns : 0;
    if (!s->options->real || late_ns < SESSION_LATE_MS * UINT64_C(1000000) || late_ns < s->until_ns * 3 / 100)
        return;
    send_say("the asked rate was not reached: the %s of %.2f s took %.2f s to send, since %s",
             s->source->unit, (double)s->until_ns * 1e-9, (double)took_ns * 1e-9,
             s->handing_ns > took_ns / 2 ? "the link or the server took no more"
                                         : "this machine made no more");
}

/* ---- closing */

/* What the server has told, when it will tell no more. */
static void session_settle(session *s) {
    photon_client_run_status status;
    photon_client_status(s->run, &status);
    s->report->received = send_ledger_events(&s->ledger, status.received);
    s->report->durable = send_ledger_events(&s->ledger, status.durable);
    s->report->messages = status.sent;
    s->report->resent = status.resent;
    s->report->dropped = status.dropped;
}

static void session_check_result(session *s, const photon_client_result *result) {
    char text[200];
    for (size_t i = 0; i < result->n_datasets; i++) {
        const photon_client_dataset_state *d = &result->datasets[i];
        if (d->group_index != s->event_group || d->items == s->report->sent)
            continue;
        s->report->durable = d->items < s->report->durable ? d->items : s->report->durable;
        snprintf(text, sizeof text, "'%.60s' has %llu items in the file, %llu were sent", d->name,
                 (unsigned long long)d->items, (unsigned long long)s->report->sent);
        session_fault(s, s->report->run, text);
    }
    if (*result->text)
        session_fault(s, "the server has closed the run by itself", result->text);
}

static void session_close(session *s) {
    photon_client_result result;
    photon_client_error err;
    uint64_t begun = session_now_ns(), limit_ms = s->options->timeout_ms;
    int rc;
    do {
        if (session_interrupted && (limit_ms == 0 || limit_ms > SESSION_FAREWELL_MS))
            limit_ms = SESSION_FAREWELL_MS;
        rc = photon_client_close_run(s->run, SESSION_SLICE_MS, &result, &err);
        photon_client_run_status status;
        photon_client_status(s->run, &status);
        session_show(s, &status);
    } while (rc == PHOTON_CLIENT_ERR_TIMEOUT &&
             (limit_ms == 0 || session_now_ns() - begun < limit_ms * 1000000));
    session_settle(s);
    if (rc != 0) {
        session_fault(s, "closing the run", err.text);
        return;
    }
    snprintf(s->report->path, sizeof s->report->path, "%s", result.path);
    session_check_result(s, &result);
}

static int session_work(session *s) {
    bool endless = s->source->n_events == SEND_UNKNOWN;
    s->started_ns = s->moved_ns = session_now_ns();
    cli_progress_start(&s->bar, "sending", s->source->unit, endless ? 0 : s->source->n_events);
    int rc = session_send_all(s);
    if (rc == 1 && !endless)
        session_fault(s, "", "interrupted before everything was sent");
    if (rc >= 0)
        session_tell_late(s);
    session_close(s);
    s->report->seconds = (double)(session_now_ns() - s->started_ns) * 1e-9;
    s->bar.title = "sent";
    cli_progress_end(&s->bar, s->report->sent);
    return s->report->fault[0] ? CLI_PROBLEMS : CLI_OK;
}

int send_session(const send_options *options, send_source *source, send_report *report) {
    session *s = calloc(1, sizeof *s);
    *report = (send_report){.sent = 0};
    if (!s) {
        send_say("no memory");
        return CLI_USAGE;
    }
    s->options = options;
    s->source = source;
    s->report = report;
    send_random_seed(&s->random, options->simulation.seed);
    session_catch_signals();
    int status = CLI_USAGE;
    if (session_connect(s) == 0 && session_open(s) == 0)
        status = session_work(s);
    photon_client_free(s->client);
    free(s);
    return status;
}
