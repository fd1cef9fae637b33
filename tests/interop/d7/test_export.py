"""d7 export: what numpy, csv readers, h5py and phconvert read is what the file holds, whole, in parts, and around damage."""
import csv
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

import require

np = require.module("numpy")
import d7ref  # noqa: E402
import ptumake  # noqa: E402
from d7run import D7, d7  # noqa: E402

FIXTURES = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "fixtures", "d7")
NUMPY = dict(zip(d7ref.TYPES, ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]))
PAGE = 256


def fixture(name):
    return os.path.join(FIXTURES, name + ".photons")


def columns_of(path):
    """By the reference: {name: array}, attributes."""
    with open(path, "rb") as f:
        read = d7ref.File(f.read())
    return ({name: np.array(values, NUMPY[d7ref.TYPES[code]]) for (name, code), values in zip(read.datasets, read.values)},
            read.public_attributes())


def write_file(path, datasets, attributes=None, page_bytes=2 * PAGE):
    """A file by the reference: [(name, type name, values)]."""
    w = d7ref.Writer([(name, d7ref.TYPES.index(t)) for name, t, _ in datasets], 512, page_bytes)
    for key, value in (attributes or {}).items():
        w.attribute(key, value)
    for i, (_, _, values) in enumerate(datasets):
        w.append(i, [v.item() if hasattr(v, "item") else v for v in values])
    with open(path, "wb") as f:
        f.write(w.close())


LINCAM = {"/photons/PositionBits": "12", "/photons/TacBits": "12", "/photons/TacChannel": "12.5", "Comment": "A \u00b5m"}


def lincam(path, n=3000, seed=1, extra=(), attributes=LINCAM):
    rng = np.random.default_rng(seed)
    ms = np.sort(rng.integers(0, n + 1, 50))
    ms[0] = 0
    datasets = [("/photons/x", "uint16", rng.integers(0, 4096, n)), ("/photons/y", "uint16", rng.integers(0, 4096, n)),
                ("/photons/dt", "uint16", rng.integers(0, 4096, n)), ("/photons/ms", "uint64", ms)]
    datasets += [(name, t, f(rng, n)) for name, t, f in extra]
    write_file(path, datasets, attributes)
    return {name: np.array(values, NUMPY[t]) for name, t, values in datasets}


