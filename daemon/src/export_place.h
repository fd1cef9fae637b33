/* Where exports are built, and how they take the place of one another. See exporter.h for the life of
 * one. */
#ifndef PD_EXPORT_PLACE_H
#define PD_EXPORT_PLACE_H

#include "exporter.h"

enum { PD_EXPORT_HIDDEN_BYTES = 160 }; /* NAME.NUMBER, NAME.NUMBER.daf.zarr */

typedef struct pd_export_folder {
    int data_fd;         /* the data folder */
    int exports_fd;      /* DATA_DIR/.photond/exports */
    bool exchanges;      /* the file system can exchange two directories in one step */
    uint64_t generation; /* number of the newest hidden directory */
} pd_export_folder;

/* Opens the data folder and makes the hidden one; removes what an earlier daemon left there, and turns
 * links of its open runs into directories. Returns 0, or -1 with err. */
PD_MUST_USE int pd_export_folder_open(pd_export_folder *folder, const pd_exporter_options *options,
                                      pd_error *err);

/* Makes the hidden folder anew when somebody removed it or put another in its place. Returns 0, or -1 with
 * err. */
PD_MUST_USE int pd_export_folder_renew(pd_export_folder *folder, const pd_exporter_options *options,
                                       pd_error *err);
void pd_export_folder_close(pd_export_folder *folder);

/* The hidden name of a generation of a run. */
void pd_export_hidden_name(char name[PD_EXPORT_HIDDEN_BYTES], const char *run, uint64_t generation,
                           pd_export_form form);

/* Makes the directory of folder->generation what NAME.daf or NAME.daf.zarr shows.
 *  retired  the hidden name of the export that was shown until now, or "" when there was none
 *  Returns  0; -1 with err: what was shown is shown still (but for a link that the last export was to
 *           replace) */
PD_MUST_USE int pd_export_place(pd_export_folder *folder, pd_export_target *target, pd_export_form form,
                                bool final, char retired[PD_EXPORT_HIDDEN_BYTES], pd_error *err);

#endif
