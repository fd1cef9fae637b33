/* daf set: one property from a file or standard input. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "input.h"

enum {
    OPTION_TYPE = 256,
    OPTION_FORM,
    OPTION_INDEX_TYPE,
    OPTION_BOTH_LAYOUTS,
    OPTION_FORMAT,
    OPTION_VALUE,
    OPTION_CREATE,
    OPTION_OVERWRITE,
    OPTION_PACKED,
    OPTION_FLAT
};

static const struct option options[] = {{"type", required_argument, NULL, OPTION_TYPE},
                                        {"format", required_argument, NULL, OPTION_FORMAT},
                                        {"value", required_argument, NULL, OPTION_VALUE},
                                        {"create", no_argument, NULL, OPTION_CREATE},
                                        {"overwrite", no_argument, NULL, OPTION_OVERWRITE},
                                        {"packed", no_argument, NULL, OPTION_PACKED},
                                        {"flat", no_argument, NULL, OPTION_FLAT},
                                        {"form", required_argument, NULL, OPTION_FORM},
                                        {"index-type", required_argument, NULL, OPTION_INDEX_TYPE},
                                        {"both-layouts", no_argument, NULL, OPTION_BOTH_LAYOUTS},
                                        PACKING_OPTIONS,
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

typedef struct request {
    const char *path;
    target target;
    input in;
    const char *value; /* --value, or NULL */
    bool create;
    daf_set_options how;
} request;

/* ---- arguments */

static bool take_form(request *r, const char *name) {
    static const char *const names[] = {"as-given", "dense", "sparse", "smaller"};
    static const daf_form forms[] = {DAF_FORM_AS_GIVEN, DAF_FORM_DENSE, DAF_FORM_SPARSE, DAF_FORM_SMALLER};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            r->how.form = forms[i];
            return true;
        }
    }
    cli_fail(&command_set, "no form \"%s\"", name);
    return false;
}

static bool take(void *context, int option, const char *argument) {
    request *r = context;
    switch (option) {
    case OPTION_TYPE:
        r->in.typed = true;
        if (daf_type_parse(&r->in.type, argument) == 0)
            return true;
        cli_fail(&command_set, "no type \"%s\"", argument);
        return false;
    case OPTION_FORMAT:
        if (format_parse(&r->in.form, argument) == 0)
            return true;
        cli_fail(&command_set, "no input format \"%s\"", argument);
        return false;
    case OPTION_VALUE:
        r->value = argument;
        return true;
    case OPTION_CREATE:
        r->create = true;
        return true;
    case OPTION_OVERWRITE:
        r->how.overwrite = true;
        return true;
    case OPTION_FORM:
        return take_form(r, argument);
    case OPTION_INDEX_TYPE:
        if (daf_type_parse(&r->how.index_type, argument) == 0 && r->how.index_type != DAF_BOOL)
            return true;
        cli_fail(&command_set, "no index type \"%s\"", argument);
        return false;
    case OPTION_BOTH_LAYOUTS:
        r->how.both_layouts = true;
        return true;
    case OPTION_PACKED:
        r->how.packing = DAF_PACK_LARGE;
        return true;
    case OPTION_FLAT:
        r->how.packing = DAF_PACK_NEVER;
        return true;
    default:
        return take_packing_option(&command_set, &r->how, option, argument);
    }
}

static int check_request(request *r, int left) {
    bool is_list = r->target.kind == TARGET_VECTOR || r->target.kind == TARGET_MATRIX;
    if (left > 1)
        return cli_misused(&command_set, "more arguments than a path, a property and a file");
    if (r->value && (r->target.kind != TARGET_SCALAR || left == 1))
        return cli_misused(&command_set, "--value goes with a scalar and without a file");
    if (is_list && !r->in.typed && r->in.form != FORMAT_NPY && r->in.form != FORMAT_NPZ)
        return cli_misused(&command_set, "--type is needed");
    if (!is_list && r->in.form == FORMAT_NPZ)
        return cli_misused(&command_set, "npz is for a vector or a matrix");
    if (r->target.kind == TARGET_SCALAR && r->in.form == FORMAT_CSV)
        return cli_misused(&command_set, "a scalar has no csv form to be read");
    if (r->target.kind == TARGET_AXIS && (r->in.type != DAF_STRING || r->in.form == FORMAT_NPY))
        return cli_misused(&command_set, "the entries of an axis are Strings");
    if (r->target.kind == TARGET_AXIS && r->how.overwrite)
        return cli_misused(&command_set, "an axis cannot be overwritten");
    return 0;
}

