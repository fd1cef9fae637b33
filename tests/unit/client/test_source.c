/* Where photon-send takes its events from. */
#include <getopt.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "capture.h"
#include "d7/d7.h"
#include "dice.h"
#include "ledger.h"
#include "options.h"
#include "source.h"
#include "testing.h"

#define HAZELNUT TEST_DATA "/hazelnut"

/* Of the first 10,000 simulated events with seed 1 at 1 M/s. */
#define GOLDEN_X 18880380
#define GOLDEN_Y 19806157
#define GOLDEN_DT 11029937
#define GOLDEN_CHANNEL 17040
#define GOLDEN_LAST_TIME 9936217367

/* ---- all that a source gives */

typedef struct gathered {
    uint8_t *data[SEND_DATASETS_MAX];
    size_t bytes[SEND_DATASETS_MAX];
    size_t cap[SEND_DATASETS_MAX];
    uint64_t items[SEND_DATASETS_MAX]; /* by group */
    uint64_t chunks;
} gathered;

static size_t item_bytes(const send_source *s, size_t i) {
    return d7_type_size((d7_type)s->datasets[i].type);
}

static void gather_chunk(gathered *g, const send_source *s, const send_chunk *chunk) {
    for (size_t i = 0; i < s->n_datasets; i++) {
        size_t n = chunk->counts[s->group_of[i]] * item_bytes(s, i);
        if (g->cap[i] - g->bytes[i] < n) {
            g->cap[i] = 2 * (g->bytes[i] + n);
            g->data[i] = realloc(g->data[i], g->cap[i]);
            assert_non_null(g->data[i]);
        }
        if (n)
            memcpy(g->data[i] + g->bytes[i], chunk->columns[i], n);
        g->bytes[i] += n;
    }
    for (size_t k = 0; k < s->n_groups; k++)
        g->items[k] += chunk->counts[k];
    g->chunks++;
}

/* An index of milliseconds may not point past the photons that have gone, until the very end. */
static void check_index(const gathered *g, const send_source *s) {
    size_t ms = send_find_role(s, PHOTON_CLIENT_ROLE_MS_INDEX);
    if (ms == SEND_DATASETS_MAX || g->bytes[ms] == 0)
        return;
    uint64_t last = bytes_load64(g->data[ms] + g->bytes[ms] - 8);
    assert_true(last < g->items[s->event_group]);
}

static gathered gather(send_source *s, uint64_t events_at_once) {
    gathered g = {.chunks = 0};
    send_chunk chunk;
    send_fault fault;
    send_want want = {events_at_once, SEND_NO_TIME};
    int rc;
    while ((rc = s->next(s, &want, &chunk, &fault)) > 0) {
        uint64_t events = chunk.counts[s->event_group];
        assert_true(events <= events_at_once);
        gather_chunk(&g, s, &chunk);
        if (events)
            check_index(&g, s);
    }
    if (rc != 0)
        fail_msg("%s", fault.text);
    return g;
}

static void release(gathered *g, send_source *s) {
    for (size_t i = 0; i < SEND_DATASETS_MAX; i++)
        free(g->data[i]);
    send_source_free(s);
}

static uint64_t sum16(const gathered *g, size_t dataset) {
    uint64_t sum = 0;
    for (size_t i = 0; i < g->bytes[dataset]; i += 2)
        sum += bytes_load16(g->data[dataset] + i);
    return sum;
}

static const char *attribute(const send_source *s, const char *key) {
    for (size_t i = 0; i < s->n_attributes; i++)
        if (strcmp(s->attributes[i].key, key) == 0)
            return s->attributes[i].value;
    return "(none)";
}

static send_source *open_folder(const char *path, uint64_t count) {
    send_fault fault;
    send_source *s = send_open_folder(path, NULL, 0, count, &fault);
    if (!s)
        fail_msg("%s", fault.text);
    return s;
}

/* ---- folders */

