#include "range.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    double ps;
} units[] = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}, {"min", 6e13}, {"h", 3.6e15}};

bool range_parse(const char *text, range_end *ret) {
    range_end end = {.given = true};
    if (parse_count(text, &end.item)) {
        *ret = end;
        return true;
    }
    if (!isdigit((unsigned char)*text))
        return false;
    char *unit;
    double value = strtod(text, &unit);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) != 0 || !(value * units[i].ps < 9e18))
            continue;
        end.is_time = true;
        end.time_ps = (uint64_t)llround(value * units[i].ps);
        *ret = end;
        return true;
    }
    return false;
}

bool range_option(const command *self, const char *option, const char *text, range_end *ret) {
    if (range_parse(text, ret))
        return true;
    command_fail(self, "%s takes an item (10000) or a time (250ms, 12.5s, 3min, 2h), not %s", option, text);
    return false;
}

static bool has_group(const d7_reader *r, d7_group group) {
    d7_dataset_info info;
    for (uint32_t i = 0; d7_reader_dataset(r, i, &info) == 0; i++)
        if (d7_group_of(info.name) == group)
            return true;
    return false;
}

d7_group range_group(const d7_reader *r) {
    return has_group(r, D7_GROUP_PHOTONS) ? D7_GROUP_PHOTONS
           : has_group(r, D7_GROUP_TAGS)  ? D7_GROUP_TAGS
                                          : D7_GROUP_NONE;
}

/* Without groups the longest dataset is what there is. */
static uint64_t range_items(const d7_reader *r, d7_group group) {
    d7_dataset_info info;
    uint64_t longest = 0;
    if (group != D7_GROUP_NONE)
        return d7_reader_group_items(r, group);
    for (uint32_t i = 0; d7_reader_dataset(r, i, &info) == 0; i++)
        if (d7_role_of(info.name) != D7_ROLE_MS && info.items > longest)
            longest = info.items;
    return longest;
}

/* Stamps that never fall, and how long one of their units is. */
typedef struct stamps {
    d7_reader *reader;
    uint32_t dataset_id;
    uint64_t n;
    double unit_ps;
} stamps;

static int stamp_at(const stamps *s, uint64_t i, uint64_t *ret, d7_error *err) {
    return d7_reader_read(s->reader, s->dataset_id, i, 1, ret, err);
}

/* Is there a dataset of this role whose values can be taken as times? */
static bool stamps_of(d7_reader *r, d7_role role, uint64_t items, stamps *ret) {
    uint32_t id;
    d7_dataset_info info;
    double unit_ps = 1;
    if (d7_reader_find_role(r, role, &id) != 0 || d7_reader_dataset(r, id, &info) != 0 ||
        (info.type != D7_UINT64 && info.type != D7_INT64))
        return false;
    if (role == D7_ROLE_ABSOLUTE_TIME) {
        const char *frequency = d7_reader_find_attribute(r, "/photons/TimerFrequency");
        double hz = frequency ? strtod(frequency, NULL) : 0;
        if (!(hz > 0) || !isfinite(hz))
            return false;
        unit_ps = 1e12 / hz;
    }
    *ret = (stamps){.reader = r, .dataset_id = id, .n = items, .unit_ps = unit_ps};
    return true;
}

static bool find_stamps(d7_reader *r, d7_group group, uint64_t items, stamps *ret) {
    if (group == D7_GROUP_TAGS)
        return stamps_of(r, D7_ROLE_TIME, items, ret);
    return group == D7_GROUP_PHOTONS &&
           (stamps_of(r, D7_ROLE_ABSOLUTE_TIME, items, ret) || stamps_of(r, D7_ROLE_STOP, items, ret) ||
            stamps_of(r, D7_ROLE_START, items, ret));
}

/* The first item at or after the time. */
static int item_by_stamps(const stamps *s, uint64_t time_ps, uint64_t *ret_item, d7_error *err) {
    uint64_t first = 0, low = 0, high = s->n;
    double wanted = (double)time_ps / s->unit_ps;
    int rc = s->n ? stamp_at(s, 0, &first, err) : 0;
    while (rc == 0 && low < high) {
        uint64_t middle = low + (high - low) / 2, stamp;
        rc = stamp_at(s, middle, &stamp, err);
        if (rc == 0 && stamp > first && (double)(stamp - first) >= wanted)
            high = middle;
        else if (rc == 0 && wanted <= 0)
            high = middle;
        else
            low = middle + 1;
    }
    if (rc == 0)
        *ret_item = low;
    return rc;
}

/* Gives `items` for a time that is past the last millisecond. */
static int item_by_ms(d7_reader *r, uint64_t time_ps, uint64_t items, uint64_t *ret_item, bool *ret_past,
                      d7_error *err) {
    uint32_t id;
    uint64_t ms = time_ps / 1000000000u, n;
    d7_dataset_info info;
    if (d7_reader_find_role(r, D7_ROLE_MS, &id) != 0 || d7_reader_dataset(r, id, &info) != 0)
        return D7_ERR_NOTFOUND;
    if (ms < info.items)
        return d7_reader_photons_of_ms(r, ms, ret_item, &n, err);
    *ret_item = items;
    *ret_past = true;
    return 0;
}

/* *ret_past becomes true where `end` is a time, and the recording does not last that long. */
static int range_item(const command *self, d7_reader *r, const char *path, d7_group group,
                      const range_end *end, uint64_t *ret_item, bool *ret_past) {
    uint64_t items = range_items(r, group);
    d7_error err = {0};
    stamps s;
    int rc;
    if (!end->is_time) {
        *ret_item = end->item < items ? end->item : items;
        return 0;
    }
    rc = group == D7_GROUP_PHOTONS ? item_by_ms(r, end->time_ps, items, ret_item, ret_past, &err)
                                   : D7_ERR_NOTFOUND;
    if (rc == D7_ERR_NOTFOUND) {
        if (!find_stamps(r, group, items, &s))
            return command_fail(self,
                                "%s: times cannot be told: the file has no milliseconds and no time stamps; "
                                "give items",
                                path);
        rc = item_by_stamps(&s, end->time_ps, ret_item, &err);
        *ret_past = rc == 0 && *ret_item == items;
    }
    return rc != 0 ? command_fail(self, "%s", err.text) : 0;
}

int range_resolve(const command *self, d7_reader *r, const char *path, const range_end *from,
                  const range_end *to, uint64_t *ret_from, uint64_t *ret_to) {
    return range_resolve_in(self, r, path, range_group(r), from, to, ret_from, ret_to);
}

int range_resolve_in(const command *self, d7_reader *r, const char *path, d7_group group,
                     const range_end *from, const range_end *to, uint64_t *ret_from, uint64_t *ret_to) {
    uint64_t first = 0, end = range_items(r, group);
    bool past = false, ends_past = false;
    if (from->given && !from->is_time && from->item > end)
        return command_fail(self, "%s: --from is item %" PRIu64 ", and there are %" PRIu64, path, from->item,
                            end);
    int code = from->given ? range_item(self, r, path, group, from, &first, &past) : 0;
    if (code == 0 && past && from->time_ps > 0)
        return command_fail(self, "%s: --from is a time past the last of the %" PRIu64 " items", path, end);
    if (code == 0 && to->given)
        code = range_item(self, r, path, group, to, &end, &ends_past);
    if (code != 0)
        return code;
    if (first > end)
        return command_fail(self, "%s: --from is item %" PRIu64 ", past --to, which is item %" PRIu64, path,
                            first, end);
    *ret_from = first;
    *ret_to = end;
    return 0;
}
