/* Which events went with which sequence number, so that an acknowledged number can be told in events. Bounded: what is
 * durable is forgotten, and when that does not suffice the notes become sparser and the answers lower bounds. */
#ifndef CLIENT_TOOLS_LEDGER_H
#define CLIENT_TOOLS_LEDGER_H

#include <stddef.h>
#include <stdint.h>

enum { SEND_LEDGER_NOTES = 4096 };

typedef struct send_note {
    uint64_t sequence;
    uint64_t events; /* sent up to it */
} send_note;

typedef struct send_ledger {
    send_note notes[SEND_LEDGER_NOTES]; /* rising */
    size_t n;
    send_note last;
    uint64_t stride; /* from note to note, in sequence numbers, at least */
} send_ledger;

/* Notes that message `sequence` brought the events sent to `events`. Nobody will ask below `durable` again. */
void send_ledger_note(send_ledger *ledger, uint64_t sequence, uint64_t events, uint64_t durable);

/* The events that messages up to `sequence` brought, at least. */
uint64_t send_ledger_events(const send_ledger *ledger, uint64_t sequence);

#endif
