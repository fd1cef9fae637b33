/* Opening, batches, closing. */
#include "handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive.h"
#include "edit.h"
#include "error.h"
#if DAF_WITH_HTTP
#include "http_store.h"
#endif
#include "json.h"
#include "store_dir.h"
#include "store_memory.h"
#include "zarr_store.h"

enum { MAJOR = 1, NEWEST_MINOR = 1 };
#define MARKER_KEY "daf.json"

static int parse_mode(daf__open_mode *ret, const char *mode, daf_error *err) {
    static const struct {
        const char *text;
        daf__open_mode mode;
    } modes[] = {
        {"r", {.writable = false}},
        {"r+", {.writable = true}},
        {"w+", {.writable = true, .create = true}},
        {"w", {.writable = true, .create = true, .truncate = true}},
    };
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(mode, modes[i].text) == 0) {
            *ret = modes[i].mode;
            return 0;
        }
    }
    return daf__fail(err, DAF_ERR_ARG, 0, 0, "invalid mode: %.60s", mode);
}

/* ---- daf.json */

static int check_version(daf *d, const json_t *marker, const char *where, daf_error *err) {
    const json_t *version = json_object_get(marker, "version");
    const json_t *major = json_array_get(version, 0), *minor = json_array_get(version, 1);
    if (!json_is_array(version) || json_array_size(version) != 2 || !json_is_integer(major) ||
        !json_is_integer(minor))
        return daf__fail(err, DAF_ERR_VERSION, 0, 0, "%s: no version of two integers", where);
    long long m = json_integer_value(major), n = json_integer_value(minor);
    if (m != MAJOR || n < 0 || n > NEWEST_MINOR)
        return daf__fail(err, DAF_ERR_VERSION, 0, 0,
                         "incompatible format version: %lld.%lld\nthe code supports version: %d.%d\n"
                         "in %s: %s",
                         m, n, MAJOR, NEWEST_MINOR, d->store->kind, daf__store_full_path(d->store));
    d->major = (int)m;
    d->minor = (int)n;
    return 0;
}

int daf__read_marker(daf *d, daf_error *err) {
    char where[DAF__WHERE_TEXT];
    daf__buf text = {0};
    json_t *marker;
    int rc = daf__store_read(d->store, &text, NULL, MARKER_KEY, DAF__MAX_JSON_BYTES, err);
    if (rc)
        return rc;
    daf__store_where(where, d->store, MARKER_KEY);
    rc = daf__json_object(&marker, text.data, text.size, where, err);
    if (rc == 0) {
        rc = check_version(d, marker, where, err);
        json_decref(marker);
    }
    daf__buf_free(&text);
    return rc;
}

/* ---- creating */

/* The marker comes last: without it there is no repository. */
static int put_marker(daf__edit *e, daf_error *err) {
    static const char marker[] = DAF__MARKER_TEXT;
    return daf__edit_put_bytes(e, MARKER_KEY, marker, sizeof marker - 1, err);
}

static int initialize(daf *d, bool clear, daf_error *err) {
    static const char *const folders[] = {"scalars", "axes", "vectors", "matrices"};
    daf__edit e;
    int rc = daf__edit_begin(&e, d, err);
    d->metadata.rebuild = true;
    d->metadata.knows = clear; /* that nothing is left */
    if (rc == 0 && clear)
        rc = daf__dir_store_clear(d->store, &e.change, err);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && rc == 0; i++)
        rc = daf__change_make_folder(&e.change, folders[i], err);
    if (rc == 0 && d->store->keeps_metadata)
        rc = daf__edit_put_metadata(&e, err);
    if (rc == 0 && !d->owes_marker)
        rc = put_marker(&e, err);
    if (rc == 0)
        rc = d->store->ops->apply(d->store, &e.change, err);
    if (rc == 0)
        rc = d->store->ops->settle(d->store, err);
    if (rc == 0 && d->store->keeps_metadata)
        daf__metadata_taken(&d->metadata);
    if (rc == 0) {
        d->major = MAJOR;
        d->minor = NEWEST_MINOR;
    }
    daf__change_free(&e.change);
    return rc;
}

/* ---- metadata.json */

/* A reader goes by the files, but makes an index for others when there is none and it may. */
static void make_lacking_metadata(daf *d) {
    bool lacks;
    if (daf__metadata_lacks(&lacks, d->store, NULL) != 0 || !lacks || !daf__dir_store_hold(d->store))
        return;
    if (daf__metadata_lacks(&lacks, d->store, NULL) == 0 && lacks)
        (void)daf__edit_write_metadata(d, NULL);
    daf__dir_store_release(d->store);
    daf__metadata_free(&d->metadata);
}

static int open_metadata(daf *d, daf_error *err) {
    bool usable;
    if (!d->writable) {
        make_lacking_metadata(d);
        return 0;
    }
    int rc = daf__metadata_load(&d->metadata, d->store, &usable, err);
    if (rc == 0 && !usable)
        rc = daf__edit_write_metadata(d, err);
    return rc ? rc : d->store->ops->settle(d->store, err);
}

