/* The conversation on one connection: Hello, opens, batches, acknowledgements, errors (docs/protocol.md).
 *
 * A run that is opened or met again is attached: it tells this session what becomes of it. Handles count up from 1
 * and are never used twice, so a message for a run that has ended meanwhile is recognised and passed over.
 *
 * Acknowledgements are cumulative and go out at the end of a burst of reads, at most once a millisecond for each
 * run, and not while the client's earlier answers wait to be read.
 * Thread: the loop's. session.c: dispatch, Hello, Ping, Close; session_open.c: Open; session_data.c: data and acks;
 * session_runs.c: what the runs tell.
 */
#ifndef PD_SESSION_H
#define PD_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ingest.pb-c.h"
#include "rights.h"
#include "runs.h"
#include "tokens.h"

enum { PD_SOFTWARE_BYTES = 128, PD_ACK_INTERVAL_NS = 1000000 };

struct pd_connection;

/* A Flush that is not answered yet. */
typedef struct pd_flush {
    uint64_t id;
    uint64_t sequence; /* until this is durable */
} pd_flush;

enum { PD_FLUSHES_MAX = 16 }; /* under way for a run */

/* A run of this connection. */
typedef struct pd_attachment {
    pd_run *run;
    uint32_t handle;         /* 0: not told yet, the run is opening or ending */
    bool ack_due;            /* there is something to acknowledge */
    bool close_refused;      /* data after Close was answered */
    uint64_t hole_told;      /* the expected number of the last hole that was told; 0: none since */
    uint64_t told_dropped;   /* dropped numbers up to this one were told */
    uint64_t acked_received; /* what the last Ack said */
    uint64_t acked_durable;
    uint64_t last_ack_ns;
    pd_flush flushes[PD_FLUSHES_MAX]; /* [n_flushes] the oldest first */
    uint32_t n_flushes;
} pd_attachment;

typedef struct pd_session {
    struct pd_connection *connection;
    pd_runs *runs;
    bool welcomed;
    char client_name[PD_CLIENT_NAME_BYTES + 1];
    char software[PD_SOFTWARE_BYTES + 1];
    char instance[PD_INSTANCE_BYTES + 1];
    uint64_t epoch;
    unsigned rights; /* PD_RIGHT_... */
    bool by_token;   /* has shown `token` */
    pd_token token;
    pd_attachment *attached; /* [n_attached] */
    size_t n_attached, cap_attached;
    uint32_t last_handle;
    bool batch_waits;       /* the message at hand is a batch for which there is no room yet */
    uint64_t batch_photons; /* of it */
    uint64_t complaints;    /* Errors sent */
    uint64_t body_offset;   /* in the stream, of the message at hand without its prefix */
} pd_session;

typedef enum pd_heard {
    PD_HEARD,      /* done with this message */
    PD_HEARD_WAIT, /* no room: keep it, ask again later */
    PD_HEARD_END   /* an Error was sent that ends the connection */
} pd_heard;

void pd_session_init(pd_session *s, struct pd_connection *connection, pd_runs *runs);

/* A whole message. `offset` is the place in the stream of its length prefix, of `prefix` bytes. */
pd_heard pd_session_message(pd_session *s, const uint8_t *message, size_t bytes, uint64_t offset,
                            size_t prefix);

/* Sends the Acks that are due. Returns true when some must wait for their time. */
bool pd_session_acknowledge(pd_session *s, uint64_t now_ns);

/* The connection takes and gives no more: its runs go on without it. */
void pd_session_leave(pd_session *s);

/* ---- between the files of the session and the connection ---- */

/* What an Error says; what is 0 or NULL is left out. */
typedef struct pd_complaint {
    int code; /* PHOTON__ERROR_CODE__... */
    Photon__ErrorScope scope;
    uint32_t run;
    const uint8_t *run_id;
    uint64_t sequence;
    const char *field;
    uint64_t offset;
    uint32_t retry_after_ms;
    const char *text;
} pd_complaint;

/* Sends an Error. One with SCOPE_CONNECTION ends the connection. Returns what that means for the message at hand. */
pd_heard pd_session_complain(pd_session *s, const pd_complaint *complaint);

void pd_session__send(pd_session *s, const Photon__ServerMessage *message);

pd_attachment *pd_session__attachment(pd_session *s, const pd_run *run);
pd_attachment *pd_session__by_handle(pd_session *s, uint32_t handle);
pd_heard pd_session__unknown_run(pd_session *s, uint32_t handle, const char *field, uint64_t offset);

/* session_runs.c */
void pd_session__send_packed(pd_session *s, const uint8_t *packed, size_t bytes); /* NULL: nothing */
void pd_session__send_opened(pd_session *s, pd_attachment *a);
int pd_session__reserve_attachment(pd_session *s); /* room for one more: 0, or -1 */
pd_attachment *pd_session__attach(pd_session *s, pd_run *run);

/* session_open.c */
pd_heard pd_session__open(pd_session *s, const Photon__Open *open, uint64_t offset);

/* session_data.c */
pd_heard pd_session__batch(pd_session *s, const wire_batch *batch, uint64_t offset);
pd_heard pd_session__attributes(pd_session *s, const Photon__Attributes *attributes, uint64_t offset);
pd_heard pd_session__marker(pd_session *s, const Photon__Marker *marker, uint64_t offset);
pd_heard pd_session__flush(pd_session *s, const Photon__Flush *flush, uint64_t offset);
void pd_session__flushed(pd_session *s, pd_attachment *a); /* answers those that are done */
pd_heard pd_session__gap(pd_session *s, const Photon__Gap *gap, uint64_t offset);
void pd_session__ack_due(pd_session *s, pd_attachment *a);
void pd_session__ack_now(pd_session *s, pd_attachment *a, uint64_t now_ns);
uint64_t pd_session__in_flight_bytes(const pd_config *config); /* of a connection, at most */

#endif
