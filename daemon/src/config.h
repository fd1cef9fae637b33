/* The configuration: one JSON file, and options that override it.
 *
 * One table (config_keys.c) lists the keys with their kinds, limits, defaults and meanings; parsing,
 * --print-config, the options, --help and the test of docs/configuration.md all read it. A key
 * "summaries.image.pixels" is a nested object in the file and the option --summaries-image-pixels.
 * Numbers are in the key's unit; a string may name another one ("5s", "200ms", "64MiB").
 *
 * Errors name the file, the line and the key's path, and for an unknown key the nearest known one:
 *   photond.json:12: summaries.image.pixel: unknown key; did you mean "pixels"?
 */
#ifndef PD_CONFIG_H
#define PD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "config_volumes.h"
#include "error.h"
#include "log.h"
#include "profile.h"

/* A list of texts, owned by the configuration. */
typedef struct pd_text_list {
    char **items; /* [n] */
    size_t n;
} pd_text_list;

typedef enum pd_export_codec { PD_CODEC_ZSTD = 0, PD_CODEC_GZIP } pd_export_codec;

/* What a run's summaries are exported as. */
typedef enum pd_export_format { PD_FORMAT_DAF = 0, PD_FORMAT_ZARR, PD_FORMAT_BOTH } pd_export_format;

/* What becomes of batches for which there is no room. */
typedef enum pd_overflow { PD_OVERFLOW_CLIENT = 0, PD_OVERFLOW_BLOCK, PD_OVERFLOW_DROP } pd_overflow;

/* Which summaries a run gets and how large. Open may override some (pd_summary_options is copied for
 * each run). */
typedef struct pd_summary_options {
    bool enabled;         /* any at all */
    bool image;           /* y_pixel, x_pixel: intensity */
    uint32_t pixels;      /* a side of the image; a power of two, 16 to 4096 */
    bool decay;           /* dt_bin: counts, time_ps */
    bool rate;            /* second: counts */
    uint32_t max_seconds; /* entries of the axis `second`; past it, bins are merged in pairs */
} pd_summary_options;

/* Everything, in base units. Strings are never NULL and owned by the configuration. Once read it is the loop's: what a
 * reload can change (reload.h) changes there; other threads have copies of what they need. */
typedef struct pd_config {
    /* places */
    char *data_dir;
    pd_volume_places volumes;   /* further data folders */
    char *group;                /* group of files, exports and sockets; "": left as it is */
    unsigned file_mode;         /* permission bits of run files and of files in exports, whatever the umask */
    unsigned dir_mode;          /* of directories in exports */
    bool checksums;             /* NAME.photons.crc beside run files */
    bool certificates;          /* NAME.run.json beside closed ones */
    char *certificate_key;      /* PEM file of the key that signs them; "": they are not signed */
    pd_text_list listen;        /* addresses for instruments, tcp://HOST:PORT and unix:PATH */
    unsigned listen_mode;       /* permission bits of Unix sockets among them */
    char *control;              /* control socket: unix:PATH, "auto" (pd_control_address), or "none" */
    unsigned control_mode;      /* permission bits of the control socket */
    bool allow_insecure_remote; /* TCP listeners without TLS on addresses other than loopback */
    char *hook;                 /* program for final files; "": none */
    uint64_t hook_timeout_ms;
    uint64_t keep_last;       /* closed runs; 0: all */
    uint64_t max_total_bytes; /* of a data folder; 0: any */
    char *name_pattern;       /* of runs that are opened without a name; "": they are refused */
    char *ready_file;         /* written with the bound addresses once all is listening; "": none */

    /* who may do what; see access.h */
    char *send_users; /* users and groups at the Unix sockets for events; "": anyone let in by their mode */
    char *control_users;      /* at the control socket */
    char *view_users;         /* at the control socket, for commands that only look */
    char *plain_rights;       /* of TCP without TLS, without a token */
    char *tokens_file;        /* "": none */
    char *tls_certificate;    /* PEM file: ours and those between it and its CA; "": no TLS */
    char *tls_key;            /* PEM file */
    char *tls_client_ca;      /* PEM file: who signs clients' certificates; "": clients have none */
    char *tls_client_crl;     /* PEM file: those no longer good, of each of these CAs; "": none */
    char *certificate_rights; /* of a client with a certificate */
    uint32_t connects_per_s;  /* of one address; 0: any number */

    /* memory and threads */
    uint64_t ring_bytes;      /* key ring_mb */
    uint64_t batch_bytes;     /* column bytes of one batch, at most */
    uint64_t message_bytes;   /* one message, at most */
    uint64_t receive_bytes;   /* key receive_mb: buffers for large messages, over all connections */
    uint64_t output_bytes;    /* a connection's answers that it has not read, at most */
    pd_overflow overflow;     /* as Open says, or one way for all runs */
    uint32_t encoder_threads; /* threads of the pool; 0: one per processor */

    /* limits */
    uint32_t max_connections;
    uint32_t max_runs;
    uint32_t max_runs_per_connection;
    uint32_t max_datasets;            /* of a run */
    uint32_t max_attributes;          /* in one message */
    uint64_t max_attribute_bytes;     /* key plus value of one attribute */
    uint64_t max_run_attribute_bytes; /* keys and values of all attributes of a run */

    /* times */
    uint64_t sync_interval_ms;
    uint64_t part_max_bytes;    /* length of a run's file at which it goes on in another; 0: any */
    uint64_t part_max_ms;       /* key part_max_s: time; 0: any */
    uint64_t resume_timeout_ms; /* key resume_timeout_s, and so on */
    uint64_t stop_timeout_ms;
    uint64_t idle_timeout_ms;
    uint64_t hello_timeout_ms;
    uint64_t heartbeat_ms;

    /* exports */
    uint64_t export_interval_ms;
    uint64_t export_grace_ms;
    pd_export_format export_format;
    pd_export_codec export_codec;
    int export_level; /* of the codec */

    pd_summary_options summaries;
    pd_profiles *profiles; /* built in and custom */
    pd_log_level log_level;
} pd_config;

