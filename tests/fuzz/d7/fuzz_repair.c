/* Any bytes as a damaged file: whatever a repair makes of it, into a new file or in its place, opens and has no damage by verify;
 * when it fails nothing is left. */
#include <stdlib.h>

#include "disk_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char source[] = "run.photons", out[] = "out.photons";

static void must(bool what) {
    if (!what)
        abort();
}

static void must_be_clean(disk *d, const char *path) {
    d7_reader_options o;
    d7_reader *r = NULL;
    d7_verify_summary sum = {0};
    d7_reader_options_init(&o);
    o.io = disk_io(d);
    must(d7_reader_open(&r, path, &o, NULL) == 0);
    must(d7_reader_verify(r, NULL, NULL, NULL, NULL, &sum, NULL) == 0);
    must(sum.damages == 0 && sum.state == D7_STATE_CLOSED);
    d7_reader_free(r);
}

static void fuzz_copy(disk *d, size_t size) {
    d7_repair_options o;
    d7_repair_report report = {0};
    size_t now;
    d7_repair_options_init(&o);
    o.io = disk_io(d);
    o.unframed = true;
    o.keep_ragged = size % 2;
    int rc = d7_repair(source, out, &o, &report, NULL);
    bool there = disk_content(d, out, &now) != NULL;
    must(there == (rc == 0 && report.outcome == D7_REPAIR_WRITTEN));
    if (there)
        must_be_clean(d, out);
    d7_repair_report_free(&report);
}

static void fuzz_in_place(disk *d) {
    d7_repair_options o;
    d7_repair_report report = {0};
    d7_repair_options_init(&o);
    o.io = disk_io(d);
    if (d7_repair_in_place(source, &o, &report, NULL) == 0) {
        must_be_clean(d, source);
        d7_repair_report_free(&report);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    disk *d = disk_new(1);
    disk_put(d, source, data, size);
    fuzz_copy(d, size);
    fuzz_in_place(d);
    disk_free(d);
    return 0;
}
