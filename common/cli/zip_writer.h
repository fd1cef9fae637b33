/* A ZIP archive written in one pass: members stored or deflated, of any length (ZIP64), in constant memory. Lengths and
 * checksums are put in their places afterwards, so the file must allow that.
 *
 * Source: the .ZIP File Format Specification (APPNOTE) by PKWARE. */
#ifndef COMMON_CLI_ZIP_WRITER_H
#define COMMON_CLI_ZIP_WRITER_H

#include <stddef.h>
#include <stdint.h>

typedef struct zip_writer zip_writer;

/* `fd` is an empty regular file, which stays the caller's. level: 0 stores, 1 to 9 deflates. NULL: out of memory. */
zip_writer *zip_new(int fd, int level);

/* All return 0 or a negative errno, and after a failure the same again. */

/* Begins a member; its name is UTF-8, at most 65535 bytes. */
int zip_begin(zip_writer *z, const char *name);
int zip_write(zip_writer *z, const void *data, size_t bytes);
int zip_end(zip_writer *z);

/* Writes the directory. */
int zip_finish(zip_writer *z);

/* NULL is allowed. */
void zip_free(zip_writer *z);

#endif
