/* Coming back: the connection is lost, or the server was started anew, or asks for a part again; every event is stored
 * once. And servers that lie: an error, never a crash. */
#include "client_fixture.h"

enum { LONG_MS = 120000 };

typedef struct script {
    atomic_uint step;
    atomic_uint events[16]; /* by kind */
} script;

static void count_event(void *context, const photon_client_event *event) {
    script *s = context;
    atomic_fetch_add(&s->events[event->kind % 16], 1);
}

static void start(fixture *f, script *s, bool (*hook)(fake_server *s, const Photon__ClientMessage *m)) {
    f->options.reconnect = true;
    f->options.reconnect_min_ms = 1;
    f->options.reconnect_max_ms = 20;
    f->options.on_event = count_event;
    f->options.event_context = s;
    f->server.test = s;
    f->server.hook = hook;
    f->server.batch_bytes = 2000;
    fixture_start(f);
}

static bool is_batch(const Photon__ClientMessage *m, uint64_t sequence) {
    return m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH && m->batch->sequence == sequence;
}

/* ---- lost connections */

static bool hang_up_at_every_tenth(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH || m->batch->sequence % 10 != 0)
        return false;
    t->step++;
    fake_hang_up(s);
    return t->step % 2 == 0; /* taken or not: nobody is told */
}

static void lost_connection_is_made_again(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(40000);
    photon_client_run_status status;
    photon_client_result result;
    start(f, &t, hang_up_at_every_tenth);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, LONG_MS, &result, &f->err), 0);
    assert_int_equal(result.datasets[0].items, 40000);
    photon_client_status(run, &status);
    assert_true(status.connections >= 10 && status.resent > 0 && status.connected);
    fixture_stop(f);
    assert_true(atomic_load(&t.events[PHOTON_CLIENT_EVENT_LOST]) >= 10);
    assert_int_equal(atomic_load(&t.events[PHOTON_CLIENT_EVENT_LOST]),
                     atomic_load(&t.events[PHOTON_CLIENT_EVENT_RECONNECTED]));
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* The cut comes at any byte of what is sent or answered: within lengths, heads, columns, acknowledgements. */
static void connection_may_be_cut_at_any_byte(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(200000);
    photon_client_attribute a = {"key", "value"};
    f->server.window_bytes = 50000;
    f->server.durable_behind = 7;
    f->server.cut_every = 2500;
    f->server.cuts = 1000;
    f->options.connect_timeout_ms = LONG_MS;
    f->options.wait_for_server = true;
    start(f, &t, NULL);
    photon_client_run *run = fixture_open(f, "run");
    for (uint64_t i = 0; i < 20; i++) {
        const void *columns[] = {p.x + 10000 * i, p.y + 10000 * i, p.dt + 10000 * i, p.ms + 100 * i};
        assert_int_equal(photon_client_send(run, columns, (uint64_t[]){10000, 100}, &f->err), 0);
        assert_int_equal(photon_client_set_attributes(run, &a, 1, &f->err), 0);
    }
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(f->server.n_runs, 1);
    assert_true(f->server.connections > 200);
    assert_int_equal(f->server.runs[0].n_attributes, 20);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* ---- sources that can be read again */

typedef struct rereading {
    const photons *p;
    unsigned calls;
    unsigned broken; /* 1: fails; 2: gives other events */
} rereading;

static int read_photons_again(void *context, const uint64_t *first, const uint64_t *counts,
                              const void **columns) {
    rereading *r = context;
    (void)counts;
    if (++r->calls > 20 && r->broken == 1)
        return -1;
    uint64_t from = r->calls > 20 && r->broken == 2 ? first[0] + 1 : first[0];
    columns[0] = r->p->x + from;
    columns[1] = r->p->y + from;
    columns[2] = r->p->dt + from;
    columns[3] = r->p->ms + first[1];
    return 0;
}

static photon_client_run *open_rereading(fixture *f, rereading *r) {
    photon_client_run_options o;
    photon_client_run *run = NULL;
    photon_client_run_options_init(&o);
    o.name = "run";
    o.profile = "lincam";
    o.read_again = read_photons_again;
    o.read_context = r;
    assert_int_equal(photon_client_open(f->client, &o, &run, &f->err), 0);
    return run;
}

static void source_may_be_read_again_in_place_of_being_kept(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(100000);
    rereading r = {.p = &p};
    f->server.window_bytes = 50000;
    f->server.durable_behind = 7;
    f->server.cut_every = 5000;
    f->server.cuts = 100;
    f->options.connect_timeout_ms = LONG_MS;
    f->options.wait_for_server = true;
    start(f, &t, NULL);
    photon_client_run *run = open_rereading(f, &r);
    for (uint64_t i = 0; i < 10; i++) {
        const void *columns[] = {p.x + 10000 * i, p.y + 10000 * i, p.dt + 10000 * i, p.ms + 100 * i};
        assert_int_equal(photon_client_send(run, columns, (uint64_t[]){10000, 100}, &f->err), 0);
    }
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    photon_client_run_free(run);
    fixture_stop(f);
    assert_true(f->server.connections > 50);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

static void source_that_gives_others_or_none_is_an_error(void **state) {
    (void)state;
    photons p = photons_make(100000);
    for (unsigned broken = 1; broken <= 2; broken++) {
        fixture *f = NULL;
        script t = {.step = 0};
        rereading r = {.p = &p, .broken = broken};
        assert_int_equal(fixture_setup((void **)&f), 0);
        start(f, &t, NULL);
        photon_client_run *run = open_rereading(f, &r);
        (void)!photon_client_send(run, p.columns, p.counts, &f->err);
        assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), PHOTON_CLIENT_ERR_INCOMPLETE);
        assert_non_null(strstr(f->err.text, broken == 1 ? "cannot be read again" : "others now"));
        fixture_stop(f);
        fixture_teardown((void **)&f);
    }
    photons_free(&p);
}

