/* Comparing a repository with a model of it (expected.json of the fixtures). */
#ifndef TEST_DAF_MODEL_H
#define TEST_DAF_MODEL_H

#include "support.h"

/* What was compared, so that a test that compares nothing fails. */
typedef struct test_counts {
    unsigned scalars, axes, dense, sparse, mapped;
    bool may_copy;          /* flat values need not be views */
    bool other_index_types; /* the model speaks of another repository */
} test_counts;

/* Fails unless the repository holds what the model says; adds up what was compared. */
void test_check_model(daf *d, const json_t *model, test_counts *n);

#endif
