#include "retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "run_stored.h"
#include "tree.h"

static const char photons_suffix[] = ".photons";

/* What lies beside NAME.photons; the file itself goes last, so that a removal that is cut short is gone on with. */
static const char *const beside[] = {PD_SIGNATURE_SUFFIX, PD_CERTIFICATE_SUFFIX,
                                     (".photons" D7_CHECKSUMS_SUFFIX)};
static const char *const exports[] = {".daf", ".daf.zarr"};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* What is to become of one. */
typedef enum kept_state {
    KEPT_FOREIGN, /* it is not of this daemon, or cannot be read: neither counted nor removed */
    KEPT_STAYS,   /* open, or not settled */
    KEPT_MAY_GO
} kept_state;

/* A run of the folder, made of its files. */
typedef struct kept_run {
    char name[PD_PART_NAME_BYTES + 1];
    uint32_t *parts; /* [n_parts] */
    size_t n_parts;
    struct timespec changed; /* the newest of them */
    uint64_t bytes;
    bool busy;
    kept_state state;
    uint64_t exported; /* what its exports take */
} kept_run;

typedef struct kept_runs {
    const pd_datadir *dir;
    kept_run *runs; /* [n] */
    size_t n;
    uint64_t bytes;
} kept_runs;

static bool later(const struct timespec *a, const struct timespec *b) {
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

static int oldest_first(const void *a, const void *b) {
    const kept_run *x = a, *y = b;
    if (later(&x->changed, &y->changed))
        return 1;
    return later(&y->changed, &x->changed) ? -1 : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const kept_run *)a)->name, ((const kept_run *)b)->name);
}

/* ---- what is there ---- */

static uint64_t file_bytes(const pd_datadir *dir, const char *name, const char *suffix, struct stat *there) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s%s", name, suffix);
    if (fstatat(dir->fd, file, there, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(there->st_mode))
        return 0;
    return (uint64_t)there->st_size;
}

