"""d7 copy, split and merge against an independent model of what a cut is; the reference implementation reads and judges
every file."""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import d7ref
import partsfile
from d7run import D7, d7
from d7script import Script
from partsfile import Model, U16, U64, hazelnut, is_tag, random_model, same, without_place

SEED = 20261130
FIXTURES = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "fixtures", "d7")


def fixture(name):
    return os.path.join(FIXTURES, name + ".photons")


def content(path):
    with open(path, "rb") as f:
        return f.read()


def nothing_left(folder, *but):
    assert sorted(os.listdir(folder)) == sorted(but), (os.listdir(folder), but)


def clean(path):
    verified = json.loads(d7("verify", path, "--json"))
    assert verified["damages"] == 0, verified
    assert [p for p in verified["problems"] if p["severity"] == "data"] == [], verified


# ---- copy ----

def whole_files_are_the_same_bytes(folder):
    rng = random.Random(SEED)
    out = os.path.join(folder, "out.photons")
    names = ["minimal", "all_types", "attributes", "items_8193", "lincam_islands", "spare_0",
             "spare_1", "spare_2", "other_writer"]
    for name in names:
        d7("copy", fixture(name), out, "--overwrite")
        assert content(out) == content(fixture(name)), name
    path = os.path.join(folder, "in.photons")
    for _ in range(10):
        random_model(rng).write(path, rng)
        d7("copy", path, out, "--overwrite", "--from", "0")
        assert content(out) == content(path)
    nothing_left(folder, "in.photons", "out.photons")


def ranges_of_items(folder):
    rng = random.Random(SEED + 1)
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    for turn in range(40):
        model = random_model(rng)
        model.write(path, rng)
        n = model.rows() or model.rows(is_tag)
        a, b = sorted(rng.choice([0, n, 8192, 16384, rng.randrange(n + 1)]) for _ in range(2))
        a, b = min(a, n), min(b, n)
        d7("copy", path, out, "--overwrite", "--from", str(a), "--to", str(b))
        got, want = Model.read(out), model.cut(a, b)
        clean(out)
        if (a, b) == (0, n):
            assert content(out) == content(path)
            continue
        same(without_place(got), without_place(want), (turn, a, b))
        tags = model.has("/tags/time")
        assert got.attributes["photond.first_tag" if tags else "photond.first_photon"] == str(a), got.attributes
        if model.has("/photons/ms"):
            ms = model.column("/photons/ms")
            first = partsfile.ms_range(ms, a, b, n)[0]
            assert got.attributes["photond.first_ms"] == str(first), (a, b)


