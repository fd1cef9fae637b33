#include "ledger.h"

#include <string.h>

/* How many notes are at or below a number. */
static size_t ledger_below(const send_ledger *ledger, uint64_t sequence) {
    size_t low = 0, high = ledger->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ledger->notes[middle].sequence <= sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void ledger_thin(send_ledger *ledger) {
    size_t kept = 0;
    for (size_t i = 0; i < ledger->n; i += 2)
        ledger->notes[kept++] = ledger->notes[i];
    ledger->n = kept;
    ledger->stride *= 2;
}

/* Keeps the newest durable note: the answer to a question about it. */
static void ledger_make_room(send_ledger *ledger, uint64_t durable) {
    size_t below = ledger_below(ledger, durable);
    if (below > 1) {
        memmove(ledger->notes, ledger->notes + below - 1, (ledger->n - below + 1) * sizeof *ledger->notes);
        ledger->n -= below - 1;
    }
    if (ledger->n > SEND_LEDGER_NOTES / 2)
        ledger_thin(ledger);
    else if (ledger->n < SEND_LEDGER_NOTES / 4)
        ledger->stride = 1;
}

void send_ledger_note(send_ledger *ledger, uint64_t sequence, uint64_t events, uint64_t durable) {
    ledger->last = (send_note){sequence, events};
    if (ledger->stride == 0)
        ledger->stride = 1;
    if (ledger->n && sequence < ledger->notes[ledger->n - 1].sequence + ledger->stride)
        return;
    if (ledger->n == SEND_LEDGER_NOTES)
        ledger_make_room(ledger, durable);
    ledger->notes[ledger->n++] = ledger->last;
}

uint64_t send_ledger_events(const send_ledger *ledger, uint64_t sequence) {
    if (sequence >= ledger->last.sequence)
        return ledger->last.events;
    size_t below = ledger_below(ledger, sequence);
    return below ? ledger->notes[below - 1].events : 0;
}
