#include "dataset.h"

#include <stdlib.h>
#include <string.h>

const char *pd_role_name(pd_role role) {
    switch (role) {
#define ROLE_NAME(name, number, text)                                                                        \
    case PD_ROLE_##name:                                                                                     \
        return text;
        PD_ROLE_MAP(ROLE_NAME)
#undef ROLE_NAME
    }
    return NULL;
}

int pd_role_parse(const char *text, pd_role *ret) {
#define ROLE_PARSE(name, number, role_text)                                                                  \
    if (strcmp(text, role_text) == 0) {                                                                      \
        *ret = PD_ROLE_##name;                                                                               \
        return 0;                                                                                            \
    }
    PD_ROLE_MAP(ROLE_PARSE)
#undef ROLE_PARSE
    return -1;
}

const char *pd_dataset_group(const pd_dataset *dataset) {
    return dataset->group && dataset->group[0] ? dataset->group : dataset->name;
}

size_t pd_datasets_photons(const pd_dataset *datasets, size_t n) {
    static const pd_role roles[] = {PD_ROLE_POSITION_X, PD_ROLE_POSITION_Y, PD_ROLE_MICRO_TIME,
                                    PD_ROLE_CHANNEL, PD_ROLE_TIME_STAMP};
    for (size_t r = 0; r < sizeof roles / sizeof roles[0]; r++)
        for (size_t i = 0; i < n; i++)
            if (datasets[i].role == roles[r])
                return i;
    for (size_t i = 0; i < n; i++)
        if (datasets[i].role != PD_ROLE_MS_INDEX)
            return i;
    return 0;
}

const char *pd_attribute_find(const pd_attribute *attributes, size_t n, const char *key) {
    for (size_t i = n; i-- > 0;)
        if (strcmp(attributes[i].key, key) == 0)
            return attributes[i].value;
    return NULL;
}

uint64_t pd_attribute_number(const pd_attribute *attributes, size_t n, const char *key) {
    const char *text = pd_attribute_find(attributes, n, key);
    return text ? strtoull(text, NULL, 10) : 0;
}

uint64_t pd_dataset_part_row(const pd_dataset *dataset, uint64_t items) {
    bool repeats = dataset->role == PD_ROLE_MS_INDEX && d7_role_of(dataset->name) == D7_ROLE_MS;
    return repeats && items > 0 ? items - 1 : items;
}