def a_photon_stays_in_its_millisecond(folder):
    """The millisecond that a photon is in, by the copy and first_ms, is the one it is in by the file."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    ms = [0, 0, 3, 3, 3, 10, 20, 20]
    Model([("/photons/x", U16, list(range(25))), ("/photons/ms", U64, ms)], {}).write(path, random.Random(1))

    def of(table, photon):
        return max(k for k, m in enumerate(table) if m <= photon)
    for a in range(25):
        for b in (a + 1, 25):
            d7("copy", path, out, "--overwrite", "--from", str(a), "--to", str(b))
            got = Model.read(out)
            first = int(got.attributes.get("photond.first_ms", "0"))
            for photon in range(a, b):
                assert first + of(got.column("/photons/ms"), photon - a) == of(ms, photon), (a, b, photon)


def ranges_of_time(folder):
    rng = random.Random(SEED + 2)
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    photons = hazelnut()
    model = Model([("/photons/x", U16, photons["x"]), ("/photons/ms", U64, photons["ms"]), ("/own", 9, [1.5] * 9)],
                  {"photond.gap.00000000": '{"item": 5000, "count": 1}'})
    model.write(path, rng)
    ms = photons["ms"]
    for a, b in ((0, 10), (10, 50), (47, 48), (48, 48), (90, 200), (0, 200)):
        d7("copy", path, out, "--overwrite", "--from", "%dms" % a, "--to", "%.3fs" % (b / 1000))
        start, stop = ms[a], ms[b] if b < len(ms) else 200000
        want = model.cut(start, stop, ms=(a, min(b, len(ms))))
        same(without_place(Model.read(out)), without_place(want), (a, b))
        clean(out)
    times = [1000, 1001, 1500, 2000, 5000, 9000]
    tags = Model([("/tags/time", U64, times), ("/tags/channel", 4, [1, 2, 3, 4, 5, 6])], {})
    tags.write(path, rng)
    d7("copy", path, out, "--overwrite", "--from", "500ps", "--to", "8ns")
    got = Model.read(out)
    assert got.column("/tags/time") == times[2:5] and got.column("/tags/channel") == [3, 4, 5], got.datasets
    assert got.attributes["photond.first_tag"] == "2"


def both_groups(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    n = 3000
    model = Model([("/photons/x", U16, list(range(n))), ("/photons/ms", U64, list(range(0, n, 100))),
                   ("/tags/time", U64, list(range(0, 60 * 10 ** 9, 10 ** 9)))], {})
    model.write(path, random.Random(1))
    d7("copy", path, out, "--from", "10", code=2)
    assert "--exclude" in d7.err
    nothing_left(folder, "in.photons")
    d7("copy", path, out, "--from", "10ms", "--to", "20ms")
    same(without_place(Model.read(out)), model.cut(1000, 2000, ms=(10, 20), tags=(10, 20)), "both")
    d7("copy", path, out, "--overwrite", "--from", "10", "--to", "12", "--exclude", "/photons/x", "--exclude", "/photons/ms")
    assert Model.read(out).datasets == [("/tags/time", U64, [10 * 10 ** 9, 11 * 10 ** 9])]
    d7("split", path, "-o", os.path.join(folder, "s.photons"), "--count", "100", code=2)
    d7("split", path, "-o", os.path.join(folder, "s.photons"), "--time", "7ms")
    parts = sorted(f for f in os.listdir(folder) if f.startswith("s."))
    assert len(parts) == 9, parts
    d7("merge", out, *[os.path.join(folder, p) for p in parts], "--overwrite")
    same(Model.read(out), model, "both groups merged")


def selections(folder):
    out = os.path.join(folder, "out.photons")
    path = fixture("all_types")
    model = Model.read(path)
    names = [n for n, _, _ in model.datasets]
    d7("copy", path, out, "--dataset", names[3], "--dataset", names[7])
    got = Model.read(out)
    same(got, Model([d for d in model.datasets if d[0] in (names[3], names[7])], model.attributes), "selected")
    d7("copy", path, out, "--exclude", names[0], "--overwrite")
    same(Model.read(out), Model(model.datasets[1:], model.attributes), "excluded")
    for arguments in (["--dataset", "/nothing"], ["--exclude", "/nothing"], ["--dataset", names[0], "--exclude", names[0]]):
        d7("copy", path, out, "--overwrite", *arguments, code=2)
    same(Model.read(out), Model(model.datasets[1:], model.attributes), "left as it was")
    d7("copy", path, out, code=2)
    assert "--overwrite" in d7.err and out in d7.err
    d7("copy", path, "", "--overwrite", code=2)
    d7("copy", fixture("items_8193"), out, "--overwrite", "--from", "8194", code=2)
    assert "8193" in d7.err, d7.err
    d7("copy", fixture("items_8193"), os.path.join(folder, "end"), "--from", "8193")
    os.unlink(os.path.join(folder, "end"))
    nothing_left(folder, "out.photons")


def files_without_groups(folder):
    """A range cuts all datasets, each as far as it goes."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    model = Model([("/a", U16, list(range(20000))), ("/b", 9, [float(i) for i in range(300)]), ("/c", 0, [])],
                  {"k": "v", "photond.gap.00000000": '{"item": 150, "dataset": "/a", "group": "tags"}',
                   "photond.gap.00000001": '{"dataset": 1, "item": 99}', "photond.marker.00000000": '{"item": 9000}',
                   "photond.marker.00000001": '{"item": 8999}', "photond.marker.00000002": '{"group": "frames", "item": 5}',
                   "photond.marker.00000003": '{"item": 500.5}', "photond.marker.x": '{"item": 500}'})
    model.write(path, random.Random(3))
    d7("copy", path, out, "--from", "100", "--to", "9000")
    kept = {"k": "v", "photond.gap.00000000": '{"item": 50, "dataset": "/a", "group": "tags"}',
            "photond.marker.00000001": '{"item": 8899}', "photond.marker.00000002": '{"group": "frames", "item": 5}',
            "photond.marker.00000003": '{"item": 500.5}', "photond.marker.x": '{"item": 500}'}
    same(without_place(Model.read(out)), Model([(n, t, v[100:9000]) for n, t, v in model.datasets], kept), "no groups")
    d7("split", path, "-o", os.path.join(folder, "s.photons"), "--count", "7000", code=2)
    nothing_left(folder, "in.photons", "out.photons")
    equal = Model([("/a", U16, list(range(20000))), ("/b", 9, [float(i) for i in range(20000)])],
                  {"k": "v", "photond.gap.00000000": '{"item": 15000, "dataset": "/b"}'})
    equal.write(path, random.Random(3))
    d7("split", path, "-o", os.path.join(folder, "s.photons"), "--count", "7000")
    parts = sorted(f for f in os.listdir(folder) if f.startswith("s."))
    assert len(parts) == 3
    d7("merge", out, *[os.path.join(folder, p) for p in parts], "--overwrite")
    same(Model.read(out), equal, "no groups merged")


def open_files_become_closed(folder):
    rng = random.Random(SEED + 3)
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    for turn in range(12):
        model = random_model(rng)
        model.write(path, rng, close=False)
        data = content(path)
        if turn % 2 and len(data) > 40000:
            with open(path, "r+b") as f:
                f.truncate(rng.randrange(30000, len(data)))
        d7("copy", path, out, "--overwrite")
        clean(out)
        got = Model.read(out)
        assert [(n, t) for n, t, _ in got.datasets] == [(n, t) for n, t, _ in model.datasets]
        for belongs in (partsfile.is_row, is_tag):
            assert len({len(v) for n, _, v in got.datasets if belongs(n) and n != "/photons/aat"}) <= 1
        for (n, _, v), (_, _, w) in zip(got.datasets, model.datasets):
            assert v == w[:len(v)], (turn, n)
        merged = os.path.join(folder, "merged.photons")
        d7("merge", merged, path, "--overwrite")
        assert content(merged) == content(out)


