/* Profiles: named lists of datasets that an instrument opens its runs with. `lincam`, `lincam-dual` and
 * `lintag` are built in; the configuration's "profiles" adds others. Names and types:
 * docs/configuration.md. */
#ifndef PD_PROFILE_H
#define PD_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "dataset.h"
#include "error.h"

#define PD_PROFILES_MAX 256
#define PD_PROFILE_DATASETS_MAX 256

typedef struct pd_profile {
    const char *name;
    const pd_dataset *datasets; /* [n_datasets] */
    size_t n_datasets;
    bool lincam; /* gets the vendor's attributes and is warned about missing ones */
} pd_profile;

typedef struct pd_profiles pd_profiles;

/* The built-in profiles and those of `custom` (NULL or a JSON object NAME -> [dataset, ...]; already
 * checked JSON).
 *  path     on failure set to the path of the offending value below `custom` ("mycam[2].type"); at least
 *           256 bytes; may be NULL
 *  Returns  0; -1 with `err` saying what is wrong (unknown key, wrong type, no such element type or role, a
 *           name twice), or out of memory
 *  Free     pd_profiles_free */
PD_MUST_USE int pd_profiles_create(pd_profiles **ret, const json_t *custom, char *path, pd_error *err);
void pd_profiles_free(pd_profiles *profiles);

/* NULL when there is none of that name. Valid as long as `profiles`. Any thread. */
const pd_profile *pd_profiles_find(const pd_profiles *profiles, const char *name);

size_t pd_profiles_count(const pd_profiles *profiles);
const pd_profile *pd_profiles_at(const pd_profiles *profiles, size_t i);

/* The custom profiles as the JSON that made them, every key given; a new reference, NULL when out of
 * memory. */
json_t *pd_profiles_json(const pd_profiles *profiles);

/* The rules for the datasets of any run, from a profile or from Open: names not empty, UTF-8, unique;
 * types and roles known; every role but `none` at most once in a group; ms_index alone in its group.
 *  index    set to the dataset at fault; may be NULL
 *  field    set to the field at fault ("name", "role", ...), static; may be NULL
 *  Returns  0; -1 with err */
PD_MUST_USE int pd_datasets_check(const pd_dataset *datasets, size_t n, size_t *index, const char **field,
                                  pd_error *err);

#define PD_LINCAM_DEFAULTS_MAX 3

/* Text for an attribute that the daemon adds. */
typedef struct pd_default_attribute {
    char key[32];
    char value[96];
} pd_default_attribute;

/* The attributes that LINCam files carry and the client did not give: FileGuid (random), Created (local
 * date and time with milliseconds), FileCreator. Fills `ret` and returns their number, at most
 * PD_LINCAM_DEFAULTS_MAX. */
size_t pd_lincam_defaults(pd_default_attribute ret[PD_LINCAM_DEFAULTS_MAX], const pd_attribute *attributes,
                          size_t n);

/* Calls warn once for each attribute that analysis needs (/photons/PositionBits, /photons/TacBits,
 * /photons/TacChannel) and that is missing or no number in its range, with a sentence that says what
 * follows. For runs of the LINCam profiles; of others the warnings of the summary (summary.h) say as
 * much. */
void pd_lincam_check(const pd_attribute *attributes, size_t n, void (*warn)(void *user, const char *sentence),
                     void *user);

#endif