/* Returns -1 to go on, else the exit code. */
static int parse_arguments(request *r, int argc, char **argv) {
    r->in = (input){.self = &command_set, .path = "-", .form = FORMAT_TEXT, .type = DAF_STRING};
    daf_set_options_init(&r->how);
    int code = cli_options(&command_set, argc, argv, options, take, r, 2, 6);
    if (code >= 0)
        return code;
    int n = argc - optind - 1, taken = target_parse(&r->target, n, argv + optind + 1);
    if (taken == 0)
        return cli_misused(&command_set, "a path and a property are needed");
    r->path = argv[optind];
    if (n - taken == 1)
        r->in.path = argv[argc - 1];
    r->in.rank = r->target.kind == TARGET_SCALAR ? 0 : r->target.kind == TARGET_MATRIX ? 2 : 1;
    code = check_request(r, n - taken);
    return code ? code : -1;
}

/* ---- storing */

static daf_scalar scalar_of(const input *in) {
    daf_scalar s = {.type = in->type};
    const void *p = in->numbers;
    double d;
    float f;
    uint64_t word = 0;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    if (in->type == DAF_STRING) {
        s.value.s.text = in->texts[0];
        s.value.s.bytes = in->form == FORMAT_JSON ? strlen(in->texts[0]) : in->bytes;
        return s;
    }
    switch (daf_type_bytes(in->type)) {
    case 1:
        memcpy(&u8, p, 1);
        word = u8;
        break;
    case 2:
        memcpy(&u16, p, 2);
        word = u16;
        break;
    case 4:
        memcpy(&u32, p, 4);
        word = u32;
        break;
    default:
        memcpy(&word, p, 8);
    }
    unsigned spare = 64 - 8 * (unsigned)daf_type_bytes(in->type);
    if (in->type == DAF_BOOL) {
        s.value.b = word != 0;
    } else if (type_letter(in->type) == 'i') {
        s.value.i = (int64_t)(word << spare) >> spare;
    } else if (in->type == DAF_FLOAT32) {
        memcpy(&f, p, sizeof f);
        s.value.f = (double)f;
    } else if (in->type == DAF_FLOAT64) {
        memcpy(&d, p, sizeof d);
        s.value.f = d;
    } else {
        s.value.u = word;
    }
    return s;
}

static int check_matrix_shape(daf *d, const request *r, daf_error *err) {
    uint64_t rows, columns;
    if (r->target.kind != TARGET_MATRIX || r->in.form == FORMAT_RAW)
        return 0;
    int rc = daf_axis_length(d, &rows, r->target.axis, err);
    if (rc == 0)
        rc = daf_axis_length(d, &columns, r->target.columns, err);
    if (rc || (rows == r->in.rows && columns == r->in.columns) || rows * columns == 0)
        return rc;
    snprintf(err->text, sizeof err->text,
             "the values are %" PRIu64 " x %" PRIu64 ", but the axes \"%s\" and \"%s\" are %" PRIu64
             " x %" PRIu64,
             r->in.rows, r->in.columns, r->target.axis, r->target.columns, rows, columns);
    return err->code = DAF_ERR_ARG;
}

static int store(daf *d, const request *r, daf_error *err) {
    const input *in = &r->in;
    const void *values = in->type == DAF_STRING ? (const void *)in->texts : in->numbers;
    daf_scalar scalar;
    if (in->is_sparse && r->target.kind == TARGET_VECTOR) {
        daf_csc csc = in->csc;
        csc.colptr = NULL;
        return daf_set_sparse_vector(d, r->target.axis, r->target.name, &csc, &r->how, err);
    }
    if (in->is_sparse)
        return daf_set_sparse_matrix(d, r->target.axis, r->target.columns, r->target.name, &in->csc, &r->how,
                                     err);
    switch (r->target.kind) {
    case TARGET_SCALAR:
        scalar = scalar_of(in);
        return daf_set_scalar(d, r->target.name, &scalar, &r->how, err);
    case TARGET_AXIS:
        return daf_add_axis(d, r->target.name, in->texts, in->n, err);
    case TARGET_VECTOR:
        return daf_set_vector(d, r->target.axis, r->target.name, in->type, values, in->n, &r->how, err);
    default:
        return daf_set_matrix(d, r->target.axis, r->target.columns, r->target.name, in->type, values, in->n,
                              &r->how, err);
    }
}

static int read_values(request *r) {
    if (!r->value)
        return input_read(&r->in);
    r->in.path = "--value";
    r->in.bytes = strlen(r->value);
    return input_add(&r->in, r->value);
}

