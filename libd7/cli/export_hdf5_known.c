/* What is known of the set-up and of the file.
 *
 * Source: the Photon-HDF5 format definition, version 0.5. The titles are the format's own descriptions of its fields: readers
 * hold them against their list. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/output.h"
#include "export_hdf5.h"

double photon_number(const photon_job *p, const char *key) {
    const char *text = d7_reader_find_attribute(p->job->reader, key);
    char *end;
    double value = text ? strtod(text, &end) : NAN;
    return text && end != text && *end == 0 && isfinite(value) && value > 0 ? value : NAN;
}

static int write_nanotimes(photon_job *p) {
    hdf5_file *f = p->file;
    double bits = photon_number(p, "/photons/TacBits");
    uint64_t bins = UINT64_C(1) << (bits >= 1 && bits <= 32 ? (unsigned)bits : 12);
    return hdf5_group(f, "/photon_data/nanotimes_specs", "Group for nanotime-specific data.") |
           hdf5_number(f, "/photon_data/nanotimes_specs/tcspc_unit",
                       "Value of 1-unit nanotime-increment in seconds (TCSPC bin size).", p->micro_s) |
           hdf5_count(f, "/photon_data/nanotimes_specs/tcspc_num_bins", "Number of TCSPC bins.", bins) |
           hdf5_number(f, "/photon_data/nanotimes_specs/tcspc_range", "TCSPC full-scale range in seconds.",
                       p->micro_s * (double)bins);
}

/* Pulses a second, where the times count them. */
static double laser_hz(const photon_job *p) {
    const char *mode = d7_reader_find_attribute(p->job->reader, "ptu.Measurement_Mode");
    return p->micro && p->time && mode && strcmp(mode, "3") == 0 ? 1 / p->unit_s : NAN;
}

/* The channels that were met. Returns how many; ids and counts: [DETECTORS]. */
static size_t detectors(const photon_job *p, uint64_t *ids, uint64_t *counts) {
    size_t n = 0;
    for (size_t i = 0; i < DETECTORS; i++)
        if (p->counts[i]) {
            ids[n] = i;
            counts[n++] = p->counts[i];
        }
    return n;
}

static int write_measurement(photon_job *p, const uint64_t *ids, size_t n) {
    hdf5_file *f = p->file;
    int rc = hdf5_group(f, "/photon_data/measurement_specs",
                        "Metadata necessary for interpretation of the particular type of measurement.") |
             hdf5_text(f, "/photon_data/measurement_specs/measurement_type",
                       "Name of the measurement the data represents.", "generic") |
             hdf5_number(f, "/photon_data/measurement_specs/laser_repetition_rate",
                         "Repetition rate of the pulsed excitation laser (in Hertz).", laser_hz(p));
    if (p->channel)
        rc |= hdf5_group(f, "/photon_data/measurement_specs/detectors_specs",
                         "Mapping between the pixel IDs and the detection channels.");
    if (p->channel && n)
        rc |= hdf5_counts(
            f, "/photon_data/measurement_specs/detectors_specs/spectral_ch1",
            "Pixel IDs for the first spectral channel (i.e. donor in a 2-color smFRET measurement).", ids, n);
    return rc;
}

static int write_setup(photon_job *p, const uint64_t *ids, const uint64_t *counts, size_t n) {
    static const struct {
        const char *name, *title;
    } ones[] = {{"/setup/num_spots", "Number of excitation (or detection) \"spots\" in the sample."},
                {"/setup/num_spectral_ch", "Number of distinct spectral bands which are acquired."},
                {"/setup/num_polarization_ch", "Number of distinct polarization states which are acquired."},
                {"/setup/num_split_ch",
                 "Number of distinct detection channels detecting the same spectral band and "
                 "polarization. This value is > 1 when using a non-polarizing beam splitter."}};
    static const uint8_t no = 0;
    hdf5_file *f = p->file;
    double rate = laser_hz(p);
    int rc = hdf5_group(f, "/setup", "Information about the experimental setup.") |
             hdf5_count(f, "/setup/num_pixels", "Total number of detector pixels.", n ? n : 1);
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        rc |= hdf5_count(f, ones[i].name, ones[i].title, 1);
    rc |=
        hdf5_flag(
            f, "/setup/modulated_excitation",
            "True (i.e. 1) if there is any form of excitation modulation of excitation wavelength (as in "
            "us-ALEX or "
            "PAX) or polarization. This field is also True for pulse-interleaved excitation (PIE) or ns-ALEX "
            "measurements.",
            0) |
        hdf5_flags(
            f, "/setup/excitation_alternated",
            "New in version 0.5. Indicates whether each excitation source is alternated (True, or 1) or not "
            "alternated (False, or 0).",
            &no, 1) |
        hdf5_flag(f, "/setup/lifetime",
                  "True (i.e. 1) if the measurement includes a nanotimes array of photon arrival times with "
                  "respect to a "
                  "laser pulse (as in TCSPC measurements).",
                  p->micro != NULL);
    if (p->micro)
        rc |= hdf5_flags(f, "/setup/excitation_cw",
                         "For each excitation source, this field indicates whether excitation is continuous "
                         "wave (CW), True "
                         "(i.e. 1), or pulsed, False (i.e. 0).",
                         &no, 1);
    if (rate > 0)
        rc |= hdf5_numbers(f, "/setup/laser_repetition_rates",
                           "Repetition rates in Hz for each laser. CW lasers have a value of 0.", &rate, 1);
    if (p->channel && n)
        rc |= hdf5_group(f, "/setup/detectors",
                         "Metadata relative to each detector's pixel. Each field is an array with size equal "
                         "to the number "
                         "of the detectors.") |
              hdf5_counts(f, "/setup/detectors/id", "Detector IDs as they appear on /photon_data/detectors.",
                          ids, n) |
              hdf5_counts(f, "/setup/detectors/counts", "Total number of counts detected by each detector.",
                          counts, n);
    return rc;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int write_identity(photon_job *p) {
    hdf5_file *f = p->file;
    time_t now = time(NULL);
    struct tm tm;
    char made[32] = " ";
    if (localtime_r(&now, &tm))
        strftime(made, sizeof made, "%Y-%m-%d %H:%M:%S", &tm);
    const struct {
        const char *name, *title, *text;
    } fields[] = {
        {"format_name", "Name of the file format.", "Photon-HDF5"},
        {"format_version", "Version for the Photon-HDF5 format.", "0.5"},
        {"format_url", "Official URL for the Photon-HDF5 format.", "http://photon-hdf5.org/"},
        {"software", "Name of the software used to create the current Photon-HDF5 file.", "d7 export"},
        {"software_version", "Version of the software used to create current the Photon-HDF5 file.",
         d7_version()},
        {"creation_time", "Creation time of the current Photon-HDF5 file.", made},
        {"filename", "Original file name of the current Photon-HDF5 file (i.e. file name at creation time).",
         base_name(p->job->final)},
    };
    int rc = hdf5_group(f, "/identity", "Information about the Photon-HDF5 data file.");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        char path[64];
        snprintf(path, sizeof path, "/identity/%s", fields[i].name);
        rc |= hdf5_text(f, path, fields[i].title, fields[i].text);
    }
    return rc;
}

