"""photonsfile, an independent reader from PyPI, reads our closed LINCam files to the very columns; the reference
implementation calls every file of ours clean."""
import array
import os
import random
import subprocess
import sys
import tempfile

import d7ref
import require
from d7script import Script, random_script

photonsfile = require.module("photonsfile")
numpy = require.module("numpy")

SEED = 20260202
RANDOM_FILES = int(os.environ.get("D7_RANDOM_FILES", "200"))
ATTRIBUTES = {"/photons/PositionBits": "12", "/photons/TacBits": "12", "/photons/TacChannel": "12.3"}
NAMES = {"/photons/x": "x", "/photons/y": "y", "/photons/dt": "dt", "/photons/ms": "ms"}


def lincam(rng, n, ms, index_step=512, extra=()):
    s = Script([("/photons/x", 5), ("/photons/y", 5), ("/photons/dt", 5), ("/photons/ms", 7)] + list(extra),
               index_step=index_step, early=ATTRIBUTES if rng.random() < 0.5 else None)
    if s.early is None:
        for k, v in ATTRIBUTES.items():
            s.set(k, v)
    columns = [[rng.randrange(4096) for _ in range(n)] for _ in range(3)]
    columns.append(sorted(rng.randrange(n + 1) for _ in range(ms)))
    return s, columns


def write(script, columns, path, turn):
    n = max(len(c) for c in columns)
    for at in range(0, n, turn):
        for d, c in enumerate(columns):
            script.append(d, c[at:at + turn])
    return script.run(path)


def check(script, columns, path, what):
    got = photonsfile.read_photons(path)
    attributes = photonsfile.read_attributes(path)
    for (name, _), column in zip(script.datasets, columns):
        if name not in NAMES:
            continue
        have = got.get(NAMES[name], numpy.zeros(0))
        assert numpy.array_equal(numpy.asarray(have, dtype=numpy.uint64), numpy.array(column, dtype=numpy.uint64)), \
            "%s: %s: %d items, not %d" % (what, name, len(have), len(column))
    for k, v in ATTRIBUTES.items():
        assert attributes[k] == v, (what, k)
    reference_says_clean(path, what)


def reference_says_clean(path, what):
    with open(path, "rb") as f:
        bad = d7ref.File(f.read()).check()
    assert not bad, (what, bad)


def index_length_of(path):
    """Length of the fragment that the global index begins with."""
    with open(path, "rb") as f:
        data = f.read()
    f = d7ref.File(data)
    return next(len(p) for at, _, p in d7ref.fragments(data, f.epilogue[1]))


