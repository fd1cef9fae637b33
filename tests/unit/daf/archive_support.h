/* What the tests of archives share. */
#ifndef TEST_DAF_ARCHIVE_SUPPORT_H
#define TEST_DAF_ARCHIVE_SUPPORT_H

#include "support.h"

#include <string.h>

#define FIXTURE(name) TEST_FIXTURES "/daf/" name
#define TEST(f) cmocka_unit_test_setup_teardown(f, test_setup, test_teardown)

void copy_file(const char *from, const char *to);

/* Both hold the same bytes. */
void same_file(const char *a, const char *b);

/* Makes an archive of all files of a tree, as the append protocol would. */
void pack_tree(const char *tree, const char *archive);

/* A scalar of type Int64. */
void set_integer(daf *d, const char *name, int64_t v);
void has_integer(daf *d, const char *name, int64_t v);

#endif
