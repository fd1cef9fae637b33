/* Options, their environment variables and defaults (specification section 15). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "handle.h"

enum {
    DEFAULT_LEVEL = 5,
    DEFAULT_TARGET_CHUNK_KB = 8,
    DEFAULT_LOCAL_CACHE_KB = 65536,
    DEFAULT_HTTP_CACHE_KB = 262144,
    DEFAULT_HTTP_GAP_KB = 8,
    DEFAULT_HTTP_TIMEOUT_S = 30,
    MAX_HTTP_GAP_KB = 1 << 16,
    MAX_HTTP_TIMEOUT_S = 1 << 16,
    MAX_REDIRECTS = 5,
    KB = 1024,
    MAX_LEVEL = 22
};
#define DEFAULT_CODEC DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE
#define HTTP_MAX_WHOLE_BYTES ((uint64_t)1 << 30)
#define DEFAULT_ZIP_MAX_BYTES ((uint64_t)1 << 37)
#define MAX_TARGET_CHUNK_KB (DAF__MAX_CHUNK_BYTES / KB)

void daf_options_init(daf_options *options) {
    *options = (daf_options){.codec = DAF_CODEC_DEFAULT};
}

void daf_set_options_init(daf_set_options *options) {
    *options = (daf_set_options){.packing = DAF_PACK_AS_OPENED};
}

static int environment_number(uint64_t *ret, const char *name, uint64_t fallback, uint64_t most,
                              daf_error *err) {
    const char *text = getenv(name);
    if (!text || !*text) {
        *ret = fallback;
        return 0;
    }
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || v < 1 || v > most)
        return daf__fail(err, DAF_ERR_ARG, 0, 0,
                         "environment variable %s: \"%.60s\" is no number from 1 to %llu", name, text,
                         (unsigned long long)most);
    *ret = v;
    return 0;
}

static int environment_codec(daf_codec *ret, daf_error *err) {
    static const char name[] = "DAF_PACKED_COMPRESSION";
    const char *text = getenv(name);
    if (!text || !*text) {
        *ret = DEFAULT_CODEC;
        return 0;
    }
    if (daf_codec_parse(ret, text) != 0)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "environment variable %s: \"%.60s\" is no known compression",
                         name, text);
    return 0;
}

/* An option, or the environment's number, or our own. */
static int number_or(uint64_t *ret, uint64_t option, const char *name, uint64_t fallback, uint64_t most,
                     daf_error *err) {
    if (option == 0)
        return environment_number(ret, name, fallback, most, err);
    if (option > most)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "the option for %s is more than %llu", name,
                         (unsigned long long)most);
    *ret = option;
    return 0;
}

static int init_http(daf__settings *s, const daf_options *o, daf_error *err) {
    uint64_t cache_kb = 0, gap_kb = 0, timeout_s = 0;
    int rc = number_or(&cache_kb, o->http_cache_kb, "DAF_PACKED_HTTP_CACHE_KB", DEFAULT_HTTP_CACHE_KB,
                       UINT32_MAX, err);
    if (rc == 0)
        rc = number_or(&gap_kb, o->http_max_coalesce_gap_kb, "DAF_HTTP_MAX_COALESCE_GAP_KB",
                       DEFAULT_HTTP_GAP_KB, MAX_HTTP_GAP_KB, err);
    if (rc == 0)
        rc = number_or(&timeout_s, o->http_timeout_s, "DAF_HTTP_TIMEOUT_S", DEFAULT_HTTP_TIMEOUT_S,
                       MAX_HTTP_TIMEOUT_S, err);
    const char *ca_file = o->http_ca_file ? o->http_ca_file : getenv("DAF_HTTP_CA_FILE");
    s->http_cache_bytes = cache_kb * KB;
    s->http = (daf__http_settings){.gap_bytes = (uint32_t)(gap_kb * KB),
                                   .limits = {.ca_file = ca_file && *ca_file ? ca_file : NULL,
                                              .connect_timeout_s = (unsigned)timeout_s,
                                              .stall_timeout_s = (unsigned)timeout_s,
                                              .max_redirects = MAX_REDIRECTS,
                                              .max_whole_bytes = HTTP_MAX_WHOLE_BYTES}};
    return rc;
}

int daf__settings_init(daf__settings *ret, const daf_options *options, daf_error *err) {
    daf__settings s = {.packed = options->packed,
                       .codec = options->codec,
                       .level = options->level,
                       .pack_rule = options->pack_rule,
                       .non_finite_scalars = options->non_finite_scalars,
                       .copies = options->copies,
                       .zip_max_bytes = options->zip_max_bytes};
    uint64_t level = 0, target_kb = options->target_chunk_kb, cache_kb = options->local_cache_kb;
    int rc = 0;
    if (s.codec == DAF_CODEC_DEFAULT)
        rc = environment_codec(&s.codec, err);
    if (rc == 0 && (s.level < 0 || s.level > MAX_LEVEL))
        rc = daf__fail(err, DAF_ERR_ARG, 0, 0, "level %d is not from 1 to %d", s.level, MAX_LEVEL);
    if (rc == 0 && s.level == 0) {
        rc = environment_number(&level, "DAF_PACKED_COMPRESSION_LEVEL", DEFAULT_LEVEL, MAX_LEVEL, err);
        s.level = (int)level;
    }
    if (rc == 0 && target_kb == 0)
        rc = environment_number(&target_kb, "DAF_PACKED_TARGET_CHUNK_KB", DEFAULT_TARGET_CHUNK_KB,
                                MAX_TARGET_CHUNK_KB, err);
    if (rc == 0 && target_kb > MAX_TARGET_CHUNK_KB)
        rc = daf__fail(err, DAF_ERR_ARG, 0, 0, "target_chunk_kb %llu is more than %llu",
                       (unsigned long long)target_kb, (unsigned long long)MAX_TARGET_CHUNK_KB);
    if (rc == 0 && cache_kb == 0)
        rc = environment_number(&cache_kb, "DAF_PACKED_LOCAL_CACHE_KB", DEFAULT_LOCAL_CACHE_KB, UINT32_MAX,
                                err);
    s.target_chunk_bytes = target_kb * KB;
    s.cache_bytes = cache_kb * KB;
    if (rc == 0 && s.zip_max_bytes == 0)
        rc = environment_number(&s.zip_max_bytes, "DAF_ZIP_MAX_FILE_SIZE", DEFAULT_ZIP_MAX_BYTES, INT64_MAX,
                                err);
    if (rc == 0)
        rc = init_http(&s, options, err);
    if (rc == 0)
        *ret = s;
    return rc;
}