/* ---- opening */

static int open_archive(daf *d, int dirfd, const char *path, const daf__archive_path *where,
                        daf__open_mode mode, const daf_options *options, daf_error *err) {
    daf__archive_settings settings = {.io = options->io ? options->io : &daf__system_io,
                                      .sync = options->sync,
                                      .file_mode = options->file_mode,
                                      .max_bytes = d->settings.zip_max_bytes};
    int rc = daf__archive_store_open(&d->store, dirfd, path, where, mode, &settings, err);
    if (rc || mode.untouched)
        return rc;
    if (d->store->fresh && !mode.create)
        return daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a daf data set: %s",
                         daf__store_full_path(d->store));
    rc = d->store->fresh ? 0 : daf__read_marker(d, err);
    if (rc == 0 && mode.writable)
        rc = daf__archive_store_prepare(d->store, err);
    if (rc || !d->store->fresh)
        return rc;
    d->owes_marker = options->late_marker;
    return initialize(d, false, err);
}

static int open_directory(daf *d, int dirfd, const char *path, daf__open_mode mode,
                          const daf_options *options, daf_error *err) {
    daf__dir_settings settings = {.io = options->io ? options->io : &daf__system_io,
                                  .sync = options->sync,
                                  .file_mode = options->file_mode,
                                  .directory_mode = options->directory_mode};
    int rc = daf__dir_store_open(&d->store, dirfd, path, mode, &settings, err);
    if (rc || mode.untouched)
        return rc;
    if (!d->store->fresh)
        rc = daf__read_marker(d, err);
    else if (!mode.create)
        rc = daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a daf directory: %s", path);
    else
        rc = initialize(d, mode.truncate, err);
    if (rc == 0 && !d->store->fresh)
        rc = open_metadata(d, err);
    if (rc && d->store->made)
        daf__dir_remove_tree(settings.io, dirfd, path); /* leave nothing half made */
    return rc;
}

/* A Zarr tree, which is read only; a directory that is called like one but holds a marker is none. */
static int open_zarr(daf *d, int dirfd, const char *path, const daf__archive_path *where, daf__open_mode mode,
                     const daf_options *options, daf_error *err) {
    const daf_io *io = options->io ? options->io : &daf__system_io;
    daf__archive_settings archive = {.io = io, .max_bytes = d->settings.zip_max_bytes, .other_form = true};
    daf__dir_settings directory = {.io = io};
    daf__open_mode reading = {.untouched = mode.untouched};
    daf__store *tree;
    if (!where->archive && faccessat(dirfd, path, F_OK, 0) != 0 && errno == ENOENT && !mode.writable)
        return daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "no such directory: %s", path);
    int rc = where->archive ? daf__archive_store_open(&tree, dirfd, path, where, reading, &archive, err)
                            : daf__dir_store_open(&tree, dirfd, path, reading, &directory, err);
    if (rc)
        return rc;
    if (!where->archive && !tree->fresh) {
        tree->ops->free(tree);
        return open_directory(d, dirfd, path, mode, options, err);
    }
    rc = daf__zarr_store_open(&d->store, tree, err);
    if (rc == 0 && mode.writable)
        rc = daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                       "%s: a Zarr tree is opened for reading only; convert it (daf_zarr_import)", path);
    return rc ? rc : daf__read_marker(d, err);
}

#if DAF_WITH_HTTP
static int open_url(daf *d, const char *url, daf_error *err) {
    int rc = daf__http_store_open(&d->store, url, &d->settings.http, err);
    if (rc)
        return rc;
    d->settings.cache_bytes = d->settings.http_cache_bytes;
    return daf__read_marker(d, err);
}
#else
static int open_url(daf *d, const char *url, daf_error *err) {
    (void)d;
    (void)url;
    return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                     "this library was built without libcurl and opens no URLs");
}
#endif

static int open_store(daf *d, int dirfd, const char *path, daf__open_mode mode, const daf_options *options,
                      daf_error *err) {
    daf__archive_path where;
    bool is_zarr;
    if (daf__is_url(path) && mode.writable)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "URLs are opened for reading only");
    if (daf__is_url(path))
        return open_url(d, path, err);
    int rc = daf__zarr_path_parse(&is_zarr, &where, dirfd, path, err);
    if (rc == 0 && is_zarr) {
        rc = open_zarr(d, dirfd, path, &where, mode, options, err);
        daf__archive_path_free(&where);
    }
    if (rc || is_zarr)
        return rc;
    rc = daf__archive_path_parse(&where, dirfd, path, err);
    if (rc)
        return rc;
    rc = where.archive ? open_archive(d, dirfd, path, &where, mode, options, err)
                       : open_directory(d, dirfd, path, mode, options, err);
    daf__archive_path_free(&where);
    return rc;
}

