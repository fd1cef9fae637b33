#include "ledger.h"

static void ledger_thin(send_ledger *ledger) {
    size_t kept = 0;
    for (size_t i = 1; i < ledger->n; i += 2)
        ledger->notes[kept++] = ledger->notes[i];
    ledger->n = kept;
}

void send_ledger_note(send_ledger *ledger, uint64_t sequence, uint64_t events) {
    if (ledger->n == SEND_LEDGER_NOTES)
        ledger_thin(ledger);
    ledger->notes[ledger->n++] = (send_note){sequence, events};
}

uint64_t send_ledger_events(const send_ledger *ledger, uint64_t sequence) {
    size_t low = 0, high = ledger->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ledger->notes[middle].sequence <= sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? ledger->notes[low - 1].events : 0;
}
