/* A run: events of one producer on their way into one file.
 *
 *   opening --> running --> draining --> closing --> ended
 *      \           \ <----------\-----------\ turning  ^
 *       \___________\____________\___________\_ failed /
 *
 *   opening   the file is being made; nothing is taken yet
 *   running   batches are taken; with or without a connection (detached)
 *   draining  no more is taken; what is there is on its way to the writer
 *   closing   the writer has it all: index, epilogue, syncs; the last export
 *   failed    the file failed; what is under way comes back, then the file is dropped as it is
 *   ended     told, forgotten and freed
 *
 * Order. Pages are encoded in any order and written in the order in which they filled. Attributes, marks and the
 * close stand in the same order, so a mark S reaches the writer behind exactly the pages that S needs.
 *
 * Durable. A mark carries copies of the pages that are still filling, for the tail beside the file. So S is durable when
 * the pages before the mark, and the slot of the tail that says S, are synced.
 *
 * Turning. A file that cannot be written or synced any more is left as it is. The run goes back to what is durable, what came later is
 * asked for again, and it goes on in a new part (run_turn.c).
 *
 * Thread: the loop's. run.c: life; run_open.c: how it is made; run_resume.c: and made
 * again after a crash; run_data.c: batches and pages; run_attributes.c;
 * run_records.c: markers,
 * gaps, clocks; run_mark.c: what is durable; run_room.c: room on the disk; run_summary.c: the summary's chain of jobs and the exports.
 */
#ifndef PD_RUN_H
#define PD_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "attribute_sizes.h"
#include "engine.h"
#include "kept_attributes.h"
#include "page.h"
#include "rebase.h"
#include "run_drop.h"
#include "run_stop.h"
#include "run_summary.h"
#include "wire/batch.h"

enum { PD_INSTANCE_BYTES = 128, PD_CLIENT_NAME_BYTES = 128 };

/* Column bytes that a client is asked to keep until they are durable, at most: half of them makes a sync come early. */
#define PD_WINDOW_BYTES (UINT64_C(64) << 20)

typedef enum pd_run_state {
    PD_RUN_OPENING = 0,
    PD_RUN_RUNNING,
    PD_RUN_DRAINING,
    PD_RUN_CLOSING,
    PD_RUN_FAILED,
    PD_RUN_ENDED,
    PD_RUN_STATES
} pd_run_state;

/* Datasets of equal length. */
typedef struct pd_group {
    const char *name;
    uint32_t n_columns;
    uint32_t *columns;   /* [n_columns] datasets, in order */
    uint32_t item_bytes; /* of one item of all columns */
    uint64_t items;      /* received */
} pd_group;

/* A dataset and its pages. */
typedef struct pd_column {
    pd_dataset dataset; /* strings are the run's */
    uint32_t group;
    uint32_t item_bytes;
    uint32_t page_items;
    uint64_t items;         /* received */
    uint64_t part_row;      /* of them, the first row of the part's file */
    bool part_repeats;      /* that row is the one before the part's first, and is to be written yet */
    uint64_t safe_items;    /* synced; durable once the parts before are closed */
    uint64_t written_items; /* the file and its tail hold, as readers see them */
    uint64_t durable_items; /* known to be readable from the file after a crash */
    pd_page *filling;       /* NULL: none */
    pd_page *held_first;    /* pages that the summary still needs, oldest first */
    pd_page *held_last;
} pd_column;

/* What is numbered and speaks of a place in the data. */
typedef enum pd_record_kind {
    PD_RECORD_MARKER,
    PD_RECORD_GAP,
    PD_RECORD_CLOCK,
    PD_RECORD_KINDS
} pd_record_kind;

/* What is not counted in rows of the run when it has taken all up to a message: what it goes back to. */
typedef struct pd_run_point {
    uint64_t sequence;
    uint64_t first_photon; /* of the part that it was in */
    pd_rebase rebase;
    pd_run_drop dropped; /* but for its gaps */
    uint64_t n_records[PD_RECORD_KINDS];
    uint64_t loss_item, loss_count;
    uint64_t batches, lost_before, received_bytes;
    bool instrument_time_known;
    int64_t instrument_time;
} pd_run_point;

