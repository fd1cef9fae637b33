#include <stdio.h>
#include <string.h>

#include "internal.h"

const char *photon_client_error_name(int code) {
    switch (code) {
    case PHOTON_CLIENT_OK:
        return "OK";
#define ERROR_NAME(number, name, text)                                                                       \
    case number:                                                                                             \
        return #name;
        PHOTON_CLIENT_ERROR_MAP(ERROR_NAME)
#undef ERROR_NAME
    default:
        return "UNKNOWN";
    }
}

const char *photon_client_error_text(int code) {
    switch (code) {
    case PHOTON_CLIENT_OK:
        return "done";
#define ERROR_TEXT(number, name, text)                                                                       \
    case number:                                                                                             \
        return text;
        PHOTON_CLIENT_ERROR_MAP(ERROR_TEXT)
#undef ERROR_TEXT
    default:
        return "not an error of this library";
    }
}

const char *photon_client_server_code_name(uint32_t server_code) {
    const ProtobufCEnumValue *value = NULL;
    if (server_code <= INT32_MAX)
        value = protobuf_c_enum_descriptor_get_value(&photon__error_code__descriptor, (int)server_code);
    return value ? value->name : "ERROR_?";
}

__attribute__((format(printf, 4, 0))) static int error_fill(photon_client_error *err, int code, int os_errno,
                                                            const char *format, va_list list) {
    if (err) {
        *err = (photon_client_error){.code = code, .os_errno = os_errno};
        vsnprintf(err->text, sizeof err->text, format, list);
        size_t n = strlen(err->text);
        if (os_errno && n < sizeof err->text)
            snprintf(err->text + n, sizeof err->text - n, ": %s", strerror(os_errno));
    }
    return code;
}

int client__error(photon_client_error *err, int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    error_fill(err, code, 0, format, list);
    va_end(list);
    return code;
}

int client__os_error(photon_client_error *err, int code, int os_errno, const char *format, ...) {
    va_list list;
    va_start(list, format);
    error_fill(err, code, os_errno, format, list);
    va_end(list);
    return code;
}

int client__refused(photon_client_error *err, const Photon__Error *error) {
    if (err) {
        *err = (photon_client_error){.code = PHOTON_CLIENT_ERR_REFUSED,
                                     .server_code = (uint32_t)error->code,
                                     .scope = (uint32_t)error->scope,
                                     .retry_after_ms = error->retry_after_ms,
                                     .sequence = error->sequence};
        snprintf(err->field, sizeof err->field, "%s", error->field);
        snprintf(err->text, sizeof err->text, "the server refused it: %s (%s%s%s)", error->text,
                 photon_client_server_code_name(err->server_code), *error->field ? ", " : "", err->field);
    }
    return PHOTON_CLIENT_ERR_REFUSED;
}

int client__copy_error(photon_client_error *err, const photon_client_error *from) {
    if (err)
        *err = *from;
    return from->code;
}
