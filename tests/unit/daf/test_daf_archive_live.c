/* Readers beside a writer that appends: in other processes and in other threads, they see whole committed states, each with
 * all that came before it. */
#include "archive_support.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>

#include "zip.h"

enum { N_APPENDS = 400, N_VALUES = 700, N_READERS = 3 };

/* Returns 0, or says on the standard error what was wrong. */
static int wrong(const char *what, int i, const daf_error *err) {
    fprintf(stderr, "reader: %s %d: %s\n", what, i, err->text);
    return 1;
}

/* Vector i is there whole: all its values are i. *there: whether it is there at all. */
static int look_at(daf *d, int i, bool *there) {
    char name[16];
    daf_array *a;
    daf_error err = {0};
    snprintf(name, sizeof name, "v%d", i);
    if (daf_has_vector(d, there, "x", name, &err) != 0)
        return wrong("has", i, &err);
    if (!*there)
        return 0;
    if (daf_get_vector(d, &a, "x", name, &err) != 0)
        return wrong("get", i, &err);
    const int32_t *v = daf_array_values(a);
    int bad = 0;
    for (int k = 0; k < N_VALUES; k++)
        bad |= v[k] != i;
    daf_array_free(a);
    return bad ? wrong("values of", i, &err) : 0;
}

/* Follows the writer to its last append. reopen: with a new handle for each look. */
static int follow(const char *path, bool reopen) {
    daf *d = NULL;
    daf_error err = {0};
    for (int i = 0; i < N_APPENDS;) {
        bool there = false, before = true;
        if (!d && daf_open(&d, path, "r", NULL, &err) != 0)
            return wrong("open", i, &err);
        if (look_at(d, i, &there) || (i > 0 && look_at(d, i / 2, &before)))
            return 1;
        if (!before)
            return wrong("an earlier one is gone", i / 2, &err);
        i += there;
        if (reopen) {
            daf_free(d);
            d = NULL;
        }
    }
    daf_free(d);
    return 0;
}

static void append(daf *d, int i) {
    static int32_t values[N_VALUES];
    char name[16];
    for (int k = 0; k < N_VALUES; k++)
        values[k] = i;
    snprintf(name, sizeof name, "v%d", i);
    OK(daf_set_vector(d, "x", name, DAF_INT32, values, N_VALUES, NULL, e));
}

static void processes_follow(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    pid_t readers[N_READERS];
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "x", 0, 1, N_VALUES, e));
    OK(daf_close(d, e));
    fflush(NULL);
    for (unsigned i = 0; i < N_READERS; i++) {
        readers[i] = fork();
        assert_true(readers[i] >= 0);
        if (readers[i] == 0)
            _exit(follow(path, i % 2));
    }
    OK(daf_open(&d, path, "r+", NULL, e));
    for (int i = 0; i < N_APPENDS; i++)
        append(d, i);
    OK(daf_close(d, e));
    for (unsigned i = 0; i < N_READERS; i++) {
        int status;
        assert_int_equal(waitpid(readers[i], &status, 0), readers[i]);
        assert_int_equal(status, 0);
    }
}

static void *follow_in_thread(void *path) {
    return (void *)(intptr_t)follow(path, true);
}

static void threads_follow(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    pthread_t readers[N_READERS];
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "x", 0, 1, N_VALUES, e));
    for (unsigned i = 0; i < N_READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, follow_in_thread, (void *)(uintptr_t)path), 0);
    for (int i = 0; i < N_APPENDS; i++)
        append(d, i);
    for (unsigned i = 0; i < N_READERS; i++) {
        void *result;
        assert_int_equal(pthread_join(readers[i], &result), 0);
        assert_null(result);
    }
    OK(daf_close(d, e));
}

/* ---- beside a writer that appends by the bare protocol, in the midst of which the file is no archive, or lists what is not
 * there yet */

typedef struct bare_writer {
    int fd;
    uint64_t directory; /* its offset */
    daf__buf central;
    unsigned n;
} bare_writer;

static void put(const bare_writer *w, const void *data, size_t bytes, uint64_t offset) {
    if (pwrite(w->fd, data, bytes, (off_t)offset) != (ssize_t)bytes)
        _exit(1);
    sched_yield();
}

static void bare_append(bare_writer *w, int i) {
    char name[32], text[64];
    uint8_t local[256], end[DAF__ZIP_END_BYTES];
    snprintf(name, sizeof name, "scalars/n%d.json", i);
    int bytes = snprintf(text, sizeof text, "{\"type\":\"Int64\",\"value\":%d}\n", i);
    daf__zip_entry e = {.name = (const uint8_t *)name,
                        .name_bytes = (uint16_t)strlen(name),
                        .flags = DAF__ZIP_UTF8_FLAG,
                        .crc = (uint32_t)crc32(0, (const Bytef *)text, (uInt)bytes),
                        .packed_bytes = (uint64_t)bytes,
                        .raw_bytes = (uint64_t)bytes,
                        .offset = w->directory};
    size_t local_bytes = daf__zip_put_aligned_local(local, &e);
    w->central.size += daf__zip_put_central(daf__buf_reserve(&w->central, 256), &e);
    w->directory += local_bytes + (size_t)bytes;
    daf__zip_put_end(end, ++w->n, w->central.size, w->directory);
    if (ftruncate(w->fd, (off_t)(w->directory + w->central.size + sizeof end)) != 0)
        _exit(1);
    sched_yield();
    put(w, w->central.data, w->central.size / 2, w->directory);
    put(w, w->central.data + w->central.size / 2, w->central.size - w->central.size / 2,
        w->directory + w->central.size / 2);
    put(w, end, sizeof end, w->directory + w->central.size);
    put(w, local, local_bytes, e.offset);
    put(w, text, (size_t)bytes / 2, e.offset + local_bytes);
    put(w, text + bytes / 2, (size_t)(bytes - bytes / 2), e.offset + local_bytes + (size_t)bytes / 2);
}

static void write_barely(const char *path) {
    bare_writer w = {.fd = open(path, O_RDWR), .directory = 82, .n = 1};
    daf__buf_reserve(&w.central, 82);
    if (w.fd < 0 || pread(w.fd, w.central.data, 82, 82) != 82)
        _exit(1);
    w.central.size = 82;
    for (int i = 0; i < N_APPENDS; i++)
        bare_append(&w, i);
    _exit(0);
}

static void a_bare_writer_is_followed(void **state) {
    for (unsigned reopen = 0; reopen < 2; reopen++) {
        const char *path = test_path(state, reopen ? "b.daf.zip" : "a.daf.zip");
        daf *d;
        OK(daf_open(&d, path, "w", NULL, e));
        OK(daf_close(d, e));
        OK(daf_open(&d, path, "r", NULL, e));
        fflush(NULL);
        pid_t writer = fork();
        assert_true(writer >= 0);
        if (writer == 0)
            write_barely(path);
        for (int i = 0; i < N_APPENDS;) {
            char name[16];
            bool there;
            snprintf(name, sizeof name, "n%d", i);
            OK(daf_has_scalar(d, &there, name, e));
            if (there)
                has_integer(d, name, i);
            if (i > 0) {
                snprintf(name, sizeof name, "n%d", i / 2);
                has_integer(d, name, i / 2);
            }
            i += there;
            if (reopen) {
                OK(daf_close(d, e));
                OK(daf_open(&d, path, "r", NULL, e));
            }
        }
        OK(daf_close(d, e));
        int status;
        assert_int_equal(waitpid(writer, &status, 0), writer);
        assert_int_equal(status, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(processes_follow), TEST(threads_follow),
                                       TEST(a_bare_writer_is_followed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