static int write_provenance(photon_job *p) {
    hdf5_file *f = p->file;
    const char *created = d7_reader_find_attribute(p->job->reader, "Created");
    const char *creator = d7_reader_find_attribute(p->job->reader, "FileCreator");
    int rc = hdf5_group(f, "/provenance", "Information about the original data file.") |
             hdf5_text(f, "/provenance/filename",
                       "File name of the original data file before conversion to Photon-HDF5.",
                       base_name(p->job->path));
    if (created)
        rc |= hdf5_text(f, "/provenance/creation_time", "Creation time of the original data file.", created);
    if (creator)
        rc |= hdf5_text(f, "/provenance/software", "Software used to save the original data file.", creator);
    return rc;
}

static int write_root(photon_job *p) {
    hdf5_file *f = p->file;
    const char *comment = d7_reader_find_attribute(p->job->reader, "Comment");
    double whole = p->ms && p->job->all_rows ? (double)ms_times_count(p->ms) : p->last - p->first;
    return hdf5_attribute(
               f, "/", "TITLE",
               "A file format for photon-counting detector based single-molecule spectroscopy experiments.") |
           hdf5_attribute(f, "/", "format_name", "Photon-HDF5") |
           hdf5_attribute(f, "/", "format_version", "0.5") |
           hdf5_attribute(f, "/", "format_url", "http://photon-hdf5.org/") |
           hdf5_text(f, "/format_name", "Name of the file format.", "Photon-HDF5") |
           hdf5_text(f, "/format_version", "Version for the Photon-HDF5 format.", "0.5") |
           hdf5_number(f, "/acquisition_duration", "Measurement duration in seconds.", whole * p->unit_s) |
           hdf5_text(f, "/description", "A user-defined comment describing the data file.",
                     comment && *comment ? comment : base_name(p->job->path));
}

static int write_photon_data(photon_job *p) {
    hdf5_file *f = p->file;
    return hdf5_attribute(f, "/photon_data", "TITLE", "Group containing arrays of photon-data.") |
           hdf5_group(f, "/photon_data/timestamps_specs", "Specifications for timestamps.") |
           hdf5_number(f, "/photon_data/timestamps_specs/timestamps_unit",
                       "Value of 1-unit timestamp-increment in seconds.", p->unit_s) |
           (p->micro ? write_nanotimes(p) : 0);
}

int photon_write_known(photon_job *p) {
    uint64_t *ids = malloc(2 * DETECTORS * sizeof *ids), *counts = ids ? ids + DETECTORS : NULL;
    char *text = NULL;
    size_t bytes;
    if (!ids || export_metadata(p->job, &p->names, &text, &bytes) != 0) {
        free(ids);
        free(text);
        return command_fail(p->job->self, "out of memory");
    }
    size_t n = detectors(p, ids, counts);
    int rc = write_root(p) | write_photon_data(p) | write_setup(p, ids, counts, n) | write_identity(p) |
             write_provenance(p) |
             hdf5_text(p->file, "/user/d7/metadata", "Attributes and datasets, as JSON", text);
    if (laser_hz(p) > 0)
        rc |= write_measurement(p, ids, n);
    free(ids);
    free(text);
    return rc == 0 ? 0 : photon_failed(p);
}
