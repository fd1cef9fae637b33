/* photon-send's session against the fake server: what it sends, and what it makes of a server that says no. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "capture.h"
#include "client_fixture.h"
#include "session.h"

#define HAZELNUT TEST_DATA "/hazelnut"

typedef struct sending {
    fixture base; /* first: the fixture's teardown frees it */
    send_options options;
    send_report report;
    capture errors;
} sending;

static int sending_setup(void **state) {
    sending *t = calloc(1, sizeof *t);
    if (!t)
        return -1;
    fake_init(&t->base.server);
    t->options =
        (send_options){.run = "run", .count = SEND_UNKNOWN, .simulation = {.rate_hz = 1e6, .seed = 1}};
    *state = t;
    return 0;
}

static void listen_for(sending *t) {
    fake_start(&t->base.server);
    t->options.to = t->base.server.address;
}

/* Sends a source and frees it. What is said on standard error is kept. */
static void send_all(sending *t, send_source *source, int status) {
    assert_non_null(source);
    capture_start(&t->errors, STDERR_FILENO);
    int got = send_session(&t->options, source, &t->report);
    capture_end(&t->errors);
    send_source_free(source);
    if (got != status)
        fail_msg("exit status %d, expected %d: %s", got, status, t->errors.text);
}

static const fake_run *stopped(sending *t) {
    const char *complaint = fake_stop(&t->base.server);
    if (complaint)
        fail_msg("the server complains: %s", complaint);
    return &t->base.server.runs[0];
}

static send_source *recording(uint64_t count) {
    send_fault fault;
    return send_open_folder(HAZELNUT, NULL, 0, count, &fault);
}

static send_source *simulation(sending *t, bool tags, double duration_s, uint64_t count) {
    send_fault fault;
    t->options.simulation.tags = tags;
    t->options.simulation.duration_s = duration_s;
    return send_open_simulation(&t->options.simulation, count, &fault);
}

static void whole_recording_is_durable(void **state) {
    sending *t = *state;
    listen_for(t);
    send_all(t, recording(SEND_UNKNOWN), 0);
    assert_int_equal(t->report.sent, 200000);
    assert_int_equal(t->report.received, 200000);
    assert_int_equal(t->report.durable, 200000);
    assert_string_equal(t->report.run, "run");
    assert_string_equal(t->report.path, "/data/file.photons");
    assert_string_equal(t->report.fault, "");
    assert_string_equal(t->errors.text, "");
    const fake_run *got = stopped(t);
    uint64_t sum = 0;
    const fake_column *x = fake_find(got, "/photons/x");
    for (size_t i = 0; i < x->bytes; i += 2)
        sum += bytes_load16(x->data + i);
    assert_int_equal(sum, 513239610);
    assert_int_equal(fake_find(got, "/photons/ms")->bytes, 800);
    assert_int_equal(got->n_attributes, 4);
}

static void batches_have_the_size_asked_for(void **state) {
    sending *t = *state;
    t->options.batch = 100;
    listen_for(t);
    send_all(t, recording(10050), 0);
    const fake_run *got = stopped(t);
    assert_int_equal(got->largest_items, 100);
    assert_int_equal(got->n_batches, 101);
}

static void random_batches_carry_the_same(void **state) {
    sending *t = *state;
    t->options.batch_random = true;
    t->options.simulation.seed = 3;
    listen_for(t);
    send_all(t, recording(SEND_UNKNOWN), 0);
    const fake_run *got = stopped(t);
    assert_true(got->n_batches > 5 && got->largest_items > 1000 && got->largest_items <= 100000);
    assert_int_equal(fake_find(got, "/photons/dt")->bytes, 400000);
}

static void profile_is_chosen_by_the_columns_or_not(void **state) {
    sending *t = *state;
    t->options.profile = "none";
    listen_for(t);
    send_all(t, recording(100), 0);
    const fake_run *got = stopped(t);
    assert_int_equal(got->columns[0].role,
                     0); /* explicit: the fake server gives roles to its own profile only */
    assert_string_equal(got->columns[1].name, "/photons/y");
    assert_string_equal(got->columns[1].group, "photons");
}

static void profile_that_does_not_fit_is_refused(void **state) {
    sending *t = *state;
    t->options.profile = "lincam";
    listen_for(t);
    send_all(t, simulation(t, true, 0, 100), 2);
    assert_non_null(strstr(t->errors.text, "/photons/x"));
    stopped(t);
}

static void simulation_ends_by_its_duration(void **state) {
    sending *t = *state;
    listen_for(t);
    send_all(t, simulation(t, false, 0.25, SEND_UNKNOWN), 0);
    assert_in_range(t->report.sent, 247000, 253000);
    assert_int_equal(t->report.durable, t->report.sent);
    assert_int_equal(fake_find(stopped(t), "/photons/ms")->bytes, 250 * 8);
}

