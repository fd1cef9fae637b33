/* The directory store: reading where a killed writer has left a change half done. Nothing is written; what the journal says
 * was there before is read from where it is kept. When a writer comes meanwhile and undoes the change, what was kept is
 * back in its place, and found there. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"
#include "store_dir_journal.h"

typedef struct daf__dir_undone {
    daf__dir_plan plan;
    daf__stamp
        *kept; /* of each step: what is under its staging name, which may be used anew; inode 0: nothing */
} daf__dir_undone;

int daf__dir_undone_load(daf__dir_store *s, daf_error *err) {
    daf__dir_undone u = {0};
    int rc = daf__journal_read(s, &u.plan, err);
    if (rc || u.plan.n == 0)
        return rc;
    u.kept = calloc(u.plan.n, sizeof *u.kept);
    daf__dir_undone *undone = malloc(sizeof *undone);
    if (!u.kept || !undone) {
        daf__dir_plan_free(&u.plan);
        free(u.kept);
        free(undone);
        return daf__no_memory(err);
    }
    for (size_t i = 0; i < u.plan.n; i++)
        if (u.plan.steps[i].kept[0] && !daf__dir_look(s, u.plan.steps[i].kept, &u.kept[i]))
            u.kept[i].inode = 0;
    *undone = u;
    s->undone = undone;
    return 0;
}

void daf__dir_undone_free(daf__dir_store *s) {
    if (!s->undone)
        return;
    daf__dir_plan_free(&s->undone->plan);
    free(s->undone->kept);
    free(s->undone);
    s->undone = NULL;
}

static bool is_kept(const daf__dir_store *s, size_t i) {
    const daf__stamp *then = &s->undone->kept[i];
    daf__stamp now;
    return then->inode && daf__dir_look(s, s->undone->plan.steps[i].kept, &now) && now.inode == then->inode;
}

/* The first step that concerns a key says what was there. */
daf__undone_where daf__dir_undone_place(const daf__dir_store *s, const char *key, daf__undone_key *ret) {
    const daf__dir_plan *p = s->undone ? &s->undone->plan : NULL;
    for (size_t i = 0; p && i < p->n; i++) {
        const daf__dir_step *step = &p->steps[i];
        size_t n = strlen(step->key), kept = strlen(step->kept);
        bool here = strncmp(step->key, key, n) == 0 && (key[n] == 0 || key[n] == '/');
        if (!here || step->kind == DAF__STEP_MAKE_FOLDER)
            continue;
        if (kept && (!is_kept(s, i) || kept + strlen(key + n) >= sizeof ret->text))
            return DAF__UNDONE_LIVE; /* it never left, or is back */
        if (kept) {
            memcpy(ret->text, step->kept, kept);
            memcpy(ret->text + kept, key + n, strlen(key + n) + 1);
            return DAF__UNDONE_KEPT;
        }
        if (key[n] == 0 && step->kind == DAF__STEP_PUT && daf__dir_is_placed(s, p, step))
            return DAF__UNDONE_GONE;
    }
    return DAF__UNDONE_LIVE;
}

static bool is_wanted(const daf__dir_store *s, const char *path, daf__list_what what) {
    struct stat st;
    return fstatat(s->fd, path, &st, 0) == 0 &&
           (what == DAF__LIST_FOLDERS ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

static void drop_name(daf_names *names, const char *name) {
    for (size_t i = 0; i < names->n; i++) {
        if (strcmp(names->names[i], name) != 0)
            continue;
        free(names->names[i]);
        names->names[i] = names->names[--names->n];
        return;
    }
}

int daf__dir_undone_list(const daf__dir_store *s, daf_names *names, const char *folder, daf__list_what what,
                         daf_error *err) {
    const daf__dir_plan *p = s->undone ? &s->undone->plan : NULL;
    size_t n = strlen(folder);
    int rc = 0;
    for (size_t i = 0; p && i < p->n && rc == 0; i++) {
        const char *key = p->steps[i].key, *name = key + n + 1;
        daf__undone_key kept;
        if (strncmp(key, folder, n) != 0 || key[n] != '/' || strchr(name, '/'))
            continue;
        daf__undone_where where = daf__dir_undone_place(s, key, &kept);
        if (where == DAF__UNDONE_LIVE)
            continue;
        drop_name(names, name);
        if (where == DAF__UNDONE_KEPT && is_wanted(s, kept.text, what))
            rc = daf__names_add(names, name, strlen(name), err);
    }
    return rc;
}
