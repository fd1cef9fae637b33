/* The comment behind the copy of the directory that an append makes (archive_commit): where the directory was, and what
 * stood behind it. */
#ifndef DAF_SRC_ARCHIVE_MARK_H
#define DAF_SRC_ARCHIVE_MARK_H

#include <stdint.h>

#define DAF__MARK_TEXT "dafundo\x01"
enum {
    DAF__MARK_TEXT_BYTES = 8,
    DAF__MARK_BYTES = DAF__MARK_TEXT_BYTES + 8, /* and the offset; the old tail follows */
    DAF__MARK_MASK = 0x55,                      /* on the old tail, whose signatures others would find */
    DAF__MARK_MAX_TAIL = 65535 - DAF__MARK_BYTES
};

#endif
