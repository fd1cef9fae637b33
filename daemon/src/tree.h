/* Whole directory trees, as the exporter makes and drops them. Never follows a symbolic link. */
#ifndef PD_TREE_H
#define PD_TREE_H

#include <stdint.h>

#include "error.h"

/* Deeper trees are none of ours: an error. */
#define PD_TREE_DEPTH_MAX 16u

/* Removes the directory `name` in `dirfd` with all in it. Missing: fine. Returns 0, or -1 with err at
 * the first thing that cannot be removed. */
PD_MUST_USE int pd_tree_remove(int dirfd, const char *name, pd_error *err);

/* Adds up the lengths of the files in the directory `name`, and gives all of it to the group `gid` (-1:
 * left as it is). Returns 0, or -1 with err. */
PD_MUST_USE int pd_tree_measure(int dirfd, const char *name, int64_t gid, uint64_t *bytes, pd_error *err);

#endif
