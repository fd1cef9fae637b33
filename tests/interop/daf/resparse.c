/* Copies a repository's axes, vectors and matrices to a new one, every property as sparse values.
 *
 *   daf_resparse FROM TO INDEX_TYPE CODEC
 *
 * INDEX_TYPE: a type, or "smallest". CODEC: chunks of 1 KB are packed with it, or "flat". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daf/daf.h"

static daf_error error;

static void must(int rc) {
    if (rc == 0)
        return;
    fprintf(stderr, "daf_resparse: %s\n", error.text);
    exit(1);
}

static void copy_vectors(daf *from, daf *to, const char *axis, const daf_set_options *o) {
    daf_names vectors;
    must(daf_list_vectors(from, &vectors, axis, &error));
    for (size_t i = 0; i < vectors.n; i++) {
        daf_sparse *s;
        must(daf_get_sparse_vector(from, &s, axis, vectors.names[i], &error));
        must(daf_set_sparse_vector(to, axis, vectors.names[i], daf_sparse_csc(s), o, &error));
        daf_sparse_free(s);
    }
    daf_names_clear(&vectors);
}

static void copy_matrices(daf *from, daf *to, const char *rows, const char *columns,
                          const daf_set_options *o) {
    daf_names matrices;
    must(daf_list_matrices(from, &matrices, rows, columns, &error));
    for (size_t i = 0; i < matrices.n; i++) {
        daf_sparse *s;
        must(daf_get_sparse_matrix(from, &s, rows, columns, matrices.names[i], &error));
        must(daf_set_sparse_matrix(to, rows, columns, matrices.names[i], daf_sparse_csc(s), o, &error));
        daf_sparse_free(s);
    }
    daf_names_clear(&matrices);
}

static void copy_axis(daf *from, daf *to, const char *axis) {
    daf_array *entries;
    must(daf_get_axis(from, &entries, axis, &error));
    must(daf_add_axis(to, axis, daf_array_strings(entries), daf_array_count(entries), &error));
    daf_array_free(entries);
}

static void copy(daf *from, daf *to, const daf_set_options *o) {
    daf_names axes;
    must(daf_list_axes(from, &axes, &error));
    for (size_t i = 0; i < axes.n; i++)
        copy_axis(from, to, axes.names[i]);
    for (size_t i = 0; i < axes.n; i++) {
        copy_vectors(from, to, axes.names[i], o);
        for (size_t j = 0; j < axes.n; j++)
            copy_matrices(from, to, axes.names[i], axes.names[j], o);
    }
    daf_names_clear(&axes);
}

int main(int argc, char **argv) {
    daf *from, *to;
    daf_set_options o;
    daf_set_options_init(&o);
    if (argc != 5 || (strcmp(argv[3], "smallest") != 0 && daf_type_parse(&o.index_type, argv[3]) != 0) ||
        (strcmp(argv[4], "flat") != 0 && daf_codec_parse(&o.codec, argv[4]) != 0)) {
        fprintf(stderr, "usage: daf_resparse FROM TO INDEX_TYPE CODEC\n");
        return 2;
    }
    o.packing = strcmp(argv[4], "flat") == 0 ? DAF_PACK_NEVER : DAF_PACK_LARGE;
    o.target_chunk_kb = 1;
    must(daf_open(&from, argv[1], "r", NULL, &error));
    must(daf_open(&to, argv[2], "w+", NULL, &error));
    must(daf_batch_begin(to, &error));
    copy(from, to, &o);
    must(daf_close(from, &error));
    must(daf_close(to, &error));
    return 0;
}
