/* A Photon-HDF5 file in the making: export_hdf5.c has its columns, export_hdf5_known.c what is known besides. */
#ifndef D7_CLI_EXPORT_HDF5_H
#define D7_CLI_EXPORT_HDF5_H

#include "export.h"
#include "export_ms_times.h"
#include "export_names.h"
#include "hdf5_file.h"

enum { DETECTORS = 65536, OPEN_COLUMNS = 32 };

/* A column on its way to the file. */
typedef struct out_column {
    hdf5_column *column;
    size_t source; /* of the set's columns */
} out_column;

typedef struct photon_job {
    export_job *job;
    hdf5_file *file;
    export_names names;
    export_set *main; /* photons, or tags */
    /* times */
    const export_column *time; /* NULL: by the milliseconds */
    ms_times *ms;
    hdf5_column *ms_column;
    double unit_s, first, last; /* of times, in units */
    bool any;
    /* the rest */
    const export_column *micro, *channel; /* NULL: none */
    double micro_s;
    out_column columns[OPEN_COLUMNS]; /* [n] that are open */
    size_t n;
    uint64_t *counts; /* [DETECTORS], of every channel */
} photon_job;

/* Says why libhdf5 failed; returns the exit code. */
int photon_failed(const photon_job *p);

/* The value of a number attribute; NAN where it is missing, no number or not positive. */
double photon_number(const photon_job *p, const char *key);

/* Writes all but the columns. Returns 0, or an exit code after saying why. */
int photon_write_known(photon_job *p);

#endif
