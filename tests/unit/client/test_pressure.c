/* Back-pressure, time-outs, pauses, silence, and connections that end in the middle of something. */
#include <signal.h>
#include <sys/time.h>

#include "client_fixture.h"

/* ---- credit */

static void credit_is_kept_to(void **state) {
    fixture *f = *state;
    photons p = photons_make(1000);
    photon_client_run_status status;
    uint64_t taken[2];
    f->server.limits.in_flight_bytes = 2000;
    f->server.acknowledge_up_to = 0;
    f->server.batch_bytes = 608; /* about 100 photons and their millisecond */
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    photon_client_batch batch = {.columns = p.columns, .counts = p.counts, .timeout_ms = 1000};
    assert_int_equal(photon_client_send_batch(run, &batch, taken, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    photon_client_status(run, &status);
    assert_int_equal(status.state, PHOTON_CLIENT_RUN_OPEN);
    assert_in_range(status.in_flight_bytes, 1400, 2000);
    assert_int_equal(taken[0] * 6 + taken[1] * 8, status.in_flight_bytes);
    assert_int_equal(status.credit_bytes, 2000);
    photon_client_run_free(run);
    fixture_stop(f);
    assert_true(atomic_load(&f->server.received_bytes) <= 2000);
    photons_free(&p);
}

static void one_batch_may_always_go(void **state) {
    fixture *f = *state;
    photons p = photons_make(10000);
    f->server.limits.in_flight_bytes = 1;
    f->server.credit_bytes = 0;
    f->server.batch_bytes = 3000;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

static void number_of_batches_in_flight_is_bounded(void **state) {
    fixture *f = *state;
    photons p = photons_make(40000);
    photon_client_run_options o;
    photon_client_run *run = NULL;
    photon_client_run_status status;
    uint64_t taken[2];
    f->server.acknowledge_up_to = 0;
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.name = "run";
    o.profile = "lincam";
    o.batch_items = 1;
    assert_int_equal(photon_client_open(f->client, &o, &run, &f->err), 0);
    uint64_t wanted[2] = {16390, 0};
    photon_client_batch batch = {.columns = p.columns, .counts = wanted, .timeout_ms = 1000};
    for (int i = 0; i < 100 && wanted[0] > 6; i++) { /* on a busy machine one call may not be enough */
        assert_int_equal(photon_client_send_batch(run, &batch, taken, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
        wanted[0] -= taken[0];
    }
    assert_int_equal(photon_client_send_batch(run, &batch, taken, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    photon_client_status(run, &status);
    assert_int_equal(status.sent, 16384);
    assert_int_equal(wanted[0] - taken[0], 6);
    photon_client_run_free(run);
    fixture_stop(f);
    photons_free(&p);
}

/* ---- time-outs */

/* The server stops reading, the sender gives up in the middle of a batch, both go on: nothing may be missing. */
static void interrupted_batch_is_finished_first(void **state) {
    fixture *f = *state;
    photons p = photons_make(4000000);
    uint64_t done[2] = {0, 0}, late = 0;
    f->server.batch_bytes = 1 << 20;
    f->server.limits.in_flight_bytes = f->server.credit_bytes = 4 << 20;
    f->server.tcp = true;
    f->server.small_buffers = true;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    atomic_store(&f->server.hold_reading, 1);
    while (done[0] < p.counts[0] || done[1] < p.counts[1]) {
        const void *columns[] = {p.x + done[0], p.y + done[0], p.dt + done[0], p.ms + done[1]};
        uint64_t counts[] = {p.counts[0] - done[0], p.counts[1] - done[1]}, taken[2];
        photon_client_batch batch = {.columns = columns, .counts = counts, .timeout_ms = 60};
        int rc = photon_client_send_batch(run, &batch, taken, &f->err);
        assert_true(rc == 0 || rc == PHOTON_CLIENT_ERR_TIMEOUT);
        late += rc != 0;
        if (rc != 0 && late == 1 && taken[0]) /* what is the caller's may change once it was taken */
            memset(p.x + done[0], 0xAA, taken[0] * 2);
        if (late >= 3)
            atomic_store(&f->server.hold_reading, 0);
        for (int g = 0; g < 2; g++)
            done[g] += taken[g];
        assert_true(late < 1000);
    }
    assert_true(late >= 3);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    for (uint64_t i = 0; i < p.counts[0]; i++)
        p.x[i] = (uint16_t)i;
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

static void ignore_signal(int number) {
    (void)number;
}

static void signals_do_not_disturb(void **state) {
    fixture *f = *state;
    photons p = photons_make(1000000);
    struct sigaction action = {.sa_handler = ignore_signal},
                     before; /* no SA_RESTART: system calls end with EINTR */
    struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    f->server.tcp = true;
    f->server.small_buffers = true;
    f->server.batch_bytes = 100000;
    f->server.credit_bytes = 200000;
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &every, NULL);
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    int sent = photon_client_send(run, p.columns, p.counts, &f->err);
    int closed = photon_client_close_run(run, 60000, NULL, &f->err);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_true(sent == 0 && closed == 0);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

static void message_of_a_second_run_waits_its_turn(void **state) {
    fixture *f = *state;
    photons p = photons_make(2000000);
    photon_client_run_options o;
    photon_client_run *second = NULL;
    uint64_t taken[2];
    f->server.tcp = true;
    f->server.small_buffers = true;
    f->server.batch_bytes = 8 << 20;
    f->server.limits.in_flight_bytes = 8 << 20;
    fixture_start(f);
    photon_client_run *first = fixture_open(f, "first");
    photon_client_run_options_init(&o);
    o.name = "second";
    o.profile = "lincam";
    o.open_timeout_ms = 50;
    atomic_store(&f->server.hold_reading, 1);
    photon_client_batch batch = {.columns = p.columns, .counts = p.counts, .timeout_ms = 50};
    assert_int_equal(photon_client_send_batch(first, &batch, taken, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    assert_int_equal(photon_client_open(f->client, &o, &second, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    atomic_store(&f->server.hold_reading, 0);
    o.open_timeout_ms = 60000;
    assert_int_equal(photon_client_open(f->client, &o, &second, &f->err), 0);
    assert_int_equal(photon_client_close_run(second, 60000, NULL, &f->err), 0);
    assert_int_equal(photon_client_close_run(first, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(fake_find(&f->server.runs[0], "/photons/x")->bytes, 2 * taken[0]);
    photons_free(&p);
}

static bool ignore_close(fake_server *s, const Photon__ClientMessage *m) {
    (void)s;
    return m->body_case == PHOTON__CLIENT_MESSAGE__BODY_CLOSE && atomic_load((atomic_int *)s->test) == 0;
}

static void close_may_be_asked_for_again(void **state) {
    fixture *f = *state;
    atomic_int answer = 0;
    f->server.hook = ignore_close;
    f->server.test = &answer;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_close_run(run, 30, NULL, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    assert_int_equal(photon_client_close_run(run, 30, NULL, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    assert_int_equal(photon_client_check(f->client, &f->err), 0);
    fixture_stop(f);
}

/* ---- waits */

static void waits_end_when_the_server_has_it(void **state) {
    fixture *f = *state;
    photons p = photons_make(100);
    photon_client_run_status status;
    f->server.durable_behind = 1;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_wait_received(run, 1000, &f->err), 0);
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_send(run, p.columns, (uint64_t[]){100, 0}, &f->err), 0);
    assert_int_equal(photon_client_wait_received(run, 10000, &f->err), 0);
    assert_int_equal(photon_client_wait_durable(run, 1, 10000, &f->err), 0);
    assert_int_equal(photon_client_wait_durable(run, 2, 30, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    assert_int_equal(photon_client_wait_durable(run, 3, 30, &f->err), PHOTON_CLIENT_ERR_ARG);
    photon_client_status(run, &status);
    assert_int_equal(status.sent, 2);
    assert_int_equal(status.received, 2);
    assert_int_equal(status.durable, 1);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    photon_client_status(run, &status);
    assert_int_equal(status.durable, 2);
    fixture_stop(f);
    photons_free(&p);
}

static void free_waits_for_what_is_on_its_way(void **state) {
    fixture *f = *state;
    photons p = photons_make(100000);
    f->server.tcp = true;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    atomic_store(&f->server.hold_reading, 1);
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    atomic_store(&f->server.hold_reading, 0);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* ---- pauses and pings */

static void tell_pause(fake_server *s, uint32_t run, bool on) {
    Photon__Paused paused = PHOTON__PAUSED__INIT;
    Photon__Resumed resumed = PHOTON__RESUMED__INIT;
    Photon__ServerMessage m = PHOTON__SERVER_MESSAGE__INIT;
    static char text[] = "no room on the disk";
    paused.run = resumed.run = run;
    paused.reason = PHOTON__PAUSE_REASON__PAUSE_DISK_FULL;
    paused.text = text;
    m.body_case = on ? PHOTON__SERVER_MESSAGE__BODY_PAUSED : PHOTON__SERVER_MESSAGE__BODY_RESUMED;
    if (on)
        m.paused = &paused;
    else
        m.resumed = &resumed;
    fake_answer(s, &m);
}

/* Each batch: pause, of the run or of all; each attribute message: resume. */
static bool pause_and_resume(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        tell_pause(s, m->batch->sequence == 1 ? 1 : 0, true);
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_ATTRIBUTES)
        tell_pause(s, m->attributes->sequence == 2 ? 1 : 0, false);
    return false;
}

static void pauses_are_seen_in_the_status(void **state) {
    fixture *f = *state;
    photons p = photons_make(10);
    photon_client_attribute a = {"k", "v"};
    photon_client_run_status status;
    f->server.hook = pause_and_resume;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
        assert_int_equal(photon_client_wait_received(run, 10000, &f->err), 0);
        photon_client_status(run, &status);
        assert_true(status.paused);
        assert_int_equal(status.pause_reason, PHOTON_CLIENT_PAUSE_DISK_FULL);
        assert_string_equal(status.pause_text, "no room on the disk");
        assert_int_equal(photon_client_set_attributes(run, &a, 1, &f->err), 0);
        assert_int_equal(photon_client_wait_received(run, 10000, &f->err), 0);
        photon_client_status(run, &status);
        assert_false(status.paused);
    }
    fixture_stop(f);
    photons_free(&p);
}

static bool ping_back(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_PING) {
        Photon__Ping ping = PHOTON__PING__INIT;
        Photon__ServerMessage answer = PHOTON__SERVER_MESSAGE__INIT;
        ping.id = 4711;
        answer.body_case = PHOTON__SERVER_MESSAGE__BODY_PING;
        answer.ping = &ping;
        fake_answer(s, &answer);
    }
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_PONG && m->pong->id != 4711)
        fake_complain(s, "a pong of another ping");
    return false;
}

static void idle_client_sends_heartbeats_and_answers_pings(void **state) {
    fixture *f = *state;
    f->server.heartbeat_ms = 10;
    f->server.hook = ping_back;
    fixture_start(f);
    for (int i = 0; i < 24000 && (atomic_load(&f->server.n_pings) < 5 || atomic_load(&f->server.n_pongs) < 5);
         i++)
        fake_sleep_ms(5);
    assert_true(atomic_load(&f->server.n_pings) >= 5);
    assert_true(atomic_load(&f->server.n_pongs) >= 5);
    fixture_stop(f);
}

static void silent_server_is_given_up(void **state) {
    fixture *f = *state;
    photons p = photons_make(2000000);
    f->options.silence_timeout_ms = 2000;
    f->server.tcp = true;
    f->server.small_buffers = true;
    f->server.batch_bytes = 8 << 20;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    atomic_store(&f->server.hold_reading, 1);
    int rc = photon_client_send(run, p.columns, p.counts, &f->err); /* into the window, or too late */
    if (rc == 0)
        rc = photon_client_wait_received(run, 60000, &f->err);
    assert_int_equal(rc, PHOTON_CLIENT_ERR_LOST);
    assert_non_null(strstr(f->err.text, "not answered"));
    assert_int_equal(photon_client_check(f->client, &f->err), PHOTON_CLIENT_ERR_LOST);
    photon_client_free(f->client);
    fake_stop(&f->server);
    photons_free(&p);
}

static bool pause_then_hold(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH) {
        tell_pause(s, 1, true);
        atomic_store(&s->hold_reading, 1);
        return true;
    }
    return false;
}

static void paused_server_may_be_silent(void **state) {
    fixture *f = *state;
    photons p = photons_make(10);
    photon_client_run_status status;
    f->options.silence_timeout_ms = 1000;
    f->server.hook = pause_then_hold;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    do
        photon_client_status(run, &status);
    while (!status.paused && status.state == PHOTON_CLIENT_RUN_OPEN);
    fake_sleep_ms(2500);
    assert_int_equal(photon_client_check(f->client, &f->err), 0);
    photon_client_run_free(run);
    fixture_stop(f);
    photons_free(&p);
}

/* ---- connections that end */

static bool refuse_and_hang_up(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_SUPERSEDED, PHOTON__ERROR_SCOPE__SCOPE_CONNECTION, 0, 0,
               "a newer connection");
    fake_hang_up(s);
    return true;
}

/* The reason of the server counts, not the broken pipe that the sender meets. */
static void reason_of_the_server_comes_before_the_broken_pipe(void **state) {
    fixture *f = *state;
    photons p = photons_make(4000000);
    f->server.hook = refuse_and_hang_up;
    f->server.tcp = true;
    f->server.batch_bytes = 100000;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(f->err.server_code, 9);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    fixture_stop(f);
    photons_free(&p);
}

static bool hang_up_on_batch(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH && m->batch->sequence == 3)
        fake_hang_up(s);
    return false;
}

static void connection_that_ends_in_mid_run_is_lost(void **state) {
    fixture *f = *state;
    photons p = photons_make(100000);
    photon_client_run *other = NULL;
    photon_client_run_options o;
    f->server.hook = hang_up_on_batch;
    f->server.batch_bytes = 10000;
    f->server.credit_bytes = 10000;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    (void)!photon_client_send(run, p.columns, p.counts, &f->err);
    assert_int_equal(photon_client_wait_received(run, 60000, &f->err), PHOTON_CLIENT_ERR_LOST);
    assert_int_equal(photon_client_alive(run, NULL, &f->err), PHOTON_CLIENT_ERR_LOST);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), PHOTON_CLIENT_ERR_LOST);
    photon_client_run_options_init(&o);
    o.name = "other";
    o.profile = "lincam";
    assert_int_equal(photon_client_open(f->client, &o, &other, &f->err), PHOTON_CLIENT_ERR_LOST);
    fixture_stop(f);
    photons_free(&p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(credit_is_kept_to),
        TEST(one_batch_may_always_go),
        TEST(number_of_batches_in_flight_is_bounded),
        TEST(interrupted_batch_is_finished_first),
        TEST(signals_do_not_disturb),
        TEST(message_of_a_second_run_waits_its_turn),
        TEST(close_may_be_asked_for_again),
        TEST(waits_end_when_the_server_has_it),
        TEST(free_waits_for_what_is_on_its_way),
        TEST(pauses_are_seen_in_the_status),
        TEST(idle_client_sends_heartbeats_and_answers_pings),
        TEST(silent_server_is_given_up),
        TEST(paused_server_may_be_silent),
        TEST(reason_of_the_server_comes_before_the_broken_pipe),
        TEST(connection_that_ends_in_mid_run_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