/* What the run is at one moment, on its way to a slot of the tail. */
typedef struct pd_run_mark {
    pd_mark_task task;
    pd_order order;
    struct pd_run *run;
    bool out;
    d7_tail_dataset *datasets; /* [n_columns] of the part */
    uint64_t *items;           /* [n_columns] of the run */
    pd_run_point point;
    uint8_t *values; /* [n_columns * PD_PAGE_BYTES] of the pages that are filling */
} pd_run_mark;

/* One file of the run, and its end. */
typedef struct pd_run_part {
    struct pd_run *run;
    uint32_t number; /* from 0 */
    bool in_use;
    pd_file *file;           /* NULL before it is open, and once it is given to the drop */
    uint64_t first_sequence; /* the last message before it */
    uint64_t first_photon;   /* the run's */
    uint64_t began_ns;
    uint64_t began_bytes; /* of run->received_bytes */
    uint32_t attempts;    /* at making its file, that failed */
    bool instead;         /* of one that failed */
    bool was_there;       /* its file was, and is dropped */
    bool displaces;       /* the file that was begun behind that one */
    uint64_t *ends;       /* [n_columns] items of the run when it ended */
    pd_run_point end;     /* and the rest of it */
    pd_close_task close;
    pd_order close_order;
    pd_task drop;
} pd_run_part;

enum { PD_RUN_PARTS = 2 }; /* that are open at a time: one is being closed while the next is filled */

enum { PD_RUN_MARKS = 2 }; /* under way at a time */

/* A part whose file is left as it is: more may lie in it than counts. */
typedef struct pd_run_left {
    uint32_t number;
    uint64_t *ends; /* [n_columns] items of the run where the next part begins */
} pd_run_left;

/* What a client asked for, checked. Everything is borrowed for pd_run_create(). */
typedef struct pd_run_spec {
    uint8_t id[PD_RUN_ID_BYTES];
    const char *name;
    bool counter;
    const char *profile; /* "" when the datasets were given */
    const char *instance;
    uint64_t epoch; /* of that producer's start */
    const char *client_name;
    const pd_dataset *datasets;
    size_t n_datasets;
    const pd_attribute *attributes; /* those of the client and of the profile */
    size_t n_attributes;
    pd_time_base time_base;
    uint64_t start_utc_ns; /* 0: not told */
    uint64_t start_uncertainty_ns;
    double laser_period_ps; /* 0: not told */
    pd_summary_options summary;
    uint64_t export_interval_ms;
    pd_run_stop stop;
    uint64_t stop_elapsed_ms; /* of a run that goes on: of its time */
    bool warned;              /* what the summary misses in the attributes was logged */
    bool drop;                /* what there is no room for, rather than hold the client back */
    uint64_t batch_bytes;     /* of a run that goes on: what its producer was told; 0: as there is room */
    uint32_t part;            /* of a run that goes on: where its file stands in it */
    uint64_t first_sequence;
    const uint64_t *first_items; /* [n_datasets] items before it; NULL: none */
    pd_volume *volume;           /* where its files lie; NULL: the first one */
} pd_run_spec;

/* Why something was refused. */
typedef struct pd_refusal {
    int code;          /* PHOTON__ERROR_CODE__... */
    uint64_t sequence; /* of the message, or the one expected */
    char field[96];    /* path of the field at fault; empty where none applies */
    char text[256];
} pd_refusal;

/* Fills it (sequence 0). Returns -1. */
int pd_refuse(pd_refusal *why, int code, const char *field, const char *text);

typedef struct pd_run pd_run;

/* How a run tells the connection that it is attached to what happens. */
typedef struct pd_run_events {
    void (*opened)(void *user, pd_run *run);  /* running now */
    void (*durable)(void *user, pd_run *run); /* run->durable has moved */
    void (*turned)(void *user,
                   pd_run *run); /* what is behind run->received has to be sent again; it is running */
    void (*failed)(void *user, pd_run *run); /* run->failure says why; nothing more is told */
    void (*ended)(void *user, pd_run *run);  /* closed; nothing more is told */
} pd_run_events;

/* And whoever keeps the runs: it has ended, and is freed after this. */
typedef void pd_run_ended(void *user, pd_run *run);

