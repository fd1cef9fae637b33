#include "access.h"

#include <string.h>

static int access_read_files(pd_access *access, pd_error *err) {
    const pd_config *config = access->config;
    access->tokens = NULL;
    access->tls = NULL;
    if (*config->tokens_file && pd_tokens_read(&access->tokens, config->tokens_file, err) != 0)
        return -1;
    if (!*config->tls_certificate)
        return 0;
    if (pd_tls_context_create(&access->tls, config, !*config->tokens_file, err) == 0)
        return 0;
    pd_tokens_free(access->tokens);
    access->tokens = NULL;
    return -1;
}

static int access_list(pd_users *users, const char *text, const char *key, pd_error *err) {
    return pd_users_parse(users, text, err) == 0 ? 0 : pd_error_prefix(err, "%s", key);
}

int pd_access_init(pd_access *access, const pd_config *config, pd_error *err) {
    memset(access, 0, sizeof *access);
    access->config = config;
    if (access_list(&access->senders, config->send_users, "send_users", err) != 0 ||
        access_list(&access->controllers, config->control_users, "control_users", err) != 0 ||
        access_list(&access->viewers, config->view_users, "view_users", err) != 0 ||
        pd_rights_parse(config->plain_rights, &access->plain_rights, err) != 0 ||
        pd_rights_parse(config->certificate_rights, &access->certificate_rights, err) != 0)
        return -1;
    return access_read_files(access, err);
}

int pd_access_reload(pd_access *access, pd_error *err) {
    pd_access fresh = *access;
    if (access_read_files(&fresh, err) != 0)
        return -1;
    pd_access_free(access);
    *access = fresh;
    return 0;
}

void pd_access_free(pd_access *access) {
    pd_tokens_free(access->tokens);
    pd_tls_context_free(access->tls);
    access->tokens = NULL;
    access->tls = NULL;
}

unsigned pd_access_sender(const pd_access *access, int fd) {
    return pd_users_has_peer(&access->senders, fd) ? PD_RIGHT_SEND | PD_RIGHT_VIEW : 0;
}

unsigned pd_access_controller(const pd_access *access, int fd) {
    if (pd_users_has_peer(&access->controllers, fd))
        return PD_RIGHT_CONTROL | PD_RIGHT_VIEW;
    return pd_users_has_peer(&access->viewers, fd) ? PD_RIGHT_VIEW : 0;
}
