/* Values of configuration keys as text: one pair of functions for each kind. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config_keys.h"
#include "control.h"
#include "wire/address.h"

typedef struct value_unit {
    const char *name;
    double factor; /* milliseconds or bytes */
} value_unit;

static const value_unit value_time_units[] = {{"ms", 1},     {"s", 1e3},     {"min", 60e3},
                                              {"h", 3600e3}, {"d", 86400e3}, {NULL, 0}};
static const value_unit value_size_units[] = {
    {"B", 1},     {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
    {"kB", 1000}, {"KB", 1000},    {"MB", 1e6},        {"GB", 1e9},           {"TB", 1e12},
    {NULL, 0}};

static void *value_at(const pd_config_key *key, pd_config *config) {
    return (char *)config + key->offset;
}

static const void *value_in(const pd_config_key *key, const pd_config *config) {
    return (const char *)config + key->offset;
}

/* ---- numbers ---- */

/* A number from low to high, written in units of `unit`, or in one of `units` by its name. */
static int value_parse_quantity(const pd_config_key *key, const value_unit *units, const char *text,
                                double *ret, pd_error *err) {
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number))
        return pd_error_set(err, "\"%.40s\" is not a number", text);
    while (*end == ' ')
        end++;
    double factor = (double)key->unit;
    if (*end) {
        const value_unit *u = units;
        while (u->name && strcmp(u->name, end) != 0)
            u++;
        if (!u->name)
            return pd_error_set(err, "\"%.40s\" has an unknown unit (%s)", text,
                                units == value_time_units
                                    ? "ms, s, min, h, d are known"
                                    : "B, KiB, MiB, GiB, TiB, kB, MB, GB, TB are known");
        factor = u->factor;
    }
    *ret = number * factor;
    return 0;
}

static int value_out_of_range(const pd_config_key *key, const char *text, pd_error *err) {
    const char *unit = key->kind == PD_CONFIG_DURATION ? " ms" : key->kind == PD_CONFIG_SIZE ? " bytes" : "";
    if (key->kind == PD_CONFIG_MODE)
        return pd_error_set(err, "%.40s is out of range (%04o to %04o)", text, (unsigned)key->low,
                            (unsigned)key->high);
    return pd_error_set(err, "%.40s is out of range (%" PRIu64 " to %" PRIu64 "%s)", text, key->low,
                        key->high, unit);
}

static int value_set_quantity(const pd_config_key *key, pd_config *config, const value_unit *units,
                              const char *text, pd_error *err) {
    double quantity = 0;
    if (value_parse_quantity(key, units, text, &quantity, err) != 0)
        return -1;
    if (quantity < (double)key->low || quantity > (double)key->high)
        return value_out_of_range(key, text, err);
    *(uint64_t *)value_at(key, config) = (uint64_t)llround(quantity);
    return 0;
}

static int value_parse_whole(const pd_config_key *key, const char *text, int base, uint64_t *ret,
                             pd_error *err) {
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, base);
    if (text[0] < '0' || text[0] > '9' || *end)
        return pd_error_set(err,
                            base == 8 ? "\"%.40s\" is not an octal number such as 0644"
                                      : "\"%.40s\" is not a whole number",
                            text);
    if (errno || number < key->low || number > key->high)
        return value_out_of_range(key, text, err);
    *ret = number;
    return 0;
}

static int value_set_whole(const pd_config_key *key, pd_config *config, const char *text, pd_error *err) {
    uint64_t number = 0;
    if (value_parse_whole(key, text, key->kind == PD_CONFIG_MODE ? 8 : 10, &number, err) != 0)
        return -1;
    if (key->kind == PD_CONFIG_POWER && (number & (number - 1)))
        return pd_error_set(err, "%.40s is not a power of two", text);
    if (key->kind == PD_CONFIG_LEVEL)
        *(int *)value_at(key, config) = (int)number;
    else
        *(uint32_t *)value_at(key, config) = (uint32_t)number;
    return 0;
}

/* ---- words ---- */

static int value_set_bool(const pd_config_key *key, pd_config *config, const char *text, pd_error *err) {
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "yes") == 0 || strcmp(text, "on") == 0;
    bool no = strcmp(text, "false") == 0 || strcmp(text, "no") == 0 || strcmp(text, "off") == 0;
    if (!yes && !no)
        return pd_error_set(err, "\"%.40s\" is neither true nor false", text);
    *(bool *)value_at(key, config) = yes;
    return 0;
}

static const char *const value_codecs[] = {[PD_CODEC_ZSTD] = "zstd", [PD_CODEC_GZIP] = "gzip"};
enum { VALUE_N_CODECS = sizeof value_codecs / sizeof value_codecs[0] };

static const char *const value_formats[] = {
    [PD_FORMAT_DAF] = "daf", [PD_FORMAT_ZARR] = "zarr", [PD_FORMAT_BOTH] = "both"};
enum { VALUE_N_FORMATS = sizeof value_formats / sizeof value_formats[0] };

