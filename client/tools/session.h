/* One run of photon-send: connect, open, send what the source has, close, report. */
#ifndef CLIENT_TOOLS_SESSION_H
#define CLIENT_TOOLS_SESSION_H

#include "options.h"
#include "source.h"

/* What became of it. Counts are events (photons, tags). */
typedef struct send_report {
    uint64_t sent;
    uint64_t received; /* acknowledged: in the server's memory */
    uint64_t durable;  /* acknowledged: on the disk */
    uint64_t messages;
    uint64_t resent;  /* messages written more than once */
    uint64_t dropped; /* messages that the server has dropped */
    double seconds;   /* from the opened run to the closed one */
    char run[160];    /* its actual name */
    char path[512];   /* of the file, on the server */
    char fault[512];  /* why not everything is durable; empty when it is */
} send_report;

/* Sends the whole source. Says on standard error what goes wrong. Returns the exit status. */
int send_session(const send_options *options, send_source *source, send_report *report);

#endif
