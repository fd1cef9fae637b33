#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/utf8.h"

static size_t format_float(char *text, size_t cap, double value, int digits_low, int digits_high,
                           bool single) {
    if (isnan(value))
        return (size_t)snprintf(text, cap, "nan");
    if (isinf(value))
        return (size_t)snprintf(text, cap, value < 0 ? "-inf" : "inf");
    if (value == 0 && signbit(value)) /* "-0" would be read as an integer, without its sign */
        return (size_t)snprintf(text, cap, "-0.0");
    int n = 0;
    for (int digits = digits_low; digits <= digits_high; digits++) {
        n = snprintf(text, cap, "%.*g", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            break;
    }
    return (size_t)n;
}

static uint64_t load_unsigned(const void *value, size_t item_bytes) {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (item_bytes) {
    case 1:
        memcpy(&u8, value, 1);
        return u8;
    case 2:
        memcpy(&u16, value, 2);
        return u16;
    case 4:
        memcpy(&u32, value, 4);
        return u32;
    default:
        memcpy(&u64, value, 8);
        return u64;
    }
}

/* By hand: files hold many numbers. */
static size_t format_integer(char *text, size_t cap, bool negative, uint64_t magnitude) {
    char digits[21];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + magnitude % 10);
    while ((magnitude /= 10) > 0);
    if (negative)
        digits[--at] = '-';
    size_t n = sizeof digits - at;
    if (cap > 0) {
        size_t kept = n < cap ? n : cap - 1;
        memcpy(text, digits + at, kept);
        text[kept] = 0;
    }
    return n;
}

size_t cli_format_number(char *text, size_t cap, char kind, size_t item_bytes, const void *value) {
    if (kind == 'f' && item_bytes == 4) {
        float f;
        memcpy(&f, value, sizeof f);
        return format_float(text, cap, (double)f, 6, 9, true);
    }
    if (kind == 'f') {
        double d;
        memcpy(&d, value, sizeof d);
        return format_float(text, cap, d, 15, 17, false);
    }
    uint64_t u = load_unsigned(value, item_bytes);
    if (kind == 'b')
        return (size_t)snprintf(text, cap, "%s", u ? "true" : "false");
    if (kind == 'u')
        return format_integer(text, cap, false, u);
    unsigned shift = 64 - 8 * (unsigned)item_bytes;
    int64_t i = (int64_t)(u << shift) >> shift;
    return format_integer(text, cap, i < 0, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
}

int cli_write_lines(FILE *out, char kind, size_t item_bytes, const void *values, size_t n) {
    char text[48];
    for (size_t i = 0; i < n; i++) {
        size_t k = cli_format_number(text, sizeof text - 1, kind, item_bytes,
                                     (const uint8_t *)values + i * item_bytes);
        text[k++] = '\n';
        if (fwrite(text, 1, k, out) != k)
            return -1;
    }
    return 0;
}

int cli_write_raw(FILE *out, size_t item_bytes, const void *values, size_t n) {
    if (BYTES_HOST_IS_LITTLE)
        return n == 0 || fwrite(values, item_bytes, n, out) == n ? 0 : -1;
    for (size_t i = 0; i < n; i++) {
        uint8_t item[8];
        bytes_copy_le(item, (const uint8_t *)values + i * item_bytes, 1, item_bytes);
        if (fwrite(item, 1, item_bytes, out) != item_bytes)
            return -1;
    }
    return 0;
}

int cli_write_json_text(FILE *out, const char *text, size_t bytes) {
    static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
    fputc('"', out);
    for (size_t i = 0; i < bytes;) {
        unsigned char c = (unsigned char)text[i];
        const char *special = c ? strchr(plain, c) : NULL;
        size_t n = common_utf8_sequence(text + i, bytes - i);
        if (special)
            fprintf(out, "\\%c", escaped[special - plain]);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", (unsigned)c);
        else if (n == 0)
            fputs("\xEF\xBF\xBD", out);
        else
            fwrite(text + i, 1, n, out);
        i += n ? n : 1;
    }
    fputc('"', out);
    return ferror(out) ? -1 : 0;
}

int cli_write_json_string(FILE *out, const char *text) {
    return cli_write_json_text(out, text, strlen(text));
}

void cli_write_printable(FILE *out, const char *text, size_t bytes) {
    char piece[512];
    size_t used = 0;
    for (size_t at = 0, taken; at < bytes; at += taken) {
        if (used + COMMON_PRINTABLE_MAX > sizeof piece) {
            fwrite(piece, 1, used, out);
            used = 0;
        }
        used += common_printable_next(text + at, bytes - at, piece + used, &taken);
    }
    fwrite(piece, 1, used, out);
}

void cli_vprint_line(FILE *out, const char *format, va_list args) {
    char *text;
    int n = vasprintf(&text, format, args);
    if (n < 0) {
        fputs("out of memory\n", out);
        return;
    }
    cli_write_printable(out, text, (size_t)n);
    fputc('\n', out);
    free(text);
}

void cli_print_line(FILE *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    cli_vprint_line(out, format, args);
    va_end(args);
}

void cli_begin(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_PATH) < 0)
            return;
}

/* Why standard output could not be written, the first time; 0: it could, or nobody looked in time. */
static int stdout_errno;

int cli_stdout_failed(void) {
    if (stdout_errno == 0)
        stdout_errno = errno;
    return CLI_USAGE;
}

int cli_flush_stdout(void) {
    if (fflush(stdout) != 0)
        return cli_stdout_failed();
    return ferror(stdout) ? CLI_USAGE : 0;
}

int cli_finish(const char *program, int code) {
    if (cli_flush_stdout() == 0)
        return code;
    if (stdout_errno != EPIPE)
        cli_print_line(stderr, "%s: standard output could not be written whole%s%s", program,
                       stdout_errno ? ": " : "", stdout_errno ? strerror(stdout_errno) : "");
    return CLI_USAGE;
}