static uint64_t export_bytes(const pd_datadir *dir, const char *name) {
    char file[PD_FILE_NAME_BYTES];
    uint64_t sum = 0, bytes;
    pd_error ignored;
    struct stat there;
    for (size_t i = 0; i < COUNT(exports); i++) {
        snprintf(file, sizeof file, "%s%s", name, exports[i]);
        if (fstatat(dir->fd, file, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(there.st_mode) &&
            pd_tree_measure(dir->fd, file, -1, &bytes, &ignored) == 0)
            sum += bytes;
    }
    return sum;
}

/* One file as a run of its own; runs of several are put together later. */
static int kept_add(kept_runs *k, const pd_retention *r, const char *name) {
    struct stat there, ignored;
    uint64_t bytes = file_bytes(k->dir, name, photons_suffix, &there);
    if (bytes == 0)
        return 0;
    kept_run *runs = realloc(k->runs, (k->n + 1) * sizeof *runs);
    if (!runs)
        return -1;
    k->runs = runs;
    kept_run *run = &runs[k->n];
    *run = (kept_run){.n_parts = 1, .changed = there.st_mtim, .bytes = bytes};
    run->parts = malloc(sizeof *run->parts);
    if (!run->parts)
        return -1;
    k->n++;
    run->parts[0] = pd_datadir_name_part(name, run->name);
    for (size_t i = 0; i < COUNT(beside); i++)
        run->bytes += file_bytes(k->dir, name, beside[i], &ignored);
    run->busy = r->busy(r->ctx, name) || pd_datadir_has(k->dir, name, ".photons" D7_TAIL_SUFFIX);
    return 0;
}

static int kept_join(kept_run *to, kept_run *from) {
    uint32_t *parts = realloc(to->parts, (to->n_parts + from->n_parts) * sizeof *parts);
    if (!parts)
        return -1;
    to->parts = parts;
    memcpy(parts + to->n_parts, from->parts, from->n_parts * sizeof *parts);
    to->n_parts += from->n_parts;
    to->bytes += from->bytes;
    to->busy |= from->busy;
    if (later(&from->changed, &to->changed))
        to->changed = from->changed;
    free(from->parts);
    from->parts = NULL;
    return 0;
}

static int kept_gather(kept_runs *k, const pd_retention *r) {
    size_t n = 0;
    if (k->n == 0)
        return 0;
    qsort(k->runs, k->n, sizeof *k->runs, by_name);
    for (size_t i = 0; i < k->n; i++) {
        if (n == 0 || strcmp(k->runs[n - 1].name, k->runs[i].name) != 0) {
            kept_run one = k->runs[i];
            k->runs[i].parts = NULL;
            k->runs[n++] = one;
        } else if (kept_join(&k->runs[n - 1], &k->runs[i]) != 0) {
            return -1;
        }
    }
    k->n = n;
    for (size_t i = 0; i < n; i++)
        k->bytes += k->runs[i].bytes + (r->max_total_bytes ? export_bytes(k->dir, k->runs[i].name) : 0);
    qsort(k->runs, n, sizeof *k->runs, oldest_first);
    return 0;
}

static int kept_read(kept_runs *k, const pd_retention *r) {
    DIR *entries = pd_datadir_list(k->dir, ".");
    int failed = entries ? 0 : -1;
    for (struct dirent *e = entries ? readdir(entries) : NULL; e && !failed; e = readdir(entries)) {
        char name[PD_PART_NAME_BYTES + 1];
        if (pd_datadir_name_of(e->d_name, photons_suffix, name))
            failed = kept_add(k, r, name);
    }
    if (entries)
        closedir(entries);
    return failed ? failed : kept_gather(k, r);
}

static void kept_free(kept_runs *k) {
    for (size_t i = 0; i < k->n; i++)
        free(k->runs[i].parts);
    free(k->runs);
}

/* ---- whether it may go ---- */

/* It may go when it is closed, and of the same run as the parts before it. */
static kept_state part_state(const pd_datadir *dir, const char *name, uint8_t id[PD_RUN_ID_BYTES], bool first,
                             bool *summed) {
    char path[PATH_MAX];
    pd_run_stored stored;
    pd_error ignored;
    pd_datadir_file_path(dir, name, path);
    if (pd_run_stored_read(&stored, dir, path, &ignored) != 0)
        return KEPT_FOREIGN;
    bool may = stored.closed && (first || memcmp(stored.spec.id, id, PD_RUN_ID_BYTES) == 0);
    memcpy(id, stored.spec.id, PD_RUN_ID_BYTES);
    *summed = !stored.open || !json_is_false(json_object_get(stored.open, "summary"));
    pd_run_stored_free(&stored);
    return may ? KEPT_MAY_GO : KEPT_STAYS;
}

static kept_state run_state(const kept_runs *k, const kept_run *run) {
    uint8_t id[PD_RUN_ID_BYTES];
    bool summed = false;
    kept_state state = run->busy ? KEPT_STAYS : KEPT_MAY_GO;
    for (size_t i = 0; i < run->n_parts && state == KEPT_MAY_GO; i++) {
        char name[PD_PART_NAME_BYTES + 1];
        state = part_state(k->dir, pd_datadir_part_name(name, run->name, run->parts[i]), id, i == 0, &summed);
    }
    return state == KEPT_MAY_GO && summed && run->exported == 0 ? KEPT_STAYS : state;
}

/* Files are looked into only when there may be too many of them, or too much. */
static bool kept_is_over(const kept_runs *k, const pd_retention *r) {
    size_t n = 0;
    for (size_t i = 0; i < k->n; i++)
        n += !k->runs[i].busy;
    return (r->keep_last && n > r->keep_last) || (r->max_total_bytes && k->bytes > r->max_total_bytes);
}

/* Looks what each is; `bytes` are those of ours then. Returns how many may go. */
static uint64_t kept_judge(kept_runs *k) {
    uint64_t n = 0;
    k->bytes = 0;
    for (size_t i = 0; i < k->n; i++) {
        kept_run *run = &k->runs[i];
        run->exported = export_bytes(k->dir, run->name);
        run->state = run_state(k, run);
        n += run->state == KEPT_MAY_GO;
        k->bytes += run->state == KEPT_FOREIGN ? 0 : run->bytes + run->exported;
    }
    return n;
}

/* ---- the removal ---- */

static int remove_file(const pd_datadir *dir, const char *name, const char *suffix) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s%s", name, suffix);
    int failed = pd_datadir_remove(dir, file);
    if (!failed || failed == -ENOENT)
        return 0;
    pd_log(PD_LOG_WARNING, "%s/%s: cannot be removed: %s", dir->path, file, strerror(-failed));
    return -1;
}

