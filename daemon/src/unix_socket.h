/* Unix sockets, for instruments and for control. */
#ifndef PD_UNIX_SOCKET_H
#define PD_UNIX_SOCKET_H

#include <stdint.h>

#include "error.h"

/* Makes a listening stream socket at `path` (not blocking, close-on-exec), with these permission bits and
 * group (-1: left as it is) from its first moment on. A socket there that nobody listens to (a killed
 * daemon's) is replaced; one that answers, or anything that is no socket, is an error and left alone. The
 * directory of `path` is made (mode 0755 less the umask) when only it is missing. Who closes the descriptor
 * also removes the name.
 * Returns the descriptor, or -1 with err. */
int pd_unix_listen(const char *path, unsigned mode, int64_t gid, pd_error *err);

/* Connects to such a socket; blocking. Returns the descriptor, or -1 with err. */
int pd_unix_connect(const char *path, pd_error *err);

#endif