static void recording_has_the_sums_of_its_manifest(void **state) {
    (void)state;
    send_source *s = open_folder(HAZELNUT, SEND_UNKNOWN);
    assert_int_equal(s->n_datasets, 4);
    assert_int_equal(s->n_groups, 2);
    assert_int_equal(s->n_events, 200000);
    assert_string_equal(s->unit, "photons");
    assert_true(s->timed);
    assert_string_equal(s->datasets[0].name, "/photons/x");
    assert_string_equal(s->datasets[3].name, "/photons/ms");
    assert_string_equal(attribute(s, "/photons/PositionBits"), "12");
    assert_string_equal(attribute(s, "/photons/TacBits"), "8");
    assert_string_equal(attribute(s, "/photons/TacChannel"), "96.96969697");
    assert_string_equal(attribute(s, "/photons/TimerFrequency"), "78020000");
    assert_true(fabs(s->time_base.laser_period_ps - 12817.226) < 0.001);
    assert_string_equal(s->datasets[2].unit, "ps");
    gathered g = gather(s, 777);
    assert_int_equal(sum16(&g, 0), 513239610);
    assert_int_equal(sum16(&g, 1), 145790688);
    assert_int_equal(sum16(&g, 2), 4908034);
    assert_int_equal(g.items[1], 100);
    release(&g, s);
}

static void count_takes_the_first_photons_and_their_milliseconds(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 100, 9999, 10000, 1 << 20};
    for (size_t k = 0; k < 5; k++) {
        send_source *s = open_folder(HAZELNUT, 10000);
        gathered g = gather(s, sizes[k]);
        assert_int_equal(g.items[0], 10000);
        assert_int_equal(g.items[1], 47);
        assert_int_equal(sum16(&g, 0), 22926172);
        assert_int_equal(sum16(&g, 1), 3896032);
        assert_int_equal(sum16(&g, 2), 243436);
        assert_true(bytes_load64(g.data[3] + 46 * 8) < 10000);
        release(&g, s);
    }
}

/* In real time, photons come when the millisecond that they belong to is over. */
static void real_speed_follows_the_index_of_milliseconds(void **state) {
    (void)state;
    send_source *s = open_folder(HAZELNUT, SEND_UNKNOWN);
    static const uint64_t first[] = {0, 21, 40, 61, 76, 98};
    send_chunk chunk;
    send_fault fault;
    gathered g = {.chunks = 0};
    for (int64_t ms = 0; ms < 6; ms++) {
        send_want want = {UINT64_MAX, ms * 1000000};
        assert_int_equal(s->next(s, &want, &chunk, &fault), 1);
        gather_chunk(&g, s, &chunk);
        assert_int_equal(g.items[0], first[ms]);
        assert_int_equal(g.items[1], ms); /* the index of a millisecond goes with its first photon */
    }
    send_want rest = {UINT64_MAX, 3600 * INT64_C(1000000000)};
    assert_int_equal(s->next(s, &rest, &chunk, &fault), 1);
    gather_chunk(&g, s, &chunk);
    assert_int_equal(g.items[0], 200000);
    assert_int_equal(s->next(s, &rest, &chunk, &fault), 0);
    release(&g, s);
}

typedef struct folder {
    char path[64];
} folder;

