/* Connecting: what can be wrong with the address, the other side, the versions and the introduction. */
#include "client_fixture.h"

static int connect_fails(fixture *f, int code) {
    photon_client *c = (photon_client *)f;
    int rc = photon_client_connect(&c, &f->options, &f->err);
    assert_int_equal(rc, code);
    assert_int_equal(f->err.code, code);
    assert_true(f->err.text[0]);
    assert_ptr_equal(c, f); /* untouched */
    return rc;
}

static void bad_arguments_are_named(void **state) {
    fixture *f = *state;
    char long_name[130];
    memset(long_name, 'n', sizeof long_name - 1);
    long_name[129] = '\0';
    connect_fails(f, PHOTON_CLIENT_ERR_ARG);
    assert_non_null(strstr(f->err.text, "address"));
    f->options.address = "localhost:1";
    connect_fails(f, PHOTON_CLIENT_ERR_ADDRESS);
    f->options.address = "unix:/nonexistent";
    f->options.client_name = "";
    connect_fails(f, PHOTON_CLIENT_ERR_ARG);
    f->options.client_name = "c";
    f->options.instance = long_name;
    connect_fails(f, PHOTON_CLIENT_ERR_ARG);
    f->options.instance = NULL;
    f->options.software = NULL;
    connect_fails(f, PHOTON_CLIENT_ERR_ARG);
    f->err.code = 0;
    assert_int_equal(photon_client_connect(NULL, &f->options, NULL), PHOTON_CLIENT_ERR_ARG);
}

static void nobody_there(void **state) {
    fixture *f = *state;
    f->options.address = "unix:/nonexistent/socket";
    connect_fails(f, PHOTON_CLIENT_ERR_CONNECT);
    assert_true(f->err.os_errno != 0);
    f->server.tcp = true;
    fixture_listen(f);
    assert_null(fake_stop(&f->server));
    connect_fails(f, PHOTON_CLIENT_ERR_CONNECT);
    f->options.address = "tcp://no.such.host.invalid:1";
    connect_fails(f, PHOTON_CLIENT_ERR_CONNECT);
}

static void say_nothing(fake_server *s) {
    while (!atomic_load(&s->stopping))
        fake_sleep_ms(5);
}

static void silent_server_times_out(void **state) {
    fixture *f = *state;
    f->server.raw = say_nothing;
    f->options.connect_timeout_ms = 60;
    fixture_listen(f);
    connect_fails(f, PHOTON_CLIENT_ERR_TIMEOUT);
    assert_null(fake_stop(&f->server));
}

static void answer_http(fake_server *s) {
    static const char text[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    fake_write(s, text, sizeof text - 1);
}

static void other_service_is_recognised(void **state) {
    fixture *f = *state;
    f->server.raw = answer_http;
    fixture_listen(f);
    connect_fails(f, PHOTON_CLIENT_ERR_PROTOCOL);
    assert_non_null(strstr(f->err.text, "HTTP/1.1 400"));
    assert_null(fake_stop(&f->server));
}

static void answer_versions(fake_server *s) {
    fake_write(s, "PHOTON\x02\x05", 8);
}

static void other_versions_are_named(void **state) {
    fixture *f = *state;
    f->server.raw = answer_versions;
    fixture_listen(f);
    connect_fails(f, PHOTON_CLIENT_ERR_PROTOCOL);
    assert_non_null(strstr(f->err.text, "2 to 5"));
    assert_null(fake_stop(&f->server));
}

static void hang_up(fake_server *s) {
    (void)s;
}

static void server_that_hangs_up_is_lost(void **state) {
    fixture *f = *state;
    f->server.raw = hang_up;
    fixture_listen(f);
    connect_fails(f, PHOTON_CLIENT_ERR_LOST);
    assert_null(fake_stop(&f->server));
}

static void answer_garbage(fake_server *s) {
    fake_write(s, "PHOTON\x01\x01\x03\xff\xff\xff", 12);
    say_nothing(s);
}

static void answer_endless_length(fake_server *s) {
    fake_write(s, "PHOTON\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 18);
    say_nothing(s);
}

static void garbage_after_the_preamble_is_refused(void **state) {
    fixture *f = *state;
    f->server.raw = answer_garbage;
    fixture_listen(f);
    connect_fails(f, PHOTON_CLIENT_ERR_PROTOCOL);
    assert_null(fake_stop(&f->server));
}

static void endless_length_is_refused(void **state) {
    fixture *f = *state;
    f->server.raw = answer_endless_length;
    fixture_listen(f);
    connect_fails(f, PHOTON_CLIENT_ERR_PROTOCOL);
    assert_null(fake_stop(&f->server));
}

static bool refuse_hello(fake_server *s, const Photon__ClientMessage *m) {
    (void)m;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_NOT_AUTHORIZED, PHOTON__ERROR_SCOPE__SCOPE_CONNECTION, 0, 0,
               "no such token");
    fake_hang_up(s);
    return true;
}

static void refused_hello_tells_why(void **state) {
    fixture *f = *state;
    f->server.hook = refuse_hello;
    fixture_listen(f);
    connect_fails(f, PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(f->err.server_code, 7);
    assert_int_equal(f->err.scope, PHOTON_CLIENT_SCOPE_CONNECTION);
    assert_int_equal(f->err.retry_after_ms, 70);
    assert_string_equal(f->err.field, "some.field");
    assert_non_null(strstr(f->err.text, "no such token"));
    assert_non_null(strstr(f->err.text, "ERROR_NOT_AUTHORIZED"));
    assert_null(fake_stop(&f->server));
}

#define FUTURE_EPOCH UINT64_C(9000000000000000000)

static bool stale_until_larger(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_HELLO || m->hello->epoch > FUTURE_EPOCH)
        return false;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_STALE_EPOCH, PHOTON__ERROR_SCOPE__SCOPE_CONNECTION, 0,
               FUTURE_EPOCH, "a newer start is known");
    fake_hang_up(s);
    return true;
}

