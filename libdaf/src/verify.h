/* Verifying a repository: what its parts share.
 *
 *   verify           opening, the marker, what is told and counted
 *   verify_tree      the files of each folder: properties, and what does not belong there
 *   verify_text      scalars, axes, files of lines
 *   verify_property  descriptors, flat payloads, sparse rules
 *   verify_shard     the ZIP structures of a packed payload; verify_chunks its chunks, and values that R cannot hold
 *   verify_metadata  metadata.json against the files
 *   verify_archive   the entries of an archive
 *
 * A function returns 0 to go on, whatever problems it has told, or an error that ends the verification: no memory, a
 * failure of input, a stop.
 */
#ifndef DAF_SRC_VERIFY_H
#define DAF_SRC_VERIFY_H

#include "component.h"
#include "content.h"
#include "text.h"

typedef struct daf__verifier {
    daf *d;
    daf_verify_options options;
    bool is_archive, is_directory; /* neither: a tree of another form */
    daf_names axes;
    daf_verify_summary summary;
    uint64_t total_bytes;
    daf_error *err;
} daf__verifier;

/* Tells a problem, unless it is of class style and those were not asked for. */
void daf__tell(daf__verifier *v, daf_problem_code code, const char *place, uint64_t offset,
               const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Tells what a call of the library found: `details` speak of the file `where`, which is left out. What is no fault of the
 * repository (memory, input) is returned instead. */
int daf__tell_error(daf__verifier *v, daf_problem_code code, const char *place, const daf_error *details);

/* So many more bytes were looked at. Returns 0; DAF_ERR_CANCELLED. */
int daf__looked_at(daf__verifier *v, uint64_t bytes);

/* Several problems of one kind in one file: the first is told, when all are known, with the number of the others. */
typedef struct daf__tally {
    daf_problem_code code;
    uint64_t n, offset;
    char text[400];
} daf__tally;

void daf__count(daf__tally *t, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void daf__tell_tally(daf__verifier *v, const daf__tally *t, const char *place);

/* Whether the name is in the sorted list. */
bool daf__is_listed(const daf_names *names, const char *name);

int daf__verify_tree(daf__verifier *v);
int daf__verify_axis(daf__verifier *v, const daf__property *p);
int daf__verify_scalar(daf__verifier *v, const daf__property *p);

/* Splits a file of lines; *whole says that it could be. n: how many there must be; NULL: they are the entries of an axis.
 * The file's bytes count as looked at. */
int daf__verify_lines(daf__verifier *v, daf__file *f, const char *place, const uint64_t *n, daf__texts *ret,
                      bool *whole);

/* Tells that there are fewer or more `unit` than are needed. */
void daf__tell_size(daf__verifier *v, const char *place, uint64_t is, uint64_t wanted, uint64_t at,
                    const char *unit);

/* Whether a file is what a writer would have written. */
void daf__verify_form(daf__verifier *v, const char *place, const daf__buf *text, const daf__buf *written);

/* `used`: gets the suffixes that the descriptor speaks of; at most three. */
typedef struct daf__used_suffixes {
    unsigned n;
    char suffix[DAF__N_PARTS][DAF__SUFFIX_TEXT];
    bool known; /* the descriptor could be read */
} daf__used_suffixes;
int daf__verify_described(daf__verifier *v, const daf__property *p, daf__used_suffixes *used);

/* A packed payload. numbers (may be NULL): takes numeric values, in strict verification. */
typedef struct daf__number_check {
    daf_type type;
    uint64_t n_wide; /* values that R cannot hold */
    bool sparse;
} daf__number_check;
void daf__check_numbers(daf__number_check *c, const void *values, uint64_t n);

int daf__verify_shard(daf__verifier *v, daf__file *f, const char *place, const daf__extent *x,
                      const daf__component *c, daf__number_check *numbers, bool *whole);
int daf__verify_chunks(daf__verifier *v, daf__shard *s, const char *place, daf__number_check *numbers,
                       daf__tally *bad);

int daf__verify_metadata(daf__verifier *v);
int daf__verify_archive(daf__verifier *v);

#endif