static void put_file(const char *path, const char *name, const void *data, size_t bytes) {
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", path, name);
    FILE *f = fopen(whole, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static void put_text(const char *path, const char *name, const char *text) {
    put_file(path, name, text, strlen(text));
}

static int make_folder(void **state) {
    folder *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    snprintf(f->path, sizeof f->path, "/tmp/test-source.XXXXXX");
    *state = f;
    return mkdtemp(f->path) ? 0 : -1;
}

static int remove_folder(void **state) {
    folder *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", f->path);
    int rc = system(command);
    free(f);
    return rc;
}

static void folder_fault(const char *path, const send_column_name *named, size_t n, uint64_t count,
                         const char *text) {
    send_fault fault = {.text = ""};
    assert_null(send_open_folder(path, named, n, count, &fault));
    if (!strstr(fault.text, text))
        fail_msg("'%s' does not tell '%s'", fault.text, text);
}

static void folders_that_cannot_be_sent_say_why(void **state) {
    const folder *f = *state;
    uint16_t three[3] = {1, 2, 3};
    send_column_name odd = {"extra", "/e"}, missing = {"extra.u16", "/e"}, twice = {"y.u16", "/photons/x"};
    folder_fault("/nonexistent", NULL, 0, SEND_UNKNOWN, "No such file");
    folder_fault(f->path, NULL, 0, SEND_UNKNOWN, "no columns");
    put_file(f->path, "x.u16", three, 6);
    folder_fault(f->path, NULL, 0, SEND_UNKNOWN, "manifest.json is missing");
    put_text(f->path, "manifest.json", "{\"tac_bits\": \"12\"}");
    folder_fault(f->path, NULL, 0, SEND_UNKNOWN, "tac_bits is not a number");
    put_text(f->path, "manifest.json", "[");
    folder_fault(f->path, NULL, 0, SEND_UNKNOWN, "manifest.json");
    put_text(f->path, "manifest.json", "{}");
    put_file(f->path, "y.u16", three, 5);
    folder_fault(f->path, NULL, 0, SEND_UNKNOWN, "whole items of 2 bytes");
    put_file(f->path, "y.u16", three, 4);
    folder_fault(f->path, NULL, 0, SEND_UNKNOWN, "--count 2");
    folder_fault(f->path, NULL, 0, 3, "differ in length");
    folder_fault(f->path, &odd, 1, 2, "ending");
    folder_fault(f->path, &missing, 1, 2, "No such file");
    folder_fault(f->path, &twice, 1, 2, "two columns");
    put_file(f->path, "ms.u32", three, 4);
    folder_fault(f->path, NULL, 0, 2, "uint64");
}

static void further_columns_are_groups_of_their_own(void **state) {
    const folder *f = *state;
    uint16_t x[1000];
    float t[77];
    send_fault fault;
    send_column_name named[] = {{"temperature.f32", "/room/temperature"}, {"again.u16", "/photons/dt"}};
    for (int i = 0; i < 1000; i++)
        x[i] = (uint16_t)i;
    for (int i = 0; i < 77; i++)
        t[i] = 20 + (float)i;
    put_text(f->path, "manifest.json", "{}");
    put_file(f->path, "x.u16", x, sizeof x);
    put_file(f->path, "again.u16", x, sizeof x);
    put_file(f->path, "temperature.f32", t, sizeof t);
    send_source *s = send_open_folder(f->path, named, 2, SEND_UNKNOWN, &fault);
    assert_non_null(s);
    assert_int_equal(s->n_datasets, 3);
    assert_int_equal(s->n_groups, 2);
    assert_int_equal(s->datasets[1].role, PHOTON_CLIENT_ROLE_NONE);
    assert_int_equal(s->datasets[2].role, PHOTON_CLIENT_ROLE_MICRO_TIME);
    assert_int_equal(s->group_of[0], s->group_of[2]);
    assert_false(s->timed);
    gathered g = gather(s, 13);
    assert_true(g.chunks >= 77 && g.chunks < 80);
    assert_memory_equal(g.data[1], t, sizeof t);
    assert_memory_equal(g.data[2], x, sizeof x);
    release(&g, s);
}

static void tags_are_timed_by_their_stamps(void **state) {
    const folder *f = *state;
    uint8_t channel[100] = {0};
    uint64_t time[100];
    for (int i = 0; i < 100; i++)
        time[i] = 5000 + (uint64_t)i * 1000000; /* one a microsecond */
    put_text(f->path, "manifest.json", "{\"tags\": 100, \"channels\": 8, \"rate_hz\": 1e6}");
    put_file(f->path, "channel.u8", channel, sizeof channel);
    put_file(f->path, "time.u64", time, sizeof time);
    send_source *s = open_folder(f->path, SEND_UNKNOWN);
    assert_string_equal(s->unit, "tags");
    assert_true(s->timed);
    assert_int_equal(s->time_base.tick_ps_numerator, 1);
    send_chunk chunk;
    send_fault fault;
    send_want want = {UINT64_MAX, 9500};
    assert_int_equal(s->next(s, &want, &chunk, &fault), 1);
    assert_int_equal(chunk.counts[0], 10);
    assert_int_equal(s->next(s, &want, &chunk, &fault), 1);
    assert_int_equal(chunk.counts[0], 0);
    want.until_ns = SEND_NO_TIME;
    assert_int_equal(s->next(s, &want, &chunk, &fault), 1);
    assert_int_equal(chunk.counts[0], 90);
    assert_int_equal(s->next(s, &want, &chunk, &fault), 0);
    send_source_free(s);
}

static void empty_recording_is_a_source_too(void **state) {
    const folder *f = *state;
    put_text(f->path, "manifest.json", "{}");
    put_file(f->path, "x.u16", "", 0);
    put_file(f->path, "ms.u64", "", 0);
    send_source *s = open_folder(f->path, SEND_UNKNOWN);
    gathered g = gather(s, 10);
    assert_int_equal(g.chunks, 0);
    release(&g, s);
}

/* ---- .photons files */

static void write_photons(const char *path, uint64_t n, bool whole) {
    static const d7_dataset datasets[] = {{"/photons/x", D7_UINT16},
                                          {"/photons/y", D7_UINT16},
                                          {"/photons/dt", D7_UINT16},
                                          {"/photons/ms", D7_UINT64},
                                          {"/other", D7_DOUBLE}};
    d7_writer *w;
    d7_error err;
    assert_int_equal(d7_writer_create(&w, path, datasets, 5, NULL, &err), 0);
    for (uint64_t i = 0; i < n; i++) {
        uint16_t v = (uint16_t)(i * 7);
        double d = (double)i;
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(d7_writer_append(w, k, &v, 1, &err), 0);
        if (i % 100 == 0)
            assert_int_equal(d7_writer_append(w, 3, &i, 1, &err), 0);
        if (i % 10 == 0)
            assert_int_equal(d7_writer_append(w, 4, &d, 1, &err), 0);
    }
    assert_int_equal(d7_writer_set_attribute(w, "/photons/TimerFrequency", "20000000", &err), 0);
    assert_int_equal(d7_writer_set_attribute(w, "Comment", "gr\xc3\xbc\xc3\x9f", &err), 0);
    assert_int_equal(d7_writer_set_attribute(w, "photond.run", "0123", &err), 0);
    assert_int_equal(d7_writer_set_attribute(w, "photond.time_base",
                                             "{\"tick_ps_numerator\": 250, \"tick_ps_denominator\": 3, "
                                             "\"counter_bits\": 40, \"start_utc_ns\": 5, "
                                             "\"laser_period_ps\": 49999.5}",
                                             &err),
                     0);
    assert_int_equal(whole ? d7_writer_close(w, &err) : d7_writer_flush(w, &err), 0);
    d7_writer_free(w);
}

static void photons_file_is_read_whole_and_in_any_pieces(void **state) {
    const folder *f = *state;
    char path[128];
    send_fault fault;
    snprintf(path, sizeof path, "%s/a.photons", f->path);
    write_photons(path, 300000, true);
    static const uint64_t sizes[] = {999, 1 << 20};
    for (size_t k = 0; k < 2; k++) {
        send_source *s = send_open_photons(path, SEND_UNKNOWN, &fault);
        assert_non_null(s);
        assert_int_equal(s->n_datasets, 5);
        assert_int_equal(s->n_groups, 3);
        assert_int_equal(s->datasets[4].role, PHOTON_CLIENT_ROLE_NONE);
        assert_string_equal(s->datasets[4].group, "/other");
        assert_string_equal(attribute(s, "Comment"), "gr\xc3\xbc\xc3\x9f");
        assert_string_equal(attribute(s, "photond.run"), "(none)");
        assert_string_equal(attribute(s, "photond.time_base"), "(none)");
        assert_true(fabs(s->time_base.laser_period_ps - 49999.5) < 1e-6);
        assert_int_equal(s->time_base.tick_ps_numerator, 250);
        assert_int_equal(s->time_base.tick_ps_denominator, 3);
        assert_int_equal(s->time_base.counter_bits, 40);
        assert_int_equal(s->time_base.start_utc_ns, 0);
        gathered g = gather(s, sizes[k]);
        assert_int_equal(g.items[0], 300000);
        assert_int_equal(g.items[1], 3000);
        assert_int_equal(g.items[2], 30000);
        for (size_t i = 0; i < 300000; i += 11111)
            assert_int_equal(bytes_load16(g.data[1] + 2 * i), (uint16_t)(i * 7));
        assert_int_equal(bytes_load64(g.data[3] + 8 * 2999), 299900);
        release(&g, s);
    }
}

static void cut_photons_file_is_sent_as_far_as_all_columns_reach(void **state) {
    const folder *f = *state;
    char path[128];
    send_fault fault;
    capture errors;
    snprintf(path, sizeof path, "%s/cut.photons", f->path);
    write_photons(path, 20000, false);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size * 9 / 10), 0);
    capture_start(&errors, STDERR_FILENO);
    send_source *all = send_open_photons(path, SEND_UNKNOWN, &fault);
    send_source *part = send_open_photons(path, 8192, &fault);
    capture_end(&errors);
    assert_non_null(strstr(errors.text, "not closed"));
    assert_null(all);
    assert_non_null(part);
    gathered g = gather(part, 1000);
    assert_int_equal(g.items[0], 8192);
    release(&g, part);
}

