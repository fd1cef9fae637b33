/* The control socket: answers, limits, clients that misbehave, sockets that are in the way. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.h"
#include "testing.h"
#include "unix_socket.h"

/* ---- commands ---- */

static json_t *run_echo(void *user, const json_t *request, pd_error *err) {
    (void)user;
    (void)err;
    return json_pack("{s:O}", "said",
                     json_object_get(request, "say") ? json_object_get(request, "say") : json_null());
}

static json_t *run_fail(void *user, const json_t *request, pd_error *err) {
    (void)user;
    (void)request;
    pd_error_set(err, "it cannot be done");
    return NULL;
}

/* An answer larger than any socket's buffer. */
static json_t *run_large(void *user, const json_t *request, pd_error *err) {
    (void)user;
    (void)request;
    (void)err;
    size_t n = 8u << 20;
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, 'x', n);
    text[n] = '\0';
    json_t *reply = json_pack("{s:s}", "text", text);
    free(text);
    return reply;
}

static const pd_control_command commands[] = {
    {"echo", run_echo, 1}, {"fail", run_fail, 1}, {"large", run_large, 1}};

static void answers(const char *line, const char *expected) {
    size_t bytes = 0;
    char *answer = pd_control_answer(commands, 3, NULL, PD_CONTROL_ALL_RIGHTS, line, strlen(line), &bytes);
    assert_non_null(answer);
    assert_int_equal(bytes, strlen(answer));
    assert_int_equal(answer[bytes - 1], '\n');
    answer[bytes - 1] = '\0';
    if (!strstr(answer, expected))
        fail_msg("%s without %s", answer, expected);
    free(answer);
}

static void requests_and_their_answers(void **state) {
    (void)state;
    answers("{\"command\":\"echo\",\"say\":[1,\"a\"]}", "{\"said\":[1,\"a\"],\"ok\":true}");
    answers("{\"command\":\"echo\",\"id\":7}", "\"ok\":true,\"id\":7}");
    answers("{\"command\":\"fail\",\"id\":null}",
            "{\"ok\":false,\"code\":\"failed\",\"error\":\"it cannot be done\",\"id\":null}");
    answers("{\"command\":\"no\"}", "\"code\":\"unknown_command\"");
    answers("{\"command\":\"no\"}", "\"commands\":[\"echo\",\"fail\",\"large\"]");
    answers("{\"command\":7}", "\"code\":\"bad_request\"");
    answers("[]", "\"code\":\"bad_request\"");
    answers("", "\"code\":\"bad_request\"");
    answers("{\"a\":1,\"a\":2}", "\"code\":\"bad_request\"");
    answers("{\"command\":\"echo\"} x", "\"code\":\"bad_request\"");
    answers("\xff\xfe", "\"code\":\"bad_request\"");
}

/* ---- a loop on a thread of its own ---- */

typedef struct fixture {
    char dir[64];
    char path[96];
    uv_loop_t loop;
    uv_async_t stop;
    pd_control *control;
    pthread_t thread;
    bool running;
    int closed;
} fixture;

static void on_closed(void *user) {
    ++*(int *)user;
}

static void on_stop(uv_async_t *async) {
    fixture *f = async->data;
    pd_control_close(f->control, on_closed, &f->closed);
    uv_close((uv_handle_t *)async, NULL);
}

