/* The status on one screen. Numbers that a daemon of another version does not tell are shown as 0 or
 * "-". */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cli/progress.h"
#include "ctl.h"
#include "text.h"

enum { PRINT_TEXT_BYTES = 64, PRINT_LONG_BYTES = 256 };

/* ---- members ---- */

static double print_number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

/* "12.3 M"; without a prefix no blank is left at the end. */
static const char *print_count(double count, char buffer[PRINT_TEXT_BYTES]) {
    cli_format_count(buffer, PRINT_TEXT_BYTES, count);
    size_t n = strlen(buffer);
    while (n && buffer[n - 1] == ' ')
        buffer[--n] = '\0';
    return buffer;
}

/* "12.3 MB" */
static const char *print_bytes(double bytes, char buffer[PRINT_TEXT_BYTES]) {
    cli_format_count(buffer, PRINT_TEXT_BYTES - 1, bytes);
    return strcat(buffer, "B");
}

/* "0.4 s", "12 min", "3 h 20 min", "4 d 3 h"; "-" for what never was. */
static const char *print_age(const json_t *object, const char *key, char buffer[PRINT_TEXT_BYTES]) {
    const json_t *value = json_object_get(object, key);
    double s = json_number_value(value);
    if (!json_is_number(value) || s < 0)
        return strcpy(buffer, "-");
    if (s < 100)
        snprintf(buffer, PRINT_TEXT_BYTES, s < 10 ? "%.1f s" : "%.0f s", s);
    else if (s < 6000)
        snprintf(buffer, PRINT_TEXT_BYTES, "%.0f min", s / 60);
    else if (s < 48 * 3600)
        snprintf(buffer, PRINT_TEXT_BYTES, "%.0f h %.0f min", floor(s / 3600), floor(fmod(s, 3600) / 60));
    else
        snprintf(buffer, PRINT_TEXT_BYTES, "%.0f d %.0f h", floor(s / 86400), floor(fmod(s, 86400) / 3600));
    return buffer;
}

/* ---- the daemon ---- */

static void print_head(FILE *out, const json_t *status) {
    char version[PRINT_TEXT_BYTES], health[PRINT_TEXT_BYTES], age[PRINT_TEXT_BYTES], text[PRINT_LONG_BYTES];
    fprintf(out, "photond %s  %s%s%s  up %s  pid %.0f\n",
            ctl_text(status, "version", version, sizeof version),
            ctl_text(status, "health", health, sizeof health),
            json_is_true(json_object_get(status, "stopping")) ? ", stopping" : "",
            json_is_true(json_object_get(status, "draining")) ? ", takes no new runs" : "",
            print_age(status, "uptime_s", age), print_number(status, "pid"));
    const json_t *item;
    size_t i;
    json_array_foreach(json_object_get(status, "reasons"), i, item) {
        pd_text_escape(text, sizeof text, json_is_string(item) ? json_string_value(item) : "?");
        fprintf(out, "  !       %s\n", text);
    }
    fprintf(out, "  data    %s\n", ctl_text(status, "data_dir", text, sizeof text));
    json_array_foreach(json_object_get(status, "listen"), i, item) {
        pd_text_escape(text, sizeof text, json_is_string(item) ? json_string_value(item) : "?");
        fprintf(out, "  listen  %s\n", text);
    }
}

static void print_disk(FILE *out, const char *volume, const json_t *disk) {
    const json_t *room = json_object_get(disk, "free_bytes");
    char bytes[PRINT_TEXT_BYTES];
    fprintf(out, "  disk    %s free%s%s%s\n",
            json_is_number(room) ? print_bytes(json_number_value(room), bytes) : "-",
            *volume ? " on volume " : "", volume,
            json_is_true(json_object_get(disk, "full")) ? "  FULL: waiting for room" : "");
}

