/* A small repository with a property of each form, and each call that writes (and all that read) done to it once: what
 * the tests of faults and kills go through. */
#ifndef TEST_DAF_ACTIONS_H
#define TEST_DAF_ACTIONS_H

#include "support.h"

/* Makes the repository that the actions are done to. */
void test_make_base(const char *path);

typedef struct test_action {
    const char *name;
    int (*act)(daf *d, daf_error *err);
    bool reads_only;
    bool in_batch; /* its parts are in place before the index is */
} test_action;

extern const test_action test_actions[];
extern const unsigned test_n_actions;

#endif
