"""The page codec beside the baseline encoder and reader, one thread each, as ratios of pairs measured in one run.

For each set of columns a pair is: the baseline's `write` and `read`, then codec_bench with each variant of the kernels. The
medians of the pairs count. (The baseline also frames and writes to a file in memory; codec_bench encodes and decodes pages
between buffers.) Only a wrong result makes the exit status 1.
"""
import os
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from pairs import arguments, finish, folders, ratios_text, run  # noqa: E402

WIDTH = {".u16": 2, ".u64": 8}
PHOTON = ["x.u16", "y.u16", "dt.u16"]
SECONDS = "0.15"  # of encoding, and of decoding, in one run of codec_bench
BASELINE_VALUES = 12000000  # that many take the baseline about as long


class Case:
    def __init__(self, name, folder, columns):
        self.name, self.folder, self.columns = name, folder, columns
        values = sum(os.path.getsize(os.path.join(folder, c)) // WIDTH[os.path.splitext(c)[1]] for c in columns)
        self.repeat = max(1, BASELINE_VALUES // values)


def make_cases(work, source):
    return [Case("uint16, noise columns", os.path.join(work, "noise"), PHOTON),
            Case("uint16, hazelnut columns", source, PHOTON),
            Case("uint64 ps, Poisson 1 M/s", os.path.join(work, "tags_1M"), ["time.u64"]),
            Case("uint64 ps, Poisson 90 M/s", os.path.join(work, "tags_90M"), ["time.u64"])]


def baseline(program, what, case, out):
    text = run(program, what, case.folder, str(case.repeat), out, "1", *case.columns)
    return float(text.split("Mvalues/s=")[1].split()[0])


def ours(program, kernel, case):
    text = subprocess.run([program, SECONDS, *[os.path.join(case.folder, c) for c in case.columns]], check=True,
                          stdout=subprocess.PIPE, text=True, env=dict(os.environ, D7_KERNEL=kernel)).stdout
    name, encoded, decoded, per_value = text.split()
    if name != kernel:
        raise RuntimeError("asked for %s, got %s" % (kernel, name))
    return float(encoded) / 1e6, float(decoded) / 1e6, float(per_value)


def measure(case, tools, kernels, pairs, folder):
    out = os.path.join(folder, "baseline.photons")
    program, bench = os.path.join(tools, "baseline"), os.path.join(tools, "codec_bench")
    base = {"encode": [], "decode": []}
    rates = {k: {"encode": [], "decode": []} for k in kernels}
    for _ in range(pairs):
        base["encode"].append(baseline(program, "write", case, out))
        base["decode"].append(baseline(program, "read", case, out))
        for k in kernels:
            encoded, decoded, per_value = ours(bench, k, case)
            rates[k]["encode"].append(encoded)
            rates[k]["decode"].append(decoded)
    os.unlink(out)
    print("%s (%.2f bytes/value)" % (case.name, per_value))
    for what in ("encode", "decode"):
        print("  %-7s %-12s %7.0f M values/s" % (what, "baseline", statistics.median(base[what])))
        for k in kernels:
            print("  %-7s %-12s %7.0f M values/s   %s"
                  % (what, k, statistics.median(rates[k][what]), ratios_text(rates[k][what], base[what])), flush=True)


def main():
    a = arguments(__doc__)
    kernels = run(os.path.join(a.tools, "codec_bench"), "--kernels").split()
    with folders(a, a.events) as (work, folder):
        for case in make_cases(work, a.source):
            measure(case, a.tools, kernels, a.pairs, folder)
    return 0


if __name__ == "__main__":
    finish(main)
