/* A folder of raw little-endian columns, NAME.TYPE (x.u16, ms.u64, ...), with a manifest.json. The files are mapped, so
 * that they go from the page cache to the socket. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "cli/output.h"
#include "stored.h"

enum { FOLDER_EVENTS_AT_ONCE = 1 << 18 };

typedef struct folder_column {
    const uint8_t *map; /* NULL for an empty file */
    size_t bytes;
    size_t item_bytes;
    uint8_t *swapped; /* on big-endian hosts: what was fetched last */
    size_t swapped_bytes;
} folder_column;

typedef struct folder {
    folder_column columns[SEND_DATASETS_MAX];
    size_t n;
} folder;

static void folder_close(void *own) {
    folder *f = own;
    for (size_t i = 0; i < f->n; i++) {
        if (f->columns[i].map)
            munmap((void *)(uintptr_t)f->columns[i].map, f->columns[i].bytes);
        free(f->columns[i].swapped);
    }
}

static const void *folder_fetch(void *own, size_t dataset, uint64_t from, size_t n, send_fault *fault) {
    folder_column *c = &((folder *)own)->columns[dataset];
    const uint8_t *items = c->map + from * c->item_bytes;
    if (BYTES_HOST_IS_LITTLE || c->item_bytes == 1)
        return items;
    if (n * c->item_bytes > c->swapped_bytes) {
        uint8_t *more = realloc(c->swapped, n * c->item_bytes);
        if (!more) {
            send_refuse(fault, "no memory");
            return NULL;
        }
        c->swapped = more;
        c->swapped_bytes = n * c->item_bytes;
    }
    bytes_copy_le(c->swapped, items, n, c->item_bytes);
    return c->swapped;
}

