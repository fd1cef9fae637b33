/* What copies of a file keep: headers like another's, pages as they are. */
#include "base/bytes.h"
#include "d7_testing.h"
#include "framing.h"
#include "messages.h"
#include "testing.h"
#include "wire.h"

typedef struct fixture {
    memio from, to;
    d7_io from_io, to_io;
    d7_error err;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->from_io = memio_table(&f->from);
    f->to_io = memio_table(&f->to);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    memio_free(&f->from);
    memio_free(&f->to);
    free(f);
    return 0;
}

/* ---- messages by hand ---- */

typedef struct text {
    uint8_t bytes[512];
    size_t n;
} text;

static void put(text *t, const void *bytes, size_t n) {
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
}

static void put_number(text *t, unsigned field, uint64_t value) {
    t->bytes[t->n++] = (uint8_t)(field << 3);
    t->n += (size_t)(d7__put_varint(t->bytes + t->n, value) - (t->bytes + t->n));
}

static void put_block(text *t, unsigned field, const void *bytes, size_t n) {
    t->bytes[t->n++] = (uint8_t)(field << 3 | 2);
    t->n += (size_t)(d7__put_varint(t->bytes + t->n, n) - (t->bytes + t->n));
    put(t, bytes, n);
}

static void put_dataset(text *t, const char *name, uint64_t type, uint64_t shape, const char *extra) {
    text d = {.n = 0};
    put_block(&d, 1, name, strlen(name));
    put_number(&d, 2, type);
    put_number(&d, 3, shape);
    put_number(&d, 3, 7);
    put_block(&d, 9, extra, strlen(extra));
    put_block(t, 7, d.bytes, d.n);
}

/* A header of version 1.2.3 with fields nobody knows, datasets /a uint16 and /b uint64. */
static text foreign_header(void) {
    text h = {.n = 0};
    put_block(&h, 1, "D7 Photons Data", 15);
    put_number(&h, 2, 1);
    put_number(&h, 3, 2);
    put_number(&h, 4, 3);
    put_block(&h, 5, "free", 4);
    put_number(&h, 6, 16);
    put_dataset(&h, "/a", D7_UINT16, 0, "of a");
    put_dataset(&h, "/b", D7_UINT64, 5, "of b");
    put_number(&h, 8, 64);
    put_block(&h, 12, "unknown", 7);
    return h;
}

static void put_entry(text *file, unsigned kind, const text *body) {
    text entry = {.n = 0};
    uint8_t framed[600];
    put_block(&entry, kind, body->bytes, body->n);
    put(file, framed, d7__frame(file->n, entry.bytes, entry.n, framed));
}

/* A page of /a as another writer might put it: number last, left-out seed, one delta unpacked, unknown fields. */
static text foreign_page(void) {
    text p = {.n = 0};
    put_block(&p, 11, "mine", 4);
    put_number(&p, 4, 2);
    put_block(&p, 4, "\x02\x02", 2);
    put_number(&p, 1, 0);
    return p;
}

static d7_reader *open_foreign(fixture *f) {
    text file = {.n = 0}, header = foreign_header(), page = foreign_page();
    put_entry(&file, 1, &header);
    put_entry(&file, 2, &page);
    memio_set(&f->from, file.bytes, file.n);
    return testing_open(&f->from_io, false, false);
}

static d7_writer *create_like(fixture *f, const d7_reader *like, const d7_dataset *datasets, size_t n) {
    d7_writer_options o = testing_writer_options(&f->to_io);
    d7_writer *w = NULL;
    o.like = like;
    o.index_step = d7_reader_index_step(like);
    o.bytes_per_page = d7_reader_bytes_per_page(like);
    if (d7_writer_create(&w, "memory", datasets, n, &o, &f->err) != 0)
        fail_msg("create: %s", f->err.text);
    return w;
}

/* ---- headers ---- */

