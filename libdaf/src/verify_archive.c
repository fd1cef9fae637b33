/* The entries of an archive, those of the group: headers, checksums, alignment. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "archive_decode.h"
#include "error.h"
#include "utf8.h"
#include "verify.h"

enum { LOCAL_ROOM = 1 << 17 };

typedef struct archive_check {
    daf__verifier *v;
    daf__archive_whole whole;
    const daf__archive_directory *directory;
    uint8_t *room; /* [LOCAL_ROOM], for local headers */
} archive_check;

static bool is_ascii(const char *name, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)name[i] >= 0x80)
            return false;
    return true;
}

/* What the local header says otherwise than the directory; NULL: nothing. Checksum and sizes may come behind the data. */
static const char *find_contradiction(const archive_check *c, const daf__archive_entry *e,
                                      const daf__zip_entry *local) {
    bool later = local->flags & DAF__ZIP_DESCRIPTOR_FLAG;
    if (local->name_bytes != e->name_bytes ||
        memcmp(local->name, daf__archive_entry_name(c->directory, e), e->name_bytes) != 0)
        return "name";
    if (local->method != e->method)
        return "method";
    if (!later && local->crc != e->crc)
        return "checksum";
    return !later && (local->packed_bytes != e->packed_bytes || local->raw_bytes != e->raw_bytes) ? "size"
                                                                                                  : NULL;
}

/* *data: where the entry's bytes begin; 0: not known. */
static int check_local(const archive_check *c, const daf__archive_entry *e, const char *key, uint64_t *data) {
    daf__file *f = (daf__file *)(uintptr_t)&c->whole.base;
    daf__zip_entry local;
    *data = 0;
    uint64_t there = e->offset < f->size ? f->size - e->offset : 0;
    size_t bytes = there < LOCAL_ROOM ? (size_t)there : LOCAL_ROOM;
    int rc = f->ops->read(f, c->room, bytes, e->offset, c->v->err);
    if (rc)
        return rc;
    size_t width = daf__zip_parse_local(c->room, bytes, &local);
    if (width == 0) {
        daf__tell(c->v, DAF_PROBLEM_ENTRY_CHECKSUM, key, DAF_NO_OFFSET,
                  "there is no local header at byte %" PRIu64 " of the archive", e->offset);
        return 0;
    }
    *data = e->offset + width;
    const char *what = find_contradiction(c, e, &local);
    if (what)
        daf__tell(c->v, DAF_PROBLEM_LOCAL_HEADER, key, DAF_NO_OFFSET,
                  "the local header has another %s than the directory", what);
    return 0;
}

/* Without the place in the archive, which is none in the entry. */
static int tell_entry(const archive_check *c, daf_problem_code code, const char *key,
                      const daf_error *details) {
    daf_error d = *details;
    d.offset = 0;
    return daf__tell_error(c->v, code, key, &d);
}

static int check_data(const archive_check *c, const daf__archive_entry *e, const char *key, uint64_t data) {
    daf__file *f = (daf__file *)(uintptr_t)&c->whole.base;
    daf_error details = {.code = 0};
    uint32_t crc = 0;
    if (daf__archive_check_method(e, key, &details) != 0)
        return tell_entry(c, DAF_PROBLEM_ENTRY_METHOD, key, &details);
    if (e->packed_bytes > f->size - data)
        details.code = DAF_ERR_TRUNCATED, strcpy(details.text, "goes past the end of the archive");
    else if (e->method != DAF__ZIP_STORED)
        (void)daf__archive_check(f, data, e, key, &details);
    else if (daf__archive_crc(&crc, f, data, e->packed_bytes, &details) == 0 &&
             (crc != e->crc || e->raw_bytes != e->packed_bytes))
        details.code = DAF_ERR_CORRUPT, strcpy(details.text, "its checksum or size does not match");
    if (details.code)
        return tell_entry(c, DAF_PROBLEM_ENTRY_CHECKSUM, key, &details);
    return daf__looked_at(c->v, 0);
}

static void check_style(const archive_check *c, const daf__archive_entry *e, const char *key, uint64_t data) {
    daf__verifier *v = c->v;
    const char *name = daf__archive_entry_name(c->directory, e);
    if (e->method != DAF__ZIP_STORED)
        daf__tell(v, DAF_PROBLEM_ENTRY_COMPRESSED, key, DAF_NO_OFFSET, "ZIP method %u", e->method);
    else if (data % DAF__ZIP_ALIGNMENT)
        daf__tell(v, DAF_PROBLEM_ENTRY_UNALIGNED, key, DAF_NO_OFFSET, "data at byte %" PRIu64, data);
    if (!is_ascii(name, e->name_bytes) && !(e->flags & DAF__ZIP_UTF8_FLAG))
        daf__tell(v, DAF_PROBLEM_ENTRY_NAME, key, DAF_NO_OFFSET, "the UTF-8 flag is not set");
    if (strcmp(key, "metadata.json") == 0)
        daf__tell(v, DAF_PROBLEM_ENTRY_SURPLUS, key, DAF_NO_OFFSET, "is ignored in an archive");
}

/* It is passed over: the store lists names that can be those of files. */
static int check_nameless(const archive_check *c, const daf__archive_entry *e, const char *key) {
    uint64_t data;
    if (!memchr(daf__archive_entry_name(c->directory, e), 0, e->name_bytes)) {
        daf__tell(c->v, DAF_PROBLEM_ENTRY_SURPLUS, key, DAF_NO_OFFSET, "a folder, or no name of a file");
        return 0;
    }
    daf__tell(c->v, DAF_PROBLEM_NAME_HIDDEN, key, DAF_NO_OFFSET, "a NUL follows in the name");
    return check_local(c, e, key, &data);
}

