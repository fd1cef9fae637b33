/* photon_client.h: sends photon events to photond.
 *
 *     photon_client *client;
 *     photon_client_run *run;
 *     photon_client_connect(&client, &options, &err);       options.address = "tcp://127.0.0.1:7777"
 *     photon_client_open(client, &run_options, &run, &err); run_options.name = "scan1", .profile = "lincam"
 *     photon_client_send(run, columns, counts, &err);       as often as there are photons
 *     photon_client_close_run(run, &result, &err);          returns when the file is closed and on the disk
 *     photon_client_free(client);
 *
 * How it works
 *   - What is sent is copied into the run's window and kept there until the server has it durably on its disk. When
 *     the connection is lost, or the server dies and is started again, the client comes back by itself, is told where
 *     the run goes on, and sends from there again: every event is stored exactly once, and the caller's calls go on as
 *     if nothing had happened. A server that told no window keeps nothing across its own end; then messages are kept
 *     until it has received them, which outlives a lost connection only.
 *   - Memory is bounded: the window has the size that the server asks for, at most options.keep_bytes, and at most
 *     16,384 messages of each run. When it is full, photon_client_send() waits (and says ERR_TIMEOUT when it has waited
 *     for its time-out): so it does when the server is busy, its disk is full, or it is away. Nothing is lost.
 *   - Coming back: the first attempt at once, then after reconnect_min_ms, twice that, ... up to reconnect_max_ms, each
 *     shortened at random by up to a half; an attempt may take 10 s. It is given up (ERR_LOST) when the server has
 *     received nothing new for reconnect_timeout_ms, and at once when it says that coming back is of no use: a newer
 *     start of this instance is connected (ERROR_SUPERSEDED, ERROR_STALE_EPOCH), not authorised, not its protocol.
 *     A server lets a run wait for so long as its resume_timeout_s (30 s by default), then it closes it with what it
 *     has: photon_client_send() then says ERR_ENDED, photon_client_close_run() ERR_INCOMPLETE.
 *   - Each client has one thread of its own that reads the server's answers, answers its pings, sends heartbeats while
 *     the caller is idle, comes back and sends again, and ends when the client is freed. It calls nothing of the
 *     caller's but options.on_event.
 *
 * Threads: every function may be called from any thread at any time, but for three: one send,
 * set_attributes or close_run at a time per run; photon_client_free() and photon_client_run_free() only when no
 * other call on the same object is under way. Different runs of one client may be fed by different threads.
 *
 * Conventions: 0 or a negative PHOTON_CLIENT_ERR_ code; details in the caller's photon_client_error, which may
 * be NULL and is written only on failure. Output arguments are untouched on failure. Option structs are filled
 * by their _init function first, are borrowed for the call and may be changed or freed after it. Strings are
 * UTF-8 and end in NUL. Numbers in columns are in the host's byte order. Time-outs are in milliseconds,
 * PHOTON_CLIENT_FOREVER waits without end. The library keeps no global state, never prints, never exits, and
 * neither raises nor handles signals (a broken connection is an error, not a SIGPIPE).
 *
 * The protocol underneath is described in docs/protocol.md.
 */
#ifndef PHOTON_CLIENT_H
#define PHOTON_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PHOTON_CLIENT_API __attribute__((visibility("default")))
#define PHOTON_CLIENT_MUST_USE __attribute__((warn_unused_result))
#else
#define PHOTON_CLIENT_API
#define PHOTON_CLIENT_MUST_USE
#endif

/* ---- Errors ----------------------------------------------------------------------------------------------- */

