/* A page of one dataset of a run: what a slot of the ring holds. */
#ifndef PD_PAGE_H
#define PD_PAGE_H

#include <uv.h>

#include "ring.h"
#include "volume.h"

struct pd_run;
struct pd_run_part;

/* A place in the order in which a run's pages, attributes, marks and close go to the volume. */
typedef struct pd_order {
    pd_link link;
    pd_task *task;
    struct pd_run_part *part; /* whose file it is for */
    bool ready;               /* may go when it is its turn (a page: when it is encoded) */
} pd_order;

typedef struct pd_page {
    pd_slot slot; /* first: the ring makes these */
    struct pd_run *run;
    uint32_t column;
    uint32_t n_items;
    uint64_t first_item;
    uint64_t first_photon; /* of the run, that indices of photons in it count from */
    bool sealed;           /* takes no more items */
    bool written;          /* it is back from the writer */
    bool given_up;         /* its run failed while it was being encoded */
    int encode_result;
    uv_work_t work;
    pd_order order;
    pd_page_task task;
    struct pd_page *next_held; /* the next page of the dataset that the summary still needs */
} pd_page;

#endif
