/* No memory: the n-th allocation fails, for every n until none does. Each time the call says so or works, and nothing
 * is left behind (the address sanitizer looks). */
#include "client_fixture.h"
#include "source.h"

/* The linker sends the allocations of our objects here (--wrap). Those of the fake server's thread never fail. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
char *__wrap_strdup(const char *text);

static atomic_long allocations_left; /* until one fails; negative: it has failed */
static atomic_bool faults_on;
static _Thread_local bool spared;

static bool allocation_fails(void) {
    return atomic_load(&faults_on) && !spared && atomic_fetch_sub(&allocations_left, 1) == 0;
}

void *__wrap_malloc(size_t bytes) {
    return allocation_fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes) {
    return allocation_fails() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes) {
    return allocation_fails() ? NULL : __real_realloc(old, bytes);
}

char *__wrap_strdup(const char *text) {
    return allocation_fails() ? NULL : __real_strdup(text);
}

static void faults_from(long n) {
    atomic_store(&allocations_left, n);
    atomic_store(&faults_on, true);
}

/* Whether an allocation has failed since. */
static bool faults_end(void) {
    atomic_store(&faults_on, false);
    return atomic_load(&allocations_left) < 0;
}

static bool spare_this_thread(fake_server *s, const Photon__ClientMessage *m) {
    (void)s;
    (void)m;
    spared = true;
    return false;
}

static int use_run(fixture *f, photon_client_run *run, const photons *p) {
    photon_client_attribute a[3] = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
    photon_client_result result;
    int rc = photon_client_send(run, p->columns, p->counts, &f->err);
    if (rc == 0)
        rc = photon_client_set_attributes(run, a, 3, &f->err);
    return rc == 0 ? photon_client_close_run(run, 20000, &result, &f->err) : rc;
}

static int use_client(fixture *f, const photons *p) {
    photon_client_run_options o;
    photon_client_run *run = NULL;
    int rc = photon_client_connect(&f->client, &f->options, &f->err);
    if (rc != 0)
        return rc;
    photon_client_run_options_init(&o);
    o.name = "run";
    o.profile = "lincam";
    rc = photon_client_open(f->client, &o, &run, &f->err);
    if (rc == 0)
        rc = use_run(f, run, p);
    photon_client_run_free(run);
    return rc;
}

/* Returns whether a fault fired. */
static bool client_with_fault(long n, const photons *p) {
    fixture *f = NULL;
    assert_int_equal(fixture_setup((void **)&f), 0);
    f->server.prepare = spare_this_thread;
    fixture_listen(f);
    faults_from(n);
    int rc = use_client(f, p);
    photon_client_free(f->client);
    bool fired = faults_end();
    assert_null(fake_stop(&f->server));
    if (rc != 0 && (!fired || rc != PHOTON_CLIENT_ERR_NOMEM))
        fail_msg("allocation %ld: %s", n, f->err.text);
    fixture_teardown((void **)&f);
    return fired;
}

static void client_without_memory_says_so(void **state) {
    (void)state;
    photons p = photons_make(1000);
    long n = 0;
    while (client_with_fault(n, &p))
        n++;
    assert_true(n > 10);
    photons_free(&p);
}

static bool source_with_fault(long n, send_source *(*open)(send_fault *fault)) {
    send_fault fault = {.text = ""};
    send_chunk chunk;
    send_want want = {1000, SEND_NO_TIME};
    faults_from(n);
    send_source *s = open(&fault);
    int rc = s ? s->next(s, &want, &chunk, &fault) : -1;
    send_source_free(s);
    bool fired = faults_end();
    if (rc < 0 && (!fired || !fault.text[0]))
        fail_msg("allocation %ld: '%s'", n, fault.text);
    return fired;
}

static send_source *open_folder(send_fault *fault) {
    return send_open_folder(TEST_DATA "/hazelnut", NULL, 0, SEND_UNKNOWN, fault);
}

static send_source *open_photons(send_fault *fault) {
    return send_open_photons(TEST_FIXTURES "/d7/lincam_islands.photons", SEND_UNKNOWN, fault);
}

static send_source *open_simulation(send_fault *fault) {
    static const send_simulation simulation = {false, 1e6, 1, 1};
    return send_open_simulation(&simulation, SEND_UNKNOWN, fault);
}

static send_source *open_stream(send_fault *fault) {
    return send_open_stream(-1, "channel:u8,time:u64,/other:f32", 0, fault);
}

static void sources_without_memory_say_so(void **state) {
    (void)state;
    static send_source *(*const open[])(send_fault *) = {open_folder, open_photons, open_simulation,
                                                         open_stream};
    for (size_t i = 0; i < 4; i++) {
        long n = 0;
        while (source_with_fault(n, open[i]))
            n++;
        assert_true(n > 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(client_without_memory_says_so),
        cmocka_unit_test(sources_without_memory_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