/** code, name, what it means */
#define PHOTON_CLIENT_ERROR_MAP(X)                                                                           \
    X(-1, ARG, "an argument is not valid")                                                                   \
    X(-2, NOMEM, "out of memory")                                                                            \
    X(-3, ADDRESS, "not an address")                                                                         \
    X(-4, CONNECT, "the server cannot be reached")                                                           \
    X(-5, LOST, "the connection was lost")                                                                   \
    X(-6, PROTOCOL, "the other side does not speak the protocol")                                            \
    X(-7, REFUSED, "the server refused it: server_code, scope and text say why")                             \
    X(-8, TIMEOUT, "not done in the time given")                                                             \
    X(-9, LIMIT, "over a limit that the server has told")                                                    \
    X(-10, ENDED, "the run or the connection has ended")                                                     \
    X(-11, INCOMPLETE, "the server has not stored all that was sent")

enum photon_client_error_code {
    PHOTON_CLIENT_OK = 0,
#define PHOTON_CLIENT_ERROR_ENUM(code, name, text) PHOTON_CLIENT_ERR_##name = code,
    PHOTON_CLIENT_ERROR_MAP(PHOTON_CLIENT_ERROR_ENUM)
#undef PHOTON_CLIENT_ERROR_ENUM
};

/** How far a refusal by the server reaches. */
enum photon_client_scope {
    PHOTON_CLIENT_SCOPE_CONNECTION = 0, /* the connection has ended */
    PHOTON_CLIENT_SCOPE_RUN = 1,        /* this run takes no more data */
    PHOTON_CLIENT_SCOPE_BATCH = 2       /* one message was refused */
};

/** What went wrong. Owned by the caller. */
typedef struct photon_client_error {
    int code;                /* PHOTON_CLIENT_ERR_... */
    int os_errno;            /* of the failed system call, 0 where there was none */
    uint32_t server_code;    /* photon.ErrorCode of docs/protocol.md when code is ERR_REFUSED, else 0 */
    uint32_t scope;          /* photon_client_scope, when refused */
    uint32_t retry_after_ms; /* trying again may help after this time; 0: it will not */
    uint64_t sequence;       /* the server's `sequence`, when refused */
    char field[96]; /* the field that was wrong, when refused: "open.datasets[2].name"; may be empty */
    char text[384]; /* one sentence: what, where, why */
} photon_client_error;

/** "ARG", "NOMEM", ...; "OK" for 0, "UNKNOWN" for anything else. */
PHOTON_CLIENT_API const char *photon_client_error_name(int code);

/** What a code means, in general. */
PHOTON_CLIENT_API const char *photon_client_error_text(int code);

/** "ERROR_NAME_TAKEN" and so on, "ERROR_?" for a number that this library does not know. */
PHOTON_CLIENT_API const char *photon_client_server_code_name(uint32_t server_code);

/** The version of the library, "MAJOR.MINOR.PATCH". */
PHOTON_CLIENT_API const char *photon_client_version(void);

/* ---- Connection ------------------------------------------------------------------------------------------- */

#define PHOTON_CLIENT_FOREVER 0u

/** What a client can tell while it goes on. */
enum photon_client_event_kind {
    PHOTON_CLIENT_EVENT_PAUSED = 1,      /* the server holds the stream back; nothing need be done */
    PHOTON_CLIENT_EVENT_RESUMED = 2,     /* it goes on */
    PHOTON_CLIENT_EVENT_LOST = 3,        /* the connection is lost; the client tries to come back */
    PHOTON_CLIENT_EVENT_RECONNECTED = 4, /* it stands again; what is not durable is sent again */
    PHOTON_CLIENT_EVENT_FAILED = 5,      /* it has ended for good */
    PHOTON_CLIENT_EVENT_RESENDING = 6,   /* the server has asked to send a part of the run again */
    PHOTON_CLIENT_EVENT_RUN_CLOSED = 7,
    PHOTON_CLIENT_EVENT_RUN_FAILED = 8
};

typedef struct photon_client_event {
    uint32_t kind; /* photon_client_event_kind */
    bool of_run;   /* run_id is told: it is about that run, else about the connection */
    uint8_t run_id[16];
    uint32_t reason; /* photon_client_pause, of PAUSED */
    char text[256];  /* a sentence for people */
} photon_client_event;

