/* Runs: opening, sending, attributes, closing, and every way in which the server can say no. */
#include <pthread.h>

#include "client_fixture.h"

/* ---- opening */

static int open_code(fixture *f, const photon_client_run_options *o) {
    photon_client_run *run = (photon_client_run *)f;
    int rc = photon_client_open(f->client, o, &run, &f->err);
    if (rc == 0)
        photon_client_run_free(run);
    else
        assert_ptr_equal(run, f); /* untouched */
    return rc;
}

static void bad_options_are_refused_before_they_are_sent(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    photon_client_dataset datasets[FAKE_DATASETS + 1] = {{.name = "/a", .type = 5}};
    photon_client_attribute bad = {"k\xff", "v"}, big = {"key", NULL};
    f->server.limits.attribute_bytes = 10;
    f->server.limits.attributes = 1;
    fixture_start(f);
    photon_client_run_options_init(&o);
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_ARG);
    o.name = "../up";
    o.profile = "lincam";
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_ARG);
    o.name = "run";
    o.datasets = datasets;
    o.n_datasets = 1;
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_ARG); /* profile and datasets */
    o.profile = NULL;
    datasets[0].type = 10;
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_ARG);
    datasets[0] = (photon_client_dataset){.name = "", .type = 5};
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_ARG);
    o.n_datasets = FAKE_DATASETS + 1;
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_LIMIT);
    o.n_datasets = 1;
    datasets[0].name = "/a";
    o.attributes = &bad;
    o.n_attributes = 1;
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_ARG);
    bad.key = "12345678";
    bad.value = "123";
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_LIMIT);
    o.attributes = &big;
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_ARG);
    o.n_attributes = 2;
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_LIMIT);
    fixture_stop(f);
    assert_int_equal(f->server.n_runs, 0);
}

static void profile_tells_its_datasets(void **state) {
    fixture *f = *state;
    photon_client_run_info info;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "scan");
    photon_client_run_describe(run, &info);
    assert_string_equal(info.name, "scan");
    assert_string_equal(info.path, "/data/file.photons");
    assert_int_equal(info.next_sequence, 1);
    assert_int_equal(info.n_datasets, 4);
    assert_int_equal(info.n_groups, 2);
    assert_string_equal(info.datasets[3].name, "/photons/ms");
    assert_int_equal(info.datasets[3].group_index, 1);
    assert_int_equal(info.datasets[3].item_bytes, 8);
    assert_string_equal(info.groups[0], "photons");
    assert_int_equal(info.batch_bytes, 1 << 20);
    fixture_stop(f);
}

static bool refuse_open(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_OPEN)
        return false;
    Photon__Error e = PHOTON__ERROR__INIT;
    Photon__ServerMessage answer = PHOTON__SERVER_MESSAGE__INIT;
    static char text[] = "that name is taken";
    e.code = PHOTON__ERROR_CODE__ERROR_NAME_TAKEN;
    e.scope = PHOTON__ERROR_SCOPE__SCOPE_RUN;
    e.run_id = m->open->run_id;
    e.text = text;
    answer.body_case = PHOTON__SERVER_MESSAGE__BODY_ERROR;
    answer.error = &e;
    fake_answer(s, &answer);
    return true;
}

static void refused_open_tells_why_and_spoils_nothing(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    f->server.hook = refuse_open;
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.name = "run";
    o.profile = "lincam";
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(f->err.server_code, 12);
    assert_int_equal(f->err.scope, PHOTON_CLIENT_SCOPE_RUN);
    assert_int_equal(photon_client_check(f->client, NULL), 0);
    fixture_stop(f);
}

static bool ignore_open(fake_server *s, const Photon__ClientMessage *m) {
    (void)s;
    return m->body_case == PHOTON__CLIENT_MESSAGE__BODY_OPEN;
}

static bool name_it(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_OPEN)
        return false;
    if (*m->open->name)
        fake_complain(s, "a name was given");
    return false;
}

static void empty_name_is_for_the_server_to_fill(void **state) {
    fixture *f = *state;
    f->server.hook = name_it;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "");
    assert_int_equal(photon_client_close_run(run, 10000, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(f->server.n_runs, 1);
}

static void open_without_answer_times_out(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    f->server.hook = ignore_open;
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.name = "run";
    o.profile = "lincam";
    o.open_timeout_ms = 50;
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_TIMEOUT);
    fixture_stop(f);
}

