/* The header: tags of 48 bytes, some followed by what does not fit in them. */
#include "ptu.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/utf8.h"
#include "cli/output.h"

enum { NAME_BYTES = 32, TAG_BYTES = 48, VALUE_TEXT = 64 };

#define TAG_EMPTY UINT32_C(0xFFFF0008)
#define TAG_BOOL UINT32_C(0x00000008)
#define TAG_INTEGER UINT32_C(0x10000008)
#define TAG_BITS UINT32_C(0x11000008)
#define TAG_COLOUR UINT32_C(0x12000008)
#define TAG_FLOAT UINT32_C(0x20000008)
#define TAG_TIME UINT32_C(0x21000008)
#define TAG_FLOATS UINT32_C(0x2001FFFF)
#define TAG_ANSI UINT32_C(0x4001FFFF)
#define TAG_WIDE UINT32_C(0x4002FFFF)
#define TAG_BLOB UINT32_C(0xFFFFFFFF)

typedef struct ptu_tag {
    uint64_t offset;
    char name[NAME_BYTES + 1];
    int32_t index; /* -1: none */
    uint32_t type;
    uint64_t value; /* the number's bits, or how many bytes follow */
} ptu_tag;

typedef struct header_job {
    ptu_input *in;
    ptu_tag_fn *on_tag;
    void *ctx;
    ptu_header header;
    ptu_fault *fault;
    unsigned n_tags;
} header_job;

static int __attribute__((format(printf, 3, 4)))
header_fault(header_job *job, uint64_t offset, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(job->fault->text, sizeof job->fault->text, format, args);
    va_end(args);
    job->fault->offset = offset;
    return -1;
}

int64_t ptu_read(ptu_input *in, void *buffer, size_t bytes) {
    size_t have = 0;
    while (have < bytes) {
        int64_t n = in->read(in->ctx, (uint8_t *)buffer + have, bytes - have);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            break;
        have += (size_t)n;
        in->offset += (uint64_t)n;
    }
    return (int64_t)have;
}

/* Exactly so many bytes of the header. */
static int header_read(header_job *job, void *buffer, size_t bytes, const char *what) {
    uint64_t offset = job->in->offset;
    int64_t n = ptu_read(job->in, buffer, bytes);
    if (n < 0)
        return header_fault(job, offset, "cannot be read: %s", strerror((int)-n));
    if ((size_t)n < bytes)
        return header_fault(job, offset + (uint64_t)n, "the file ends in its header, within %s", what);
    return 0;
}

/* ---- values as text ---- */

