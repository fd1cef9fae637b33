/* What the tests of libdaf share. */
#ifndef TEST_DAF_SUPPORT_H
#define TEST_DAF_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <daf/daf.h>
#include <jansson.h>

/* Calls that must succeed: the library's own sentence is the failure's message. */
#define OK(call)                                                                                             \
    do {                                                                                                     \
        daf_error ok_error = {0};                                                                            \
        daf_error *e = &ok_error;                                                                            \
        if ((call) != 0)                                                                                     \
            fail_msg("%s: %d %s", #call, ok_error.code, ok_error.text);                                      \
    } while (0)

/* Calls that must fail with this code; `part` must be part of the sentence. */
#define FAILS(expected, part, call)                                                                          \
    do {                                                                                                     \
        daf_error ok_error = {.code = 1};                                                                    \
        daf_error *e = &ok_error;                                                                            \
        int got = (call);                                                                                    \
        if (got != (expected) || ok_error.code != got || !strstr(ok_error.text, part))                       \
            fail_msg("%s: %d (%d) \"%s\", not %d \"%s\"", #call, got, ok_error.code, ok_error.text,          \
                     (expected), part);                                                                      \
    } while (0)

/* A fresh folder for each test, removed by test_teardown; path "/tmp/.../NAME". */
int test_setup(void **state);
int test_teardown(void **state);
const char *test_path(void **state, const char *name);

void test_copy_tree(const char *from, const char *to);
void test_remove_tree(const char *path);               /* none there: nothing */
char *test_read_file(const char *path, size_t *bytes); /* NULL when there is none; free it */
void test_write_file(const char *path, const void *data, size_t bytes);
bool test_exists(const char *path);
unsigned test_count_files(const char *path); /* and folders, at any depth */

/* Whether both trees hold the same files with the same bytes, and the same folders; paths that hold `spare` do not
 * count. */
bool test_equal_trees(const char *a, const char *b, const char *spare);

/* Fails unless both trees hold the same files with the same bytes (folders do not count). */
void test_same_tree(const char *a, const char *b);

json_t *test_load_json(const char *path);

/* Numbers that are the same in every run. */
typedef struct test_random {
    uint64_t state;
} test_random;
uint64_t test_next(test_random *r);
uint64_t test_below(test_random *r, uint64_t n);

#endif
