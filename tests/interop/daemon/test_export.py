"""Summaries of a real recording: what the exporter wrote, read by the daf command, against numpy on the columns."""
import json
import os
import subprocess
import sys
import tempfile

import require

numpy = require.module("numpy")

SOURCE = os.environ["PHOTOND_SOURCE"]
COLUMNS = os.path.join(SOURCE, "tests", "data", "hazelnut")


class Export:
    def __init__(self, path):
        self.path = path

    def get(self, *what):
        with tempfile.TemporaryFile() as out:
            subprocess.run([require.built("daf"), "get", self.path, *what, "--format", "npy"], stdout=out, check=True)
            out.seek(0)
            return numpy.load(out)

    def scalar(self, name):
        return json.loads(subprocess.run([require.built("daf"), "get", self.path, "scalar", name, "--format", "json"],
                                         stdout=subprocess.PIPE, check=True).stdout)

    def axis(self, name):
        return subprocess.run([require.built("daf"), "get", self.path, "axis", name, "--format", "text"],
                              stdout=subprocess.PIPE, check=True, text=True).stdout.split()


def check(name, got, expected):
    if not numpy.array_equal(got, expected):
        sys.exit("%s differs:\n%r\nexpected\n%r" % (name, got, expected))


def check_image(export, x, y, bits, side):
    px, py = x.astype(numpy.int64) * side >> bits, y.astype(numpy.int64) * side >> bits
    inside = (x < 1 << bits) & (y < 1 << bits)
    expected = numpy.zeros((side, side), numpy.uint32)
    numpy.add.at(expected, (py[inside], px[inside]), 1)
    image = export.get("matrix", "y_pixel", "x_pixel", "intensity")
    check("dtype of the image", image.dtype, numpy.dtype("uint32"))
    check("image", image, expected)
    outside = export.scalar("outside_image")
    check("outside_image", outside, int((~inside).sum()))
    check("inside and outside of the image", int(image.sum()) + outside, len(x))
    edges = [str(i * (1 << bits) // side) for i in range(side)]
    check("x_pixel", export.axis("x_pixel"), edges)
    check("y_pixel", export.axis("y_pixel"), edges)


def check_decay(export, dt, bits, channel_ps):
    counts = export.get("vector", "dt_bin", "counts")
    inside = dt[dt < 1 << bits]
    check("decay", counts, numpy.bincount(inside, minlength=1 << bits))
    outside = export.scalar("outside_decay")
    check("outside_decay", outside, len(dt) - len(inside))
    check("inside and outside of the decay", int(counts.sum()) + outside, len(dt))
    check("time_ps", export.get("vector", "dt_bin", "time_ps"), numpy.arange(1 << bits) * channel_ps)
    check("dt_bin", export.axis("dt_bin"), [str(i) for i in range(1 << bits)])


def check_seconds(export, ms, photons):
    counts = export.get("vector", "second", "counts")
    bounds = numpy.append(ms[::1000], photons)
    bounds[0] = 0
    check("second", counts, numpy.diff(bounds))
    check("photons by second", int(counts.sum()) + export.scalar("outside_second"), photons)
    check("axis second", export.axis("second"), [str(i) for i in range(len(counts))])


def write_columns(folder, columns):
    for name, values in columns.items():
        values.tofile(os.path.join(folder, name))
    return folder


def check_case(columns_folder, x, y, dt, ms, bits, tac_bits, channel, pixels):
    with tempfile.TemporaryDirectory(prefix="photond-export.") as data:
        out = subprocess.run(
            [os.path.join(os.environ["PHOTOND_BIN"], "..", "tests", "daemon_export_columns"), data, "r", columns_folder,
             str(pixels), "/photons/PositionBits=%d" % bits, "/photons/TacBits=%d" % tac_bits,
             "/photons/TacChannel=" + channel, "Comment=two\nlines"],
            stdout=subprocess.PIPE, check=True, text=True).stdout
        print(out, end="")
        export = Export(os.path.join(data, "r.daf"))
        side = min(pixels, 1 << bits)
        check_image(export, x, y, bits, side)
        check_decay(export, dt, tac_bits, float(channel))
        check_seconds(export, ms, len(x))
        for name, expected in (("name", "r"), ("export", 3), ("photons", len(x)), ("items.photons.x", len(x)),
                               ("items.photons.ms", len(ms)), ("duration_s", len(ms) / 1000), ("second_width_s", 1.0),
                               ("photons.TacChannel", channel), ("Comment", "two\nlines"), ("attributes_skipped", 0)):
            check("scalar " + name, export.scalar(name), expected)
        return export


def recording(pixels):
    with open(os.path.join(COLUMNS, "manifest.json")) as f:
        manifest = json.load(f)
    x, y, dt = (numpy.fromfile(os.path.join(COLUMNS, n + ".u16"), "<u2") for n in ("x", "y", "dt"))
    ms = numpy.fromfile(os.path.join(COLUMNS, "ms.u64"), "<u8")
    check_case(COLUMNS, x, y, dt, ms, manifest["position_bits"], manifest["tac_bits"], str(manifest["tac_channel_ps"]),
               pixels)


def made_up():
    """Values past the axes, some seconds, and fewer positions than pixels."""
    random = numpy.random.default_rng(1)
    n, n_ms = 100000, 7321
    x, y = (random.integers(0, 140, n, "u2") for _ in range(2))
    dt = random.integers(0, 5000, n, "u2")
    ms = numpy.sort(random.integers(0, n, n_ms, "u8"))
    ms[0] = 0
    with tempfile.TemporaryDirectory(prefix="photond-export.") as folder:
        write_columns(folder, {"x.u16": x, "y.u16": y, "dt.u16": dt, "ms.u64": ms})
        check_case(folder, x, y, dt, ms, 7, 12, "12.25", 512)


recording(512)
recording(1024)
recording(4096)
made_up()
