/* The JSON records among a recording's attributes that speak of an item of its data: photond.gap.N and photond.marker.N.
 * Only as much JSON as finds a member of an object and leaves the rest of the text alone. */
#ifndef COMMON_BASE_RECORD_H
#define COMMON_BASE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the item is counted in. */
typedef enum common_record_of {
    COMMON_RECORD_UNSAID,  /* neither "group" nor "dataset": what the recording is of */
    COMMON_RECORD_PHOTONS, /* "group": "photons" */
    COMMON_RECORD_TAGS,    /* "group": "tags" */
    COMMON_RECORD_DATASET, /* "dataset": its name as it stands in the text, or its number */
    COMMON_RECORD_UNKNOWN  /* something else: nobody knows */
} common_record_of;

typedef struct common_record {
    uint64_t item;
    size_t item_at, item_bytes; /* where its digits are in the text */
    common_record_of of;
    const char
        *dataset; /* [dataset_bytes] in the text, without quotes, escapes as they are; NULL: a number */
    size_t dataset_bytes;
    uint64_t dataset_number;
    size_t number_at, number_bytes; /* where its digits are in the text; 0 bytes: it is no number */
} common_record;

/* Is it a key of that prefix with a number of at most 18 digits after it, and nothing else? Pure; any thread. */
bool common_record_numbered(const char *key, size_t bytes, const char *prefix, uint64_t *ret_number);

/* Is it the key of a gap or a marker? Pure; any thread. */
bool common_record_key(const char *key, size_t bytes);

/* A whole number: digits only, within 64 bits. Pure; any thread. */
bool common_record_number(const char *text, size_t bytes, uint64_t *ret);

/* Reads a record. Returns false where there is no "item" that is a whole number: the text is to stay as it is. Pure; any
 * thread. */
bool common_record_read(const char *text, size_t bytes, common_record *ret);

#endif
