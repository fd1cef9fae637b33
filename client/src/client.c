#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

/* How long photon_client_free() waits for the server to take what is on its way. */
enum { CLIENT_FREE_MS = 1000 };

const char *photon_client_version(void) {
    return PHOTON_CLIENT_VERSION;
}

void photon_client_options_init(photon_client_options *options) {
    *options = (photon_client_options){.client_name = "photon-client",
                                       .software = "photon-client " PHOTON_CLIENT_VERSION,
                                       .connect_timeout_ms = 10000,
                                       .silence_timeout_ms = 30000};
}

void client__fail(photon_client *c, const photon_client_error *err) {
    if (!c->failed) {
        c->failed = true;
        c->failure = *err;
        shutdown(c->fd, SHUT_RDWR);
        eventfd_write(c->wake_fd, 1);
    }
    pthread_cond_broadcast(&c->changed);
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
    if (!o->software || strlen(o->software) > 128)
        return client__error(err, PHOTON_CLIENT_ERR_ARG, "options.software has to have up to 128 bytes");
    return 0;
}

static photon_client *client_make(void) {
    photon_client *c = calloc(1, sizeof *c);
    pthread_condattr_t attributes;
    if (!c)
        return NULL;
    c->fd = -1;
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
    if (c->fd >= 0)
        close(c->fd);
    close(c->wake_fd);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    if (c->welcome)
        photon__server_message__free_unpacked(c->welcome, NULL);
    free(c->pending.data);
    free(c->in.data);
    free(c);
}

/* One attempt: dial and introduce. */
static int client_introduce(photon_client *c, const photon_client_options *options, uint64_t epoch,
                            uint64_t deadline_ns, photon_client_error *err) {
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->in.begin = c->in.end = c->pending.begin = c->pending.end = 0;
    int rc = client__dial(&c->address, deadline_ns, &c->fd, err);
    return rc == 0 ? client__hello(c, options, epoch, deadline_ns, err) : rc;
}

/* The server may know a start of this instance from a time to come (its clock, or ours, was set back): we are the
 * newer one nevertheless. */
static int client_reach(photon_client *c, const photon_client_options *options, uint64_t deadline_ns,
                        photon_client_error *err) {
    photon_client_error why = {.code = 0};
    uint64_t epoch = options->epoch ? options->epoch : client__utc_ns();
    int rc = client_introduce(c, options, epoch, deadline_ns, &why);
    bool stale = rc == PHOTON_CLIENT_ERR_REFUSED && why.server_code == PHOTON__ERROR_CODE__ERROR_STALE_EPOCH;
    if (stale && options->epoch == 0 && why.sequence != UINT64_MAX) {
        epoch = client__utc_ns();
        epoch = epoch > why.sequence ? epoch : why.sequence + 1;
        rc = client_introduce(c, options, epoch, deadline_ns, &why);
    }
    return rc == 0 ? 0 : client__copy_error(err, &why);
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
    rc = client_reach(c, options, client__deadline(options->connect_timeout_ms), err);
    if (rc == 0) {
        c->heard_ns = c->said_ns = client__now_ns();
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
    *ret_info = client->server;
}

int photon_client_check(photon_client *client, photon_client_error *err) {
    pthread_mutex_lock(&client->lock);
    int rc = client->failed ? client__copy_error(err, &client->failure) : 0;
    pthread_mutex_unlock(&client->lock);
    return rc;
}

void photon_client_free(photon_client *client) {
    if (!client)
        return;
    uint64_t deadline = client__deadline(CLIENT_FREE_MS);
    pthread_mutex_lock(&client->lock);
    while (client->in_flight_bytes && !client->failed && client__wait(client, deadline) == 0) {
    }
    client->stopping = true;
    pthread_mutex_unlock(&client->lock);
    eventfd_write(client->wake_fd, 1);
    pthread_join(client->thread, NULL);
    while (client->runs)
        photon_client_run_free(client->runs);
    client_unmake(client);
}
