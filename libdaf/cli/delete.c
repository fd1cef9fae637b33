/* daf delete: one property, or an axis with all that lies on it. */
#include "command.h"

enum { OPTION_IF_EXISTS = 256 };

static bool take(void *context, int option, const char *argument) {
    (void)argument;
    *(bool *)context |= option == OPTION_IF_EXISTS;
    return true;
}

static int delete_target(daf *d, const target *t, daf_error *err) {
    switch (t->kind) {
    case TARGET_SCALAR:
        return daf_delete_scalar(d, t->name, err);
    case TARGET_AXIS:
        return daf_delete_axis(d, t->name, err);
    case TARGET_VECTOR:
        return daf_delete_vector(d, t->axis, t->name, err);
    default:
        return daf_delete_matrix(d, t->axis, t->columns, t->name, err);
    }
}

static int run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {
        {"if-exists", no_argument, NULL, OPTION_IF_EXISTS}, {"help", no_argument, NULL, 'h'}, {0}};
    bool if_exists = false;
    target t;
    daf *d;
    daf_error err;
    int code = cli_options(self, argc, argv, options, take, &if_exists, 2, 5);
    if (code >= 0)
        return code;
    int n = argc - optind - 1;
    if (target_parse(&t, n, argv + optind + 1) != n)
        return cli_misused(self, "a path and one property are needed");
    code = command_open(self, &d, argv[optind], "r+", NULL);
    if (code)
        return code;
    int rc = delete_target(d, &t, &err);
    if (rc && !(rc == DAF_ERR_MISSING && if_exists))
        code = command_fail(self, &err);
    return command_close(self, d, code);
}

const cli_command command_delete = {.name = "delete",
                                    .summary = "deletes a property",
                                    .help =
                                        "Usage: daf delete PATH scalar NAME\n"
                                        "       daf delete PATH axis NAME\n"
                                        "       daf delete PATH vector AXIS NAME\n"
                                        "       daf delete PATH matrix ROWS COLUMNS NAME\n"
                                        "Deletes a property: of a matrix both layouts, of an axis also its "
                                        "vectors and matrices. Archives are\n"
                                        "append-only; nothing can be deleted from them.\n\n"
                                        "  --if-exists   that there is no such property is no error\n"
                                        "  --help        this text\n\n"
                                        "Examples:\n"
                                        "  daf delete run.daf scalar note\n"
                                        "  daf delete run.daf matrix y_pixel x_pixel intensity --if-exists\n",
                                    .run = run};