static void damage_past_the_count_does_not_matter(void **state) {
    (void)state;
    static const char path[] = TEST_FIXTURES "/d7/bad_varints.photons";
    send_fault fault;
    send_source *s = send_open_photons(path, 24576, &fault);
    if (!s)
        fail_msg("%s", fault.text);
    gathered g = gather(s, 1 << 20);
    assert_int_equal(g.items[s->event_group], 24576);
    release(&g, s);
    assert_null(send_open_photons(path, 24577, &fault));
    assert_non_null(strstr(fault.text, "nothing was sent"));
    assert_null(send_open_photons(path, SEND_UNKNOWN, &fault));
}

/* Spoils the page that holds an item. Returns its first item. */
static uint64_t spoil_page(const char *path, uint32_t dataset, uint64_t item) {
    d7_reader *r;
    d7_error err;
    d7_page_info info;
    uint64_t page;
    assert_int_equal(d7_reader_open(&r, path, NULL, &err), 0);
    assert_int_equal(d7_reader_find_page(r, dataset, item, &page), 0);
    assert_int_equal(d7_reader_page(r, dataset, page, &info), 0);
    d7_reader_free(r);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)info.offset, SEEK_SET), 0);
    assert_int_equal(fwrite("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 1, 12, f), 12);
    assert_int_equal(fclose(f), 0);
    return info.first_item;
}

static void everything_before_damage_is_given(void **state) {
    const folder *f = *state;
    char path[128];
    send_chunk chunk;
    send_fault fault;
    send_want want = {UINT64_MAX, SEND_NO_TIME};
    snprintf(path, sizeof path, "%s/spoilt.photons", f->path);
    write_photons(path, 300000, true);
    uint64_t first = spoil_page(path, 1, 200000);
    assert_in_range(first, 131073, 200000);
    send_source *s = send_open_photons(path, SEND_UNKNOWN, &fault);
    assert_non_null(s);
    gathered g = {.chunks = 0};
    int rc;
    while ((rc = s->next(s, &want, &chunk, &fault)) > 0)
        gather_chunk(&g, s, &chunk);
    assert_int_equal(rc, -1);
    assert_non_null(strstr(fault.text, "/photons/y"));
    assert_int_equal(g.items[0], first);
    assert_int_equal(g.items[1], (first + 99) / 100);
    assert_int_equal(bytes_load16(g.data[1] + 2 * (first - 1)), (uint16_t)((first - 1) * 7));
    assert_true(g.chunks < 100);
    release(&g, s);
    s = send_open_photons(path, first, &fault);
    assert_non_null(s);
    g = gather(s, 1 << 20);
    assert_int_equal(g.items[0], first);
    release(&g, s);
}

static void damaged_index_of_milliseconds_is_read_as_far_as_asked(void **state) {
    const folder *f = *state;
    char path[128];
    send_fault fault;
    snprintf(path, sizeof path, "%s/spoilt.photons", f->path);
    write_photons(path, 600000, true);
    uint64_t first = spoil_page(path, 3, 3000);
    assert_true(first > 10);
    send_source *s = send_open_photons(path, (first - 10) * 100, &fault);
    if (!s)
        fail_msg("%s", fault.text);
    gathered g = gather(s, 1 << 20);
    assert_int_equal(g.items[1], first - 10);
    release(&g, s);
    assert_null(send_open_photons(path, SEND_UNKNOWN, &fault));
}

static void files_that_are_none_say_so(void **state) {
    const folder *f = *state;
    char path[128];
    send_fault fault = {.text = ""};
    put_file(f->path, "text.photons", "hello, this is text", 19);
    snprintf(path, sizeof path, "%s/text.photons", f->path);
    assert_null(send_open_photons(path, SEND_UNKNOWN, &fault));
    assert_true(fault.text[0]);
    assert_null(send_open_photons("/nonexistent.photons", SEND_UNKNOWN, &fault));
    assert_non_null(strstr(fault.text, "/nonexistent.photons"));
}

/* ---- standard input */

static send_source *open_pipe(const char *layout, const void *data, size_t bytes, uint64_t count,
                              send_fault *fault) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], data, bytes), bytes);
    close(ends[1]);
    send_source *s = send_open_stream(ends[0], layout, count, fault);
    if (!s)
        close(ends[0]);
    return s;
}

