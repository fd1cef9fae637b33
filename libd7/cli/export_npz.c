/* NumPy's archive: a ZIP of arrays, one for each dataset, and metadata.json. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "cli/npy.h"
#include "cli/output.h"
#include "cli/zip_writer.h"
#include "export.h"
#include "export_names.h"

typedef struct npz_job {
    export_job *job;
    zip_writer *zip;
    size_t item_bytes; /* of the column being written */
} npz_job;

static int npz_failed(const npz_job *n, int rc) {
    return command_fail(n->job->self, "%s: cannot be written: %s", n->job->final, strerror(-rc));
}

static int npz_take(void *ctx, const d7_chunk *chunk) {
    npz_job *n = ctx;
    int rc = 0;
    if (BYTES_HOST_IS_LITTLE || n->item_bytes == 1) {
        rc = zip_write(n->zip, chunk->values[0], chunk->n * n->item_bytes);
    } else {
        uint8_t *little = malloc(chunk->n * n->item_bytes);
        if (little)
            bytes_copy_le(little, chunk->values[0], chunk->n, n->item_bytes);
        rc = little ? zip_write(n->zip, little, chunk->n * n->item_bytes) : -ENOMEM;
        free(little);
    }
    return rc == 0 ? 0 : npz_failed(n, rc);
}

static int npz_array_head(npz_job *n, const export_column *column, uint64_t rows) {
    char *head = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&head, &bytes);
    int rc = memory ? 0 : -errno;
    if (memory) {
        if (cli_npy_header(memory, export_kind(column->type), n->item_bytes, &rows, 1, false) != 0)
            rc = -ENOMEM;
        if (fclose(memory) != 0)
            rc = -ENOMEM;
    }
    if (rc == 0)
        rc = zip_write(n->zip, head, bytes);
    free(head);
    return rc == 0 ? 0 : npz_failed(n, rc);
}

static int npz_column(npz_job *n, export_set *set, size_t i, const char *key) {
    char *name;
    if (asprintf(&name, "%s.npy", key) < 0)
        return npz_failed(n, -ENOMEM);
    int rc = zip_begin(n->zip, name);
    free(name);
    if (rc != 0)
        return npz_failed(n, rc);
    n->item_bytes = d7_type_size(set->columns[i].type);
    int code = npz_array_head(n, &set->columns[i], set->rows);
    if (code == 0)
        code = export_read(n->job, set, i, 1, npz_take, n);
    if (code != 0)
        return code;
    rc = zip_end(n->zip);
    return rc == 0 ? 0 : npz_failed(n, rc);
}

static int npz_columns(npz_job *n, const export_names *names) {
    int code = 0;
    size_t at = 0;
    for (size_t s = 0; s < n->job->n_sets && code == 0; s++)
        for (size_t i = 0; i < n->job->sets[s].n && code == 0; i++)
            code = npz_column(n, &n->job->sets[s], i, names->keys[at++]);
    return code;
}

static int npz_metadata(npz_job *n, const export_names *names) {
    char *text = NULL;
    size_t bytes = 0;
    int rc = export_metadata(n->job, names, &text, &bytes);
    if (rc == 0)
        rc = zip_begin(n->zip, "metadata.json");
    if (rc == 0)
        rc = zip_write(n->zip, text, bytes);
    if (rc == 0)
        rc = zip_end(n->zip);
    free(text);
    return rc == 0 ? 0 : npz_failed(n, rc);
}

static int npz_archive(npz_job *n, const export_names *names) {
    int code = npz_columns(n, names);
    if (code == 0)
        code = npz_metadata(n, names);
    if (code != 0)
        return code;
    int rc = zip_finish(n->zip);
    return rc == 0 ? 0 : npz_failed(n, rc);
}

int export_npz(export_job *job) {
    npz_job n = {.job = job};
    export_names names;
    int fd = open(job->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return npz_failed(&n, -errno);
    int code =
        export_names_make(job, "metadata.json", &names) == 0 && (n.zip = zip_new(fd, job->level)) != NULL
            ? npz_archive(&n, &names)
            : npz_failed(&n, -ENOMEM);
    zip_free(n.zip);
    export_names_free(&names);
    if (close(fd) != 0 && code == 0)
        code = npz_failed(&n, -errno);
    return code;
}
