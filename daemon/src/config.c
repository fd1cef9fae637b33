#include "config.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_keys.h"
#include "config_lines.h"
#include "rights.h"
#include "text.h"
#include "wire/pattern.h"

enum { CONFIG_PATH_BYTES = 512 };

int pd_config_init(pd_config *config, pd_error *err) {
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < pd_config_n_keys; i++) {
        const pd_config_key *key = &pd_config_keys[i];
        if (key->kind == PD_CONFIG_PROFILES) {
            if (pd_profiles_create(&config->profiles, NULL, NULL, err) != 0)
                return -1;
        } else if (!pd_config_key_is_file_only(key) &&
                   pd_config_key_set(key, config, key->value, true, err) != 0) {
            return pd_error_prefix(err, "default of %s", key->path);
        }
    }
    return 0;
}

void pd_config_free(pd_config *config) {
    for (size_t i = 0; i < pd_config_n_keys; i++)
        pd_config_key_clear(&pd_config_keys[i], config);
    memset(config, 0, sizeof *config);
}

/* ---- a text ---- */

/* What is read, and where in it. `path` is that of the value at hand, and on failure of the one at
 * fault. */
typedef struct config_reader {
    pd_config *config;
    char path[CONFIG_PATH_BYTES];
    size_t path_bytes;
    pd_error *err;
} config_reader;

static void config_push(config_reader *r, const char *key) {
    size_t room = sizeof r->path - r->path_bytes;
    int n = snprintf(r->path + r->path_bytes, room, "%s%s", r->path_bytes ? "." : "", key);
    r->path_bytes += (size_t)n < room ? (size_t)n : room - 1;
}

static void config_pop(config_reader *r, size_t path_bytes) {
    r->path_bytes = path_bytes;
    r->path[path_bytes] = '\0';
}

/* The last part of a key's path. */
static const char *config_leaf(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* Whether the path is that of an object that holds keys ("summaries"). */
static bool config_is_section(const char *path) {
    size_t n = strlen(path);
    for (size_t i = 0; i < pd_config_n_keys; i++)
        if (strncmp(pd_config_keys[i].path, path, n) == 0 && pd_config_keys[i].path[n] == '.')
            return true;
    return false;
}

/* The known key that was meant: one of that very name elsewhere, else the nearest. NULL when none is
 * near. */
static const char *config_nearest(const char *path) {
    size_t limit = strlen(config_leaf(path)) / 3 + 2, best = limit;
    const char *nearest = NULL;
    for (size_t i = 0; i < pd_config_n_keys; i++) {
        const char *known = pd_config_keys[i].path;
        size_t distance = pd_text_distance(path, known, limit);
        if (strcmp(config_leaf(known), config_leaf(path)) == 0 && distance > 1)
            distance = 1;
        if (distance < best) {
            best = distance;
            nearest = known;
        }
    }
    return nearest;
}

static int config_unknown(config_reader *r) {
    const char *nearest = config_nearest(r->path);
    if (nearest)
        return pd_error_set(r->err, "unknown key; did you mean \"%s\"?", nearest);
    return pd_error_set(r->err, "unknown key");
}

static const char *config_json_kind(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "null";
    }
}

typedef struct config_types {
    const char *name; /* of what a key takes */
    bool string, integer, real, boolean;
} config_types;

static config_types config_types_of(pd_config_kind kind) {
    switch (kind) {
    case PD_CONFIG_BOOL:
        return (config_types){"true or false", .boolean = true};
    case PD_CONFIG_COUNT:
    case PD_CONFIG_POWER:
    case PD_CONFIG_LEVEL:
        return (config_types){"a whole number", .integer = true};
    case PD_CONFIG_DURATION:
        return (config_types){"a number, or a string such as \"200ms\" or \"5s\"", .string = true,
                              .integer = true, .real = true};
    case PD_CONFIG_SIZE:
        return (config_types){"a number, or a string such as \"64MiB\"", .string = true, .integer = true,
                              .real = true};
    case PD_CONFIG_MODE:
        return (config_types){"a string of octal digits such as \"0644\"", .string = true};
    default:
        return (config_types){"a string", .string = true};
    }
}

/* Sets a key from the text of a JSON value. */
static int config_set_scalar(config_reader *r, const pd_config_key *key, const json_t *value, bool first) {
    config_types types = config_types_of(key->kind);
    char number[40];
    const char *text = number;
    if (json_is_string(value) && types.string) {
        text = json_string_value(value);
    } else if (json_is_integer(value) && types.integer) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value) && types.real) {
        snprintf(number, sizeof number, "%.17g", json_real_value(value));
    } else if (json_is_boolean(value) && types.boolean) {
        text = json_is_true(value) ? "true" : "false";
    } else {
        return pd_error_set(r->err, "is %s, must be %s", config_json_kind(value), types.name);
    }
    return pd_config_key_set(key, r->config, text, first, r->err);
}

