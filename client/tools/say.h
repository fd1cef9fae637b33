/* What photon-send says on standard error. */
#ifndef CLIENT_TOOLS_SAY_H
#define CLIENT_TOOLS_SAY_H

/* A line "photon-send: ...". Control characters, which names may hold, are written as \xNN. */
__attribute__((format(printf, 1, 2))) void send_say(const char *format, ...);

#endif
