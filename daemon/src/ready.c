#include "ready.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static json_t *ready_json(const char *const *addresses, size_t n, const char *control_path) {
    json_t *listen = json_array();
    for (size_t i = 0; listen && i < n; i++)
        json_array_append_new(listen, json_string(addresses[i]));
    json_t *control = *control_path ? json_sprintf("unix:%s", control_path) : json_null();
    return json_pack("{s:o, s:o, s:I}", "listen", listen, "control", control, "pid", (json_int_t)getpid());
}

int pd_ready_write(const char *path, const char *const *addresses, size_t n, const char *control_path,
                   unsigned mode, int64_t gid, pd_error *err) {
    char beside[PATH_MAX];
    int length = snprintf(beside, sizeof beside, "%s.new", path);
    if (length < 0 || (size_t)length >= sizeof beside)
        return pd_error_set(err, "%s: the path is too long", path);
    json_t *json = ready_json(addresses, n, control_path);
    int failed = json ? json_dump_file(json, beside, JSON_COMPACT) : -1;
    json_decref(json);
    if (!failed)
        failed = chmod(beside, mode) != 0 || chown(beside, (uid_t)-1, gid < 0 ? (gid_t)-1 : (gid_t)gid) != 0;
    if (!failed)
        failed = rename(beside, path);
    if (!failed)
        return 0;
    pd_error_set(err, "the ready file %s cannot be written: %s", path, strerror(errno));
    unlink(beside);
    return -1;
}
