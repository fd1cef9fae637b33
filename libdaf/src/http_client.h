/* Getting bytes by HTTP, through libcurl. Nothing that a server says is trusted: every answer has a bound, and one that is
 * not what was asked for is an error that names the URL (without user and password) and the reason. */
#ifndef DAF_SRC_HTTP_CLIENT_H
#define DAF_SRC_HTTP_CLIENT_H

#include "buf.h"
#include "http_settings.h"

typedef struct daf__http_client daf__http_client;

/* url: of the repository. Returns 0; DAF_ERR_ARG; DAF_ERR_NOMEM. */
int daf__http_client_new(daf__http_client **ret, const char *url, const daf__http_limits *limits,
                         daf_error *err);
void daf__http_client_free(daf__http_client *c); /* NULL is fine */

/* The URL as it may be shown. */
const char *daf__http_shown_url(const daf__http_client *c);

typedef enum daf__http_part {
    DAF__HTTP_WHOLE,
    DAF__HTTP_FROM, /* `bytes` bytes from `first` on, or fewer when the file ends before */
    DAF__HTTP_LAST  /* the last `bytes` bytes, or fewer */
} daf__http_part;

typedef struct daf__http_range {
    daf__http_part part;
    uint64_t first, bytes; /* WHOLE: at most so many bytes */
} daf__http_range;

enum { DAF__HTTP_VERSION_TEXT = 128 };

typedef struct daf__http_answer {
    daf__buf body;
    uint64_t first; /* of the body in the file: a server without ranges sends the whole file */
    uint64_t total; /* bytes of the file */
    char version[DAF__HTTP_VERSION_TEXT]; /* ETag, or the time of the last change; "": not told */
} daf__http_answer;

/* Gets a file of the repository; the caller frees the body.
 * Returns 0; DAF_ERR_MISSING; DAF_ERR_IO; DAF_ERR_LIMIT; DAF_ERR_TRUNCATED; DAF_ERR_CORRUPT the server lies; DAF_ERR_NOMEM. */
int daf__http_get(daf__http_client *c, daf__http_answer *ret, const char *key, const daf__http_range *range,
                  daf_error *err);

/* The size of a file, by HEAD. DAF_ERR_UNSUPPORTED: the server does not tell. */
int daf__http_size(daf__http_client *c, uint64_t *ret, const char *key, daf_error *err);

#endif
