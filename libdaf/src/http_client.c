#include "http_client.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "error.h"

enum { MAX_URL_BYTES = 4096, SLOWEST_BYTES_S = 128, STATUS_PARTIAL = 206 };

struct daf__http_client {
    CURL *curl;
    char *url;   /* without the last slash */
    char *shown; /* without user and password */
    char *ca_file;
    bool secure;
    daf__http_limits limits;
};

/* One request. */
typedef struct request {
    daf__http_client *client;
    const char *key;
    const daf__http_range *range; /* NULL: HEAD */
    daf__http_answer answer;
    uint64_t limit; /* of the body */
    long status;
    bool has_range;
    uint64_t last; /* byte, as the server says */
    bool encoded;
    bool too_large, no_memory;
    char curl_text[CURL_ERROR_SIZE];
    daf_error *err;
} request;

/* ---- making */

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void initialize_curl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* scheme://host/path, without what stands before an @ in front of the path. */
static char *without_user(const char *url) {
    const char *host = strstr(url, "://") + 3, *end = host + strcspn(host, "/");
    for (const char *p = host; p < end; p++)
        if (*p == '@')
            host = p + 1;
    char *shown = NULL;
    int scheme = (int)(strstr(url, "://") + 3 - url);
    return asprintf(&shown, "%.*s%s", scheme, url, host) < 0 ? NULL : shown;
}

static int check_url(const char *url, daf_error *err) {
    size_t n = strlen(url);
    const char *host = strstr(url, "://");
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)url[i] <= ' ' || url[i] == 0x7F || url[i] == '?' || url[i] == '#')
            return daf__fail(err, DAF_ERR_ARG, 0, i,
                             "the URL of a repository has no query, fragment or blanks");
    if (n > MAX_URL_BYTES || !host || !host[3] || host[3] == '/')
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "no URL of a repository: it is too long, or names no host");
    return 0;
}

int daf__http_client_new(daf__http_client **ret, const char *url, const daf__http_limits *limits,
                         daf_error *err) {
    int rc = check_url(url, err);
    if (rc)
        return rc;
    pthread_once(&once, initialize_curl);
    daf__http_client *c = calloc(1, sizeof *c);
    if (!c)
        return daf__no_memory(err);
    size_t n = strlen(url);
    while (url[n - 1] == '/')
        n--;
    c->limits = *limits;
    c->limits.ca_file = NULL;
    c->ca_file = limits->ca_file ? strdup(limits->ca_file) : NULL;
    c->secure = strncmp(url, "https", 5) == 0;
    c->url = daf__copy_text(url, n);
    c->shown = c->url ? without_user(c->url) : NULL;
    c->curl = curl_easy_init();
    if (!c->url || !c->shown || !c->curl || (limits->ca_file && !c->ca_file)) {
        daf__http_client_free(c);
        return daf__no_memory(err);
    }
    *ret = c;
    return 0;
}

void daf__http_client_free(daf__http_client *c) {
    if (!c)
        return;
    if (c->curl)
        curl_easy_cleanup(c->curl);
    free(c->url);
    free(c->shown);
    free(c->ca_file);
    free(c);
}

const char *daf__http_shown_url(const daf__http_client *c) {
    return c->shown;
}

/* ---- the answer as it comes */

/* "bytes 0-97/1234" */
static void take_content_range(request *r, const char *value) {
    unsigned long long first, last, total;
    int n = 0;
    if (sscanf(value, " bytes %20llu-%20llu/%20llu%n", &first, &last, &total, &n) != 3 || n == 0)
        return;
    r->has_range = true;
    r->answer.first = first;
    r->last = last;
    r->answer.total = total;
}

static void take_version(request *r, const char *value, size_t bytes) {
    while (bytes && strchr(" \t", *value)) {
        value++;
        bytes--;
    }
    while (bytes && strchr(" \t\r\n", value[bytes - 1]))
        bytes--;
    snprintf(r->answer.version, sizeof r->answer.version, "%.*s", (int)bytes, value);
}