typedef struct photon_client_options {
    const char *address; /* "tcp://HOST:PORT", "tls://HOST:PORT", "tcp://[::1]:PORT", "unix:PATH"; required */
    const char *client_name; /* for people, in status and log; 1 to 128 bytes; default "photon-client" */
    /* Names this producer through its restarts, 1 to 128 bytes: a later connection of the same instance takes over
     * from an earlier one. Default: host name, process and a random number, which no restart shares. */
    const char *instance;
    /* A later start of the instance has a larger one. Default 0: the time in ns, or one more than the server knows. */
    uint64_t epoch;
    const char *software; /* name and version of the program; default: this library */
    const void *token;    /* [token_bytes] of `photonctl token`, for servers that ask for one; default none */
    size_t token_bytes;
    /* For tls:// addresses, PEM files, read once by photon_client_connect(). The server's certificate has to be signed by
     * one of ca_file (default: the system's list) and to be for the host of the address. */
    const char *ca_file;
    const char *certificate_file; /* to be shown, with those between it and its CA; default none */
    const char *key_file;         /* of that certificate; default: in certificate_file */
    uint32_t connect_timeout_ms;  /* for reaching the server and its Welcome; default 10,000 */
    /* A server that answers no ping for so long is lost, unless it has said that it is paused; default 30,000. */
    uint32_t silence_timeout_ms;
    /* photon_client_connect() tries for connect_timeout_ms, so that the server may start later; default false. */
    bool wait_for_server;
    bool reconnect;                /* come back by itself when the connection is lost; default true */
    uint32_t reconnect_timeout_ms; /* without progress, then it is given up; default 600,000 (10 min) */
    uint32_t reconnect_min_ms;     /* from attempt to attempt, from 1 on; default 100 */
    uint32_t reconnect_max_ms;     /* default 5,000 */
    uint64_t keep_bytes;           /* of each run's window, at most, from 64 KiB on; default 64 MiB */
    /* Told what happens, in order, on the client's own thread. Should return soon, and may call only
     * photon_client_status() and the other functions that only look. NULL: nobody. */
    void (*on_event)(void *context, const photon_client_event *event);
    void *event_context;
} photon_client_options;

/** Sets the defaults. Any thread. */
PHOTON_CLIENT_API void photon_client_options_init(photon_client_options *options);

/** One connection to a server. */
typedef struct photon_client photon_client;

/** Connects and introduces itself; returns when the server has answered Welcome.
 *  Returns  0 and the client; ERR_ARG; ERR_ADDRESS; ERR_CONNECT; ERR_PROTOCOL (no photond there, or one of another
 *           version); ERR_REFUSED (not authorised, no room, a newer start of this instance is connected);
 *           ERR_TIMEOUT; ERR_NOMEM
 */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_connect(photon_client **ret_client,
                                                                   const photon_client_options *options,
                                                                   photon_client_error *err);

/** What the server has told about itself; 0 means no such limit was told. Strings live as long as the client. */
typedef struct photon_client_server {
    const char *software;
    uint64_t epoch; /* under which this client is known */
    uint64_t message_bytes;
    uint64_t batch_items; /* items of one group in a batch */
    uint64_t attribute_bytes;
    uint64_t in_flight_bytes;
    uint32_t datasets;
    uint32_t attributes; /* in one message */
    uint32_t runs;
    uint32_t idle_ms;
    uint32_t heartbeat_ms;
} photon_client_server;

/** What the server said of itself when the client connected (the numbers: last). Any thread. */
PHOTON_CLIENT_API void photon_client_server_info(const photon_client *client, photon_client_server *ret_info);

/** Whether the connection stands. Returns 0; what ended it otherwise, also while the client is coming back. */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_check(photon_client *client,
                                                                 photon_client_error *err);

/** Ends the connection and releases the client with all its runs. Waits up to a second for the server to receive what
 * is on its way. Runs that were not closed are closed by the server some time later, with everything it has received.
 * NULL is allowed. */
