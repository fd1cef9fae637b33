/* What a client may do: a set of rights, as text "send,view". Pure; any thread. */
#ifndef PD_RIGHTS_H
#define PD_RIGHTS_H

#include "error.h"

enum {
    PD_RIGHT_SEND = 1,    /* open runs and send events */
    PD_RIGHT_CONTROL = 2, /* all commands of the control socket */
    PD_RIGHT_VIEW = 4,    /* those that only look */
    PD_RIGHTS_TEXT_BYTES = 32
};

/* Reads "send", "send,control,view", "" (none). Returns 0, or -1 with err. */
PD_MUST_USE int pd_rights_parse(const char *text, unsigned *ret, pd_error *err);

/* Writes them so that they can be read again. Returns `text`. */
const char *pd_rights_text(unsigned rights, char text[PD_RIGHTS_TEXT_BYTES]);

#endif
