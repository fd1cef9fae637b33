/* A repository that a static server hands out (specification section 14), read only. What there is, and all descriptors,
 * come from metadata.json, which is got once; payloads are got when they are asked for: flat ones by their beginning and,
 * if it was not all, the rest; shards by their end records, then the parts that are used. */
#ifndef DAF_SRC_HTTP_STORE_H
#define DAF_SRC_HTTP_STORE_H

#include "http_client.h"
#include "http_settings.h"
#include "store.h"

/* Gets daf.json and metadata.json. Returns 0; DAF_ERR_NOT_DAF; DAF_ERR_MISSING no metadata.json; as daf__http_get. */
int daf__http_store_open(daf__store **ret, const char *url, const daf__http_settings *settings,
                         daf_error *err);

/* ---- inside */

/* Opens a payload. */
int daf__http_file_open(daf__http_client *c, daf__file **ret, const char *key, uint32_t gap_bytes,
                        daf_error *err);

#endif
