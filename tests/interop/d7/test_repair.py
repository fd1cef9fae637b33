"""d7 repair from outside: what it keeps is held against independent readers and an independent computation of what it should
keep; folders, JSON, exit codes, files that are left alone.

    test_repair.py              by the reference implementation
    test_repair.py photonsfile  by photonsfile
"""
import fcntl
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import d7ref
from d7run import D7, d7

SOURCE = os.environ["PHOTOND_SOURCE"]
FIXTURES = os.path.join(SOURCE, "tests", "fixtures", "d7")
LINCAM = [("/photons/x", 5), ("/photons/y", 5), ("/photons/dt", 5), ("/photons/ms", 7)]
PAGE = 256
SEED = 11


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def recording(photons=4000, closed=True, step=1, turn=300, datasets=LINCAM, page=PAGE):
    """A file and its columns: ms is the index of the first photon of each millisecond."""
    rng = random.Random(SEED)
    columns = [[rng.randrange(4096) for _ in range(photons)] for _ in datasets[:-1]]
    ms = sorted(rng.randrange(photons + 1) for _ in range(photons // 9))
    columns.append(ms)
    w = d7ref.Writer(datasets, step, page, early={"/photons/PositionBits": "12", "/photons/TacBits": "12"})
    done = 0
    for at in range(0, photons, turn):
        for d, c in enumerate(columns[:-1]):
            w.append(d, c[at:at + turn])
        now = sum(1 for v in ms if v <= at + turn)
        w.append(len(columns) - 1, ms[done:now])
        done = now
    return (w.close() if closed else w.unfinished()), columns


def clean(path, what):
    f = d7ref.File(read(path))
    bad = f.check()
    assert not bad and f.state == "closed", (what, bad, f.state)
    assert b"clean" in d7("verify", path) or b"data notes" in d7("verify", path), what
    return f


def repaired(data, folder, code=0, options=()):
    """Repairs a file with these bytes: what d7 says of it, and its columns; None where there is none."""
    path, out = os.path.join(folder, "run.photons"), os.path.join(folder, "out.photons")
    write(path, data)
    if os.path.exists(out):
        os.unlink(out)
    said = json.loads(d7("repair", path, "-o", out, "--json", *options, code=code))
    assert read(path) == data, "the source was changed"
    assert not [n for n in os.listdir(folder) if n not in ("run.photons", "out.photons")], os.listdir(folder)
    if code:
        assert said["result"] == "failed" and not os.path.exists(out)
        return said, None
    if said["result"] == "fine":
        assert not os.path.exists(out)
        return said, None
    return said, clean(out, said).values


# ---- what should be kept, computed from what was damaged

def whole_pages(data, damaged):
    """(offset, dataset, first item, items) of each page of an undamaged file; those that begin in `damaged` are lost."""
    count, pages = {}, []
    for at, dataset, n in d7ref.File(data).pages:
        first = count.get(dataset, 0)
        count[dataset] = first + n
        pages.append((at, dataset, first, n, at in damaged))
    return pages


def expected(columns, pages):
    """Columns without what any of x, y, dt lost; ms counted anew from the photons that are left."""
    n = len(columns[0])
    there = [True] * n
    for _, dataset, first, items, lost in pages:
        if lost and dataset < 3:
            there[first:first + items] = [False] * items
    new, left = [], 0
    for ok in there:
        new.append(left)
        left += ok
    new.append(left)
    end = n
    while end and not there[end - 1]:
        end -= 1
    kept = [[v for v, ok in zip(c, there) if ok] for c in columns[:3]]
    ms = list(columns[3])
    while ms and ms[-1] > end:
        ms.pop()
    return kept + [[new[v] for v in ms]], there


def gaps_of(there):
    """(item in the new file, item in the old one, count) of each run of lost photons that others follow."""
    out, i, left = [], 0, 0
    while i < len(there):
        if there[i]:
            i += 1
            left += 1
            continue
        start = i
        while i < len(there) and not there[i]:
            i += 1
        if i < len(there):
            out.append({"group": "photons", "item": left, "source_item": start, "count": i - start})
    return out


# ---- tests

def fixtures():
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(os.listdir(FIXTURES)):
            if not name.endswith(".photons"):
                continue
            data = read(os.path.join(FIXTURES, name))
            if name in ("bad_signature.photons", "cut_in_header.photons"):
                repaired(data, folder, code=2)
                continue
            said, columns = repaired(data, folder)
            described = os.path.join(FIXTURES, name[:-8] + ".json")
            if columns is None or not os.path.exists(described):
                continue
            with open(described) as f:
                told = json.load(f)
            assert [d["name"] for d in said["datasets"]] == [d["name"] for d in told["datasets"]], name
            for got, d in zip(said["datasets"], told["datasets"]):
                want = d["items"] if "items" in d else len(d["values"])
                assert got["kept"] + got["left_out"] == want, (name, got, want)


def cuts():
    data, columns = recording()
    pages = whole_pages(data, ())
    rng = random.Random(SEED)
    ends = sorted(set(at for at, _ in d7ref.entries(data)))
    sizes = set(rng.randrange(200, len(data)) for _ in range(100))
    sizes |= set(e + k for e in rng.sample(ends, 20) for k in (-1, 0, 1, 2, 3) if 200 < e + k < len(data))
    with tempfile.TemporaryDirectory() as folder:
        for n in sorted(sizes):
            said, got = repaired(data[:n], folder)
            kept = len(got[0])
            assert kept == len(got[1]) == len(got[2]), (n, [len(c) for c in got])
            for have, want in zip(got, columns):
                assert have == want[:len(have)], n
            # As many as are in whole pages of all three; the file's own reader is not asked.
            whole = [sum(k for at, d, _, k, _ in pages if d == which and end_of(data, at) <= n) for which in range(3)]
            assert kept == min(whole), (n, kept, whole)
            assert all(v <= kept for v in got[3]), n


def end_of(data, at):
    for where, flags, payload in d7ref.fragments(data, at):
        if flags & d7ref.END:
            return where + 2 + len(payload)
    raise AssertionError("no end")


def lost_pages():
    data, columns = recording()
    pages = d7ref.File(data).pages
    rng = random.Random(SEED + 1)
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(60):
            lost = set(at for at, dataset, n in rng.sample(pages, rng.choice([1, 1, 2, 5])) if dataset < 3 and n == 128)
            damaged = bytearray(data)
            for at in lost:
                damaged[at + 2] ^= 0x40
            said, got = repaired(bytes(damaged), folder)
            if not lost:
                assert said["result"] == "fine"
                continue
            want, there = expected(columns, whole_pages(data, lost))
            for have, column in zip(got, want):
                assert have == column, (turn, lost)
            assert said["gaps"] == gaps_of(there), (turn, said["gaps"])
            f = d7ref.File(read(os.path.join(folder, "out.photons")))
            for i, gap in enumerate(said["gaps"]):
                record = json.loads(f.attributes["photond.gap.%08d" % i])
                assert record["item"] == gap["item"] and record["count"] == gap["count"], record
                assert record["monotonic"] is None and record["utc"] is None and record["cause"].startswith("repair")


def zeroed_blocks():
    for closed in (True, False):
        data, columns = recording(12000, closed)
        whole = d7ref.File(data)
        with tempfile.TemporaryDirectory() as folder:
            for block in range(1, len(data) // d7ref.BLOCK):
                low, high = block * d7ref.BLOCK, (block + 1) * d7ref.BLOCK
                damaged = bytearray(data)
                damaged[low:high] = bytes(d7ref.BLOCK)
                hit = set(at for at, _, _ in whole.pages if at < high and end_of(data, at) > low)
                said, got = repaired(bytes(damaged), folder)
                want, _ = expected(columns, whole_pages(data, hit))
                if closed or not hit:
                    assert said["unknown_from"] is None
                if said["unknown_from"] is not None:
                    continue
                n = min(len(c) for c in want[:3]) if closed else len(got[0])
                ms_hit = any(at in hit and d == 3 for at, d, _ in whole.pages)
                for i, (have, column) in enumerate(zip(got, want)):
                    if i < 3:
                        assert have == column[:n], (closed, block, i)
                    elif not ms_hit:
                        assert have == column[:len(have)] and (not closed or len(have) == len(column)), (closed, block)


def unframed_file():
    with tempfile.TemporaryDirectory() as folder:
        said, got = repaired(read(os.path.join(FIXTURES, "unframed.photons")), folder)
        assert said["state"] == "unframed" and said["result"] == "repaired"
        with open(os.path.join(FIXTURES, "unframed.json")) as f:
            told = json.load(f)
        for have, d in zip(got, told["datasets"]):
            assert have == d["values"], d["name"]


def unframed_long():
    """Several blocks of them, whole and cut."""
    data, columns = recording(12000)
    run, blocks = b"".join(e for _, e in d7ref.entries(data) if e[0] >> 3 in (1, 2)), b""
    for at in range(0, len(run), d7ref.BLOCK - 2):
        part = run[at:at + d7ref.BLOCK - 2]
        blocks += struct.pack("<H", len(part)) + part
    with tempfile.TemporaryDirectory() as folder:
        for n in (len(blocks), len(blocks) - 20, 2 * d7ref.BLOCK, 40000):
            said, got = repaired(blocks[:n], folder)
            assert said["state"] == "unframed", said
            kept = len(got[0])
            assert kept == len(got[1]) == len(got[2]) and kept >= 128 * (n * 12000 // len(blocks) // 128 - 4), (n, kept)
            for have, want in zip(got, columns):
                assert have == want[:len(have)], n
            if n == len(blocks):
                assert kept == 12000 and len(got[3]) == len(columns[3])


def names_and_attributes():
    """Text that is no UTF-8 becomes text, and unknown fields stay."""
    entry = d7ref.ld(1, d7ref.ld(1, d7ref.SIGNATURE) + d7ref.vi(2, 1) + d7ref.vi(3, 0) + d7ref.vi(4, 7) + d7ref.ld(5, b"free")
                     + d7ref.vi(6, 512) + d7ref.ld(7, d7ref.ld(1, b"/a\xff") + d7ref.vi(2, 5) + d7ref.vi(3, 0))
                     + d7ref.ld(7, d7ref.ld(1, b"/b") + d7ref.vi(2, 5) + d7ref.ld(12, b"more")) + d7ref.ld(7, d7ref.ld(1, b"/b") + d7ref.vi(2, 5))
                     + d7ref.vi(8, 64) + d7ref.ld(20, b"kept"))
    page = d7ref.ld(2, d7ref.ld(11, b"mine") + d7ref.vi(1, 0) + d7ref.vi(3, 4) + d7ref.ld(4, bytes(31)))
    f = d7ref.Framer()
    f.append(entry)
    for e in d7ref.index_entries([], {"k": "v"}):
        f.append(e.replace(b"v", b"\xfe"))
    f.append(page)
    with tempfile.TemporaryDirectory() as folder:
        said, got = repaired(bytes(f.out), folder)
        assert got == [[2] * 32, [], []]
        data = read(os.path.join(folder, "out.photons"))
        for kept in (b"free", b"more", b"kept", b"mine", b"/a\xef\xbf\xbd", b"\xef\xbf\xbd", b"/b_"):
            assert kept in data, kept


def folders():
    with tempfile.TemporaryDirectory() as folder:
        deep = os.path.join(folder, "a", "b")
        os.makedirs(deep)
        data, _ = recording(1000)
        write(os.path.join(folder, "fine.photons"), data)
        write(os.path.join(folder, "notes.txt"), b"no file")
        write(os.path.join(folder, "a", "cut.photons"), data[:-100])
        write(os.path.join(deep, "bad.photons"), b"nothing")
        write(os.path.join(deep, "damaged.photons"), data[:5000])
        os.symlink(folder, os.path.join(deep, "loop"))
        said = json.loads(d7("repair", folder, "--recursive", "--json", code=2))
        assert [(os.path.relpath(r["file"], folder), r["result"]) for r in said] == [
            ("a/b/bad.photons", "failed"), ("a/b/damaged.photons", "repaired"), ("a/cut.photons", "repaired"),
            ("fine.photons", "fine")], said
        assert "bad.photons" in d7.err
        clean(os.path.join(deep, "damaged.repaired.photons"), "folder")
        assert sorted(os.listdir(deep)) == ["bad.photons", "damaged.photons", "damaged.repaired.photons", "loop"]
        # Results of before are not repaired, and not replaced.
        table = d7("repair", folder, "--recursive", code=2).decode()
        assert "exists" in d7.err and table.count("\n") >= 5 and "failed" in table
        assert d7("repair", folder, "--recursive", "--overwrite", code=2)
        os.unlink(os.path.join(deep, "bad.photons"))
        table = d7("repair", folder, "--recursive", "--overwrite").decode().splitlines()
        assert table[-3].split()[:1] == ["open"] and table[-1].endswith("fine.photons"), table


def in_place():
    data, columns = recording(2000)
    rng = random.Random(SEED + 2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.photons")
        for n in [rng.randrange(300, len(data)) for _ in range(40)]:
            write(path, data[:n])
            said = json.loads(d7("repair", path, "--in-place", "--json"))
            assert said["result"] == "repaired in place"
            f = clean(path, n)
            kept = read(path + ".cut.0") if said["cut_bytes"] else b""
            assert data[:n].endswith(kept) and len(kept) == said["cut_bytes"]
            whole = n - len(kept)
            assert read(path)[:whole] == data[:whole], n
            for have, want in zip(f.values, columns):
                assert have == want[:len(have)], n
            now = read(path)
            assert b"nothing to do" in d7("repair", path, "--in-place") and read(path) == now
            if kept:
                os.unlink(path + ".cut.0")
        damaged = bytearray(recording(2000, closed=False)[0])
        damaged[d7ref.File(bytes(damaged)).pages[5][0] + 2] ^= 0x40
        write(path, damaged)
        assert d7("repair", path, "--in-place", code=1) == b"" and "-o" in d7.err
        assert read(path) == damaged
        write(path, data[:10000])
        write(path + ".tail", b"x")
        assert d7("repair", path, "--in-place", code=1) == b"" and "tail" in d7.err
        assert read(path) == data[:10000]


def refusals():
    data, _ = recording(2000, closed=False)
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "run.photons"), os.path.join(folder, "out.photons")
        write(path, data)
        with open(path, "r+b") as f:
            # F_OFD_SETLK of a write lock on the whole file, as a writer holds it.
            fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
            assert d7("repair", path, "-o", out, code=1) == b"" and "writer holds" in d7.err
            assert d7("repair", path, "--in-place", code=1) == b"" and "writer holds" in d7.err
        assert os.listdir(folder) == ["run.photons"]
        write(out, b"mine")
        assert d7("repair", path, "-o", out, code=2) == b"" and "exists already" in d7.err and read(out) == b"mine"
        d7("repair", path, "-o", out, "--overwrite")
        clean(out, "overwritten")
        assert sorted(os.listdir(folder)) == ["out.photons", "run.photons"]
        for arguments in ([], [path, path], [path, "--in-place", "-o", out], [folder], [folder, "--recursive", "-o", out],
                          [os.path.join(folder, "nothing.photons")], [path, "-o", os.path.join(folder, "no", "x")]):
            assert d7("repair", *arguments, code=2) == b"", arguments
        assert b"run.repaired.photons" in d7("repair", path)
        assert d7("repair", path, code=2) == b"" and "exists already" in d7.err
        os.replace(out, path)  # needs no repair, whatever lies beside it
        assert b"nothing to do" in d7("repair", path)
        help_text = d7("repair", "--help").decode()
        assert "Examples:" in help_text and "Exit status:" in help_text


def stopping():
    """A signal leaves no half file, under no name."""
    data, _ = recording(60000, closed=False, turn=60000)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.photons")
        write(path, data)
        for delay in (0.0, 0.005, 0.02):
            p = subprocess.Popen(["timeout", "-s", "INT", str(delay + 0.001), D7, "repair", path], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
            p.wait()
            rest = [n for n in os.listdir(folder) if n != "run.photons"]
            # Stopped before the handler was set, nothing had begun; else it is whole, or nothing is there.
            for name in rest:
                assert name == "run.repaired.photons", name
                clean(os.path.join(folder, name), name)
                os.unlink(os.path.join(folder, name))


def checksums_that_cannot_be_used():
    """copy and repair say so, on standard error and in JSON, and go on."""
    data, _ = recording(3000)
    with tempfile.TemporaryDirectory() as folder:
        path, out, sums = (os.path.join(folder, n) for n in ("run.photons", "out.photons", "run.photons.crc"))
        write(path, data)
        d7("verify", path, "--write-checksums")
        good = read(sums)

        def told(fault, *arguments):
            said = json.loads(d7(*arguments, "--json"))["checksum_fault"]
            lines = [line for line in d7.err.splitlines() if ".crc" in line]
            assert (fault in said and len(lines) == 1 and fault in lines[0]) if fault else (said is None and not lines), (said, d7.err)
            if os.path.exists(out):
                os.unlink(out)
        for content, fault in ((good, None), (b"x" * 40, "no file of checksums"), (good[:-3], "torn"), (None, "run.photons.crc")):
            os.unlink(sums)
            write(sums, content) if content else os.mkdir(sums)
            for bytes_ in (data, data[:len(data) * 3 // 4]):
                write(path, bytes_)
                told(fault, "repair", path, "-o", out)
                told(fault, "copy", path, out)
                told(fault, "copy", path, out, "--from", "5")
                if len(bytes_) < len(data):
                    told(fault, "repair", path, "--in-place")


def by_photonsfile():
    import require
    photonsfile = require.module("photonsfile")
    numpy = require.module("numpy")
    data, columns = recording(60000, turn=5000, page=16384, step=512)
    rng = random.Random(SEED + 3)
    pages = d7ref.File(data).pages
    with tempfile.TemporaryDirectory() as folder:
        cases = [("cut at %d" % n, data[:n], ()) for n in (rng.randrange(60000, len(data)) for _ in range(10))]
        for at, dataset, n in pages:
            if dataset < 3 and n == 8192:
                damaged = bytearray(data)
                damaged[at + 2] ^= 0x40
                cases.append(("page at %d" % at, bytes(damaged), (at,)))
        for what, bytes_, lost in cases:
            _, got = repaired(bytes_, folder)
            read_by = photonsfile.read_photons(os.path.join(folder, "out.photons"))
            want = expected(columns, whole_pages(data, lost))[0] if lost else columns
            for name, have, column in zip(("x", "y", "dt", "ms"), got, want):
                theirs = numpy.asarray(read_by.get(name, numpy.zeros(0)), dtype=numpy.uint64)
                assert numpy.array_equal(theirs, numpy.array(have, dtype=numpy.uint64)), (what, name)
                assert have == column[:len(have)] and (not lost or len(have) == len(column)), (what, name)
            assert photonsfile.read_attributes(os.path.join(folder, "out.photons"))["/photons/TacBits"] == "12"


if sys.argv[1:] == ["photonsfile"]:
    by_photonsfile()
else:
    for test in (fixtures, cuts, lost_pages, zeroed_blocks, unframed_file, unframed_long, names_and_attributes, folders, in_place, refusals, checksums_that_cannot_be_used,
                 stopping):
        test()