/* Under a name with such a part nothing is looked for. */
static void check_parts(const archive_check *c, const char *key) {
    static const char *const folders[] = {"scalars/", "axes/", "vectors/", "matrices/"};
    bool inside = false, odd = false;
    for (unsigned i = 0; i < sizeof folders / sizeof folders[0]; i++)
        inside = inside || strncmp(key, folders[i], strlen(folders[i])) == 0;
    for (const char *part = key, *end; part; part = *end ? end + 1 : NULL) {
        end = part + strcspn(part, "/");
        odd = odd || !daf__is_path_part(part, (size_t)(end - part));
    }
    if (odd)
        daf__tell(c->v, inside ? DAF_PROBLEM_NAME_HIDDEN : DAF_PROBLEM_FOREIGN, key, DAF_NO_OFFSET,
                  "a part of the name is empty, \".\", \"..\" or too long");
}

static int check_entry(const archive_check *c, uint32_t i, const char *key) {
    const daf__archive_entry *e = &c->directory->entries[i];
    uint64_t data;
    int rc = check_local(c, e, key, &data);
    if (e->overlaps)
        daf__tell(c->v, DAF_PROBLEM_ENTRY_OVERLAP, key, DAF_NO_OFFSET,
                  "the %" PRIu64 " bytes from byte %" PRIu64 " of the archive run into the next entry",
                  e->packed_bytes, data ? data : e->offset);
    else if (rc == 0 && data)
        rc = check_data(c, e, key, data);
    if (rc == 0 && data)
        check_style(c, e, key, data);
    return rc;
}

/* Such a property counts as absent, so that nothing else speaks of it. */
static void check_payload(const archive_check *c, const daf__archive_store *s, const char *name,
                          const char *key) {
    size_t bytes = strlen(key);
    if (bytes > 5 && strcmp(key + bytes - 5, ".json") == 0 && daf__archive_is_dead(s, name))
        daf__tell(c->v, DAF_PROBLEM_PAYLOAD_MISSING, key, DAF_NO_OFFSET,
                  "the payload it speaks of is not there");
}

/* The entries of the store's prefix; each name's last one counts. */
static int check_entries(const archive_check *c, const daf__archive_store *s) {
    const daf__archive_directory *d = c->directory;
    int rc = 0;
    for (uint32_t i = 0; i < d->n_committed && rc == 0; i++) {
        const daf__archive_entry *e = &d->entries[i];
        size_t bytes = e->name_bytes;
        const char *raw = daf__archive_entry_name(d, e);
        const char *name = daf__archive_plain_name(raw, &bytes);
        size_t shown = bytes ? bytes : e->name_bytes;
        if (!bytes)
            name = raw;
        if (shown < s->prefix_bytes || memcmp(name, s->prefix, s->prefix_bytes) != 0)
            continue;
        char *full = daf__copy_text(name, shown);
        if (!full)
            return daf__no_memory(c->v->err);
        const char *key = full + s->prefix_bytes;
        if (bytes == 0)
            rc = check_nameless(c, e, key);
        else if (daf__archive_names_find(&d->names, name, bytes) != i)
            daf__tell(c->v, DAF_PROBLEM_ENTRY_TWICE, key, DAF_NO_OFFSET, "a later entry has the same name");
        else
            rc = check_entry(c, i, key);
        if (rc == 0 && bytes)
            check_parts(c, key);
        if (rc == 0 && bytes)
            check_payload(c, s, full, key);
        free(full);
    }
    return rc;
}

static int compare_places(const void *a, const void *b) {
    const daf__archive_entry *p = *(daf__archive_entry *const *)a, *q = *(daf__archive_entry *const *)b;
    return p->offset < q->offset ? -1 : p->offset > q->offset ? 1 : p < q ? -1 : p > q;
}

/* What is left shares no bytes, so that what it is decoded to is bounded by the file's size. */
static int mark_overlaps(daf__archive_directory *d, daf_error *err) {
    daf__archive_entry **by_place = malloc((d->n_committed + (size_t)1) * sizeof *by_place);
    if (!by_place)
        return daf__no_memory(err);
    for (uint32_t i = 0; i < d->n_committed; i++)
        by_place[i] = &d->entries[i];
    qsort(by_place, d->n_committed, sizeof *by_place, compare_places);
    for (uint32_t i = 1; i < d->n_committed; i++) {
        daf__archive_entry *e = by_place[i - 1];
        uint64_t end = e->offset + DAF__ZIP_LOCAL_BYTES + e->packed_bytes;
        e->overlaps = end > by_place[i]->offset;
    }
    free(by_place);
    return 0;
}

int daf__verify_archive(daf__verifier *v) {
    daf__archive_store *s = (daf__archive_store *)v->d->store;
    daf__archive *a = s->archive;
    archive_check c = {.v = v, .directory = &a->directory, .room = malloc(LOCAL_ROOM)};
    if (!c.room)
        return daf__no_memory(v->err);
    if (a->directory.unclear)
        daf__tell(v, DAF_PROBLEM_ARCHIVE, "", a->directory.unclear_at,
                  "the directory is damaged or cut off, and not all that is there could be found");
    else if (a->directory.recovered)
        daf__tell(v, DAF_PROBLEM_TORN, "", DAF_NO_OFFSET,
                  "an append was interrupted; the next writable open undoes it");
    pthread_mutex_lock(&a->lock);
    s->skips_overlaps = true;
    int rc = daf__archive_look(&c.whole, a->io, a->fd, a->path, v->err);
    if (rc == 0)
        rc = mark_overlaps(&a->directory, v->err);
    if (rc == 0)
        rc = check_entries(&c, s);
    pthread_mutex_unlock(&a->lock);
    free(c.room);
    return rc;
}
