/* photonctl token: makes a token. It needs no daemon. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "rights.h"
#include "tokens.h"

typedef struct token_call {
    const char *rights, *instances, *path;
} token_call;

/* Whole lines only: one write, at the end. */
static int token_add(const cli_command *self, const char *path, const char *line) {
    char text[PD_TOKEN_LINE_BYTES + 1];
    int n = snprintf(text, sizeof text, "%s\n", line);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
    ssize_t written = fd < 0 ? -1 : write(fd, text, (size_t)n);
    int failed = written == n && fsync(fd) == 0 ? 0 : errno ? errno : ENOSPC;
    if (fd >= 0 && close(fd) != 0 && !failed)
        failed = errno;
    if (!failed)
        return CLI_OK;
    return cli_fail(self, "%s: cannot be written: %s", path, strerror(failed));
}

static int token_make(const cli_command *self, const token_call *call, const char *name) {
    char secret[PD_TOKEN_TEXT_BYTES], line[PD_TOKEN_LINE_BYTES];
    pd_error err = {.text = ""};
    unsigned rights = 0;
    if (pd_rights_parse(call->rights, &rights, &err) != 0 || pd_token_make(secret, &err) != 0 ||
        pd_token_line(name, rights, call->instances, secret, line, &err) != 0)
        return cli_fail(self, "%s", err.text);
    if (call->path && token_add(self, call->path, line) != CLI_OK)
        return CLI_USAGE;
    if (!call->path)
        fprintf(stderr, "line for the daemon's tokens_file: %s\n", line);
    printf("%s\n", secret);
    return CLI_OK;
}

static bool token_take(void *context, int option, const char *argument) {
    token_call *call = context;
    if (option == 'r')
        call->rights = argument;
    else if (option == 'i')
        call->instances = argument;
    else
        call->path = argument;
    return true;
}

static int token_run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {{"rights", required_argument, NULL, 'r'},
                                            {"instance", required_argument, NULL, 'i'},
                                            {"add", required_argument, NULL, 'a'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    token_call call = {.rights = "send", .instances = NULL, .path = NULL};
    int code = cli_options(self, argc, argv, options, token_take, &call, 1, 1);
    return code >= 0 ? code : token_make(self, &call, argv[optind]);
}

const cli_command ctl_token = {
    .name = "token",
    .summary = "make a token for a client",
    .help =
        "Usage: photonctl token NAME [--rights RIGHTS] [--instance PATTERN,...] [--add FILE]\n"
        "Makes a token and prints it: the only time it can be seen, since the daemon keeps its hash. The "
        "hash "
        "goes into the\n"
        "daemon's tokens_file, which is read again by photonctl reload; without its line there the token is "
        "no "
        "longer good.\n\n"
        "  --rights RIGHTS    what its holder may do: send, control, view, or several with commas (default "
        "send)\n"
        "  --instance PATTERN the instances (of Hello, photon-send --instance) that its holder may speak "
        "for; "
        "in\n"
        "                     patterns * is any text and ? any one byte; several with commas (default any)\n"
        "  --add FILE         adds the line to the tokens_file; without, it is shown on standard error\n"
        "  --help             this help\n\nExamples:\n"
        "  photonctl token lab-7 --add /etc/photond/tokens >lab-7.token && photonctl reload\n"
        "  photonctl token camera --instance 'lincam-3,lincam-3-*' --add /etc/photond/tokens >camera.token\n",
    .run = token_run};