/* Sets every key to its default. Returns 0, or -1 when out of memory. */
PD_MUST_USE int pd_config_init(pd_config *config, pd_error *err);

/* Reads a file over what is there. Returns 0, or -1 with err: what is wrong and where; `config` is then
 * to be freed only. */
PD_MUST_USE int pd_config_read(pd_config *config, const char *path, pd_error *err);

/* As pd_config_read, from a text of that name (at most PD_CONFIG_MAX_BYTES). */
#define PD_CONFIG_MAX_BYTES (1024u * 1024)
PD_MUST_USE int pd_config_parse(pd_config *config, const char *name, const char *text, size_t bytes,
                                pd_error *err);

/* Sets one key, named as its option without the dashes ("summaries-image-pixels"), from the text of an
 * option. A list key is emptied at the first value and added to by the next (`first` says which it is). */
PD_MUST_USE int pd_config_set(pd_config *config, const char *option, const char *text, bool first,
                              pd_error *err);

/* What the keys say together: limits that contradict each other, nowhere to listen. Called by pd_config_from_args. */
PD_MUST_USE int pd_config_check(const pd_config *config, pd_error *err);

/* The number of the configured group; -1 when none is. Returns 0; -1 with err: this machine does not know it. */
PD_MUST_USE int pd_config_gid(const pd_config *config, int64_t *gid, pd_error *err);

/* The whole configuration as JSON that pd_config_parse reads to the same. Returns 0, or -1 when the
 * stream failed or memory ran out. */
PD_MUST_USE int pd_config_print(const pd_config *config, FILE *out);

void pd_config_free(pd_config *config);

/* Reads what the command line says once more, the file of --config included. `config` need not be initialised and is to be
 * freed whatever is returned. Returns 0, or -1 with err. */
PD_MUST_USE int pd_config_again(pd_config *config, int argc, char **argv, pd_error *err);

typedef enum pd_config_action {
    PD_CONFIG_RUN,  /* the configuration is read and checked: start */
    PD_CONFIG_EXIT, /* --help, --version, --check-config, --print-config did their work: exit 0 */
    PD_CONFIG_FAIL  /* said on standard error: exit 2 */
} pd_config_action;

/* The command line of photond: reads --config FILE and the options, and serves --help, --version,
 * --print-config and --check-config FILE on standard output. `config` need not be initialised and is to
 * be freed by pd_config_free whatever is returned. */
pd_config_action pd_config_from_args(pd_config *config, int argc, char **argv);

#endif
