#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

/* How long photon_client_free() waits for the server to take what is on its way. */
enum { CLIENT_FREE_MS = 1000 };

#define CLIENT_KEEP_BYTES (UINT64_C(64) << 20)
#define CLIENT_KEEP_BYTES_MIN (UINT64_C(64) << 10)
#define CLIENT_KEEP_BYTES_MAX (UINT64_C(1) << 40)

const char *photon_client_version(void) {
    return PHOTON_CLIENT_VERSION;
}

void photon_client_options_init(photon_client_options *options) {
    *options = (photon_client_options){.client_name = "photon-client",
                                       .software = "photon-client " PHOTON_CLIENT_VERSION,
                                       .connect_timeout_ms = 10000,
                                       .silence_timeout_ms = 30000,
                                       .reconnect = true,
                                       .reconnect_timeout_ms = 600000,
                                       .reconnect_min_ms = 100,
                                       .reconnect_max_ms = 5000,
                                       .keep_bytes = CLIENT_KEEP_BYTES};
}

int client__wait(photon_client *c, uint64_t deadline_ns) {
    if (deadline_ns == CLIENT_NO_DEADLINE) {
        pthread_cond_wait(&c->changed, &c->lock);
        return 0;
    }
    struct timespec t = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                         .tv_nsec = (long)(deadline_ns % 1000000000u)};
    return pthread_cond_timedwait(&c->changed, &c->lock, &t) == ETIMEDOUT ? -1 : 0;
}

static bool client_name_fits(const char *name) {
    return name && *name && strlen(name) <= 128;
}

static int client_check_options(const photon_client_options *o, photon_client_error *err) {
    if (!o->address)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "options.address is required");
    if (!client_name_fits(o->client_name))
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "options.client_name has to have 1 to 128 bytes");
    if (o->instance && !client_name_fits(o->instance))
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "options.instance has to have 1 to 128 bytes");
    if (o->key_file && !o->certificate_file)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "options.key_file needs certificate_file");
    if (!o->software || strlen(o->software) > 128)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "options.software has to have up to 128 bytes");
    if (o->reconnect_min_ms == 0 || o->reconnect_max_ms < o->reconnect_min_ms)
        return client__error(err, PHOTON_CLIENT_ERR_ARG,
                             "options.reconnect_min_ms has to be from 1 to reconnect_max_ms");
    if (o->keep_bytes < CLIENT_KEEP_BYTES_MIN || o->keep_bytes > CLIENT_KEEP_BYTES_MAX)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "options.keep_bytes has to be from 64 KiB to 1 TiB");
    return 0;
}

static photon_client *client_make(void) {
    photon_client *c = calloc(1, sizeof *c);
    pthread_condattr_t attributes;
    if (!c)
        return NULL;
    c->link.fd = -1;
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake_fd < 0) {
        free(c);
        return NULL;
    }
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return c;
}

static void client_unmake(photon_client *c) {
    client__link_close(&c->link);
    client__tls_trust_free(c->trust);
    close(c->wake_fd);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    if (c->welcome)
        photon__server_message__free_unpacked(c->welcome, NULL);
    free(c->identity.client_name);
    free(c->identity.instance);
    free(c->identity.software);
    free(c->identity.token);
    free(c->pending.data);
    free(c->in.data);
    free(c);
}

/* "HOST-PID-RANDOM": like no other, so that nobody takes over from anybody by chance. */
static void client_instance(char *text, size_t cap) {
    char host[65] = "";
    uint32_t number = 0;
    if (gethostname(host, sizeof host - 1) != 0 || !*host)
        snprintf(host, sizeof host, "host");
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (uint32_t)client__now_ns();
    snprintf(text, cap, "%s-%ld-%08x", host, (long)getpid(), (unsigned)number);
}

static int client_identify(photon_client *c, const photon_client_options *o) {
    char instance[128];
    client_identity *i = &c->identity;
    client_instance(instance, sizeof instance);
    i->client_name = strdup(o->client_name);
    i->instance = strdup(o->instance ? o->instance : instance);
    i->software = strdup(o->software);
    i->token = malloc(o->token_bytes + 1);
    if (!i->client_name || !i->instance || !i->software || !i->token)
        return -1;
    if (o->token_bytes)
        memcpy(i->token, o->token, o->token_bytes);
    i->token_bytes = o->token_bytes;
    i->epoch = o->epoch ? o->epoch : client__utc_ns();
    return 0;
}

int client__connect_once(photon_client *c, uint64_t deadline_ns, Photon__ServerMessage **ret_welcome,
                         photon_client_error *err) {
    client__link_close(&c->link);
    c->in.begin = c->in.end = c->pending.begin = c->pending.end = 0;
    int rc = client__dial(&c->address, c->wake_fd, deadline_ns, &c->link.fd, err);
    if (rc == 0 && c->trust)
        rc = client__tls_begin(&c->link.tls, c->trust, c->link.fd, c->wake_fd, c->address.host,
                               c->address_text, deadline_ns, err);
    return rc == 0 ? client__hello(c, deadline_ns, ret_welcome, err) : rc;
}

/* The server may know a start of this instance from a time to come (its clock, or ours, was set back): we are the
 * newer one nevertheless. */
