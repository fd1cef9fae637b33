/* SHA-256 of bytes and of files, as lower-case hexadecimal digits. Any thread. */
#ifndef COMMON_PROOF_DIGEST_H
#define COMMON_PROOF_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { PROOF_HEX_BYTES = 65 }; /* with the NUL */

/* How far it is; anything but 0 ends it. */
typedef int proof_progress(void *ctx, uint64_t done, uint64_t total);

/* Returns 0, or -ENOMEM. */
int proof_sha256(const void *data, size_t bytes, char hex[PROOF_HEX_BYTES]);

/* That of all that `fd` holds, from its beginning to its end; the place of the descriptor is left alone.
 *  ret_bytes  how many that are
 *  progress   called after each piece; NULL: nobody asks
 *  Returns    0; -ECANCELED: progress() ended it; another negative errno */
int proof_sha256_file(int fd, uint64_t *ret_bytes, char hex[PROOF_HEX_BYTES], proof_progress *progress,
                      void *ctx);

#endif
