#include "certifier.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "certificate.h"
#include "keeper.h"
#include "lock.h"
#include "log.h"
#include "notes.h"
#include "proof/signature.h"

#define NEW_NAME PD_HIDDEN_NAME "/certificate.new"

enum {
    CERTIFIER_NICE = 10,
    CERTIFIER_IO_IDLE = 3 << 13, /* the idle class of ioprio_set(2) */
    CERTIFIER_IO_THREAD = 1,
    CERTIFIER_AGAIN_S = 5, /* after a full disk */
    CERTIFIER_TEXT_BYTES_MAX = 64 << 20
};

struct pd_certifier {
    pthread_t thread;
    proof_key *key; /* NULL: certificates are not signed */
    const pd_datadir *dir;
    unsigned mode;
    int64_t gid;
    struct pd_keeper *keeper;
    pd_counters *counters;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    uint64_t n_notes; /* notes that were made; those that were looked for are below */
    bool stopping;
    uint64_t deadline_ns; /* once it is stopping; on the monotonic clock */

    atomic_uint_fast64_t pending;
};

/* ---- time ---- */

/* Asked while a file is read. */
static int certifier_progress(void *ctx, uint64_t done, uint64_t total) {
    pd_certifier *c = ctx;
    (void)done;
    (void)total;
    pthread_mutex_lock(&c->lock);
    int over = c->stopping && uv_hrtime() >= c->deadline_ns;
    pthread_mutex_unlock(&c->lock);
    return over;
}

/* ---- writing beside ---- */

