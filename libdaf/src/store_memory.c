#include "store_memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

#define PATH "(in memory)"

/* The bytes of one file; unchanged once it has a key. */
typedef struct blob {
    _Alignas(max_align_t) atomic_size_t holders;
    size_t bytes, capacity;
    _Alignas(max_align_t) uint8_t data[];
} blob;

typedef struct entry {
    char *key;
    blob *content; /* NULL: a folder */
    uint64_t serial;
} entry;

typedef struct table {
    entry *entries; /* sorted bytewise by key */
    size_t n, capacity;
} table;

typedef struct memory_store {
    daf__store base;
    table files;
    table backup; /* the files of before a reorder */
    uint64_t serial;
} memory_store;

typedef struct memory_file {
    daf__file base;
    blob *content;
} memory_file;

typedef struct memory_out {
    daf__out base;
    blob *content; /* NULL: nothing written yet, or given away */
} memory_out;

static void let_go(void *context) {
    blob *b = context;
    if (b && atomic_fetch_sub(&b->holders, 1) == 1)
        free(b);
}

static blob *hold(blob *b) {
    atomic_fetch_add(&b->holders, 1);
    return b;
}

/* ---- the table */

/* Where the key is, or would be. */
static size_t position(const table *t, const char *key) {
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(t->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static entry *find(const table *t, const char *key) {
    size_t i = position(t, key);
    return i < t->n && strcmp(t->entries[i].key, key) == 0 ? &t->entries[i] : NULL;
}

static bool is_inside(const char *key, const char *folder) {
    size_t n = strlen(folder);
    return strncmp(key, folder, n) == 0 && key[n] == '/';
}

static void entry_free(entry *e) {
    free(e->key);
    let_go(e->content);
}

static void table_clear(table *t) {
    for (size_t i = 0; i < t->n; i++)
        entry_free(&t->entries[i]);
    free(t->entries);
    *t = (table){0};
}

static int make_room(table *t, size_t more, daf_error *err) {
    if (t->n + more <= t->capacity)
        return 0;
    size_t capacity = 2 * t->capacity + more;
    entry *grown = realloc(t->entries, capacity * sizeof *grown);
    if (!grown)
        return daf__no_memory(err);
    t->entries = grown;
    t->capacity = capacity;
    return 0;
}

static void take_out(table *t, size_t i) {
    entry_free(&t->entries[i]);
    memmove(&t->entries[i], &t->entries[i + 1], (t->n - i - 1) * sizeof *t->entries);
    t->n--;
}

/* The table has room. */
static void put_in(table *t, entry e) {
    size_t i = position(t, e.key);
    if (i < t->n && strcmp(t->entries[i].key, e.key) == 0) {
        entry_free(&t->entries[i]);
    } else {
        memmove(&t->entries[i + 1], &t->entries[i], (t->n - i) * sizeof *t->entries);
        t->n++;
    }
    t->entries[i] = e;
}

static void remove_all(table *t, const char *key) {
    size_t i = position(t, key), n = strlen(key);
    while (i < t->n && strncmp(t->entries[i].key, key, n) == 0) {
        if (t->entries[i].key[n] == 0 || t->entries[i].key[n] == '/')
            take_out(t, i);
        else
            i++;
    }
}

/* ---- reading */

static int missing(const memory_store *s, const char *key, daf_error *err) {
    return daf__fail(err, DAF_ERR_MISSING, 0, 0, "%s/%s: no such file", s->base.path, key);
}

static daf__stamp stamp_of(const entry *e) {
    return (daf__stamp){.inode = e->serial, .bytes = e->content->bytes};
}

static int file_read(daf__file *f, void *data, size_t bytes, uint64_t offset, daf_error *err) {
    memory_file *file = (memory_file *)f;
    if (offset > f->size || bytes > f->size - offset)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: ends at byte %llu", f->where,
                         (unsigned long long)f->size);
    if (bytes)
        memcpy(data, file->content->data + offset, bytes);
    return 0;
}

static int file_map(daf__file *f, daf__map *ret, daf_error *err) {
    memory_file *file = (memory_file *)f;
    (void)err;
    *ret = (daf__map){.data = file->content->data, .owner = hold(file->content), .release = let_go};
    return 0;
}

static void file_close(daf__file *f) {
    memory_file *file = (memory_file *)f;
    let_go(file->content);
    free(f->where);
    free(file);
}

static const daf__file_ops file_ops = {.read = file_read, .map = file_map, .close = file_close};

static int memory_open(daf__store *base, daf__file **ret, const char *key, daf_error *err) {
    memory_store *s = (memory_store *)base;
    const entry *e = find(&s->files, key);
    if (!e || !e->content)
        return missing(s, key, err);
    char text[DAF__WHERE_TEXT];
    memory_file *file = calloc(1, sizeof *file);
    char *where = strdup(daf__store_where(text, base, key));
    if (!file || !where) {
        free(file);
        free(where);
        return daf__no_memory(err);
    }
    *file = (memory_file){
        .base = {.ops = &file_ops, .stamp = stamp_of(e), .size = e->content->bytes, .where = where},
        .content = hold(e->content)};
    *ret = &file->base;
    return 0;
}

static int memory_stamp(daf__store *base, daf__stamp *ret, const char *key, daf_error *err) {
    memory_store *s = (memory_store *)base;
    const entry *e = find(&s->files, key);
    if (!e || !e->content)
        return missing(s, key, err);
    *ret = stamp_of(e);
    return 0;
}

static int memory_list(daf__store *base, daf_names *ret, const char *folder, daf__list_what what,
                       daf_error *err) {
    memory_store *s = (memory_store *)base;
    daf_names names = {0};
    size_t skip = strlen(folder) + 1;
    int rc = 0;
    for (size_t i = position(&s->files, folder); i < s->files.n && rc == 0; i++) {
        const entry *e = &s->files.entries[i];
        if (strncmp(e->key, folder, skip - 1) != 0)
            break;
        if (!is_inside(e->key, folder))
            continue;
        size_t bytes = strcspn(e->key + skip, "/");
        bool is_folder = !e->content || e->key[skip + bytes] == '/';
        if (is_folder == (what == DAF__LIST_FOLDERS))
            rc = daf__names_add(&names, e->key + skip, bytes, err);
    }
    if (rc) {
        daf_names_clear(&names);
        return rc;
    }
    daf__names_sort(&names);
    daf__names_drop_twins(&names); /* the folders of several files */
    *ret = names;
    return 0;
}

/* ---- writing */

static int out_write(daf__out *out, const void *data, size_t bytes, uint64_t offset, daf_error *err) {
    memory_out *o = (memory_out *)out;
    size_t end;
    if (offset > SIZE_MAX / 4 || __builtin_add_overflow((size_t)offset, bytes, &end) || end > SIZE_MAX / 4)
        return daf__no_memory(err);
    if (!o->content || end > o->content->capacity) {
        size_t capacity = o->content ? 2 * o->content->capacity : 0;
        if (capacity < end)
            capacity = end;
        blob *grown = realloc(o->content, sizeof *grown + capacity);
        if (!grown)
            return daf__no_memory(err);
        if (!o->content) {
            atomic_init(&grown->holders, 1);
            grown->bytes = 0;
        }
        grown->capacity = capacity;
        o->content = grown;
    }
    if (bytes)
        memcpy(o->content->data + offset, data, bytes);
    if (end > o->content->bytes)
        o->content->bytes = end;
    return 0;
}

static void out_discard(daf__out *out) {
    memory_out *o = (memory_out *)out;
    let_go(o->content);
    free(o);
}

static const daf__out_ops out_ops = {.write = out_write, .discard = out_discard};

static int memory_create(daf__store *base, daf__out **ret, daf_error *err) {
    (void)base;
    memory_out *o = calloc(1, sizeof *o);
    if (!o)
        return daf__no_memory(err);
    o->base.ops = &out_ops;
    *ret = &o->base;
    return 0;
}

/* Completes the out; its bytes take no more memory than they need. */
static int finish_out(daf__out *out, daf_error *err) {
    memory_out *o = (memory_out *)out;
    int rc = daf__out_flush(out, err);
    if (rc == 0 && !o->content)
        rc = out_write(out, "", 0, 0, err);
    if (rc == 0 && o->content->capacity > o->content->bytes) {
        blob *shrunk = realloc(o->content, sizeof *shrunk + o->content->bytes);
        if (shrunk) {
            o->content = shrunk;
            shrunk->capacity = shrunk->bytes;
        }
    }
    return rc;
}

/* Everything that needs memory. The copies of the keys stand at the steps' places. */
static int prepare(memory_store *s, daf__change *c, char **keys, daf_error *err) {
    int rc = make_room(&s->files, c->n_steps, err);
    for (size_t i = 0; i < c->n_steps && rc == 0; i++) {
        const daf__step *step = &c->steps[i];
        keys[i] = strdup(step->key);
        rc = !keys[i] ? daf__no_memory(err) : step->kind == DAF__STEP_PUT ? finish_out(step->out, err) : 0;
    }
    return rc;
}

/* Takes the key. */
static void perform(memory_store *s, const daf__step *step, char *key) {
    entry e = {.key = key, .serial = ++s->serial};
    if (step->kind == DAF__STEP_REMOVE || (step->kind == DAF__STEP_MAKE_FOLDER && find(&s->files, key))) {
        if (step->kind == DAF__STEP_REMOVE)
            remove_all(&s->files, key);
        free(key);
        return;
    }
    if (step->kind == DAF__STEP_PUT) {
        memory_out *o = (memory_out *)step->out;
        e.content = o->content;
        o->content = NULL;
    }
    put_in(&s->files, e);
}

static int memory_apply(daf__store *base, daf__change *c, daf_error *err) {
    memory_store *s = (memory_store *)base;
    char **keys = calloc(c->n_steps + 1, sizeof *keys);
    if (!keys)
        return daf__no_memory(err);
    int rc = prepare(s, c, keys, err);
    for (size_t i = 0; i < c->n_steps; i++) {
        if (rc == 0)
            perform(s, &c->steps[i], keys[i]);
        else
            free(keys[i]);
    }
    free(keys);
    return rc;
}

static int memory_settle(daf__store *base, daf_error *err) {
    (void)base;
    (void)err;
    return 0;
}

/* ---- the backup of a reorder: of all files, since their bytes are shared */

static int memory_backup(daf__store *base, const daf_names *keys, daf_error *err) {
    memory_store *s = (memory_store *)base;
    (void)keys;
    int rc = make_room(&s->backup, s->files.n, err);
    for (size_t i = 0; i < s->files.n && rc == 0; i++) {
        entry e = s->files.entries[i];
        e.key = strdup(e.key);
        if (!e.key) {
            rc = daf__no_memory(err);
            break;
        }
        if (e.content)
            hold(e.content);
        s->backup.entries[s->backup.n++] = e;
    }
    if (rc)
        table_clear(&s->backup);
    return rc;
}

static int memory_restore(daf__store *base, daf_error *err) {
    memory_store *s = (memory_store *)base;
    (void)err;
    table_clear(&s->files);
    s->files = s->backup;
    s->backup = (table){0};
    return 0;
}

static int memory_drop_backup(daf__store *base, daf_error *err) {
    (void)err;
    table_clear(&((memory_store *)base)->backup);
    return 0;
}

static void memory_free(daf__store *base) {
    memory_store *s = (memory_store *)base;
    table_clear(&s->files);
    table_clear(&s->backup);
    free(base->path);
    free(s);
}

static const daf__store_ops memory_ops = {.open = memory_open,
                                          .stamp = memory_stamp,
                                          .list = memory_list,
                                          .create = memory_create,
                                          .apply = memory_apply,
                                          .settle = memory_settle,
                                          .backup = memory_backup,
                                          .restore = memory_restore,
                                          .drop_backup = memory_drop_backup,
                                          .free = memory_free};

int daf__memory_store_new(daf__store **ret, daf_error *err) {
    memory_store *s = calloc(1, sizeof *s);
    char *path = strdup(PATH);
    if (!s || !path) {
        free(s);
        free(path);
        return daf__no_memory(err);
    }
    s->base = (daf__store){.ops = &memory_ops, .path = path, .fresh = true};
    *ret = &s->base;
    return 0;
}