PHOTON_CLIENT_API void photon_client_free(photon_client *client);

/* ---- Opening a run ---------------------------------------------------------------------------------------- */

/** Element types; the numbers are those of the protocol and of the D7 file format. */
enum photon_client_type {
    PHOTON_CLIENT_INT8 = 0,
    PHOTON_CLIENT_INT16 = 1,
    PHOTON_CLIENT_INT32 = 2,
    PHOTON_CLIENT_INT64 = 3,
    PHOTON_CLIENT_UINT8 = 4,
    PHOTON_CLIENT_UINT16 = 5,
    PHOTON_CLIENT_UINT32 = 6,
    PHOTON_CLIENT_UINT64 = 7,
    PHOTON_CLIENT_FLOAT = 8,
    PHOTON_CLIENT_DOUBLE = 9
};

/** What a dataset means to the summaries. */
enum photon_client_role {
    PHOTON_CLIENT_ROLE_NONE = 0,
    PHOTON_CLIENT_ROLE_POSITION_X = 1,
    PHOTON_CLIENT_ROLE_POSITION_Y = 2,
    PHOTON_CLIENT_ROLE_MICRO_TIME = 3, /* arrival after the laser pulse, in TAC channels */
    PHOTON_CLIENT_ROLE_CHANNEL = 4,    /* input of a time tagger */
    PHOTON_CLIENT_ROLE_TIME_STAMP = 5, /* absolute arrival, in ticks of the time base */
    PHOTON_CLIENT_ROLE_MS_INDEX =
        6, /* index of the first photon of each millisecond, from the start of the run */
    PHOTON_CLIENT_ROLE_START = 7,
    PHOTON_CLIENT_ROLE_STOP = 8
};

typedef struct photon_client_dataset {
    const char *name;  /* as it stands in the file: "/photons/x" */
    uint32_t type;     /* photon_client_type */
    const char *group; /* datasets of one group have equal length; NULL: a group of its own */
    uint32_t role;     /* photon_client_role */
    const char *unit;  /* of value times scale; NULL: none */
    double scale;      /* 0 counts as 1 */
} photon_client_dataset;

typedef struct photon_client_attribute {
    const char *key;
    const char *value;
} photon_client_attribute;

/** One tick of the instrument's clock is numerator / denominator picoseconds. Zeros: not told. */
typedef struct photon_client_time_base {
    uint64_t tick_ps_numerator;
    uint64_t tick_ps_denominator;
    uint32_t counter_bits; /* 0: the stamps never wrap */
    uint64_t start_utc_ns;
    uint64_t start_uncertainty_ns;
    double laser_period_ps;
} photon_client_time_base;

enum photon_client_mode {
    PHOTON_CLIENT_CREATE = 0,  /* the name must be free */
    PHOTON_CLIENT_COUNTER = 1, /* a taken name gets a counter: NAME-2, NAME-3, ... */
    PHOTON_CLIENT_RESUME = 2   /* go on with a run that was cut short */
};

enum photon_client_overflow {
    PHOTON_CLIENT_BLOCK = 0, /* the stream is held back */
    PHOTON_CLIENT_DROP = 1   /* whole batches are dropped, counted and written down as gaps */
};

enum photon_client_switch { PHOTON_CLIENT_AS_CONFIGURED = 0, PHOTON_CLIENT_ON = 1, PHOTON_CLIENT_OFF = 2 };

