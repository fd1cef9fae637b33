/* Archives: whatever the bytes are, reading them is safe; and an archive that opens for writing takes a property, which a new
 * open finds, beside all that could be read before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive.h"
#include "archive_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_DECODED = 1 << 22 };

/* Every entry, through the archive's own functions. */
static void read_entries(const char *path) {
    daf__archive_directory d;
    daf__archive_whole whole;
    FILE *f = fopen(path, "rb");
    if (!f)
        abort();
    if (daf__archive_load(&d, &daf__system_io, fileno(f), path, DAF__LOAD_AGAIN, NULL) == 0) {
        if (daf__archive_look(&whole, &daf__system_io, fileno(f), path, NULL) != 0)
            abort();
        for (uint32_t i = 0; i < d.n && i < 100; i++) {
            const daf__archive_entry *e = &d.entries[i];
            daf__buf content;
            uint64_t at;
            if (e->raw_bytes > MAX_DECODED || daf__archive_locate(&at, &whole.base, e, "x", NULL) != 0 ||
                daf__archive_decode(&content, &whole.base, at, e, "x", NULL) != 0)
                continue;
            if (content.size != e->raw_bytes)
                abort();
            daf__buf_free(&content);
        }
        daf__archive_directory_free(&d);
    }
    fclose(f);
}

static size_t count_scalars(daf *d) {
    daf_names names;
    if (daf_list_scalars(d, &names, NULL) != 0)
        abort();
    size_t n = names.n;
    daf_names_clear(&names);
    return n;
}

static void append(const char *path) {
    daf_scalar s = daf_scalar_int64(-5);
    daf *d;
    if (daf_open(&d, path, "r+", NULL, NULL) != 0)
        return;
    size_t before = count_scalars(d);
    int set = daf_set_scalar(d, "fuzz!", &s, NULL, NULL);
    if (daf_close(d, NULL) != 0)
        abort();
    if (set != 0 && set != DAF_ERR_EXISTS && set != DAF_ERR_LIMIT && set != DAF_ERR_UNSUPPORTED)
        abort();
    if (daf_open(&d, path, "r", NULL, NULL) != 0)
        abort();
    if (count_scalars(d) != before + (set == 0))
        abort();
    if (set == 0 && (daf_get_scalar(d, &s, "fuzz!", NULL) != 0 || s.value.i != -5))
        abort();
    daf_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char folder[] = "/dev/shm/daf-fuzz-XXXXXX", path[64];
    if (access("/dev/shm", W_OK) != 0)
        memcpy(folder, "/tmp/daf-fuzz-XXXXXX", sizeof "/tmp/daf-fuzz-XXXXXX");
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof path, "%s/a.daf.zip", folder);
    FILE *f = fopen(path, "wb");
    if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f) != 0)
        abort();
    read_entries(path);
    append(path);
    unlink(path);
    rmdir(folder);
    return 0;
}