static bool hang_up_at_each_kind(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    bool now = (t->step == 0 && m->body_case == PHOTON__CLIENT_MESSAGE__BODY_OPEN) ||
               (t->step == 2 && m->body_case == PHOTON__CLIENT_MESSAGE__BODY_ATTRIBUTES) ||
               (t->step == 4 && m->body_case == PHOTON__CLIENT_MESSAGE__BODY_CLOSE) ||
               (t->step == 6 && m->body_case == PHOTON__CLIENT_MESSAGE__BODY_OPEN);
    bool take = t->step % 4 == 0;
    if (t->step % 2 == 1 && m->body_case == PHOTON__CLIENT_MESSAGE__BODY_HELLO)
        t->step++;
    if (!now)
        return false;
    t->step++;
    if (take) {
        s->mute = true;
        fake_take(s, m);
        s->mute = false;
    }
    fake_hang_up(s);
    return true;
}

static void every_answer_may_be_lost(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(1000);
    photon_client_attribute a = {"key", "value"};
    photon_client_result result;
    start(f, &t, hang_up_at_each_kind);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_set_attributes(run, &a, 1, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, LONG_MS, &result, &f->err), 0);
    assert_int_equal(result.datasets[0].items, 1000);
    fixture_stop(f);
    assert_true(t.step >= 7);
    assert_int_equal(f->server.n_runs, 1);
    assert_int_equal(f->server.runs[0].n_attributes, 1);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* While the server does not read the window takes what there is room for, then the call says so. */
