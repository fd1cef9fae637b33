#include "digest.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIGEST_PIECE_BYTES = 1 << 20, DIGEST_BYTES = 32 };

/* A file that is larger would push everything else out of the page cache. */
static const off_t digest_large_bytes = (off_t)1 << 30;

static int digest_end(EVP_MD_CTX *md, char hex[PROOF_HEX_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_DigestFinal_ex(md, digest, &n) != 1 || n != DIGEST_BYTES)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }
    hex[2 * n] = 0;
    return 0;
}

int proof_sha256(const void *data, size_t bytes, char hex[PROOF_HEX_BYTES]) {
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    int failed =
        md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 && EVP_DigestUpdate(md, data, bytes) == 1
            ? digest_end(md, hex)
            : -ENOMEM;
    EVP_MD_CTX_free(md);
    return failed;
}

/* All pieces of a file. Returns 0 or a negative errno. */
static int digest_read(int fd, off_t total, EVP_MD_CTX *md, unsigned char *piece, uint64_t *ret_bytes,
                       proof_progress *progress, void *ctx) {
    off_t at = 0;
    for (;;) {
        ssize_t n = pread(fd, piece, DIGEST_PIECE_BYTES, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        if (EVP_DigestUpdate(md, piece, (size_t)n) != 1)
            return -ENOMEM;
        if (total > digest_large_bytes)
            (void)posix_fadvise(fd, at, n, POSIX_FADV_DONTNEED);
        at += n;
        if (progress && progress(ctx, (uint64_t)at, (uint64_t)(at > total ? at : total)) != 0)
            return -ECANCELED;
    }
    *ret_bytes = (uint64_t)at;
    return 0;
}

int proof_sha256_file(int fd, uint64_t *ret_bytes, char hex[PROOF_HEX_BYTES], proof_progress *progress,
                      void *ctx) {
    struct stat there;
    if (fstat(fd, &there) != 0)
        return -errno;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned char *piece = malloc(DIGEST_PIECE_BYTES);
    int failed = md && piece && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
    if (!failed)
        failed = digest_read(fd, there.st_size, md, piece, ret_bytes, progress, ctx);
    if (!failed)
        failed = digest_end(md, hex);
    free(piece);
    EVP_MD_CTX_free(md);
    return failed;
}