typedef struct photon_client_run_options {
    const uint8_t *run_id; /* [16] NULL: random. The same id again is the same run */
    /* [A-Za-z0-9][A-Za-z0-9._-]{0,127}, required; {date}, {time}, {profile} and {counter} in it are filled in by the server.
     * "": the run that `photonctl start` has announced, or one with the server's name_pattern */
    const char *name;
    uint32_t mode;       /* photon_client_mode; default CREATE */
    const char *profile; /* "lincam", "lincam-dual", "lintag", one of the server's own; or */
    const photon_client_dataset *datasets; /* [n_datasets] the datasets themselves */
    size_t n_datasets;
    const photon_client_attribute *attributes; /* [n_attributes] known from the start */
    size_t n_attributes;
    photon_client_time_base time_base;
    uint32_t overflow;           /* photon_client_overflow; default BLOCK */
    uint32_t summaries;          /* photon_client_switch */
    uint32_t summary_pixels;     /* a side of the image, a power of two; 0: as configured */
    uint32_t export_interval_ms; /* 0: as configured */
    /* The server ends the run with the batch that reaches so many photons or column bytes, or after so long; 0: it does
     * not */
    uint64_t stop_photons, stop_bytes;
    double stop_seconds;
    const char *volume;       /* a further data folder of the server; NULL: the first */
    uint64_t batch_items;     /* items of a group in a batch, at most; 0: as the server allows */
    uint32_t open_timeout_ms; /* default 30,000 */
    uint32_t send_timeout_ms; /* of photon_client_send(); default PHOTON_CLIENT_FOREVER */
    /* For sources that can be read again (a file, a mapped recording): with it the library keeps no events, but where
     * they are, and asks for them when they are to be written: for the items [first, first + counts) of each group
     * (both [n_groups]), counted from the run's first. Sets columns [n_datasets] (in host byte order) to memory that
     * stays as it is until the next call for this run, or until the run is freed. Returns 0; anything else: they cannot
     * be read any more, and the run fails. It must give what photon_client_send() was given, which is checked.
     * Called with the library's lock held, on any thread that uses the client or on its own: must be quick, and must not
     * call the library. NULL: events are copied. */
    int (*read_again)(void *context, const uint64_t *first, const uint64_t *counts, const void **columns);
    void *read_context;
} photon_client_run_options;

/** Sets the defaults. Any thread. */
PHOTON_CLIENT_API void photon_client_run_options_init(photon_client_run_options *options);

/** One run: a recording that becomes one file. */
typedef struct photon_client_run photon_client_run;

/** Opens a run; returns when its file is there.
 *  Returns  0 and the run. When the run of this run_id is closed already (the answer to an earlier close was lost),
 *           its state is CLOSED and photon_client_close_run() gives the result at once. ERR_ARG; ERR_REFUSED (name
 *           taken, bad datasets, no room: server_code says which); ERR_LIMIT; ERR_TIMEOUT (the run may have been
 *           opened: open again with the same run_id); ERR_LOST; ERR_PROTOCOL; ERR_NOMEM (also for the window)
 */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_open(photon_client *client,
                                                                const photon_client_run_options *options,
                                                                photon_client_run **ret_run,
                                                                photon_client_error *err);

/** A dataset as the server keeps it. */
typedef struct photon_client_dataset_state {
    const char *name;
    const char *group;
    size_t group_index; /* its group's place in counts */
    uint32_t type;
    size_t item_bytes;
    uint64_t items; /* in the run when it was opened; in a photon_client_result, when it was closed */
} photon_client_dataset_state;

/** What the server has told about a run. Strings and arrays live as long as the run. */
typedef struct photon_client_run_info {
    uint8_t run_id[16];
    const char *name; /* the actual one: with a counter it may differ from the one asked for */
    const char *path; /* of the file, on the server */
    uint32_t part;
    uint64_t next_sequence;                      /* when it was opened: above 1 the run went on */
    const photon_client_dataset_state *datasets; /* [n_datasets] in the order of columns */
    size_t n_datasets;
    const char *const *groups; /* [n_groups] in the order of counts */
    size_t n_groups;
    uint64_t batch_bytes;  /* column bytes in one batch, at most */
    uint64_t window_bytes; /* column bytes kept until they are durable; 0: messages are kept until received */
} photon_client_run_info;

