#include "listener.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "unix_socket.h"

enum { LISTENER_BACKLOG = 128 };

static void listener_rejected(uv_handle_t *handle);

/* Accepts what waits and closes it. libuv listens no further until what it has was accepted. */
static void listener_reject(pd_listener *l) {
    if (l->rejecting || uv_is_closing(&l->uv.handle))
        return;
    if (l->address.kind != WIRE_ADDRESS_UNIX)
        uv_tcp_init(l->uv.handle.loop, &l->reject.tcp);
    else
        uv_pipe_init(l->uv.handle.loop, &l->reject.pipe, 0);
    l->reject.handle.data = l;
    l->rejecting = true;
    l->reject_more = uv_accept(&l->uv.stream, &l->reject.stream) == 0;
    uv_close(&l->reject.handle, listener_rejected);
}

static void listener_rejected(uv_handle_t *handle) {
    pd_listener *l = handle->data;
    l->rejecting = false;
    if (l->reject_more)
        listener_reject(l);
}

static void listener_knock(uv_stream_t *stream, int status) {
    pd_listener *l = stream->data;
    bool secure = l->address.kind == WIRE_ADDRESS_TLS;
    int failed = status < 0 ? status : pd_connection_accept(l->server, stream, secure);
    if (!failed)
        return;
    pd_log(PD_LOG_ERROR, "a connection could not be accepted: %s", uv_strerror(failed));
    if (failed == UV_ENOMEM)
        listener_reject(l);
}

static bool address_is_loopback(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

static int listener_refuse_remote(const pd_listener *l, pd_error *err) {
    return pd_error_set(err,
                        "%s is not an address of this machine alone: without TLS anyone on the network may "
                        "read, forge and send; use tls://, or \"allow_insecure_remote\": true",
                        l->address.host);
}

/* Before the loop runs, so that it may wait. */
static int address_resolve(const wire_address *address, struct addrinfo **ret, pd_error *err) {
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    snprintf(port, sizeof port, "%u", address->port);
    int failed = getaddrinfo(address->host, port, &hints, ret);
    if (failed)
        return pd_error_set(err, "the host %s is not known: %s", address->host, gai_strerror(failed));
    return 0;
}

static uint16_t listener_bound_port(const pd_listener *l) {
    struct sockaddr_storage bound;
    int bytes = sizeof bound;
    if (uv_tcp_getsockname(&l->uv.tcp, (struct sockaddr *)&bound, &bytes) != 0)
        return l->address.port;
    return ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                             : ((struct sockaddr_in *)&bound)->sin_port);
}

static int listener_bind_tcp(pd_listener *l, pd_error *err) {
    struct addrinfo *found = NULL;
    if (address_resolve(&l->address, &found, err) != 0)
        return -1;
    int failed = 0;
    if (l->address.kind == WIRE_ADDRESS_TCP && !l->server->engine->config->allow_insecure_remote &&
        !address_is_loopback(found->ai_addr)) {
        failed = listener_refuse_remote(l, err);
    } else {
        int code = uv_tcp_bind(&l->uv.tcp, found->ai_addr, 0);
        if (code == 0)
            code = uv_listen(&l->uv.stream, LISTENER_BACKLOG, listener_knock);
        if (code)
            failed = pd_error_set(err, "%s", uv_strerror(code));
    }
    freeaddrinfo(found);
    l->address.port = listener_bound_port(l);
    return failed;
}

static int listener_bind_unix(pd_listener *l, pd_error *err) {
    const pd_engine *engine = l->server->engine;
    l->unix_fd = pd_unix_listen(l->address.path, engine->config->listen_mode, engine->gid, err);
    if (l->unix_fd < 0)
        return -1;
    int code = uv_pipe_open(&l->uv.pipe, l->unix_fd);
    if (code == 0)
        code = uv_listen(&l->uv.stream, LISTENER_BACKLOG, listener_knock);
    return code ? pd_error_set(err, "%s", uv_strerror(code)) : 0;
}

