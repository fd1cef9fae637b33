/* Writes an archive for test_zip.py: zip_write PATH LEVEL BYTES. A member of so many bytes 0, 1, 2, ... 250, 0, ...; one after it; and
 * one of nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "zip_writer.h"

static int write_counting(zip_writer *z, uint64_t bytes) {
    enum { PERIOD = 251, PIECE = PERIOD * 1000 };
    static uint8_t piece[PIECE];
    for (size_t i = 0; i < PIECE; i++)
        piece[i] = (uint8_t)(i % PERIOD);
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
        rc = write_counting(z, bytes);
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
    if (argc != 4)
        return 2;
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
