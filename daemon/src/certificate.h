/* NAME.run.json, the certificate of a file that was closed: what it holds, what is missing in it, how its clock went, by which
 * bytes it is known, and what made it. All of it is taken from the file itself, so it can be made at any time after the close.
 * docs/certificate.md has the members. Any thread.
 */
#ifndef PD_CERTIFICATE_H
#define PD_CERTIFICATE_H

#include <jansson.h>

#include "config.h"
#include "datadir.h"
#include "error.h"
#include "proof/digest.h"

enum { PD_CERTIFICATE_VERSION = 1 };

/* The file and its checksums, as they lie there. */
typedef struct pd_certificate_file {
    char sha256[PROOF_HEX_BYTES];
    uint64_t bytes;
} pd_certificate_file;

typedef struct pd_certificate_files {
    pd_certificate_file photons;
    bool has_checksums;
    pd_certificate_file checksums; /* NAME.photons.crc */
} pd_certificate_files;

/* Reads DATA_DIR/NAME.photons and its checksums once; `progress` as for proof_sha256_file(), over either. Returns 0; a negative
 * errno with err: -ENOENT, -ECANCELED, ... */
PD_MUST_USE int pd_certificate_digest(pd_certificate_files *ret, int dir_fd, const char *name,
                                      proof_progress *progress, void *ctx, pd_error *err);

/* The certificate of DATA_DIR/NAME.photons: a new reference. NULL with err: it is no file of ours, or not closed, or cannot be
 * read. */
json_t *pd_certificate_json(const pd_datadir *dir, const char *name, const pd_certificate_files *files,
                            pd_error *err);

/* Its text, as it stands in the file; to be freed. NULL: out of memory. */
char *pd_certificate_text(const json_t *certificate, size_t *ret_bytes);

/* SHA-256 of the configuration as --print-config prints it. Returns 0, or -1 when out of memory. */
PD_MUST_USE int pd_certificate_configuration(const pd_config *config, char hex[PROOF_HEX_BYTES]);

#endif
