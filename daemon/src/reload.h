/* The configuration read again while the daemon runs, for SIGHUP and `photonctl reload`. Thread: the loop's. It reads the
 * file there: a small one, on an administrator's word.
 */
#ifndef PD_RELOAD_H
#define PD_RELOAD_H

#include <jansson.h>

#include "config.h"

/* Reads the configuration that the command line names and takes over every key that can change while the daemon runs
 * (docs/configuration.md, "Changes while it runs"); the others stay as they are. What differs is logged, key by key.
 *  changed   paths of the keys that were taken over: a new list of strings
 *  restart   paths of those that differ and need a restart: a new list
 *  Returns   0; -1 with err: the configuration is bad, nothing was changed */
PD_MUST_USE int pd_reload(pd_config *config, int argc, char **argv, json_t **changed, json_t **restart,
                          pd_error *err);

#endif
