/* Attributes that speak of items or of a file's place in a recording: photond.gap.N and photond.marker.N (JSON with an
 * "item"), photond.part, photond.first_photon, photond.first_ms, photond.first_tag. What becomes of them when a file is cut
 * or parts are put together. */
#ifndef D7_CLI_TRANSFER_RECORDS_H
#define D7_CLI_TRANSFER_RECORDS_H

#include "attribute_list.h"
#include "base/record.h"

/* Where an item of the source is in the result. `own`: the record, where it names a dataset in no group; else NULL. Returns
 * false when it is not in it. */
typedef bool record_map(void *ctx, d7_group group, const common_record *own, uint64_t item,
                        uint64_t *ret_item);

/* Is this a numbered record with an item (gap, marker)? */
bool record_has_item(const char *key);

/* Gives the records their new items and takes out those that are outside. Items of records that do not say what they are
 * counted in are `usual` ones, those of a dataset in no group `own` ones, which may be D7_GROUP_NONE. Records that nobody can
 * read stay as they are. Returns false when memory runs out. */
bool records_map(attribute_list *list, d7_group usual, d7_group own, record_map *map, void *ctx);

/* The number that a new gap record may have; those after it are free too. */
uint64_t records_next_gap(const attribute_list *list);

/* A new gap record. Returns false when memory runs out. */
bool records_add_gap(attribute_list *list, uint64_t number, d7_group group, uint64_t item, uint64_t count,
                     const char *cause);

/* Where a cut begins. */
typedef struct record_place {
    bool has_part, has_photons, has_ms, has_tags;
    bool last;                      /* of the parts that a file is split into */
    uint64_t part, photon, ms, tag; /* added to what the attributes say already */
} record_place;

/* Sets photond.part, .first_photon, .first_ms and .first_tag, and puts before what photond.cut says already which of them are
 * new, so that records_end_cut() can undo it; before these, of a part, its mark. Returns false when memory runs out. */
bool records_begin_cut(attribute_list *list, const record_place *place);

/* What a part says of the split that made it: "2/more" is the second, and others follow; "3/3" is the last of three; "2-4/more"
 * are three of them, merged. */
typedef struct split_mark {
    uint64_t
        number; /* from 1; of parts that were merged, that of the first; 0: no split made it, or an old one */
    uint64_t last; /* of parts that were merged, that of the last; else the same */
    uint64_t of;   /* how many there are; 0: more follow */
} split_mark;

split_mark records_mark(const attribute_list *list);

/* Takes away what records_begin_cut() added, when all of it is 0: the cut began where the file did, and, if it was a split,
 * all parts are there up to the one that has the mark `last`. Where parts are missing it says which are here. Returns false
 * when memory runs out. */
bool records_end_cut(attribute_list *list, const split_mark *last);

/* A number among the attributes. Returns false where there is none. */
bool records_number(const attribute_list *list, const char *key, uint64_t *ret);

/* Adds the attributes of a later part, whose records have their new items already. Keys that are new come where the part has
 * them, records go on with their numbers where both count from 0, and of others that differ the first value stays and
 * differs(ctx, key) is called. Returns false when memory runs out. */
bool records_merge(attribute_list *list, attribute_list *part, void (*differs)(void *ctx, const char *key),
                   void *ctx);

#endif
