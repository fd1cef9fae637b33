#include "rights.h"

#include <stdio.h>
#include <string.h>

static const char *const right_names[] = {"send", "control", "view"}; /* in the order of their bits */
enum { RIGHTS = sizeof right_names / sizeof *right_names };

static int right_by_name(const char *name, size_t bytes) {
    for (int i = 0; i < RIGHTS; i++)
        if (strlen(right_names[i]) == bytes && memcmp(right_names[i], name, bytes) == 0)
            return 1 << i;
    return 0;
}

int pd_rights_parse(const char *text, unsigned *ret, pd_error *err) {
    unsigned rights = 0;
    for (const char *at = text; *at;) {
        size_t bytes = strcspn(at, ",");
        int right = right_by_name(at, bytes);
        if (!right)
            return pd_error_set(err, "\"%.100s\" is no list of rights; they are send, control, view", text);
        rights |= (unsigned)right;
        at += bytes;
        if (*at == ',' && *++at == 0)
            return pd_error_set(err, "\"%.100s\" ends with a comma", text);
    }
    *ret = rights;
    return 0;
}

const char *pd_rights_text(unsigned rights, char text[PD_RIGHTS_TEXT_BYTES]) {
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < RIGHTS; i++)
        if (rights & 1u << i)
            n += (size_t)snprintf(text + n, PD_RIGHTS_TEXT_BYTES - n, "%s%s", n ? "," : "", right_names[i]);
    return text;
}