static void records_become_columns(void **state) {
    (void)state;
    uint8_t records[13 * 500];
    send_fault fault;
    for (unsigned i = 0; i < 500; i++) {
        records[13 * i] = (uint8_t)(i % 8);
        bytes_store64(records + 13 * i + 1, 1000000007ull * i);
        bytes_store32(records + 13 * i + 9, i);
    }
    for (int k = 0; k < 2; k++) {
        send_source *s = open_pipe("channel:u8,time:u64,/energy:f32", records, sizeof records,
                                   k ? 123 : SEND_UNKNOWN, &fault);
        assert_non_null(s);
        assert_int_equal(s->n_groups, 1);
        assert_string_equal(s->datasets[2].group, "tags");
        assert_string_equal(s->unit, "tags");
        gathered g = gather(s, 17);
        assert_int_equal(g.items[0], k ? 123 : 500);
        for (unsigned i = 0; i < g.items[0]; i++) {
            assert_int_equal(g.data[0][i], i % 8);
            assert_int_equal(bytes_load64(g.data[1] + 8 * i), 1000000007ull * i);
            assert_int_equal(bytes_load32(g.data[2] + 4 * i), i);
        }
        release(&g, s);
    }
}

static void torn_record_and_bad_layouts_are_errors(void **state) {
    (void)state;
    static const char *const bad[] = {"", "x", "x:u17", "foo:u8", "x:u16,x:u16", "x:u16,ms:u64", ":u8"};
    send_fault fault = {.text = ""};
    send_chunk chunk;
    send_want want = {100, SEND_NO_TIME};
    send_source *s = open_pipe("x:u16,y:u16", "123456", 6, SEND_UNKNOWN, &fault);
    assert_int_equal(s->next(s, &want, &chunk, &fault), 1);
    assert_int_equal(chunk.counts[0], 1);
    assert_int_equal(s->next(s, &want, &chunk, &fault), -1);
    assert_non_null(strstr(fault.text, "2 of 4 bytes"));
    send_source_free(s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fault.text[0] = '\0';
        assert_null(open_pipe(bad[i], "", 0, SEND_UNKNOWN, &fault));
        assert_non_null(strstr(fault.text, i == 4 ? "two columns" : "--layout"));
    }
}

