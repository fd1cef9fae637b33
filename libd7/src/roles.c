/* What a dataset's name says about it: the conventions of LINCam and LINTag files. Source: the D7
 * specification, section 6. */
#include <string.h>

#include "d7/d7.h"

static const struct {
    const char *name;
    d7_role role;
} conventions[] = {
    {"/photons/x", D7_ROLE_X},
    {"/photons/y", D7_ROLE_Y},
    {"/photons/dt", D7_ROLE_MICRO_TIME},
    {"/photons/ms", D7_ROLE_MS},
    {"/photons/aat", D7_ROLE_ABSOLUTE_TIME},
    {"/start/time", D7_ROLE_START},
    {"/stop/time", D7_ROLE_STOP},
    {"/tags/channel", D7_ROLE_CHANNEL},
    {"/tags/time", D7_ROLE_TIME},
};

d7_role d7_role_of(const char *dataset_name) {
    for (size_t i = 0; dataset_name && i < sizeof conventions / sizeof *conventions; i++)
        if (strcmp(conventions[i].name, dataset_name) == 0)
            return conventions[i].role;
    return D7_ROLE_OTHER;
}

d7_group d7_group_of(const char *dataset_name) {
    static const char photons[] = "/photons/", tags[] = "/tags/";
    if (!dataset_name)
        return D7_GROUP_NONE;
    switch (d7_role_of(dataset_name)) {
    case D7_ROLE_MS:
        return D7_GROUP_NONE;
    case D7_ROLE_START:
    case D7_ROLE_STOP:
        return D7_GROUP_PHOTONS;
    default:
        break;
    }
    if (strncmp(dataset_name, photons, sizeof photons - 1) == 0)
        return D7_GROUP_PHOTONS;
    return strncmp(dataset_name, tags, sizeof tags - 1) == 0 ? D7_GROUP_TAGS : D7_GROUP_NONE;
}

int d7_reader_find_role(const d7_reader *r, d7_role role, uint32_t *ret_dataset_id) {
    d7_dataset_info info;
    for (uint32_t i = 0; d7_reader_dataset(r, i, &info) == 0; i++)
        if (d7_role_of(info.name) == role) {
            *ret_dataset_id = i;
            return 0;
        }
    return D7_ERR_NOTFOUND;
}

/* As many as the pages should hold: another writer's may be longer, each for itself. */
static uint64_t usual_items(const d7_reader *r, const d7_dataset_info *info) {
    return info->pages * d7_items_per_page(info->type, d7_reader_bytes_per_page(r)) + info->items -
           info->paged_items;
}

static uint64_t longest_column(const d7_reader *r, d7_group group) {
    d7_dataset_info info;
    uint64_t longest = 0;
    for (uint32_t i = 0; d7_reader_dataset(r, i, &info) == 0; i++)
        if (d7_group_of(info.name) == group && usual_items(r, &info) > longest)
            longest = usual_items(r, &info);
    return longest;
}

static bool in_use(const d7_reader *r, const d7_dataset_info *info, uint64_t longest) {
    if (info->items > 0 || info->pages > 0)
        return true;
    return d7_reader_state(r) != D7_STATE_CLOSED &&
           longest <= d7_items_per_page(info->type, d7_reader_bytes_per_page(r));
}

uint64_t d7_reader_group_items(const d7_reader *r, d7_group group) {
    d7_dataset_info info;
    uint64_t shortest = UINT64_MAX, longest = longest_column(r, group);
    for (uint32_t i = 0; d7_reader_dataset(r, i, &info) == 0; i++)
        if (d7_group_of(info.name) == group && info.items < shortest && in_use(r, &info, longest))
            shortest = info.items;
    return shortest == UINT64_MAX ? 0 : shortest;
}
