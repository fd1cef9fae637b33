/* A small pool of threads behind libd7's executor table, for tests. */
#ifndef TESTS_LIB_EXECUTOR_H
#define TESTS_LIB_EXECUTOR_H

#include "d7/d7.h"

typedef struct executor executor;

executor *executor_new(unsigned n_threads);
void executor_free(executor *e);
d7_executor executor_table(executor *e);

#endif