/* ---- simulation */

static send_source *simulate(bool tags, double rate_hz, double duration_s, uint64_t seed, uint64_t count) {
    send_fault fault;
    send_simulation o = {tags, rate_hz, duration_s, seed};
    send_source *s = send_open_simulation(&o, count, &fault);
    assert_non_null(s);
    return s;
}

static void same_seed_gives_the_same_events_however_asked_for(void **state) {
    (void)state;
    for (int tags = 0; tags < 2; tags++) {
        send_source *a = simulate(tags, 1e6, 0.2, 42, SEND_UNKNOWN),
                    *b = simulate(tags, 1e6, 0.2, 42, SEND_UNKNOWN);
        send_source *c = simulate(tags, 1e6, 0.2, 43, SEND_UNKNOWN);
        gathered ga = gather(a, 1 << 20), gb = gather(b, 317), gc = gather(c, 1 << 20);
        assert_int_equal(ga.items[0], gb.items[0]);
        for (size_t i = 0; i < a->n_datasets; i++) {
            assert_int_equal(ga.bytes[i], gb.bytes[i]);
            assert_memory_equal(ga.data[i], gb.data[i], ga.bytes[i]);
        }
        assert_memory_not_equal(ga.data[1], gc.data[1], 10000);
        release(&ga, a);
        release(&gb, b);
        release(&gc, c);
    }
}

/* Golden: a change of the generator is a change of everybody's test data. */
static void events_are_the_same_on_every_machine(void **state) {
    (void)state;
    send_source *s = simulate(false, 1e6, 0, 1, 10000), *t = simulate(true, 1e6, 0, 1, 10000);
    gathered g = gather(s, 1 << 20), h = gather(t, 1 << 20);
    uint64_t sum = 0;
    for (size_t i = 0; i < h.bytes[0]; i++)
        sum += h.data[0][i];
    assert_int_equal(sum16(&g, 0), GOLDEN_X);
    assert_int_equal(sum16(&g, 1), GOLDEN_Y);
    assert_int_equal(sum16(&g, 2), GOLDEN_DT);
    assert_int_equal(sum, GOLDEN_CHANNEL);
    assert_int_equal(bytes_load64(h.data[1] + 8 * 9999), GOLDEN_LAST_TIME);
    release(&g, s);
    release(&h, t);
}

