#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATHS = 256 };

typedef struct test_state {
    char folder[64];
    char *paths[MAX_PATHS];
    unsigned n_paths;
} test_state;

int test_setup(void **state) {
    test_state *t = calloc(1, sizeof *t);
    assert_non_null(t);
    /* In memory where that can be: the tests make very many small files. */
    const char *base = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(t->folder, sizeof t->folder, "%s/daf-test-XXXXXX", base);
    assert_non_null(mkdtemp(t->folder));
    *state = t;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void test_remove_tree(const char *path) {
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int test_teardown(void **state) {
    test_state *t = *state;
    test_remove_tree(t->folder);
    for (unsigned i = 0; i < t->n_paths; i++)
        free(t->paths[i]);
    free(t);
    return 0;
}

const char *test_path(void **state, const char *name) {
    test_state *t = *state;
    assert_true(t->n_paths < MAX_PATHS);
    char *path;
    assert_true(asprintf(&path, "%s/%s", t->folder, name) > 0);
    t->paths[t->n_paths++] = path;
    return path;
}

char *test_read_file(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    char *data = malloc(*bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, f), *bytes);
    data[*bytes] = 0;
    fclose(f);
    return data;
}

/* Without truncating to nothing first: some file systems sync a file that is rewritten so. */
void test_write_file(const char *path, const void *data, size_t bytes) {
    int fd = open(path, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, data, bytes, 0), bytes);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    close(fd);
}

bool test_exists(const char *path) {
    return access(path, F_OK) == 0;
}

/* Calls back with the paths of each entry in two trees. */
static void for_each(const char *a, const char *b,
                     void (*visit)(const char *a, const char *b, bool folder, void *x), void *x) {
    DIR *d = opendir(a);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char inner_a[4096], inner_b[4096];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(inner_a, sizeof inner_a, "%s/%s", a, e->d_name);
        snprintf(inner_b, sizeof inner_b, "%s/%s", b, e->d_name);
        assert_int_equal(stat(inner_a, &st), 0);
        visit(inner_a, inner_b, S_ISDIR(st.st_mode), x);
        if (S_ISDIR(st.st_mode))
            for_each(inner_a, inner_b, visit, x);
    }
    closedir(d);
}

static void copy_one(const char *from, const char *to, bool folder, void *x) {
    (void)x;
    size_t bytes;
    if (folder) {
        assert_int_equal(mkdir(to, 0777), 0);
        return;
    }
    char *data = test_read_file(from, &bytes);
    test_write_file(to, data, bytes);
    free(data);
}

void test_copy_tree(const char *from, const char *to) {
    assert_int_equal(mkdir(to, 0777), 0);
    for_each(from, to, copy_one, NULL);
}

static void compare_one(const char *a, const char *b, bool folder, void *x) {
    (void)x;
    size_t bytes_a, bytes_b;
    if (folder)
        return;
    char *data_a = test_read_file(a, &bytes_a), *data_b = test_read_file(b, &bytes_b);
    if (!data_b)
        fail_msg("%s is missing", b);
    if (bytes_a != bytes_b || memcmp(data_a, data_b, bytes_a) != 0)
        fail_msg("%s differs from %s:\n%.300s\n%.300s", a, b, data_a, data_b);
    free(data_a);
    free(data_b);
}

void test_same_tree(const char *a, const char *b) {
    for_each(a, b, compare_one, NULL);
    for_each(b, a, compare_one, NULL);
}

typedef struct comparison {
    const char *spare;
    bool differs;
} comparison;

static void look_for_difference(const char *a, const char *b, bool folder, void *x) {
    comparison *c = x;
    size_t bytes_a = 0, bytes_b = 0;
    if (strstr(a, c->spare))
        return;
    if (folder) {
        c->differs |= !test_exists(b);
        return;
    }
    char *data_a = test_read_file(a, &bytes_a), *data_b = test_read_file(b, &bytes_b);
    c->differs |= !data_b || bytes_a != bytes_b || memcmp(data_a, data_b, bytes_a) != 0;
    free(data_a);
    free(data_b);
}

bool test_equal_trees(const char *a, const char *b, const char *spare) {
    comparison c = {.spare = spare};
    for_each(a, b, look_for_difference, &c);
    for_each(b, a, look_for_difference, &c);
    return !c.differs;
}

static void count_one(const char *a, const char *b, bool folder, void *x) {
    (void)a;
    (void)b;
    (void)folder;
    ++*(unsigned *)x;
}

unsigned test_count_files(const char *path) {
    unsigned n = 0;
    for_each(path, path, count_one, &n);
    return n;
}

json_t *test_load_json(const char *path) {
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json)
        fail_msg("%s: %s", path, error.text);
    return json;
}

uint64_t test_next(test_random *r) { /* splitmix64 */
    uint64_t z = r->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint64_t test_below(test_random *r, uint64_t n) {
    return test_next(r) % n;
}
