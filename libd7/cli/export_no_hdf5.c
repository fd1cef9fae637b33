/* In place of export_hdf5.c where there is no libhdf5. */
#include "cli/output.h"
#include "export.h"

int export_photon_hdf5(export_job *job) {
    (void)job;
    return CLI_USAGE;
}

bool export_has_hdf5(void) {
    return false;
}
