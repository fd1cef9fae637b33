/* d7 follow: the file, and what happens to it. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "follow.h"

/* ---- parts ---- */

static const char suffix[] = ".photons";

enum { PART_DIGITS = 4 };

/* Does the name of n characters end in a dot and four or more digits? Where they begin; n: no. */
static size_t part_digits(const char *name, size_t n) {
    size_t at = n;
    while (at > 0 && isdigit((unsigned char)name[at - 1]))
        at--;
    return n - at >= PART_DIGITS && at > 1 && name[at - 1] == '.' ? at : n;
}

char *follow_next_part(const char *path) {
    size_t length = strlen(path), ends = sizeof suffix - 1;
    if (length <= ends || strcmp(path + length - ends, suffix) != 0)
        return NULL;
    size_t n = length - ends, digits = part_digits(path, n);
    uint64_t number = digits < n ? strtoull(path + digits, NULL, 10) : 0;
    if (number >= UINT32_MAX)
        return NULL;
    char *next = malloc(length + 16);
    if (next)
        snprintf(next, length + 16, "%.*s.%04" PRIu64 "%s", (int)(digits < n ? digits - 1 : n), path,
                 number + 1, suffix);
    return next;
}

/* ---- datasets ---- */

uint64_t follow_items(const follow *f) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < f->o->n_names; i++) {
        d7_dataset_info info = {0};
        if (d7_reader_dataset(f->reader, f->ids[i], &info) != 0)
            return 0;
        least = info.items < least ? info.items : least;
    }
    return f->o->n_names ? least : 0;
}

static int find_datasets(follow *f) {
    const follow_options *o = f->o;
    for (size_t i = 0; i < o->n_names; i++) {
        if (d7_reader_find_dataset(f->reader, o->names[i], &f->ids[i]) != 0)
            return command_fail(o->self, "%s: there is no dataset %s; d7 info shows which there are", f->path,
                                o->names[i]);
        d7_dataset_info info = {0};
        if (d7_reader_dataset(f->reader, f->ids[i], &info) == 0)
            f->types[i] = info.type;
        for (size_t k = 0; k < i; k++)
            if (f->ids[k] == f->ids[i])
                return command_fail(o->self, "dataset %s is named twice", o->names[i]);
        d7_group group = d7_group_of(o->names[i]);
        if (o->n_names > 1 && (group == D7_GROUP_NONE || group != d7_group_of(o->names[0])))
            return command_fail(o->self, "%s and %s are not columns of one group: follow them one by one",
                                o->names[0], o->names[i == 0 ? 1 : i]);
    }
    return 0;
}

/* ---- opening ---- */

void follow_close(follow *f) {
    d7_reader_free(f->reader);
    f->reader = NULL;
}

static int keep_path(follow *f, const char *path) {
    char *copy = strdup(path);
    free(f->path);
    f->path = copy;
    if (!f->ids)
        f->ids = calloc(f->o->n_names + 1, sizeof *f->ids);
    if (!f->types)
        f->types = calloc(f->o->n_names + 1, sizeof *f->types);
    return copy && f->ids && f->types ? 0 : command_fail(f->o->self, "out of memory");
}

/* Nobody holds a file that is not closed: its recorder is gone, or takes no locks. */
static void tell_unheld(follow *f) {
    bool unheld = d7_reader_state(f->reader) == D7_STATE_OPEN && !d7_reader_held(f->reader);
    if (unheld && !f->unheld)
        follow_tell(f, "unheld", "%s: not closed, and no writer holds it; waiting for more", f->path);
    f->unheld = unheld;
}

int follow_open(follow *f, const char *path) {
    follow_close(f);
    int code = keep_path(f, path);
    if (code == 0)
        code = command_open(f->o->self, path, f->o->unframed, NULL, &f->reader);
    if (code != 0)
        return code;
    code = find_datasets(f);
    f->at = f->begun ? 0 : f->o->from_given ? f->o->from : code == 0 ? follow_items(f) : 0;
    f->begun = true;
    f->replaced = f->unheld = f->headless = f->told = false;
    if (code == 0 && f->o->json)
        follow_tell(f, "begin", "%s: opened", f->path);
    if (code == 0)
        tell_unheld(f);
    return code;
}

/* ---- again ---- */

/* What was printed and is not there any more. */
static void tell_cut(follow *f) {
    uint64_t items = follow_items(f);
    if (f->o->n_names == 0 || f->at <= items) {
        follow_tell(f, "cut", "%s: the file was cut", f->path);
        return;
    }
    follow_tell(f, "cut", "%s: the file was cut: items from %" PRIu64 " on are taken back", f->path, items);
    f->at = items;
}

int follow_refresh(follow *f) {
    d7_error err;
    unsigned changes;
    int rc = d7_reader_refresh(f->reader, &changes, &err);
    if (rc == D7_ERR_TRUNCATED) { /* it is being cut at this moment, or was cut into its header */
        if (!f->headless)
            follow_tell(f, "cut", "%s; waiting for more", err.text);
        f->headless = true;
        return 0;
    }
    if (rc != 0)
        return command_fail(f->o->self, "%s", err.text);
    f->headless = false;
    if (changes & D7_CHANGE_CUT)
        tell_cut(f);
    if (changes & D7_CHANGE_REPLACED) {
        f->replaced = true;
        follow_tell(f, "replaced", "%s: another file lies at this path now, or none", f->path);
    }
    tell_unheld(f);
    return 0;
}