def shapes(folder):
    """Lengths around a page; index fragments whose length's low byte is on both sides of 128; last pages of one item."""
    rng = random.Random(SEED)
    path = os.path.join(folder, "f.photons")
    sides = set()
    for pages in range(1, 24):
        n = 8192 * rng.choice([1, 2]) * (pages // 8) + rng.choice([1, 2, 77, 8191])
        s, columns = lincam(rng, n, pages * 3, extra=[("/extra/%d" % pages, 4)])
        write(s, columns, path, rng.choice([500, 8192, 30000]))
        check(s, columns, path, "%d items" % n)
        sides.add(index_length_of(path) % 256 >= 128)
    assert sides == {True, False}, "the index never had both lengths"
    for n in (1, 2, 8191, 8192, 8193, 16385):
        s, columns = lincam(rng, n, 2049, index_step=1)
        write(s, columns, path, 3000)
        check(s, columns, path, "%d items, islands" % n)
    for spare in range(4):  # bytes left in the block before the second entry
        header = len(d7ref.header_entry([("/photons/pad", 4), ("/photons/x", 5)]))
        s = Script([("/photons/pad", 4), ("/photons/x", 5)], early=None)
        for k, v in ATTRIBUTES.items():
            s.set(k, v)
        columns = [[1] * (16384 - 2 - header - 2 - 9 - spare), [7, 9, 4]]
        for d, c in enumerate(columns):
            s.append(d, c)
        s.run(path)
        check(s, columns, path, "spare %d" % spare)


def ended_early(folder):
    """The short last pages of x, y and dt stand in the middle of the file, pages of ms follow."""
    path = os.path.join(folder, "f.photons")
    for n in (1, 100, 8192, 20000):
        rng = random.Random(SEED + n)
        s, columns = lincam(rng, n, 9000, index_step=2)
        for d in range(3):
            s.append(d, columns[d])
            s.end(d)
        s.append(3, columns[3])
        s.run(path)
        check(s, columns, path, "%d photons, ended early" % n)


def index_lengths(folder):
    """Every length of the global index around 128 bytes, where its own length takes a byte more, and around 256."""
    path = os.path.join(folder, "f.photons")
    seen = set()
    for n in range(0, 220):
        s = Script([("/photons/x", 5)])
        s.set("k", "v" * n)
        s.append(0, [n, 4095, 0, n])
        s.run(path)
        seen.add(index_length_of(path))
        assert photonsfile.read_photons(path)["x"].tolist() == [n, 4095, 0, n], n
        assert photonsfile.read_attributes(path)["k"] == "v" * n, n
    assert seen >= set(range(70, 128)) | set(range(135, 250)) and len(seen) == 220, sorted(seen)


def two_clocks(folder):
    """Files with two TDCs: dt is the difference of the two stamps; some cameras store them as int64."""
    path = os.path.join(folder, "f.photons")
    for i, stamps in enumerate((7, 3, 7)):
        rng = random.Random(SEED + i)
        n = (1, 2048 * 5, 7001)[i]
        start, t = [], 1 << 40
        for _ in range(n):
            t += rng.randrange(90000)
            start.append(t)
        columns = [[rng.randrange(4096) for _ in range(n)] for _ in range(2)] + [start, [t + rng.randrange(12500) for t in start]]
        s = Script([("/photons/x", 5), ("/photons/y", 5), ("/start/time", stamps), ("/stop/time", stamps)])
        write(s, columns, path, 3000)
        got = photonsfile.read_photons(path)
        assert got["dt"].tolist() == [b - a for a, b in zip(columns[2], columns[3])], i
        assert got["x"].tolist() == columns[0] and photonsfile.PhotonsFile(path).dual_tdc
        reference_says_clean(path, "two clocks %d" % i)


def in_pieces(path, columns, what):
    """The same columns, a few pages at a time."""
    parts = list(photonsfile.iter_photons(path, chunk_blocks=2))
    for k, name in enumerate(("x", "y", "dt")):
        got = numpy.concatenate([p[name] for p in parts]) if parts else numpy.zeros(0)
        assert numpy.array_equal(got.astype(numpy.uint64), numpy.array(columns[k], dtype=numpy.uint64)), (what, name)


def randomly(folder):
    path = os.path.join(folder, "f.photons")
    for i in range(RANDOM_FILES):
        rng = random.Random(SEED * 1000 + i)
        s, columns = lincam(rng, rng.choice([0, 1, rng.randrange(1, 40000 if i % 8 == 0 else 9000)]), rng.randrange(0, 5000),
                            index_step=rng.choice([1, 2, 3, 512]))
        write(s, columns, path, rng.choice([100, 1000, 8192, 50000]))
        if columns[0]:
            check(s, columns, path, "random LINCam file %d" % i)
            in_pieces(path, columns, "random LINCam file %d" % i)
        else:
            reference_says_clean(path, "random LINCam file %d" % i)


def reference_reads_all(folder):
    """Closed and abandoned files of every shape, read by the reference."""
    path = os.path.join(folder, "f.photons")
    for i in range(RANDOM_FILES):
        rng = random.Random(SEED * 2000 + i)
        s = random_script(rng, largest=6000)
        closed = rng.random() < 0.6
        s.run(path, close=closed)
        with open(path, "rb") as f:
            f = d7ref.File(f.read())
        assert not f.check(), (i, f.check())
        assert f.state == ("closed" if closed else "open")
        for d, (_, t) in enumerate(s.datasets):
            want = [v for step in s.steps if step[0] == "append" and step[1] == d for v in step[2]]
            if not closed:
                want = want[:len(want) // d7ref.items_per_page(t, s.page) * d7ref.items_per_page(t, s.page)]
            assert array.array(d7ref.ARRAY_CODE[t], f.values[d]) == array.array(d7ref.ARRAY_CODE[t], want), (i, d)


def recording(folder):
    """A real recording: the slice kept in tests/data, if it is there, read back and counted by the d7 command too."""
    source = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "data", "hazelnut")
    if not os.path.isdir(source):
        return
    columns = []
    for name, code in (("x.u16", "H"), ("y.u16", "H"), ("dt.u16", "H"), ("ms.u64", "Q")):
        a = array.array(code)
        with open(os.path.join(source, name), "rb") as f:
            a.frombytes(f.read())
        columns.append(a.tolist())
    s, _ = lincam(random.Random(1), 1, 1)
    path = os.path.join(folder, "f.photons")
    write(s, columns, path, 25000)
    check(s, columns, path, "the recording")
    subprocess.run([require.built("d7"), "verify", path], check=True, stdout=subprocess.DEVNULL)


def main():
    with tempfile.TemporaryDirectory() as folder:
        shapes(folder)
        ended_early(folder)
        randomly(folder)
        reference_reads_all(folder)
        recording(folder)


if __name__ == "__main__":
    main()
