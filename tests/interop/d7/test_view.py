"""d7 image, decay and rate: counts equal to numpy's of the same columns, pictures that show them, ranges, damage, results."""
import io
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import require

np = require.module("numpy")

import d7ref
from d7run import D7, d7
from d7script import PROGRAM, hexed

HAZELNUT = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "data", "hazelnut")
TYPE_OF = {"u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "i2": "int16", "i8": "int64", "f8": "double"}


def write(path, columns, attributes=(), close=True, page=16384):
    """columns: [(name, array)]"""
    lines = ["values %s.values" % path, "bytes %d" % page]
    lines += ["dataset %s %s" % (TYPE_OF[a.dtype.str[1:]], name) for name, a in columns]
    lines += ["early %s %s" % (hexed(k), hexed(v)) for k, v in dict(attributes).items()]
    lines.append("create " + path)
    with open(path + ".values", "wb") as f:
        for i, (_, a) in enumerate(columns):
            lines.append("append %d %d" % (i, len(a)))
            f.write(a.tobytes())
    lines.append("close" if close else "flush\nabandon")
    subprocess.run([PROGRAM], input="\n".join(lines).encode() + b"\n", check=True)
    os.unlink(path + ".values")


def load(path_or_bytes):
    return np.load(io.BytesIO(path_or_bytes) if isinstance(path_or_bytes, bytes) else path_or_bytes)


def table(text):
    """A CSV: names, and rows of text."""
    lines = text.decode().splitlines()
    return lines[0].split(","), [line.split(",") for line in lines[1:]]


# ---- a PNG decoder of our own ----

def png_chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack_from(">I", data, at + 8 + length)[0]
        yield kind, body
        at += 12 + length


class Picture:
    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        packed, self.texts = b"", {}
        for kind, body in png_chunks(data):
            if kind == b"IHDR":
                width, height, depth, color = struct.unpack_from(">IIBB", body)
                assert (depth, color) == (8, 2)
            elif kind == b"IDAT":
                packed += body
            elif kind == b"iTXt":
                key, rest = body.split(b"\0", 1)
                self.texts[key.decode()] = rest.split(b"\0", 4)[4].decode()
        assert kind == b"IEND"
        raw = np.frombuffer(zlib.decompress(packed), "u1").reshape(height, 1 + 3 * width)
        assert (raw[:, 0] == 0).all()  # rows as they are, without filters
        self.dots = raw[:, 1:].reshape(height, width, 3)
        self.area = [int(n) for n in self.texts["d7.plot_area"].split()]

    def inside(self):
        x, y, width, height = self.area
        return self.dots[y:y + height, x:x + width]


def picture(folder, *arguments, code=0):
    path = os.path.join(folder, "picture.png")
    d7(*arguments, "-o", path, "--overwrite", code=code)
    return Picture(path)


# ---- the recording ----

class Hazelnut:
    def __init__(self, folder):
        self.path = os.path.join(folder, "hazelnut.photons")
        self.x, self.y, self.dt = [np.fromfile(os.path.join(HAZELNUT, c + ".u16"), "<u2") for c in ("x", "y", "dt")]
        self.ms = np.fromfile(os.path.join(HAZELNUT, "ms.u64"), "<u8")
        self.n = len(self.x)
        self.columns = [("/photons/x", self.x), ("/photons/y", self.y), ("/photons/dt", self.dt), ("/photons/ms", self.ms)]
        self.attributes = {"/photons/PositionBits": "12", "/photons/TacBits": "8", "/photons/TacChannel": "96.96969697"}
        write(self.path, self.columns, self.attributes)

    def counts(self, pixels, start=0, end=None):
        image = np.zeros((pixels, pixels), "u8")
        place = [(c[start:end].astype("u4") * pixels) >> 12 for c in (self.y, self.x)]
        np.add.at(image, tuple(place), 1)
        return image


def image_numbers(h, folder):
    out = os.path.join(folder, "image.npy")
    for pixels in (1, 2, 64, 512, 2048):
        d7("image", h.path, "-o", out, "--pixels", str(pixels), "--overwrite")
        got = load(out)
        assert got.dtype == np.dtype("<u4") and (got == h.counts(pixels)).all(), pixels
    lines = d7("image", h.path, "-o", "-", "--pixels", "64").decode().splitlines()
    assert (np.array([[int(v) for v in line.split(",")] for line in lines]) == h.counts(64)).all()
    assert (load(d7("image", h.path, "-o", "-", "--format", "npy")) == h.counts(512)).all()
    for start, end in ((0, 0), (0, 1), (8191, 8193), (12345, 150000), (199999, 200000), (100000, 10 ** 12)):
        got = d7("image", h.path, "-o", "-", "--format", "npy", "--from", str(start), "--to", str(end))
        assert (load(got) == h.counts(512, start, end)).all(), (start, end)
    got = load(d7("image", h.path, "-o", "-", "--format", "npy", "--from", "60ms", "--to", "0.075s"))
    assert (got == h.counts(512, int(h.ms[60]), int(h.ms[75]))).all()
    last = len(h.ms) - 1
    got = load(d7("image", h.path, "-o", "-", "--format", "npy", "--from", "%dms" % last))
    assert (got == h.counts(512, int(h.ms[last]), 10 ** 12)).all()
    made = os.path.join(folder, "past.csv")
    for command in ("image", "decay", "rate", "export", "copy"):
        d7(command, h.path, *([made] if command == "copy" else ["-o", made]), "--from", "%dms" % (last + 1), code=2)
        assert "--from is a time past the last of the" in d7.err and not os.path.exists(made), (command, d7.err)


def shade(counts, top):
    """Grey of counts, by the definition."""
    return np.floor(np.minimum(counts / top, 1) * 255 + 0.5).astype("u1")


def image_pictures(h, folder):
    for pixels in (64, 512):
        counts = h.counts(pixels)
        dots = 512 // pixels
        for flags, shown in (([], counts[:, ::-1]), (["--no-flip"], counts)):
            p = picture(folder, "image", h.path, "--pixels", str(pixels), "--colormap", "grey", "--max", "40", *flags)
            assert p.area[2:] == [512, 512] and p.texts["Title"] == "hazelnut.photons"
            wanted = np.kron(shade(shown, 40), np.ones((dots, dots), "u1"))
            assert (p.inside() == wanted[:, :, None]).all(), (pixels, flags)
    p = picture(folder, "image", h.path, "--pixels", "64", "--colormap", "grey", "--max", "100%", "--no-flip")
    assert (p.inside()[::8, ::8, 0] == shade(h.counts(64), h.counts(64).max())).all()
    # By default 99.9 % of the lit pixels are not cut.
    p = picture(folder, "image", h.path, "--pixels", "64", "--colormap", "grey", "--no-flip")
    counts = h.counts(64)
    lit = np.sort(counts[counts > 0])
    top = lit[int(np.ceil(len(lit) * 0.999)) - 1]
    assert (p.inside()[::8, ::8, 0] == shade(counts, top)).all()
    # The same count has the same color, and a higher one another, in every map.
    for extra in (["--colormap", "inferno"], ["--colormap", "viridis"], ["--colormap", "hot"], ["--log"]):
        p = picture(folder, "image", h.path, "--pixels", "64", "--max", "100%", "--no-flip", *extra)
        dots = p.inside()[::8, ::8].reshape(-1, 3)
        flat = counts.reshape(-1)
        assert len({tuple(d) for d in dots[flat == 0]}) == 1
        assert len({tuple(d) for d in dots[flat == flat.max()]}) == 1
        assert not (dots[flat == 0][0] == dots[flat == flat.max()][0]).all()
    large = picture(folder, "image", h.path, "--pixels", "1024")
    assert large.area[2:] == [1024, 1024]


def decays(h, folder):
    wanted = np.bincount(h.dt, minlength=256)
    names, rows = table(d7("decay", h.path, "-o", "-"))
    assert names == ["channel", "time_ps", "count"]
    assert [int(r[0]) for r in rows] == list(range(256)) and [int(r[2]) for r in rows] == list(wanted)
    assert all(abs(float(r[1]) - i * 96.96969697) < 1e-6 for i, r in enumerate(rows))
    out = load(d7("decay", h.path, "-o", "-", "--format", "npy", "--bins", "32"))
    assert out.dtype == np.dtype("<f8") and (out[:, 0] == np.arange(32) * 8).all()
    assert (out[:, 2] == wanted.reshape(32, 8).sum(axis=1)).all()
    assert np.allclose(out[:, 1], np.arange(32) * 8 * 96.96969697)
    part = load(d7("decay", h.path, "-o", "-", "--format", "npy", "--from", "1000", "--to", "9000"))
    assert (part[:, 2] == np.bincount(h.dt[1000:9000], minlength=256)).all()
    # The curve is highest where the counts are.
    p = picture(folder, "decay", h.path, "--linear")
    blue = (p.inside() == (24, 78, 150)).all(axis=2)
    assert blue.any(axis=0)[:-1].mean() > 0.9
    top_x = np.argwhere(blue.any(axis=1))[0][0]
    shown = p.area[2] / (wanted.nonzero()[0][-1] + 1) / 1.04
    assert abs(np.argwhere(blue[top_x]).mean() / shown - wanted.argmax() - 0.5) < 1.5
    for flags in ([], ["--log"], ["--channels"], ["--bins", "1"], ["--from", "5", "--to", "5"]):
        picture(folder, "decay", h.path, *flags)


def rates(h, folder):
    per_ms = np.diff(np.append(h.ms, h.n))
    names, rows = table(d7("rate", h.path, "-o", "-", "--bin", "1ms"))
    assert names == ["time_s", "count"] and [int(r[1]) for r in rows] == list(per_ms)
    assert [r[0] for r in rows[:3] + rows[-1:]] == ["0", "0.001", "0.002", "0.099"]
    for bin_ms in (7, 10, 100, 1000):
        out = load(d7("rate", h.path, "-o", "-", "--format", "npy", "--bin", "%dms" % bin_ms))
        wanted = [per_ms[i:i + bin_ms].sum() for i in range(0, len(per_ms), bin_ms)]
        assert list(out[:, 1]) == wanted and np.allclose(out[:, 0], np.arange(len(wanted)) * bin_ms / 1000)
    out = load(d7("rate", h.path, "-o", "-", "--format", "npy", "--from", "60ms", "--to", "75ms", "--bin", "5ms"))
    assert list(out[:, 1]) == [per_ms[i:i + 5].sum() for i in (60, 65, 70)] and abs(out[0, 0] - 0.06) < 1e-12
    out = load(d7("rate", h.path, "-o", "-", "--format", "npy", "--from", "100000", "--to", "150001", "--bin", "1ms"))
    assert out[:, 1].sum() == 50001
    assert out[0, 1] < per_ms[np.searchsorted(h.ms, 100000, "right") - 1]
    d7("rate", h.path, "-o", "-", "--bin", "1500us", code=2)
    assert "multiple of 1ms" in d7.err
    for flags in ([], ["--bin", "1s"], ["--bin", "7ms"], ["--from", "9", "--to", "9"]):
        picture(folder, "rate", h.path, *flags)


# ---- other files ----

def odd_positions(folder):
    """Types and values that are not the usual ones; photons outside are counted and said."""
    path = os.path.join(folder, "odd.photons")
    r = np.random.default_rng(7)
    n = 30000
    for kind in ("<u2", "<i8", "<u4", "|u1", "<i2"):
        top = 250 if kind == "|u1" else 5000
        x, y = [r.integers(0 if kind[1] == "u" else -500, top, n).astype(kind) for _ in range(2)]
        bits = 7 if kind == "|u1" else 12
        write(path, [("/photons/x", x), ("/photons/y", y)], {"/photons/PositionBits": str(bits)})
        good = (x >= 0) & (y >= 0) & (x.astype("i8") < 1 << bits) & (y.astype("i8") < 1 << bits)
        wanted = np.zeros((64, 64), "u8")
        np.add.at(wanted, (y[good].astype("i8") * 64 >> bits, x[good].astype("i8") * 64 >> bits), 1)
        assert (load(d7("image", path, "-o", "-", "--format", "npy", "--pixels", "64")) == wanted).all(), kind
        assert "%d of %d photons are outside" % ((~good).sum(), n) in d7.err, d7.err
        os.unlink(path)
    write(path, [("/photons/x", x.astype("<u2")), ("/photons/y", y.astype("<f8"))])
    d7("image", path, "-o", "-", code=2)
    assert "type double" in d7.err
    os.unlink(path)
    # Counts that wrap 16 bits; no PositionBits: 12, with a warning.
    zeros = np.zeros(300000, "<u2")
    write(path, [("/photons/x", zeros), ("/photons/y", zeros), ("/photons/dt", zeros + 9)])
    got = load(d7("image", path, "-o", "-", "--format", "npy", "--pixels", "8"))
    assert got[0, 0] == 300000 and got.sum() == 300000 and "PositionBits is missing; 12" in d7.err
    names, rows = table(d7("decay", path, "-o", "-"))
    assert len(rows) == 4096 and rows[9] == ["9", "", "300000"] and "TacChannel" in d7.err and "TacBits" in d7.err
    assert np.isnan(load(d7("decay", path, "-o", "-", "--format", "npy"))[:, 1]).all()
    picture(folder, "decay", path)
    picture(folder, "image", path)
    d7("image", path, "-o", "-", "--pixels", "8192", code=2)
    d7("rate", path, "-o", "-", code=2)
    assert "times cannot be told" in d7.err


def dual_stamps(folder):
    path = os.path.join(folder, "dual.photons")
    r = np.random.default_rng(8)
    n = 100000
    start = np.cumsum(r.exponential(1e6, n)).astype("<u8") + np.uint64(10 ** 9)
    delay = (2000 + r.exponential(3000, n)).astype("i8")
    delay[7::20000] = 10 ** 8
    for sign in (1, -1):
        stop = (start.astype("i8") + sign * delay).astype("<u8")
        write(path, [("/start/time", start), ("/stop/time", stop)])
        out = load(d7("decay", path, "-o", "-", "--format", "npy"))
        width = out[1, 1] - out[0, 1]
        assert 1 <= width <= 100 and len(out) > 500
        place = (sign * delay - int(out[0, 1])) // int(width)
        good = (place >= 0) & (place < len(out))
        assert (out[:, 2] == np.bincount(place[good], minlength=len(out))).all()
        lost = n - int(out[:, 2].sum())
        assert 5 <= lost < n * 0.02 and "%d of %d photons are outside" % (lost, n) in d7.err
        picture(folder, "decay", path)
        rate = load(d7("rate", path, "-o", "-", "--format", "npy"))
        assert abs(rate[:, 1].sum() - n) < 3
        os.unlink(path)
    write(path, [("/start/time", start)])
    d7("decay", path, "-o", "-", code=2)
    assert "neither micro times (/photons/dt) nor pairs" in d7.err


def stamps(folder):
    path = os.path.join(folder, "tags.photons")
    r = np.random.default_rng(9)
    n = 50000
    time_ps = np.cumsum(r.exponential(1e8, n)).astype("<u8") + np.uint64(123456789)
    channel = r.integers(0, 4, n).astype("u1")
    write(path, [("/tags/channel", channel), ("/tags/time", time_ps)])
    since = (time_ps - time_ps[0]).astype("i8")
    bin_ps = 10 ** 11
    out = load(d7("rate", path, "-o", "-", "--format", "npy", "--bin", "100ms"))
    assert (out[:, 1] == np.bincount(since // bin_ps)).all() and np.allclose(out[:, 0], np.arange(len(out)) * 0.1)
    names, rows = table(d7("rate", path, "-o", "-", "--bin", "100ms", "--channel", "1", "--channel", "3"))
    assert names == ["time_s", "count_1", "count_3"]
    for k, c in ((1, 1), (2, 3)):
        assert [int(row[k]) for row in rows] == list(np.bincount(since[channel == c] // bin_ps, minlength=len(rows)))
    part = load(d7("rate", path, "-o", "-", "--format", "npy", "--bin", "1s", "--from", "1s", "--to", "3s"))
    assert list(part[:, 0]) == [1, 2]
    d7("rate", path, "-o", "-", "--bin", "1s", "--from", "1h", code=2)
    assert "--from is a time past the last of the 50000 items" in d7.err
    assert list(part[:, 1]) == [((since >= s * 10 ** 12) & (since < (s + 1) * 10 ** 12)).sum() for s in (1, 2)]
    picture(folder, "rate", path, "--channel", "0", "--channel", "2")
    picture(folder, "rate", path)
    d7("image", path, "-o", "-", code=2)
    assert "/photons/x" in d7.err
    os.unlink(path)
    # Periods of a timer.
    aat = np.cumsum(r.integers(1, 1000, n)).astype("<u8")
    write(path, [("/photons/aat", aat), ("/photons/dt", (aat % 256).astype("<u2"))], {"/photons/TimerFrequency": "1e6"})
    out = load(d7("rate", path, "-o", "-", "--format", "npy", "--bin", "1s"))
    assert (out[:, 1] == np.bincount((aat - aat[0]).astype("i8") // 10 ** 6)).all()


def damage(h, folder):
    """A damaged page: its rows are left out, the exit status is 1, and what is left is right."""
    path = os.path.join(folder, "damaged.photons")
    with open(h.path, "rb") as f:
        data = bytearray(f.read())
    offset = [at for at, dataset, _ in d7ref.File(bytes(data)).pages if dataset == 0][3] + 200
    offset += 200 if offset % d7ref.BLOCK > d7ref.BLOCK - 100 else 0  # within a fragment
    data[offset:offset + 60] = b"\xff" * 60
    with open(path, "wb") as f:
        f.write(data)
    got = load(d7("image", path, "-o", "-", "--format", "npy", code=1))
    assert (got == h.counts(512, 0, 3 * 8192) + h.counts(512, 4 * 8192)).all()
    assert "8192 items were left out" in d7.err and "BAD_PAGE" in d7.err
    d7("decay", path, "-o", "-")  # dt is whole
    picture(folder, "image", path, code=1)


def unequal_ends(h, folder):
    """Rates by milliseconds count photons as far as all columns go, and say what they leave out, and why."""
    path = os.path.join(folder, "unequal.photons")
    x, ms = np.arange(100, dtype="<u2"), np.array([0, 50], "<u8")
    write(path, [("/photons/x", x), ("/photons/y", x[:90]), ("/photons/ms", ms)])
    assert [int(r[1]) for r in table(d7("rate", path, "-o", "-", "--bin", "1ms"))[1]] == [50, 40]
    assert "last 10 photons are not counted" in d7.err and "BAD_PAGE" not in d7.err
    d7("rate", path, "-o", "-", "--to", "80")
    assert "not counted" not in d7.err
    os.unlink(path)
    write(path, [("/photons/x", x), ("/photons/y", x), ("/photons/ms", ms)])
    d7("rate", path, "-o", "-")
    assert d7.err == ""
    os.unlink(path)
    write(path, [("/photons/x", x), ("/photons/y", x), ("/photons/ms", np.array([0, 101], "<u8"))])
    d7("rate", path, "-o", "-", code=1)
    assert "counts more photons than there are" in d7.err
    os.unlink(path)
    write(path, [("/other", x), ("/photons/ms", np.array([0, 101], "<u8"))])
    d7("rate", path, "-o", "-")
    os.unlink(path)
    write(path, [("/photons/x", x), ("/photons/y", x), ("/photons/ms", np.array([0, 50, 100], "<u8"))])
    d7("rate", path, "-o", "-")
    assert d7.err == ""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    offset = [at for at, dataset, _ in d7ref.File(bytes(data)).pages if dataset == 1][0] + 20
    data[offset:offset + 20] = b"\xff" * 20
    with open(path, "wb") as f:
        f.write(data)
    d7("rate", path, "-o", "-", code=1)
    assert "are not counted" in d7.err and "BAD_PAGE" in d7.err and "/photons/y" in d7.err, d7.err


def open_files(h, folder):
    """A file that was never closed: whole pages."""
    path = os.path.join(folder, "open.photons")
    write(path, h.columns[:3], h.attributes, close=False)
    whole = h.n // 8192 * 8192
    assert (load(d7("image", path, "-o", "-", "--format", "npy")) == h.counts(512, 0, whole)).all()
    assert [int(r[2]) for r in table(d7("decay", path, "-o", "-"))[1]] == list(np.bincount(h.dt[:whole], minlength=256))
    os.unlink(path)
    # Milliseconds that are not known to be whole: named, not taken for a burst.
    write(path, h.columns, h.attributes, close=False, page=128)
    known = len(h.ms) // 16 * 16
    rows = table(d7("rate", path, "-o", "-", "--bin", "1ms"))[1]
    per_ms = np.diff(h.ms[:known])
    assert [int(r[1]) for r in rows[:known - 1]] == list(per_ms) and sum(int(r[1]) for r in rows) == per_ms.sum()
    assert "have no place in time" in d7.err


def results(h, folder):
    out = os.path.join(folder, "result.csv")
    d7("decay", h.path, "-o", out)
    with open(out) as f:
        first = f.read()
    d7("decay", h.path, "-o", out, "--bins", "2", code=2)
    assert "exists" in d7.err
    with open(out) as f:
        assert f.read() == first
    d7("decay", h.path, "-o", out, "--bins", "2", "--overwrite")
    with open(out) as f:
        assert len(f.readlines()) == 3
    before = set(os.listdir(folder))
    for arguments in (["image", h.path], ["image", h.path, "-o", out + ".tiff"], ["image", h.path, "-o", folder],
                      ["image", h.path, "-o", "-", "--format", "tiff"], ["image", h.path, "-o", "-", "--pixels", "100"],
                      ["image", h.path, "-o", "-", "--pixels", "0"], ["image", h.path, "-o", "-", "--colormap", "jet"],
                      ["image", h.path, "-o", "-", "--max", "0"], ["image", h.path, "-o", "-", "--max", "101%"],
                      ["image", h.path, "-o", "-", "--from", "x"], ["image", h.path, "-o", "-", "--from", "9", "--to", "3"],
                      ["image", h.path + "x", "-o", "-"], ["decay", h.path, "-o", "-", "--bins", "3"],
                      ["decay", h.path, "-o", "-", "--bins", "512"], ["rate", h.path, "-o", "-", "--bin", "1"],
                      ["rate", h.path, "-o", "-", "--bin", "0s"], ["rate", h.path, "-o", "-", "--channel", "1"],
                      ["decay", h.path, "-o", "/nonexistent/x.png"]):
        assert d7(*arguments, code=2) == b"" and d7.err, arguments
    assert set(os.listdir(folder)) == before
    with open("/dev/full", "wb") as full:
        p = subprocess.run([D7, "image", h.path, "-o", "-"], stdout=full, stderr=subprocess.PIPE)
    assert p.returncode == 2 and b"No space left" in p.stderr, p.stderr


def interrupted(folder):
    """A stop leaves nothing, whenever it comes."""
    path, out = os.path.join(folder, "long.photons"), os.path.join(folder, "long.npy")
    r = np.random.default_rng(10)
    x = r.integers(0, 4096, 4000000).astype("<u2")
    write(path, [("/photons/x", x), ("/photons/y", x)])
    for delay in (0, 0.002, 0.005, 0.01, 0.02):
        p = subprocess.Popen([D7, "image", path, "-o", out, "--pixels", "1024"], stderr=subprocess.PIPE)
        time.sleep(delay)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate()
        if os.path.exists(out):
            assert p.returncode == 0
            os.unlink(out)
        else:
            assert p.returncode in (2, -signal.SIGINT), (p.returncode, err)
        # Killed by the signal before it was caught, or after a second one: then only a hidden name may be left.
        assert [n for n in os.listdir(folder) if n.startswith("long") and n != "long.photons"] == []


def unframed(folder):
    """Files of one other writer, whose pages hold more than they should: only when asked for."""
    path = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "fixtures", "d7", "unframed")
    with open(path + ".json") as f:
        columns = {d["name"]: np.array(d["values"]) for d in json.load(f)["datasets"]}
    d7("image", path + ".photons", "-o", "-", code=2)
    assert "unframed" in d7.err
    wanted = np.zeros((16, 16), "u8")
    np.add.at(wanted, (columns["/photons/y"] >> 8, columns["/photons/x"] >> 8), 1)
    got = load(d7("image", path + ".photons", "-o", "-", "--format", "npy", "--pixels", "16", "--unframed"))
    assert (got == wanted).all() and got.sum() == 9000


def manual_and_help():
    with open(os.path.join(os.environ["PHOTOND_SOURCE"], "docs", "man", "d7.1")) as f:
        manual = f.read()
    for command in ("image", "decay", "rate"):
        text = d7(command, "--help").decode()
        assert text.startswith("usage: d7 " + command) and "Examples:" in text and "Exit status:" in text
        for word in text.replace("|", " ").split():
            option = word.strip("[],()")
            if option.startswith("--") and option != "--help":
                assert "Fl -" + option[2:] in manual or "-" + option[2:] in manual, option


def without_png(h, folder):
    d7("image", h.path, "-o", os.path.join(folder, "none.png"), code=2)
    assert "built without libpng" in d7.err


def main():
    with tempfile.TemporaryDirectory() as folder:
        h = Hazelnut(folder)
        if subprocess.run([D7, "image", h.path, "-o", "-", "--format", "png"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 2:
            without_png(h, folder)
            require.missing("libpng: pictures are not looked at")
        manual_and_help()
        image_numbers(h, folder)
        image_pictures(h, folder)
        decays(h, folder)
        rates(h, folder)
        odd_positions(folder)
        dual_stamps(folder)
        stamps(folder)
        damage(h, folder)
        unequal_ends(h, folder)
        open_files(h, folder)
        unframed(folder)
        results(h, folder)
        interrupted(folder)


if __name__ == "__main__":
    sys.exit(main())
