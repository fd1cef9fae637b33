/* Follows a .photons file that is being written: prints each new photon's micro time, until the file is closed.
 *
 *   cc follow_live.c $(pkg-config --cflags --libs d7) -o follow_live
 *   ./follow_live demo.photons
 */
#define _POSIX_C_SOURCE 199309L
#include <d7/d7.h>
#include <stdio.h>
#include <time.h>

enum { PIECE = 4096 };

/* Prints items [*at, what there is now). */
static int print_new(d7_reader *r, uint32_t dt, uint64_t *at, d7_error *err) {
    static uint16_t values[PIECE];
    d7_dataset_info info;
    if (d7_reader_dataset(r, dt, &info) != 0)
        return D7_ERR_ARG;
    while (*at < info.items) {
        size_t n = info.items - *at < PIECE ? (size_t)(info.items - *at) : PIECE;
        int rc = d7_reader_read(r, dt, *at, n, values, err);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < n; i++)
            printf("%u\n", values[i]);
        *at += n;
    }
    fflush(stdout);
    return 0;
}

/* A recording that was killed may lose what it had not proved to be on the disk, when it is recovered. */
static int refresh(d7_reader *r, uint32_t dt, uint64_t *at, d7_error *err) {
    unsigned changes;
    d7_dataset_info info;
    int rc = d7_reader_refresh(r, &changes, err);
    if (rc == D7_ERR_TRUNCATED) /* it is being cut at this moment */
        return 0;
    if (rc != 0)
        return rc;
    if (changes & D7_CHANGE_REPLACED)
        fprintf(stderr, "follow_live: another file has taken its place; going on with this one\n");
    if ((changes & D7_CHANGE_CUT) && d7_reader_dataset(r, dt, &info) == 0 && info.items < *at) {
        fprintf(stderr, "follow_live: photons from %llu on are taken back\n", (unsigned long long)info.items);
        *at = info.items;
    }
    return 0;
}

static int follow(d7_reader *r, uint32_t dt, d7_error *err) {
    static const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
    uint64_t at = 0;
    for (;;) {
        int rc = print_new(r, dt, &at, err);
        if (rc != 0 || d7_reader_state(r) == D7_STATE_CLOSED)
            return rc;
        nanosleep(&pause, NULL);
        rc = refresh(r, dt, &at, err);
        if (rc != 0)
            return rc;
    }
}

int main(int argc, char **argv) {
    d7_reader *r;
    d7_error err;
    d7_dataset_info info;
    uint32_t dt;
    if (argc != 2) {
        fprintf(stderr, "usage: follow_live FILE\n");
        return 2;
    }
    if (d7_reader_open(&r, argv[1], NULL, &err) != 0) {
        fprintf(stderr, "follow_live: %s\n", err.text);
        return 2;
    }
    int code = 0;
    if (d7_reader_find_dataset(r, "/photons/dt", &dt) != 0 || d7_reader_dataset(r, dt, &info) != 0 ||
        info.type != D7_UINT16) {
        fprintf(stderr, "follow_live: the file has no /photons/dt of type uint16\n");
        code = 2;
    } else if (follow(r, dt, &err) != 0) {
        fprintf(stderr, "follow_live: %s\n", err.text);
        code = 1;
    }
    d7_reader_free(r);
    return code;
}
