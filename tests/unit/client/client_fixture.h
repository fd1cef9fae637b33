/* What the tests of the client library share: a fake server, a client of it, a run. */
#ifndef TESTS_CLIENT_FIXTURE_H
#define TESTS_CLIENT_FIXTURE_H

#include "testing.h"

#include "fake_server.h"
#include "photon_client.h"

typedef struct fixture {
    fake_server server;
    photon_client_options options;
    photon_client *client;
    photon_client_error err;
} fixture;

/* cmocka's setup and teardown. The test sets knobs, then calls fixture_start(). */
static inline int fixture_setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    fake_init(&f->server);
    photon_client_options_init(&f->options);
    f->options.connect_timeout_ms = 60000;
    f->options.reconnect = false; /* tests of coming back switch it on */
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state) {
    fixture *f = *state;
    fake_release(&f->server);
    free(f);
    return 0;
}

static inline void fixture_listen(fixture *f) {
    fake_start(&f->server);
    f->options.address = f->server.address;
}

static inline void fixture_start(fixture *f) {
    fixture_listen(f);
    int rc = photon_client_connect(&f->client, &f->options, &f->err);
    if (rc != 0)
        fail_msg("%s", f->err.text);
}

static inline void fixture_stop(fixture *f) {
    photon_client_free(f->client);
    f->client = NULL;
    const char *complaint = fake_stop(&f->server);
    if (complaint)
        fail_msg("the server complains: %s", complaint);
}

static inline photon_client_run *fixture_open(fixture *f, const char *name) {
    photon_client_run_options o;
    photon_client_run *run = NULL;
    photon_client_run_options_init(&o);
    o.name = name;
    o.profile = "lincam";
    if (photon_client_open(f->client, &o, &run, &f->err) != 0)
        fail_msg("%s", f->err.text);
    return run;
}

/* Columns as a LINCam has them: photon i at x = i, y = 2 i, dt = 3 i, one millisecond per 100 photons. */
typedef struct photons {
    uint16_t *x, *y, *dt;
    uint64_t *ms;
    uint64_t counts[2];
    const void *columns[4];
} photons;

static inline photons photons_make(uint64_t n) {
    photons p = {malloc(n * 2 + 2),         malloc(n * 2 + 2),   malloc(n * 2 + 2),
                 malloc((n / 100 + 1) * 8), {n, (n + 99) / 100}, {NULL}};
    assert_true(p.x && p.y && p.dt && p.ms);
    for (uint64_t i = 0; i < n; i++) {
        p.x[i] = (uint16_t)i;
        p.y[i] = (uint16_t)(2 * i);
        p.dt[i] = (uint16_t)(3 * i);
    }
    for (uint64_t i = 0; i < p.counts[1]; i++)
        p.ms[i] = 100 * i;
    p.columns[0] = p.x;
    p.columns[1] = p.y;
    p.columns[2] = p.dt;
    p.columns[3] = p.ms;
    return p;
}

static inline void photons_free(photons *p) {
    free(p->x);
    free(p->y);
    free(p->dt);
    free(p->ms);
}

/* Held against what the server has. */
static inline void photons_check(const photons *p, const fake_run *run) {
    static const char *const names[] = {"/photons/x", "/photons/y", "/photons/dt", "/photons/ms"};
    for (size_t i = 0; i < 4; i++) {
        const fake_column *c = fake_find(run, names[i]);
        assert_non_null(c);
        assert_int_equal(c->bytes, i < 3 ? 2 * p->counts[0] : 8 * p->counts[1]);
        assert_memory_equal(c->data, p->columns[i], c->bytes);
    }
}

#endif