static int remove_exports(const pd_datadir *dir, const char *name) {
    char file[PD_FILE_NAME_BYTES];
    pd_error why = {""};
    for (size_t i = 0; i < COUNT(exports); i++) {
        snprintf(file, sizeof file, "%s%s", name, exports[i]);
        if (pd_tree_remove(dir->fd, file, &why) != 0) {
            pd_log(PD_LOG_WARNING, "%s/%s: cannot be removed: %s", dir->path, file, why.text);
            return -1;
        }
    }
    return 0;
}

/* What recoveries cut off: .cut.0, .cut.1, ... The last goes first, so that none is forgotten. */
static int remove_cuts(const pd_datadir *dir, const char *name) {
    char suffix[32];
    unsigned n = 0;
    do
        snprintf(suffix, sizeof suffix, ".photons.cut.%u", n++);
    while (pd_datadir_has(dir, name, suffix));
    for (n--; n > 0; n--) {
        snprintf(suffix, sizeof suffix, ".photons.cut.%u", n - 1);
        if (remove_file(dir, name, suffix) != 0)
            return -1;
    }
    return 0;
}

static int remove_part(const pd_datadir *dir, const char *name) {
    if (remove_cuts(dir, name) != 0)
        return -1;
    for (size_t i = 0; i < COUNT(beside); i++)
        if (remove_file(dir, name, beside[i]) != 0)
            return -1;
    return remove_file(dir, name, photons_suffix);
}

static int remove_run(const kept_runs *k, const kept_run *run) {
    if (remove_exports(k->dir, run->name) != 0)
        return -1;
    for (size_t i = 0; i < run->n_parts; i++) {
        char name[PD_PART_NAME_BYTES + 1];
        if (remove_part(k->dir, pd_datadir_part_name(name, run->name, run->parts[i])) != 0)
            return -1;
    }
    return 0;
}

static void retention_remove(const pd_retention *r, kept_runs *k) {
    uint64_t left = kept_is_over(k, r) ? kept_judge(k) : 0;
    for (size_t i = 0; i < k->n && left > 0; i++) {
        const kept_run *run = &k->runs[i];
        bool many = r->keep_last && left > r->keep_last;
        if (!many && !(r->max_total_bytes && k->bytes > r->max_total_bytes))
            break;
        if (run->state != KEPT_MAY_GO)
            continue;
        left--;
        if (remove_run(k, run) != 0)
            continue;
        k->bytes -= run->bytes + run->exported;
        pd_count(&r->counters->runs_removed, 1);
        pd_log(PD_LOG_INFO, "run %s: removed (%zu files, %" PRIu64 " bytes): %s", run->name, run->n_parts,
               run->bytes + run->exported, many ? "keep_last" : "max_total_bytes");
    }
}

void pd_retention_apply(const pd_retention *r, const pd_datadir *dir) {
    kept_runs k = {.dir = dir};
    if (r->keep_last == 0 && r->max_total_bytes == 0)
        return;
    if (kept_read(&k, r) == 0)
        retention_remove(r, &k);
    else
        pd_log(PD_LOG_WARNING, "%s: it cannot be searched for old runs, or there is no memory for it",
               dir->path);
    kept_free(&k);
}
