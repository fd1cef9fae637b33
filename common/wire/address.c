#include "wire/address.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static int address_refuse(char *why, size_t cap, const char *format,
                                                                ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(why, cap, format, list);
    va_end(list);
    return -1;
}

static int address_port(const char *text, uint16_t *port) {
    unsigned value = 0;
    size_t n = strlen(text);
    if (n == 0 || n > 5)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        value = value * 10 + (unsigned)(*text - '0');
    }
    if (value > UINT16_MAX)
        return -1;
    *port = (uint16_t)value;
    return 0;
}

static int address_tcp(const char *rest, wire_address *address, char *why, size_t cap) {
    const char *host = rest, *end, *colon;
    if (*rest == '[') {
        host = rest + 1;
        end = strchr(host, ']');
        if (!end)
            return address_refuse(why, cap, "'[' without ']'");
        colon = end + 1;
    } else {
        end = colon = strchr(rest, ':');
        if (colon && strchr(colon + 1, ':'))
            return address_refuse(why, cap, "an IPv6 address needs brackets: tcp://[::1]:PORT");
    }
    if (!colon || *colon != ':')
        return address_refuse(why, cap, "the port is missing: tcp://HOST:PORT");
    size_t n = (size_t)(end - host);
    if (n == 0 || n >= sizeof address->host)
        return address_refuse(why, cap, "the host is empty or too long");
    uint16_t port;
    if (address_port(colon + 1, &port) != 0)
        return address_refuse(why, cap, "the port is not a number from 0 to 65535");
    *address = (wire_address){.kind = WIRE_ADDRESS_TCP, .port = port};
    memcpy(address->host, host, n);
    return 0;
}

static int address_unix(const char *path, wire_address *address, char *why, size_t cap) {
    size_t n = strlen(path);
    if (n == 0)
        return address_refuse(why, cap, "the path is missing: unix:PATH");
    if (n >= sizeof address->path)
        return address_refuse(why, cap, "the path of a Unix socket may not be longer than %zu bytes",
                              sizeof address->path - 1);
    *address = (wire_address){.kind = WIRE_ADDRESS_UNIX};
    memcpy(address->path, path, n);
    return 0;
}

int wire_address_parse(const char *text, wire_address *address, char *why, size_t cap) {
    if (strncmp(text, "tcp://", 6) == 0)
        return address_tcp(text + 6, address, why, cap);
    if (strncmp(text, "tls://", 6) == 0) {
        if (address_tcp(text + 6, address, why, cap) != 0)
            return -1;
        address->kind = WIRE_ADDRESS_TLS;
        return 0;
    }
    if (strncmp(text, "unix:", 5) == 0)
        return address_unix(text + 5, address, why, cap);
    return address_refuse(why, cap, "an address is tcp://HOST:PORT, tls://HOST:PORT or unix:PATH");
}

const char *wire_address_text(const wire_address *address, char text[WIRE_ADDRESS_TEXT_BYTES]) {
    bool brackets = strchr(address->host, ':') != NULL;
    if (address->kind == WIRE_ADDRESS_UNIX)
        snprintf(text, WIRE_ADDRESS_TEXT_BYTES, "unix:%s", address->path);
    else
        snprintf(text, WIRE_ADDRESS_TEXT_BYTES, "%s://%s%s%s:%u",
                 address->kind == WIRE_ADDRESS_TLS ? "tls" : "tcp", brackets ? "[" : "", address->host,
                 brackets ? "]" : "", (unsigned)address->port);
    return text;
}