struct pd_run {
    pd_engine *engine;
    pd_volume *volume; /* where its files lie */
    pd_exporter *exporter;
    pd_run_state state;
    uint8_t id[PD_RUN_ID_BYTES];
    char id_hex[2 * PD_RUN_ID_BYTES + 1];
    char name[PD_RUN_NAME_BYTES + 1]; /* the one it got, once it is open */
    char instance[PD_INSTANCE_BYTES + 1];
    uint64_t epoch; /* of the start of its producer that spoke for it last */
    char client_name[PD_CLIENT_NAME_BYTES + 1];
    char *profile;
    char *path; /* [path_bytes] of the file; empty until it is open */
    size_t path_bytes;
    char *texts; /* what the columns and groups point to */

    pd_group *groups; /* [n_groups] in the order of their first dataset */
    uint32_t n_groups;
    pd_column *columns; /* [n_columns] */
    uint32_t n_columns;
    uint32_t photon_group;  /* whose items are the run's photons */
    uint64_t photons_paged; /* of them, in pages that the writer has written */
    pd_rebase rebase;       /* of ms indices, on their way into pages */
    pd_run_drop dropped;

    pd_quota quota;
    uint64_t batch_bytes; /* column bytes of one batch, at most */

    uint64_t received; /* sequence number of the last message taken */
    uint64_t durable;
    uint64_t safe;            /* synced; durable once the parts before are closed */
    uint64_t last_durable_ns; /* when that moved; 0: never */
    pd_run_point durable_point, safe_point;

    /* Going back (run_turn.c). */
    bool turning;             /* what is under way comes back; nothing is taken */
    bool reopening;           /* all is back, it waits for the new part's file */
    uint64_t turn_received;   /* what it had received when it turned, */
    uint64_t turn_photons;    /* and photons, that are not counted as given up yet */
    pd_error turn_why;        /* the newest */
    uint32_t n_turns;         /* since something became durable */
    uint64_t close_at;        /* closed again after this message; 0: not */
    const char *close_reason; /* static; as end_reason */
    pd_run_left *left;        /* [n_left] parts that it went back over */
    size_t n_left;

    /* On the way to the file. */
    pd_list order;
    uint32_t n_encoding;          /* pages in the pool */
    uint32_t n_at_volume;         /* tasks that are not back */
    pd_open_outcome open_outcome; /* once it is not opening any more */
    bool close_when_open;
    bool drained; /* the close is in the order */
    bool close_done;
    pd_run_part parts[PD_RUN_PARTS];
    pd_run_part *part;   /* that what comes goes to */
    pd_run_part *before; /* the one before it, until it is closed; else NULL */
    bool part_wanted;    /* another one, by order */
    uint64_t n_parts_closed;
    uv_timer_t part_timer;

    /* Marks (run_mark.c). */
    pd_run_mark marks[PD_RUN_MARKS];
    bool sync_wanted;      /* at once, whatever the interval */
    bool sync_out;         /* a mark that is to be synced is under way */
    bool sync_again;       /* after the next one another: somebody waits for two */
    uint64_t marked;       /* S of the last mark */
    uint64_t synced;       /* S of the last one that was to be synced */
    uint64_t synced_bytes; /* of received_bytes, those up to it */
    uint64_t last_sync_ns; /* when it was made; 0: never */
    uv_timer_t mark_timer;

    pd_run_summary summary;

    const pd_run_events *events; /* of the attached connection; NULL: none */
    void *events_user;
    pd_run_ended *ended;
    void *ended_user;
    uv_timer_t resume_timer; /* runs while detached */

    pd_run_stop stop; /* run_stop.c */
    uint64_t stop_elapsed_ms;
    uv_timer_t stop_timer;

    const char *end_reason; /* static; why it was closed, when the client did not ask; NULL: it did */
    pd_error failure;       /* of a failed run */
    uint32_t n_handles;     /* of libuv, not closed yet */
    bool warned;            /* as in its spec */
    uint64_t export_interval_ms;

    uint64_t n_syncs; /* that came back */

    /* Records (run_records.c). */
    uint64_t n_records[PD_RECORD_KINDS]; /* written: the next one's number */
    uint64_t loss_item, loss_count;      /* what the hardware lost and no record says yet */
    uint64_t n_losses, last_loss, last_loss_count;
    uint64_t last_clock_ns; /* 0: no pair yet */
    uint64_t held_ns;       /* since when it waits for room on the disk; 0: it does not */
    bool instrument_time_known;
    int64_t instrument_time; /* the last one told */