static double as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Days since the end of 1899, local time of the instrument's computer. */
static void time_text(double days, char *text, size_t cap) {
    static const double unix_epoch = 25569, last = 2958466; /* 1970, 10000 */
    if (!(days >= 1 && days < last)) {
        cli_format_number(text, cap, 'f', 8, &days);
        return;
    }
    int64_t ms = llround((days - unix_epoch) * 86400e3);
    int64_t part = ((ms % 1000) + 1000) % 1000;
    time_t seconds = (time_t)((ms - part) / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    snprintf(text, cap, "%04d-%02d-%02dT%02d:%02d:%02d.%03d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min, tm.tm_sec, (int)part);
}

static void number_text(const ptu_tag *tag, char *text, size_t cap) {
    double number = as_double(tag->value);
    switch (tag->type) {
    case TAG_BOOL:
        snprintf(text, cap, "%s", tag->value ? "true" : "false");
        break;
    case TAG_INTEGER:
        snprintf(text, cap, "%" PRId64, (int64_t)tag->value);
        break;
    case TAG_BITS:
    case TAG_COLOUR:
        snprintf(text, cap, "0x%016" PRIX64, tag->value);
        break;
    case TAG_FLOAT:
        cli_format_number(text, cap, 'f', 8, &number);
        break;
    case TAG_TIME:
        time_text(number, text, cap);
        break;
    default:
        text[0] = 0;
    }
}

static size_t put_utf8(char *to, uint32_t c) {
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 63));
        to[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63));
    to[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* UTF-8 where it is, else taken as Latin-1; up to the first NUL. text: twice the bytes and one. */
static void ansi_text(const uint8_t *bytes, size_t n, char *text) {
    size_t used = 0;
    n = strnlen((const char *)bytes, n);
    bool utf8 = common_utf8_valid((const char *)bytes, n);
    for (size_t i = 0; i < n; i++)
        if (utf8)
            text[used++] = (char)bytes[i];
        else
            used += put_utf8(text + used, bytes[i]);
    text[used] = 0;
}

/* UTF-16, little-endian, up to the first NUL; a lone surrogate becomes U+FFFD. text: twice the bytes and one. */
static void wide_text(const uint8_t *bytes, size_t n, char *text) {
    size_t used = 0;
    for (size_t i = 0; i + 2 <= n; i += 2) {
        uint32_t c = bytes_load16(bytes + i);
        if (c == 0)
            break;
        if (c >= 0xD800 && c < 0xE000) {
            uint32_t low = i + 4 <= n ? bytes_load16(bytes + i + 2) : 0;
            bool pair = c < 0xDC00 && low >= 0xDC00 && low < 0xE000;
            c = pair ? 0x10000 + ((c & 0x3FF) << 10 | (low & 0x3FF)) : 0xFFFD;
            i += pair ? 2 : 0;
        }
        used += put_utf8(text + used, c);
    }
    text[used] = 0;
}

/* "[1, 2.5]". text: VALUE_TEXT for every number, and 3. */
static void floats_text(const uint8_t *bytes, size_t n, char *text) {
    size_t used = 0;
    text[used++] = '[';
    for (size_t i = 0; i + 8 <= n; i += 8) {
        double value = as_double(bytes_load64(bytes + i));
        if (i > 0) {
            text[used++] = ',';
            text[used++] = ' ';
        }
        used += cli_format_number(text + used, VALUE_TEXT - 2, 'f', 8, &value);
    }
    text[used++] = ']';
    text[used] = 0;
}

static void blob_text(const uint8_t *bytes, size_t n, char *text) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * n] = 0;
}

/* ---- tags ---- */

static int give_tag(header_job *job, const ptu_tag *tag, const char *value) {
    char key[NAME_BYTES + 16];
    if (tag->index >= 0)
        snprintf(key, sizeof key, "%s(%" PRId32 ")", tag->name, tag->index);
    else
        snprintf(key, sizeof key, "%s", tag->name);
    return job->on_tag(job->ctx, key, value);
}

static bool has_bytes(uint32_t type) {
    return type == TAG_FLOATS || type == TAG_ANSI || type == TAG_WIDE || type == TAG_BLOB;
}

static int skip_bytes(header_job *job, const ptu_tag *tag) {
    char value[VALUE_TEXT];
    uint8_t buffer[4096];
    for (uint64_t left = tag->value; left > 0;) {
        size_t n = left < sizeof buffer ? (size_t)left : sizeof buffer;
        if (header_read(job, buffer, n, tag->name) != 0)
            return -1;
        left -= n;
    }
    snprintf(value, sizeof value, "(%" PRIu64 " bytes)", tag->value);
    return give_tag(job, tag, value);
}

static int take_bytes(header_job *job, const ptu_tag *tag) {
    if (tag->value > PTU_TAG_BYTES_MAX)
        return header_fault(job, tag->offset, "tag %s claims %" PRIu64 " bytes, at most %d are believed",
                            tag->name, tag->value, PTU_TAG_BYTES_MAX);
    if (tag->value > PTU_KEPT_BYTES_MAX)
        return skip_bytes(job, tag);
    size_t n = (size_t)tag->value, room = tag->type == TAG_FLOATS ? n / 8 * VALUE_TEXT + 3 : 2 * n + 1;
    uint8_t *bytes = malloc(n + 1);
    char *text = malloc(room);
    int rc = bytes && text ? header_read(job, bytes, n, tag->name)
                           : header_fault(job, tag->offset, "out of memory");
    if (rc == 0) {
        (tag->type == TAG_ANSI     ? ansi_text
         : tag->type == TAG_WIDE   ? wide_text
         : tag->type == TAG_FLOATS ? floats_text
                                   : blob_text)(bytes, n, text);
        rc = give_tag(job, tag, text);
    }
    free(bytes);
    free(text);
    return rc;
}

