/* metadata.json: read as an index beside an empty tree; what the JSON library accepts is JSON to our scan as well, and what
 * comes out after an append is always JSON. */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "json_scan.h"
#include "metadata.h"
#include "store_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool ok) {
    if (!ok)
        abort();
}

/* The out becomes the file. */
static void put_out(daf__store *store, daf__out *out) {
    daf__change change = {0};
    need(daf__change_put(&change, DAF__METADATA_KEY, out, NULL) == 0);
    need(store->ops->apply(store, &change, NULL) == 0);
    daf__change_free(&change);
}

static void put_case(daf__store *store, const uint8_t *data, size_t size) {
    daf__out *out;
    need(store->ops->create(store, &out, NULL) == 0 && daf__out_append(out, data, size, NULL) == 0);
    put_out(store, out);
}

static void append_and_read_back(daf__store *store, daf__metadata *m) {
    daf__out *out;
    daf__buf text = {0};
    json_t *index;
    need(daf__metadata_note_set(m, "scalars/\"x\"", "{}\n", 3, NULL) == 0);
    need(daf__metadata_render(m, store, NULL, &out, NULL) == 0);
    put_out(store, out);
    daf__metadata_taken(m);
    need(daf__store_read(store, &text, NULL, DAF__METADATA_KEY, UINT64_MAX, NULL) == 0);
    need(text.size == m->bytes.size && memcmp(text.data, m->bytes.data, text.size) == 0);
    need(daf__json_object(&index, text.data, text.size, "case", NULL) == 0);
    json_decref(index);
    daf__buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *object = NULL;
    bool valid = daf__json_object(&object, data, size, "case", NULL) == 0;
    daf__store *store;
    daf__metadata m = {0};
    bool usable = false;
    json_decref(object);
    need(daf__memory_store_new(&store, NULL) == 0);
    put_case(store, data, size);
    need(daf__metadata_load(&m, store, &usable, NULL) == 0);
    need(valid || !usable);
    append_and_read_back(store, &m);
    daf__metadata_free(&m);
    store->ops->free(store);
    return 0;
}