static bool open_something_else(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_OPEN)
        m->open->datasets[0]->type = PHOTON__ELEMENT_TYPE__TYPE_UINT32;
    (void)s;
    return false;
}

static void other_datasets_than_asked_for_are_refused(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    photon_client_dataset d = {.name = "/a", .type = PHOTON_CLIENT_UINT16};
    f->server.hook = open_something_else;
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.name = "run";
    o.datasets = &d;
    o.n_datasets = 1;
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_PROTOCOL);
    fixture_stop(f);
}

static void repeated_open_goes_on_where_it_was(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    photon_client_run *run = NULL;
    photon_client_run_info info;
    photon_client_result result;
    uint8_t id[16] = {7};
    photons p = photons_make(1000);
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.run_id = id;
    o.name = "run";
    o.profile = "lincam";
    assert_int_equal(photon_client_open(f->client, &o, &run, &f->err), 0);
    uint64_t first[] = {500, 5};
    assert_int_equal(photon_client_send(run, p.columns, first, &f->err), 0);
    assert_int_equal(photon_client_wait_received(run, 10000, &f->err), 0);
    photon_client_run_free(run);

    assert_int_equal(photon_client_open(f->client, &o, &run, &f->err), 0);
    photon_client_run_describe(run, &info);
    assert_int_equal(info.next_sequence, 2);
    assert_int_equal(info.datasets[0].items, 500);
    const void *rest[] = {p.x + 500, p.y + 500, p.dt + 500, p.ms + 5};
    assert_int_equal(photon_client_send(run, rest, first, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, &result, &f->err), 0);
    photon_client_run_free(run);

    assert_int_equal(photon_client_open(f->client, &o, &run, &f->err),
                     0); /* as if the answer had been lost */
    photon_client_run_status status;
    photon_client_status(run, &status);
    assert_int_equal(status.state, PHOTON_CLIENT_RUN_CLOSED);
    assert_int_equal(photon_client_send(run, p.columns, first, &f->err), PHOTON_CLIENT_ERR_ENDED);
    assert_int_equal(photon_client_close_run(run, 60000, &result, &f->err), 0);
    assert_int_equal(result.last_sequence, 2);
    assert_int_equal(result.n_datasets, 4);
    assert_int_equal(result.datasets[0].items, 1000);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[0]);
    photons_free(&p);
}

/* ---- sending */

static void send_whole(bool tcp, unsigned answer_piece, fixture *f) {
    photon_client_result result;
    photons p = photons_make(300000);
    f->server.batch_bytes = 50000;
    f->server.answer_piece = answer_piece;
    f->server.tcp = tcp;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "scan");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, &result, &f->err), 0);
    assert_string_equal(result.name, "scan");
    assert_string_equal(result.text, "");
    assert_int_equal(result.parts, 1);
    assert_int_equal(result.datasets[0].items, 300000);
    assert_int_equal(result.datasets[3].items, 3000);
    photon_client_run_free(run);
    fixture_stop(f);
    const fake_run *got = &f->server.runs[0];
    photons_check(&p, got);
    assert_true(got->largest_batch <= 50000 && got->largest_batch > 40000);
    assert_int_equal(got->sequence, result.last_sequence);
    photons_free(&p);
}

static void photons_arrive_whole_over_tcp(void **state) {
    send_whole(true, 0, *state);
}

static void photons_arrive_whole_over_a_unix_socket(void **state) {
    send_whole(false, 0, *state);
}

static void answers_byte_by_byte_are_understood(void **state) {
    send_whole(true, 1, *state);
}

static void batches_of_a_size_that_was_asked_for(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    photon_client_run *run = NULL;
    photons p = photons_make(1000);
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.name = "run";
    o.profile = "lincam";
    o.batch_items = 100;
    assert_int_equal(photon_client_open(f->client, &o, &run, &f->err), 0);
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[0]);
    assert_int_equal(f->server.runs[0].n_batches, 10);
    assert_int_equal(f->server.runs[0].largest_items, 100);
    photons_free(&p);
}

