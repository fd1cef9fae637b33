/* Faults injected into the system calls of the stores, by the private table daf_io: the n-th call fails, or the process is
 * killed before it (or half through it); a test raises n until nothing fires any more. */
#ifndef TEST_DAF_FAULTS_H
#define TEST_DAF_FAULTS_H

#include "io.h"
#include "support.h"

typedef enum test_fault_kind {
    TEST_FAIL_ONCE,
    TEST_FAIL_FOR_EVER, /* and each call after it */
    TEST_KILL /* SIGKILL; only calls that change files are counted, writes twice: before, and half done */
} test_fault_kind;

typedef struct test_faults {
    test_fault_kind kind;
    unsigned at;       /* the call that it happens at, from 1; 0: never */
    int os_errno;      /* of a failure */
    bool short_counts; /* reads and writes move a few bytes at a time */
    unsigned calls;    /* so far */
    bool fired;
} test_faults;

/* The system's calls with these faults, which must outlive what is opened with them. Syncs are counted, but not done. */
daf_io test_faulty_io(test_faults *f);

/* Runs act(context, io) in a child process that dies at the n-th call. act returns a DAF_ERR_ code; must not use cmocka.
 * Returns whether the child was killed; it is a failure of the test when the child ended otherwise than by 0. */
typedef int (*test_act)(void *context, const daf_io *io, daf_error *err);
bool test_killed_at(unsigned n, test_act act, void *context);

#endif
