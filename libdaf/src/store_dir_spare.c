/* The directory store: metadata.json, which grows with every property, without writing it whole each time.
 *
 *   metadata.json  {"a":1,"b":2,"c":3}   in place
 *   the spare      {"a":1,"b":2}         the one before, under a staging name
 *
 * The next one is made of the spare, which takes ,"c":3,"d":4} in the place of its last byte and then, by a rename, the
 * other's place; that becomes the spare. A reader that has opened metadata.json may still be reading what has become the
 * spare: it is used only when no other has it open or mapped, which the system tells by granting a lease on it (to the
 * file's owner, on file systems that know leases; else the file is written whole, as small ones are). Nor is it used when
 * it has another name, or is not what this store has written.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"
#include "store_dir.h"

#define SMALL_BYTES ((uint64_t)1 << 16) /* written as fast as what it takes to spare it */

void daf__dir_spare_drop(daf__dir_store *s) {
    const daf_io *io = s->settings.io;
    if (s->spare.name[0])
        io->unlink(io->context, s->fd, s->spare.name, 0);
    s->spare.name[0] = 0;
}

bool daf__dir_spare_take(daf__dir_store *s, const daf__stamp *placed, const char *kept) {
    daf__stamp before = s->spare.placed;
    daf__dir_spare_drop(s);
    s->spare.placed = *placed;
    if (!kept || before.bytes < SMALL_BYTES)
        return false;
    s->spare.stamp = before;
    memcpy(s->spare.name, kept, sizeof s->spare.name);
    return true;
}

/* Whether nobody else can be reading the file. A signal that tells of somebody who comes now is one that does nothing. */
static bool is_ours_alone(int fd) {
    if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0)
        return false;
    return fcntl(fd, F_SETLEASE, F_UNLCK) == 0;
}

static bool is_usable(const daf__dir_store *s, int fd, uint64_t bytes) {
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
        return false;
    daf__stamp now = daf__dir_stamp_of(&st);
    return daf__stamps_equal(&now, &s->spare.stamp) && bytes <= now.bytes && is_ours_alone(fd);
}

int daf__dir_extend(daf__store *base, daf__out **ret, uint64_t bytes, daf_error *err) {
    daf__dir_store *s = (daf__dir_store *)base;
    const daf_io *io = s->settings.io;
    *ret = NULL;
    if (!s->spare.name[0])
        return 0;
    daf__dir_out *o = daf__dir_out_new(s);
    if (!o)
        return daf__no_memory(err);
    o->fd = io->open(io->context, s->fd, s->spare.name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    memcpy(o->name, s->spare.name, sizeof o->name);
    s->spare.name[0] = 0; /* the out's, also to remove */
    if (o->fd < 0 || !is_usable(s, o->fd, bytes)) {
        daf__out_discard(&o->base);
        return 0;
    }
    o->base.size = bytes;
    *ret = &o->base;
    return 0;
}