static void camera_has_its_rate_image_decay_and_milliseconds(void **state) {
    (void)state;
    send_source *s = simulate(false, 2e6, 0.5, 5, SEND_UNKNOWN);
    gathered g = gather(s, 1 << 20);
    double n = (double)g.items[0];
    assert_true(fabs(n - 1e6) < 5 * 1000);
    assert_int_equal(g.items[1], 500); /* one item a millisecond */
    uint64_t before = 0, *decay = calloc(4096, sizeof *decay), dark = 0, disc = 0;
    assert_non_null(decay);
    for (size_t i = 0; i < 500; i++) {
        uint64_t first = bytes_load64(g.data[3] + 8 * i);
        assert_true(first >= before && (i == 0 ? first == 0 : first - before < 3000));
        before = first;
    }
    for (uint64_t i = 0; i < g.items[0]; i++) {
        uint16_t x = bytes_load16(g.data[0] + 2 * i), y = bytes_load16(g.data[1] + 2 * i);
        uint16_t dt = bytes_load16(g.data[2] + 2 * i);
        assert_true(x < 4096 && y < 4096 && dt < 4096);
        decay[dt]++;
        disc += x / 64 == 20 && y / 64 == 22;
        dark += x / 64 == 60 && y / 64 == 2;
    }
    assert_true(disc > 10 * dark && dark > 0);
    uint64_t peak = 0, late = 0, ground = 0;
    for (size_t i = 0; i < 100; i++) {
        peak += decay[860 + i];
        late += decay[860 + 203 + i]; /* 2.5 ns later, some of it of 4 ns */
        ground += decay[700 + i];
    }
    assert_true(late * 2 < peak && late * 4 > peak);
    assert_true(ground * 50 < peak && ground > 0);
    free(decay);
    release(&g, s);
}

static void arrivals_are_poisson_with_a_dead_time(void **state) {
    (void)state;
    send_source *s = simulate(true, 1e6, 0, 9, 200000);
    gathered g = gather(s, 1 << 20);
    uint64_t channels[8] = {0}, last[8] = {0}, longer = 0, before = 0;
    for (size_t i = 0; i < 200000; i++) {
        uint64_t t = bytes_load64(g.data[1] + 8 * i);
        uint8_t c = g.data[0][i];
        assert_true(c < 8 && t >= before);
        if (channels[c])
            assert_true(t - last[c] >= 1999);
        longer += t - before > 1000000; /* a gap above the mean: 1/e of them */
        last[c] = before = t;
        channels[c]++;
    }
    assert_true(fabs((double)before / 200000 - 1e6) < 1e4);
    assert_true(fabs((double)longer / 200000 - 0.36788) < 0.005);
    assert_true(fabs((double)channels[0] / 200000 - 0.4) < 0.01 && channels[7] > 1000);
    release(&g, s);
}

static void simulated_time_can_be_followed(void **state) {
    (void)state;
    send_source *s = simulate(false, 1e6, 0.01, 1, SEND_UNKNOWN);
    send_chunk chunk;
    send_fault fault;
    uint64_t events = 0, ms = 0;
    send_want want = {UINT64_MAX, 0};
    assert_int_equal(s->next(s, &want, &chunk, &fault), 1);
    assert_int_equal(chunk.counts[0], 0);
    for (want.until_ns = 1000000; want.until_ns <= 10000000; want.until_ns += 1000000) {
        assert_int_equal(s->next(s, &want, &chunk, &fault), 1);
        assert_in_range(chunk.counts[0], 700, 1300);
        events += chunk.counts[0];
        ms += chunk.counts[1];
    }
    assert_int_equal(s->next(s, &want, &chunk, &fault), 0);
    assert_int_equal(ms, 10);
    send_source *again = simulate(false, 1e6, 0.01, 1, SEND_UNKNOWN);
    gathered g = gather(again, 100);
    assert_int_equal(g.items[0], events);
    release(&g, again);
    send_source_free(s);
}

static void logarithm_is_right(void **state) {
    (void)state;
    send_random r;
    send_random_seed(&r, 1);
    for (int i = 0; i < 100000; i++) {
        double x = send_random_part(&r) * (i % 2 ? 1 : 1e9);
        assert_true(fabs(send_log(x) - log(x)) <= 1e-13 * (1 + fabs(log(x))));
    }
    assert_true(send_log(1) == 0);
}

/* ---- ledger and options */

static void ledger_never_claims_too_much(void **state) {
    (void)state;
    for (uint64_t lag = 1; lag < 200000; lag *= 13) { /* messages sent but not durable */
        send_ledger *l = calloc(1, sizeof *l);
        assert_non_null(l);
        assert_int_equal(send_ledger_events(l, 100), 0);
        for (uint64_t i = 1; i <= 100000; i++) {
            uint64_t sent = 2 * i, durable = sent > lag ? sent - lag : 0, exact = durable / 2 * 10;
            send_ledger_note(l, sent, 10 * i, durable);
            uint64_t told = send_ledger_events(l, durable);
            assert_true(told <= exact && exact - told <= lag * 10 / 256);
            assert_int_equal(send_ledger_events(l, sent), 10 * i);
        }
        free(l);
    }
}

