/* The writer: what it takes and refuses, attributes, pages from elsewhere, close, and the same bytes whatever
 * happens in between. */
#include <sys/stat.h>
#include <unistd.h>

#include "d7_testing.h"
#include "executor.h"
#include "testing.h"

static const d7_dataset two[] = {{"/a", D7_UINT16}, {"/b", D7_UINT8}};

typedef struct fixture {
    memio file;
    d7_io io;
    memcount memory;
    d7_alloc alloc;
    d7_writer_options options;
    d7_writer *w;
    d7_error err;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    f->alloc = memcount_table(&f->memory);
    f->options = testing_writer_options(&f->io);
    f->options.alloc = &f->alloc;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_writer_free(f->w);
    bool leak = f->memory.outstanding != 0 || f->file.opened_memory;
    memio_free(&f->file);
    free(f);
    if (leak)
        print_error("memory or the file is left open\n");
    return leak;
}

static void create(fixture *f) {
    if (d7_writer_create(&f->w, "memory", two, 2, &f->options, &f->err) != 0)
        fail_msg("create: %s", f->err.text);
}

static int try_create(fixture *f, const d7_dataset *datasets, size_t n) {
    return d7_writer_create(&f->w, "memory", datasets, n, &f->options, &f->err);
}

static void bad_arguments_are_refused(void **state) {
    fixture *f = *state;
    static const d7_dataset twice[] = {{"/a", D7_UINT16}, {"/a", D7_UINT8}}, unnamed[] = {{"", D7_UINT8}},
                            typeless[] = {{"/a", (d7_type)10}}, latin1[] = {{"/\xE4", D7_UINT8}};
    assert_int_equal(try_create(f, two, 0), D7_ERR_ARG);
    assert_int_equal(try_create(f, NULL, 2), D7_ERR_ARG);
    assert_int_equal(try_create(f, twice, 2), D7_ERR_ARG);
    assert_string_equal(f->err.text, "memory: two datasets are called /a");
    assert_int_equal(try_create(f, unnamed, 1), D7_ERR_ARG);
    assert_int_equal(try_create(f, typeless, 1), D7_ERR_ARG);
    assert_int_equal(try_create(f, latin1, 1), D7_ERR_ARG);
    f->options.index_step = 0;
    assert_int_equal(try_create(f, two, 2), D7_ERR_ARG);
    f->options.index_step = D7_INDEX_STEP_MAX + 1;
    assert_int_equal(try_create(f, two, 2), D7_ERR_ARG);
    f->options.index_step = 1;
    f->options.bytes_per_page = 15;
    assert_int_equal(try_create(f, two, 2), D7_ERR_ARG);
    f->options.bytes_per_page = D7_PAGE_BYTES_MAX; /* 8 M items of up to 3 bytes */
    assert_int_equal(try_create(f, two, 2), D7_ERR_LIMIT);
    f->options.bytes_per_page = 16;
    f->options.attributes = &(d7_attribute){.key = D7_MARKER_KEY, .value = "1"};
    f->options.n_attributes = 1;
    assert_int_equal(try_create(f, two, 2), D7_ERR_ARG);
    assert_int_equal(d7_writer_create(&f->w, "", two, 2, NULL, &f->err), D7_ERR_ARG);
    assert_false(f->file.exists);
    assert_null(f->w);
}

static void existing_files_are_kept(void **state) {
    fixture *f = *state;
    memio_set(&f->file, "precious", 8);
    assert_int_equal(try_create(f, two, 2), D7_ERR_EXISTS);
    f->options.overwrite = true;
    f->file.held = true;
    assert_int_equal(try_create(f, two, 2), D7_ERR_LOCKED);
    assert_int_equal(f->file.n, 8);
    assert_memory_equal(f->file.data, "precious", 8);
    f->file.held = false;
    create(f);
    assert_true(f->file.n > 8);
}

static void missing_locks_are_told(void **state) {
    fixture *f = *state;
    f->file.lock_errno = 37; /* ENOLCK */
    f->options.locking = D7_LOCK_REQUIRE;
    assert_int_equal(try_create(f, two, 2), D7_ERR_UNSUPPORTED);
    assert_int_equal(f->err.os_errno, 37);
    assert_false(f->file.exists);
    f->options.locking = D7_LOCK_TRY;
    create(f);
    assert_int_equal(d7_writer_warnings(f->w), D7_WARN_UNGUARDED);
    d7_writer_free(f->w);
    f->file.exists = false;
    f->options.locking = D7_LOCK_NONE;
    create(f);
    assert_int_equal(d7_writer_warnings(f->w), 0);
}