/** What the server answered when the run was opened. Any thread. */
PHOTON_CLIENT_API void photon_client_run_describe(const photon_client_run *run,
                                                  photon_client_run_info *ret_info);

/* ---- Sending ---------------------------------------------------------------------------------------------- */

/** Sends events.
 *  columns  [n_datasets] in the order of photon_client_run_info; each holds counts[its group] items; borrowed for
 *           the call; NULL where the count is 0
 *  counts   [n_groups] items, any number: what the server takes in one batch is sent in several. The items of a
 *           dataset with the role MS_INDEX go with the photons they point at, those of other groups evenly spread
 *  Returns  0: all is in the window, the client sees to the rest (received and durable: see photon_client_status());
 *           ERR_TIMEOUT: the window is full, and a part went in: photon_client_send_batch() tells how much;
 *           ERR_REFUSED, ERR_LOST, ERR_ENDED, ERR_INCOMPLETE: the run is over; ERR_ARG
 */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_send(photon_client_run *run,
                                                                const void *const *columns,
                                                                const uint64_t *counts,
                                                                photon_client_error *err);

/** Columns with what may be told about them. */
typedef struct photon_client_batch {
    const void *const *columns;
    const uint64_t *counts;
    uint64_t lost_before; /* events that the hardware lost before these */
    bool times_valid;     /* first_time and last_time are told (left out when the batch has to be split) */
    int64_t first_time;   /* in ticks of the time base */
    int64_t last_time;
    uint32_t
        timeout_ms; /* for room in the window; FOREVER: none. Here the run's send_timeout_ms does not apply */
} photon_client_batch;

/** As photon_client_send().
 *  ret_taken  [n_groups] items that are in the window, set on success and on ERR_TIMEOUT, from where the caller
 *             may go on; NULL is allowed
 */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_send_batch(photon_client_run *run,
                                                                      const photon_client_batch *batch,
                                                                      uint64_t *ret_taken,
                                                                      photon_client_error *err);

/** Sets attributes of the run, and waits until the server has received them. They are numbered like batches, so they
 * are as durable as data.
 *  Returns  as photon_client_send(); ERR_ARG: not UTF-8 or an empty key; ERR_LIMIT: longer than the server takes;
 *           ERR_REFUSED with the scope BATCH: the server does not take one of them (a reserved key, for example), and
 *           the run goes on; ERR_TIMEOUT: some or all of them may have been, or may still be set */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int
photon_client_set_attributes(photon_client_run *run, const photon_client_attribute *attributes, size_t n,
                             photon_client_error *err);

/** A place in a run. */
typedef struct photon_client_place {
    const char *group; /* whose items are counted: one of photon_client_run_info.groups */
    uint64_t item;     /* of the whole run, from 0: before it */
    uint64_t utc_ns;   /* since 1970; 0: now */
} photon_client_place;

/** Puts a note at a place of the run. Numbered, kept and waited for like attributes.
 *  Returns  as photon_client_set_attributes(); ERR_ARG: no such group, or the text is not UTF-8 */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_mark(photon_client_run *run,
                                                                const photon_client_place *at,
                                                                const char *text, photon_client_error *err);

/** Tells that `count` events (0: nobody knows how many) are missing before a place of the run. As photon_client_mark().
 *  (Losses right before the events that are being sent are told by photon_client_batch.lost_before.) */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_tell_gap(photon_client_run *run,
                                                                    const photon_client_place *at,
                                                                    uint64_t count, const char *cause,
                                                                    photon_client_error *err);

/** Tells that the instrument is alive though it has no photons, so that the run's time moves on.
 *  instrument_time  in ticks; NULL: not known */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int
photon_client_alive(photon_client_run *run, const int64_t *instrument_time, photon_client_error *err);

enum photon_client_pause {
    PHOTON_CLIENT_PAUSE_UNKNOWN = 0,
    PHOTON_CLIENT_PAUSE_RING_FULL = 1,
    PHOTON_CLIENT_PAUSE_DISK_FULL = 2,
    PHOTON_CLIENT_PAUSE_DISK_SLOW = 3
};

