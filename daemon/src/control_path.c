#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "wire/address.h"

#define CONTROL_SYSTEM_FOLDER "/run/photond"
#define CONTROL_SOCKET "control.sock"

static int control_join(char *path, size_t cap, const char *folder, const char *rest, pd_error *err) {
    int n = snprintf(path, cap, "%s/%s", folder, rest);
    if (n < 0 || (size_t)n >= cap)
        return pd_error_set(err, "the path of the control socket is too long: %s/%s", folder, rest);
    return 0;
}

int pd_control_auto_path(char *path, size_t cap, pd_error *err) {
    bool there = access(CONTROL_SYSTEM_FOLDER "/" CONTROL_SOCKET, F_OK) == 0;
    if (geteuid() == 0 || there || access(CONTROL_SYSTEM_FOLDER, W_OK) == 0)
        return control_join(path, cap, CONTROL_SYSTEM_FOLDER, CONTROL_SOCKET, err);
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime && runtime[0] == '/')
        return control_join(path, cap, runtime, "photond/" CONTROL_SOCKET, err);
    return pd_error_set(
        err,
        "there is no usual place for the control socket (%s is not there or not writable, and "
        "XDG_RUNTIME_DIR is not set): give --control unix:PATH",
        CONTROL_SYSTEM_FOLDER);
}

int pd_control_path(const char *address, char *path, size_t cap, pd_error *err) {
    if (strcmp(address, "auto") == 0)
        return pd_control_auto_path(path, cap, err);
    wire_address parsed;
    char why[160];
    if (strncmp(address, "unix:", 5) != 0)
        snprintf(why, sizeof why, "control goes over Unix sockets only");
    else if (wire_address_parse(address, &parsed, why, sizeof why) == 0)
        why[0] = '\0';
    if (why[0])
        return pd_error_set(err, "\"%.200s\": %s (unix:PATH, auto or none)", address, why);
    if (strlen(parsed.path) >= cap)
        return pd_error_set(err, "\"%.200s\" is too long", address);
    strcpy(path, parsed.path);
    return 0;
}
