/* Further data folders by name, as the configuration gives them. */
#ifndef PD_CONFIG_VOLUMES_H
#define PD_CONFIG_VOLUMES_H

#include <jansson.h>
#include <stddef.h>

#include "error.h"

enum { PD_VOLUMES_MAX = 15, PD_VOLUME_NAME_BYTES = 64 };

typedef struct pd_volume_place {
    char *name;
    char *data_dir;
} pd_volume_place;

/* Owned by the configuration. */
typedef struct pd_volume_places {
    pd_volume_place *items; /* [n] in the order of the file */
    size_t n;
} pd_volume_places;

/* From {"NAME": {"data_dir": "DIR"}, ...}; what was there before is freed. Returns 0; -1 with err, and `path` [cap] the place of
 * what is at fault in `value` ("NAME.data_dir"); the value is then as it was. */
PD_MUST_USE int pd_volume_places_set(pd_volume_places *places, const json_t *value, char *path, size_t cap,
                                     pd_error *err);

/* As it stands in a file; a new reference, NULL when out of memory. */
json_t *pd_volume_places_json(const pd_volume_places *places);

void pd_volume_places_free(pd_volume_places *places);

#endif
