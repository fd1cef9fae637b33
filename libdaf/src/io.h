/* The system calls of the stores, as a table, so that tests can make any of them fail. Each behaves
 * like its namesake: -1 and errno on failure. */
#ifndef DAF_SRC_IO_H
#define DAF_SRC_IO_H

#include <sys/types.h>

#include "daf/daf.h"

struct daf_io {
    void *context;
    int (*open)(void *context, int dirfd, const char *path, int flags, mode_t mode);
    int (*close)(void *context, int fd);
    ssize_t (*pread)(void *context, int fd, void *data, size_t bytes, off_t offset);
    ssize_t (*pwrite)(void *context, int fd, const void *data, size_t bytes, off_t offset);
    int (*truncate)(void *context, int fd, off_t bytes); /* or grows */
    int (*sync)(void *context, int fd);
    int (*rename)(void *context, int dirfd, const char *from, const char *to);
    int (*link)(void *context, int dirfd, const char *from, const char *to);
    int (*link_from)(void *context, int from_dirfd, const char *from, int dirfd, const char *to);
    int (*unlink)(void *context, int dirfd, const char *path, int flags);
    int (*mkdir)(void *context, int dirfd, const char *path, mode_t mode);
};

/* The system's. */
extern const daf_io daf__system_io;

/* Whole transfers at an offset, over short counts and interruptions. 0, or an errno; reading past the end of the
 * file is DAF__SHORT_READ. */
enum { DAF__SHORT_READ = -1 };
int daf__read_all(const daf_io *io, int fd, void *data, size_t bytes, uint64_t offset);
int daf__write_all(const daf_io *io, int fd, const void *data, size_t bytes, uint64_t offset);

#endif
