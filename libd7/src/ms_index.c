/* From photons to milliseconds and back, by the dataset that holds the first photon of every millisecond.
 * Source: the D7 specification, section 6. */
#include <inttypes.h>

#include "error.h"
#include "reader.h"

typedef struct ms_index {
    d7_reader *reader;
    uint32_t dataset_id;
    d7_type type;
    uint64_t n; /* milliseconds */
} ms_index;

static int ms_open(d7_reader *r, ms_index *ret, d7_error *err) {
    d7_dataset_info info;
    uint32_t id;
    if (d7_reader_find_role(r, D7_ROLE_MS, &id) != 0 || d7_reader_dataset(r, id, &info) != 0)
        return d7__fail(err, D7_ERR_NOTFOUND, 0, D7_NO_OFFSET,
                        "%s: there is no dataset of milliseconds (/photons/ms)", r->source.path);
    if (info.type != D7_UINT64 && info.type != D7_INT64)
        return d7__fail(err, D7_ERR_UNSUPPORTED, 0, D7_NO_OFFSET, "%s: dataset %s is of type %s, not uint64",
                        r->source.path, info.name, d7_type_name(info.type));
    *ret = (ms_index){.reader = r, .dataset_id = id, .type = info.type, .n = info.items};
    return 0;
}

/* The first photon of a millisecond that there is. */
static int ms_first(const ms_index *index, uint64_t ms, uint64_t *ret_first, d7_error *err) {
    uint64_t first;
    int rc = d7_reader_read(index->reader, index->dataset_id, ms, 1, &first, err);
    if (rc == 0)
        *ret_first = first;
    return rc;
}

int d7_reader_photons_of_ms(d7_reader *r, uint64_t ms, uint64_t *ret_first, uint64_t *ret_n, d7_error *err) {
    ms_index index;
    uint64_t first, end = d7_reader_group_items(r, D7_GROUP_PHOTONS), photons = end;
    int rc = ms_open(r, &index, err);
    if (rc != 0)
        return rc;
    if (ms >= index.n)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET,
                        "%s: the recording has %" PRIu64 " milliseconds, asked for number %" PRIu64,
                        r->source.path, index.n, ms);
    rc = ms_first(&index, ms, &first, err);
    if (rc == 0 && ms + 1 < index.n)
        rc = ms_first(&index, ms + 1, &end, err);
    if (rc != 0)
        return rc;
    if (first > end)
        return d7__fail(err, D7_ERR_CORRUPT, 0, D7_NO_OFFSET,
                        "%s: millisecond %" PRIu64 " begins with photon %" PRIu64
                        ", the one after it with photon %" PRIu64,
                        r->source.path, ms, first, end);
    first = first < photons ? first : photons;
    end = end < photons ? end : photons;
    *ret_first = first;
    *ret_n = end - first;
    return 0;
}

/* The last millisecond of [low, high) that begins at or before the photon; `low` does. */
static int last_before(const ms_index *index, uint64_t photon, uint64_t low, uint64_t high, uint64_t *ret_ms,
                       d7_error *err) {
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2, first;
        int rc = ms_first(index, middle, &first, err);
        if (rc != 0)
            return rc;
        if (first <= photon)
            low = middle;
        else
            high = middle;
    }
    *ret_ms = low;
    return 0;
}

int d7_reader_ms_of_photon(d7_reader *r, uint64_t photon, uint64_t *ret_ms, d7_error *err) {
    ms_index index;
    uint64_t first = 0;
    int rc = ms_open(r, &index, err);
    if (rc == 0 && photon >= d7_reader_group_items(r, D7_GROUP_PHOTONS))
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET,
                        "%s: there are %" PRIu64 " photons, asked for number %" PRIu64, r->source.path,
                        d7_reader_group_items(r, D7_GROUP_PHOTONS), photon);
    if (rc == 0 && index.n)
        rc = ms_first(&index, 0, &first, err);
    if (rc != 0)
        return rc;
    if (index.n == 0 || photon < first)
        return d7__fail(err, D7_ERR_NOTFOUND, 0, D7_NO_OFFSET,
                        "%s: photon %" PRIu64 " comes before the first millisecond", r->source.path, photon);
    return last_before(&index, photon, 0, index.n, ret_ms, err);
}