static void stale_epoch_is_raised_above_the_known_one(void **state) {
    fixture *f = *state;
    photon_client_server info;
    f->server.hook = stale_until_larger;
    fixture_start(f);
    photon_client_server_info(f->client, &info);
    assert_true(info.epoch == FUTURE_EPOCH + 1);
    fixture_stop(f);
    assert_int_equal(f->server.connections, 2);
    assert_true(f->server.epochs[0] > UINT64_C(1700000000000000000)); /* UTC in ns */
    assert_true(f->server.epochs[1] == FUTURE_EPOCH + 1);
}

static void epoch_of_the_caller_is_not_changed(void **state) {
    fixture *f = *state;
    f->server.hook = stale_until_larger;
    f->options.epoch = 5;
    fixture_listen(f);
    connect_fails(f, PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(f->err.server_code, 8);
    assert_true(f->err.sequence == FUTURE_EPOCH);
    assert_null(fake_stop(&f->server));
    assert_int_equal(f->server.connections, 1);
    assert_true(f->server.epochs[0] == 5);
}

static void server_tells_of_itself(void **state) {
    fixture *f = *state;
    photon_client_server info;
    f->server.answer_piece = 1; /* every answer in pieces of one byte */
    f->server.tcp = true;
    fixture_start(f);
    photon_client_server_info(f->client, &info);
    assert_string_equal(info.software, "fake 1");
    assert_int_equal(info.message_bytes, 16 << 20);
    assert_int_equal(info.datasets, FAKE_DATASETS);
    assert_int_equal(photon_client_check(f->client, NULL), 0);
    fixture_stop(f);
    photon_client_free(NULL);
    photon_client_run_free(NULL);
}

static void codes_have_names_and_texts(void **state) {
    (void)state;
    for (int code = 0; code >= PHOTON_CLIENT_ERR_INCOMPLETE; code--) {
        assert_string_not_equal(photon_client_error_name(code), "UNKNOWN");
        assert_true(photon_client_error_text(code)[0]);
    }
    assert_string_equal(photon_client_error_name(1), "UNKNOWN");
    assert_string_equal(photon_client_error_name(-12), "UNKNOWN");
    assert_string_equal(photon_client_server_code_name(17), "ERROR_HOLE");
    assert_string_equal(photon_client_server_code_name(UINT32_MAX), "ERROR_?");
    assert_true(photon_client_version()[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bad_arguments_are_named),
        TEST(nobody_there),
        TEST(silent_server_times_out),
        TEST(other_service_is_recognised),
        TEST(other_versions_are_named),
        TEST(server_that_hangs_up_is_lost),
        TEST(garbage_after_the_preamble_is_refused),
        TEST(endless_length_is_refused),
        TEST(refused_hello_tells_why),
        TEST(stale_epoch_is_raised_above_the_known_one),
        TEST(epoch_of_the_caller_is_not_changed),
        TEST(server_tells_of_itself),
        TEST(codes_have_names_and_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
