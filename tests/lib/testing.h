/* cmocka, with the headers that it wants before it, and random numbers. */
#ifndef TESTS_LIB_TESTING_H
#define TESTS_LIB_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"

#endif