static void full_window_says_so(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(20000);
    photon_client_run_status status;
    uint64_t taken[2];
    f->server.window_bytes = 20000;
    start(f, &t, NULL);
    photon_client_run *run = fixture_open(f, "run");
    atomic_store(&f->server.hold_reading, 1);
    photon_client_batch batch = {.columns = p.columns, .counts = p.counts, .timeout_ms = 100};
    assert_int_equal(photon_client_send_batch(run, &batch, taken, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    photon_client_status(run, &status);
    assert_in_range(status.kept_bytes, 18000, 20000);
    assert_true(taken[0] * 6 + taken[1] * 8 >= status.kept_bytes);
    atomic_store(&f->server.hold_reading, 0);
    const void *rest[] = {p.x + taken[0], p.y + taken[0], p.dt + taken[0], p.ms + taken[1]};
    uint64_t counts[] = {p.counts[0] - taken[0], p.counts[1] - taken[1]};
    assert_int_equal(photon_client_send(run, rest, counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* ---- servers that were started anew */

/* At batch 20 the server dies: all after batch 10, the last that it had called durable, is gone. */
static bool die_and_forget(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    if (!is_batch(m, 20) || t->step++ >= 3)
        return false;
    fake_run *run = &s->runs[0];
    uint64_t items[2] = {fake_find(run, "/photons/x")->bytes / 2, fake_find(run, "/photons/ms")->bytes / 8};
    for (uint64_t i = 19; i > 10; i--) /* each batch has 8 photons, every 13th or so a millisecond */
        items[0] -= 100;
    items[1] = items[0] / 100;
    fake_forget(run, 10, items);
    fake_hang_up(s);
    return true;
}

static void server_that_forgot_what_was_not_durable_gets_it_again(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(10000);
    photon_client_run_status status;
    f->server.window_bytes = 1 << 20;
    f->server.durable_behind = 9;
    start(f, &t, die_and_forget);
    photon_client_run *run = fixture_open(f, "run");
    for (uint64_t i = 0; i < 100; i++) { /* 100 photons and a millisecond each */
        const void *columns[] = {p.x + 100 * i, p.y + 100 * i, p.dt + 100 * i, p.ms + i};
        assert_int_equal(photon_client_send(run, columns, (uint64_t[]){100, 1}, &f->err), 0);
    }
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    photon_client_status(run, &status);
    assert_int_equal(status.sent, 100);
    assert_true(status.resent >= 27);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

static bool forget_all(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    if (!is_batch(m, 20) || t->step++)
        return false;
    fake_forget(&s->runs[0], 0, (uint64_t[]){0, 0});
    fake_hang_up(s);
    return true;
}

static void server_that_forgot_what_was_durable_is_an_error(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(10000);
    f->server.window_bytes = 1 << 20;
    f->server.durable_behind = 9;
    start(f, &t, forget_all);
    photon_client_run *run = fixture_open(f, "run");
    (void)!photon_client_send(run, p.columns, p.counts, &f->err);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), PHOTON_CLIENT_ERR_INCOMPLETE);
    assert_non_null(strstr(f->err.text, "durable"));
    photon_client_free(f->client);
    fake_stop(&f->server);
    photons_free(&p);
}

static bool no_room_at_first(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    if (is_batch(m, 5) && t->step == 0) {
        t->step = 1;
        fake_hang_up(s);
        return true;
    }
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_OPEN || t->step == 0 || t->step > 3)
        return false;
    t->step++;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_NO_ROOM, PHOTON__ERROR_SCOPE__SCOPE_RUN, 1, 0, "too many runs");
    return true;
}

static void run_that_finds_no_room_waits_for_it(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(10000);
    start(f, &t, no_room_at_first);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(t.step, 4);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* ---- what the server asks for */

static void tell_resend(fake_server *s, uint64_t from) {
    Photon__Resend r = PHOTON__RESEND__INIT;
    Photon__ServerMessage m = PHOTON__SERVER_MESSAGE__INIT;
    static char text[] = "a sync has failed: a new part begins";
    r.run = 1;
    r.from_sequence = from;
    r.text = text;
    m.body_case = PHOTON__SERVER_MESSAGE__BODY_RESEND;
    m.resend = &r;
    fake_answer(s, &m);
}

static bool refuse_close(fake_server *s, const Photon__ClientMessage *m, uint64_t missing) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_CLOSE)
        return false;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_HOLE, PHOTON__ERROR_SCOPE__SCOPE_BATCH, 1, missing, "not all");
    return true;
}

/* After 20 messages the last 5 are wanted again; what is on its way before they come is passed over. */
static bool want_five_again(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    if (t->step == 1 && refuse_close(s, m, 16))
        return true;
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    if (t->step == 0 && m->batch->sequence == 20) {
        fake_run *run = &s->runs[0];
        fake_forget(run, 15, (uint64_t[]){1500, 15});
        tell_resend(s, 16);
        t->step = 1;
        return true;
    }
    if (t->step == 1 && m->batch->sequence != 16)
        return true;
    if (t->step == 1)
        t->step = 2;
    return false;
}

static void part_of_the_run_is_sent_again_when_asked_for(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(10000);
    f->server.window_bytes = 1 << 20;
    f->server.durable_behind = 10;
    start(f, &t, want_five_again);
    photon_client_run *run = fixture_open(f, "run");
    for (uint64_t i = 0; i < 100; i++) {
        const void *columns[] = {p.x + 100 * i, p.y + 100 * i, p.dt + 100 * i, p.ms + i};
        assert_int_equal(photon_client_send(run, columns, (uint64_t[]){100, 1}, &f->err), 0);
    }
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(t.step, 2);
    assert_int_equal(atomic_load(&t.events[PHOTON_CLIENT_EVENT_RESENDING]), 1);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

static bool miss_one(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    if (t->step == 1 && refuse_close(s, m, 7))
        return true;
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH || t->step == 3)
        return false;
    if (t->step == 0 && m->batch->sequence == 7) {
        fake_error(s, PHOTON__ERROR_CODE__ERROR_HOLE, PHOTON__ERROR_SCOPE__SCOPE_BATCH, 1, 7, "7 is missing");
        t->step = 1;
        return true;
    }
    if (t->step == 1 && m->batch->sequence == 7)
        t->step = 3; /* sent again */
    return t->step == 1;
}