static const char *const value_overflows[] = {
    [PD_OVERFLOW_CLIENT] = "client", [PD_OVERFLOW_BLOCK] = "block", [PD_OVERFLOW_DROP] = "drop"};
enum { VALUE_N_OVERFLOWS = sizeof value_overflows / sizeof value_overflows[0] };

/* The number of the word, or n. */
static size_t value_find_word(const char *const *words, size_t n, const char *text) {
    size_t i = 0;
    while (i < n && strcmp(text, words[i]) != 0)
        i++;
    return i;
}

static int value_set_codec(const pd_config_key *key, pd_config *config, const char *text, pd_error *err) {
    size_t i = value_find_word(value_codecs, VALUE_N_CODECS, text);
    if (i == VALUE_N_CODECS)
        return pd_error_set(err, "\"%.40s\" is no codec (zstd, gzip)", text);
    *(pd_export_codec *)value_at(key, config) = (pd_export_codec)i;
    return 0;
}

static int value_set_format(const pd_config_key *key, pd_config *config, const char *text, pd_error *err) {
    size_t i = value_find_word(value_formats, VALUE_N_FORMATS, text);
    if (i == VALUE_N_FORMATS)
        return pd_error_set(err, "\"%.40s\" is no format of exports (daf, zarr, both)", text);
    *(pd_export_format *)value_at(key, config) = (pd_export_format)i;
    return 0;
}

static int value_set_overflow(const pd_config_key *key, pd_config *config, const char *text, pd_error *err) {
    size_t i = value_find_word(value_overflows, VALUE_N_OVERFLOWS, text);
    if (i == VALUE_N_OVERFLOWS)
        return pd_error_set(err, "\"%.40s\" is no policy (client, block, drop)", text);
    *(pd_overflow *)value_at(key, config) = (pd_overflow)i;
    return 0;
}

static int value_set_log_level(const pd_config_key *key, pd_config *config, const char *text, pd_error *err) {
    for (unsigned i = 0; i < PD_N_LOG_LEVELS; i++) {
        if (strcmp(text, pd_log_level_name((pd_log_level)i)) == 0) {
            *(pd_log_level *)value_at(key, config) = (pd_log_level)i;
            return 0;
        }
    }
    return pd_error_set(err, "\"%.40s\" is no level (error, warning, info, debug)", text);
}

/* ---- texts ---- */

static int value_set_text(const pd_config_key *key, pd_config *config, const char *text, pd_error *err) {
    size_t n = strlen(text);
    if (key->kind == PD_CONFIG_TEXT && n < key->low)
        return pd_error_set(err, "must not be empty");
    if (key->kind == PD_CONFIG_TEXT && n > key->high)
        return pd_error_set(err, "is longer than %" PRIu64 " bytes", key->high);
    char *copy = strdup(text);
    if (!copy)
        return pd_error_set(err, "out of memory");
    char **at = value_at(key, config);
    free(*at);
    *at = copy;
    return 0;
}

static int value_set_control(const pd_config_key *key, pd_config *config, const char *text, pd_error *err) {
    if (strcmp(text, "none") != 0 && strcmp(text, "auto") != 0) {
        char path[512];
        if (pd_control_path(text, path, sizeof path, err) != 0)
            return -1;
    }
    return value_set_text(key, config, text, err);
}

static void value_clear_list(pd_text_list *list) {
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i]);
    free(list->items);
    *list = (pd_text_list){NULL, 0};
}

static int value_add_address(const pd_config_key *key, pd_config *config, const char *text, bool first,
                             pd_error *err) {
    pd_text_list *list = value_at(key, config);
    wire_address address;
    char why[160];
    if (wire_address_parse(text, &address, why, sizeof why) != 0)
        return pd_error_set(err, "\"%.200s\": %s", text, why);
    if (!first && list->n >= key->high)
        return pd_error_set(err, "more than %" PRIu64 " addresses", key->high);
    char *copy = strdup(text);
    if (!copy)
        return pd_error_set(err, "out of memory");
    if (first)
        value_clear_list(list);
    char **items = realloc(list->items, (list->n + 1) * sizeof *items);
    if (!items) {
        free(copy);
        return pd_error_set(err, "out of memory");
    }
    list->items = items;
    list->items[list->n++] = copy;
    return 0;
}

/* ---- all kinds ---- */

