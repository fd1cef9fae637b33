/* Who may do what, as the configuration and its files say: users at Unix sockets, certificates and tokens over TLS.
 * Thread: the loop's. */
#ifndef PD_ACCESS_H
#define PD_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "rights.h"
#include "tls.h"
#include "tokens.h"
#include "users.h"

typedef struct pd_access {
    const pd_config *config;
    pd_users senders, controllers, viewers;
    unsigned plain_rights;       /* of TCP without TLS */
    unsigned certificate_rights; /* of a client with a certificate */
    pd_tokens *tokens;           /* NULL: none are configured */
    pd_tls_context *tls;         /* NULL: no certificate is configured */
} pd_access;

/* Reads all that the configuration names. Returns 0, or -1 with err. */
PD_MUST_USE int pd_access_init(pd_access *access, const pd_config *config, pd_error *err);

/* Reads the files of tokens and certificates again: all of them, or with -1 and err none. For connections from now on;
 * the server looks after those there are (pd_server_access_changed()). */
PD_MUST_USE int pd_access_reload(pd_access *access, pd_error *err);

void pd_access_free(pd_access *access);

/* The rights of the process at the other end of a Unix socket, for events and for control. */
unsigned pd_access_sender(const pd_access *access, int fd);
unsigned pd_access_controller(const pd_access *access, int fd);

#endif
