/* The commands of the control socket (docs/operations.md, "The control socket"). Thread: the loop's.
 */
#ifndef PD_COMMANDS_H
#define PD_COMMANDS_H

#include "control.h"
#include "look.h"
#include "rights.h"

/* What the commands work on: the `user` of pd_control_options. */
typedef struct pd_commands {
    pd_look *look;
    pd_server *server;
    /* Reads the configuration again: the reply, or NULL with err. */
    json_t *(*reload)(void *user, pd_error *err);
    void *user;
} pd_commands;

extern const pd_control_command pd_command_list[];
extern const size_t pd_n_commands;

#endif
