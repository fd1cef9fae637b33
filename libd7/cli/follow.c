/* d7 follow: what a recording gets, as it gets it.
 *
 *   open -> print what is new -> wait -> refresh -> print ...
 *   closed -> the next part, if one comes in time -> open ...
 *          -> the end
 *
 * The file is looked at again and again: notices of the kernel do not come from network file systems. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/output.h"
#include "follow.h"
#include "range.h"
#include "result.h"

enum { OPTION_FROM = 256, OPTION_INTERVAL, OPTION_WAIT, OPTION_JSON, OPTION_UNFRAMED };

static const uint64_t second_ns = 1000000000u;

/* "250ms", "2s", "2": at most an hour. */
static bool parse_time(const char *text, uint64_t *ret_ns) {
    range_end t;
    if (!range_parse(text, &t))
        return false;
    if (!t.is_time && t.item > 3600)
        return false;
    *ret_ns = t.is_time ? t.time_ps / 1000 : t.item * second_ns;
    return *ret_ns <= 3600 * second_ns;
}

static bool follow_option(void *ctx, int option, const char *argument) {
    follow_options *o = ctx;
    const char *wanted = "a time of at most an hour: 500ms, 2s";
    bool good = true;
    switch (option) {
    case OPTION_FROM:
        o->from_given = true;
        good = strcmp(argument, "start") == 0 || parse_count(argument, &o->from);
        wanted = "start, or an item's number";
        break;
    case OPTION_INTERVAL:
        good = parse_time(argument, &o->interval_ns) && o->interval_ns >= second_ns / 1000;
        wanted = "a time between 1ms and an hour: 500ms, 2s";
        break;
    case OPTION_WAIT:
        good = parse_time(argument, &o->wait_ns);
        break;
    case OPTION_JSON:
        o->json = true;
        break;
    default:
        o->unframed = true;
    }
    if (!good)
        command_fail(o->self, "\"%s\": wanted is %s", argument, wanted);
    return good;
}

/* Ends soon when the command is stopped, also by a signal that comes between the look at the flag and the sleep. */
static void sleep_for(uint64_t ns) {
    const uint64_t look_ns = second_ns / 5;
    for (uint64_t piece; ns && !cli_stopped; ns -= piece) {
        piece = ns < look_ns ? ns : look_ns;
        nanosleep(
            &(struct timespec){.tv_sec = (time_t)(piece / second_ns), .tv_nsec = (long)(piece % second_ns)},
            NULL);
    }
}

/* A part that was made this moment may not have its header yet. */
static bool is_there(const follow *f, const char *path) {
    d7_reader *r;
    d7_reader_options options;
    d7_reader_options_init(&options);
    options.unframed = f->o->unframed;
    int rc = d7_reader_open(&r, path, &options, NULL);
    if (rc == 0)
        d7_reader_free(r);
    return rc != D7_ERR_NOTFOUND && rc != D7_ERR_TRUNCATED;
}

/* Another file lies at the path, and has its header. */
static bool is_taken(const follow *f) {
    return f->replaced && is_there(f, f->path);
}

/* With what took the file's place. */
static int take_place(follow *f) {
    char *path = strdup(f->path);
    follow_tell(f, "taken", "%s: going on with the file that took its place, from its start", f->path);
    int code = path ? follow_open(f, path) : command_fail(f->o->self, "out of memory");
    free(path);
    return code;
}

/* Of a file that is closed: goes on with the next part, if there is one or one comes in time, or with the file that took its
 * place. *ret_there: something was opened. */
static int go_on(follow *f, bool *ret_there) {
    uint64_t until = follow_now_ns() + f->o->wait_ns;
    char *next = follow_next_part(f->path);
    *ret_there = next && is_there(f, next);
    while (next && !*ret_there && !is_taken(f) && follow_now_ns() < until && !cli_stopped) {
        sleep_for(second_ns / 20);
        *ret_there = is_there(f, next);
    }
    *ret_there |= next && access(next, F_OK) == 0;
    int code = 0;
    if (*ret_there) {
        follow_tell(f, "next", "%s: closed; the recording goes on in %s", f->path, next);
        code = follow_open(f, next);
    } else if (is_taken(f)) {
        *ret_there = true;
        code = take_place(f);
    } else if (!cli_stopped) {
        follow_tell(f, "closed", "%s: closed", f->path);
    }
    free(next);
    return code;
}