static int store_in(request *r, daf *d) {
    daf_error err = {0};
    int code = input_order(&r->in, d, &r->target);
    if (code)
        return command_close(&command_set, d, code);
    int rc = check_matrix_shape(d, r, &err);
    if (rc == 0)
        rc = store(d, r, &err);
    return command_close(&command_set, d, rc ? command_fail(&command_set, &err) : CLI_OK);
}

/* Whether a new repository could take it, so that none is made for what is then refused. */
static int rehearse(const request *r) {
    daf_error err;
    daf *d;
    if (r->target.kind == TARGET_VECTOR || r->target.kind == TARGET_MATRIX)
        return cli_fail(&command_set, "%s: a new repository has no axis \"%s\"", r->path, r->target.axis);
    int rc = daf_open_memory(&d, NULL, &err);
    if (rc == 0) {
        rc = store(d, r, &err);
        daf_free(d);
    }
    return rc ? command_fail(&command_set, &err) : CLI_OK;
}

static int open_target(const request *r, daf **ret, cli_pool *pool) {
    daf_options opening;
    daf_executor executor;
    daf_error err;
    command_options(&opening, &executor, pool);
    int rc = daf_open(ret, r->path, "r+", &opening, &err);
    if (rc == 0)
        return CLI_OK;
    if (!r->create || rc != DAF_ERR_NOT_DAF)
        return command_fail(&command_set, &err);
    int code = rehearse(r);
    return code ? code : command_open(&command_set, ret, r->path, "w+", pool);
}

static int run(const cli_command *self, int argc, char **argv) {
    request r = {0};
    daf *d;
    int code = parse_arguments(&r, argc, argv);
    (void)self;
    if (code >= 0)
        return code;
    cli_pool *pool = cli_pool_new(0);
    code = read_values(&r) != 0 ? CLI_USAGE : open_target(&r, &d, pool);
    if (code == CLI_OK)
        code = store_in(&r, d);
    cli_pool_free(pool);
    input_free(&r.in);
    return code;
}

const cli_command command_set = {
    .name = "set",
    .summary = "stores a property",
    .help =
        "Usage: daf set PATH scalar NAME [FILE | --value TEXT] [--type TYPE]\n"
        "       daf set PATH axis NAME [FILE]\n"
        "       daf set PATH vector AXIS NAME [FILE] --type TYPE\n"
        "       daf set PATH matrix ROWS COLUMNS NAME [FILE] --type TYPE\n"
        "Stores the values of FILE (or of standard input) in the repository.\n\n"
        "  --type TYPE      Bool, Int8 to Int64, UInt8 to UInt64, Float32, Float64, String;\n"
        "                   scalars and axes: String unless given; npy: as the file says\n"
        "  --format text|csv|raw|npy|json|npz\n"
        "           text    one value a line; of a matrix one row a line, numbers separated by tabs\n"
        "                   or blanks, texts by tabs (default)\n"
        "           csv     as get writes it; the entries may come in any order\n"
        "           raw     bare little-endian values, a matrix column by column; texts as lines\n"
        "           npy     a NumPy array of one dimension (matrix: two, scalar: none), either order\n"
        "           json    a value, an array, or an array of rows\n"
        "           npz     a sparse matrix of SciPy's save_npz (csc or csr); of a vector one column\n"
        "  --value TEXT     the scalar's value itself\n"
        "  --create         make the repository when there is none\n"
        "  --overwrite      replace a property that is there\n"
        "  --form as-given|dense|sparse|smaller\n"
        "                   how it is stored (default: as given; npz is sparse, the others dense)\n"
        "  --index-type TYPE\n"
        "                   of the indices of a sparse property (default: the smallest)\n"
        "  --both-layouts   store also the transpose of a matrix\n"
        "  --packed         compress it in chunks, when it is as large as one; --flat: do not\n"
        "  --codec blosc_zstd_bitshuffle|blosc_lz4_bitshuffle|zstd|gzip\n"
        "                   how it is compressed (default blosc_zstd_bitshuffle)\n"
        "  --level N        1 to 9, zstd 1 to 22 (default 5)\n"
        "  --chunk-kb N     size of a chunk before compression in KB (default 8)\n"
        "  --help           this text\n\n"
        "Examples:\n"
        "  daf set run.daf scalar sample --value 'hazelnut, slice 3' --create\n"
        "  seq 0 4095 | daf set run.daf axis dt_bin\n"
        "  daf set run.daf vector dt_bin counts counts.npy --format npy --packed\n"
        "  daf get old.daf matrix y x image --format npy | daf set run.daf matrix y x image --format npy\n",
    .run = run};
