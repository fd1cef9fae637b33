/* Files to be damaged and repaired, on the disk model, and what must hold of every repaired one. */
#ifndef TESTS_UNIT_D7_REPAIRING_H
#define TESTS_UNIT_D7_REPAIRING_H

#include "disk_model.h"

enum { COLUMN_X, COLUMN_Y, COLUMN_AAT, COLUMN_MS, COLUMN_OTHER, N_COLUMNS };
enum { PHOTONS_MAX = 30000, MS_PHOTONS = 10 };

extern const char source_path[], out_path[];

/* What is in a file: columns x, y (uint16), aat (uint64) of n photons, ms (uint64) for every MS_PHOTONS of them or so, other
 * (uint8) of n / 3. Attributes "a", "photond.gap.00000002" at item 100 and "photond.marker.00000000" at item n / 2. */
typedef struct recording {
    disk *disk;
    d7_error err;
    size_t n; /* photons */
    size_t items[N_COLUMNS];
    uint16_t x[PHOTONS_MAX], y[PHOTONS_MAX];
    uint64_t aat[PHOTONS_MAX], ms[PHOTONS_MAX];
    uint8_t other[PHOTONS_MAX];
    uint8_t *bytes; /* [n_bytes] of the whole file */
    size_t n_bytes;
    uint8_t *sums; /* [n_sums] of its checksums */
    size_t n_sums;
} recording;

/* Written in turns of `turn` photons; pages of 256 bytes. */
recording *recording_make(size_t n, size_t turn, uint32_t index_step, bool close);
void recording_free(recording *r);

/* A new disk, with nothing but the file: those bytes. */
void put_source(recording *r, const void *bytes, size_t n);

/* Puts the checksums beside the file. */
void put_checksums(recording *r);

/* Its page that holds an item: where it is. */
d7_page_info page_at(recording *r, uint32_t column, uint64_t item);

d7_repair_options repair_options(const recording *r);

/* Repairs to out_path. */
int repair(recording *r, bool keep_ragged, d7_repair_report *report);

/* Opens a file of the disk. */
d7_reader *open_on(recording *r, const char *path);

/* Is the file at `path` closed and free of damage, and does each column hold what was recorded, less the report's gaps, up to
 * what the report says is kept? Milliseconds are counted anew here. `report` NULL: without gaps. */
void check_result(recording *r, const char *path, const d7_repair_report *report);

/* Opens the source: are all items that it gives as they were recorded? Returns whether it tells of damage. */
bool check_source(recording *r);

/* x, y and aat of an open file end together. */
void check_aligned(const d7_reader *f);

/* Repairs what is on the disk now, which must succeed, and checks the result. */
void repair_and_check(recording *r, d7_repair_report *report);

/* Items of a column of an open file. */
uint64_t items_of(const d7_reader *f, uint32_t column);

bool exists_on(const recording *r, const char *path);

#endif