static size_t on_header(char *line, size_t size, size_t n, void *context) {
    request *r = context;
    size_t bytes = size * n, name = 0;
    char text[512];
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* of a redirect there come several heads */
        r->has_range = r->encoded = false;
        r->answer.version[0] = 0;
        r->status = 0;
        sscanf(line, "%*s %ld", &r->status);
        return bytes;
    }
    while (name < bytes && line[name] != ':')
        name++;
    if (name == bytes || bytes - name >= sizeof text)
        return bytes;
    const char *value = line + name + 1;
    snprintf(text, sizeof text, "%.*s", (int)(bytes - name - 1), value);
    if (name == 13 && strncasecmp(line, "Content-Range", name) == 0)
        take_content_range(r, text);
    else if (name == 4 && strncasecmp(line, "ETag", name) == 0)
        take_version(r, value, bytes - name - 1);
    else if (name == 13 && strncasecmp(line, "Last-Modified", name) == 0 && !r->answer.version[0])
        take_version(r, value, bytes - name - 1);
    else if (name == 16 && strncasecmp(line, "Content-Encoding", name) == 0)
        r->encoded = !strstr(text, "identity");
    return bytes;
}

static uint64_t most_bytes(const request *r, bool whole) {
    bool unasked = whole && r->range && r->range->part != DAF__HTTP_WHOLE;
    return unasked ? r->client->limits.max_whole_bytes : r->limit;
}

static size_t on_body(char *data, size_t size, size_t n, void *context) {
    request *r = context;
    size_t bytes = size * n;
    uint64_t limit = most_bytes(r, r->status != STATUS_PARTIAL);
    if (r->status < 200 || r->status > 299)
        return bytes; /* of a redirect */
    r->too_large = bytes > limit || r->answer.body.size > limit - bytes;
    if (r->too_large)
        return 0;
    daf__buf_append(&r->answer.body, data, bytes);
    r->no_memory = r->answer.body.failed;
    return r->no_memory ? 0 : bytes;
}

/* ---- judging it */

static int fail(const request *r, int code, const char *reason) {
    return daf__fail(r->err, code, 0, 0, "%s/%s: %s", r->client->shown, r->key, reason);
}

static int judge_status(const request *r) {
    long status = r->status;
    if (status == 404 || status == 410)
        return daf__fail(r->err, DAF_ERR_MISSING, 0, 0,
                         "%s/%s: the server has no such file (HTTP status %ld)", r->client->shown, r->key,
                         status);
    const char *hint = status == 401 || status == 403   ? ": access is denied"
                       : status == 416                  ? ": the file is shorter than it was"
                       : status >= 500 && status <= 599 ? ": the server failed"
                                                        : "";
    return daf__fail(r->err, status == 416 ? DAF_ERR_TRUNCATED : DAF_ERR_IO, 0, 0, "%s/%s: HTTP status %ld%s",
                     r->client->shown, r->key, status, hint);
}

static int judge_failure(const request *r, CURLcode code) {
    char text[CURL_ERROR_SIZE + 80];
    if (r->no_memory || code == CURLE_OUT_OF_MEMORY)
        return daf__no_memory(r->err);
    if (r->too_large || code == CURLE_FILESIZE_EXCEEDED)
        return fail(r, DAF_ERR_LIMIT, "the server sends more bytes than there may be");
    switch (code) {
    case CURLE_HTTP_RETURNED_ERROR:
        return judge_status(r);
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
        snprintf(text, sizeof text, "the server cut the answer off (%s)", curl_easy_strerror(code));
        return fail(r, DAF_ERR_TRUNCATED, text);
    case CURLE_OPERATION_TIMEDOUT:
        return fail(r, DAF_ERR_IO, "the server does not answer, or too slowly");
    case CURLE_TOO_MANY_REDIRECTS:
        return fail(r, DAF_ERR_IO, "the server redirects too often");
    default:
        snprintf(text, sizeof text, "%s", r->curl_text[0] ? r->curl_text : curl_easy_strerror(code));
        return fail(r, DAF_ERR_IO, text);
    }
}

/* Whether the part is the one that was asked for. */
static bool is_right_part(const request *r) {
    const daf__http_answer *a = &r->answer;
    const daf__http_range *range = r->range;
    if (!r->has_range || r->last < a->first || r->last >= a->total || a->body.size != r->last - a->first + 1)
        return false;
    uint64_t bytes = range->bytes < a->total ? range->bytes : a->total;
    if (range->part == DAF__HTTP_LAST)
        return a->first == a->total - bytes && r->last == a->total - 1;
    uint64_t left = a->total - range->first; /* first <= last < total */
    return a->first == range->first && a->body.size == (range->bytes < left ? range->bytes : left);
}

