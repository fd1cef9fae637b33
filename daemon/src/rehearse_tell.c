/* What a rehearsal came to. */
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "rehearse_events.h"
#include "rehearse_private.h"
#include "ring.h"

#define TELL_ENOUGH 0.99 /* of the rate that was asked for */
#define TELL_LAST_S 0.25 /* that the end takes besides its sync */

static void rehearse_measure(rehearsal *r) {
    static const char *const suffixes[] = {".photons", ".photons.crc"};
    double bytes = 0;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char file[REHEARSE_PATH_BYTES + 32];
        struct stat there;
        snprintf(file, sizeof file, "%s/" REHEARSE_NAME "%s", r->folder, suffixes[i]);
        bytes += stat(file, &there) == 0 ? (double)there.st_size : 0;
    }
    r->bytes_per_event = r->sent ? bytes / (double)r->sent : 0;
}

static double status_number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

/* The figures, as --json prints them. NULL: out of memory. */
static json_t *rehearse_figures(const rehearsal *r, bool *ret_sustained) {
    const json_t *volume = json_array_get(json_object_get(r->status, "volumes"), 0);
    const json_t *syncs = json_object_get(volume, "syncs"), *ring = json_object_get(r->status, "ring");
    const json_t *counters = json_object_get(r->status, "counters");
    /* The last events become durable by one more sync, however little there is to do; they were sent in time. */
    double last_s = 2 * status_number(syncs, "longest_ms") / 1e3 + TELL_LAST_S;
    double rate_hz = (double)r->sent / fmax(r->seconds, r->durable_s - last_s);
    double disk = rate_hz * r->bytes_per_event, wanted = r->rate_hz * r->bytes_per_event;
    double slots = status_number(ring, "slots"), free_bytes = status_number(volume, "free_bytes");
    bool sustained = r->sent == r->asked && rate_hz >= TELL_ENOUGH * r->rate_hz;
    *ret_sustained = sustained;
    return json_pack(
        "{s:s, s:s, s:f, s:f, s:b, s:f, s:b, s:I, s:{s:f, s:f, s:f, s:f}, s:{s:f, s:f, s:f, s:I}, s:O}",
        "profile", r->profile_name, "data_dir", r->config.data_dir, "rate_hz", r->rate_hz, "seconds",
        r->seconds, "sustained", (int)sustained, "sustained_hz", rate_hz, "shared", (int)r->shared, "events",
        (json_int_t)r->sent, "disk", "bytes_per_event", r->bytes_per_event, "bytes_per_s", disk, "free_bytes",
        free_bytes, "lasts_s", wanted > 0 ? free_bytes / wanted : 0.0, "ring", "bytes",
        slots * (double)PD_PAGE_BYTES, "covers_s",
        slots * (double)PD_PAGE_BYTES / pd_rehearse_bytes_per_s(r->profile, r->rate_hz), "used_at_most",
        slots > 0 ? status_number(ring, "high_water") / slots : 0.0, "held_back",
        (json_int_t)status_number(counters, "stalls"), "syncs", syncs ? syncs : json_null());
}

static void print_time(char text[32], double seconds) {
    if (seconds < 180)
        snprintf(text, 32, "%.3g s", seconds);
    else if (seconds < 180 * 60)
        snprintf(text, 32, "%.0f min", seconds / 60);
    else if (seconds < 72 * 3600)
        snprintf(text, 32, "%.0f h", seconds / 3600);
    else
        snprintf(text, 32, "%.0f days", fmin(seconds / 86400, 1e9));
}

static void print_figures(const json_t *f) {
    const json_t *disk = json_object_get(f, "disk"), *ring = json_object_get(f, "ring"),
                 *syncs = json_object_get(f, "syncs");
    bool sustained = json_is_true(json_object_get(f, "sustained"));
    char asked[32], got[32], speed[32], room[32], lasts[32], bytes[32];
    cli_format_count(asked, sizeof asked, status_number(f, "rate_hz"));
    cli_format_count(got, sizeof got, status_number(f, "sustained_hz"));
    cli_format_count(speed, sizeof speed, status_number(disk, "bytes_per_s"));
    cli_format_count(room, sizeof room, status_number(disk, "free_bytes"));
    cli_format_count(bytes, sizeof bytes, status_number(ring, "bytes"));
    print_time(lasts, status_number(disk, "lasts_s"));
    cli_print_line(stdout, "%sevents/s of profile %s for %.3g s in %s: %s", asked,
                   json_string_value(json_object_get(f, "profile")), status_number(f, "seconds"),
                   json_string_value(json_object_get(f, "data_dir")),
                   sustained ? "sustained" : "NOT sustained");
    if (json_is_true(json_object_get(f, "shared")))
        cli_print_line(stdout,
                       "  beside    a photond that runs there: processors and disk were shared with it");
    cli_print_line(stdout, "  rate      %sevents/s until all was on the disk", got);
    cli_print_line(
        stdout,
        "  disk      %.3g bytes an event, %sB/s; %sB are free, which last for %s at the rate asked for",
        status_number(disk, "bytes_per_event"), speed, room, lasts);
    print_time(lasts, status_number(ring, "covers_s"));
    cli_print_line(stdout,
                   "  ring      %sB, which cover a disk that stands still for %s; at most %.0f %% were in "
                   "use; the sender was "
                   "held back %.0f times",
                   bytes, lasts, 100 * status_number(ring, "used_at_most"), status_number(ring, "held_back"));
    cli_print_line(
        stdout,
        "  syncs     %.0f: half of them within %.3g ms, 99 of 100 within %.3g ms, the longest %.3g ms",
        status_number(syncs, "n"), status_number(syncs, "median_ms"), status_number(syncs, "p99_ms"),
        status_number(syncs, "longest_ms"));
}

int pd_rehearse__tell(rehearsal *r) {
    bool sustained = false;
    rehearse_measure(r);
    json_t *figures = rehearse_figures(r, &sustained);
    if (!figures)
        return pd_rehearse__fail("out of memory");
    if (!r->json)
        print_figures(figures);
    else if (json_dumpf(figures, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0)
        putchar('\n');
    json_decref(figures);
    return cli_finish("photond", sustained ? CLI_OK : CLI_PROBLEMS);
}
