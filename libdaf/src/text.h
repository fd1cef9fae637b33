/* Lines of text: axis entries and flat String data (specification section 3). */
#ifndef DAF_SRC_TEXT_H
#define DAF_SRC_TEXT_H

#include "store.h"

/* Texts one behind the other, each followed by a NUL; text i takes next[i] .. next[i + 1] - 1. */
typedef struct daf__texts {
    char *pool;
    const char **next; /* [n + 1] */
    uint64_t n;
} daf__texts;

void daf__texts_free(daf__texts *t);

static inline size_t daf__texts_bytes(const daf__texts *t, uint64_t i) {
    return (size_t)(t->next[i + 1] - t->next[i] - 1);
}

/* Splits the content of a text file at its LFs; the last may be missing. `content` is consumed (its data becomes
 * the pool, or is freed on failure) and has a spare byte behind it. `where` names the file in errors.
 * Returns 0; DAF_ERR_CORRUPT no UTF-8; DAF_ERR_NOMEM. */
int daf__texts_split(daf__texts *ret, daf__buf *content, const char *where, daf_error *err);

/* Where the second empty line of the content is, which no axis has: its entries are unique. NULL: there is none. To be
 * looked for before the content is split, since very many fit into a small file. */
const uint8_t *daf__texts_second_empty(const daf__buf *content);

/* The number of lines of the content. */
uint64_t daf__texts_count(const daf__buf *content);

/* Copies n texts, each where text(ctx, i) says that it is. Returns 0; DAF_ERR_NOMEM. */
int daf__texts_gather(daf__texts *ret, const char *(*text)(const void *ctx, uint64_t i), const void *ctx,
                      uint64_t n, daf_error *err);

/* The same of an array. Returns 0; DAF_ERR_NOMEM. */
int daf__texts_copy(daf__texts *ret, const char *const *texts, uint64_t n, daf_error *err);

/* The number of lines of a text file, read in pieces. */
int daf__count_lines(daf__file *f, uint64_t *ret, daf_error *err);

/* Finds the first text that stands twice. *twice: n when none does. */
int daf__texts_find_twice(const char *const *texts, uint64_t n, uint64_t *twice, daf_error *err);

/* Checks that the texts can be stored as lines. axis: also neither empty nor with CR, nor twice.
 * Returns 0; DAF_ERR_ARG a NULL; DAF_ERR_VALUE; DAF_ERR_NOMEM. */
int daf__texts_check(const char *const *texts, uint64_t n, bool axis, daf_error *err);

/* Appends the texts as lines. */
int daf__texts_write(daf__out *out, const char *const *texts, uint64_t n, daf_error *err);

#endif