static void odd_datasets_are_split_evenly(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    photon_client_run *run = NULL;
    photon_client_dataset d[] = {
        {.name = "/a", .type = PHOTON_CLIENT_DOUBLE, .group = "g"},
        {.name = "/b", .type = PHOTON_CLIENT_INT8, .group = "g", .unit = "ps", .scale = 2.5},
        {.name = "/c", .type = PHOTON_CLIENT_FLOAT}};
    double *a = malloc(10000 * sizeof *a);
    int8_t *b = malloc(10000);
    float *c = malloc(777 * sizeof *c);
    assert_true(a && b && c);
    for (int i = 0; i < 10000; i++) {
        a[i] = i * 0.25;
        b[i] = (int8_t)i;
    }
    for (int i = 0; i < 777; i++)
        c[i] = (float)-i;
    f->server.batch_bytes = 1000;
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.name = "odd";
    o.datasets = d;
    o.n_datasets = 3;
    assert_int_equal(photon_client_open(f->client, &o, &run, &f->err), 0);
    assert_int_equal(photon_client_send(run, (const void *[]){a, b, c}, (uint64_t[]){10000, 777}, &f->err),
                     0);
    assert_int_equal(photon_client_send(run, (const void *[]){NULL, NULL, NULL}, (uint64_t[]){0, 0}, &f->err),
                     0);
    assert_int_equal(photon_client_send(run, (const void *[]){a, NULL, c}, (uint64_t[]){1, 1}, &f->err),
                     PHOTON_CLIENT_ERR_ARG);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    const fake_run *got = &f->server.runs[0];
    assert_memory_equal(got->columns[0].data, a, 80000);
    assert_memory_equal(got->columns[1].data, b, 10000);
    assert_memory_equal(got->columns[2].data, c, 777 * 4);
    assert_true(got->largest_batch <= 1000 && got->n_batches < 100);
    free(a);
    free(b);
    free(c);
}

static void group_that_no_batch_can_hold_is_over_a_limit(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    f->server.batch_bytes = 5;
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.name = "run";
    o.profile = "lincam";
    assert_int_equal(open_code(f, &o), PHOTON_CLIENT_ERR_LIMIT);
    fixture_stop(f);
}

