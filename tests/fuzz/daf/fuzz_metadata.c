/* metadata.json: read as an index beside an empty tree; what comes out after an append is always JSON. */
#include <stdlib.h>

#include "json.h"
#include "memory_file.h"
#include "metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static memory_file file;

static int mock_open(daf__store *s, daf__file **ret, const char *key, daf_error *err) {
    (void)s;
    (void)key;
    (void)err;
    *ret = &file.base;
    return 0;
}

static int mock_list(daf__store *s, daf_names *ret, const char *folder, daf__list_what what, daf_error *err) {
    (void)s;
    (void)folder;
    (void)what;
    (void)err;
    *ret = (daf_names){0};
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const daf__store_ops ops = {.open = mock_open, .list = mock_list};
    static char path[] = "case";
    daf__store store = {.ops = &ops, .path = path};
    for (int against_tree = 0; against_tree < 2; against_tree++) {
        daf__metadata m = {0};
        daf__buf out = {0};
        json_t *index = NULL;
        bool usable = false;
        file = memory_file_of(data, size);
        if (daf__metadata_load(&m, &store, against_tree, &usable, NULL) != 0)
            abort();
        if (!usable || against_tree) {
            if (daf__metadata_note_set(&m, "scalars/\"x\"", "{}\n", 3, NULL) != 0 ||
                daf__metadata_render(&m, &store, NULL, &out, NULL) != 0 ||
                daf__json_object(&index, out.data, out.size, "case", NULL) != 0)
                abort();
        }
        json_decref(index);
        daf__buf_free(&out);
        daf__metadata_free(&m);
    }
    return 0;
}
