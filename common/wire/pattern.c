#include "wire/pattern.h"

#include <stdio.h>
#include <string.h>

#include "wire/names.h"

static const char pattern_counter[] = "{counter}";

/* What {date} and the others become. */
typedef struct pattern_values {
    char date[16], time[16], counter[16];
    const char *profile;
} pattern_values;

bool wire_pattern_is(const char *text) {
    return strchr(text, '{') != NULL;
}

bool wire_pattern_counts(const char *text) {
    return strstr(text, pattern_counter) != NULL;
}

static const char *pattern_value(const pattern_values *v, const char *key, size_t n) {
    const struct {
        const char *key, *value;
    } known[] = {
        {"{date}", v->date}, {"{time}", v->time}, {"{profile}", v->profile}, {pattern_counter, v->counter}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].key) == n && memcmp(known[i].key, key, n) == 0)
            return known[i].value;
    return NULL;
}

static int pattern_fill(char ret[WIRE_RUN_NAME_ROOM], const char *pattern, const pattern_values *v) {
    size_t n = 0;
    while (*pattern) {
        const char *end = *pattern == '{' ? strchr(pattern, '}') : NULL;
        size_t taken = end ? (size_t)(end - pattern) + 1 : 1;
        const char *value = *pattern == '{' ? (end ? pattern_value(v, pattern, taken) : NULL) : pattern;
        if (!value)
            return -1;
        size_t k = *pattern == '{' ? strlen(value) : 1;
        if (n + k >= WIRE_RUN_NAME_ROOM)
            return -1;
        memcpy(ret + n, value, k);
        n += k;
        pattern += taken;
    }
    ret[n] = 0;
    return 0;
}

int wire_pattern_fill(char ret[WIRE_RUN_NAME_ROOM], const char *pattern, const struct tm *when,
                      const char *profile) {
    pattern_values v = {.profile = *profile ? profile : "run"};
    strcpy(v.counter, pattern_counter);
    if (strftime(v.date, sizeof v.date, "%Y%m%d", when) == 0 ||
        strftime(v.time, sizeof v.time, "%H%M%S", when) == 0)
        return -1;
    return pattern_fill(ret, pattern, &v);
}

int wire_pattern_count(char ret[WIRE_RUN_NAME_ROOM], const char *pattern, unsigned number) {
    pattern_values v = {.profile = NULL};
    snprintf(v.counter, sizeof v.counter, "%04u", number);
    return pattern_fill(ret, pattern, &v);
}

const char *wire_pattern_fault(const char *text) {
    char filled[WIRE_RUN_NAME_ROOM], name[WIRE_RUN_NAME_ROOM];
    const struct tm when = {.tm_year = 126, .tm_mday = 1};
    if (!wire_pattern_is(text))
        return wire_run_name_fault(text);
    const char *counter = strstr(text, pattern_counter);
    if (counter && strstr(counter + 1, pattern_counter))
        return "holds {counter} twice";
    if (wire_pattern_fill(filled, text, &when, "") != 0 || wire_pattern_count(name, filled, 1) != 0)
        return "is too long, or holds in braces what is none of {date} {time} {profile} {counter}";
    return wire_run_name_fault(name);
}