static void losses_and_times_travel_with_their_batch(void **state) {
    fixture *f = *state;
    uint64_t taken[2] = {9, 9};
    photons p = photons_make(100);
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    photon_client_batch batch = {.columns = p.columns,
                                 .counts = p.counts,
                                 .lost_before = 5,
                                 .times_valid = true,
                                 .first_time = -1,
                                 .last_time = 4711};
    assert_int_equal(photon_client_send_batch(run, &batch, taken, &f->err), 0);
    assert_true(taken[0] == 100 && taken[1] == 1);
    assert_int_equal(photon_client_wait_received(run, 10000, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(f->server.runs[0].lost_before, 5);
    assert_int_equal(f->server.runs[0].last_time, 4711);
    photons_free(&p);
}

static void loss_without_events_is_told_too(void **state) {
    fixture *f = *state;
    uint64_t none[2] = {0, 0};
    const void *columns[4] = {NULL};
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    photon_client_batch batch = {.columns = columns, .counts = none, .lost_before = 17};
    assert_int_equal(photon_client_send_batch(run, &batch, NULL, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(f->server.runs[0].lost_before, 17);
    assert_int_equal(f->server.runs[0].n_batches, 1);
}

typedef struct feeder {
    fixture *f;
    photon_client_run *run;
    const photons *p;
    int rc;
    photon_client_error err;
    pthread_t thread;
} feeder;

static void *feed(void *arg) {
    feeder *job = arg;
    const photons *p = job->p;
    for (uint64_t at = 0; job->rc == 0 && at < p->counts[0]; at += 1000) {
        const void *columns[] = {p->x + at, p->y + at, p->dt + at, p->ms + at / 100};
        uint64_t counts[] = {1000, 10};
        job->rc = photon_client_send(job->run, columns, counts, &job->err);
    }
    if (job->rc == 0)
        job->rc = photon_client_close_run(job->run, 60000, NULL, &job->err);
    return NULL;
}

static void runs_fed_by_several_threads_do_not_mix(void **state) {
    fixture *f = *state;
    feeder jobs[FAKE_RUNS];
    photons p = photons_make(200000);
    f->server.tcp = true;
    f->server.batch_bytes = 3000;
    f->server.credit_bytes = 10000;
    fixture_start(f);
    for (int i = 0; i < FAKE_RUNS; i++) {
        char name[16];
        snprintf(name, sizeof name, "run%d", i);
        jobs[i] = (feeder){.f = f, .run = fixture_open(f, name), .p = &p};
    }
    for (int i = 0; i < FAKE_RUNS; i++)
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, feed, &jobs[i]), 0);
    for (int i = 0; i < FAKE_RUNS; i++) {
        pthread_join(jobs[i].thread, NULL);
        if (jobs[i].rc != 0)
            fail_msg("%s", jobs[i].err.text);
    }
    fixture_stop(f);
    for (int i = 0; i < FAKE_RUNS; i++)
        photons_check(&p, &f->server.runs[i]);
    photons_free(&p);
}

/* ---- attributes and signs of life */

static void attributes_are_numbered_and_split(void **state) {
    fixture *f = *state;
    photons p = photons_make(100);
    photon_client_attribute many[250];
    char keys[250][16];
    f->server.limits.attributes = 100;
    f->server.limits.attribute_bytes = 100;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    for (int i = 0; i < 250; i++) {
        snprintf(keys[i], sizeof keys[i], "key %d", i);
        many[i] = (photon_client_attribute){keys[i], "gr\xc3\xbc\xc3\x9f"};
    }
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_set_attributes(run, many, 250, &f->err), 0);
    assert_int_equal(photon_client_set_attributes(run, many, 0, &f->err), 0);
    many[3].value = "\xff";
    assert_int_equal(photon_client_set_attributes(run, many, 250, &f->err), PHOTON_CLIENT_ERR_ARG);
    char longer[102] = "";
    memset(longer, 'v', 101);
    many[3].value = longer;
    assert_int_equal(photon_client_set_attributes(run, many, 250, &f->err), PHOTON_CLIENT_ERR_LIMIT);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    const fake_run *got = &f->server.runs[0];
    assert_int_equal(got->sequence, 4);
    assert_int_equal(got->attribute_messages, 3);
    assert_int_equal(got->n_attributes, 250);
    assert_string_equal(got->last_key, "key 249");
    assert_string_equal(got->last_value, "gr\xc3\xbc\xc3\x9f");
    photons_free(&p);
}

/* Refuses each Attributes with the key "bad". */
static bool refuse_bad_key(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_ATTRIBUTES ||
        strcmp(m->attributes->attributes[0]->key, "bad") != 0)
        return false;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_BAD_ATTRIBUTE, PHOTON__ERROR_SCOPE__SCOPE_BATCH, 1,
               m->attributes->sequence, "a reserved key");
    return true;
}