static void the_same_datasets_make_the_same_header(void **state) {
    fixture *f = *state;
    const d7_dataset both[] = {{"/a", D7_UINT16}, {"/b", D7_UINT64}};
    d7_reader *r = open_foreign(f);
    d7_writer *w = create_like(f, r, both, 2);
    text header = foreign_header(), file = {.n = 0};
    put_entry(&file, 1, &header);
    assert_int_equal(f->to.n, file.n);
    assert_memory_equal(f->to.data, file.bytes, file.n);
    d7_writer_free(w);
    d7_reader_free(r);
}

static bool holds(const memio *m, const char *what) {
    return memmem(m->data, m->n, what, strlen(what)) != NULL;
}

static void other_datasets_are_chosen_by_name_and_type(void **state) {
    fixture *f = *state;
    const d7_dataset chosen[] = {{"/new", D7_INT8}, {"/b", D7_UINT64}, {"/a", D7_UINT32}};
    d7_dataset_info info;
    uint32_t version[3];
    d7_reader *r = open_foreign(f);
    d7_writer_free(create_like(f, r, chosen, 3));
    d7_reader_free(r);
    assert_true(holds(&f->to, "free") && holds(&f->to, "unknown") && holds(&f->to, "of b"));
    assert_false(holds(&f->to, "of a"));
    r = testing_open(&f->to_io, false, false);
    d7_reader_version(r, version);
    assert_memory_equal(version, ((uint32_t[]){1, 2, 3}), sizeof version);
    assert_int_equal(d7_reader_n_datasets(r), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(d7_reader_dataset(r, i, &info), 0);
        assert_string_equal(info.name, chosen[i].name);
        assert_int_equal(info.type, chosen[i].type);
        assert_int_equal(info.rank, i == 1 ? 2 : 1);
        assert_int_equal(info.shape[0], i == 1 ? 5 : 0);
    }
    d7_reader_free(r);
}

static void sizes_are_those_asked_for_and_left_out_fields_are_written(void **state) {
    fixture *f = *state;
    text file = {.n = 0}, header = {.n = 0};
    put_block(&header, 1, "D7 Photons Data", 15);
    put_block(&header, 7, "\x0A\x02/a", 4);
    put_entry(&file, 1, &header);
    memio_set(&f->from, file.bytes, file.n);
    d7_reader *r = testing_open(&f->from_io, false, false);
    const d7_dataset same = {"/a", D7_INT8};
    d7_writer_options o = testing_writer_options(&f->to_io);
    d7_writer *w = NULL;
    o.like = r;
    o.index_step = 3;
    o.bytes_per_page = 128;
    assert_int_equal(d7_writer_create(&w, "memory", &same, 1, &o, &f->err), 0);
    d7_writer_free(w);
    d7_reader_free(r);
    r = testing_open(&f->to_io, false, false);
    assert_int_equal(d7_reader_index_step(r), 3);
    assert_int_equal(d7_reader_bytes_per_page(r), 128);
    d7_reader_free(r);
    /* signature, dataset with its type, three parts of the version, both sizes */
    assert_int_equal(f->to.n, 2 + 2 + 17 + (2 + 4 + 2) + 3 * 2 + 2 + 3);
}

static void memory_that_runs_out_makes_no_file(void **state) {
    fixture *f = *state;
    const d7_dataset both[] = {{"/a", D7_UINT16}, {"/b", D7_UINT64}};
    d7_reader *r = open_foreign(f);
    bool made = false;
    for (long at = 1; !made; at++) {
        memcount heap = {.fail_at = at};
        d7_alloc alloc = memcount_table(&heap);
        d7_writer_options o = testing_writer_options(&f->to_io);
        d7_writer *w = NULL;
        o.alloc = &alloc;
        o.like = r;
        int rc = d7_writer_create(&w, "memory", both, 2, &o, &f->err);
        assert_true(rc == 0 || rc == D7_ERR_NOMEM);
        made = rc == 0;
        assert_int_equal(f->to.exists, made);
        d7_writer_free(w);
        assert_int_equal(heap.outstanding, 0);
    }
    d7_reader_free(r);
}

/* ---- pages ---- */

