/* What attributes of ours in a `.photons` file tell of its datasets and its clock: photond.datasets and photond.time_base, which
 * the format has no place for. Any thread.
 */
#ifndef PD_TOLD_H
#define PD_TOLD_H

#include <d7/d7.h>
#include <jansson.h>

#include "summary.h"

/* The attribute as JSON (a new reference); NULL: there is none, or it is no JSON. `flags` as for json_loads(). */
json_t *pd_told_json(const d7_reader *r, const char *key, size_t flags);

/* A text or a number of an object; NULL, or 0, where there is none. */
const char *pd_told_text(const json_t *object, const char *key);
uint64_t pd_told_number(const json_t *object, const char *key);

/* An entry of photond.datasets, but for its role and its type; the texts are the JSON's. */
pd_dataset pd_told_dataset(const json_t *entry);

/* photond.time_base, which may be NULL: a clock that is not known. */
pd_time_base pd_told_time_base(const json_t *time_base);

#endif