int pd_config_key_set(const pd_config_key *key, pd_config *config, const char *text, bool first,
                      pd_error *err) {
    switch (key->kind) {
    case PD_CONFIG_TEXT:
        return value_set_text(key, config, text, err);
    case PD_CONFIG_ADDRESSES:
        return value_add_address(key, config, text, first, err);
    case PD_CONFIG_CONTROL:
        return value_set_control(key, config, text, err);
    case PD_CONFIG_BOOL:
        return value_set_bool(key, config, text, err);
    case PD_CONFIG_COUNT:
    case PD_CONFIG_POWER:
    case PD_CONFIG_LEVEL:
    case PD_CONFIG_MODE:
        return value_set_whole(key, config, text, err);
    case PD_CONFIG_DURATION:
        return value_set_quantity(key, config, value_time_units, text, err);
    case PD_CONFIG_SIZE:
        return value_set_quantity(key, config, value_size_units, text, err);
    case PD_CONFIG_CODEC:
        return value_set_codec(key, config, text, err);
    case PD_CONFIG_FORMAT:
        return value_set_format(key, config, text, err);
    case PD_CONFIG_OVERFLOW:
        return value_set_overflow(key, config, text, err);
    case PD_CONFIG_LOG_LEVEL:
        return value_set_log_level(key, config, text, err);
    case PD_CONFIG_PROFILES:
    case PD_CONFIG_VOLUMES:
        break;
    }
    return pd_error_set(err, "can only be given in the file");
}

static json_t *value_list_json(const pd_text_list *list) {
    json_t *array = json_array();
    for (size_t i = 0; i < list->n; i++) {
        if (json_array_append_new(array, json_string(list->items[i])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *value_quantity_json(const pd_config_key *key, uint64_t value) {
    if (value % key->unit == 0)
        return json_integer((json_int_t)(value / key->unit));
    return json_real((double)value / (double)key->unit);
}

json_t *pd_config_key_json(const pd_config_key *key, const pd_config *config) {
    const void *at = value_in(key, config);
    switch (key->kind) {
    case PD_CONFIG_TEXT:
    case PD_CONFIG_CONTROL:
        return json_string(*(char *const *)at);
    case PD_CONFIG_ADDRESSES:
        return value_list_json(at);
    case PD_CONFIG_BOOL:
        return json_boolean(*(const bool *)at);
    case PD_CONFIG_COUNT:
    case PD_CONFIG_POWER:
        return json_integer(*(const uint32_t *)at);
    case PD_CONFIG_LEVEL:
        return json_integer(*(const int *)at);
    case PD_CONFIG_MODE:
        return json_sprintf("%04o", *(const unsigned *)at);
    case PD_CONFIG_DURATION:
    case PD_CONFIG_SIZE:
        return value_quantity_json(key, *(const uint64_t *)at);
    case PD_CONFIG_CODEC:
        return json_string(value_codecs[*(const pd_export_codec *)at]);
    case PD_CONFIG_FORMAT:
        return json_string(value_formats[*(const pd_export_format *)at]);
    case PD_CONFIG_OVERFLOW:
        return json_string(value_overflows[*(const pd_overflow *)at]);
    case PD_CONFIG_LOG_LEVEL:
        return json_string(pd_log_level_name(*(const pd_log_level *)at));
    case PD_CONFIG_PROFILES:
        return pd_profiles_json(*(pd_profiles *const *)at);
    case PD_CONFIG_VOLUMES:
        return pd_volume_places_json(at);
    }
    return NULL;
}

void pd_config_key_clear(const pd_config_key *key, pd_config *config) {
    void *at = value_at(key, config);
    switch (key->kind) {
    case PD_CONFIG_TEXT:
    case PD_CONFIG_CONTROL:
        free(*(char **)at);
        break;
    case PD_CONFIG_ADDRESSES:
        value_clear_list(at);
        break;
    case PD_CONFIG_PROFILES:
        pd_profiles_free(*(pd_profiles **)at);
        break;
    case PD_CONFIG_VOLUMES:
        pd_volume_places_free(at);
        break;
    default:
        break;
    }
}

static size_t value_bytes(pd_config_kind kind) {
    switch (kind) {
    case PD_CONFIG_TEXT:
    case PD_CONFIG_CONTROL:
        return sizeof(char *);
    case PD_CONFIG_ADDRESSES:
        return sizeof(pd_text_list);
    case PD_CONFIG_BOOL:
        return sizeof(bool);
    case PD_CONFIG_COUNT:
    case PD_CONFIG_POWER:
        return sizeof(uint32_t);
    case PD_CONFIG_LEVEL:
        return sizeof(int);
    case PD_CONFIG_MODE:
        return sizeof(unsigned);
    case PD_CONFIG_DURATION:
    case PD_CONFIG_SIZE:
        return sizeof(uint64_t);
    case PD_CONFIG_CODEC:
        return sizeof(pd_export_codec);
    case PD_CONFIG_FORMAT:
        return sizeof(pd_export_format);
    case PD_CONFIG_OVERFLOW:
        return sizeof(pd_overflow);
    case PD_CONFIG_LOG_LEVEL:
        return sizeof(pd_log_level);
    case PD_CONFIG_PROFILES:
        return sizeof(pd_profiles *);
    case PD_CONFIG_VOLUMES:
        return sizeof(pd_volume_places);
    }
    return 0;
}

void pd_config_key_swap(const pd_config_key *key, pd_config *a, pd_config *b) {
    unsigned char kept[sizeof(pd_text_list)];
    size_t n = value_bytes(key->kind);
    memcpy(kept, value_at(key, a), n);
    memcpy(value_at(key, a), value_at(key, b), n);
    memcpy(value_at(key, b), kept, n);
}