def damage(path, dataset, page):
    """Spoils one page so that it does not decode: its first varint of deltas never ends."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    number = ["/photons/x", "/photons/y", "/photons/dt", "/photons/ms"].index(dataset)
    seen = 0
    for where, entry in d7ref.entries(bytes(data)):
        field, _, body = next(d7ref.fields(entry))
        if field == 2 and next((v for f, _, v in d7ref.fields(body) if f == 1), 0) == number:
            if seen == page:
                at = where + 2 + len(entry) - 40
                data[at:at + 40] = b"\xff" * 40
                break
            seen += 1
    with open(path, "wb") as f:
        f.write(data)


# ---- npz ----

def load(path):
    with np.load(path) as z:
        meta = json.loads(z["metadata.json"])
        return {d["name"]: z[d["key"]] for d in meta["datasets"]}, meta


def npz_of_fixtures(folder):
    out = os.path.join(folder, "out.npz")
    for name in sorted(os.listdir(FIXTURES)):
        path = os.path.join(FIXTURES, name)
        if not name.endswith(".json") or json.load(open(path)).get("state") == "unframed":
            continue
        path = path[:-5] + ".photons"
        p = subprocess.run([D7, "export", path, "-o", out, "--overwrite"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if p.returncode == 2:
            continue
        assert p.returncode in (0, 1), (name, p.stderr)
        if p.returncode == 1:
            continue
        got, meta = load(out)
        told = json.load(open(path[:-8] + ".json"))
        if all("values" in d for d in told["datasets"]):
            want = {d["name"]: np.array(d["values"], NUMPY[d["type"]]) for d in told["datasets"]}
            attributes = told["attributes"]
        else:
            want, attributes = columns_of(path)
        assert set(got) == set(want), name
        for key, values in want.items():
            shortest = len(got[key])
            assert np.array_equal(got[key], values[:shortest], equal_nan=values.dtype.kind == "f"), (name, key)
            assert got[key].dtype == values.dtype
        assert meta["attributes"] == attributes and meta["file"] == os.path.basename(path)
    assert os.listdir(folder) == ["out.npz"]


def npz_every_level(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.npz")
    want = lincam(path)
    sizes = []
    for level in range(10):
        d7("export", path, "-o", out, "--compress", str(level), "--overwrite")
        got, _ = load(out)
        for key, values in want.items():
            assert np.array_equal(got[key], values)
        with zipfile.ZipFile(out) as z:
            assert z.testzip() is None
            kinds = {i.compress_type for i in z.infolist()}
            assert kinds == {zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED}
            assert [i.filename for i in z.infolist()] == ["photons/x.npy", "photons/y.npy", "photons/dt.npy", "photons/ms.npy",
                                                          "metadata.json"]
        sizes.append(os.path.getsize(out))
    assert min(sizes[1:]) < sizes[0]
    before = open(out, "rb").read()
    d7("export", path, "-o", out, "--compress", "9", "--overwrite")
    assert open(out, "rb").read() == before


def npz_names(folder):
    """Names that would leave the folder, hide each other or be no names."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.npz")
    names = ["/a/b", "a/b", "/../../etc/x", "//", "/a", "/metadata.json", "/a\nb", "/\u00b5", "/a/./c"]
    write_file(path, [(name, "uint16", [i, i + 1]) for i, name in enumerate(names)])
    d7("export", path, "-o", out)
    got, meta = load(out)
    assert [int(got[name][0]) for name in names] == list(range(len(names)))
    keys = [d["key"] for d in meta["datasets"]]
    assert len(set(keys)) == len(keys) and keys[0] == "a/b" and "\u00b5" in keys
    for key in keys:
        assert not key.startswith("/") and ".." not in key.split("/") and "" not in key.split("/") and "\n" not in key, key
    # A dataset's name may be the folder of another's.
    for names, want in ((["/a/b", "/a/b/c"], ["a/b", "a/b~1/c"]), (["/a", "/a/b/c", "/a/d"], ["a", "a~1/b/c", "a~2/d"]),
                        (["/metadata.json/x"], ["metadata.json~0/x"]), (["/", "//"], ["_", "_~1/_"]),
                        (["/a~2/x", "/a", "/a/q"], ["a~2/x", "a", "a~3/q"])):
        write_file(path, [(name, "uint16", [i, i + 1]) for i, name in enumerate(names)])
        d7("export", path, "-o", out, "--overwrite")
        meta = load(out)[1]
        assert [d["key"] for d in meta["datasets"]] == want, meta["datasets"]
        write_file(path, [("/tags/time", "uint64", [1, 2])] + [(name, "uint16", [i, i + 1]) for i, name in enumerate(names)])
        has_hdf5(path, folder)  # which ends


# ---- csv ----

def read_csv(data):
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    return rows[0], [[float(v) for v in row] for row in rows[1:]]


