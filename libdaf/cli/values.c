/* Arguments and values as text. */
#include <math.h>
#include <string.h>

#include "command.h"

int target_parse(target *ret, int argc, char **argv) {
    static const struct {
        const char *word;
        target_kind kind;
        int n;
    } forms[] = {{"scalar", TARGET_SCALAR, 2},
                 {"axis", TARGET_AXIS, 2},
                 {"vector", TARGET_VECTOR, 3},
                 {"matrix", TARGET_MATRIX, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (argc < forms[i].n || strcmp(argv[0], forms[i].word) != 0)
            continue;
        *ret = (target){.kind = forms[i].kind, .name = argv[forms[i].n - 1]};
        if (forms[i].n >= 3)
            ret->axis = argv[1];
        if (forms[i].n == 4)
            ret->columns = argv[2];
        return forms[i].n;
    }
    return 0;
}

int format_parse(value_format *ret, const char *name) {
    static const char *const names[N_FORMATS] = {"text", "csv", "raw", "npy", "json", "npz"};
    for (int i = 0; i < N_FORMATS; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = (value_format)i;
            return 0;
        }
    }
    return -1;
}

char type_letter(daf_type type) {
    if (type == DAF_BOOL)
        return 'b';
    if (type == DAF_FLOAT32 || type == DAF_FLOAT64)
        return 'f';
    return type >= DAF_UINT8 ? 'u' : 'i';
}

void print_json_string(FILE *out, const char *text) {
    cli_write_json_string(out, text);
}

static const char *non_finite(daf_type type, const void *value) {
    double d = 0;
    float f = 0;
    if (type == DAF_FLOAT64)
        memcpy(&d, value, sizeof d);
    if (type == DAF_FLOAT32) {
        memcpy(&f, value, sizeof f);
        d = (double)f;
    }
    if (isfinite(d))
        return NULL;
    return isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity";
}

static void print_number(FILE *out, daf_type type, const void *value) {
    char text[48];
    cli_format_number(text, sizeof text, type_letter(type), daf_type_bytes(type), value);
    fputs(text, out);
}

void print_json_number(FILE *out, daf_type type, const void *value) {
    const char *word = non_finite(type, value);
    if (word)
        print_json_string(out, word);
    else
        print_number(out, type, value);
}

static const void *element(const daf_array *a, uint64_t i) {
    return (const uint8_t *)daf_array_values(a) + i * daf_type_bytes(daf_array_type(a));
}

void print_json_element(FILE *out, const daf_array *a, uint64_t i) {
    if (daf_array_type(a) == DAF_STRING)
        print_json_string(out, daf_array_strings(a)[i]);
    else
        print_json_number(out, daf_array_type(a), element(a, i));
}

void print_text_element(FILE *out, const daf_array *a, uint64_t i) {
    if (daf_array_type(a) == DAF_STRING)
        fputs(daf_array_strings(a)[i], out);
    else
        print_number(out, daf_array_type(a), element(a, i));
}

void print_csv_text(FILE *out, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *p = text; *p; p++) {
        if (*p == '"')
            fputc('"', out);
        fputc(*p, out);
    }
    fputc('"', out);
}

void print_csv_element(FILE *out, const daf_array *a, uint64_t i) {
    if (daf_array_type(a) == DAF_STRING)
        print_csv_text(out, daf_array_strings(a)[i]);
    else
        print_number(out, daf_array_type(a), element(a, i));
}

size_t scalar_bytes(const daf_scalar *scalar, uint8_t bytes[8]) {
    size_t n = daf_type_bytes(scalar->type);
    uint64_t word = scalar->value.u; /* integers: two's complement, the low bytes count */
    if (scalar->type == DAF_BOOL)
        word = scalar->value.b;
    if (scalar->type == DAF_FLOAT64)
        memcpy(&word, &scalar->value.f, sizeof word);
    if (scalar->type == DAF_FLOAT32) {
        float f = (float)scalar->value.f;
        uint32_t half;
        memcpy(&half, &f, sizeof half);
        word = half;
    }
    if (n == 1)
        memcpy(bytes, &(uint8_t){(uint8_t)word}, n);
    else if (n == 2)
        memcpy(bytes, &(uint16_t){(uint16_t)word}, n);
    else if (n == 4)
        memcpy(bytes, &(uint32_t){(uint32_t)word}, n);
    else
        memcpy(bytes, &word, n);
    return n;
}

void print_json_scalar(FILE *out, const daf_scalar *scalar) {
    uint8_t bytes[8];
    if (scalar->type == DAF_STRING) {
        cli_write_json_text(out, scalar->value.s.text, scalar->value.s.bytes);
        return;
    }
    scalar_bytes(scalar, bytes);
    print_json_number(out, scalar->type, bytes);
}