static int client_reach_once(photon_client *c, bool own_epoch, uint64_t deadline_ns,
                             photon_client_error *err) {
    int rc = client__connect_once(c, deadline_ns, &c->welcome, err);
    bool stale = rc == PHOTON_CLIENT_ERR_REFUSED && err->server_code == PHOTON__ERROR_CODE__ERROR_STALE_EPOCH;
    if (!stale || own_epoch || err->sequence == UINT64_MAX)
        return rc;
    uint64_t now = client__utc_ns();
    c->identity.epoch = now > err->sequence ? now : err->sequence + 1;
    return client__connect_once(c, deadline_ns, &c->welcome, err);
}

static int client_reach(photon_client *c, const photon_client_options *o, photon_client_error *err) {
    photon_client_error why = {.code = 0};
    uint64_t deadline = client__deadline(o->connect_timeout_ms);
    for (unsigned attempt = 0;; attempt++) {
        int rc = client_reach_once(c, o->epoch != 0, deadline, &why);
        uint64_t pause = client__backoff_ns(c, attempt, why.retry_after_ms);
        bool again = o->wait_for_server && client__worth_retrying(&why);
        if (rc == 0)
            return 0;
        if (!again || (deadline != CLIENT_NO_DEADLINE && client__now_ns() + pause >= deadline))
            return client__copy_error(err, &why);
        nanosleep(&(struct timespec){.tv_sec = (time_t)(pause / 1000000000u),
                                     .tv_nsec = (long)(pause % 1000000000u)},
                  NULL);
    }
}

/* The program's signals are for its own threads. */
static int client_start_reader(photon_client *c, photon_client_error *err) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int os_errno = pthread_create(&c->thread, NULL, client__reader_main, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (os_errno)
        return client__os_error(err, PHOTON_CLIENT_ERR_NOMEM, os_errno,
                                "the thread of the client cannot be started");
    return 0;
}

int photon_client_connect(photon_client **ret_client, const photon_client_options *options,
                          photon_client_error *err) {
    wire_address address;
    char why[128];
    int rc = client_check_options(options, err);
    if (rc != 0)
        return rc;
    if (wire_address_parse(options->address, &address, why, sizeof why) != 0)
        return client__error(err, PHOTON_CLIENT_ERR_ADDRESS, "'%s': %s", options->address, why);
    photon_client *c = client_make();
    if (!c)
        return client__os_error(err, PHOTON_CLIENT_ERR_NOMEM, errno, "no memory or descriptor for a client");
    c->address = address;
    wire_address_text(&address, c->address_text);
    c->silence_timeout_ms = options->silence_timeout_ms;
    c->connect_timeout_ms = options->connect_timeout_ms;
    c->reconnect = options->reconnect;
    c->reconnect_timeout_ms = options->reconnect_timeout_ms;
    c->reconnect_min_ms = options->reconnect_min_ms;
    c->reconnect_max_ms = options->reconnect_max_ms;
    c->keep_bytes = options->keep_bytes;
    c->on_event = options->on_event;
    c->event_context = options->event_context;
    if (client_identify(c, options) != 0)
        rc = client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for a client");
    if (rc == 0 && address.kind == WIRE_ADDRESS_TLS)
        rc = client__tls_trust(&c->trust, options, err);
    if (rc == 0)
        rc = client_reach(c, options, err);
    if (rc == 0) {
        c->server.software = c->welcome->welcome->software;
        c->server.epoch = c->identity.epoch;
        client__learn_limits(c, c->welcome->welcome);
        c->heard_ns = c->said_ns = c->up_ns = c->good_ns = client__now_ns();
        c->n_connections = 1;
        rc = client_start_reader(c, err);
    }
    if (rc != 0) {
        client_unmake(c);
        return rc;
    }
    *ret_client = c;
    return 0;
}

void photon_client_server_info(const photon_client *client, photon_client_server *ret_info) {
    photon_client *c = (photon_client *)(uintptr_t)client; /* for its lock */
    pthread_mutex_lock(&c->lock);
    *ret_info = c->server;
    pthread_mutex_unlock(&c->lock);
}

int photon_client_check(photon_client *client, photon_client_error *err) {
    pthread_mutex_lock(&client->lock);
    int rc = client->failed || client->down ? client__copy_error(err, &client->failure) : 0;
    pthread_mutex_unlock(&client->lock);
    return rc;
}

/* Whether messages of an open run are not with the server yet. Under lock. */
static bool client_is_owing(const photon_client *c) {
    for (const photon_client_run *run = c->runs; run; run = run->next)
        if (run->phase == CLIENT_RUN_OPEN && run->received < run->sent)
            return true;
    return false;
}

void photon_client_free(photon_client *client) {
    if (!client)
        return;
    uint64_t deadline = client__deadline(CLIENT_FREE_MS);
    pthread_mutex_lock(&client->lock);
    while (client_is_owing(client) && !client->failed && client__wait(client, deadline) == 0) {
    }
    client->stopping = true;
    pthread_mutex_unlock(&client->lock);
    client__wake(client);
    pthread_join(client->thread, NULL);
    while (client->runs)
        photon_client_run_free(client->runs);
    client_unmake(client);
}