static void *run_loop(void *arg) {
    fixture *f = arg;
    uv_run(&f->loop, UV_RUN_DEFAULT);
    return NULL;
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    strcpy(f->dir, "/tmp/photond-control-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof f->path, "%s/sub/control.sock", f->dir);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(uv_async_init(&f->loop, &f->stop, on_stop), 0);
    f->stop.data = f;
    pd_control_options options = {
        .fd = -1, .path = f->path, .mode = 0620, .gid = -1, .commands = commands, .n_commands = 3, .user = f};
    pd_error err;
    if (pd_control_start(&f->control, &f->loop, &options, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(pthread_create(&f->thread, NULL, run_loop, f), 0);
    f->running = true;
    *state = f;
    return 0;
}

static void stop(fixture *f) {
    uv_async_send(&f->stop);
    pthread_join(f->thread, NULL);
    f->running = false;
    assert_int_equal(f->closed, 1);
    assert_int_equal(uv_loop_close(&f->loop), 0);
}

static int teardown(void **state) {
    fixture *f = *state;
    char sub[80];
    if (f->running)
        stop(f);
    assert_int_equal(access(f->path, F_OK), -1);
    snprintf(sub, sizeof sub, "%s/sub", f->dir);
    assert_int_equal(rmdir(sub), 0);
    assert_int_equal(rmdir(f->dir), 0);
    free(f);
    return 0;
}

static int dial(const fixture *f) {
    pd_error err;
    int fd = pd_unix_connect(f->path, &err);
    if (fd < 0)
        fail_msg("%s", err.text);
    struct timeval patience = {.tv_sec = 20};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static void say(int fd, const char *text) {
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The next line without its end; "" at the end of the stream. */
static void hear(int fd, char *line, size_t cap) {
    size_t n = 0;
    char c;
    while (n + 1 < cap && recv(fd, &c, 1, 0) == 1 && c != '\n')
        line[n++] = c;
    line[n] = '\0';
}

static void requests_on_one_connection_are_answered_in_order(void **state) {
    fixture *f = *state;
    int fd = dial(f);
    char line[256];
    say(fd, "{\"command\":\"echo\",\"say\":1}\n{\"command\":\"fail\"}\n{\"command\":\"ec");
    hear(fd, line, sizeof line);
    assert_string_equal(line, "{\"said\":1,\"ok\":true}");
    hear(fd, line, sizeof line);
    assert_non_null(strstr(line, "it cannot be done"));
    say(fd, "ho\",\"say\":2}\n");
    assert_int_equal(shutdown(fd, SHUT_WR), 0); /* the answer comes all the same */
    hear(fd, line, sizeof line);
    assert_string_equal(line, "{\"said\":2,\"ok\":true}");
    hear(fd, line, sizeof line);
    assert_string_equal(line, "");
    close(fd);
}

static void the_socket_has_its_mode(void **state) {
    fixture *f = *state;
    struct stat st;
    assert_int_equal(stat(f->path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0620);
}

static void a_line_without_end_is_refused(void **state) {
    fixture *f = *state;
    int fd = dial(f);
    char line[256], blanks[4096];
    memset(blanks, ' ', sizeof blanks);
    for (size_t sent = 0; sent < PD_CONTROL_LINE_MAX; sent += sizeof blanks)
        assert_int_equal(send(fd, blanks, sizeof blanks, MSG_NOSIGNAL), sizeof blanks);
    hear(fd, line, sizeof line);
    assert_non_null(strstr(line, "\"code\":\"too_long\""));
    hear(fd, line, sizeof line);
    assert_string_equal(line, "");
    close(fd);
}

static void one_that_does_not_read_holds_up_nobody(void **state) {
    fixture *f = *state;
    int deaf = dial(f), other = dial(f);
    char line[256];
    for (int i = 0; i < 50; i++)
        say(deaf, "{\"command\":\"large\"}\n");
    for (int i = 0; i < 20; i++) {
        say(other, "{\"command\":\"echo\",\"say\":3}\n");
        hear(other, line, sizeof line);
        assert_string_equal(line, "{\"said\":3,\"ok\":true}");
    }
    close(other);
    stop(f); /* also with a write under way */
    close(deaf);
}

static void one_client_too_many_is_told(void **state) {
    fixture *f = *state;
    int fds[PD_CONTROL_CLIENTS_MAX], extra;
    char line[256];
    for (size_t i = 0; i < PD_CONTROL_CLIENTS_MAX; i++) {
        fds[i] = dial(f);
        say(fds[i], "{\"command\":\"echo\"}\n");
        hear(fds[i], line, sizeof line);
    }
    extra = dial(f);
    hear(extra, line, sizeof line);
    assert_non_null(strstr(line, "\"code\":\"busy\""));
    close(extra);
    for (size_t i = 0; i < PD_CONTROL_CLIENTS_MAX; i++)
        close(fds[i]);
    for (int tries = 0; tries < 1000; tries++) { /* room again, once the closing has been seen */
        extra = dial(f);
        say(extra, "{\"command\":\"echo\"}\n");
        hear(extra, line, sizeof line);
        close(extra);
        if (strstr(line, "\"ok\":true"))
            return;
        usleep(1000);
    }
    fail_msg("no room came");
}

/* ---- listening ---- */

static void a_socket_that_is_in_use_is_left_alone(void **state) {
    fixture *f = *state;
    pd_error err;
    assert_int_equal(pd_unix_listen(f->path, 0600, -1, &err), -1);
    assert_non_null(strstr(err.text, "another program listens there"));
    char line[64];
    int fd = dial(f);
    say(fd, "{\"command\":\"echo\"}\n");
    hear(fd, line, sizeof line);
    assert_string_equal(line, "{\"said\":null,\"ok\":true}");
    close(fd);
}

static void a_socket_of_a_dead_program_is_taken_over(void **state) {
    (void)state;
    char path[] = "/tmp/photond-stale-XXXXXX";
    close(mkstemp(path));
    pd_error err;
    assert_int_equal(pd_unix_listen(path, 0600, -1, &err), -1);
    assert_non_null(strstr(err.text, "is there and is no socket"));
    unlink(path);
    int dead = pd_unix_listen(path, 0600, -1, &err);
    assert_true(dead >= 0);
    close(dead);
    assert_int_equal(pd_unix_connect(path, &err), -1);
    int fd = pd_unix_listen(path, 0666, -1, &err);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    int client = pd_unix_connect(path, &err);
    assert_true(client >= 0);
    close(client);
    close(fd);
    unlink(path);
}

static void paths_that_cannot_be_sockets(void **state) {
    (void)state;
    char longest[200];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    pd_error err;
    assert_int_equal(pd_unix_listen(longest, 0600, -1, &err), -1);
    assert_non_null(strstr(err.text, "1 to 107 bytes"));
    assert_int_equal(pd_unix_listen("", 0600, -1, &err), -1);
    assert_int_equal(pd_unix_listen("/nonexistent/a/b", 0600, -1, &err), -1);
    assert_non_null(strstr(err.text, "cannot be bound: No such file or directory"));
}

static void addresses_of_the_control_socket(void **state) {
    (void)state;
    char path[128];
    pd_error err;
    assert_int_equal(pd_control_path("unix:/a/b", path, sizeof path, &err), 0);
    assert_string_equal(path, "/a/b");
    assert_int_equal(pd_control_path("tcp://h:1", path, sizeof path, &err), -1);
    assert_int_equal(pd_control_path("/a/b", path, sizeof path, &err), -1);
    assert_int_equal(pd_control_path("unix:/a/b", path, 4, &err), -1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_and_their_answers),
        TEST(requests_on_one_connection_are_answered_in_order),
        TEST(the_socket_has_its_mode),
        TEST(a_line_without_end_is_refused),
        TEST(one_that_does_not_read_holds_up_nobody),
        TEST(one_client_too_many_is_told),
        TEST(a_socket_that_is_in_use_is_left_alone),
        cmocka_unit_test(a_socket_of_a_dead_program_is_taken_over),
        cmocka_unit_test(paths_that_cannot_be_sockets),
        cmocka_unit_test(addresses_of_the_control_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
