/* A snapshot as a repository on disk. */
#ifndef PD_EXPORT_WRITE_H
#define PD_EXPORT_WRITE_H

#include "exporter.h"

/* Writes the properties of a snapshot as the new repository `name` in the directory `dirfd`.
 *  sync       all of it is on the disk on return
 *  n_skipped  scalars that the repository would not take: their names or texts come from outside
 *  Returns    0; -1 with err, and then what is there is no whole repository and to be removed */
PD_MUST_USE int pd_export_write(int dirfd, const char *name, const pd_snapshot *snapshot,
                                const pd_exporter_options *options, bool sync, uint64_t *n_skipped,
                                pd_error *err);

/* Makes the Zarr tree `name` in the directory `dirfd` of the repository `from` there; its payloads are hard links.
 *  Returns    0; -1 with err, and then there is no such tree */
PD_MUST_USE int pd_export_write_zarr(int dirfd, const char *name, const char *from,
                                     const pd_exporter_options *options, bool sync, pd_error *err);

#endif
