#include "wire/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

enum { RUN_NAME_BYTES_MAX = 128, DATASET_NAME_BYTES_MAX = 255 };

static const char *enum_short_name(const ProtobufCEnumValue *value) {
    const char *underscore = strchr(value->name, '_');
    return underscore ? underscore + 1 : value->name;
}

const char *wire_enum_text(const ProtobufCEnumDescriptor *descriptor, int value,
                           char text[WIRE_ENUM_TEXT_BYTES]) {
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(descriptor, value);
    if (!known) {
        snprintf(text, WIRE_ENUM_TEXT_BYTES, "%d", value);
        return text;
    }
    snprintf(text, WIRE_ENUM_TEXT_BYTES, "%s", enum_short_name(known));
    for (char *p = text; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return text;
}

int wire_enum_value(const ProtobufCEnumDescriptor *descriptor, const char *text, int *value) {
    for (unsigned i = 0; i < descriptor->n_values; i++) {
        if (strcasecmp(enum_short_name(&descriptor->values[i]), text) == 0) {
            *value = descriptor->values[i].value;
            return 0;
        }
    }
    return -1;
}

size_t wire_type_bytes(uint32_t type) {
    static const uint8_t sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
    return type < sizeof sizes ? sizes[type] : 0;
}

static bool name_ends_in(const char *name, size_t n, const char *suffix) {
    size_t k = strlen(suffix);
    return n >= k && strcasecmp(name + n - k, suffix) == 0;
}

/* ".0001" and the like, which parts of a run are named by. */
static bool name_ends_in_part(const char *name, size_t n) {
    size_t digits = 0;
    while (digits < n && isdigit((unsigned char)name[n - 1 - digits]))
        digits++;
    return digits >= 4 && digits < n && name[n - 1 - digits] == '.';
}

static bool name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const char *wire_run_name_fault(const char *name) {
    static const char *const ours[] = {".tail",    ".cut", ".crc",  ".new",
                                       ".photons", ".daf", ".dafs", ".dafs.zip"};
    size_t n = strlen(name);
    if (n == 0)
        return "is empty";
    if (n > RUN_NAME_BYTES_MAX)
        return "is longer than 128 characters";
    if (!name_character(name[0]))
        return "does not begin with a letter or a digit";
    for (size_t i = 1; i < n; i++)
        if (!name_character(name[i]) && !strchr("._-", name[i]))
            return "holds a character that is none of A-Z a-z 0-9 . _ -";
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (name_ends_in(name, n, ours[i]))
            return "ends as a file of the daemon does (.tail .cut .crc .new .photons .daf .dafs .dafs.zip)";
    if (name_ends_in_part(name, n))
        return "ends in a dot and four or more digits, as parts of a run do";
    return NULL;
}

const char *wire_dataset_name_fault(const char *name) {
    size_t n = strlen(name);
    if (n == 0)
        return "is empty";
    if (n > DATASET_NAME_BYTES_MAX)
        return "is longer than 255 bytes";
    if (!common_utf8_valid(name, n))
        return "is not valid UTF-8";
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F)
            return "holds a control character";
    return NULL;
}

const char *wire_attribute_fault(const char *key, const char *value) {
    if (!*key)
        return "has an empty key";
    if (!common_utf8_valid(key, strlen(key)))
        return "has a key that is not valid UTF-8";
    if (!common_utf8_valid(value, strlen(value)))
        return "has a value that is not valid UTF-8";
    return NULL;
}
