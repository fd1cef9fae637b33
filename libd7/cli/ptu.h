/* PicoQuant's unified tag files (PTU): a header of tags, then time-tagged records of 32 bits as the instrument gave them.
 *
 * In T2 mode every event has its own time; in T3 mode a photon has the number of the laser pulse (sync) before it and its
 * micro time after that pulse. Times do not fit a record: special records count how often they have run over.
 *
 * Source: the tag file's own description and demonstration programs by PicoQuant, which these functions agree with in
 * channel numbers and overflows. */
#ifndef D7_CLI_PTU_H
#define D7_CLI_PTU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the bytes come from, in their order. */
typedef struct ptu_input {
    void *ctx;
    int64_t (*read)(void *ctx, void *buffer, size_t bytes); /* how many, 0 at the end, or a negative errno */
    uint64_t offset;                                        /* of the next byte */
} ptu_input;

/* Reads until `bytes` are there or the input ends. Returns how many, or a negative errno. */
int64_t ptu_read(ptu_input *in, void *buffer, size_t bytes);

/* What is wrong with a file, and where. */
typedef struct ptu_fault {
    uint64_t offset;
    char text[256];
} ptu_fault;

/* How the records of a file are laid out. */
typedef struct ptu_format {
    uint32_t record_type; /* TTResultFormat_TTTRRecType */
    const char *name;
    bool t3;
    bool pico;         /* PicoHarp's layout, else HydraHarp's */
    bool counted;      /* an overflow record says how many overflows it stands for */
    uint32_t overflow; /* what one is worth */
} ptu_format;

/* NULL where the number is none of those known. */
const ptu_format *ptu_find_format(int64_t record_type);

enum {
    PTU_TAGS_MAX = 65536,
    PTU_HEADER_BYTES_MAX = 64 << 20,
    PTU_TAG_BYTES_MAX = 16 << 20,      /* what belongs to one tag */
    PTU_KEPT_BYTES_MAX = 1 << 20,      /* longer ones are named by their length */
    PTU_BATCH_RECORDS = 65536,         /* at most, for one call of ptu_decode() */
    PTU_SECONDS_MAX = (1u << 31) / 500 /* 49 days: a later time is a damaged record's */
};

/* One tag: "Name", or "Name(2)" where it has an index, and its value as UTF-8 text. Returns 0, anything else stops. */
typedef int ptu_tag_fn(void *ctx, const char *key, const char *value);

/* What the header says of the records. */
typedef struct ptu_header {
    const ptu_format *format;
    bool has_n_records;
    uint64_t n_records;
    double
        global_resolution_s; /* of times (T2), or between two syncs (T3); 0 where the header does not tell */
    double resolution_s;     /* of micro times; 0 where the header does not tell */
    uint64_t records_offset;
} ptu_header;

/* Reads the header and leaves the input at the first record. Returns 0, -1 (see fault), or what on_tag returned. */
int ptu_read_header(ptu_input *in, ptu_tag_fn *on_tag, void *ctx, ptu_header *ret, ptu_fault *fault);

/* Goes from record to record. Begin with the format, max_time and zeros. */
typedef struct ptu_decoder {
    const ptu_format *format;
    uint64_t max_time;                    /* in units of the global resolution: a later one is not believed */
    uint64_t overflow;                    /* to be added to times */
    uint64_t photons, markers, overflows; /* seen so far */
    uint64_t unknown;                     /* special records that mean nothing known: left out */
    uint64_t odd_channels;                /* photons of a PicoHarp's channel that it does not have: kept */
} ptu_decoder;

/* Events of a batch, room for PTU_BATCH_RECORDS of each. */
typedef struct ptu_events {
    size_t n;         /* photons */
    uint64_t *time;   /* units of the global resolution (T2), number of the sync (T3) */
    uint16_t *dt;     /* micro time in units of the resolution; T3 only */
    uint8_t *channel; /* T2: 0 is the sync input, 1 the first other; T3: as in the record */
    size_t n_markers;
    uint64_t *marker_time;
    uint64_t *marker_photon; /* how many photons of the file came before */
    uint16_t *marker_bits;   /* bit 0: marker input 1, and so on */
} ptu_events;

/* Decodes n records (at most PTU_BATCH_RECORDS) of 4 bytes. Returns how many were decoded: fewer than n where a time
 * passes max_time. */
size_t ptu_decode(ptu_decoder *d, const uint8_t *records, size_t n, ptu_events *ret);

#endif
