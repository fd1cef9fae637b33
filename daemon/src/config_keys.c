#include <stdlib.h>
#include <string.h>

#include "config_keys.h"

#define SECOND_MS UINT64_C(1000)
#define DAY_MS (24 * 3600 * SECOND_MS)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

#define AT(field) offsetof(pd_config, field)

/* In the order in which --help, --print-config and docs/configuration.md show them. */
const pd_config_key pd_config_keys[] = {
    {"data_dir", PD_CONFIG_TEXT, AT(data_dir), 1, 1, 4000, "/var/lib/photond",
     "folder of the runs: NAME.photons and NAME.daf"},
    {"volumes", PD_CONFIG_VOLUMES, AT(volumes), 1, 0, 0, "",
     "further data folders by name, which a client may choose (file only)"},
    {"group", PD_CONFIG_TEXT, AT(group), 1, 0, 64, "",
     "group of all files, exports and sockets made; empty: as the process"},
    {"file_mode", PD_CONFIG_MODE, AT(file_mode), 1, 0400, 0777, "0644",
     "permission bits of files, whatever the umask"},
    {"dir_mode", PD_CONFIG_MODE, AT(dir_mode), 1, 0500, 0777, "0755",
     "permission bits of the folders of exports"},
    {"checksums", PD_CONFIG_BOOL, AT(checksums), 1, 0, 1, "true",
     "keep the checksum of every page beside each file, in NAME.photons.crc"},
    {"certificates", PD_CONFIG_BOOL, AT(certificates), 1, 0, 1, "true",
     "put a certificate beside each closed file, in NAME.run.json"},
    {"certificate_key", PD_CONFIG_TEXT, AT(certificate_key), 1, 0, 4000, "",
     "PEM file of the private key that signs certificates; empty: they are not signed"},
    {"hook", PD_CONFIG_TEXT, AT(hook), 1, 0, 4000, "",
     "program that is run for each file that is final; empty: none"},
    {"hook_timeout_s", PD_CONFIG_DURATION, AT(hook_timeout_ms), SECOND_MS, 1000, 365 * DAY_MS, "3600",
     "time that it may take"},
    {"keep_last", PD_CONFIG_COUNT, AT(keep_last), 1, 0, 1000000000, "0",
     "closed runs of a data folder that are kept, the oldest are removed; 0: all"},
    {"max_total_bytes", PD_CONFIG_SIZE, AT(max_total_bytes), 1, 0, 1024 * 1024 * GIB, "0",
     "old runs are removed when all of a data folder take more; 0: never"},

    {"listen", PD_CONFIG_ADDRESSES, AT(listen), 1, 0, 64, "tcp://127.0.0.1:7777",
     "where instruments connect: tcp://HOST:PORT, tls://HOST:PORT or unix:PATH; may be given several times"},
    {"listen_mode", PD_CONFIG_MODE, AT(listen_mode), 1, 0, 0777, "0660",
     "permission bits of the Unix sockets among them"},
    {"allow_insecure_remote", PD_CONFIG_BOOL, AT(allow_insecure_remote), 1, 0, 1, "false",
     "allow tcp:// addresses other than loopback: anyone on the network may read, forge and send"},
    {"control", PD_CONFIG_CONTROL, AT(control), 1, 0, 0, "auto",
     "socket for photonctl: unix:PATH, auto or none"},
    {"control_mode", PD_CONFIG_MODE, AT(control_mode), 1, 0, 0777, "0660",
     "permission bits of the control socket"},
    {"ready_file", PD_CONFIG_TEXT, AT(ready_file), 1, 0, 4000, "",
     "file to write the bound addresses to (JSON) once everything listens; empty: none"},

    {"send_users", PD_CONFIG_TEXT, AT(send_users), 1, 0, 1000, "",
     "users and @groups that may send over Unix sockets; empty: all that their mode lets in"},
    {"control_users", PD_CONFIG_TEXT, AT(control_users), 1, 0, 1000, "",
     "users and @groups that may use photonctl; empty: all that the socket's mode lets in"},
    {"view_users", PD_CONFIG_TEXT, AT(view_users), 1, 0, 1000, "",
     "users and @groups that may look by photonctl; empty: all that the socket's mode lets in"},
    {"plain_rights", PD_CONFIG_TEXT, AT(plain_rights), 1, 0, 30, "send",
     "what tcp:// connections may do without a token: send, control, view or nothing"},
    {"tokens_file", PD_CONFIG_TEXT, AT(tokens_file), 1, 0, 4000, "",
     "file of tokens, made by photonctl token; empty: none"},
    {"tls_certificate", PD_CONFIG_TEXT, AT(tls_certificate), 1, 0, 4000, "",
     "PEM file of the certificate for tls:// addresses, with those between it and its CA"},
    {"tls_key", PD_CONFIG_TEXT, AT(tls_key), 1, 0, 4000, "", "PEM file of its private key"},
    {"tls_client_ca", PD_CONFIG_TEXT, AT(tls_client_ca), 1, 0, 4000, "",
     "PEM file of CAs whose certificates clients may show; empty: clients need tokens"},
    {"tls_client_crl", PD_CONFIG_TEXT, AT(tls_client_crl), 1, 0, 4000, "",
     "PEM file of revocation lists of all these CAs; empty: none"},
    {"certificate_rights", PD_CONFIG_TEXT, AT(certificate_rights), 1, 0, 30, "send",
     "what clients with a certificate may do"},
    {"connects_per_s", PD_CONFIG_COUNT, AT(connects_per_s), 1, 0, 1000000, "100",
     "TCP connections of one address a second, in the long run; 0: any number"},

    {"ring_mb", PD_CONFIG_SIZE, AT(ring_bytes), MIB, 1 * MIB, 1024 * GIB, "64",
     "memory for events on their way to the disk"},
    {"batch_bytes", PD_CONFIG_SIZE, AT(batch_bytes), 1, 64 * KIB, 64 * MIB, "1MiB",
     "column bytes of one batch, at most"},
    {"message_bytes", PD_CONFIG_SIZE, AT(message_bytes), 1, 64 * KIB, 1 * GIB, "16MiB",
     "one message, at most"},
    {"receive_mb", PD_CONFIG_SIZE, AT(receive_bytes), MIB, 1 * MIB, 64 * GIB, "64",
     "buffers for large messages, over all connections"},
    {"output_bytes", PD_CONFIG_SIZE, AT(output_bytes), 1, 16 * KIB, 64 * MIB, "256KiB",
     "answers that a connection has not read, at most"},
    {"overflow", PD_CONFIG_OVERFLOW, AT(overflow), 1, 0, 0, "client",
     "batches without room: as the client asks (client), hold all back (block) or drop all (drop)"},
    {"encoder_threads", PD_CONFIG_COUNT, AT(encoder_threads), 1, 0, 1024, "0",
     "threads that encode and summarise; 0: one per processor"},

    {"max_connections", PD_CONFIG_COUNT, AT(max_connections), 1, 1, 65536, "64", "connections at a time"},
    {"max_runs", PD_CONFIG_COUNT, AT(max_runs), 1, 1, 65536, "64", "open runs at a time"},
    {"max_runs_per_connection", PD_CONFIG_COUNT, AT(max_runs_per_connection), 1, 1, 65536, "16",
     "open runs of one connection"},
    {"max_datasets", PD_CONFIG_COUNT, AT(max_datasets), 1, 1, 256, "64", "datasets of a run"},
    {"max_attributes", PD_CONFIG_COUNT, AT(max_attributes), 1, 1, 1000000, "10000",
     "attributes in one message"},
    {"max_attribute_bytes", PD_CONFIG_SIZE, AT(max_attribute_bytes), 1, 1 * KIB, 16 * MIB, "1MiB",
     "key and value of one attribute"},
    {"max_run_attribute_bytes", PD_CONFIG_SIZE, AT(max_run_attribute_bytes), 1, 1 * KIB, 1 * GIB, "16MiB",
     "keys and values of all attributes of a run"},

    {"sync_interval_ms", PD_CONFIG_DURATION, AT(sync_interval_ms), 1, 10, DAY_MS, "1000",
     "time between syncs to the disk: what has been synced is acknowledged as durable"},
    {"part_max_bytes", PD_CONFIG_SIZE, AT(part_max_bytes), 1, 0, 1024 * GIB * 1024, "0",
     "a run whose file has become so long goes on in another (NAME.0001.photons, ...); 0: never"},
    {"part_max_s", PD_CONFIG_DURATION, AT(part_max_ms), SECOND_MS, 0, 365 * DAY_MS, "0",
     "a run goes on in another file after so long; 0: never"},
    {"resume_timeout_s", PD_CONFIG_DURATION, AT(resume_timeout_ms), SECOND_MS, 0, 365 * DAY_MS, "30",
     "how long a run whose connection ended waits for its producer before it is closed"},
    {"stop_timeout_s", PD_CONFIG_DURATION, AT(stop_timeout_ms), SECOND_MS, 100, DAY_MS, "60",
     "how long a stop waits for a disk that does not answer"},
    {"idle_timeout_s", PD_CONFIG_DURATION, AT(idle_timeout_ms), SECOND_MS, 100, 365 * DAY_MS, "60",
     "a client that sends nothing for so long is disconnected"},
    {"hello_timeout_s", PD_CONFIG_DURATION, AT(hello_timeout_ms), SECOND_MS, 100, DAY_MS, "10",
     "time that a new connection has to say who it is"},
    {"heartbeat_ms", PD_CONFIG_DURATION, AT(heartbeat_ms), 1, 10, DAY_MS, "5000",
     "a client with nothing to send says so this often"},

    {"export_interval_s", PD_CONFIG_DURATION, AT(export_interval_ms), SECOND_MS, 10, 365 * DAY_MS, "5",
     "time between exports of a run's summaries"},
    {"export_grace_s", PD_CONFIG_DURATION, AT(export_grace_ms), SECOND_MS, 0, DAY_MS, "10",
     "how long a replaced export is kept for those who read it"},
    {"export_format", PD_CONFIG_FORMAT, AT(export_format), 1, 0, 0, "daf",
     "what runs are exported as: daf (NAME.daf), zarr (NAME.daf.zarr) or both"},
    {"export_codec", PD_CONFIG_CODEC, AT(export_codec), 1, 0, 0, "zstd",
     "compression of exports: zstd or gzip"},
    {"export_level", PD_CONFIG_LEVEL, AT(export_level), 1, 1, 19, "3",
     "level of that compression (gzip: up to 9)"},

    {"summaries.enabled", PD_CONFIG_BOOL, AT(summaries.enabled), 1, 0, 1, "true",
     "make and export summaries of runs"},
    {"summaries.image.enabled", PD_CONFIG_BOOL, AT(summaries.image), 1, 0, 1, "true", "the image"},
    {"summaries.image.pixels", PD_CONFIG_POWER, AT(summaries.pixels), 1, 16, 4096, "512",
     "a side of the image, a power of two"},
    {"summaries.decay.enabled", PD_CONFIG_BOOL, AT(summaries.decay), 1, 0, 1, "true", "the decay"},
    {"summaries.rate.enabled", PD_CONFIG_BOOL, AT(summaries.rate), 1, 0, 1, "true",
     "photons per second of the run"},
    {"summaries.rate.max_seconds", PD_CONFIG_COUNT, AT(summaries.max_seconds), 1, 60, 10000000, "86400",
     "entries of the axis; past it, seconds are merged in pairs"},

    {"name_pattern", PD_CONFIG_TEXT, AT(name_pattern), 1, 0, 128, "",
     "name of runs that are opened without one: {date}, {time}, {profile} and {counter} are filled in"},
    {"profiles", PD_CONFIG_PROFILES, AT(profiles), 1, 0, 0, "",
     "further lists of datasets by name (file only)"},
    {"log_level", PD_CONFIG_LOG_LEVEL, AT(log_level), 1, 0, 0, "info", "error, warning, info or debug"},
};

