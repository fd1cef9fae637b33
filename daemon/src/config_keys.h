/* The table of configuration keys, and values as text. */
#ifndef PD_CONFIG_KEYS_H
#define PD_CONFIG_KEYS_H

#include "config.h"

/* X(kind, what --help calls a value) */
#define PD_CONFIG_KIND_MAP(X)                                                                                \
    X(TEXT, "TEXT")         /* char * */                                                                     \
    X(ADDRESSES, "ADDRESS") /* pd_text_list of addresses to listen at */                                     \
    X(CONTROL, "ADDRESS")   /* char *, a control address */                                                  \
    X(BOOL, "true|false")   /* bool */                                                                       \
    X(COUNT, "NUMBER")      /* uint32_t */                                                                   \
    X(POWER, "NUMBER")      /* uint32_t, a power of two */                                                   \
    X(LEVEL, "NUMBER")      /* int */                                                                        \
    X(DURATION, "TIME")     /* uint64_t milliseconds */                                                      \
    X(SIZE, "SIZE")         /* uint64_t bytes */                                                             \
    X(MODE, "OCTAL")        /* unsigned, permission bits */                                                  \
    X(CODEC, "CODEC")       /* pd_export_codec */                                                            \
    X(FORMAT, "FORMAT")     /* pd_export_format */                                                           \
    X(OVERFLOW, "POLICY")   /* pd_overflow */                                                                \
    X(LOG_LEVEL, "LEVEL")   /* pd_log_level */                                                               \
    X(PROFILES, "")         /* pd_profiles *; only in the file */                                            \
    X(VOLUMES, "")          /* pd_volume_places; only in the file */

typedef enum pd_config_kind {
#define CONFIG_KIND_ENUM(kind, argument) PD_CONFIG_##kind,
    PD_CONFIG_KIND_MAP(CONFIG_KIND_ENUM)
#undef CONFIG_KIND_ENUM
} pd_config_kind;

typedef struct pd_config_key {
    const char *path; /* "summaries.image.pixels" */
    pd_config_kind kind;
    size_t offset;      /* in pd_config */
    uint64_t unit;      /* DURATION, SIZE: milliseconds or bytes in one of the key's unit; else 1 */
    uint64_t low, high; /* of numbers, in the unit that pd_config has */
    const char *value;  /* the default, as text */
    const char *help;   /* what it is, for --help */
} pd_config_key;

/* Whether it can only be given in the file. */
bool pd_config_key_is_file_only(const pd_config_key *key);

extern const pd_config_key pd_config_keys[];
extern const size_t pd_config_n_keys;

/* The key of that path, or of that option (the path with "-" for "." and "_"); NULL when there is none. */
const pd_config_key *pd_config_key_by_path(const char *path);
const pd_config_key *pd_config_key_by_option(const char *option);

/* Writes the option of a key, without the dashes. Returns `option`. */
#define PD_CONFIG_OPTION_BYTES 64
const char *pd_config_option(const pd_config_key *key, char option[PD_CONFIG_OPTION_BYTES]);

/* Sets a key from text, as an option gives it. A list is added to, after being emptied when `first`.
 * Returns 0, or -1 with err (what is wrong, without saying of which key); the value is then as it was. */
PD_MUST_USE int pd_config_key_set(const pd_config_key *key, pd_config *config, const char *text, bool first,
                                  pd_error *err);

/* The value of a key, as it stands in a file; a new reference, NULL when out of memory. */
json_t *pd_config_key_json(const pd_config_key *key, const pd_config *config);

/* Exchanges the values of a key. */
void pd_config_key_swap(const pd_config_key *key, pd_config *a, pd_config *b);

/* Frees what the value of a key owns. */
void pd_config_key_clear(const pd_config_key *key, pd_config *config);

#endif
