"""Reading x, y and dt of a large file through the public API beside the baseline's reader, as ratios of pairs measured in one run.

A pair is: the baseline's `read`, then read_bench, on files with the same pages, with the same number of threads; both open the
file, decode all of it and add up every value. The medians of the pairs count. Only a wrong sum makes the exit status 1.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from pairs import arguments, finish, noise_columns, ratios_text, run  # noqa: E402

PHOTON = ["x.u16", "y.u16", "dt.u16"]


def baseline(tools, what, folder, repeat, path, threads):
    return run(os.path.join(tools, "baseline"), what, folder, str(repeat), path, str(threads), *PHOTON)


def baseline_read(tools, folder, repeat, path, threads):
    fields = dict(f.split("=") for f in baseline(tools, "read", folder, repeat, path, threads).split() if "=" in f)
    return float(fields["Mvalues/s"]) * 1e6, int(fields["checksum"])


def our_read(tools, how, path, threads):
    values, seconds, checksum, peak = run(os.path.join(tools, "read_bench"), how, path, str(threads)).split()
    return int(values) / float(seconds), int(checksum), int(peak)


def measure(tools, folder, repeat, base_path, path, threads, pairs):
    ways = {"d7_columns_next": "read", "d7_reader_read": "read-one-by-one"}
    base, rates, peaks = [], {w: [] for w in ways}, {w: [] for w in ways}
    for _ in range(pairs):
        rate, wanted = baseline_read(tools, folder, repeat, base_path, threads)
        base.append(rate)
        for way, how in ways.items():
            rate, checksum, peak = our_read(tools, how, path, threads)
            if checksum != wanted:
                print("WRONG RESULT: %s read values that add up to %d, not %d" % (way, checksum, wanted), file=sys.stderr)
                return 1
            rates[way].append(rate)
            peaks[way].append(peak)
    print("  %-16s %7.0f M values/s" % ("baseline", statistics.median(base) / 1e6))
    for way in ways:
        print("  %-16s %7.0f M values/s   %s   peak memory %d MB"
              % (way, statistics.median(rates[way]) / 1e6, ratios_text(rates[way], base), max(peaks[way]) // 1024), flush=True)
    return 0


def main():
    a = arguments(__doc__)
    with noise_columns(a) as (columns, repeat, folder):
        base_path, path = os.path.join(folder, "baseline.photons"), os.path.join(folder, "d7.photons")
        baseline(a.tools, "write", columns, repeat, base_path, 2)
        run(os.path.join(a.tools, "read_bench"), "write", path, str(repeat), *[os.path.join(columns, c) for c in PHOTON])
        for threads in (2, 1):
            print("x, y, dt of %.2f GB (noise columns), %d thread%s"
                  % (os.path.getsize(path) / 1e9, threads, "s" if threads > 1 else ""), flush=True)
            if measure(a.tools, columns, repeat, base_path, path, threads, a.pairs) != 0:
                return 1
        return 0


if __name__ == "__main__":
    finish(main)