def damaged_files(folder):
    """hazelnut with a damaged page of y: its rows go from every column, and the milliseconds and records know it."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    photons = hazelnut()
    n = 50000
    ms = [m for m in photons["ms"] if m < n]
    model = Model([("/photons/x", U16, photons["x"][:n]), ("/photons/y", U16, photons["y"][:n]), ("/photons/ms", U64, ms)],
                  {"photond.marker.00000000": '{"item": 30000, "text": "here"}', "photond.gap.00000000": '{"item": 100}'})
    model.write(path, random.Random(4))
    bad = d7ref.File(content(path)).pages
    at = [p[0] for p in bad if p[1] == 1][2]
    with open(path, "r+b") as f:
        f.seek(at + 40)
        f.write(b"\xff" * 12)
    d7("copy", path, out, code=1)
    assert "/photons/y" in d7.err and "--skip-damaged" in d7.err, d7.err
    d7("split", path, "-o", os.path.join(folder, "s.photons"), "--count", "1M", code=1)
    d7("merge", out, path, code=1)
    nothing_left(folder, "in.photons")
    d7("copy", path, out, "--to", "16384")
    same(without_place(Model.read(out)), without_place(model.cut(0, 16384)), "before the damage")
    got = json.loads(d7("copy", path, out, "--skip-damaged", "--overwrite", "--json", code=1))
    assert got["left_out"] == [{"what": "photons", "first": 16384, "items": 8192}], got
    assert "16384 to 24575" in d7.err
    clean(out)
    got = Model.read(out)
    assert got.column("/photons/x") == photons["x"][:16384] + photons["x"][24576:n]
    assert got.column("/photons/y") == photons["y"][:16384] + photons["y"][24576:n]
    assert got.column("/photons/ms") == [m if m <= 16384 else max(m - 8192, 16384) for m in ms]
    assert json.loads(got.attributes["photond.marker.00000000"])["item"] == 30000 - 8192
    gap = json.loads(got.attributes["photond.gap.00000001"])
    assert (gap["item"], gap["count"]) == (16384, 8192), gap
    for name in ("bad_varints", "zeroed_block"):
        d7("copy", fixture(name), out, "--overwrite", code=1)
    same(Model.read(out), got, "left as it was")


def zeroed_blocks_of_an_open_file(folder):
    """Each block of a file without an island zeroed in turn: nothing that copy or cat gives out is of another photon."""
    n, path, out = 30000, os.path.join(folder, "z.photons"), os.path.join(folder, "o.photons")
    place = [i * 0x9E3779B1 & 0xFFFFFF for i in range(n)]  # each once
    columns = {"/photons/x": [p & 0xFFF for p in place], "/photons/y": [p >> 12 for p in place],
               "/photons/dt": [i * 2654435761 >> 7 & 0xFFF for i in range(n)]}
    dt_at = dict(zip(place, columns["/photons/dt"]))
    s = Script([(name, U16) for name in columns], 512, 2048)
    for i in range(0, n, 500):
        for ds, values in enumerate(columns.values()):
            s.append(ds, values[i:i + 500])
    s.run(path, close=False)
    good = content(path)
    assert len(good) > 3 * 16384
    for at in range(16384, len(good), 16384):
        with open(path, "wb") as f:
            f.write(good[:at] + bytes(len(good[at:at + 16384])) + good[at + 16384:])
        run = subprocess.run([D7, "copy", path, out, "--skip-damaged"], capture_output=True, timeout=600)
        assert run.returncode in (0, 1), run
        if os.path.exists(out):
            rows = dict(zip((name for name, _ in d7ref.File(content(out)).datasets), d7ref.File(content(out)).values))
            for x, y, dt in zip(rows["/photons/x"], rows["/photons/y"], rows["/photons/dt"]):
                assert dt_at[y << 12 | x] == dt, (at, x, y, dt)
            os.unlink(out)
        for name, values in columns.items():
            run = subprocess.run([D7, "cat", path, name], capture_output=True, text=True, timeout=600)
            got = [int(v) for v in run.stdout.split()]
            assert run.returncode in (0, 1) and got == values[:len(got)], (at, name, run.stderr)
    os.unlink(path)


def several_damaged_pages(folder):
    """What is left out before a record or a gap moves it, and only that."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    photons = hazelnut()
    n = 70000
    records = {"photond.marker.%08d" % i: '{"item": %d}' % item for i, item in enumerate([0, 9000, 16384, 20000, 40000, 65000])}
    model = Model([("/photons/x", U16, photons["x"][:n]), ("/photons/y", U16, photons["y"][:n])], records)
    model.write(path, random.Random(5))
    pages = d7ref.File(content(path)).pages
    with open(path, "r+b") as f:
        for dataset, page in ((1, 1), (0, 3), (1, 6)):
            f.seek([p[0] for p in pages if p[1] == dataset][page] + 40)
            f.write(b"\xff" * 12)
    d7("copy", path, out, "--skip-damaged", code=1)
    clean(out)
    got = Model.read(out)
    assert got.column("/photons/x") == photons["x"][:8192] + photons["x"][16384:24576] + photons["x"][32768:49152] + photons["x"][57344:n]
    items = [json.loads(v)["item"] for k, v in got.attributes.items() if k.startswith("photond.marker.")]
    assert items == [0, 8192, 8192, 20000 - 8192, 40000 - 16384, 65000 - 24576], items
    gaps = [json.loads(v) for k, v in got.attributes.items() if k.startswith("photond.gap.")]
    assert [(g["item"], g["count"]) for g in gaps] == [(8192, 8192), (16384, 8192), (32768, 8192)], gaps
    d7("copy", path, out, "--skip-damaged", "--overwrite", "--from", "10000", code=1)
    got = Model.read(out)
    assert got.column("/photons/x") == photons["x"][16384:24576] + photons["x"][32768:49152] + photons["x"][57344:n]
    items = [json.loads(v)["item"] for k, v in got.attributes.items() if k.startswith("photond.marker.")]
    assert items == [0, 20000 - 16384, 40000 - 24576, 65000 - 32768], items


