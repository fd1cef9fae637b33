/* The longer answers, built from a run. */
#ifndef PD_REPLY_H
#define PD_REPLY_H

#include "ingest.pb-c.h"
#include "run.h"

/* Opened, packed as a ServerMessage. NULL when out of memory; free() it. */
uint8_t *pd_reply_opened(const pd_run *run, uint32_t handle, size_t *ret_bytes);

/* Closed, likewise. */
uint8_t *pd_reply_closed(const pd_run *run, uint32_t handle, size_t *ret_bytes);

#endif
