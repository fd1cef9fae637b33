"""d7 image of a large file beside the baseline's reader, as ratios of pairs measured in one run.

A pair is: the baseline's `read` of x and y with 2 threads, which decodes and adds up, and then whole runs of `d7 image` (of a
file that holds dt too) and of `d7 decay`, from start to end, results written. The medians of the pairs count. Only wrong counts
make the exit status 1.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

PIXELS = (512, 2048)


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


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
    todo = list(cases(os.path.join(a.bin, "d7"), path, columns))
    base, rates = [], {name: [] for name, _, _ in todo}
    for _ in range(a.pairs):
        base.append(baseline(a.tools, "read", columns.folder, columns.repeat, base_path))
        for name, command, right in todo:
            rates[name].append(columns.photons / timed(command, out))
            if not right(np.load(out)):
                print("WRONG RESULT: %s" % name, file=sys.stderr)
                return 1
    print("  %-20s %7.0f M photons/s" % ("baseline, reading", statistics.median(base) / 1e6))
    for name, _, _ in todo:
        ratios = [r / b for r, b in zip(rates[name], base)]
        print("  %-20s %7.0f M photons/s   ratio %5.1f (of pairs: %.1f to %.1f)"
              % (name, statistics.median(rates[name]) / 1e6, statistics.median(ratios), min(ratios), max(ratios)), flush=True)
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", required=True, help="folder with d7")
    p.add_argument("--tools", required=True, help="folder with baseline and read_bench")
    p.add_argument("--source", help="not used: noise columns only")
    p.add_argument("--folder", required=True, help="where the files are written")
    p.add_argument("--events", type=int, required=True, help="photons in the file")
    p.add_argument("--pairs", type=int, required=True)
    a = p.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    work, folder = tempfile.mkdtemp(prefix="photond-bench."), tempfile.mkdtemp(prefix="photond-bench.", dir=a.folder)
    try:
        once = min(a.events, 4000000)
        run(sys.executable, os.path.join(here, "..", "baseline", "make_columns.py"), work, str(once))
        columns = Columns(os.path.join(work, "noise"), max(1, round(a.events / once)))
        base_path, path = os.path.join(folder, "baseline.photons"), os.path.join(folder, "d7.photons")
        baseline(a.tools, "write", columns.folder, columns.repeat, base_path)
        run(os.path.join(a.tools, "read_bench"), "write", path, str(columns.repeat),
            *["/photons/%s=%s" % (c, os.path.join(columns.folder, c + ".u16")) for c in ("x", "y", "dt")])
        print("%.2f GB (noise columns), %d M photons, %d cores" % (os.path.getsize(path) / 1e9, columns.photons // 10 ** 6,
                                                                  os.cpu_count()), flush=True)
        return measure(a, columns, path, base_path, os.path.join(folder, "out.npy"))
    except subprocess.CalledProcessError as e:
        print(e, file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(work)
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