static int folder_map(folder_column *c, const char *path, send_fault *fault) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        send_refuse(fault, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    c->bytes = (size_t)st.st_size;
    if (!S_ISREG(st.st_mode) || c->bytes % c->item_bytes != 0) {
        close(fd);
        return send_refuse(fault, "%s: not a file of whole items of %zu bytes (it has %zu bytes)", path,
                           c->item_bytes, c->bytes);
    }
    void *map = c->bytes ? mmap(NULL, c->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    int os_errno = errno;
    close(fd);
    if (map == MAP_FAILED)
        return send_refuse(fault, "%s: %s", path, strerror(os_errno));
    if (map)
        madvise(map, c->bytes, MADV_SEQUENTIAL);
    c->map = map;
    return 0;
}

/* "x.u16" to "x" and its type. Returns -1 when the name has no such ending. */
static int folder_split_name(const char *file, char stem[64], int *type) {
    const char *dot = strrchr(file, '.');
    size_t n = dot ? (size_t)(dot - file) : 0;
    if (n == 0 || n >= 64)
        return -1;
    *type = send_type_of_ending(dot + 1);
    memcpy(stem, file, n);
    stem[n] = '\0';
    return *type < 0 ? -1 : 0;
}

static size_t folder_item_bytes(int type) {
    static const size_t sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
    return sizes[type];
}

static int folder_add(send_source *s, folder *f, const char *path, const char *file, const char *dataset,
                      int type, uint64_t *lengths, send_fault *fault) {
    char whole[4096];
    int at = send_add_dataset(s, dataset, (uint32_t)type, fault);
    if (at < 0)
        return -1;
    folder_column *c = &f->columns[at];
    f->n = (size_t)at + 1;
    c->item_bytes = folder_item_bytes(type);
    if (snprintf(whole, sizeof whole, "%s/%s", path, file) >= (int)sizeof whole)
        return send_refuse(fault, "%s/%s: the path is too long", path, file);
    if (folder_map(c, whole, fault) != 0)
        return -1;
    lengths[at] = c->bytes / c->item_bytes;
    return 0;
}

static int folder_order(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in the folder, sorted, so that a folder is always the same source. */
static int folder_list(const char *path, char ***ret, size_t *n, send_fault *fault) {
    DIR *d = opendir(path);
    char **names = NULL;
    if (!d)
        return send_refuse(fault, "%s: %s", path, strerror(errno));
    *n = 0;
    for (struct dirent *e; (e = readdir(d));) {
        char **more = realloc(names, (*n + 1) * sizeof *more);
        if (more) {
            names = more;
            names[*n] = strdup(e->d_name);
        }
        if (!more || !names[*n]) {
            closedir(d);
            *ret = names;
            return send_refuse(fault, "no memory");
        }
        ++*n;
    }
    closedir(d);
    if (*n)
        qsort(names, *n, sizeof *names, folder_order);
    *ret = names;
    return 0;
}

static bool folder_is_named(const char *file, const send_column_name *named, size_t n_named) {
    for (size_t i = 0; i < n_named; i++)
        if (strcmp(named[i].file, file) == 0)
            return true;
    return false;
}

/* The columns of known names, then those that the user has named. */
static int folder_add_known(send_source *s, folder *f, const char *path, const send_known *known,
                            char **names, size_t n, const send_column_name *named, size_t n_named,
                            uint64_t *lengths, send_fault *fault) {
    for (size_t i = 0; i < n; i++) {
        char stem[64];
        int type;
        if (folder_is_named(names[i], named, n_named) || folder_split_name(names[i], stem, &type) != 0 ||
            send_find_known(stem, NULL) != known)
            continue;
        if (folder_add(s, f, path, names[i], known->dataset, type, lengths, fault) != 0)
            return -1;
    }
    return 0;
}

static int folder_add_named(send_source *s, folder *f, const char *path, const send_column_name *named,
                            uint64_t *lengths, send_fault *fault) {
    char stem[64];
    int type;
    if (folder_split_name(named->file, stem, &type) != 0)
        return send_refuse(fault,
                           "'%s': the ending has to name the type: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64",
                           named->file);
    return folder_add(s, f, path, named->file, named->dataset, type, lengths, fault);
}

/* In the order that the profiles have. */
static const char *const folder_stems[] = {"x", "y", "dt", "ms", "start", "stop", "channel", "time"};

static int folder_add_all(send_source *s, folder *f, const char *path, const send_column_name *named,
                          size_t n_named, uint64_t *lengths, send_fault *fault) {
    char **names = NULL;
    size_t n = 0;
    int rc = folder_list(path, &names, &n, fault);
    for (size_t i = 0; rc == 0 && i < sizeof folder_stems / sizeof *folder_stems; i++)
        rc = folder_add_known(s, f, path, send_find_known(folder_stems[i], NULL), names, n, named, n_named,
                              lengths, fault);
    for (size_t i = 0; rc == 0 && i < n_named; i++)
        rc = folder_add_named(s, f, path, &named[i], lengths, fault);
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    if (rc == 0 && s->n_datasets == 0)
        rc = send_refuse(fault,
                         "%s: no columns there (x.u16 y.u16 dt.u16 ms.u64, channel.u8 time.u64, or --column)",
                         path);
    return rc;
}

/* ---- manifest */

static int folder_attribute(send_source *s, const json_t *manifest, const char *key, const char *attribute,
                            send_fault *fault) {
    const json_t *value = json_object_get(manifest, key);
    char text[48];
    if (json_is_integer(value)) {
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        double number = json_real_value(value);
        cli_format_number(text, sizeof text, 'f', sizeof number, &number);
    } else if (value) {
        return send_refuse(fault, "manifest.json: %s is not a number", key);
    }
    return value ? send_add_attribute(s, attribute, text, fault) : 0;
}

/* The scale of the micro times, for readers of the dataset alone. */
static void folder_scale(send_source *s, const json_t *manifest) {
    double ps = json_number_value(json_object_get(manifest, "tac_channel_ps"));
    size_t dt = send_find_role(s, PHOTON_CLIENT_ROLE_MICRO_TIME);
    if (dt == SEND_DATASETS_MAX || !(ps > 0))
        return;
    s->datasets[dt].unit = "ps";
    s->datasets[dt].scale = ps;
}

static int folder_manifest(send_source *s, const char *path, send_fault *fault) {
    static const char *const keys[][2] = {{"position_bits", "/photons/PositionBits"},
                                          {"tac_bits", "/photons/TacBits"},
                                          {"tac_channel_ps", "/photons/TacChannel"},
                                          {"timer_frequency_hz", "/photons/TimerFrequency"}};
    char whole[4096];
    json_error_t error;
    if (snprintf(whole, sizeof whole, "%s/manifest.json", path) >= (int)sizeof whole)
        return send_refuse(fault, "%s: the path is too long", path);
    FILE *file = fopen(whole, "re");
    if (!file && errno == ENOENT)
        return send_refuse(fault, "%s is missing: a folder of columns needs one, if only with {} in it",
                           whole);
    if (!file)
        return send_refuse(fault, "%s: %s", whole, strerror(errno));
    json_t *manifest = json_loadf(file, 0, &error);
    fclose(file);
    if (!manifest)
        return send_refuse(fault, "%s: %s (line %d)", whole, error.text, error.line);
    int rc = json_is_object(manifest) ? 0 : send_refuse(fault, "%s: not a JSON object", whole);
    for (size_t i = 0; rc == 0 && i < sizeof keys / sizeof *keys; i++)
        rc = folder_attribute(s, manifest, keys[i][0], keys[i][1], fault);
    if (rc == 0)
        folder_scale(s, manifest);
    json_decref(manifest);
    return rc;
}

typedef struct folder_arguments {
    const char *path;
    const send_column_name *named;
    size_t n_named;
} folder_arguments;

static int folder_open(send_source *s, void *own, const void *arguments, uint64_t *lengths,
                       send_fault *fault) {
    const folder_arguments *a = arguments;
    if (folder_add_all(s, own, a->path, a->named, a->n_named, lengths, fault) != 0)
        return -1;
    return folder_manifest(s, a->path, fault);
}

send_source *send_open_folder(const char *path, const send_column_name *named, size_t n_named, uint64_t count,
                              send_fault *fault) {
    static const send_stored_kind kind = {sizeof(folder), folder_open,           folder_fetch,        NULL,
                                          folder_close,   FOLDER_EVENTS_AT_ONCE, BYTES_HOST_IS_LITTLE};
    folder_arguments arguments = {path, named, n_named};
    return send_stored_open(&kind, &arguments, path, count, fault);
}
