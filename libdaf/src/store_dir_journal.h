/* The directory store's undo journal: ".daf.journal" in the root says, while a change of several steps is under way,
 * what was there before. Whoever finds it undoes the change: the writer itself when a step fails, or, after it was
 * killed, the next writer (readers take what is kept for what is there: store_dir_undone.c). Its being emptied is what makes a change final.
 *
 * Records end in a NUL: "root INODE", "put KEPT INODE BYTES SECONDS NANOSECONDS KEY", "remove KEPT KEY", "folder KEY", in the order of
 * the steps, and "end", without which the steps had not begun. KEPT is the staging name under which what was at KEY is
 * kept, "-" when there was nothing; the numbers are those of the file put there, and of the root, by which a copy of
 * an interrupted repository is known.
 */
#ifndef DAF_SRC_STORE_DIR_JOURNAL_H
#define DAF_SRC_STORE_DIR_JOURNAL_H

#include "store_dir.h"

#define DAF__JOURNAL ".daf.journal"

typedef struct daf__dir_step {
    daf__step_kind kind;
    char *key;
    char kept[DAF__STAGING_NAME]; /* empty: nothing was there */
    daf__stamp placed;            /* PUT: the new file */
    daf__dir_out *out;            /* PUT, not read from the journal: the same */
} daf__dir_step;

typedef struct daf__dir_plan {
    daf__dir_step *steps;
    size_t n, capacity;
    bool is_copied; /* read from the journal of another directory: files are known by their sizes alone */
} daf__dir_plan;

void daf__dir_plan_free(daf__dir_plan *p);

/* Adds a step, to be filled in; NULL without memory. */
daf__dir_step *daf__dir_plan_add(daf__dir_plan *p, const char *key);

/* Writes the plan, before the steps; makes the change final, behind them; and makes that durable, when asked to. Each
 * returns 0 or an errno. */
int daf__journal_begin(daf__dir_store *s, const daf__dir_plan *p);
int daf__journal_end(daf__dir_store *s);
int daf__journal_sync(daf__dir_store *s);

/* Without following a link. Returns whether something is there. */
bool daf__dir_look(const daf__dir_store *s, const char *name, daf__stamp *ret);

/* The steps of a change that was interrupted and is to be undone; none: there is none. */
int daf__journal_read(daf__dir_store *s, daf__dir_plan *p, daf_error *err);

/* Whether what a PUT has put there still is. */
bool daf__dir_is_placed(const daf__dir_store *s, const daf__dir_plan *p, const daf__dir_step *step);

/* Undoes the steps, whichever of them were done; may be repeated. 0 or an errno. */
int daf__dir_plan_undo(daf__dir_store *s, const daf__dir_plan *p);

#endif
