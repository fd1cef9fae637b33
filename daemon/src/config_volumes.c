#include "config_volumes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOLUMES_DIR_BYTES = 4000 };

void pd_volume_places_free(pd_volume_places *places) {
    for (size_t i = 0; i < places->n; i++) {
        free(places->items[i].name);
        free(places->items[i].data_dir);
    }
    free(places->items);
    *places = (pd_volume_places){NULL, 0};
}

static const char volumes_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

static int volumes_check_name(const char *name, pd_error *err) {
    size_t n = strlen(name);
    if (n == 0 || n > PD_VOLUME_NAME_BYTES || strspn(name, volumes_letters) != n || strchr("._-", *name))
        return pd_error_set(
            err, "is no name of a volume: 1 to %d letters, digits and ._-, a letter or digit first",
            PD_VOLUME_NAME_BYTES);
    return 0;
}

/* One member: {"data_dir": DIR}. */
static int volumes_add(pd_volume_places *places, const char *name, const json_t *value, char *path,
                       size_t cap, pd_error *err) {
    const char *key;
    json_t *member;
    const char *dir = json_string_value(json_object_get(value, "data_dir"));
    snprintf(path, cap, "%s", name);
    if (volumes_check_name(name, err) != 0)
        return -1;
    if (!json_is_object(value))
        return pd_error_set(err, "must be an object such as {\"data_dir\": \"/data2\"}");
    json_object_foreach((json_t *)(uintptr_t)value, key, member) {
        snprintf(path, cap, "%s.%s", name, key);
        if (strcmp(key, "data_dir") != 0)
            return pd_error_set(err, "unknown key; did you mean \"data_dir\"?");
    }
    snprintf(path, cap, "%s.data_dir", name);
    if (!dir || !*dir || strlen(dir) > VOLUMES_DIR_BYTES)
        return pd_error_set(err, "must be given, as the path of a folder");
    pd_volume_place *items = realloc(places->items, (places->n + 1) * sizeof *items);
    if (!items)
        return pd_error_set(err, "out of memory");
    places->items = items;
    items[places->n] = (pd_volume_place){strdup(name), strdup(dir)};
    places->n++;
    return items[places->n - 1].name && items[places->n - 1].data_dir ? 0
                                                                      : pd_error_set(err, "out of memory");
}

int pd_volume_places_set(pd_volume_places *places, const json_t *value, char *path, size_t cap,
                         pd_error *err) {
    pd_volume_places made = {NULL, 0};
    const char *name;
    json_t *member;
    *path = 0;
    if (!json_is_object(value))
        return pd_error_set(err, "must be an object of folders by name");
    if (json_object_size(value) > PD_VOLUMES_MAX)
        return pd_error_set(err, "more than %d volumes", PD_VOLUMES_MAX);
    json_object_foreach((json_t *)(uintptr_t)value, name, member) {
        if (volumes_add(&made, name, member, path, cap, err) != 0) {
            pd_volume_places_free(&made);
            return -1;
        }
    }
    pd_volume_places_free(places);
    *places = made;
    return 0;
}

json_t *pd_volume_places_json(const pd_volume_places *places) {
    json_t *object = json_object();
    for (size_t i = 0; object && i < places->n; i++)
        if (json_object_set_new(object, places->items[i].name,
                                json_pack("{s:s}", "data_dir", places->items[i].data_dir)) != 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}