def many_datasets(folder):
    """As many as a file can have, and in another order in the next part; many columns of several pages."""
    path, back, out = (os.path.join(folder, n + ".photons") for n in ("in", "back", "out"))
    names = ["/d/%05d" % i for i in range(65536)]
    model = Model([(n, U16, [i] * (i % 997 == 0)) for i, n in enumerate(names)], {})
    model.write(path, random.Random(6))
    d7("merge", out, path)
    assert content(out) == content(path)
    Model(model.datasets[::-1], {}).write(back, random.Random(6))
    d7("merge", out, path, back, "--overwrite")
    d7("copy", path, back, "--overwrite", "--dataset", "/d/65533")
    assert Model.read(back).datasets == model.datasets[65533:65534]
    same(Model.read(out), Model([(n, t, v * 2) for n, t, v in model.datasets], {}), "merged")
    npz = os.path.join(folder, "out.npz")
    d7("export", path, "-o", npz)
    os.unlink(npz)

    rng = random.Random(7)
    columns = [("/photons/c%03d" % i, U16, [rng.randrange(4096) for _ in range(50)]) for i in range(300)]
    wide = Model(columns, {}, bytes_per_page=16 + 2 * (rng.randrange(8)))
    wide.write(path, rng)
    Model(columns[::-1], {}).write(back, rng)
    d7("merge", out, path, back, "--overwrite")
    same(Model.read(out), Model([(n, t, v * 2) for n, t, v in columns], {}, wide.bytes_per_page), "wide")
    d7("copy", path, out, "--overwrite", "--from", "11", "--to", "33")
    assert [v for _, _, v in Model.read(out).datasets] == [v[11:33] for _, _, v in columns]


