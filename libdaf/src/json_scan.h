/* Looking over JSON without building it: for metadata.json, which may hold very many descriptors. */
#ifndef DAF_SRC_JSON_SCAN_H
#define DAF_SRC_JSON_SCAN_H

#include "buf.h"

/* Calls back for each member of the object that `text` is: the key with its escapes, without its quotes. A callback's
 * failure ends the scan. */
typedef int (*daf__json_member)(void *context, const char *key, size_t key_bytes, daf_error *err);

/* *valid: whether the whole text is one JSON object, of at most 64 levels. Returns 0, or the callback's failure. */
int daf__json_scan(const void *text, size_t bytes, bool *valid, daf__json_member visit, void *context,
                   daf_error *err);

/* Appends the text of a string with escapes; `text` was scanned. */
void daf__json_unescape(daf__buf *out, const char *text, size_t bytes);

#endif