/* Of a file that was taken away and that nobody writes any more: with what took its place, if something did. */
static int leave(follow *f, bool *ret_there) {
    *ret_there = access(f->path, F_OK) == 0;
    if (is_taken(f))
        return take_place(f);
    if (*ret_there) { /* it has no header yet */
        sleep_for(f->o->interval_ns);
    } else {
        follow_tell(f, "gone", "%s: gone, and it was never closed", f->path);
        f->damaged = true;
    }
    return 0;
}

static int run(follow *f) {
    int code = follow_open(f, f->o->path);
    while (code == 0) {
        bool more = true;
        code = follow_print(f);
        if (code == 0 && d7_reader_state(f->reader) == D7_STATE_CLOSED)
            code = go_on(f, &more);
        else if (code == 0 && f->replaced && !d7_reader_held(f->reader))
            code = leave(f, &more);
        else
            sleep_for(f->o->interval_ns);
        if (code != 0 || !more || cli_stopped)
            break;
        code = follow_refresh(f);
    }
    return code != 0 ? code : f->damaged ? CLI_PROBLEMS : CLI_OK;
}

static int follow_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"from", required_argument, NULL, OPTION_FROM},
                                            {"interval", required_argument, NULL, OPTION_INTERVAL},
                                            {"wait", required_argument, NULL, OPTION_WAIT},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"unframed", no_argument, NULL, OPTION_UNFRAMED},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    follow_options o = {.self = self, .interval_ns = second_ns / 2, .wait_ns = second_ns};
    int code = command_options(self, argc, argv, options, follow_option, &o, -1);
    if (code >= 0)
        return code;
    o.path = argv[optind];
    o.names = argv + optind + 1;
    o.n_names = (size_t)(argc - optind - 1);
    follow f = {.o = &o};
    cli_catch_stop();
    code = run(&f);
    follow_close(&f);
    free(f.path);
    free(f.ids);
    free(f.types);
    return code;
}

const command command_follow = {
    .name = "follow",
    .summary = "print what a recording gets, while it is written",
    .help =
        "usage: d7 follow FILE [DATASET...] [--from start|N] [--interval T] [--wait T] [--json] "
        "[--unframed]\n\n"
        "Prints the items that are added to a file, one a line, or a line of several columns of one group\n"
        "(x, y and dt of a photon) with tabs in between; without a DATASET, a line that says how far\n"
        "the recording is, whenever something has come. Items that no page holds yet are taken from the "
        "tail\n"
        "beside the file (NAME.photons.tail), where there is one. Ends when the file is closed; when the "
        "recording\n"
        "goes on in a next part (NAME.0001.photons, NAME.0002.photons, ...), with that. What happens to the "
        "file\n"
        "(it is cut, replaced, nobody writes it) is told on standard error.\n\n"
        "  --from A       begin with item A, or with the first one (start); default: only what is new\n"
        "  --interval T   look at the file this often; default 500ms\n"
        "  --wait T       wait this long for a next part when a file is closed; default 1s\n"
        "  --json         a JSON object a line, also for what happens\n"
        "  --unframed     also read a file whose blocks have no begin and end bits\n"
        "  --help         this text\n\n"
        "Exit status: 0 the file was closed, or the command stopped by SIGINT or SIGTERM; 1 items could not "
        "be\n"
        "read, or the file went away; 2 usage, or the file cannot be read.\n\n"
        "Examples:\n"
        "  d7 follow run.photons\n"
        "  d7 follow run.photons /photons/x /photons/y /photons/dt --from start > photons.txt\n",
    .run = follow_run,
};