static void real_speed_takes_its_time(void **state) {
    sending *t = *state;
    t->options.real = true;
    listen_for(t);
    send_all(t, simulation(t, false, 0.3, SEND_UNKNOWN), 0);
    assert_true(t->report.seconds > 0.29);
    assert_true(stopped(t)->n_batches >= 2);
}

/* 8000 batches: with a pause after each one, it would be 80 s. */
static void small_batches_keep_the_asked_rate(void **state) {
    sending *t = *state;
    t->options.real = true;
    t->options.batch = 25;
    listen_for(t);
    send_all(t, simulation(t, false, 0.2, SEND_UNKNOWN), 0);
    assert_true(t->report.seconds < 70);
    assert_true(stopped(t)->n_batches >= 7600);
}

static bool take_slowly(fake_server *s, const Photon__ClientMessage *m) {
    (void)s;
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        fake_sleep_ms(50);
    return false;
}

static void rate_that_the_server_does_not_take_is_told(void **state) {
    sending *t = *state;
    t->options.real = true;
    t->options.batch = 1000;
    t->options.simulation.rate_hz = 1e5;
    t->base.server.hook = take_slowly;
    t->base.server.credit_bytes = t->base.server.limits.in_flight_bytes = 6500;
    listen_for(t);
    send_all(t, simulation(t, false, 0.2, SEND_UNKNOWN), 0);
    assert_non_null(strstr(t->errors.text, "the asked rate was not reached"));
    assert_non_null(strstr(t->errors.text, "the link or the server took no more"));
    assert_int_equal(t->report.durable, t->report.sent);
    stopped(t);
}

static void many_attributes_follow_the_open(void **state) {
    sending *t = *state;
    send_fault fault;
    send_source *s = recording(100);
    t->base.server.limits.attributes = 3;
    for (int i = 0; i < 20; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        assert_int_equal(send_add_attribute(s, key, "v", &fault), 0);
    }
    assert_int_equal(send_add_attribute(s, "/photons/TacBits", "11", &fault),
                     0); /* replaces the manifest's */
    listen_for(t);
    send_all(t, s, 0);
    const fake_run *got = stopped(t);
    assert_int_equal(got->n_attributes, 24);
    assert_int_equal(got->attribute_messages, 7);
    assert_string_equal(got->last_key, "k19");
}

static bool wants_no_time_base(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_OPEN && m->open->time_base)
        fake_complain(s, "a time base is told though nothing is known");
    return false;
}

static send_source *piped(const char *text) {
    int ends[2];
    send_fault fault;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    close(ends[1]);
    return send_open_stream(ends[0], "x:u16", SEND_UNKNOWN, &fault);
}

static void unknown_time_base_is_not_told(void **state) {
    sending *t = *state;
    t->base.server.hook = wants_no_time_base;
    listen_for(t);
    send_all(t, piped("abcd"), 0);
    assert_int_equal(t->report.sent, 2);
    stopped(t);
}

/* ---- what goes wrong */

static void source_that_fails_keeps_what_was_sent(void **state) {
    sending *t = *state;
    listen_for(t);
    t->options.batch = 2;
    send_all(t, piped("abcdefghi"), 1);
    assert_non_null(strstr(t->errors.text, "within a record"));
    assert_non_null(strstr(t->errors.text, "kept: the first 4 "));
    assert_int_equal(t->report.durable, 4);
    assert_true(stopped(t)->closed);
}

static void no_server_is_no_connection(void **state) {
    sending *t = *state;
    t->options.to = "unix:/nonexistent";
    send_all(t, recording(100), 2);
    assert_non_null(strstr(t->errors.text, "/nonexistent"));
    assert_int_equal(t->report.sent, 0);
}

static void say_nothing(fake_server *s) {
    while (!s->stopping)
        fake_sleep_ms(10);
}

static void server_that_does_not_answer_is_given_up(void **state) {
    sending *t = *state;
    t->options.timeout_ms = 200;
    t->base.server.raw = say_nothing;
    listen_for(t);
    send_all(t, recording(100), 2);
    assert_non_null(strstr(t->errors.text, "did not answer in time"));
    stopped(t);
}

static void names_are_told_without_control_characters(void **state) {
    sending *t = *state;
    t->options.run = "a\x1b[31m\n\xc2\x9b\xc3\xa4";
    listen_for(t);
    send_all(t, recording(100), 2);
    assert_non_null(strstr(t->errors.text, "a\\x1b[31m\\x0a\\xc2\\x9b\xc3\xa4"));
    assert_null(strchr(t->errors.text, 0x1b));
    stopped(t);
}

static void bad_run_name_is_wrong_usage(void **state) {
    sending *t = *state;
    t->options.run = "../up";
    listen_for(t);
    send_all(t, recording(100), 2);
    assert_non_null(strstr(t->errors.text, "../up"));
    stopped(t);
}

static bool hang_up_later(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH && m->batch->sequence == 20)
        fake_hang_up(s);
    return false;
}

