/* Element types and codecs by name. */
#include "type.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    size_t bytes;
} types[DAF_N_TYPES] = {
#define ROW(name, text, bytes) [DAF_##name] = {text, bytes},
    DAF_TYPE_MAP(ROW)
#undef ROW
};

static const daf__codec_row codecs[] = {
    {DAF_CODEC_ZSTD, "zstd", 93, 1, 22},
    {DAF_CODEC_GZIP, "gzip", 8, 1, 9},
    {DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE, "blosc_zstd_bitshuffle", 0, 1, 9},
    {DAF_CODEC_BLOSC_LZ4_BITSHUFFLE, "blosc_lz4_bitshuffle", 0, 1, 9},
};
enum { N_CODECS = sizeof codecs / sizeof codecs[0] };

size_t daf_type_bytes(daf_type type) {
    return (unsigned)type < DAF_N_TYPES ? types[type].bytes : 0;
}

const char *daf_type_name(daf_type type) {
    return (unsigned)type < DAF_N_TYPES ? types[type].name : NULL;
}

int daf_type_parse(daf_type *ret, const char *name) {
    for (unsigned i = 0; i < DAF_N_TYPES; i++) {
        if (strcasecmp(types[i].name, name) == 0) {
            *ret = (daf_type)i;
            return 0;
        }
    }
    if (strcasecmp(name, "int") != 0)
        return DAF_ERR_TYPE;
    *ret = DAF_INT64;
    return 0;
}

bool daf__type_is_signed(daf_type type) {
    return type >= DAF_INT8 && type <= DAF_INT64;
}

bool daf__type_is_unsigned(daf_type type) {
    return type >= DAF_UINT8 && type <= DAF_UINT64;
}

bool daf__type_is_float(daf_type type) {
    return type == DAF_FLOAT32 || type == DAF_FLOAT64;
}

const daf__codec_row *daf__codec_row_of(daf_codec codec) {
    for (unsigned i = 0; i < N_CODECS; i++)
        if (codecs[i].codec == codec)
            return &codecs[i];
    return NULL;
}

const char *daf_codec_name(daf_codec codec) {
    const daf__codec_row *row = daf__codec_row_of(codec);
    return row ? row->name : NULL;
}

int daf_codec_parse(daf_codec *ret, const char *name) {
    for (unsigned i = 0; i < N_CODECS; i++) {
        if (strcmp(codecs[i].name, name) == 0) {
            *ret = codecs[i].codec;
            return 0;
        }
    }
    return DAF_ERR_UNSUPPORTED;
}