static int set_up(daf *d, const daf_options *options, daf_error *err) {
    if (options->executor) {
        d->executor = *options->executor;
        d->has_executor = true;
    }
    if (options->name && !(d->given_name = strdup(options->name)))
        return daf__no_memory(err);
    return daf__settings_init(&d->settings, options, err);
}

static int open_as(daf **ret, int dirfd, const char *path, daf__open_mode mode, const daf_options *options,
                   daf_error *err) {
    daf *d = calloc(1, sizeof *d);
    if (!d)
        return daf__no_memory(err);
    d->writable = mode.writable;
    int rc = set_up(d, options, err);
    if (rc == 0)
        rc = open_store(d, dirfd, path, mode, options, err);
    if (rc) {
        daf_free(d);
        return rc;
    }
    *ret = d;
    return 0;
}

int daf_openat(daf **ret, int dirfd, const char *path, const char *mode, const daf_options *options,
               daf_error *err) {
    daf_options defaults;
    daf__open_mode parsed = {.writable = false};
    if (!path || !mode)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "the path or the mode is NULL");
    if (!options) {
        daf_options_init(&defaults);
        options = &defaults;
    }
    int rc = parse_mode(&parsed, mode, err);
    return rc ? rc : open_as(ret, dirfd, path, parsed, options, err);
}

int daf__open_untouched(daf **ret, const char *path, const daf_options *options, daf_error *err) {
    return open_as(ret, AT_FDCWD, path, (daf__open_mode){.untouched = true}, options, err);
}

int daf_open_memory(daf **ret, const daf_options *options, daf_error *err) {
    daf_options defaults;
    if (!options) {
        daf_options_init(&defaults);
        options = &defaults;
    }
    daf *d = calloc(1, sizeof *d);
    if (!d)
        return daf__no_memory(err);
    d->writable = true;
    int rc = set_up(d, options, err);
    if (rc == 0)
        rc = daf__memory_store_new(&d->store, err);
    if (rc == 0)
        rc = initialize(d, false, err);
    if (rc) {
        daf_free(d);
        return rc;
    }
    *ret = d;
    return 0;
}

int daf_open(daf **ret, const char *path, const char *mode, const daf_options *options, daf_error *err) {
    return daf_openat(ret, AT_FDCWD, path, mode, options, err);
}

/* ---- batches and closing */

int daf__handle_is_writable(const daf *d, daf_error *err) {
    return d->writable
               ? 0
               : daf__fail(err, DAF_ERR_READ_ONLY, 0, 0, "%s: opened for reading only", d->store->path);
}

int daf_batch_begin(daf *d, daf_error *err) {
    int rc = daf__handle_is_writable(d, err);
    if (rc)
        return rc;
    if (d->in_batch)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: a batch is open already", d->store->path);
    d->in_batch = d->store->batching = true;
    return 0;
}

/* Before it there was no repository. */
static int put_late_marker(daf *d, daf_error *err) {
    daf__edit e = {.d = d};
    int rc = put_marker(&e, err);
    if (rc == 0)
        rc = d->store->ops->apply(d->store, &e.change, err);
    daf__change_free(&e.change);
    if (rc == 0)
        d->owes_marker = false;
    return rc;
}

int daf_batch_commit(daf *d, daf_error *err) {
    if (!d->in_batch)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: no batch is open", d->store->path);
    int rc = d->owes_marker ? put_late_marker(d, err) : 0;
    if (rc == 0 && d->store->keeps_metadata && daf__metadata_is_due(&d->metadata))
        rc = daf__edit_write_metadata(d, err);
    if (rc == 0)
        rc = d->store->ops->settle(d->store, err);
    if (rc == 0)
        d->in_batch = d->store->batching = false;
    return rc;
}

int daf_close(daf *d, daf_error *err) {
    int rc = d && d->in_batch ? daf_batch_commit(d, err) : 0;
    daf_free(d);
    return rc;
}

void daf_free(daf *d) {
    if (!d)
        return;
    daf__metadata_free(&d->metadata);
    while (d->axis_lengths) {
        daf__axis_length *a = d->axis_lengths;
        d->axis_lengths = a->next;
        free(a->axis);
        free(a);
    }
    if (d->store)
        d->store->ops->free(d->store);
    free(d->given_name);
    free(d->shown_name);
    free(d);
}

const char *daf_name(daf *d) {
    daf_scalar scalar;
    if (d->given_name)
        return d->given_name;
    if (daf_get_scalar(d, &scalar, "name", NULL) != 0)
        return d->store->path;
    free(d->shown_name);
    d->shown_name = scalar.type == DAF_STRING ? strdup(scalar.value.s.text) : NULL;
    daf_scalar_clear(&scalar);
    return d->shown_name ? d->shown_name : d->store->path;
}

void daf_format_version(const daf *d, int *major, int *minor) {
    *major = d->major;
    *minor = d->minor;
}