static void wide_files_are_warned_of(void **state) {
    fixture *f = *state;
    static d7_dataset datasets[200];
    static char names[200][128];
    for (size_t i = 0; i < 200; i++) {
        snprintf(names[i], sizeof names[i], "/%0100zu", i);
        datasets[i] = (d7_dataset){names[i], D7_UINT8};
    }
    assert_int_equal(try_create(f, datasets, 128), 0);
    assert_int_equal(d7_writer_warnings(f->w), 0);
    d7_writer_free(f->w);
    f->file.exists = false;
    assert_int_equal(try_create(f, datasets, 200), 0);
    assert_int_equal(d7_writer_warnings(f->w), D7_WARN_MANY_DATASETS | D7_WARN_LONG_HEADER);
    d7_writer_free(f->w);
    f->file.exists = false;
    f->options.bytes_per_page = 8192;
    assert_int_equal(try_create(f, datasets, 1), 0);
    assert_int_equal(d7_writer_warnings(f->w), D7_WARN_PAGE_BYTES);
}

static void values_are_counted(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 20000);
    create(f);
    assert_int_equal(d7_writer_append(f->w, 0, v, 20000, &f->err), 0);
    assert_int_equal(d7_writer_append(f->w, 0, NULL, 0, &f->err), 0);
    assert_int_equal(d7_writer_append(f->w, 0, NULL, 1, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_append(f->w, 2, v, 1, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_items(f->w, 0), 20000);
    assert_int_equal(d7_writer_paged_items(f->w, 0), 16384);
    assert_int_equal(d7_writer_pages(f->w), 2);
    assert_int_equal(d7_writer_items(f->w, 7), 0);
    assert_true(d7_writer_framed_bytes(f->w) > d7_writer_written_bytes(f->w));
    assert_int_equal(d7_writer_flush(f->w, &f->err), 0);
    assert_int_equal(d7_writer_framed_bytes(f->w), d7_writer_written_bytes(f->w));
    assert_int_equal(d7_writer_written_bytes(f->w), f->file.n);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    assert_int_equal(d7_writer_written_bytes(f->w), f->file.n);
    assert_int_equal(d7_writer_items(f->w, 0), 20000);
    assert_int_equal(d7_writer_append(f->w, 0, v, 1, &f->err), D7_ERR_STATE);
    assert_int_equal(d7_writer_set_attribute(f->w, "k", "v", &f->err), D7_ERR_STATE);
    assert_int_equal(d7_writer_flush(f->w, &f->err), 0);
    assert_int_equal(d7_writer_sync_data(f->w, &f->err), D7_ERR_STATE);
    free(v);
}

/* Small appends reach the system in large pieces only. */
static void writes_are_large(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 1000);
    create(f);
    long before = f->file.calls[MEMIO_PWRITE];
    for (int i = 0; i < 2000; i++)
        assert_int_equal(d7_writer_append(f->w, 0, v, 1000, &f->err), 0);
    assert_in_range(f->file.calls[MEMIO_PWRITE] - before, 2, 4); /* about 3.9 MB */
    free(v);
}