def damaged_milliseconds(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    model = Model([("/photons/x", U16, [1] * 30000), ("/photons/ms", U64, list(range(9000)))], {})
    model.write(path, random.Random(4))
    at = [p[0] for p in d7ref.File(content(path)).pages if p[1] == 1][1]
    with open(path, "r+b") as f:
        f.seek(at + 40)
        f.write(b"\xff" * 12)
    d7("copy", path, out, "--skip-damaged", code=1)
    assert "--exclude" in d7.err
    nothing_left(folder, "in.photons")
    d7("copy", path, out, "--exclude", "/photons/ms")
    assert Model.read(out).column("/photons/x") == [1] * 30000


def changed_pages(folder):
    """A page that decodes, but whose checksum says that it is not what was written, is damage to all of them."""
    path, out, rest = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons"), os.path.join(folder, "s.photons")
    photons = hazelnut()
    n = 50000
    ms = [m for m in photons["ms"] if m < n]
    columns = [("/photons/x", U16, photons["x"][:n]), ("/photons/y", U16, photons["y"][:n]), ("/photons/ms", U64, ms * 300)]
    s = Script([c[:2] for c in columns])
    for i, (_, _, v) in enumerate(columns):
        s.append(i, sorted(v) if i == 2 else v)
    s.run(path, checksums=True)
    model, data = Model.read(path), content(path)
    files = ["in.photons", "in.photons.crc"]
    d7("copy", path, out, "--from", "5")
    os.unlink(out)

    def change(dataset, page):
        at = [p[0] for p in d7ref.File(data).pages if p[1] == dataset][page]
        with open(path, "wb") as f:
            f.write(data[:at + 100] + bytes([data[at + 100] ^ 2]) + data[at + 101:])
        damages = [p["code"] for p in json.loads(d7("verify", path, "--json", code=1))["problems"] if p["severity"] == "damage"]
        assert damages == ["CHECKSUM"], damages

    change(1, 2)
    for arguments in (["copy", path, out], ["copy", path, out, "--from", "100"], ["copy", path, out, "--from", "24575", "--to", "24576"],
                      ["copy", path, out, "--to", "16385"], ["split", path, "-o", rest, "--count", "10k"],
                      ["split", path, "-o", rest, "--time", "20ms"], ["split", path, "-o", rest, "--size", "100kB"],
                      ["merge", out, path], ["copy", path, out, "--exclude", "/photons/x"]):
        d7(*arguments, code=1)
        assert "CHECKSUM" in d7.err and "/photons/y" in d7.err, d7.err
        nothing_left(folder, *files)
    for a, b in ((0, 16384), (24576, n), (30000, 40000)):
        d7("copy", path, out, "--from", str(a), "--to", str(b), "--overwrite")
        same(without_place(Model.read(out)), without_place(model.cut(a, b)), "beside the damage")
    d7("copy", path, out, "--overwrite", "--exclude", "/photons/y")
    got = json.loads(d7("copy", path, out, "--overwrite", "--json", "--skip-damaged", code=1))
    assert got["left_out"] == [{"what": "photons", "first": 16384, "items": 8192}], got
    for c, (name, _, v) in zip("xy", columns):
        assert Model.read(out).column(name) == v[:16384] + v[24576:], c
    clean(out)
    os.unlink(out)
    change(2, 1)
    for arguments in (["copy", path, out], ["copy", path, out, "--skip-damaged"], ["split", path, "-o", rest, "--count", "10k"], ["merge", out, path]):
        d7(*arguments, code=1)
        nothing_left(folder, *files)
    d7("copy", path, out, "--exclude", "/photons/ms")
    os.unlink(out)
    change(1, 2)  # checksums that are another file's say nothing
    other = Script([c[:2] for c in columns])
    for i in range(3):
        other.append(i, [i] * n)
    other.run(out, checksums=True)
    os.rename(out + ".crc", path + ".crc")
    d7("copy", path, out, "--overwrite", "--from", "1")


class StrangeWriter(d7ref.Writer):
    """Pages with a field that nobody knows."""

    def _page(self, d, values):
        encode = d7ref.encode_page

        def strange(*arguments):
            (_, _, body), = d7ref.fields(encode(*arguments))
            return d7ref.ld(2, body + d7ref.ld(15, b"kept %d" % d))
        d7ref.encode_page = strange
        try:
            super()._page(d, values)
        finally:
            d7ref.encode_page = encode


def unknown_fields_stay(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    header = d7ref.header_entry
    d7ref.header_entry = lambda *a: d7ref.ld(1, next(d7ref.fields(header(*a)))[2] + d7ref.ld(14, b"header kept"))
    try:
        w = StrangeWriter([("/photons/x", U16), ("/photons/y", U16), ("/photons/ms", U64), ("/own", 9)])
    finally:
        d7ref.header_entry = header
    for d, v in enumerate(([1] * 20000, [2] * 20000, list(range(3000)), [0.5] * 5000)):
        w.append(d, v)
    with open(path, "wb") as f:
        f.write(w.close())
    d7("copy", path, out, "--exclude", "/photons/y")
    data = content(out)
    assert data.count(b"header kept") == 1
    assert [data.count(b"kept %d" % d) for d in range(4)] == [3, 0, 2, 3]
    assert d7ref.File(data).check() == []
    d7("copy", path, out, "--overwrite", "--from", "8192", "--to", "18000")
    data = content(out)
    assert [data.count(b"kept %d" % d) for d in range(4)] == [1, 1, 0, 3]
    d7("split", path, "-o", os.path.join(folder, "s.photons"), "--count", "8192")
    assert [content(os.path.join(folder, s)).count(b"kept 0") for s in ("s.photons", "s.0001.photons", "s.0002.photons")] \
        == [1, 1, 1]


def files_of_others(folder):
    out = os.path.join(folder, "out.photons")
    d7("copy", fixture("unframed"), out, code=2)
    nothing_left(folder)
    d7("copy", fixture("unframed"), out, "--unframed")
    with open(os.path.join(FIXTURES, "unframed.json")) as f:
        want = json.load(f)
    got = Model.read(out)
    assert {n: len(v) for n, _, v in got.datasets} == {d["name"]: len(d["values"]) for d in want["datasets"]}
    # pages of odd lengths in the middle
    path = os.path.join(folder, "odd.photons")
    w = d7ref.Writer([("/photons/x", U16), ("/photons/y", U16)], bytes_per_page=64)
    rows = list(range(500))
    for d in range(2):
        at = 0
        for n in (32, 20, 32, 7, 32, 32) * 10:
            if at < len(rows):
                w._page(d, rows[at:at + n])
                at += n
    with open(path, "wb") as f:
        f.write(w.close())
    d7("copy", path, out, "--overwrite", "--from", "123", "--to", "456")
    assert [v for _, _, v in Model.read(out).datasets] == [rows[123:456]] * 2
    d7("merge", out, path, "--overwrite")
    assert [v for _, _, v in Model.read(out).datasets] == [rows] * 2
    parts = split(path, folder, "--count", "300")  # in one JSON object, though the pages have to be counted anew
    assert [Model.read(p).datasets[0][2] for p in parts] == [rows[:300], rows[300:]]


# ---- split and merge ----

def split(path, folder, *arguments, name="s.photons"):
    """The parts, in order."""
    got = json.loads(d7("split", path, "-o", os.path.join(folder, name), *arguments, "--json"))
    return [p["file"] for p in got["parts"]]


def merged_parts_are_the_file(folder):
    rng = random.Random(SEED + 5)
    path, again, whole = (os.path.join(folder, n) for n in ("in.photons", "again.photons", "whole.photons"))
    photons = hazelnut()
    for turn in range(30):
        model = random_model(rng, photons)
        model.write(path, rng)
        n = model.rows() or model.rows(is_tag)
        by = rng.choice(["--count", "--count", "--size", "--time"])
        if by == "--time" and not (model.has("/photons/ms") or model.has("/start/time") or model.has("/tags/time")):
            by = "--count"
        every = {"--count": str(rng.choice([8192, 16384, max(1, n // rng.randint(1, 9)), n + 1])),
                 "--size": "%dkB" % rng.choice([350, 500, 1000]),
                 "--time": "%dms" % rng.choice([5, 10, 1000]) if model.has("/photons/ms") else "%dns" % (n // 4 + 1)}[by]
        if by == "--time" and model.has("/start/time"):
            every = "%dns" % (n * 13 // 4 + 1)
        parts = split(path, folder, by, every)
        assert [os.path.basename(p) for p in parts] == ["s.photons"] + ["s.%04d.photons" % i for i in range(1, len(parts))]
        at = 0
        for i, part in enumerate(parts):
            clean(part)
            got = Model.read(part)
            assert got.attributes["photond.part"] == str(i)
            if n:
                assert got.attributes["photond.first_tag" if model.has("/tags/time") else "photond.first_photon"] == str(at)
            rows = got.rows() or got.rows(is_tag)
            if by == "--size":
                assert os.path.getsize(part) <= int(every[:-2]) * 1000
            if by == "--count" and i + 1 < len(parts):
                assert rows == int(every)
            want = model.cut(at, at + rows, own=i == 0, ms=(0, 0))
            for (name, _, v), (_, _, w) in zip(got.datasets, want.datasets):
                assert name == "/photons/ms" or v == w, (turn, i, name)
            at += rows
        assert at == n, (turn, at, n)
        given = parts[:]
        rng.shuffle(given)
        d7("merge", whole, *given, "--overwrite")
        same(Model.read(whole), model, (turn, by, every))
        # The same bytes as when all is written in one go.
        d7("merge", again, path, "--overwrite")
        assert content(again) == content(whole), (turn, by, every)
        for part in parts:
            os.unlink(part)


def parts_can_be_split_again(folder):
    path, whole = os.path.join(folder, "in.photons"), os.path.join(folder, "whole.photons")
    photons = hazelnut()
    model = Model([("/photons/x", U16, photons["x"]), ("/photons/ms", U64, photons["ms"]), ("/own", 9, [1.0] * 3)],
                  {"a": "1", "photond.gap.00000000": '{"item": 70000}', "photond.gap.00000001": '{"item": 120000}', "z": "2"})
    model.write(path, random.Random(8))
    parts = split(path, folder, "--count", "50k")
    for i, part in enumerate(parts):
        inner = split(part, folder, "--time", "7ms", name="inner%d.photons" % i)
        d7("merge", whole, *inner, "--overwrite")
        same(Model.read(whole), Model.read(part), part)
        if i == 1:
            parts_too = [parts[0]] + inner + parts[2:]
    d7("merge", whole, *parts_too, "--overwrite")
    same(Model.read(whole), model, "some parts in parts")
    # Two copies are parts as well.
    a, b = os.path.join(folder, "a.photons"), os.path.join(folder, "b.photons")
    d7("copy", path, a, "--to", "77777")
    d7("copy", path, b, "--from", "77777", "--exclude", "/own")
    d7("merge", whole, a, b, "--overwrite", code=2)
    d7("copy", path, b, "--from", "77777", "--overwrite")
    d7("merge", whole, a, b, "--overwrite")
    got = Model.read(whole)
    assert got.column("/own") == [1.0] * 6  # a copy has them whole
    same(Model([d for d in got.datasets if d[0] != "/own"], got.attributes),
         Model([d for d in model.datasets if d[0] != "/own"], model.attributes), "two copies")


def run_split_until_full(path, folder, by):
    """What split says in JSON when a part cannot be made, here because a folder has its temporary name."""
    sub = os.path.join(folder, "sub")
    os.mkdir(sub)
    try:
        program = "import os,sys\nos.mkdir('%s/.s.0001.photons.%%d.new' %% os.getpid())\nos.execv(sys.argv[1],sys.argv[1:])" % sub
        p = subprocess.run([sys.executable, "-c", program, D7, "split", path, "-o", os.path.join(sub, "s.photons"), *by, "--json"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert p.returncode == 2 and b"s.0001.photons: cannot be made" in p.stderr and b"1 part is complete" in p.stderr, p
        return p.stdout
    finally:
        shutil.rmtree(sub)


def interrupted_splits_are_noticed(folder):
    """By size nobody knows how many parts there will be: what was written before a split was stopped is not taken for all."""
    path, out, whole = os.path.join(folder, "in.photons"), os.path.join(folder, "s.photons"), os.path.join(folder, "whole.photons")
    photons = hazelnut()
    model = Model([("/photons/x", U16, photons["x"] * 5), ("/photons/y", U16, photons["y"] * 5)], {"k": "v", "photond.marker.00000000": '{"item": 7}'})
    model.write(path, random.Random(8))
    for by in (["--size", "400kB"], ["--count", "90k"]):
        with subprocess.Popen([D7, "split", path, "-o", out, *by], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            p.stdout.readline()
            p.terminate()
            p.communicate()
            left = sorted(f for f in os.listdir(folder) if f.startswith("s."))
            assert p.returncode in (0, 2) and left, (p.returncode, left)
        said = json.loads(run_split_until_full(path, folder, by))
        assert said["complete"] is False and said["parts"], said
        if p.returncode == 2:
            d7("merge", whole, *[os.path.join(folder, f) for f in left], code=2)
            assert "is not the last part" in d7.err, d7.err
        parts = split(path, folder, *by, "--overwrite")
        marks = [Model.read(part).attributes["photond.cut"].split()[0] for part in parts]
        assert marks == ["%d/more" % (i + 1) for i in range(len(parts) - 1)] + ["%d/%d" % (len(parts), len(parts))], marks
        for missing in range(len(parts)):
            d7("merge", whole, *(parts[:missing] + parts[missing + 1:]), code=2)
        assert not os.path.exists(whole)
        d7("merge", whole, *parts)
        same(Model.read(whole), model, by)
        for f in parts + [whole]:
            os.unlink(f)
    d7("copy", path, out, "--to", "100")  # a copy is no part of a split
    d7("merge", whole, out)


def parts_that_do_not_fit(folder):
    path, whole = os.path.join(folder, "in.photons"), os.path.join(folder, "whole.photons")
    photons = hazelnut()
    model = Model([("/photons/x", U16, photons["x"]), ("/photons/ms", U64, photons["ms"])], {"/photons/TacChannel": "1"})
    model.write(path, random.Random(8))
    parts = split(path, folder, "--count", "40k")
    before = sorted(os.listdir(folder))

    def refused(*paths, word):
        d7("merge", whole, *paths, code=2)
        assert word in d7.err, d7.err
        assert sorted(os.listdir(folder)) == before
    refused(parts[0], parts[2], word="40000 to 79999 are missing")
    refused(parts[0], parts[1], parts[1], word="--force")
    refused(parts[0], fixture("all_types"), word="dataset")
    refused(parts[0], "/nonexistent", word="/nonexistent")
    refused(parts[2], parts[3], parts[4], word="part 3 of what was split")
    refused(*parts[:4], word="s.0003.photons: is not the last part")
    refused(parts[0], word="--partial")
    d7("merge", whole, parts[2], parts[3], "--partial")  # begins and ends in the middle: says so
    got = Model.read(whole)
    assert got.attributes["photond.cut"].startswith("3-4/more "), got.attributes
    d7("merge", whole + "2", parts[0], parts[1], whole, code=2)
    assert "not the last part" in d7.err, d7.err
    d7("merge", whole + "2", parts[4], whole, parts[1], parts[0])  # what was merged is a part still
    same(Model.read(whole + "2"), model, "merged in two steps")
    os.unlink(whole + "2")
    assert got.attributes["photond.first_photon"] == "80000" and got.column("/photons/x") == photons["x"][80000:160000]
    d7("merge", whole, parts[3], parts[0], "--force", "--overwrite")
    assert Model.read(whole).column("/photons/x") == photons["x"][120000:160000] + photons["x"][:40000]
    os.unlink(whole)
    other = os.path.join(folder, "other.photons")
    Model(model.datasets, {"/photons/TacChannel": "2", "Comment": "c"}).write(other, random.Random(8))
    before.append("other.photons")
    before.sort()
    refused(path, other, word="/photons/TacChannel")
    d7("merge", whole, path, other, "--force")
    assert "TacChannel" in d7.err
    got = Model.read(whole)
    assert got.attributes == {"/photons/TacChannel": "1", "Comment": "c"}
    assert got.column("/photons/ms") == photons["ms"] + [m + 200000 for m in photons["ms"]]
    ragged = os.path.join(folder, "ragged.photons")
    Model([("/photons/x", U16, [1] * 10), ("/photons/y", U16, [1] * 9)], {}).write(ragged, random.Random(8))
    d7("merge", whole, ragged, ragged, "--overwrite", code=1)
    assert "unequal" in d7.err


def recorders_parts(folder):
    """As a recorder rolls over: a millisecond that begins in a part is counted in the next, records count from 0 in each."""
    a, b, whole = (os.path.join(folder, n) for n in ("run.photons", "run.0001.photons", "whole.photons"))
    run = {"photond.run": "abc", "photond.part": "0"}
    Model([("/photons/x", U16, list(range(100))), ("/photons/ms", U64, [0, 30, 60])],
          {**run, "photond.gap.00000000": '{"item":7}', "photond.sequence": "9"}).write(a, random.Random(8))
    Model([("/photons/x", U16, list(range(100, 150))), ("/photons/ms", U64, [20, 40])],
          {**run, "photond.part": "1", "photond.first_photon": "100", "photond.first_ms": "3",
           "photond.gap.00000000": '{"item":1}', "photond.gap.00000001": '{"item":2}', "photond.sequence": "20"}).write(b, random.Random(8))
    d7("merge", whole, b, a)
    got = Model.read(whole)
    assert got.column("/photons/x") == list(range(150)) and got.column("/photons/ms") == [0, 30, 60, 120, 140]
    assert got.attributes == {**run, "photond.gap.00000000": '{"item":7}', "photond.gap.00000002": '{"item":101}',
                              "photond.gap.00000003": '{"item":102}', "photond.sequence": "20"}, got.attributes


def names_and_sizes(folder):
    path = os.path.join(folder, "in.photons")
    Model([("/photons/x", U16, [1] * 30000)], {}).write(path, random.Random(1))
    sub = os.path.join(folder, "parts")
    os.mkdir(sub)
    lines = d7("split", path, "-o", sub, "--count", "10k").decode().splitlines()
    assert [x.split(":")[0] for x in lines] == [os.path.join(sub, n) for n in
                                               ("in.photons", "in.0001.photons", "in.0002.photons")]
    nothing_left(sub, "in.photons", "in.0001.photons", "in.0002.photons")
    os.unlink(os.path.join(sub, "in.photons"))
    d7("split", path, "-o", sub, "--count", "10k", code=2)  # a later part is in the way: nothing is begun
    assert "in.0001.photons" in d7.err
    nothing_left(sub, "in.0001.photons", "in.0002.photons")
    d7("split", path, "-o", sub, "--count", "20k", "--overwrite")
    assert "in.0002.photons" in d7.err  # of before
    d7("split", path, "-o", folder, "--count", "10k", "--overwrite", code=2)
    assert "is the file that is split" in d7.err
    d7("split", path, "-o", os.path.join(folder, "p"), "--size", "5000", code=2)
    assert "5000 bytes" in d7.err
    nothing_left(folder, "in.photons", "parts")
    d7("split", path, "-o", os.path.join(folder, "p"), "--count", "20000")
    nothing_left(folder, "in.photons", "parts", "p", "p.0001")
    for arguments in (["--count", "0"], ["--count", "x"], ["--size", "3XB"], ["--time", "5"], [], ["--count", "5", "--size", "1MB"],
                      ["--time", "1s"], ["--count", "0.1"]):
        d7("split", path, "-o", os.path.join(folder, "q"), *arguments, code=2)
    d7("split", path, "--count", "5", code=2)
    d7("split", path, "-o", os.path.join(folder, "nowhere", "q"), "--count", "20000", code=2)
    assert "nowhere" in d7.err
    nothing_left(folder, "in.photons", "parts", "p", "p.0001")


# ---- what may go wrong ----

def limited():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150000, 150000))


def full_disks(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    photons = hazelnut()
    Model([("/photons/x", U16, photons["x"])], {}).write(path, random.Random(8))
    for command in (["copy", path, out], ["copy", path, out, "--from", "5"], ["merge", out, path],
                    ["split", path, "-o", out, "--count", "150k"]):
        p = subprocess.run([D7, *command], stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=limited)
        assert p.returncode == 2 and out.encode() in p.stderr and b"File too large" in p.stderr, (command, p)
        nothing_left(folder, "in.photons")
    p = subprocess.run([D7, "split", path, "-o", out, "--size", "140kB"], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                       preexec_fn=limited)
    assert p.returncode == 0, p
    for part in (f for f in os.listdir(folder) if f.startswith("out.")):
        os.unlink(os.path.join(folder, part))
    with open("/dev/full", "wb") as full:  # the lines of split tell what is there: they must not be lost
        p = subprocess.run([D7, "split", path, "-o", out, "--count", "150k"], stdout=full, stderr=subprocess.PIPE)
    assert p.returncode == 2 and p.stderr, p


def big(folder):
    path, one = os.path.join(folder, "big.photons"), os.path.join(folder, "one.photons")
    photons = hazelnut()
    Model([("/photons/" + c, U16, photons[c]) for c in ("x", "y", "dt")] + [("/photons/ms", U64, photons["ms"])],
          {}).write(one, random.Random(8))
    ten = os.path.join(folder, "ten.photons")
    d7("merge", ten, *[one] * 10, "--force")
    d7("merge", path, *[ten] * 8, "--force")
    os.unlink(ten)
    os.unlink(one)
    return path


def interrupts_and_memory(folder):
    path = big(folder)
    out = os.path.join(folder, "out.photons")
    for command in (["copy", path, out], ["copy", path, out, "--from", "5"], ["merge", out, path],
                    ["split", path, "-o", out, "--count", "15M"]):
        p = subprocess.Popen([D7, *command], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        while p.poll() is None and not any(".new" in f for f in os.listdir(folder)):
            time.sleep(0.001)
        p.send_signal(signal.SIGINT)
        err = p.communicate()[1]
        if p.returncode != 0:  # else it was done before the signal
            assert p.returncode == 2 and b"stopped" in err, (command, p.returncode, err)
            assert not os.path.exists(out), command
        nothing_left(folder, "big.photons", *([] if p.returncode else [f for f in os.listdir(folder) if f.startswith("out.")]))
        for f in os.listdir(folder):
            if f.startswith("out."):
                os.unlink(os.path.join(folder, f))
    for command in (["copy", path, out, "--from", "5"], ["merge", out, path, "--overwrite"]):
        p = subprocess.Popen([D7, *command])
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        assert p.returncode == 0
        assert require_small(usage), usage.ru_maxrss


def require_small(usage):
    import require
    with open(D7, "rb") as f:
        if b"__asan_init" in f.read():
            return True
    assert require
    return usage.ru_maxrss < 256 * 1024


def held_files_are_not_replaced(folder):
    from test_command import Recorder
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "held.photons")
    Model([("/x", U16, [1] * 10)], {}).write(path, random.Random(1))
    values = [(i * 7919) % 4096 for i in range(8192 * 5)]
    r = Recorder(out, values)
    d7("copy", path, out, "--overwrite", code=2)
    assert "holds" in d7.err
    copy = os.path.join(folder, "copy.photons")
    d7("copy", out, copy)  # a file that is being written
    assert Model.read(copy).column("/x") == values
    r.end("close")
    d7("copy", out, out, "--overwrite", "--from", "8000", code=2)  # it would be the recording's end
    assert "is read" in d7.err and Model.read(out).column("/x") == values
    d7("copy", copy, out, "--overwrite", "--from", "8000")
    assert Model.read(out).column("/x") == values[8000:]


TESTS = [whole_files_are_the_same_bytes, ranges_of_items, a_photon_stays_in_its_millisecond, ranges_of_time, both_groups,
         selections, files_without_groups, open_files_become_closed, damaged_files, zeroed_blocks_of_an_open_file, several_damaged_pages, damaged_milliseconds,
         changed_pages, unknown_fields_stay, many_datasets, files_of_others, merged_parts_are_the_file, parts_can_be_split_again,
         parts_that_do_not_fit, interrupted_splits_are_noticed, recorders_parts,
         names_and_sizes, full_disks, interrupts_and_memory, held_files_are_not_replaced]


def main():
    for test in TESTS:
        if len(sys.argv) > 1 and test.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            test(folder)


if __name__ == "__main__":
    sys.exit(main())
