/* Addresses as users write them: tcp://HOST:PORT, tcp://[::1]:PORT, tls://HOST:PORT, unix:PATH. Pure; any thread. */
#ifndef COMMON_WIRE_ADDRESS_H
#define COMMON_WIRE_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

typedef enum wire_address_kind { WIRE_ADDRESS_TCP, WIRE_ADDRESS_UNIX, WIRE_ADDRESS_TLS } wire_address_kind;

enum { WIRE_ADDRESS_TEXT_BYTES = 300 };

typedef struct wire_address {
    wire_address_kind kind;
    char host[256]; /* TCP, TLS: a name, or a number without brackets */
    uint16_t port;  /* TCP, TLS: 0 lets a listener choose */
    char path[108]; /* Unix: as sun_path takes it */
} wire_address;

/* Reads an address.
 * why      [cap] the reason when it is not one ("the port is not a number from 0 to 65535")
 * Returns  0, or -1 (*address is untouched). */
int wire_address_parse(const char *text, wire_address *address, char *why, size_t cap);

/* Writes it again. Returns `text`. */
const char *wire_address_text(const wire_address *address, char text[WIRE_ADDRESS_TEXT_BYTES]);

#endif
