#include "split_names.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *split_first_path(const char *out, const char *in) {
    struct stat st;
    char *path;
    size_t n = strlen(out);
    if (!(n && out[n - 1] == '/') && !(stat(out, &st) == 0 && S_ISDIR(st.st_mode)))
        return strdup(out);
    const char *slash = strrchr(in, '/');
    return asprintf(&path, "%s%s%s", out, n && out[n - 1] == '/' ? "" : "/", slash ? slash + 1 : in) < 0
               ? NULL
               : path;
}

char *split_path(const char *first, uint64_t number) {
    static const char suffix[] = ".photons";
    size_t n = strlen(first), end = sizeof suffix - 1;
    bool named = n > end && strcmp(first + n - end, suffix) == 0;
    char *path;
    if (number == 0)
        return strdup(first);
    n -= named ? end : 0;
    return asprintf(&path, "%.*s.%04" PRIu64 "%s", (int)n, first, number, named ? suffix : "") < 0 ? NULL
                                                                                                   : path;
}

static int check_path(const command *self, const struct stat *in, const char *path, bool overwrite) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return 0;
    if (!overwrite)
        return command_fail(self, "%s: the file exists already; --overwrite replaces it", path);
    if (stat(path, &st) == 0 && st.st_dev == in->st_dev && st.st_ino == in->st_ino)
        return command_fail(self, "%s: is the file that is split; choose another name with -o", path);
    return 0;
}

int split_check_paths(const command *self, const char *in, const char *first, uint64_t n, bool overwrite) {
    struct stat st;
    int code = 0;
    if (stat(in, &st) != 0)
        return command_fail(self, "%s: is gone", in);
    for (uint64_t i = 0; i < n && code == 0; i++) {
        char *path = split_path(first, i);
        code = path ? check_path(self, &st, path, overwrite) : command_fail(self, "out of memory");
        free(path);
    }
    return code;
}

typedef struct unit {
    const char *name;
    double times;
} unit;

static bool parse_with_unit(const char *text, const unit *units, size_t n, uint64_t *ret) {
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    double value = strtod(text, &end);
    for (size_t i = 0; i < n; i++) {
        double product = value * units[i].times;
        if (strcmp(end, units[i].name) != 0 || !(product >= 1 && product < 9e18))
            continue;
        *ret = (uint64_t)floor(product);
        return true;
    }
    return false;
}

bool split_parse_bytes(const char *text, uint64_t *ret) {
    static const unit units[] = {{"", 1},
                                 {"B", 1},
                                 {"kB", 1e3},
                                 {"KB", 1e3},
                                 {"MB", 1e6},
                                 {"GB", 1e9},
                                 {"TB", 1e12},
                                 {"KiB", 1024.0},
                                 {"MiB", 1048576.0},
                                 {"GiB", 1073741824.0},
                                 {"TiB", 1099511627776.0}};
    return parse_with_unit(text, units, sizeof units / sizeof *units, ret);
}

bool split_parse_count(const char *text, uint64_t *ret) {
    static const unit units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};
    return parse_with_unit(text, units, sizeof units / sizeof *units, ret);
}
