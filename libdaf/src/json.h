/* JSON: written compactly by ourselves (the format fixes the bytes), read through jansson. */
#ifndef DAF_SRC_JSON_H
#define DAF_SRC_JSON_H

#include <jansson.h>

#include "buf.h"

/* A descriptor, scalar or marker larger than this is refused; metadata.json has its own limit. */
#define DAF__MAX_JSON_BYTES ((uint64_t)16 << 20)

/* Appends `text` as a JSON string with its quotes; `text` is valid UTF-8. */
void daf__json_string(daf__buf *out, const char *text, size_t bytes);

/* Parses `text` as a JSON object; the caller owns a reference. `where` names the file in errors.
 * Returns 0; DAF_ERR_CORRUPT; DAF_ERR_NOMEM. */
int daf__json_object(json_t **ret, const void *text, size_t bytes, const char *where, daf_error *err);

/* The text of a string member; NULL when it is missing or no string. */
const char *daf__json_text(const json_t *object, const char *key);

/* Appends `text`, valid JSON, without the blanks between its tokens. */
void daf__json_compact(daf__buf *out, const void *text, size_t bytes);

#endif
