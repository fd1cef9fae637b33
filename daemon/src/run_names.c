#include "run_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

enum { NAMES_BUCKETS = 4096 };

#define NAMES_HANG_NS UINT64_C(1000000000)

typedef struct known_name {
    struct known_name *next;
    const pd_datadir *dir;
    bool claimed; /* its files are being named */
    char text[];
} known_name;

typedef struct known_folder {
    const pd_datadir *dir;
    const pd_disk *disk;
} known_folder;

struct pd_run_names {
    pthread_mutex_t lock; /* guards the buckets; nothing else is done while it is held */
    known_name *buckets[NAMES_BUCKETS];
    known_folder *folders; /* [n_folders] */
    size_t n_folders;
};

int pd_run_names_create(pd_run_names **ret, pd_error *err) {
    pd_run_names *names = calloc(1, sizeof *names);
    if (!names || pthread_mutex_init(&names->lock, NULL) != 0) {
        free(names);
        return pd_error_set(err, "out of memory");
    }
    *ret = names;
    return 0;
}

void pd_run_names_free(pd_run_names *names) {
    if (!names)
        return;
    for (size_t i = 0; i < NAMES_BUCKETS; i++)
        for (known_name *k = names->buckets[i], *next; k; k = next) {
            next = k->next;
            free(k);
        }
    free(names->folders);
    pthread_mutex_destroy(&names->lock);
    free(names);
}

/* The place of the name, or where it would be put. */
static known_name **names_find(pd_run_names *names, const char *name) {
    uint32_t hash = 2166136261u;
    for (const char *p = name; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    known_name **at = &names->buckets[hash % NAMES_BUCKETS];
    while (*at && strcmp((*at)->text, name) != 0)
        at = &(*at)->next;
    return at;
}

static known_name *names_put(pd_run_names *names, const char *name, const pd_datadir *dir) {
    known_name **at = names_find(names, name);
    if (*at)
        return *at;
    size_t bytes = strlen(name) + 1;
    known_name *made = malloc(sizeof *made + bytes);
    if (!made)
        return NULL;
    *made = (known_name){.dir = dir};
    memcpy(made->text, name, bytes);
    *at = made;
    return made;
}

int pd_run_names_add(pd_run_names *names, const pd_datadir *dir, const pd_disk *disk, pd_error *err) {
    known_folder *folders = realloc(names->folders, (names->n_folders + 1) * sizeof *folders);
    if (!folders)
        return pd_error_set(err, "out of memory");
    names->folders = folders;
    folders[names->n_folders++] = (known_folder){dir, disk};
    DIR *entries = pd_datadir_list(dir, ".");
    if (!entries)
        return pd_error_set(err, "%s: cannot be searched for runs: %s", dir->path, strerror(errno));
    bool full = false;
    char name[PD_RUN_NAME_BYTES + 1];
    for (struct dirent *e = readdir(entries); e && !full; e = readdir(entries))
        full = pd_datadir_run_of(e->d_name, name) && !names_put(names, name, dir);
    closedir(entries);
    return full ? pd_error_set(err, "out of memory") : 0;
}

/* Whether its files may be looked for without being held up. */
static bool names_answers(const pd_run_names *names, const pd_datadir *dir) {
    for (size_t i = 0; i < names->n_folders; i++) {
        const known_folder *f = &names->folders[i];
        if (f->dir != dir)
            continue;
        uint64_t since = pd_disk_busy_since(f->disk);
        return !(since && uv_hrtime() > since + NAMES_HANG_NS);
    }
    return false;
}

/* Takes the name unless another folder than `instead` has it. Returns whether it was; else *ret_other is that folder, NULL
 * when the name is just being given there. */
static bool names_take(pd_run_names *names, const char *name, const pd_datadir *dir,
                       const pd_datadir *instead, const pd_datadir **ret_other) {
    pthread_mutex_lock(&names->lock);
    known_name *k = names_put(names, name, dir);
    bool mine = k && (k->dir == dir || (k->dir == instead && !k->claimed));
    if (mine) {
        k->dir = dir;
        k->claimed = true;
    }
    *ret_other = k && !k->claimed ? k->dir : NULL;
    pthread_mutex_unlock(&names->lock);
    return mine;
}

bool pd_run_names_claim(pd_run_names *names, const char *name, const pd_datadir *dir) {
    const pd_datadir *other = NULL;
    char which[PD_FILE_NAME_BYTES];
    if (!names || names_take(names, name, dir, NULL, &other))
        return true;
    if (!other || !names_answers(names, other) || pd_datadir_taken(other, name, which))
        return false;
    return names_take(names, name, dir, other, &other);
}

void pd_run_names_settle(pd_run_names *names, const char *name, bool there) {
    if (!names)
        return;
    pthread_mutex_lock(&names->lock);
    known_name **at = names_find(names, name), *k = *at;
    if (k && there) {
        k->claimed = false;
    } else if (k) {
        *at = k->next;
        free(k);
    }
    pthread_mutex_unlock(&names->lock);
}
