#include <string.h>

#include "ctl.h"
#include "text.h"

static const char *status_string(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void status_check_line(FILE *out, const json_t *status) {
    const json_t *reason;
    size_t i;
    char safe[512];
    pd_text_escape(safe, sizeof safe, status_string(status, "health"));
    fputs(safe, out);
    json_array_foreach(json_object_get(status, "reasons"), i, reason) {
        pd_text_escape(safe, sizeof safe, json_is_string(reason) ? json_string_value(reason) : "?");
        fprintf(out, "%s%s", i ? "; " : ": ", safe);
    }
    fputc('\n', out);
}

int ctl_status(const ctl_options *options) {
    json_t *status = NULL;
    int code = ctl_request(options->control, "status", &status);
    if (code != CTL_OK)
        return options->check ? CTL_UNREACHABLE : code;
    if (options->json) {
        json_dumpf(status, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
        putchar('\n');
    } else if (options->check) {
        status_check_line(stdout, status);
    } else {
        ctl_print_status(stdout, status);
    }
    const char *health = status_string(status, "health");
    bool good = strcmp(health, "ok") == 0 || strcmp(health, "degraded") == 0;
    json_decref(status);
    return options->check && !good ? CTL_NOT_OK : CTL_OK;
}

int ctl_version(const ctl_options *options) {
    json_t *status = NULL;
    int code = ctl_request(options->control, "status", &status);
    char safe[128] = "";
    if (code == CTL_OK)
        pd_text_escape(safe, sizeof safe, status_string(status, "version"));
    json_decref(status);
    if (options->json) {
        json_t *versions =
            json_pack("{s:s, s:s?}", "photonctl", PHOTOND_VERSION, "photond", code == CTL_OK ? safe : NULL);
        json_dumpf(versions, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(versions);
    } else {
        printf("photonctl %s\n", PHOTOND_VERSION);
        if (code == CTL_OK)
            printf("photond   %s\n", safe);
    }
    return code;
}
