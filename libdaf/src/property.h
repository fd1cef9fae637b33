/* Reading and writing a vector or matrix with all its parts. */
#ifndef DAF_SRC_PROPERTY_H
#define DAF_SRC_PROPERTY_H

#include "component.h"
#include "content.h"
#include "edit.h"

/* Reads and parses the descriptor. *stamp may be NULL.
 * Returns as daf__descriptor_parse; DAF_ERR_MISSING no such property. */
int daf__read_descriptor(daf *d, daf__descriptor *ret, daf__stamp *stamp, const daf__property *p,
                         daf_error *err);

/* ---- reading */

typedef struct daf__loaded {
    daf__descriptor descriptor;
    daf__content content; /* borrows from the arrays */
    daf_array *parts[DAF__N_PARTS];
} daf__loaded;

/* Loads all parts and checks their sizes and, of sparse ones, every rule of section 4.
 * range: of a dense property only this part; NULL: all. */
int daf__property_load(daf *d, daf__loaded *ret, const daf__property *p, daf__access access,
                       const daf_range *range, daf_error *err);
void daf__loaded_free(daf__loaded *l);

/* The files of all parts, which stay those of the descriptor whatever becomes of the property. */
typedef struct daf__opened {
    daf__descriptor descriptor;
    daf__extent extent;
    daf__file *files[DAF__N_PARTS];
} daf__opened;

int daf__property_open(daf *d, daf__opened *ret, const daf__property *p, daf_error *err);
void daf__opened_close(daf__opened *o);

/* How many values a sparse property stores. Returns 0; DAF_ERR_CORRUPT, also when that is more than its shape holds: seen
 * before so many are read. */
int daf__count_stored(uint64_t *ret, const daf__component *indices, const daf__file *file, uint64_t rows,
                      uint64_t columns, daf_error *err);
bool daf__stored_fit(uint64_t nnz, uint64_t rows, uint64_t columns);

/* Whether the range lies inside of the shape. Returns 0; DAF_ERR_ARG. */
int daf__range_check(const daf_range *range, uint64_t rows, uint64_t columns, daf_error *err);

/* ---- writing */

/* How the content will be stored: its form, and which parts are packed. */
int daf__property_plan(daf__descriptor *ret, const daf *d, const daf__content *c, const daf_set_options *o,
                       daf_error *err);

/* Adds the steps that store the content under the descriptor (whose form and types are the content's), in place of what
 * is `there`. The order: payloads, descriptor, what is left of an older form. Where a payload takes the name of an old
 * one under another descriptor, or one of several, the old descriptor goes first, so that no reader takes the one for
 * the other. */
int daf__property_stage(daf__edit *e, const daf__property *p, const daf__content *c,
                        const daf__descriptor *descriptor, bool there, daf_error *err);

/* The same with the payloads of all parts that the descriptor has written already (taken, also on failure). */
int daf__property_stage_filled(daf__edit *e, const daf__property *p, const daf__descriptor *descriptor,
                               daf__out *const outs[DAF__N_PARTS], bool there, daf_error *err);

/* The steps that the other layout of a matrix needs: its transpose is stored beside the matrix when the options say so;
 * else, when the matrix is overwritten, no other layout stays behind that says something else. */
int daf__property_stage_other(daf__edit *e, const daf__property *p, const daf__content *c,
                              const daf_set_options *o, daf_error *err);

/* Stages the content in the form and with the index type that the options ask for. */
int daf__property_put(daf__edit *e, const daf__property *p, const daf__content *c, const daf_set_options *o,
                      bool there, daf_error *err);

/* The handle may write, the names may be written, and the options (NULL: the defaults) say what there is. */
int daf__check_writing(daf *d, const daf__property *p, const daf_set_options *o, daf_error *err);

/* Stores the content, and its other layout as the options say. The content was checked. */
int daf__property_set(daf *d, const daf__property *p, const daf__content *c, const daf_set_options *o,
                      daf_error *err);

#endif