    pd_room_task room; /* space on the disk that is asked for (run_room.c) */
    bool room_out;
    uint64_t page_bound; /* bytes of a page of any column in the file, at most */

    uint64_t attribute_bytes; /* attributes on their way */
    pd_attribute_sizes attribute_sizes;
    pd_kept_attributes kept;                       /* those that a later part begins with */
    char *own_datasets, *own_time_base, *own_open; /* values of ours; the time base's may be NULL */

    /* For people. */
    uint64_t opened_ns;
    uint64_t batches, duplicates, lost_before, received_bytes;
    pd_rate photon_rate, byte_rate;
};

/* Reserves the room, makes the summary and asks for the file. The run is opening then, and ended() will be called in
 * any case.
 *  Returns  0; -1 with why (NO_ROOM): there is no run */
PD_MUST_USE int pd_run_create(pd_run **ret, pd_engine *engine, const pd_run_spec *spec, pd_run_ended *ended,
                              void *ended_user, pd_refusal *why);

/* Goes on with a recovered file, before the loop runs: the run is detached, and closed when nobody comes back.
 *  file   the run's from now on; on failure the caller's
 *  slot   what the file holds, and what is in no page yet
 *  Returns  0; -1 with why: there is no run */
PD_MUST_USE int pd_run_resume(pd_run **ret, pd_engine *engine, const pd_run_spec *spec, pd_file *file,
                              const d7_tail_slot *slot, pd_run_ended *ended, void *ended_user,
                              pd_refusal *why);

/* Who is told from now on. A run with nobody is closed after the configuration's resume time. */
void pd_run_attach(pd_run *run, const pd_run_events *events, void *user);
void pd_run_detach(pd_run *run);

typedef enum pd_taken {
    PD_TAKEN,     /* in the ring */
    PD_DROPPED,   /* of a run with overflow: drop: received, and not stored */
    PD_DUPLICATE, /* it was there: acknowledge again */
    PD_NO_ROOM,   /* not now: ask again when engine->room_came; nothing was changed */
    PD_REFUSED    /* see why */
} pd_taken;

/* Takes a batch whole, or not at all. The run must be running. */
pd_taken pd_run_batch(pd_run *run, const wire_batch *batch, pd_refusal *why);

/* Takes sequenced attributes, whole or not at all; strings are copied. */
pd_taken pd_run_attributes(pd_run *run, uint64_t sequence, const pd_attribute *attributes, size_t n,
                           pd_refusal *why);

/* A marker or a gap of a client; texts are borrowed. */
typedef struct pd_told {
    uint64_t sequence;
    const char *group; /* "": the first one */
    uint64_t item;     /* a marker: before which it stands; a gap: the first after it */
    uint64_t count;    /* of a gap; 0: not known */
    const char *text;  /* or cause */
    uint64_t utc_ns;
} pd_told;

/* Takes one, sequenced as data. */
pd_taken pd_run_told(pd_run *run, pd_record_kind kind, const pd_told *told, pd_refusal *why);

/* Why a client may not set this attribute; NULL when it may. Static text. */
const char *pd_attribute_fault(const pd_config *config, const pd_attribute *attribute);

/* All that was received becomes durable as soon as the disk allows: run->events tells. */
void pd_run_make_durable(pd_run *run);

/* "No photons, but alive": `ticks` of the instrument's clock when `known`. */
void pd_run_alive(pd_run *run, bool known, int64_t ticks);

/* Closes a running run; `reason` is NULL when the client asked. Without effect in other states, but an opening run is
 * closed as soon as it is open. */
void pd_run_close(pd_run *run, const char *reason);

/* All that a running run has taken becomes durable at once, its records included: when n_syncs is what this returns. */
uint64_t pd_run_flush(pd_run *run);

/* The run goes on in a new file from here on; the present one is closed when n_parts_closed is *ret_until. Returns 0, or
 * -1 with err. */
PD_MUST_USE int pd_run_rotate(pd_run *run, uint64_t *ret_until, pd_error *err);

/* A note of the daemon's at the place where the run is now: a marker, as durable as data with the next sync. Returns 0, or -1
 * with err. */
PD_MUST_USE int pd_run_note(pd_run *run, const char *text, pd_error *err);

/* Photons that it has received, those dropped included. */
uint64_t pd_run_photons(const pd_run *run);