static int config_set_list(config_reader *r, const pd_config_key *key, const json_t *value) {
    if (!json_is_array(value))
        return pd_error_set(r->err, "is %s, must be a list of strings", config_json_kind(value));
    size_t i;
    const json_t *item;
    if (json_array_size(value) == 0)
        pd_config_key_clear(key, r->config);
    json_array_foreach(value, i, item) {
        char index[24];
        size_t path_bytes = r->path_bytes;
        snprintf(index, sizeof index, "[%zu]", i);
        snprintf(r->path + path_bytes, sizeof r->path - path_bytes, "%s", index);
        if (config_set_scalar(r, key, item, i == 0) != 0)
            return -1;
        config_pop(r, path_bytes);
    }
    return 0;
}

static int config_set_profiles(config_reader *r, const json_t *value) {
    pd_profiles *profiles;
    char path[256];
    if (pd_profiles_create(&profiles, value, path, r->err) != 0) {
        if (path[0])
            config_push(r, path);
        return -1;
    }
    pd_profiles_free(r->config->profiles);
    r->config->profiles = profiles;
    return 0;
}

static int config_set_volumes(config_reader *r, const json_t *value) {
    char path[CONFIG_PATH_BYTES];
    if (pd_volume_places_set(&r->config->volumes, value, path, sizeof path, r->err) == 0)
        return 0;
    if (path[0])
        config_push(r, path);
    return -1;
}

static int config_read_object(config_reader *r, json_t *object);

static int config_read_member(config_reader *r, json_t *value) {
    const pd_config_key *key = pd_config_key_by_path(r->path);
    if (!key && config_is_section(r->path)) {
        if (!json_is_object(value))
            return pd_error_set(r->err, "is %s, must be an object", config_json_kind(value));
        return config_read_object(r, value);
    }
    if (!key)
        return config_unknown(r);
    if (key->kind == PD_CONFIG_PROFILES)
        return config_set_profiles(r, value);
    if (key->kind == PD_CONFIG_VOLUMES)
        return config_set_volumes(r, value);
    if (key->kind == PD_CONFIG_ADDRESSES)
        return config_set_list(r, key, value);
    return config_set_scalar(r, key, value, true);
}

static int config_read_object(config_reader *r, json_t *object) {
    const char *name;
    json_t *value;
    size_t path_bytes = r->path_bytes;
    json_object_foreach(object, name, value) {
        config_push(r, name);
        if (config_read_member(r, value) != 0)
            return -1;
        config_pop(r, path_bytes);
    }
    return 0;
}

int pd_config_parse(pd_config *config, const char *name, const char *text, size_t bytes, pd_error *err) {
    if (bytes > PD_CONFIG_MAX_BYTES)
        return pd_error_set(err, "%s: longer than %u bytes", name, PD_CONFIG_MAX_BYTES);
    json_error_t where;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    if (!root) {
        char safe[sizeof where.text];
        pd_text_escape(safe, sizeof safe, where.text);
        return pd_error_set(err, "%s:%d: column %d: %s", name, where.line, where.column, safe);
    }
    config_reader r = {.config = config, .err = err};
    int result = json_is_object(root) ? config_read_object(&r, root)
                                      : pd_error_set(err, "is %s, must be an object", config_json_kind(root));
    json_decref(root);
    if (result == 0)
        return 0;
    char safe[CONFIG_PATH_BYTES];
    pd_text_escape(safe, sizeof safe, r.path);
    size_t line = pd_json_line(text, bytes, r.path);
    return pd_error_prefix(err, "%s:%zu%s%s", name, line ? line : 1, safe[0] ? ": " : "", safe);
}

/* ---- a file ---- */

static int config_read_whole(FILE *f, char **ret, size_t *bytes, const char *path, pd_error *err) {
    char *text = malloc(PD_CONFIG_MAX_BYTES + 1);
    if (!text)
        return pd_error_set(err, "%s: out of memory", path);
    errno = 0;
    size_t n = fread(text, 1, PD_CONFIG_MAX_BYTES + 1, f);
    if (ferror(f)) {
        free(text);
        return pd_error_set(err, "%s: cannot be read: %s", path, strerror(errno));
    }
    *ret = text;
    *bytes = n;
    return 0;
}

int pd_config_read(pd_config *config, const char *path, pd_error *err) {
    FILE *f = fopen(path, "re");
    if (!f)
        return pd_error_set(err, "%s: cannot be opened: %s", path, strerror(errno));
    char *text = NULL;
    size_t bytes = 0;
    int result = config_read_whole(f, &text, &bytes, path, err);
    fclose(f);
    if (result != 0)
        return -1;
    result = pd_config_parse(config, path, text, bytes, err);
    free(text);
    return result;
}

int pd_config_set(pd_config *config, const char *option, const char *text, bool first, pd_error *err) {
    const pd_config_key *key = pd_config_key_by_option(option);
    if (!key)
        return pd_error_set(err, "--%s: unknown option", option);
    if (pd_config_key_set(key, config, text, first, err) != 0)
        return pd_error_prefix(err, "--%s", option);
    return 0;
}

/* ---- all together ---- */

static bool config_has_tls_address(const pd_config *c) {
    for (size_t i = 0; i < c->listen.n; i++)
        if (strncmp(c->listen.items[i], "tls:", 4) == 0)
            return true;
    return false;
}

