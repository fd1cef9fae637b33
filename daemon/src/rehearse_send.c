/* The events of a rehearsal go to its daemon as an instrument's do: by the client library, over a socket. */
#include <math.h>
#include <stdlib.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "photon_client.h"
#include "rehearse_events.h"
#include "rehearse_private.h"

enum {
    SEND_TIMEOUT_MS = 1000, /* after which a call that waits looks whether it is to stop */
    SEND_CLOSE_MS = 300000,
    SEND_DRAIN_S = 300,
    SEND_PATIENCE_MS = 120000, /* a machine that is too slow is to be told so, not given up */
    SEND_BATCHES_PER_S = 100,
    SEND_BATCH_EVENTS = 100000
};

typedef struct sender {
    rehearsal *r;
    pd_rehearse_events *events;
    photon_client *client;
    photon_client_run *run;
    photon_client_run_info info;
    uint64_t *counts; /* [info.n_groups] */
    photon_client_error err;
} sender;

static uint64_t events_per_batch(const rehearsal *r) {
    double n = ceil(r->rate_hz / SEND_BATCHES_PER_S);
    return n > SEND_BATCH_EVENTS ? SEND_BATCH_EVENTS : (uint64_t)n;
}

static int sender_open(sender *s) {
    static const photon_client_attribute lincam[] = {
        {"/photons/PositionBits", "12"}, {"/photons/TacBits", "12"}, {"/photons/TacChannel", "12.3"}};
    char path[128], address[160];
    photon_client_options options;
    photon_client_run_options opening;
    photon_client_options_init(&options);
    photon_client_run_options_init(&opening);
    pd_rehearse__socket(s->r, "ingest", path);
    snprintf(address, sizeof address, "unix:%s", path);
    options.address = address;
    options.client_name = REHEARSE_NAME;
    options.reconnect = false;
    options.connect_timeout_ms = options.silence_timeout_ms = opening.open_timeout_ms = SEND_PATIENCE_MS;
    opening.name = REHEARSE_NAME;
    opening.profile = s->r->profile_name;
    if (s->r->profile->lincam) {
        opening.attributes = lincam;
        opening.n_attributes = sizeof lincam / sizeof *lincam;
    }
    if (photon_client_connect(&s->client, &options, &s->err) != 0 ||
        photon_client_open(s->client, &opening, &s->run, &s->err) != 0)
        return pd_rehearse__fail("%s", s->err.text);
    photon_client_run_describe(s->run, &s->info);
    s->counts = calloc(s->info.n_groups, sizeof *s->counts);
    return s->counts ? 0 : pd_rehearse__fail("out of memory");
}

/* Sends n events, however long that takes. Returns 0, or an exit code: it is to stop, or nothing goes any more. */
static int sender_send(sender *s, uint64_t n) {
    const void *const *columns;
    const uint64_t *items;
    const void *rest[PD_PROFILE_DATASETS_MAX];
    uint64_t taken[PD_PROFILE_DATASETS_MAX];
    pd_rehearse_events_next(s->events, n, &columns, &items);
    for (size_t i = 0; i < s->info.n_datasets; i++) {
        s->counts[s->info.datasets[i].group_index] = items[i];
        rest[i] = columns[i];
    }
    for (;;) {
        photon_client_batch batch = {.columns = rest, .counts = s->counts, .timeout_ms = SEND_TIMEOUT_MS};
        int code = photon_client_send_batch(s->run, &batch, taken, &s->err);
        if (code == 0)
            return 0;
        if (code != PHOTON_CLIENT_ERR_TIMEOUT || pd_rehearse__stopped)
            return pd_rehearse__stopped ? CLI_USAGE : pd_rehearse__fail("%s", s->err.text);
        for (size_t i = 0; i < s->info.n_datasets; i++) {
            size_t g = s->info.datasets[i].group_index;
            rest[i] = (const uint8_t *)rest[i] + taken[g] * s->info.datasets[i].item_bytes;
        }
        for (size_t g = 0; g < s->info.n_groups; g++)
            s->counts[g] -= taken[g];
    }
}

/* Whatever is due, until the time is over; what is missing of the last batch then comes after it. */
static int sender_stream(sender *s, cli_progress *bar) {
    rehearsal *r = s->r;
    uint64_t per_batch = events_per_batch(r);
    double began = pd_rehearse__now(), now = 0;
    int code = 0;
    while (code == 0 && r->sent < r->asked && now < r->seconds) {
        double due = fmin(now * r->rate_hz, (double)r->asked) - (double)r->sent;
        if (due >= (double)per_batch) {
            code = sender_send(s, per_batch);
            r->sent += code == 0 ? per_batch : 0;
            cli_progress_update(bar, r->sent);
        } else {
            pd_rehearse__sleep(fmin(((double)per_batch - due) / r->rate_hz, r->seconds - now));
        }
        now = pd_rehearse__now() - began;
        if (pd_rehearse__stopped)
            code = CLI_USAGE;
    }
    uint64_t rest = r->asked - r->sent;
    if (code == 0 && rest > 0 && rest <= per_batch) {
        code = sender_send(s, rest);
        r->sent += code == 0 ? rest : 0;
    }
    r->sent_s = pd_rehearse__now() - began;
    return code;
}

/* Until all is on the disk. */
static int sender_drain(sender *s) {
    double began = pd_rehearse__now();
    int code = PHOTON_CLIENT_ERR_TIMEOUT;
    while (code == PHOTON_CLIENT_ERR_TIMEOUT && !pd_rehearse__stopped &&
           pd_rehearse__now() - began < SEND_DRAIN_S)
        code = photon_client_flush(s->run, SEND_TIMEOUT_MS, &s->err);
    s->r->durable_s = s->r->sent_s + pd_rehearse__now() - began;
    return pd_rehearse__stopped ? CLI_USAGE : code ? pd_rehearse__fail("%s", s->err.text) : 0;
}

static int sender_close(sender *s) {
    photon_client_result result;
    if (photon_client_close_run(s->run, SEND_CLOSE_MS, &result, &s->err) != 0)
        return pd_rehearse__fail("%s", s->err.text);
    s->r->status = pd_rehearse__status(s->r);
    return s->r->status ? 0 : pd_rehearse__fail("the daemon of the rehearsal does not answer");
}

int pd_rehearse__send(rehearsal *r) {
    sender s = {.r = r};
    pd_error err = {""};
    cli_progress bar;
    r->asked = (uint64_t)ceil(r->rate_hz * r->seconds);
    int code = sender_open(&s);
    if (code == 0 &&
        pd_rehearse_events_make(&s.events, r->profile, r->rate_hz, events_per_batch(r), &err) != 0)
        code = pd_rehearse__fail("%s", err.text);
    cli_progress_start(&bar, "rehearsing", "events", r->asked);
    if (code == 0)
        code = sender_stream(&s, &bar);
    cli_progress_end(&bar, r->sent);
    if (code == 0)
        code = sender_drain(&s);
    if (code == 0)
        code = sender_close(&s);
    if (s.client)
        photon_client_free(s.client);
    pd_rehearse_events_free(s.events);
    free(s.counts);
    return code;
}
