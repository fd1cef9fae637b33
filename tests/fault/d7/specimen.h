/* Small D7 files for tests of damage, each with what it holds: where its entries are, found by a walk that shares no code
 * with the library, and the values of its pages. */
#ifndef TESTS_FAULT_D7_SPECIMEN_H
#define TESTS_FAULT_D7_SPECIMEN_H

#include "d7/d7.h"

enum { SPECIMEN_HEADER = 1, SPECIMEN_PAGE = 2, SPECIMEN_INDEX = 3, SPECIMEN_EPILOGUE = 4 };

/* One entry of the undamaged file. The last four are those of a page. */
typedef struct specimen_entry {
    uint64_t offset, end;
    int kind; /* SPECIMEN_... */
    uint32_t dataset_id;
    uint64_t first_item;
    size_t n_items;
    uint8_t *values; /* [n_items] of the dataset's type */
} specimen_entry;

typedef struct specimen {
    char name[64];
    uint8_t *bytes; /* [n] */
    size_t n;
    bool closed;
    d7_type types[256];
    size_t n_datasets;
    specimen_entry *entries; /* in the order of the file */
    size_t n_entries;
    uint64_t global_index; /* of a closed file: where it begins; else UINT64_MAX */
} specimen;

/* Those that a test makes for itself, by number; NULL at the end. Never NULL for lack of memory: that ends the test. */
specimen *specimen_make(size_t number);

/* A file under tests/fixtures/d7, "minimal" for example. `whole`: it is undamaged, and what it holds is to be known. */
specimen *specimen_fixture(const char *name, bool whole);

void specimen_free(specimen *s);

/* Stores the low bits of x as a value of that type, in the host's order. */
void specimen_store(d7_type type, uint8_t *to, uint64_t x);

size_t specimen_item_bytes(const specimen *s, const specimen_entry *page);

/* The page that begins at that offset; NULL: none does. */
const specimen_entry *specimen_page_at(const specimen *s, uint64_t offset);

#endif