/* What the start found of runs that were open before, where it found something. */
static void print_recovery(FILE *out, const json_t *recovery) {
    double recovered = print_number(recovery, "recovered"), failed = print_number(recovery, "failed");
    double cut = print_number(recovery, "cut_bytes");
    char file[PRINT_LONG_BYTES], why[4 * PRINT_LONG_BYTES], bytes[PRINT_TEXT_BYTES];
    const json_t *failure;
    size_t i;
    if (recovered + failed == 0)
        return;
    fprintf(out, "  start   %.0f runs recovered  %.0f could not be  %s cut off and kept beside\n", recovered,
            failed, print_bytes(cut, bytes));
    json_array_foreach(json_object_get(recovery, "failures"), i, failure) {
        fprintf(out, "          %s: %s\n", ctl_text(failure, "file", file, sizeof file),
                ctl_text(failure, "text", why, sizeof why));
    }
}

static void print_certificates(FILE *out, const json_t *status, const json_t *counters) {
    double made = print_number(counters, "certificates"),
           failed = print_number(counters, "certificates_failed");
    double pending = print_number(status, "certificates_pending");
    if (made + failed + pending > 0)
        fprintf(out, "  proofs  %.0f certificates made  %.0f failed  %.0f to come\n", made, failed, pending);
}

static void print_totals(FILE *out, const json_t *status) {
    const json_t *rates = json_object_get(status, "rates"), *ring = json_object_get(status, "ring");
    const json_t *disk = json_object_get(status, "disk"), *c = json_object_get(status, "counters");
    size_t i;
    char a[PRINT_TEXT_BYTES], b[PRINT_TEXT_BYTES], d[PRINT_TEXT_BYTES];
    fprintf(out, "  rate    %s photons/s  %s/s received  %s/s written\n",
            print_count(print_number(rates, "photons_per_s"), a),
            print_bytes(print_number(rates, "bytes_per_s"), b),
            print_bytes(print_number(rates, "written_per_s"), d));
    double slots = print_number(ring, "slots");
    double percent = slots > 0 ? 100 / slots : 0;
    fprintf(out, "  ring    %.0f %% full  %.0f %% at most  %.0f %% reserved  %s  %.0f streams held back\n",
            print_number(ring, "used") * percent, print_number(ring, "high_water") * percent,
            print_number(ring, "reserved") * percent,
            print_bytes(slots * print_number(ring, "slot_bytes"), a), print_number(ring, "stalled"));
    print_disk(out, "", disk);
    json_array_foreach(json_object_get(status, "volumes"), i, disk) {
        if (i > 0)
            print_disk(out, ctl_text(disk, "name", a, sizeof a), disk);
    }
    fprintf(out, "  photons %s received  %s durable  %.0f dropped\n",
            print_count(print_number(c, "photons_received"), a),
            print_count(print_number(c, "photons_durable"), b), print_number(c, "photons_dropped"));
    fprintf(out, "  bytes   %s received  %s written  %.0f syncs (%.0f failed)\n",
            print_bytes(print_number(c, "bytes_received"), a),
            print_bytes(print_number(c, "bytes_written"), b), print_number(c, "syncs"),
            print_number(c, "sync_failures"));
    fprintf(out, "  runs    %.0f opened  %.0f closed  %.0f failed  %.0f refused\n",
            print_number(c, "runs_opened"), print_number(c, "runs_closed"), print_number(c, "runs_failed"),
            print_number(c, "opens_refused"));
    fprintf(out, "  exports %.0f done  %.0f failed  %.0f skipped\n", print_number(c, "exports"),
            print_number(c, "exports_failed"), print_number(c, "exports_skipped"));
    print_certificates(out, status, c);
    print_recovery(out, json_object_get(status, "recovery"));
    fprintf(out, "  clients %.0f accepted  %.0f refused  %.0f ended by an error  %.0f by silence\n",
            print_number(c, "connections"), print_number(c, "connections_refused"),
            print_number(c, "connection_errors"), print_number(c, "timeouts"));
}