/* Of these, known to be on the disk, and those that are on their way there. */
uint64_t pd_run_photons_durable(const pd_run *run);
uint64_t pd_run_photons_in_flight(const pd_run *run);

/* The column by which its photons are counted. */
uint32_t pd_run_photon_column(const pd_run *run);

/* Bytes of batches that could be taken now. */
uint64_t pd_run_credit(const pd_run *run);

/* "opening", "running", "detached", "draining", "closing", "failed", "ended". */
const char *pd_run_state_name(const pd_run *run);

/* ---- between the files of the run ---- */

/* Sequenced attributes on their way to the file and to the summary. */
typedef struct pd_run_attributes_item {
    pd_run *run;
    pd_order order;
    pd_attributes_task task;
    pd_link summary_link;
    unsigned holders;
    uint64_t bytes; /* what it counts in run->attribute_bytes */
} pd_run_attributes_item;

/* run.c */
void pd_run__opened(pd_run *run, const pd_open_task *open); /* the file is there, or it is not */
void pd_run__running(pd_run *run, pd_file *file, const char *name);
void pd_run__wait_for_producer(pd_run *run); /* for the resume time */
void pd_run__fail(pd_run *run, const char *text);
void pd_run__move(pd_run *run, pd_run_state to);                             /* which must be allowed */
void pd_run__order(pd_run *run, pd_order *order, pd_task *task, bool ready); /* gives it its place */
void pd_run__submit(pd_run *run, pd_run_part *part, pd_task *task);          /* at once, out of the order */
void pd_run__flush(pd_run *run);                     /* sends on what is ready and at its turn */
void pd_run__progress(pd_run *run);                  /* something came back: can the run go a step on? */
void pd_run__back(pd_run *run, const pd_task *task); /* a task is back: the run fails with it */

/* run_room.c: whether the disk has room for so many more pages and bytes of attributes; asks for more room ahead. */
bool pd_run__has_room(pd_run *run, uint32_t slots, uint64_t attribute_bytes);

enum { PD_RUN_TIMERS = 5 };
uv_timer_t *pd_run__timer(pd_run *run, int i); /* each of them */

/* A file of the run is not final yet: it is written, or the run is still to be exported. */
void pd_run__hold(const pd_run *run, uint32_t part, bool held);

/* run_open.c */
/* A run with its room in the ring and its summary, without a file: its timers are to be made. */
int pd_run__make(pd_run **ret, pd_engine *engine, const pd_run_spec *spec, pd_run_ended *ended,
                 void *ended_user, pd_refusal *why);
void pd_run__init_handles(pd_run *run);
void pd_run__unreserve(pd_run *run);
void pd_run__free(pd_run *run);

/* run_data.c */
/* Items that are in no page of the file: they begin the column's next page. */
void pd_run__refill(pd_run *run, uint32_t column, const d7_tail_slot *slot, uint32_t n_items);
void pd_run__seal_all(pd_run *run); /* whatever is filling becomes a short page */
void pd_run__give_up(pd_run *run);  /* of a failed run: all pages and attributes that the loop holds */
void pd_run__release(pd_run *run, pd_page *page);
void pd_run__page_to_writer(pd_page *page);
void pd_run__append_index(pd_run *run, uint32_t column, uint64_t index, uint64_t n); /* n times, as it is */
/* Whether it is the next one; NO_ROOM while the run is turning. `message` is the name of the message it stands in. */
pd_taken pd_run__sequence(pd_run *run, const char *message, uint64_t sequence, pd_refusal *why);

/* run_parts.c */
int pd_run__part_init(pd_run *run, const pd_run_spec *spec); /* 0, or -1 when out of memory */
void pd_run__part_free(pd_run *run);
void pd_run__part_opened(pd_run *run,
                         const pd_open_task *open); /* a later one's file is there, or it is not */
bool pd_run__part_is_due(const pd_run *run);
void pd_run__part_begin(
    pd_run *run); /* between two messages, when there may be another part: the old one is ended */
bool pd_run__part_may_begin(const pd_run *run);
/* Of the one that failed, after what is durable; `displaces` what was begun behind it. */
void pd_run__part_instead(pd_run *run, uint32_t number, bool displaces);
void pd_run__part_repeat(pd_run *run, uint32_t column); /* writes the row that part_repeats speaks of */
void pd_run__part_closed(pd_run *run, pd_run_part *part);
void pd_run__order_close(pd_run_part *part);