int pd_listener_start(pd_listener *l, pd_server *server, const char *address, pd_error *err) {
    char why[128];
    int failed;
    l->server = server;
    l->unix_fd = -1;
    if (wire_address_parse(address, &l->address, why, sizeof why) != 0)
        return pd_error_set(err, "listen address %s: %s", address, why);
    if (l->address.kind != WIRE_ADDRESS_UNIX)
        uv_tcp_init(server->engine->loop, &l->uv.tcp);
    else
        uv_pipe_init(server->engine->loop, &l->uv.pipe, 0);
    l->uv.handle.data = l;
    failed = l->address.kind == WIRE_ADDRESS_UNIX ? listener_bind_unix(l, err) : listener_bind_tcp(l, err);
    if (!failed)
        return 0;
    pd_error_prefix(err, "listen address %s", address);
    pd_listener_close(l);
    return -1;
}

/* ---- sockets of the service manager ---- */

/* The address of a socket. Returns 0; -1: of another family. */
static int listener_address_of(int fd, struct sockaddr_storage *bound, wire_address *ret) {
    socklen_t bytes = sizeof *bound;
    memset(bound, 0, sizeof *bound);
    if (getsockname(fd, (struct sockaddr *)bound, &bytes) != 0)
        return -1;
    if (bound->ss_family == AF_UNIX) {
        ret->kind = WIRE_ADDRESS_UNIX;
        memcpy(ret->path, ((const struct sockaddr_un *)(const void *)bound)->sun_path, sizeof ret->path);
        ret->path[sizeof ret->path - 1] = '\0';
        return 0;
    }
    if (bound->ss_family != AF_INET && bound->ss_family != AF_INET6)
        return -1;
    ret->kind = WIRE_ADDRESS_TCP;
    return getnameinfo((struct sockaddr *)bound, bytes, ret->host, sizeof ret->host, NULL, 0, NI_NUMERICHOST);
}

/* A TCP socket of the name "tls" is one for TLS. */
static int listener_check_passed(pd_listener *l, int fd, const char *name, pd_error *err) {
    struct sockaddr_storage bound;
    if (listener_address_of(fd, &bound, &l->address) != 0)
        return pd_error_set(err, "it is neither a TCP nor a Unix socket");
    if (strcmp(name, "tls") == 0 && l->address.kind == WIRE_ADDRESS_TCP)
        l->address.kind = WIRE_ADDRESS_TLS;
    if (l->address.kind == WIRE_ADDRESS_TCP && !l->server->engine->config->allow_insecure_remote &&
        !address_is_loopback((struct sockaddr *)&bound))
        return listener_refuse_remote(l, err);
    if (l->address.kind == WIRE_ADDRESS_TLS && !l->server->access.tls)
        return pd_error_set(err, "tls_certificate and tls_key are needed for it");
    return 0;
}

int pd_listener_adopt(pd_listener *l, pd_server *server, int fd, const char *name, pd_error *err) {
    *l = (pd_listener){.server = server, .unix_fd = -1};
    if (listener_check_passed(l, fd, name, err) != 0)
        return pd_error_prefix(err, "passed socket \"%s\"", name);
    bool tcp = l->address.kind != WIRE_ADDRESS_UNIX;
    if (tcp)
        uv_tcp_init(server->engine->loop, &l->uv.tcp);
    else
        uv_pipe_init(server->engine->loop, &l->uv.pipe, 0);
    l->uv.handle.data = l;
    int code = tcp ? uv_tcp_open(&l->uv.tcp, fd) : uv_pipe_open(&l->uv.pipe, fd);
    if (code == 0)
        code = uv_listen(&l->uv.stream, LISTENER_BACKLOG, listener_knock);
    if (code == 0) {
        if (tcp)
            l->address.port = listener_bound_port(l);
        return 0;
    }
    pd_error_set(err, "passed socket \"%s\": %s", name, uv_strerror(code));
    pd_listener_close(l);
    return -1;
}

void pd_listener_close(pd_listener *l) {
    if (uv_is_closing(&l->uv.handle))
        return;
    if (l->unix_fd >= 0)
        unlink(l->address.path);
    uv_close(&l->uv.handle, NULL);
}