/* What the records are read by. */
static int note_tag(header_job *job, const ptu_tag *tag) {
    ptu_header *h = &job->header;
    bool integer = tag->type == TAG_INTEGER, real = tag->type == TAG_FLOAT;
    double number = as_double(tag->value);
    if (integer && strcmp(tag->name, "TTResultFormat_TTTRRecType") == 0) {
        h->format = ptu_find_format((int64_t)tag->value);
        if (!h->format)
            return header_fault(job, tag->offset,
                                "record type 0x%08" PRIX64 " (TTResultFormat_TTTRRecType) is not known",
                                tag->value);
    } else if (integer && strcmp(tag->name, "TTResultFormat_BitsPerRecord") == 0 && tag->value != 32) {
        return header_fault(job, tag->offset, "records of %" PRId64 " bits are not known, only of 32",
                            (int64_t)tag->value);
    } else if (integer && strcmp(tag->name, "TTResult_NumberOfRecords") == 0 && (int64_t)tag->value >= 0) {
        h->has_n_records = true;
        h->n_records = tag->value;
    } else if (real && strcmp(tag->name, "MeasDesc_GlobalResolution") == 0 && isfinite(number) &&
               number > 0) {
        h->global_resolution_s = number;
    } else if (real && strcmp(tag->name, "MeasDesc_Resolution") == 0 && isfinite(number) && number > 0) {
        h->resolution_s = number;
    }
    return 0;
}

static int read_tag(header_job *job, ptu_tag *ret) {
    uint8_t bytes[TAG_BYTES];
    ptu_tag tag = {.offset = job->in->offset};
    if (header_read(job, bytes, sizeof bytes, "a tag") != 0)
        return -1;
    memcpy(tag.name, bytes, NAME_BYTES);
    if (tag.name[0] == 0)
        return header_fault(job, tag.offset, "a tag without a name: the header is damaged");
    for (char *p = tag.name; *p; p++)
        if (*p < 0x20 || *p > 0x7E) /* a PicoHarp's software has been seen to write such names */
            *p = '_';
    tag.index = (int32_t)bytes_load32(bytes + 32);
    tag.type = bytes_load32(bytes + 36);
    tag.value = bytes_load64(bytes + 40);
    *ret = tag;
    return 0;
}

static int take_tag(header_job *job, const ptu_tag *tag) {
    static const uint32_t numbers[] = {TAG_EMPTY,  TAG_BOOL,  TAG_INTEGER, TAG_BITS,
                                       TAG_COLOUR, TAG_FLOAT, TAG_TIME};
    char value[VALUE_TEXT];
    if (has_bytes(tag->type))
        return take_bytes(job, tag);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (tag->type == numbers[i]) {
            number_text(tag, value, sizeof value);
            int rc = note_tag(job, tag);
            return rc == 0 ? give_tag(job, tag, value) : rc;
        }
    return header_fault(job, tag->offset, "tag %s is of unknown type 0x%08" PRIX32, tag->name, tag->type);
}

static int read_tags(header_job *job) {
    ptu_tag tag;
    for (;;) {
        if (++job->n_tags > PTU_TAGS_MAX || job->in->offset > PTU_HEADER_BYTES_MAX)
            return header_fault(job, job->in->offset, "the header does not end within %d tags and %d bytes",
                                PTU_TAGS_MAX, PTU_HEADER_BYTES_MAX);
        if (read_tag(job, &tag) != 0)
            return -1;
        if (strcmp(tag.name, "Header_End") == 0)
            return 0;
        int rc = take_tag(job, &tag);
        if (rc != 0)
            return rc;
    }
}

int ptu_read_header(ptu_input *in, ptu_tag_fn *on_tag, void *ctx, ptu_header *ret, ptu_fault *fault) {
    header_job job = {.in = in, .on_tag = on_tag, .ctx = ctx, .fault = fault};
    uint8_t head[16];
    if (header_read(&job, head, sizeof head, "its first 16 bytes") != 0)
        return -1;
    if (memcmp(head, "PQTTTR\0", 8) != 0)
        return header_fault(&job, 0, "no PTU file: it does not begin with PQTTTR");
    int rc = read_tags(&job);
    if (rc != 0)
        return rc;
    if (!job.header.format)
        return header_fault(&job, in->offset,
                            "the header does not say what its records are (TTResultFormat_TTTRRecType)");
    job.header.records_offset = in->offset;
    *ret = job.header;
    return 0;
}
