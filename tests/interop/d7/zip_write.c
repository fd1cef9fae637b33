/* Writes an archive for test_zip.py: zip_write PATH LEVEL BYTES [zeros]. A member of so many bytes 0, 1, 2, ... 250, 0, ..., or of zeros,
 * which are holes in the file; one after it; and one of nothing. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/zip_writer.h"

static bool zeros;

/* In place of the C library's: what is nothing but zeros is not written, so that the file takes no room. */
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
    const uint8_t *p = data;
    if (zeros && bytes > 4096 && p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0)
        return (ssize_t)bytes;
    return syscall(SYS_pwrite64, fd, data, bytes, offset);
}

static int write_large(zip_writer *z, uint64_t bytes) {
    enum { PERIOD = 251, PIECE = PERIOD * 1000 };
    static uint8_t piece[PIECE];
    for (size_t i = 0; i < PIECE; i++)
        piece[i] = zeros ? 0 : (uint8_t)(i % PERIOD);
    int rc = 0;
    for (uint64_t left = bytes; left > 0 && rc == 0;) {
        size_t n = left < PIECE ? (size_t)left : PIECE;
        rc = zip_write(z, piece, n);
        left -= n;
    }
    return rc;
}

static int write_members(zip_writer *z, uint64_t bytes) {
    int rc = zip_begin(z, "large/member");
    if (rc == 0)
        rc = write_large(z, bytes);
    if (rc == 0)
        rc = zip_end(z);
    if (rc == 0)
        rc = zip_begin(z, "\xc2\xb5");
    if (rc == 0)
        rc = zip_write(z, "after", 5);
    if (rc == 0)
        rc = zip_end(z);
    if (rc == 0)
        rc = zip_begin(z, "nothing");
    return rc == 0 ? zip_end(z) : rc;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    zeros = argc > 4 && strcmp(argv[4], "zeros") == 0;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0666);
    zip_writer *z = fd < 0 ? NULL : zip_new(fd, atoi(argv[2]));
    if (!z)
        return 2;
    int rc = write_members(z, strtoull(argv[3], NULL, 10));
    if (rc == 0)
        rc = zip_finish(z);
    zip_free(z);
    close(fd);
    if (rc != 0)
        fprintf(stderr, "%s\n", strerror(-rc));
    return rc != 0;
}
