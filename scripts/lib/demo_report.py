"""Shows an exported run (image, decay) and holds every count against the recording's manifest. Standard library only."""
import argparse
import array
import json
import os
import struct
import subprocess
import sys
import zlib

SHADES = " .:-=+*#%@"


class Tools:
    def __init__(self, folder, photons, repository):
        self.folder, self.photons, self.repository = folder, photons, repository

    def run(self, name, *arguments):
        return subprocess.run([os.path.join(self.folder, name), *arguments], check=True, stdout=subprocess.PIPE).stdout

    def get(self, code, *what):
        values = array.array(code)
        values.frombytes(self.run("daf", "get", self.repository, *what, "--format", "raw"))
        if sys.byteorder == "big":
            values.byteswap()
        return values

    def numbers(self, parse, *what):
        return [parse(line) for line in self.run("daf", "get", self.repository, *what, "--format", "text").split()]

    def scalar(self, name):
        return json.loads(self.run("daf", "get", self.repository, "scalar", name, "--format", "json"))

    def column(self, code, dataset):
        values = array.array(code)
        values.frombytes(self.run("d7", "cat", self.photons, dataset, "--format", "raw"))
        if sys.byteorder == "big":
            values.byteswap()
        return values


def rows_of(image, side):
    """The exported matrix is column-major (y, x): its rows, from y = 0 on."""
    return [image[y::side] for y in range(side)]


def write_png(path, rows):
    top = max(max(r) for r in rows) or 1
    lines = b"".join(b"\0" + bytes(min(255, 255 * v // top) for v in r) for r in rows)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(lines, 6)) + chunk(b"IEND", b""))


def draw_image(rows, width=72):
    step = max(1, len(rows) // width)
    cells = [[sum(sum(r[x:x + step]) for r in rows[y:y + 2 * step]) for x in range(0, len(rows[0]), step)]
             for y in range(0, len(rows), 2 * step)]
    top = max(max(line) for line in cells) or 1
    while len(cells) > 1 and not any(cells[-1]):
        cells.pop()
    for line in cells:
        print("  " + "".join(SHADES[min(len(SHADES) - 1, v * len(SHADES) // (top + 1))] for v in line).rstrip())


def draw_decay(counts, time_ps, lines=16, width=60):
    used = max((i for i, c in enumerate(counts) if c), default=0) + 1
    step = -(-used // lines)
    sums = [sum(counts[i:i + step]) for i in range(0, used, step)]
    top = max(sums) or 1
    for i, s in enumerate(sums):
        print("  %7.2f ns %9d %s" % (time_ps[i * step] / 1000, s, "#" * (s * width // top)))


class Check:
    def __init__(self):
        self.wrong = 0

    def equal(self, what, got, wanted):
        same = got == wanted
        self.wrong += not same
        shown = got if isinstance(got, (int, float, str)) else "%d values" % len(got)
        print("  %-38s %s%s" % (what, shown, "" if same else "   WRONG: the manifest says %s" % (wanted,)))


def check_counts(tools, manifest, rows, counts, seconds):
    check = Check()
    x, y = tools.column("H", "/photons/x"), tools.column("H", "/photons/y")
    dt, ms = tools.column("H", "/photons/dt"), tools.column("Q", "/photons/ms")
    check.equal("photons in the file", len(x), manifest["photons"])
    check.equal("milliseconds in the file", len(ms), manifest["milliseconds"])
    for name, column in (("x", x), ("y", y), ("dt", dt)):
        check.equal("sum of /photons/%s" % name, sum(column), manifest["sum_" + name])
    check.equal("photons covered by the export", int(tools.scalar("photons")), manifest["photons"])
    check.equal("photons in the image", sum(map(sum, rows)) + int(tools.scalar("outside_image")), manifest["photons"])
    check.equal("photons in the decay", sum(counts) + int(tools.scalar("outside_decay")), manifest["photons"])
    check.equal("photons over the seconds", sum(seconds), manifest["photons"])
    check.equal("decay", counts, manifest["decay_counts"])
    step = len(rows) // 64
    check.equal("row sums of the image, 64 rows",
                [sum(sum(r) for r in rows[i:i + step]) for i in range(0, len(rows), step)],
                manifest["image_64x64_row_sums"])
    return check.wrong


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--bin", required=True)
    p.add_argument("--manifest", required=True)
    p.add_argument("--png")
    p.add_argument("photons")
    p.add_argument("repository")
    a = p.parse_args()
    tools = Tools(a.bin, a.photons, a.repository)
    with open(a.manifest) as f:
        manifest = json.load(f)
    side = len(tools.run("daf", "get", a.repository, "axis", "y_pixel").splitlines())
    rows = rows_of(tools.get("I", "matrix", "y_pixel", "x_pixel", "intensity"), side)
    counts = tools.numbers(int, "vector", "dt_bin", "counts")
    time_ps = tools.numbers(float, "vector", "dt_bin", "time_ps")
    seconds = tools.numbers(int, "vector", "second", "counts")
    draw_image(rows)
    if a.png:
        write_png(a.png, rows)
        print("  (%d x %d pixels as a picture: %s)" % (side, side, a.png))
    draw_decay(counts, time_ps)
    wrong = check_counts(tools, manifest, rows, counts, seconds)
    print("  all counts match the manifest" if not wrong else "  %d counts do not match" % wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
