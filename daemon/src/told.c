#include "told.h"

json_t *pd_told_json(const d7_reader *r, const char *key, size_t flags) {
    const char *text = d7_reader_find_attribute(r, key);
    return text ? json_loads(text, flags, NULL) : NULL;
}

const char *pd_told_text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

uint64_t pd_told_number(const json_t *object, const char *key) {
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

pd_dataset pd_told_dataset(const json_t *entry) {
    return (pd_dataset){.name = pd_told_text(entry, "name"),
                        .group = pd_told_text(entry, "group"),
                        .unit = pd_told_text(entry, "unit"),
                        .scale = json_number_value(json_object_get(entry, "scale"))};
}

pd_time_base pd_told_time_base(const json_t *time_base) {
    return (pd_time_base){pd_told_number(time_base, "tick_ps_numerator"),
                          pd_told_number(time_base, "tick_ps_denominator"),
                          (uint32_t)pd_told_number(time_base, "counter_bits")};
}