static void missed_message_is_sent_again(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(10000);
    start(f, &t, miss_one);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(t.step, 3);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* ---- ends */

static bool supersede(fake_server *s, const Photon__ClientMessage *m) {
    if (!is_batch(m, 3))
        return false;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_SUPERSEDED, PHOTON__ERROR_SCOPE__SCOPE_CONNECTION, 0, 0, "newer");
    fake_hang_up(s);
    return true;
}

static void superseded_client_does_not_come_back(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(10000);
    start(f, &t, supersede);
    photon_client_run *run = fixture_open(f, "run");
    (void)!photon_client_send(run, p.columns, p.counts, &f->err);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(f->err.server_code, PHOTON__ERROR_CODE__ERROR_SUPERSEDED);
    photon_client_free(f->client);
    f->client = NULL;
    fake_stop(&f->server);
    assert_int_equal(f->server.connections, 1);
    assert_int_equal(atomic_load(&t.events[PHOTON_CLIENT_EVENT_FAILED]), 1);
    photons_free(&p);
}

static bool wrong_checksum(fake_server *s, const Photon__ClientMessage *m) {
    if (!is_batch(m, 3))
        return false;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_CHECKSUM, PHOTON__ERROR_SCOPE__SCOPE_CONNECTION, 0, 3, "wrong");
    fake_hang_up(s);
    return true;
}

static void checksum_that_is_always_wrong_is_given_up(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(10000);
    start(f, &t, wrong_checksum);
    photon_client_run *run = fixture_open(f, "run");
    (void)!photon_client_send(run, p.columns, p.counts, &f->err);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    photon_client_free(f->client);
    fake_stop(&f->server);
    assert_in_range(f->server.connections, 3, 10);
    photons_free(&p);
}

static void server_that_stays_away_is_given_up(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(100);
    f->options.reconnect_timeout_ms = 200;
    start(f, &t, NULL);
    photon_client_run *run = fixture_open(f, "run");
    fake_stop(&f->server);
    (void)!photon_client_send(run, p.columns, p.counts, &f->err);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), PHOTON_CLIENT_ERR_LOST);
    assert_non_null(strstr(f->err.text, "could not be reached again"));
    assert_int_equal(photon_client_check(f->client, &f->err), PHOTON_CLIENT_ERR_LOST);
    photon_client_free(f->client);
    photons_free(&p);
}

static void client_that_is_coming_back_may_be_freed(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(100);
    photon_client_run_status status;
    f->options.reconnect_timeout_ms = PHOTON_CLIENT_FOREVER;
    start(f, &t, NULL);
    photon_client_run *run = fixture_open(f, "run");
    fake_stop(&f->server);
    do
        photon_client_status(run, &status);
    while (status.connected);
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 20, NULL, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    photon_client_free(f->client);
    photons_free(&p);
}

/* ---- servers that lie */

static bool lie_about_durable(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        fake_ack(s, 1, m->batch->sequence, m->batch->sequence + 1, 0);
    return m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH;
}

static bool close_with_more(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    s->runs[0].sequence = 1000000;
    fake_closed(s, 1, "");
    return true;
}

static bool come_back_with_more(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    s->runs[0].sequence = UINT64_MAX - 1;
    fake_hang_up(s);
    return true;
}

static bool come_back_with_others(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    s->runs[0].columns[1].name[1] = 'X';
    fake_hang_up(s);
    return true;
}

static bool want_the_future_again(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        tell_resend(s, m->batch->sequence + 1000000);
    return m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH;
}

static void lies_are_errors(void **state) {
    bool (*const lies[])(fake_server * s, const Photon__ClientMessage *m) = {
        lie_about_durable, close_with_more, come_back_with_more, come_back_with_others,
        want_the_future_again};
    photons p = photons_make(1000);
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        fixture *f = NULL;
        script t = {.step = 0};
        assert_int_equal(fixture_setup((void **)&f), 0);
        f->server.window_bytes = 1 << 20;
        start(f, &t, lies[i]);
        photon_client_run *run = fixture_open(f, "run");
        (void)!photon_client_send(run, p.columns, p.counts, &f->err);
        if (photon_client_close_run(run, LONG_MS, NULL, &f->err) != PHOTON_CLIENT_ERR_PROTOCOL)
            fail_msg("lie %zu: %s", i, f->err.text);
        photon_client_free(f->client);
        fake_stop(&f->server);
        fixture_teardown((void **)&f);
    }
    photons_free(&p);
}

