/* The image: how many photons each pixel saw.
 *
 * Counts are UInt32, and exact: when a pixel passes 2^32 - 1, its upper half is kept beside, and the
 * matrix is exported as UInt64 from then on.
 */
#include <stdlib.h>
#include <string.h>

#include "summary_axis.h"
#include "summary_private.h"

enum { IMAGE_BITS_MISSING = 12, IMAGE_BITS_MAX = 31 };

typedef struct image {
    size_t group, column_x, column_y;
    pd_axis x, y;
    uint32_t side;  /* pixels */
    unsigned log2;  /* of side */
    uint32_t *low;  /* [side * side + 1] counts, pixel (y, x) at y + x * side; last the photons outside */
    uint32_t *high; /* their upper halves; pages never touched unless a count passes 2^32 */
    bool wrapped;   /* one has */
} image;

static bool image_columns(const pd_summary *s, pd_summary_column *x, pd_summary_column *y) {
    return pd_summary_find(s, PD_ROLE_POSITION_X, x) && pd_summary_find(s, PD_ROLE_POSITION_Y, y) &&
           x->group == y->group;
}

static bool image_wanted(const pd_summary *s) {
    pd_summary_column x, y;
    const pd_summary_options *o = pd_summary_get_options(s);
    return o->enabled && o->image && image_columns(s, &x, &y);
}

static void image_free(void *state) {
    image *im = state;
    free(im->low);
    free(im->high);
    free(im);
}

static size_t image_n_counts(const image *im) {
    return (size_t)im->side * im->side + 1;
}

static int image_create(void **ret, pd_summary *s) {
    image *im = calloc(1, sizeof *im);
    if (!im)
        return -1;
    pd_summary_column x, y;
    image_columns(s, &x, &y);
    unsigned bits = pd_summary_get_bits(s, "/photons/PositionBits", 1, IMAGE_BITS_MAX, IMAGE_BITS_MISSING);
    im->side = pd_summary_get_options(s)->pixels;
    if (im->side > UINT64_C(1) << bits)
        im->side = UINT32_C(1) << bits;
    im->log2 = (unsigned)__builtin_ctz(im->side);
    im->group = x.group;
    im->column_x = x.column;
    im->column_y = y.column;
    pd_axis_init(&im->x, x.type, bits, im->side);
    pd_axis_init(&im->y, y.type, bits, im->side);
    im->low = calloc(image_n_counts(im), sizeof *im->low);
    im->high = calloc(image_n_counts(im), sizeof *im->high);
    if (!im->low || !im->high) {
        image_free(im);
        return -1;
    }
    *ret = im;
    return 0;
}

static size_t image_bytes(const void *state) {
    const image *im = state;
    return sizeof *im + image_n_counts(im) * (2 * sizeof *im->low + sizeof(uint64_t));
}

/* A bin is below `side`, or `side` itself, which sets the one bit that no pixel's bin has. */
static void image_count(image *im, const uint32_t *x, const uint32_t *y, size_t n) {
    uint32_t *low = im->low;
    const uint32_t side = im->side, outside = side * side;
    const unsigned log2 = im->log2;
    for (size_t i = 0; i < n; i++) {
        uint32_t pixel = (x[i] << log2) + y[i];
        pixel = (x[i] | y[i]) & side ? outside : pixel;
        if (__builtin_expect(++low[pixel] == 0, 0)) {
            im->high[pixel]++;
            im->wrapped = true;
        }
    }
}

static void image_bin(void *state, size_t group, const void *const *columns, size_t n) {
    image *im = state;
    if (group != im->group)
        return;
    uint32_t x[PD_AXIS_BLOCK], y[PD_AXIS_BLOCK];
    for (size_t i = 0; i < n; i += PD_AXIS_BLOCK) {
        size_t block = n - i < PD_AXIS_BLOCK ? n - i : PD_AXIS_BLOCK;
        pd_axis_bins(&im->x, x, pd_axis_at(&im->x, columns[im->column_x], i), block);
        pd_axis_bins(&im->y, y, pd_axis_at(&im->y, columns[im->column_y], i), block);
        image_count(im, x, y, block);
    }
}

static uint64_t image_value(const image *im, size_t i) {
    return (uint64_t)im->high[i] << 32 | im->low[i];
}

static int image_freeze_pixels(const image *im, pd_snapshot *snapshot) {
    size_t n = image_n_counts(im) - 1;
    void *values = pd_snapshot_matrix(snapshot, "y_pixel", "x_pixel", "intensity",
                                      im->wrapped ? DAF_UINT64 : DAF_UINT32, n);
    if (!values)
        return -1;
    if (!im->wrapped)
        memcpy(values, im->low, n * sizeof *im->low);
    for (size_t i = 0; im->wrapped && i < n; i++)
        ((uint64_t *)values)[i] = image_value(im, i);
    return 0;
}

static int image_freeze(const void *state, const pd_summary *s, pd_snapshot *snapshot) {
    const image *im = state;
    (void)s;
    int64_t step = (int64_t)1 << im->x.shift;
    if (pd_snapshot_axis(snapshot, "y_pixel", 0, step, im->side) != 0 ||
        pd_snapshot_axis(snapshot, "x_pixel", 0, step, im->side) != 0 ||
        image_freeze_pixels(im, snapshot) != 0)
        return -1;
    return pd_snapshot_uint64(snapshot, "outside_image", image_value(im, image_n_counts(im) - 1));
}

const pd_summary_kind pd_summary_image = {.name = "image",
                                          .attributes = {"/photons/PositionBits"},
                                          .wanted = image_wanted,
                                          .create = image_create,
                                          .free = image_free,
                                          .bytes = image_bytes,
                                          .bin = image_bin,
                                          .freeze = image_freeze};