static int read_options(send_options *o, const char *line, capture *out) {
    static char copy[512];
    char *argv[32];
    int argc = 0;
    snprintf(copy, sizeof copy, "photon-send %s", line);
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " "))
        argv[argc++] = p;
    argv[argc] = NULL;
    optind = 0;
    capture_start(out, STDERR_FILENO);
    int status = send_options_read(argc, argv, o);
    capture_end(out);
    return status;
}

static void wrong_usage_is_named(void **state) {
    (void)state;
    static const char *const wrong[] = {"--run r d",
                                        "--to a d",
                                        "--to a --run r",
                                        "--to a --run r d e",
                                        "--to a --run r --simulate lincam d",
                                        "--to a --run r --simulate other",
                                        "--to a --run r --rate 1M d",
                                        "--to a --run r --duration 1s d",
                                        "--to a --run r --simulate lincam --rate -1",
                                        "--to a --run r --simulate lincam --duration 1x",
                                        "--to a --run r --layout x:u16 d",
                                        "--to a --run r --speed fast d",
                                        "--to a --run r --batch 0 d",
                                        "--to a --run r --batch x d",
                                        "--to a --run r --count 0 d",
                                        "--to a --run r --column x d",
                                        "--to a --run r --column x.u16=/x -",
                                        "--to a --run r --attribute =v d",
                                        "--to a --run r --create-mode new d",
                                        "--to a --run r --speed real -",
                                        "--to a --run r --seed -1 d",
                                        "--to a --run r --timeout 0 d",
                                        "--to a --run r --nothing d"};
    send_options o;
    capture out;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (read_options(&o, wrong[i], &out) != 2 || !out.text[0])
            fail_msg("'%s' was not refused", wrong[i]);
    }
}

static void options_are_read(void **state) {
    (void)state;
    send_options o;
    capture out;
    assert_int_equal(
        read_options(&o, "--to unix:a --run r --attribute k=a=b --column f.u8=/d --batch random d", &out),
        -1);
    assert_true(o.batch_random && !o.real && o.count == SEND_UNKNOWN && !o.profile);
    assert_string_equal(o.attributes[0].value, "a=b");
    assert_string_equal(o.columns[0].dataset, "/d");
    assert_int_equal(
        read_options(&o, "--to a --run r --simulate lintag --rate 2.5M --duration 500ms --seed 7", &out), -1);
    assert_true(o.simulate && o.simulation.tags && o.real);
    assert_true(o.simulation.rate_hz == 2.5e6 && fabs(o.simulation.duration_s - 0.5) < 1e-12 &&
                o.simulation.seed == 7);
    assert_int_equal(
        read_options(&o, "--to a --run r --simulate lincam --speed max --timeout 2min --create-mode counter",
                     &out),
        -1);
    assert_true(!o.real && o.timeout_ms == 120000 && o.mode == PHOTON_CLIENT_COUNTER);
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recording_has_the_sums_of_its_manifest),
        cmocka_unit_test(count_takes_the_first_photons_and_their_milliseconds),
        cmocka_unit_test(real_speed_follows_the_index_of_milliseconds),
        IN_FOLDER(folders_that_cannot_be_sent_say_why),
        IN_FOLDER(further_columns_are_groups_of_their_own),
        IN_FOLDER(tags_are_timed_by_their_stamps),
        IN_FOLDER(empty_recording_is_a_source_too),
        IN_FOLDER(photons_file_is_read_whole_and_in_any_pieces),
        IN_FOLDER(cut_photons_file_is_sent_as_far_as_all_columns_reach),
        cmocka_unit_test(damage_past_the_count_does_not_matter),
        IN_FOLDER(everything_before_damage_is_given),
        IN_FOLDER(damaged_index_of_milliseconds_is_read_as_far_as_asked),
        IN_FOLDER(files_that_are_none_say_so),
        cmocka_unit_test(records_become_columns),
        cmocka_unit_test(torn_record_and_bad_layouts_are_errors),
        cmocka_unit_test(same_seed_gives_the_same_events_however_asked_for),
        cmocka_unit_test(events_are_the_same_on_every_machine),
        cmocka_unit_test(camera_has_its_rate_image_decay_and_milliseconds),
        cmocka_unit_test(arrivals_are_poisson_with_a_dead_time),
        cmocka_unit_test(simulated_time_can_be_followed),
        cmocka_unit_test(logarithm_is_right),
        cmocka_unit_test(ledger_never_claims_too_much),
        cmocka_unit_test(wrong_usage_is_named),
        cmocka_unit_test(options_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
