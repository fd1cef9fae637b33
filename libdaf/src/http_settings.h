/* How a repository is read by HTTP; there also in builds that cannot. */
#ifndef DAF_SRC_HTTP_SETTINGS_H
#define DAF_SRC_HTTP_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct daf__http_limits {
    const char *
        ca_file; /* certificates that servers are judged by; NULL: the system's. Only until the client is made */
    unsigned connect_timeout_s;
    unsigned stall_timeout_s; /* with next to nothing coming */
    unsigned max_redirects;
    uint64_t max_whole_bytes; /* of a file that comes whole where a part was asked for */
} daf__http_limits;

typedef struct daf__http_settings {
    daf__http_limits limits;
    uint32_t gap_bytes; /* got with what lies around it rather than left out by another request */
} daf__http_settings;

static inline bool daf__is_url(const char *path) {
    return strncmp(path, "http://", 7) == 0 || strncmp(path, "https://", 8) == 0;
}

#endif