static int write_all(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = write(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int write_new(const pd_certifier *c, const void *data, size_t bytes) {
    const pd_datadir *dir = c->dir;
    int failed = pd_datadir_remove(dir, NEW_NAME);
    if (failed && failed != -ENOENT)
        return failed;
    int fd = pd_datadir_open_file(dir, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return fd;
    failed = write_all(fd, data, bytes);
    if (!failed && ((c->gid >= 0 && fchown(fd, (uid_t)-1, (gid_t)c->gid) != 0) || fchmod(fd, c->mode) != 0 ||
                    fsync(fd) != 0))
        failed = -errno;
    if (close(fd) != 0 && !failed)
        failed = -errno;
    return failed;
}

/* Puts a file of these bytes there, whole, synced and replacing nothing. Returns 0 or a negative errno. */
static int write_beside(const pd_certifier *c, const char *file, const void *data, size_t bytes) {
    const pd_datadir *dir = c->dir;
    pd_datadir_keep_hidden(dir);
    int failed = write_new(c, data, bytes);
    if (!failed)
        failed = pd_datadir_place(dir, NEW_NAME, file);
    if (failed)
        (void)pd_datadir_remove(dir, NEW_NAME);
    return failed ? failed : pd_datadir_sync(dir);
}

/* ---- one file ---- */

typedef struct certify_job {
    pd_certifier *certifier;
    char name[PD_PART_NAME_BYTES + 1];
    char *text; /* [bytes] the certificate */
    size_t bytes;
    pd_error why;
} certify_job;

static int job_fail(certify_job *job, int code, const char *suffix, const char *what) {
    pd_error_set(&job->why, "%s%s: %s: %s", job->name, suffix, what, strerror(-code));
    return code;
}

/* Reads a file whole. Returns 0 or a negative errno. */
static int read_beside(const pd_datadir *dir, const char *file, char **ret, size_t *ret_bytes) {
    struct stat there;
    int fd = pd_datadir_open_file(dir, file, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    bool usual =
        fstat(fd, &there) == 0 && S_ISREG(there.st_mode) && there.st_size <= CERTIFIER_TEXT_BYTES_MAX;
    char *text = usual ? malloc((size_t)there.st_size + 1) : NULL;
    ssize_t n = text ? pread(fd, text, (size_t)there.st_size, 0) : -1;
    close(fd);
    if (n != there.st_size) {
        free(text);
        return usual ? -EIO : -EEXIST;
    }
    *ret = text;
    *ret_bytes = (size_t)n;
    return 0;
}

/* The certificate that is there is taken for ours when it is of the same bytes. */
static int job_adopt(certify_job *job, const char *file, const char *sha256) {
    char *text = NULL;
    size_t bytes = 0;
    int failed = read_beside(job->certifier->dir, file, &text, &bytes);
    if (failed)
        return job_fail(job, failed, PD_CERTIFICATE_SUFFIX, "is there already and cannot be read");
    json_t *json = json_loadb(text, bytes, 0, NULL);
    const char *there = json_string_value(json_object_get(json_object_get(json, "file"), "sha256"));
    bool same = there && strcmp(there, sha256) == 0;
    json_decref(json);
    if (!same) {
        free(text);
        return job_fail(job, -EEXIST, PD_CERTIFICATE_SUFFIX, "it is not replaced");
    }
    free(job->text);
    job->text = text;
    job->bytes = bytes;
    return 0;
}

static int job_sign(certify_job *job) {
    uint8_t signature[PROOF_SIGNATURE_BYTES_MAX];
    char file[PD_FILE_NAME_BYTES], why[PROOF_WHY_BYTES];
    size_t n;
    if (!job->certifier->key)
        return 0;
    if (proof_sign(job->certifier->key, job->text, job->bytes, signature, &n, why) != 0) {
        pd_error_set(&job->why, "%s" PD_SIGNATURE_SUFFIX ": %s", job->name, why);
        return -EINVAL;
    }
    snprintf(file, sizeof file, "%s" PD_SIGNATURE_SUFFIX, job->name);
    int failed = write_beside(job->certifier, file, signature, n);
    if (failed == -EEXIST) /* of the certificate that was adopted */
        failed = 0;
    return failed ? job_fail(job, failed, PD_SIGNATURE_SUFFIX, "cannot be written") : 0;
}

static int job_write(certify_job *job, const char *sha256) {
    char file[PD_FILE_NAME_BYTES];
    snprintf(file, sizeof file, "%s" PD_CERTIFICATE_SUFFIX, job->name);
    int failed = write_beside(job->certifier, file, job->text, job->bytes);
    if (failed == -EEXIST)
        failed = job_adopt(job, file, sha256);
    else if (failed)
        job_fail(job, failed, PD_CERTIFICATE_SUFFIX, "cannot be written");
    return failed ? failed : job_sign(job);
}

static int job_do(certify_job *job) {
    pd_certificate_files files;
    int failed = pd_certificate_digest(&files, job->certifier->dir->fd, job->name, certifier_progress,
                                       job->certifier, &job->why);
    if (failed)
        return failed;
    json_t *json = pd_certificate_json(job->certifier->dir, job->name, &files, &job->why);
    if (!json)
        return -EINVAL;
    job->text = pd_certificate_text(json, &job->bytes);
    json_decref(json);
    failed = job->text ? job_write(job, files.photons.sha256)
                       : job_fail(job, -ENOMEM, ".photons", "no certificate");
    free(job->text);
    return failed;
}

/* ---- notes ---- */

/* Nothing is to be done for a certificate any more: the keeper's note, or none. */
static void note_done(const certify_job *job) {
    char note[PD_NOTE_BYTES];
    struct pd_keeper *keeper = job->certifier->keeper;
    pd_note_path(note, job->name, PD_NOTE_CERTIFY);
    if (!keeper || pd_keeper_take(keeper, note, job->name) != 0)
        (void)pd_datadir_remove(job->certifier->dir, note);
}

static void note_fails(const pd_datadir *dir, const char *name) {
    char note[PD_NOTE_BYTES], failed[PD_NOTE_BYTES];
    pd_note_path(note, name, PD_NOTE_CERTIFY);
    pd_note_path(failed, name, PD_NOTE_UNCERTIFIED);
    if (pd_datadir_move(dir, note, failed) != 0)
        (void)pd_datadir_remove(dir, note);
}

/* What the work on one note came to. Returns false when it is to be done later. */
static bool job_told(certify_job *job, int code) {
    pd_counters *counters = job->certifier->counters;
    const char *folder = job->certifier->dir->path;
    if (code == -ECANCELED) {
        pd_log(PD_LOG_INFO, "%s/%s" PD_CERTIFICATE_SUFFIX ": the next start makes it", folder, job->name);
        return false;
    }
    if (code == -ENOSPC || code == -EDQUOT)
        return false;
    if (code == 0) {
        pd_count(&counters->certificates, 1);
        pd_log(PD_LOG_INFO, "%s/%s" PD_CERTIFICATE_SUFFIX ": certified", folder, job->name);
        note_done(job);
        return true;
    }
    pd_count(&counters->certificates_failed, 1);
    pd_log(code == -ENOENT ? PD_LOG_INFO : PD_LOG_WARNING, "%s/%s.photons: no certificate: %s", folder,
           job->name, job->why.text);
    if (code == -ENOENT || code == -EEXIST) /* it is gone, or has another's: nothing to try again */
        note_done(job);
    else
        note_fails(job->certifier->dir, job->name);
    return true;
}

/* All notes, in whatever order. Returns false when some are to be done later. */
static bool certifier_work(pd_certifier *c) {
    bool all = true;
    certify_job job = {.certifier = c};
    DIR *entries = pd_datadir_list(c->dir, PD_HIDDEN_NAME);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e && all; e = readdir(entries)) {
        if (!pd_datadir_name_of(e->d_name, PD_NOTE_CERTIFY, job.name))
            continue;
        job.text = NULL;
        all = job_told(&job, job_do(&job));
        if (all)
            atomic_fetch_sub(&c->pending, atomic_load(&c->pending) > 0);
    }
    if (entries)
        closedir(entries);
    return all;
}

/* ---- the thread ---- */

/* Waits for another note than the first `seen`, or, when some are `left`, for a while. Returns false when it is
 * over. Called with the lock held. */
static bool certifier_wait(pd_certifier *c, uint64_t *seen, bool left) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += CERTIFIER_AGAIN_S;
    while (!c->stopping && c->n_notes == *seen) {
        int timed_out =
            left ? pthread_cond_timedwait(&c->wake, &c->lock, &until) : pthread_cond_wait(&c->wake, &c->lock);
        if (timed_out)
            break;
    }
    bool more = c->n_notes != *seen && !(c->stopping && uv_hrtime() >= c->deadline_ns);
    *seen = c->n_notes;
    return more || !c->stopping;
}

static void *certifier_run(void *arg) {
    pd_certifier *c = arg;
    uint64_t seen = 0;
    bool left = false;
    pid_t self = (pid_t)syscall(SYS_gettid);
    (void)setpriority(PRIO_PROCESS, (id_t)self, CERTIFIER_NICE);
    (void)syscall(SYS_ioprio_set, CERTIFIER_IO_THREAD, self, CERTIFIER_IO_IDLE);
    pthread_mutex_lock(&c->lock);
    while (certifier_wait(c, &seen, left)) {
        pthread_mutex_unlock(&c->lock);
        left = !certifier_work(c);
        pthread_mutex_lock(&c->lock);
        if (!left && c->n_notes == seen) /* a note may have taken another's place */
            atomic_store(&c->pending, 0);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void certifier_free(pd_certifier *c) {
    pd_lock_destroy(&c->lock, &c->wake);
    proof_key_free(c->key);
    free(c);
}

/* Those that failed are tried again. Returns how many there are. */
static uint64_t notes_take_up(const pd_datadir *dir) {
    char name[PD_PART_NAME_BYTES + 1], note[PD_NOTE_BYTES], failed[PD_NOTE_BYTES];
    uint64_t n = 0;
    DIR *entries = pd_datadir_list(dir, PD_HIDDEN_NAME);
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        n += pd_datadir_name_of(e->d_name, PD_NOTE_CERTIFY, name);
        if (!pd_datadir_name_of(e->d_name, PD_NOTE_UNCERTIFIED, name))
            continue;
        pd_note_path(note, name, PD_NOTE_CERTIFY);
        pd_note_path(failed, name, PD_NOTE_UNCERTIFIED);
        n += pd_datadir_move(dir, failed, note) == 0;
    }
    if (entries)
        closedir(entries);
    return n;
}

int pd_certifier_start(pd_certifier **ret, const pd_datadir *dir, const pd_certifier_options *options,
                       pd_error *err) {
    char why[PROOF_WHY_BYTES];
    pd_certifier *c = calloc(1, sizeof *c);
    if (!c)
        return pd_error_set(err, "out of memory");
    c->dir = dir;
    c->mode = options->mode;
    c->gid = options->gid;
    c->keeper = options->keeper;
    c->counters = options->counters;
    if (*options->key && proof_key_read_private(&c->key, options->key, why) != 0) {
        free(c);
        return pd_error_set(err, "certificate_key: %s", why);
    }
    int failed = pd_lock_init(&c->lock, &c->wake);
    if (failed) {
        proof_key_free(c->key);
        free(c);
        return pd_error_set(err, "the certifier's locks cannot be made: %s", strerror(failed));
    }
    c->n_notes = notes_take_up(dir);
    atomic_init(&c->pending, c->n_notes);
    failed = pthread_create(&c->thread, NULL, certifier_run, c);
    if (failed) {
        certifier_free(c);
        return pd_error_set(err, "the certifier's thread cannot be started: %s", strerror(failed));
    }
    *ret = c;
    return 0;
}

/* ---- what is to be done ---- */

static void certifier_woken(pd_certifier *c) {
    pthread_mutex_lock(&c->lock);
    atomic_fetch_add(&c->pending, 1);
    c->n_notes++;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

int pd_certifier_take_tail(pd_certifier *c, const char *name) {
    char tail[PD_FILE_NAME_BYTES];
    snprintf(tail, sizeof tail, "%s.photons" D7_TAIL_SUFFIX, name);
    int failed = pd_note_take(c->dir, tail, name, PD_NOTE_CERTIFY);
    if (!failed)
        certifier_woken(c);
    return failed;
}

void pd_certifier_note(pd_certifier *c, const char *name) {
    int failed = c ? pd_note_make(c->dir, name, PD_NOTE_CERTIFY) : 0;
    if (failed)
        pd_log(PD_LOG_WARNING, "%s/%s.photons: no certificate, its note cannot be made: %s", c->dir->path,
               name, strerror(-failed));
    else if (c)
        certifier_woken(c);
}

uint64_t pd_certifier_pending(const pd_certifier *c) {
    return c ? atomic_load(&c->pending) : 0;
}

void pd_certifier_stop(pd_certifier *c, unsigned seconds) {
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    c->deadline_ns = uv_hrtime() + seconds * UINT64_C(1000000000);
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    certifier_free(c);
}
