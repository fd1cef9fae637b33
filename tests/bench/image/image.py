"""d7 image of a large file beside the baseline's reader, as ratios of pairs measured in one run.

A pair is: the baseline's `read` of x and y with 2 threads, which decodes and adds up, and then whole runs of `d7 image` (of a
file that holds dt too) and of `d7 decay`, from start to end, results written. The medians of the pairs count. Only wrong counts
make the exit status 1.
"""
import os
import statistics
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from pairs import arguments, finish, noise_columns, ratios_text, run  # noqa: E402

PIXELS = (512, 2048)


def baseline(tools, what, folder, repeat, path):
    text = run(os.path.join(tools, "baseline"), what, folder, str(repeat), path, "2", "x.u16", "y.u16")
    return float(text.split("Mevents/s=")[1].split()[0]) * 1e6


class Columns:
    def __init__(self, folder, repeat):
        self.folder, self.repeat = folder, repeat
        columns = [np.fromfile(os.path.join(folder, c + ".u16"), "<u2") for c in ("x", "y", "dt")]
        self.x, self.y, self.dt = [c[:len(c) // 8192 * 8192] for c in columns]  # whole pages, as both writers take
        self.photons = len(self.x) * repeat

    def image(self, pixels):
        place = (self.y.astype("u4") * pixels >> 12) * pixels + (self.x.astype("u4") * pixels >> 12)
        return np.bincount(place, minlength=pixels * pixels).reshape(pixels, pixels) * self.repeat


def timed(command, out):
    begin = time.monotonic()
    run(*command, "-o", out, "--overwrite")
    return time.monotonic() - begin


def cases(d7, path, columns):
    """Name, command, and what the result must be."""
    for pixels in PIXELS:
        yield ("image, %d pixels" % pixels, [d7, "image", path, "--pixels", str(pixels)],
               lambda got, wanted=columns.image(pixels): (got == wanted).all())
    decay = np.bincount(columns.dt, minlength=4096) * columns.repeat
    yield "decay", [d7, "decay", path], lambda got: (got[:, 2] == decay).all()


def measure(a, columns, path, base_path, out):
    measured = list(cases(os.path.join(a.bin, "d7"), path, columns))
    base, rates = [], {name: [] for name, _, _ in measured}
    for _ in range(a.pairs):
        base.append(baseline(a.tools, "read", columns.folder, columns.repeat, base_path))
        for name, command, right in measured:
            rates[name].append(columns.photons / timed(command, out))
            if not right(np.load(out)):
                print("WRONG RESULT: %s" % name, file=sys.stderr)
                return 1
    print("  %-20s %7.0f M photons/s" % ("baseline, reading", statistics.median(base) / 1e6))
    for name, _, _ in measured:
        print("  %-20s %7.0f M photons/s   %s" % (name, statistics.median(rates[name]) / 1e6, ratios_text(rates[name], base)),
              flush=True)
    return 0


def main():
    a = arguments(__doc__, ("--bin", "folder with d7"))
    with noise_columns(a) as (noise, repeat, folder):
        columns = Columns(noise, repeat)
        base_path, path = os.path.join(folder, "baseline.photons"), os.path.join(folder, "d7.photons")
        baseline(a.tools, "write", columns.folder, columns.repeat, base_path)
        run(os.path.join(a.tools, "read_bench"), "write", path, str(columns.repeat),
            *["/photons/%s=%s" % (c, os.path.join(columns.folder, c + ".u16")) for c in ("x", "y", "dt")])
        print("%.2f GB (noise columns), %d M photons, %d cores" % (os.path.getsize(path) / 1e9, columns.photons // 10 ** 6,
                                                                  os.cpu_count()), flush=True)
        return measure(a, columns, path, base_path, os.path.join(folder, "out.npy"))


if __name__ == "__main__":
    finish(main)