static void attributes_are_checked(void **state) {
    fixture *f = *state;
    create(f);
    assert_int_equal(d7_writer_set_attribute(f->w, "", "v", &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_set_attribute(f->w, NULL, "v", &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_set_attribute(f->w, "k", NULL, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_set_attribute(f->w, D7_MARKER_KEY, "1", &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_set_attribute(f->w, "k", "\xFF", &f->err), D7_ERR_ARG);
    assert_string_equal(f->err.text, "memory: the value of attribute k is not valid UTF-8");
    assert_int_equal(d7_writer_set_attribute(f->w, "\xC3", "v", &f->err), D7_ERR_ARG);
    char *large = malloc(D7_ENTRY_BYTES_MAX);
    memset(large, 'x', D7_ENTRY_BYTES_MAX - 1);
    large[D7_ENTRY_BYTES_MAX - 1] = 0;
    assert_int_equal(d7_writer_set_attribute(f->w, "k", large, &f->err), D7_ERR_LIMIT);
    large[D7_INDEX_BODY_MAX - 13] = 0; /* tag, length, tag, length, key, tag, length: 13 bytes around it */
    assert_int_equal(d7_writer_set_attribute(f->w, "k", large, &f->err), 0);
    large[0] = 'y';
    assert_int_equal(d7_writer_set_attribute(f->w, "l", large, &f->err), 0);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    d7_reader *r = testing_open(&f->io, false, false);
    assert_string_equal(d7_reader_find_attribute(r, "l"), large);
    assert_int_equal(d7_reader_state(r), D7_STATE_CLOSED);
    d7_reader_free(r);
    free(large);
}

static void errors_name_a_renamed_file(void **state) {
    fixture *f = *state;
    create(f);
    assert_int_equal(d7_writer_renamed(f->w, "", &f->err), D7_ERR_ARG);
    assert_string_equal(f->err.text, "memory: a path is needed");
    assert_int_equal(d7_writer_renamed(f->w, "another", &f->err), 0);
    assert_int_equal(d7_writer_append(f->w, 2, "", 0, &f->err), D7_ERR_ARG);
    assert_string_equal(f->err.text, "another: there is no dataset 2");
}

static void attributes_wait_for_an_island(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 8192);
    f->options.attributes = &(d7_attribute){.key = "early", .value = "bird"};
    f->options.n_attributes = 1;
    f->options.index_step = 4;
    create(f);
    assert_int_equal(d7_writer_unlisted_attributes(f->w), 0);
    assert_int_equal(d7_writer_set_attribute(f->w, "k", "1", &f->err), 0);
    assert_int_equal(d7_writer_set_attribute(f->w, "k", "2", &f->err), 0);
    assert_int_equal(d7_writer_set_attribute(f->w, "l", "1", &f->err), 0);
    assert_int_equal(d7_writer_unlisted_attributes(f->w), 2);
    for (int i = 0; i < 8; i++)
        assert_int_equal(d7_writer_append(f->w, 0, v, 8192, &f->err), 0);
    assert_int_equal(d7_writer_unlisted_attributes(f->w), 0);
    assert_int_equal(d7_writer_set_attribute(f->w, "k", "3", &f->err), 0);
    assert_int_equal(d7_writer_unlisted_attributes(f->w), 1);
    free(v);
}

/* An entry of attributes alone: readers and verification take it for what it is, and islands stay where they
 * are. */
static void attributes_can_go_ahead(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 8192);
    f->options.index_step = 4;
    create(f);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(d7_writer_append(f->w, 0, v, 8192, &f->err), 0);
        assert_int_equal(
            d7_writer_set_attribute(f->w, i % 2 ? "odd" : "even", i < 6 ? "first" : "last", &f->err), 0);
        uint64_t before = d7_writer_framed_bytes(f->w);
        assert_int_equal(d7_writer_put_attributes(f->w, &f->err), 0);
        assert_true(d7_writer_framed_bytes(f->w) > before);
        assert_int_equal(d7_writer_put_attributes(f->w, &f->err), 0);
        assert_int_equal(d7_writer_unlisted_attributes(f->w), 0);
    }
    assert_int_equal(d7_writer_flush(f->w, &f->err), 0);
    for (int closed = 0; closed < 2; closed++) {
        d7_verify_summary s;
        d7_reader *r = testing_open(&f->io, false, false);
        assert_string_equal(d7_reader_find_attribute(r, "even"), "last");
        assert_int_equal(d7_reader_n_attributes(r), 2);
        assert_int_equal(d7_reader_pages(r), 12);
        assert_int_equal(d7_reader_verify(r, NULL, NULL, NULL, NULL, &s, &f->err), 0);
        assert_int_equal(s.damages, 0);
        assert_int_equal(s.data_notes + s.style_notes, 0);
        d7_reader_free(r);
        assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    }
    assert_int_equal(d7_writer_put_attributes(f->w, &f->err), D7_ERR_STATE);
    free(v);
}

static void index_size_is_known(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 8192);
    f->options.attributes = &(d7_attribute){.key = "early", .value = "bird"};
    f->options.n_attributes = 1;
    create(f);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(d7_writer_append(f->w, 0, v, 8192, &f->err), 0);
        assert_int_equal(d7_writer_set_attribute(f->w, "k", i % 2 ? "short" : "a longer one", &f->err), 0);
    }
    uint64_t framed = d7_writer_framed_bytes(f->w), index = d7_writer_index_bytes(f->w);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    uint64_t end =
        (framed + 2 + 3 + index + 16383) / 16384 * 16384; /* fragment header, tag and length, padding */
    assert_int_equal(f->file.n - end, 2 + 2 + 4 + 29);    /* epilogue */
    free(v);
}