static void lost_connection_tells_how_far_it_came(void **state) {
    sending *t = *state;
    t->options.batch = 100;
    t->options.no_reconnect = true;
    t->base.server.hook = hang_up_later;
    t->base.server.credit_bytes = t->base.server.limits.in_flight_bytes = 1000;
    t->base.server.durable_behind = 3;
    listen_for(t);
    send_all(t, recording(SEND_UNKNOWN), 1);
    assert_in_range(t->report.received, 1900, 2000);
    assert_in_range(t->report.durable, 1600, 1700);
    assert_true(t->report.sent >= t->report.received && t->report.sent < 3000);
    assert_true(t->report.fault[0]);
    stopped(t);
}

static bool hang_up_often(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH && m->batch->sequence % 400 == 0)
        fake_hang_up(s);
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_CLOSE && !*(bool *)s->test) {
        *(bool *)s->test = true;
        fake_take(s, m); /* and the answer is lost */
        fake_hang_up(s);
        return true;
    }
    return false;
}

static void lost_connections_are_made_again(void **state) {
    sending *t = *state;
    bool lost = false;
    t->options.batch = 100;
    t->base.server.hook = hang_up_often;
    t->base.server.test = &lost;
    listen_for(t);
    send_all(t, recording(SEND_UNKNOWN), 0);
    assert_int_equal(t->report.durable, 200000);
    assert_string_equal(t->report.fault, "");
    const fake_run *got = stopped(t);
    assert_true(lost && t->base.server.connections > 6);
    assert_int_equal(got->n_batches, t->report.messages);
    assert_int_equal(fake_find(got, "/photons/x")->bytes, 400000);
    assert_int_equal(fake_find(got, "/photons/ms")->bytes, 800);
}

static bool lose_a_batch(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH || m->batch->sequence != 5)
        return false;
    s->runs[0].sequence = 5; /* "received", but not kept */
    fake_ack(s, 1, 5, 5, 1 << 20);
    return true;
}

static void file_with_fewer_items_is_not_durable(void **state) {
    sending *t = *state;
    t->options.batch = 100;
    t->base.server.hook = lose_a_batch;
    listen_for(t);
    send_all(t, recording(1000), 1);
    assert_non_null(strstr(t->errors.text, "900 items in the file, 1000 were sent"));
    assert_int_equal(t->report.durable, 900);
    fake_stop(&t->base.server);
}

static bool hold_from_batch_3(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH && m->batch->sequence == 3)
        s->acknowledge_up_to = 0;
    return m->body_case == PHOTON__CLIENT_MESSAGE__BODY_CLOSE;
}

static void server_that_takes_nothing_is_given_up(void **state) {
    sending *t = *state;
    t->options.batch = 100;
    t->options.timeout_ms = 2000;
    t->base.server.hook = hold_from_batch_3;
    t->base.server.credit_bytes = t->base.server.limits.in_flight_bytes = 2000;
    listen_for(t);
    send_all(t, recording(100000), 1);
    assert_non_null(strstr(t->errors.text, "--timeout"));
    assert_true(t->report.sent < 1000 && t->report.received >= 200);
    stopped(t);
}

static bool interrupt_at_batch_3(fake_server *s, const Photon__ClientMessage *m) {
    (void)s;
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH && m->batch->sequence == 3)
        kill(getpid(), SIGINT);
    return false;
}

static void interrupted_sending_still_closes_the_run(void **state) {
    sending *t = *state;
    t->options.batch = 100;
    t->base.server.hook = interrupt_at_batch_3;
    t->base.server.credit_bytes = t->base.server.limits.in_flight_bytes = 2000;
    listen_for(t);
    send_all(t, recording(SEND_UNKNOWN), 1);
    assert_non_null(strstr(t->errors.text, "interrupted"));
    assert_true(t->report.sent < 200000 && t->report.durable == t->report.sent);
    assert_true(stopped(t)->closed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sending_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(whole_recording_is_durable),
        TEST(batches_have_the_size_asked_for),
        TEST(random_batches_carry_the_same),
        TEST(profile_is_chosen_by_the_columns_or_not),
        TEST(profile_that_does_not_fit_is_refused),
        TEST(simulation_ends_by_its_duration),
        TEST(real_speed_takes_its_time),
        TEST(small_batches_keep_the_asked_rate),
        TEST(rate_that_the_server_does_not_take_is_told),
        TEST(many_attributes_follow_the_open),
        TEST(unknown_time_base_is_not_told),
        TEST(source_that_fails_keeps_what_was_sent),
        TEST(no_server_is_no_connection),
        TEST(server_that_does_not_answer_is_given_up),
        TEST(names_are_told_without_control_characters),
        TEST(bad_run_name_is_wrong_usage),
        TEST(lost_connection_tells_how_far_it_came),
        TEST(lost_connections_are_made_again),
        TEST(file_with_fewer_items_is_not_durable),
        TEST(server_that_takes_nothing_is_given_up),
        TEST(interrupted_sending_still_closes_the_run), /* last: the interruption stays */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
