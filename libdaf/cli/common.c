/* What the subcommands share. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

int command_fail(const cli_command *self, const daf_error *err) {
    cli_fail(self, "%s", err->text);
    return err->code == DAF_ERR_CORRUPT || err->code == DAF_ERR_TRUNCATED ? CLI_PROBLEMS : CLI_USAGE;
}

void command_options(daf_options *options, daf_executor *executor, cli_pool *pool) {
    *executor = (daf_executor){.context = pool,
                               .submit = cli_pool_submit,
                               .wait = cli_pool_wait,
                               .n_threads = cli_pool_threads(pool)};
    daf_options_init(options);
    options->copies = true; /* another program may cut a file while it is printed */
    if (pool)
        options->executor = executor;
}

int command_open(const cli_command *self, daf **ret, const char *path, const char *mode, cli_pool *pool) {
    daf_options options;
    daf_executor executor;
    daf_error err;
    command_options(&options, &executor, pool);
    return daf_open(ret, path, mode, &options, &err) == 0 ? 0 : command_fail(self, &err);
}

int command_close(const cli_command *self, daf *d, int code) {
    daf_error err;
    if (code) {
        daf_free(d);
        return code;
    }
    return daf_close(d, &err) == 0 ? CLI_OK : command_fail(self, &err);
}

bool parse_positive(const cli_command *self, const char *option, const char *text, long most, long *ret) {
    char *end;
    long v = strtol(text, &end, 10);
    if (*end || v < 1 || v > most) {
        cli_fail(self, "--%s: \"%s\" is no number from 1 to %ld", option, text, most);
        return false;
    }
    *ret = v;
    return true;
}

bool take_packing_option(const cli_command *self, daf_set_options *how, int option, const char *argument) {
    long n = 0;
    bool taken = true;
    if (option == OPTION_CODEC) {
        taken = daf_codec_parse(&how->codec, argument) == 0;
        if (!taken)
            cli_fail(self, "no codec \"%s\"", argument);
    } else if (option == OPTION_LEVEL) {
        taken = parse_positive(self, "level", argument, 22, &n);
        how->level = (int)n;
    } else if (option == OPTION_CHUNK_KB) {
        taken = parse_positive(self, "chunk-kb", argument, 1 << 20, &n);
        how->target_chunk_kb = (uint32_t)n;
    }
    return taken;
}