def csv_columns(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.csv")
    want = lincam(path)
    d7("export", path, "-o", out)
    data = open(out, "rb").read()
    assert data == d7("export", path, "-o", "-") == d7("export", path, "-o", "-", "--format", "csv")
    head, rows = read_csv(data)
    assert head == ["/photons/x", "/photons/y", "/photons/dt"] and b"\r" not in data
    assert np.array_equal(np.array(rows).T, [want[name] for name in head])
    head, rows = read_csv(d7("export", path, "-o", "-", "--dataset", "/photons/dt", "--dataset", "/photons/x"))
    assert head == ["/photons/dt", "/photons/x"] and np.array_equal(np.array(rows).T, [want[name] for name in head])
    head, rows = read_csv(d7("export", path, "-o", "-", "--dataset", "/photons/ms"))
    assert head == ["/photons/ms"] and [r[0] for r in rows] == list(want["/photons/ms"])
    d7("export", path, "-o", "-", "--dataset", "/photons/ms", "--dataset", "/photons/x", code=2)
    assert "different lengths" in d7.err
    types, _ = columns_of(fixture("all_types"))
    for name, values in types.items():
        lines = d7("export", fixture("all_types"), "-o", "-", "--dataset", name).decode().split()
        got = np.array([values.dtype.type(v) for v in lines[1:]])
        assert lines[0] == name and np.array_equal(got, values, equal_nan=values.dtype.kind == "f"), name
    d7("export", fixture("all_types"), "-o", "-", code=2)
    assert "--dataset" in d7.err
    odd = os.path.join(folder, "odd.photons")
    write_file(odd, [('/a "b", c', "int64", [-2 ** 63, 2 ** 63 - 1, 0])])
    assert d7("export", odd, "-o", "-", "--dataset", '/a "b", c') == \
        b'"/a ""b"", c"\n-9223372036854775808\n9223372036854775807\n0\n'
    empty = os.path.join(folder, "empty.photons")
    write_file(empty, [("/photons/x", "uint16", [])])
    assert d7("export", empty, "-o", "-") == b"/photons/x\n"


# ---- ranges and damage ----

def ranges(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.npz")
    want = lincam(path, extra=[("/other", "int32", lambda rng, n: rng.integers(-9, 9, 7))])
    ms = want["/photons/ms"]
    for a, b in ((0, 3000), (0, 1), (100, 1700), (255, 257), (2999, 3000), (5, 5)):
        d7("export", path, "-o", out, "--from", str(a), "--to", str(b), "--overwrite")
        got, meta = load(out)
        for name in ("/photons/x", "/photons/y", "/photons/dt"):
            assert np.array_equal(got[name], want[name][a:b]), (a, b, name)
        assert np.array_equal(got["/other"], want["/other"])
        # Milliseconds from that of the first photon to that of the last, counted from the first.
        if b > a:
            first, last = np.searchsorted(ms, a, "right") - 1, np.searchsorted(ms, b - 1, "right") - 1
            assert np.array_equal(got["/photons/ms"], np.clip(ms[first:last + 1], a, b) - a), (a, b)
        else:
            assert len(got["/photons/ms"]) == 0
        assert meta["datasets"][0]["ranges"] == ([[a, b]] if b > a else [])
    d7("export", path, "-o", out, "--from", "10ms", "--to", "20ms", "--overwrite")
    got, _ = load(out)
    assert np.array_equal(got["/photons/x"], want["/photons/x"][ms[10]:ms[20]])
    assert len(got["/photons/ms"]) <= 10
    _, rows = read_csv(d7("export", path, "-o", "-", "--from", "10ms", "--to", "20ms"))
    assert np.array_equal(np.array(rows).T[0], want["/photons/x"][ms[10]:ms[20]])
    d7("export", path, "-o", out, "--from", "x", "--overwrite", code=2)


def around_damage(folder):
    path = os.path.join(folder, "in.photons")
    for bad in ([("/photons/x", 0)], [("/photons/y", 3), ("/photons/dt", 5)], [("/photons/dt", 11)],
                [("/photons/x", 2), ("/photons/y", 2), ("/photons/dt", 3)]):
        want = lincam(path)
        n = 3000
        for dataset, page in bad:
            damage(path, dataset, page)
        keep = np.ones(n, bool)
        for _, page in bad:
            keep[page * PAGE:(page + 1) * PAGE] = False
        before = np.concatenate([[0], np.cumsum(keep)])
        out = os.path.join(folder, "out.npz")
        d7("export", path, "-o", out, "--overwrite", code=1)
        # A damaged last page holds nobody knows how many items: it does not count.
        if bad != [("/photons/dt", 11)]:
            assert "%d items of /photons/x and the columns beside it were left out" % (n - keep.sum()) in d7.err, d7.err
        assert "BAD_PAGE" in d7.err and bad[0][0] in d7.err
        got, meta = load(out)
        for name in ("/photons/x", "/photons/y", "/photons/dt"):
            assert np.array_equal(got[name], want[name][keep]), (bad, name)
        assert np.array_equal(got["/photons/ms"], before[want["/photons/ms"]]), bad
        kept = np.concatenate([np.arange(a, b) for a, b in meta["datasets"][0]["ranges"]])
        assert np.array_equal(kept, np.flatnonzero(keep))
        _, rows = read_csv(d7("export", path, "-o", "-", code=1))
        assert np.array_equal(np.array(rows), np.array([want[k][keep] for k in list(want)[:3]]).T)
        part, _ = load_part(folder, path, 200, 1000)
        assert np.array_equal(part["/photons/x"], want["/photons/x"][200:1000][keep[200:1000]]), bad


def changed_by_checksums(folder):
    """A page that decodes, but not to what was written, is left out when the checksums beside the file say so."""
    path, out = os.path.join(folder, "sums.photons"), os.path.join(folder, "sums.npz")
    want = lincam(path)
    d7("verify", path, "--write-checksums")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    pages = [(w, e) for w, e in d7ref.entries(bytes(data)) if next(d7ref.fields(e))[0] == 2]
    data[pages[1][0] + 2 + 6] ^= 2  # the seed of x's second page: values change, and nothing else
    with open(path, "wb") as f:
        f.write(data)
    d7("export", path, "-o", out, code=1)
    assert "CHECKSUM" in d7.err, d7.err
    got, _ = load(out)
    for name in ("/photons/x", "/photons/y", "/photons/dt"):
        assert (got[name] == np.concatenate([want[name][:PAGE], want[name][2 * PAGE:]])).all(), name
    d7("image", path, "-o", os.path.join(folder, "sums.csv"), code=1)
    assert "CHECKSUM" in d7.err or "damaged" in d7.err, d7.err
    os.unlink(path + ".crc")
    d7("export", path, "-o", out, "--overwrite")


def load_part(folder, path, a, b):
    out = os.path.join(folder, "part.npz")
    p = subprocess.run([D7, "export", path, "-o", out, "--from", str(a), "--to", str(b), "--overwrite"],
                       stderr=subprocess.PIPE)
    assert p.returncode in (0, 1), p.stderr
    return load(out)


def unequal_columns(folder):
    """Of columns of unequal length the shortest counts."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.npz")
    write_file(path, [("/photons/x", "uint16", range(700)), ("/photons/y", "uint16", range(500))])
    d7("export", path, "-o", out)
    got, _ = load(out)
    assert len(got["/photons/x"]) == len(got["/photons/y"]) == 500
    assert "items 500 to 699 of /photons/x have none beside them in /photons/y" in d7.err, d7.err
    d7("export", path, "-o", out, "--overwrite", "--dataset", "/photons/x")
    assert len(load(out)[0]["/photons/x"]) == 700 and d7.err == ""
    # A column that was not in use is none of them.
    write_file(path, [("/photons/x", "uint16", range(700)), ("/photons/y", "uint16", []), ("/photons/dt", "uint16", range(700))])
    d7("export", path, "-o", out, "--overwrite")
    got, _ = load(out)
    assert [len(got[name]) for name in ("/photons/x", "/photons/y", "/photons/dt")] == [700, 0, 700] and d7.err == ""
    assert d7("export", path, "-o", "-").startswith(b"/photons/x,/photons/dt\n0,0\n1,1\n")


# ---- how it ends ----

def usage(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.npz")
    lincam(path, 300)
    text = d7("export", "--help").decode()
    assert text.startswith("usage: d7 export ") and "Examples:" in text and "Exit status:" in text
    for arguments in ([], [path], ["-o", out], [path, "-o", "out.xyz"], [path, "-o", out, "--format", "xml"],
                      [path, "-o", "-", "--format", "npz"], [path, "-o", "-", "--format", "photon-hdf5"],
                      [path, "-o", out, "--compress", "10"], [path, "-o", out, "--compress", "x"],
                      [path, "-o", os.path.join(folder, "o.csv"), "--compress", "1"],
                      [path, "-o", out, "--dataset", "/photons/z"],
                      [path, "-o", out, "--dataset", "/photons/x", "--dataset", "/photons/x"],
                      [path, path, "-o", out], ["/nonexistent", "-o", out], [folder, "-o", out],
                      [path, "-o", "/nonexistent/o.npz"]):
        d7("export", *arguments, code=2)
        assert d7.err and os.listdir(folder) == ["in.photons"], (arguments, os.listdir(folder))
    d7("export", path, "-o", out)
    before = open(out, "rb").read()
    d7("export", path, "-o", out, code=2)
    assert "--overwrite" in d7.err and open(out, "rb").read() == before


def output_that_fails(folder):
    path = os.path.join(folder, "in.photons")
    lincam(path, 20000)
    with open("/dev/full", "wb") as full:
        p = subprocess.run([D7, "export", path, "-o", "-"], stdout=full, stderr=subprocess.PIPE)
    assert p.returncode == 2 and p.stderr
    limit = lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000)))  # noqa: E731
    for name in ["out.npz", "out.csv"] + (["out.hdf5"] if has_hdf5(path, folder) else []):
        p = subprocess.run([D7, "export", path, "-o", os.path.join(folder, name)], stderr=subprocess.PIPE, preexec_fn=limit)
        assert p.returncode == 2 and name in p.stderr.decode() and b"large" in p.stderr, (name, p.stderr)
        assert os.listdir(folder) == ["in.photons"], os.listdir(folder)


def interrupted(folder):
    """A signal in the middle: nothing is left, under no name."""
    ptu, path = os.path.join(folder, "in.ptu"), os.path.join(folder, "in.photons")
    n = 3000000
    with open(ptu, "wb") as f:
        f.write(ptumake.header("generic-t2", n, 1e-12))
        f.write(np.random.default_rng(1).integers(0, 1 << 25, n, dtype=np.uint32).astype("<u4").tobytes())
    d7("import", ptu, "-o", path)
    for name in ["out.npz"] + (["out.hdf5"] if has_hdf5(path, folder) else []):
        p = subprocess.Popen([D7, "export", path, "-o", os.path.join(folder, name), "--compress", "9"], stderr=subprocess.PIPE)
        while not any(entry.startswith("." + name) for entry in os.listdir(folder)):
            time.sleep(0.002)
        p.send_signal(signal.SIGINT)
        assert p.wait() == 2 and b"stopped" in p.stderr.read()
        assert sorted(os.listdir(folder)) == ["in.photons", "in.ptu"], os.listdir(folder)


def has_hdf5(path, folder):
    out = os.path.join(folder, "try.hdf5")
    p = subprocess.run([D7, "export", path, "-o", out], stderr=subprocess.PIPE)
    if p.returncode == 0:
        os.remove(out)
    return p.returncode == 0


# ---- Photon-HDF5 ----

def hdf5_file(folder, path, *options, code=0):
    h5py = require.module("h5py")
    out = os.path.join(folder, "out.hdf5")
    d7("export", path, "-o", out, "--overwrite", *options, code=code)
    return h5py.File(out, "r")


def millisecond_of(ms, photons):
    return np.searchsorted(ms, np.arange(photons), "right") - 1


def hdf5_by_milliseconds(folder):
    path = os.path.join(folder, "in.photons")
    want = lincam(path)
    for options in ([], ["--compress", "3"]):
        with hdf5_file(folder, path, *options) as f:
            assert f.attrs["format_name"] == b"Photon-HDF5" and f.attrs["format_version"] == b"0.5"
            data = f["photon_data"]
            assert data["timestamps"].dtype == np.int64
            assert np.array_equal(data["timestamps"], millisecond_of(want["/photons/ms"], 3000))
            assert data["timestamps_specs/timestamps_unit"][()] == 1e-3
            assert np.array_equal(data["nanotimes"], want["/photons/dt"])
            specs = data["nanotimes_specs"]
            assert specs["tcspc_num_bins"][()] == 4096 and abs(specs["tcspc_unit"][()] / 12.5e-12 - 1) < 1e-12
            assert abs(specs["tcspc_range"][()] / (4096 * 12.5e-12) - 1) < 1e-12
            assert f["acquisition_duration"][()] == 50e-3 and f["description"][()].decode() == "A \u00b5m"
            for name in ("x", "y", "ms"):
                assert np.array_equal(f["user/d7/photons/" + name], want["/photons/" + name])
            meta = json.loads(f["user/d7/metadata"][()])
            assert meta["attributes"] == LINCAM
            assert f["identity/filename"][()] == b"out.hdf5" and f["provenance/filename"][()] == b"in.photons"
            assert f["setup/lifetime"][()] == 1 and f["setup/num_pixels"][()] == 1
            f.visititems(lambda name, o: o.name.startswith("/user") or o.attrs["TITLE"])


def hdf5_part(folder):
    path = os.path.join(folder, "in.photons")
    want = lincam(path)
    with hdf5_file(folder, path, "--from", "500", "--to", "2500", "--dataset", "/photons/x") as f:
        assert np.array_equal(f["photon_data/timestamps"], millisecond_of(want["/photons/ms"], 3000)[500:2500])
        assert np.array_equal(f["photon_data/nanotimes"], want["/photons/dt"][500:2500])
        assert np.array_equal(f["user/d7/photons/x"], want["/photons/x"][500:2500])
        assert "y" not in f["user/d7/photons"]
    damage(path, "/photons/y", 4)
    with hdf5_file(folder, path, code=1) as f:
        keep = np.r_[0:4 * PAGE, 5 * PAGE:3000]
        assert np.array_equal(f["photon_data/timestamps"], millisecond_of(want["/photons/ms"], 3000)[keep])
        assert np.array_equal(f["photon_data/nanotimes"], want["/photons/dt"][keep])
        assert np.array_equal(f["user/d7/photons/y"], want["/photons/y"][keep])


def hdf5_by_clock(folder):
    path = os.path.join(folder, "in.photons")
    rising = lambda rng, n: np.cumsum(rng.integers(0, 1000, n))  # noqa: E731
    want = lincam(path, extra=[("/photons/aat", "uint64", rising), ("/start/time", "int64", rising)],
                  attributes=dict(LINCAM, **{"/photons/TimerFrequency": "8e7"}))
    with hdf5_file(folder, path) as f:
        assert np.array_equal(f["photon_data/timestamps"], want["/photons/aat"])
        assert f["photon_data/timestamps_specs/timestamps_unit"][()] == 1 / 8e7
        span = float(want["/photons/aat"][-1] - want["/photons/aat"][0]) / 8e7
        assert abs(f["acquisition_duration"][()] / span - 1) < 1e-12
        assert np.array_equal(f["user/d7/start/time"], want["/start/time"])
    want = lincam(path, extra=[("/photons/aat", "uint64", rising), ("/start/time", "int64", rising)])
    with hdf5_file(folder, path) as f:
        assert np.array_equal(f["photon_data/timestamps"], want["/start/time"])
        assert f["photon_data/timestamps_specs/timestamps_unit"][()] == 1e-12
        assert np.array_equal(f["user/d7/photons/aat"], want["/photons/aat"])


def hdf5_without(folder):
    """No unit of the micro times: they are no nanotimes. No times: no file."""
    path = os.path.join(folder, "in.photons")
    want = lincam(path, attributes={})
    with hdf5_file(folder, path) as f:
        assert "TacChannel" in d7.err and "nanotimes" not in f["photon_data"] and f["setup/lifetime"][()] == 0
        assert np.array_equal(f["user/d7/photons/dt"], want["/photons/dt"])
    out = os.path.join(folder, "none.hdf5")
    write_file(path, [("/photons/x", "uint16", range(10))])
    d7("export", path, "-o", out, code=2)
    assert "needs times" in d7.err and not os.path.exists(out)
    d7("export", fixture("all_types"), "-o", out, code=2)
    assert "neither photons nor tags" in d7.err and not os.path.exists(out)


def hdf5_valid(folder):
    """phconvert holds names, titles, types and what must be there against its list."""
    require.module("phconvert")
    from phconvert import hdf5
    import tables
    path, ptu, out = (os.path.join(folder, name) for name in ("in.photons", "in.ptu", "out.h5"))

    def check(skip):
        d7("export", path, "-o", out, "--overwrite")
        with tables.open_file(out) as f:
            hdf5.assert_valid_photon_hdf5(f, warnings=False, require_rootformat=True, skip_measurement_specs=skip)
            return {name: f.get_node("/photon_data", name)[:] for name in ("timestamps", "detectors", "nanotimes")
                    if "/photon_data/" + name in f}

    want = lincam(path)
    assert np.array_equal(check(True)["nanotimes"], want["/photons/dt"])
    rng = random.Random(4)
    for kind in ("hydraharp2-t3", "picoharp-t2"):
        t3 = kind.endswith("t3")
        events = [("photon", 1000 * i, rng.randrange(1, 5)) + ((rng.randrange(4096),) if t3 else ()) for i in range(2000)]
        with open(ptu, "wb") as f:
            f.write(ptumake.make(kind, events, 12.5e-9 if t3 else 4e-12, 16e-12))
        d7("import", ptu, "-o", path, "--overwrite")
        got = check(not t3)
        assert list(got["timestamps"]) == [e[1] * (1 if t3 else 4) for e in events]
        assert list(got["detectors"]) == [e[2] for e in events]
        assert not t3 or list(got["nanotimes"]) == [e[3] for e in events]


CASES = {"made": [npz_of_fixtures, npz_every_level, npz_names, csv_columns, ranges, around_damage, changed_by_checksums, unequal_columns, usage,
                  output_that_fails, interrupted],
         "h5py": [hdf5_by_milliseconds, hdf5_part, hdf5_by_clock, hdf5_without], "phconvert": [hdf5_valid]}

if __name__ == "__main__":
    for case in CASES[sys.argv[1]]:
        with tempfile.TemporaryDirectory() as folder_of_case:
            case(folder_of_case)
        print("ok", case.__name__)