/* ---- flush */

/* Nothing is durable until a Flush comes; the first one is lost with its connection. */
static bool durable_by_flush(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_FLUSH)
        return false;
    if (t->step++ == 0)
        fake_hang_up(s);
    else if (t->step == 2)
        fake_error(s, PHOTON__ERROR_CODE__ERROR_NOT_SUPPORTED, PHOTON__ERROR_SCOPE__SCOPE_BATCH, 1, 0,
                   "none");
    else
        fake_ack(s, 1, s->runs[0].sequence, s->runs[0].sequence, 1 << 20);
    return true;
}

static void flush_makes_durable(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(1000);
    photon_client_run_status status;
    f->server.window_bytes = 1 << 20;
    f->server.durable_behind = 1000;
    start(f, &t, durable_by_flush);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_flush(run, LONG_MS, &f->err),
                     0); /* nothing was sent: nothing to be done */
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_flush(run, 1000, &f->err), PHOTON_CLIENT_ERR_TIMEOUT); /* not supported */
    while (t.step < 2) /* on a slow machine */
        (void)!photon_client_flush(run, 1000, &f->err);
    assert_int_equal(photon_client_flush(run, LONG_MS, &f->err), 0);
    photon_client_status(run, &status);
    assert_int_equal(status.durable, status.sent);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* ---- markers and gaps */

static bool refuse_gaps(fake_server *s, const Photon__ClientMessage *m) {
    script *t = s->test;
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_GAP) {
        fake_error(s, PHOTON__ERROR_CODE__ERROR_NOT_SUPPORTED, PHOTON__ERROR_SCOPE__SCOPE_BATCH, 1,
                   m->gap->sequence, "not built");
        return true;
    }
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_MARKER)
        return false;
    if (t->step++ == 0) { /* its answer is lost, and it, too */
        fake_hang_up(s);
        return true;
    }
    if (strcmp(m->marker->text, "shutter") != 0 || strcmp(m->marker->group, "photons") != 0 ||
        m->marker->item != 100 || m->marker->utc_ns == 0)
        fake_complain(s, "another marker");
    s->runs[0].sequence = m->marker->sequence;
    fake_ack(s, 1, m->marker->sequence, 0, 1 << 20);
    return true;
}

static void markers_and_gaps_are_numbered(void **state) {
    fixture *f = *state;
    script t = {.step = 0};
    photons p = photons_make(100);
    photon_client_place at = {.group = "photons", .item = 100}, nowhere = {.group = "atoms"};
    start(f, &t, refuse_gaps);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_mark(run, &nowhere, "shutter", &f->err), PHOTON_CLIENT_ERR_ARG);
    assert_int_equal(photon_client_mark(run, &at, "\xff", &f->err), PHOTON_CLIENT_ERR_ARG);
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_mark(run, &at, "shutter", &f->err), 0);
    assert_int_equal(photon_client_tell_gap(run, &at, 7, "laser off", &f->err), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(photon_client_mark(run, &at, "shutter", &f->err), 0);
    assert_int_equal(photon_client_close_run(run, LONG_MS, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(f->server.runs[0].sequence, 3);
    assert_int_equal(t.step, 3);
    photons_free(&p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(lost_connection_is_made_again),
        TEST(connection_may_be_cut_at_any_byte),
        TEST(source_may_be_read_again_in_place_of_being_kept),
        cmocka_unit_test(source_that_gives_others_or_none_is_an_error),
        TEST(every_answer_may_be_lost),
        TEST(full_window_says_so),
        TEST(server_that_forgot_what_was_not_durable_gets_it_again),
        TEST(server_that_forgot_what_was_durable_is_an_error),
        TEST(run_that_finds_no_room_waits_for_it),
        TEST(part_of_the_run_is_sent_again_when_asked_for),
        TEST(missed_message_is_sent_again),
        TEST(superseded_client_does_not_come_back),
        TEST(checksum_that_is_always_wrong_is_given_up),
        TEST(server_that_stays_away_is_given_up),
        TEST(client_that_is_coming_back_may_be_freed),
        cmocka_unit_test(lies_are_errors),
        TEST(flush_makes_durable),
        TEST(markers_and_gaps_are_numbered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