/* Asks for the file of the part that the run is in, with these attributes and those that every part has. Returns 0, or -1
 * when out of memory. */
int pd_run__ask_for_file(pd_run *run, const char *name, bool counter, const pd_attribute *attributes,
                         size_t n);

/* run_open.c: the text of `json`, which is taken: to be freed; NULL: out of memory, also when `json` is NULL. */
char *pd_run__json_text(struct json_t *json);

/* run_attributes.c */
void pd_run__attributes_release(pd_run_attributes_item *item);
void pd_run__last_attributes(pd_run *run); /* those that the daemon writes at the end */

/* Attributes of a sequenced message that has been checked, but for its room. */
pd_taken pd_run__take_attributes(pd_run *run, uint64_t sequence, const pd_attribute *attributes, size_t n,
                                 const char *field, pd_refusal *why);
/* One of the daemon's own: into the file, not into the exports. Returns 0, or -1 when out of memory. */
int pd_run__own_attribute(pd_run *run, const char *key, const char *value);

/* Which software goes on with the run, by which configuration, where the attributes of its file tell otherwise. */
void pd_run__made_by(pd_run *run, const pd_attribute *attributes, size_t n);
#define PD_SOFTWARE "photond " PHOTOND_VERSION

/* run_gaps.c: what interrupted the run without a loss is written down. */
void pd_run__held(pd_run *run);                  /* a batch has to wait for room */
void pd_run__goes_on(pd_run *run);               /* one is taken */
void pd_run__epoch(pd_run *run, uint64_t epoch); /* of the producer's start that speaks for it now */
void pd_run_clock_stepped(pd_run *run, double seconds);

/* run_records.c */
struct json_t *pd_run__gap_json(const pd_run *run, const pd_group *group, uint64_t item, uint64_t count,
                                const char *cause, uint64_t utc_ns); /* NULL: out of memory */
/* A record of the daemon's own; `json` is taken, NULL counts as out of memory. Returns 0, or -1 when out of memory. */
int pd_run__record(pd_run *run, pd_record_kind kind, uint64_t number, struct json_t *json);
/* A gap in which nothing is missing, where the run is now; one member more unless NULL; durable with the next sync. */
void pd_run__gap(pd_run *run, atomic_uint_fast64_t *counter, const char *cause, const char *member,
                 double value);
void pd_run__lost(pd_run *run, uint64_t item, uint64_t count); /* by the hardware, before this item */
/* Those that are due: before a mark, or the close. Returns 0, or -1 when memory is short for one that the run cannot be gone
 * on with without. */
int pd_run__records(pd_run *run, bool last);
/* How a record in the present file names an item of the run. */
uint64_t pd_run__record_item(const pd_run *run, const pd_group *group, uint64_t item);
void pd_run__records_part(pd_run *run); /* a new file begins: the records of before are not in it */
void pd_run__records_resume(pd_run *run, const pd_attribute *attributes, size_t n); /* those of the file */

/* run_turn.c */
void pd_run__point_take(const pd_run *run, pd_run_point *point); /* where it is now */
bool pd_run__may_turn(const pd_run *run, const pd_file *file);   /* a task of that file came back failed */
void pd_run__turn(pd_run *run, const char *why);
void pd_run__turn_close(pd_run *run, const char *reason); /* it is to be closed while it turns */
void pd_run__turned(pd_run *run);                         /* all is back, and the files are dropped */
void pd_run__turn_over(pd_run *run);                      /* the new file is there */
/* Items of a column after which the part counts no more; UINT64_MAX: all that is in it does. Also the pool, in a job of the summary. */
uint64_t pd_run__part_counts(const pd_run *run, uint32_t part, uint32_t column);
void pd_run__turn_free(pd_run *run);

/* run_mark.c */
int pd_run__mark_init(pd_run *run); /* takes the memory: 0, or -1 */
void pd_run__mark_free(pd_run *run);
void pd_run__mark_due(pd_run *run);                              /* something was taken */
void pd_run__all_durable(pd_run *run);                           /* the last file is closed */
void pd_run__part_durable(pd_run *run, const pd_run_part *part); /* one before is */

#endif