static void refused_attribute_leaves_the_run_going(void **state) {
    fixture *f = *state;
    photons p = photons_make(100);
    photon_client_attribute bad = {"bad", "v"}, good = {"good", "v"};
    f->server.hook = refuse_bad_key;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_set_attributes(run, &bad, 1, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(f->err.server_code, 20);
    assert_int_equal(f->err.scope, PHOTON_CLIENT_SCOPE_BATCH);
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_set_attributes(run, &bad, 1, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(photon_client_set_attributes(run, &good, 1, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(f->server.runs[0].sequence, 2);
    assert_string_equal(f->server.runs[0].last_key, "good");
    photons_free(&p);
}

static void attributes_without_answer_time_out(void **state) {
    fixture *f = *state;
    photon_client_run_options o;
    photon_client_run *run = NULL;
    photon_client_attribute a = {"k", "v"};
    f->server.acknowledge_up_to = 0;
    fixture_start(f);
    photon_client_run_options_init(&o);
    o.name = "run";
    o.profile = "lincam";
    o.send_timeout_ms = 50;
    assert_int_equal(photon_client_open(f->client, &o, &run, &f->err), 0);
    assert_int_equal(photon_client_set_attributes(run, &a, 1, &f->err), PHOTON_CLIENT_ERR_TIMEOUT);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(f->server.runs[0].sequence, 1);
}

static bool end_by_itself(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_RUN_CLOSED, PHOTON__ERROR_SCOPE__SCOPE_BATCH, 1,
               m->batch->sequence, "ending");
    fake_closed(s, 1, "stopped");
    return true;
}

static void batch_that_meets_the_end_is_no_failure_of_the_run(void **state) {
    fixture *f = *state;
    photons p = photons_make(100);
    photon_client_result result;
    f->server.hook = end_by_itself;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    while (photon_client_send(run, p.columns, p.counts, &f->err) == 0)
        fake_sleep_ms(1);
    assert_int_equal(f->err.code, PHOTON_CLIENT_ERR_ENDED);
    assert_int_equal(photon_client_close_run(run, 60000, &result, &f->err), PHOTON_CLIENT_ERR_INCOMPLETE);
    assert_int_equal(result.last_sequence, 0);
    assert_string_equal(result.text, "stopped");
    photon_client_free(f->client);
    fake_stop(&f->server);
    photons_free(&p);
}

static void alive_is_told_with_the_instruments_time(void **state) {
    fixture *f = *state;
    int64_t time = -77;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_alive(run, NULL, &f->err), 0);
    assert_int_equal(photon_client_alive(run, &time, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    assert_int_equal(f->server.runs[0].pings, 2);
    assert_int_equal(f->server.runs[0].last_time, -77);
}

/* ---- the server says no */

static bool fail_run_1(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH || m->batch->run != 1)
        return false;
    fake_error(s, PHOTON__ERROR_CODE__ERROR_RUN_FAILED, PHOTON__ERROR_SCOPE__SCOPE_RUN, 1, 0,
               "the disk failed");
    return true;
}

static void failed_run_leaves_the_others_alone(void **state) {
    fixture *f = *state;
    photons p = photons_make(100);
    photon_client_run_status status;
    f->server.hook = fail_run_1;
    fixture_start(f);
    photon_client_run *bad = fixture_open(f, "bad"), *good = fixture_open(f, "good");
    assert_int_equal(photon_client_send(bad, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_wait_received(bad, 10000, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(f->err.server_code, 22);
    photon_client_status(bad, &status);
    assert_int_equal(status.state, PHOTON_CLIENT_RUN_FAILED);
    assert_int_equal(status.in_flight_bytes, 0);
    assert_int_equal(photon_client_send(bad, p.columns, p.counts, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(photon_client_close_run(bad, 60000, NULL, &f->err), PHOTON_CLIENT_ERR_REFUSED);
    assert_int_equal(photon_client_send(good, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(good, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    photons_check(&p, &f->server.runs[1]);
    photons_free(&p);
}

static bool close_by_itself(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    fake_take(s, m);
    fake_closed(s, m->batch->run, "the stop condition was met");
    return true;
}

static void run_closed_by_the_server_has_its_result(void **state) {
    fixture *f = *state;
    photons p = photons_make(100);
    photon_client_run_status status;
    photon_client_result result;
    f->server.hook = close_by_itself;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    do
        photon_client_status(run, &status);
    while (status.state == PHOTON_CLIENT_RUN_OPEN);
    assert_int_equal(status.state, PHOTON_CLIENT_RUN_CLOSED);
    assert_int_equal(status.durable, 1);
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), PHOTON_CLIENT_ERR_ENDED);
    assert_non_null(strstr(f->err.text, "the stop condition was met"));
    assert_int_equal(photon_client_close_run(run, 60000, &result, &f->err), 0);
    assert_string_equal(result.text, "the stop condition was met");
    assert_int_equal(result.datasets[0].items, 100);
    fixture_stop(f);
    photons_free(&p);
}

static bool shut_down(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    fake_take(s, m);
    fake_closed(s, 1, "shutting down");
    fake_error(s, PHOTON__ERROR_CODE__ERROR_SHUTTING_DOWN, PHOTON__ERROR_SCOPE__SCOPE_CONNECTION, 0, 0,
               "stopping");
    fake_hang_up(s);
    return true;
}

static void run_closed_in_a_shutdown_is_still_a_result(void **state) {
    fixture *f = *state;
    photons p = photons_make(100);
    photon_client_result result;
    f->server.hook = shut_down;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    while (photon_client_check(f->client, &f->err) == 0)
        fake_sleep_ms(1);
    assert_int_equal(f->err.server_code, 23);
    assert_int_equal(photon_client_close_run(run, 60000, &result, &f->err), 0);
    assert_int_equal(result.datasets[0].items, 100);
    fixture_stop(f);
    photons_free(&p);
}

/* Sends a batch to a server that answers it as it may not. */
static void answer_ends_in_protocol(fixture *f,
                                    bool (*hook)(fake_server *s, const Photon__ClientMessage *m)) {
    photons p = photons_make(100);
    f->server.hook = hook;
    fixture_start(f);
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_wait_received(run, 10000, &f->err), PHOTON_CLIENT_ERR_PROTOCOL);
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), PHOTON_CLIENT_ERR_PROTOCOL);
    fixture_stop(f);
    photons_free(&p);
}

static bool acknowledge_too_much(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        fake_ack(s, 1, m->batch->sequence + 1, 0, 0);
    return m->body_case == PHOTON__CLIENT_MESSAGE__BODY_BATCH;
}

static void acknowledgement_of_what_was_not_sent_is_an_error(void **state) {
    answer_ends_in_protocol(*state, acknowledge_too_much);
}

static bool send_garbage(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    fake_write(s, "\x03\xff\xff\xff", 4);
    return true;
}

static void garbage_from_the_server_is_an_error(void **state) {
    answer_ends_in_protocol(*state, send_garbage);
}

static bool unknown_answers(fake_server *s, const Photon__ClientMessage *m) {
    (void)m;
    fake_write(s, "\x05\xfa\x06\x02hi", 6); /* body 111 */
    fake_write(s, "\x00", 1);               /* no body at all */
    return false;
}

static void messages_of_later_servers_are_passed_over(void **state) {
    fixture *f = *state;
    photons p = photons_make(100);
    fixture_start(f);
    f->server.hook = unknown_answers;
    photon_client_run *run = fixture_open(f, "run");
    assert_int_equal(photon_client_send(run, p.columns, p.counts, &f->err), 0);
    assert_int_equal(photon_client_close_run(run, 60000, NULL, &f->err), 0);
    fixture_stop(f);
    photons_free(&p);
}

static bool ask_again(fake_server *s, const Photon__ClientMessage *m) {
    if (m->body_case != PHOTON__CLIENT_MESSAGE__BODY_BATCH)
        return false;
    Photon__Resend r = PHOTON__RESEND__INIT;
    Photon__ServerMessage answer = PHOTON__SERVER_MESSAGE__INIT;
    r.run = 1;
    r.from_sequence = 1;
    answer.body_case = PHOTON__SERVER_MESSAGE__BODY_RESEND;
    answer.resend = &r;
    fake_answer(s, &answer);
    return true;
}

static void request_to_send_again_is_not_ignored(void **state) {
    answer_ends_in_protocol(*state, ask_again);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bad_options_are_refused_before_they_are_sent),
        TEST(profile_tells_its_datasets),
        TEST(refused_open_tells_why_and_spoils_nothing),
        TEST(empty_name_is_for_the_server_to_fill),
        TEST(open_without_answer_times_out),
        TEST(other_datasets_than_asked_for_are_refused),
        TEST(repeated_open_goes_on_where_it_was),
        TEST(photons_arrive_whole_over_tcp),
        TEST(photons_arrive_whole_over_a_unix_socket),
        TEST(answers_byte_by_byte_are_understood),
        TEST(batches_of_a_size_that_was_asked_for),
        TEST(odd_datasets_are_split_evenly),
        TEST(group_that_no_batch_can_hold_is_over_a_limit),
        TEST(losses_and_times_travel_with_their_batch),
        TEST(loss_without_events_is_told_too),
        TEST(runs_fed_by_several_threads_do_not_mix),
        TEST(attributes_are_numbered_and_split),
        TEST(refused_attribute_leaves_the_run_going),
        TEST(attributes_without_answer_time_out),
        TEST(batch_that_meets_the_end_is_no_failure_of_the_run),
        TEST(alive_is_told_with_the_instruments_time),
        TEST(failed_run_leaves_the_others_alone),
        TEST(run_closed_by_the_server_has_its_result),
        TEST(run_closed_in_a_shutdown_is_still_a_result),
        TEST(acknowledgement_of_what_was_not_sent_is_an_error),
        TEST(garbage_from_the_server_is_an_error),
        TEST(messages_of_later_servers_are_passed_over),
        TEST(request_to_send_again_is_not_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