static void pages_from_elsewhere(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 8192);
    uint8_t *entry = malloc(d7_page_bound(D7_UINT16, 8192));
    size_t bytes, cap = d7_page_bound(D7_UINT16, 8192);
    create(f);
    assert_int_equal(d7_page_encode(0, D7_UINT16, v, 8192, entry, cap, &bytes), 0);
    assert_int_equal(d7_writer_append_page(f->w, 1, entry, bytes, 8192, &f->err),
                     D7_ERR_ARG); /* of another dataset */
    assert_int_equal(d7_writer_append_page(f->w, 0, entry, bytes - 1, 8192, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_append_page(f->w, 0, entry, bytes, 8193, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_append_page(f->w, 0, entry, bytes, 0, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_append_page(f->w, 0, "", 0, 8192, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_append(f->w, 0, v, 1, &f->err), 0);
    assert_int_equal(d7_writer_append_page(f->w, 0, entry, bytes, 8192, &f->err),
                     D7_ERR_STATE); /* one waits */
    assert_int_equal(d7_writer_append(f->w, 0, v, 8191, &f->err), 0);
    assert_int_equal(d7_writer_append_page(f->w, 0, entry, bytes, 8192, &f->err), 0);
    assert_int_equal(d7_page_encode(0, D7_UINT16, v, 5, entry, cap, &bytes), 0);
    assert_int_equal(d7_writer_append_page(f->w, 0, entry, bytes, 5, &f->err),
                     0); /* short: ends the dataset */
    assert_int_equal(d7_writer_append(f->w, 0, v, 1, &f->err), D7_ERR_STATE);
    assert_int_equal(d7_writer_append_page(f->w, 0, entry, bytes, 5, &f->err), D7_ERR_STATE);
    assert_int_equal(d7_writer_append(f->w, 1, v, 1, &f->err), 0);
    assert_int_equal(d7_writer_items(f->w, 0), 16389);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    free(v);
    free(entry);
}

/* An ended dataset is whole in the file while others go on. */
static void datasets_can_end_early(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 20000), got[100];
    d7_verify_summary s;
    d7_dataset_info info;
    create(f);
    assert_int_equal(d7_writer_append(f->w, 0, v, 8192 + 100, &f->err), 0);
    assert_int_equal(d7_writer_end_dataset(f->w, 2, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_writer_end_dataset(f->w, 0, &f->err), 0);
    assert_int_equal(d7_writer_paged_items(f->w, 0), 8292);
    assert_int_equal(d7_writer_pages(f->w), 2);
    assert_int_equal(d7_writer_end_dataset(f->w, 0, &f->err), 0);
    assert_int_equal(d7_writer_pages(f->w), 2);
    assert_int_equal(d7_writer_append(f->w, 0, v, 1, &f->err), D7_ERR_STATE);
    assert_string_equal(f->err.text, "memory: dataset 0 was ended, by call or by a short page");
    assert_int_equal(d7_writer_append(f->w, 1, v, 40000, &f->err), 0);
    assert_int_equal(d7_writer_flush(f->w, &f->err), 0);
    for (int closed = 0; closed < 2; closed++) {
        d7_reader *r = testing_open(&f->io, false, false);
        assert_int_equal(d7_reader_dataset(r, 0, &info), 0);
        assert_int_equal(info.items, 8292);
        assert_int_equal(d7_reader_read(r, 0, 8192, 100, got, &f->err), 0);
        assert_memory_equal(got, v + 8192, sizeof got);
        assert_int_equal(d7_reader_verify(r, NULL, NULL, NULL, NULL, &s, &f->err), 0);
        assert_int_equal(s.damages + s.data_notes + s.style_notes, 0);
        d7_reader_free(r);
        assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    }
    assert_int_equal(d7_writer_end_dataset(f->w, 1, &f->err), D7_ERR_STATE);
    free(v);
}

/* Nothing waits: no page is made, and yet it takes no more. */
static void empty_and_full_datasets_can_end(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 8192);
    create(f);
    assert_int_equal(d7_writer_append(f->w, 0, v, 8192, &f->err), 0);
    assert_int_equal(d7_writer_end_dataset(f->w, 0, &f->err), 0);
    assert_int_equal(d7_writer_end_dataset(f->w, 1, &f->err), 0);
    assert_int_equal(d7_writer_pages(f->w), 1);
    assert_int_equal(d7_writer_append(f->w, 0, v, 1, &f->err), D7_ERR_STATE);
    assert_int_equal(d7_writer_append(f->w, 1, v, 1, &f->err), D7_ERR_STATE);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    d7_reader *r = testing_open(&f->io, false, false);
    assert_int_equal(d7_reader_pages(r), 1);
    d7_reader_free(r);
    free(v);
}

/* With a full disk nothing has changed: the same call ends it later. */
static void ending_survives_a_full_disk(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(1, 8292);
    f->options.buffer_bytes = 0;
    create(f);
    f->file.capacity = f->file.n;
    assert_int_equal(d7_writer_append(f->w, 0, v, 8292, &f->err), 0); /* in memory: told by the next call */
    assert_int_equal(d7_writer_end_dataset(f->w, 0, &f->err), D7_ERR_NOSPACE);
    assert_int_equal(d7_writer_paged_items(f->w, 0), 8192);
    f->file.capacity = 0;
    assert_int_equal(d7_writer_end_dataset(f->w, 0, &f->err), 0);
    assert_int_equal(d7_writer_paged_items(f->w, 0), 8292);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    free(v);
}

static uint32_t group_given;
static int group_fails;

static int giving_set_group(void *ctx, void *file, uint32_t group) {
    (void)ctx;
    (void)file;
    group_given = group;
    return -group_fails;
}

static void a_group_is_given_or_an_error(void **state) {
    fixture *f = *state;
    f->options.has_group = true;
    f->options.group = 4711;
    assert_int_equal(try_create(f, two, 2), D7_ERR_UNSUPPORTED); /* the table cannot */
    assert_false(f->file.exists);
    f->io.set_group = giving_set_group;
    group_fails = 1; /* EPERM */
    assert_int_equal(try_create(f, two, 2), D7_ERR_IO);
    assert_int_equal(f->err.os_errno, 1);
    assert_string_equal(f->err.text, "memory: cannot be given to group 4711: Operation not permitted");
    assert_false(f->file.exists);
    group_fails = 0;
    create(f);
    assert_int_equal(group_given, 4711);
}

/* A file that is replaced keeps whom it belongs to. */
static void an_existing_file_keeps_its_group(void **state) {
    fixture *f = *state;
    memio_set(&f->file, "old", 3);
    f->options.overwrite = f->options.has_group = true;
    f->options.group = 4711;
    f->io.set_group = giving_set_group;
    group_given = 0;
    create(f);
    assert_int_equal(group_given, 0);
}

static void modes_and_groups_of_real_files(void **state) {
    (void)state;
    char folder[] = "/tmp/d7_writer_XXXXXX", path[64];
    struct stat st;
    d7_writer_options o = testing_writer_options(NULL);
    d7_writer *w;
    d7_error err;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.photons", folder);
    mode_t old = umask(0022);
    o.mode = 0640;
    o.has_group = true;
    o.group = getegid();
    assert_int_equal(d7_writer_create(&w, path, two, 2, &o, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(st.st_gid, getegid());
    assert_int_equal(d7_writer_close(w, &err), 0);
    d7_writer_free(w);
    assert_int_equal(d7_writer_create(&w, path, two, 2, &o, &err), D7_ERR_EXISTS);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("elsewhere", path), 0); /* nor is a name followed to where nothing is yet */
    assert_int_equal(d7_writer_create(&w, path, two, 2, &o, &err), D7_ERR_EXISTS);
    assert_int_equal(unlink(path), 0);
    o.mode = 0666;
    assert_int_equal(d7_writer_create(&w, path, two, 2, &o, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    d7_writer_free(w);
    umask(old);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* What a file is made of depends on the appends alone. */
static void same_bytes_whatever_the_threads(void **state) {
    fixture *f = *state;
    enum { N = 8192 * 150 + 77 };
    uint16_t *v = testing_noise(1, N);
    uint8_t *first = NULL;
    size_t first_n = 0;
    for (unsigned round = 0; round < 7; round++) {
        executor *e = round ? executor_new(round < 5 ? round : 2) : NULL;
        d7_executor table = e ? executor_table(e) : (d7_executor){0};
        f->options.executor = e ? &table : NULL;
        f->options.index_step = 3;
        f->options.buffer_bytes = round == 5 ? 0 : round == 6 ? 1u << 30 : 1000000;
        f->options.overwrite = true;
        create(f);
        assert_int_equal(d7_writer_append(f->w, 0, v, 100, &f->err), 0);
        assert_int_equal(d7_writer_append(f->w, 0, v + 100, N - 100, &f->err), 0);
        assert_int_equal(d7_writer_set_attribute(f->w, "k", "v", &f->err), 0);
        assert_int_equal(d7_writer_append(f->w, 1, v, 50000, &f->err), 0);
        assert_int_equal(d7_writer_close(f->w, &f->err), 0);
        d7_writer_free(f->w);
        f->w = NULL;
        executor_free(e);
        if (round == 0) {
            first_n = f->file.n;
            first = malloc(first_n);
            memcpy(first, f->file.data, first_n);
        }
        assert_int_equal(f->file.n, first_n);
        assert_memory_equal(f->file.data, first, first_n);
    }
    free(first);
    free(v);
}

/* Closing syncs before the epilogue and after it. */
static int syncs_seen;
static size_t length_at_sync[4];

static int counting_sync(void *ctx, void *file) {
    const memio *m = ctx;
    (void)file;
    length_at_sync[syncs_seen++ % 4] = m->n;
    return 0;
}

static void epilogue_comes_after_a_sync(void **state) {
    fixture *f = *state;
    f->io.sync_data = counting_sync;
    syncs_seen = 0;
    create(f);
    assert_int_equal(d7_writer_append(f->w, 0, (uint16_t[]){1, 2}, 2, &f->err), 0);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    assert_int_equal(syncs_seen, 2);
    assert_true(length_at_sync[0] < 16384);
    assert_int_equal(length_at_sync[1], f->file.n);
    assert_true(f->file.n > 16384);
}

/* A file with no item, and one that nobody closed. */
static void empty_files_are_files(void **state) {
    fixture *f = *state;
    create(f);
    d7_reader *r = testing_open(&f->io, false, false);
    assert_int_equal(d7_reader_state(r), D7_STATE_OPEN);
    assert_int_equal(d7_reader_n_problems(r), 0);
    d7_reader_free(r);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    r = testing_open(&f->io, false, false);
    assert_int_equal(d7_reader_state(r), D7_STATE_CLOSED);
    assert_int_equal(d7_reader_n_datasets(r), 2);
    assert_int_equal(d7_reader_pages(r), 0);
    assert_int_equal(d7_reader_n_problems(r), 0);
    d7_reader_free(r);
}

static void page_size_that_can_be_written(void **state) {
    (void)state;
    static const d7_dataset datasets[] = {{.name = "/a", .type = D7_UINT8},
                                          {.name = "/b", .type = D7_UINT64}};
    for (uint32_t bytes = D7_PAGE_BYTES_MIN; bytes <= D7_PAGE_BYTES_MAX; bytes *= 2) {
        bool fits = true;
        for (size_t i = 0; i < 2; i++)
            fits &=
                d7_page_bound(datasets[i].type, bytes / d7_type_size(datasets[i].type)) <= D7_ENTRY_BYTES_MAX;
        assert_int_equal(d7_writable_page_bytes(datasets, 2, bytes), fits ? bytes : D7_PAGE_BYTES_DEFAULT);
        assert_true(fits || bytes > D7_PAGE_BYTES_MAX / 4);
    }
    assert_int_equal(d7_writable_page_bytes(datasets, 2, D7_PAGE_BYTES_MAX), D7_PAGE_BYTES_DEFAULT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bad_arguments_are_refused),
        TEST(existing_files_are_kept),
        TEST(missing_locks_are_told),
        TEST(wide_files_are_warned_of),
        TEST(values_are_counted),
        TEST(writes_are_large),
        TEST(attributes_are_checked),
        TEST(errors_name_a_renamed_file),
        TEST(attributes_wait_for_an_island),
        TEST(attributes_can_go_ahead),
        TEST(index_size_is_known),
        TEST(pages_from_elsewhere),
        TEST(datasets_can_end_early),
        TEST(empty_and_full_datasets_can_end),
        TEST(ending_survives_a_full_disk),
        TEST(a_group_is_given_or_an_error),
        TEST(an_existing_file_keeps_its_group),
        TEST(modes_and_groups_of_real_files),
        TEST(same_bytes_whatever_the_threads),
        TEST(epilogue_comes_after_a_sync),
        TEST(empty_files_are_files),
        TEST(page_size_that_can_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