static int judge(request *r) {
    if (r->encoded)
        return fail(r, DAF_ERR_UNSUPPORTED,
                    "the server sends it encoded (Content-Encoding) though nobody asked");
    if (r->status == STATUS_PARTIAL && r->range->part != DAF__HTTP_WHOLE)
        return is_right_part(r)
                   ? 0
                   : fail(r, DAF_ERR_CORRUPT, "the server sends other bytes than were asked for");
    if (r->status != 200)
        return judge_status(r);
    r->answer.first = 0;
    r->answer.total = r->answer.body.size;
    return 0;
}

/* ---- asking */

/* The key, escaped but for its slashes, behind the repository's URL. */
static char *url_of(const daf__http_client *c, const char *key) {
    static const char hex[] = "0123456789ABCDEF";
    daf__buf b = {0};
    daf__buf_text(&b, c->url);
    daf__buf_text(&b, "/");
    for (const char *p = key; *p; p++) {
        unsigned char u = (unsigned char)*p;
        bool plain =
            (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') || (u >= '0' && u <= '9') || strchr("-._~/", u);
        char escaped[3] = {'%', hex[u >> 4], hex[u & 15]};
        daf__buf_append(&b, plain ? p : escaped, plain ? 1 : 3);
    }
    daf__buf_append(&b, "", 1);
    if (b.failed) {
        daf__buf_free(&b);
        return NULL;
    }
    return (char *)b.data;
}

static void set_range(CURL *curl, const daf__http_range *range, char text[64]) {
    if (range->part == DAF__HTTP_LAST)
        snprintf(text, 64, "-%" PRIu64, range->bytes);
    else
        snprintf(text, 64, "%" PRIu64 "-%" PRIu64, range->first, range->first + range->bytes - 1);
    curl_easy_setopt(curl, CURLOPT_RANGE, range->part == DAF__HTTP_WHOLE ? NULL : text);
}

static void set_options(request *r, const char *url) {
    CURL *curl = r->client->curl;
    const daf__http_limits *limits = &r->client->limits;
    const char *protocols = r->client->secure ? "https" : "http,https";
    curl_easy_reset(curl); /* connections stay open */
    curl_easy_setopt(curl, CURLOPT_URL, url);
    if (r->client->ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, r->client->ca_file);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, protocols);
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)limits->max_redirects);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)limits->connect_timeout_s);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, (long)SLOWEST_BYTES_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)limits->stall_timeout_s);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, r->curl_text);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "libdaf/" DAF_VERSION_TEXT);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, r);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
}

static int perform(request *r) {
    char range[64];
    char *url = url_of(r->client, r->key);
    if (!url)
        return daf__no_memory(r->err);
    set_options(r, url);
    uint64_t most = most_bytes(r, true);
    if (r->range) /* what is said to be larger is not even begun */
        curl_easy_setopt(r->client->curl, CURLOPT_MAXFILESIZE_LARGE,
                         (curl_off_t)(most > r->limit ? most : r->limit));
    if (r->range)
        set_range(r->client->curl, r->range, range);
    else
        curl_easy_setopt(r->client->curl, CURLOPT_NOBODY, 1L);
    CURLcode code = curl_easy_perform(r->client->curl);
    free(url);
    return code == CURLE_OK ? 0 : judge_failure(r, code);
}

int daf__http_get(daf__http_client *c, daf__http_answer *ret, const char *key, const daf__http_range *range,
                  daf_error *err) {
    request r = {.client = c, .key = key, .range = range, .limit = range->bytes, .err = err};
    int rc = perform(&r);
    if (rc == 0)
        rc = judge(&r);
    if (rc)
        daf__buf_free(&r.answer.body);
    else
        *ret = r.answer;
    return rc;
}

int daf__http_size(daf__http_client *c, uint64_t *ret, const char *key, daf_error *err) {
    request r = {.client = c, .key = key, .err = err};
    curl_off_t bytes = -1;
    int rc = perform(&r);
    if (rc)
        return r.status == 405 || r.status == 501 ? DAF_ERR_UNSUPPORTED : rc;
    if (curl_easy_getinfo(c->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &bytes) != CURLE_OK || bytes < 0)
        return fail(&r, DAF_ERR_UNSUPPORTED, "the server does not tell its size");
    *ret = (uint64_t)bytes;
    return 0;
}