/* What can be said without looking at the files that are named. */
static int config_check_access(const pd_config *c, pd_error *err) {
    unsigned rights = 0;
    if (pd_rights_parse(c->plain_rights, &rights, err) != 0)
        return pd_error_prefix(err, "plain_rights");
    if (pd_rights_parse(c->certificate_rights, &rights, err) != 0)
        return pd_error_prefix(err, "certificate_rights");
    if (!*c->tls_certificate != !*c->tls_key)
        return pd_error_set(err, "tls_certificate and tls_key need each other");
    if (*c->tls_client_crl && !*c->tls_client_ca)
        return pd_error_set(err, "tls_client_crl needs tls_client_ca");
    if (!config_has_tls_address(c))
        return 0;
    if (!*c->tls_certificate)
        return pd_error_set(err, "a tls:// address needs tls_certificate and tls_key");
    if (!*c->tls_client_ca && !*c->tokens_file)
        return pd_error_set(err, "a tls:// address needs tls_client_ca or tokens_file: nobody could send");
    return 0;
}

static int config_check_volumes(const pd_config *c, pd_error *err) {
    for (size_t i = 0; i < c->volumes.n; i++) {
        const pd_volume_place *volume = &c->volumes.items[i];
        if (strcmp(volume->data_dir, c->data_dir) == 0)
            return pd_error_set(err, "volumes.%s has the data_dir of the first", volume->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(volume->data_dir, c->volumes.items[k].data_dir) == 0)
                return pd_error_set(err, "volumes.%s and volumes.%s have one data_dir",
                                    c->volumes.items[k].name, volume->name);
    }
    return 0;
}

int pd_config_check(const pd_config *c, pd_error *err) {
    if (c->batch_bytes > c->message_bytes)
        return pd_error_set(err, "batch_bytes (%" PRIu64 ") is more than message_bytes (%" PRIu64 ")",
                            c->batch_bytes, c->message_bytes);
    if (c->message_bytes > c->receive_bytes)
        return pd_error_set(err,
                            "message_bytes (%" PRIu64 ") is more than receive_mb holds (%" PRIu64 " bytes)",
                            c->message_bytes, c->receive_bytes);
    if (c->max_attribute_bytes > c->message_bytes)
        return pd_error_set(err, "max_attribute_bytes (%" PRIu64 ") is more than message_bytes (%" PRIu64 ")",
                            c->max_attribute_bytes, c->message_bytes);
    if (c->heartbeat_ms >= c->idle_timeout_ms)
        return pd_error_set(err,
                            "heartbeat_ms (%" PRIu64 " ms) is not less than idle_timeout_s (%" PRIu64
                            " ms): idle clients would be disconnected between two heartbeats",
                            c->heartbeat_ms, c->idle_timeout_ms);
    if (*c->hook && c->hook[0] != '/')
        return pd_error_set(err, "hook \"%s\" is no absolute path", c->hook);
    const char *fault = *c->name_pattern ? wire_pattern_fault(c->name_pattern) : NULL;
    if (fault)
        return pd_error_set(err, "name_pattern \"%s\" %s", c->name_pattern, fault);
    if (config_check_volumes(c, err) != 0 || config_check_access(c, err) != 0)
        return -1;
    if (c->listen.n == 0)
        return pd_error_set(err, "listen is empty: no instrument could connect");
    if (c->export_codec == PD_CODEC_GZIP && c->export_level > 9)
        return pd_error_set(err, "export_level (%d) is more than 9, the highest of gzip", c->export_level);
    return 0;
}

int pd_config_gid(const pd_config *config, int64_t *gid, pd_error *err) {
    *gid = -1;
    if (!*config->group)
        return 0;
    errno = 0;
    const struct group *group = getgrnam(config->group);
    if (!group)
        return pd_error_set(err, "group %s: %s", config->group,
                            errno ? strerror(errno) : "there is no such group");
    *gid = (int64_t)group->gr_gid;
    return 0;
}

/* The object that a key stands in, made where it is missing; `*leaf` its name there. Borrowed. */
static json_t *config_section(json_t *root, const char *path, const char **leaf) {
    json_t *object = root;
    for (const char *dot; object && (dot = strchr(path, '.')); path = dot + 1) {
        json_t *inner = json_object_getn(object, path, (size_t)(dot - path));
        if (!inner) {
            inner = json_object();
            if (json_object_setn_new(object, path, (size_t)(dot - path), inner) != 0)
                return NULL;
        }
        object = inner;
    }
    *leaf = path;
    return object;
}

int pd_config_print(const pd_config *config, FILE *out) {
    json_t *root = json_object();
    int result = root ? 0 : -1;
    for (size_t i = 0; result == 0 && i < pd_config_n_keys; i++) {
        const char *leaf;
        json_t *section = config_section(root, pd_config_keys[i].path, &leaf);
        if (!section ||
            json_object_set_new(section, leaf, pd_config_key_json(&pd_config_keys[i], config)) != 0)
            result = -1;
    }
    if (result == 0 &&
        (json_dumpf(root, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) != 0 || fputc('\n', out) == EOF))
        result = -1;
    json_decref(root);
    return result;
}