enum photon_client_run_state {
    PHOTON_CLIENT_RUN_OPEN = 0,
    PHOTON_CLIENT_RUN_CLOSED = 1, /* by us or by the server */
    PHOTON_CLIENT_RUN_FAILED = 2  /* photon_client_send() says why */
};

/** How far a run has come. Sequence numbers count the messages of the run; 0 is none. */
typedef struct photon_client_run_status {
    uint32_t state;           /* photon_client_run_state */
    uint64_t sent;            /* the last number given: in the window, or further */
    uint64_t received;        /* up to here it is in the server's memory */
    uint64_t durable;         /* up to here it is on the disk */
    uint64_t in_flight_bytes; /* of columns: written, not yet received */
    uint64_t credit_bytes;    /* how many there may be */
    uint64_t kept_bytes;      /* of columns: in the window, because they may have to be sent again */
    uint64_t resent;          /* messages that were written more than once */
    uint64_t dropped;         /* messages that the server has dropped (overflow DROP), as it says */
    uint64_t connections;     /* of the client, the first one included */
    bool connected;           /* false while the client is coming back */
    bool paused;              /* the server holds the stream back; nothing need be done */
    uint32_t pause_reason;    /* photon_client_pause */
    char pause_text[128];
} photon_client_run_status;

/** How far the run is: what was sent, received, made durable. Any thread. */
PHOTON_CLIENT_API void photon_client_status(photon_client_run *run, photon_client_run_status *ret_status);

/** Waits until everything sent so far has been received by the server. (It may lose that again when it dies, and is sent
 * it again then.) Returns 0; ERR_TIMEOUT; as photon_client_send(). */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int
photon_client_wait_received(photon_client_run *run, uint32_t timeout_ms, photon_client_error *err);

/** Waits until message `sequence` is durable (photon_client_status() tells what has been sent), which a server with a
 * window sees to within its sync interval.
 * Returns 0; ERR_ARG: not sent yet; ERR_TIMEOUT; as photon_client_send(). */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_wait_durable(photon_client_run *run,
                                                                        uint64_t sequence,
                                                                        uint32_t timeout_ms,
                                                                        photon_client_error *err);

/** Asks the server to make everything sent so far durable at once, and waits until it is. One flush at a time per run.
 * Returns 0; ERR_TIMEOUT; as photon_client_send(). */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_flush(photon_client_run *run, uint32_t timeout_ms,
                                                                 photon_client_error *err);

/* ---- Ending ----------------------------------------------------------------------------------------------- */

/** What a run has become. Strings and arrays live as long as the run. */
typedef struct photon_client_result {
    const char *name;
    const char *path; /* of the first part, on the server */
    uint32_t parts;
    uint64_t last_sequence;
    const photon_client_dataset_state *datasets; /* [n_datasets] items as they are in the file */
    size_t n_datasets;
    const char *text; /* why, when the server closed it by itself; else empty */
} photon_client_result;

/** Closes a run: returns when its file is closed and on the disk. May be called again after ERR_TIMEOUT. An answer that
 *  was lost with its connection is asked for again.
 *  Returns  0 and the result, also when the server has closed the run before, with everything; ERR_INCOMPLETE, and the
 *           result nevertheless: the server has closed it by itself without what was sent last; ERR_REFUSED;
 *           ERR_TIMEOUT; ERR_LOST */
PHOTON_CLIENT_API PHOTON_CLIENT_MUST_USE int photon_client_close_run(photon_client_run *run,
                                                                     uint32_t timeout_ms,
                                                                     photon_client_result *ret_result,
                                                                     photon_client_error *err);

/** Releases a run; one that is still open is left to the server. NULL is allowed. */
PHOTON_CLIENT_API void photon_client_run_free(photon_client_run *run);

#ifdef __cplusplus
}
#endif

#endif