const size_t pd_config_n_keys = sizeof pd_config_keys / sizeof pd_config_keys[0];

bool pd_config_key_is_file_only(const pd_config_key *key) {
    return key->kind == PD_CONFIG_PROFILES || key->kind == PD_CONFIG_VOLUMES;
}

const pd_config_key *pd_config_key_by_path(const char *path) {
    for (size_t i = 0; i < pd_config_n_keys; i++)
        if (strcmp(pd_config_keys[i].path, path) == 0)
            return &pd_config_keys[i];
    return NULL;
}

const char *pd_config_option(const pd_config_key *key, char option[PD_CONFIG_OPTION_BYTES]) {
    size_t n = 0;
    for (const char *p = key->path; *p && n + 1 < PD_CONFIG_OPTION_BYTES; p++)
        option[n++] = *p == '.' || *p == '_' ? '-' : *p;
    option[n] = '\0';
    return option;
}

const pd_config_key *pd_config_key_by_option(const char *option) {
    char own[PD_CONFIG_OPTION_BYTES];
    for (size_t i = 0; i < pd_config_n_keys; i++)
        if (!pd_config_key_is_file_only(&pd_config_keys[i]) &&
            strcmp(pd_config_option(&pd_config_keys[i], own), option) == 0)
            return &pd_config_keys[i];
    return NULL;
}