/* ---- runs and connections ---- */

static void print_run(FILE *out, const json_t *run) {
    const json_t *c = json_object_get(run, "counters");
    char name[41], state[PRINT_TEXT_BYTES], photons[PRINT_TEXT_BYTES], rate[PRINT_TEXT_BYTES],
        file[PRINT_TEXT_BYTES];
    char safe[PRINT_TEXT_BYTES], shown[PRINT_TEXT_BYTES];
    fprintf(out, "%-24s %-9s %9s %9s %9s  %-10s %-10s %.0f\n", ctl_text(run, "name", name, sizeof name),
            ctl_text(run, "state", state, sizeof state), print_count(print_number(c, "photons"), photons),
            print_count(print_number(run, "photons_per_s"), rate),
            print_bytes(print_number(c, "file_bytes"), file), print_age(run, "durable_age_s", safe),
            print_age(run, "last_export_age_s", shown), print_number(c, "exports"));
    static const char *const notes[] = {"waits", "failure"};
    for (size_t i = 0; i < 2; i++) {
        char text[PRINT_LONG_BYTES];
        if (json_is_string(json_object_get(run, notes[i])))
            fprintf(out, "  ! %s: %s\n", notes[i], ctl_text(run, notes[i], text, sizeof text));
    }
    double dropped = print_number(c, "dropped_photons"), lost = print_number(c, "lost_before");
    if (dropped > 0 || lost > 0)
        fprintf(out, "  ! %.0f photons dropped here, %.0f lost by the instrument\n", dropped, lost);
}

static void print_armed(FILE *out, const json_t *armed) {
    const json_t *run;
    size_t i;
    json_array_foreach(armed, i, run) {
        char name[41], profile[PRINT_TEXT_BYTES], age[PRINT_TEXT_BYTES];
        fprintf(out, "%-24s armed, for a producer with profile %s, for %s\n",
                ctl_text(run, "name", name, sizeof name), ctl_text(run, "profile", profile, sizeof profile),
                print_age(run, "age_s", age));
    }
}

void ctl_print_runs(FILE *out, const json_t *status) {
    const json_t *run, *runs = json_object_get(status, "runs");
    size_t i;
    print_armed(out, json_object_get(status, "armed"));
    if (json_array_size(runs) == 0) {
        fputs("no open runs\n", out);
        return;
    }
    fprintf(out, "%-24s %-9s %9s %9s %9s  %-10s %-10s %s\n", "RUN", "STATE", "PHOTONS", "PER S", "FILE",
            "SAFE AGO", "SHOWN AGO", "EXPORTS");
    json_array_foreach(runs, i, run) {
        print_run(out, run);
    }
}

static void print_connections(FILE *out, const json_t *connections) {
    const json_t *c;
    size_t i;
    if (json_array_size(connections) == 0)
        return;
    fprintf(out, "\n%-24s %-28s %4s %10s  %s\n", "CLIENT", "FROM", "RUNS", "RECEIVED", "LAST HEARD");
    json_array_foreach(connections, i, c) {
        char client[41], peer[PRINT_TEXT_BYTES], bytes[PRINT_TEXT_BYTES], age[PRINT_TEXT_BYTES];
        fprintf(out, "%-24s %-28s %4.0f %10s  %s ago%s%s\n", ctl_text(c, "client", client, sizeof client),
                ctl_text(c, "peer", peer, sizeof peer), print_number(c, "runs"),
                print_bytes(print_number(c, "received_bytes"), bytes), print_age(c, "silent_s", age),
                json_is_true(json_object_get(c, "silent")) ? "  SILENT" : "",
                json_is_true(json_object_get(c, "paused")) ? "  held back" : "");
    }
}

void ctl_print_status(FILE *out, const json_t *status) {
    print_head(out, status);
    print_totals(out, status);
    fputc('\n', out);
    ctl_print_runs(out, status);
    print_connections(out, json_object_get(status, "connections"));
}