static void page_is_given_as_it_is(void **state) {
    fixture *f = *state;
    const uint8_t *entry;
    size_t bytes;
    text page = foreign_page();
    d7_reader *r = open_foreign(f);
    assert_int_equal(d7_reader_page_entry(r, 0, 0, &entry, &bytes, &f->err), 0);
    assert_int_equal(bytes, page.n + 2);
    assert_memory_equal(entry + 2, page.bytes, page.n);
    assert_int_equal(d7_reader_page_entry(r, 0, 1, &entry, &bytes, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_reader_page_entry(r, 7, 0, &entry, &bytes, &f->err), D7_ERR_ARG);
    d7_reader_free(r);
}

static void damaged_page_is_not_given(void **state) {
    fixture *f = *state;
    const uint8_t *entry = NULL;
    size_t bytes;
    testing_write(&f->from_io, 20000, 1000, 4, 4096, true);
    d7_reader *r = testing_open(&f->from_io, false, false);
    d7_page_info page;
    assert_int_equal(d7_reader_page(r, 1, 2, &page), 0);
    f->from.data[page.offset + 2] ^= 0x08;
    d7_reader_free(r);
    r = testing_open(&f->from_io, false, false);
    assert_int_equal(d7_reader_page_entry(r, 1, 2, &entry, &bytes, &f->err), D7_ERR_CORRUPT);
    assert_int_equal(f->err.offset, page.offset);
    assert_null(entry);
    d7_reader_free(r);
}

/* Another writer's page in our file: under a number of its own, its unknown field kept. */
static void relabelled_page_is_taken(void **state) {
    fixture *f = *state;
    const d7_dataset chosen[] = {{"/b", D7_UINT64}, {"/a", D7_UINT16}};
    const uint8_t *entry;
    uint8_t out[64];
    uint16_t values[4];
    size_t bytes, n;
    d7_reader *r = open_foreign(f);
    d7_writer *w = create_like(f, r, chosen, 2);
    assert_int_equal(d7_reader_page_entry(r, 0, 0, &entry, &bytes, &f->err), 0);
    assert_int_equal(d7_writer_append_page(w, 1, entry, bytes, 4, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_page_relabel(entry, bytes, 1, out, 3, &n), D7_ERR_LIMIT);
    assert_int_equal(d7_page_relabel(entry, bytes, 1, out, bytes + 16, &n), 0);
    assert_int_equal(n, bytes); /* the old number took as many bytes */
    assert_int_equal(d7_writer_append_page(w, 1, out, n, 4, &f->err), 0);
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    d7_writer_free(w);
    d7_reader_free(r);
    assert_true(holds(&f->to, "mine"));
    r = testing_open(&f->to_io, false, false);
    assert_int_equal(d7_reader_read(r, 1, 0, 4, values, &f->err), 0);
    assert_memory_equal(values, ((uint16_t[]){0, 1, 2, 3}), sizeof values);
    d7_reader_free(r);
}

static void what_is_no_page_is_not_relabelled(void **state) {
    (void)state;
    uint8_t out[64];
    size_t n;
    assert_int_equal(d7_page_relabel("\x0A\x00", 2, 1, out, sizeof out, &n), D7_ERR_CORRUPT);
    assert_int_equal(d7_page_relabel("\x12\x02\x08", 3, 1, out, sizeof out, &n), D7_ERR_CORRUPT);
    assert_int_equal(d7_page_relabel("\x12\x01\x08", 3, 1, out, sizeof out, &n), D7_ERR_CORRUPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_datasets_make_the_same_header, setup, teardown),
        cmocka_unit_test_setup_teardown(other_datasets_are_chosen_by_name_and_type, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_are_those_asked_for_and_left_out_fields_are_written, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(memory_that_runs_out_makes_no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(page_is_given_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_page_is_not_given, setup, teardown),
        cmocka_unit_test_setup_teardown(relabelled_page_is_taken, setup, teardown),
        cmocka_unit_test(what_is_no_page_is_not_relabelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
