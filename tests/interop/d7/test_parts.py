"""d7 copy, split and merge: pages of any size, the order of attributes, records of all kinds, parts that come twice."""
import itertools
import json
import os
import random
import sys
import tempfile

import d7ref
from d7run import d7
from partsfile import Model, U16, U64


def write(path, datasets, attributes=None, bytes_per_page=16384):
    w = d7ref.Writer([(n, t) for n, t, _ in datasets], 512, bytes_per_page, early=attributes or {})
    for i, (_, _, values) in enumerate(datasets):
        w.append(i, values)
    with open(path, "wb") as f:
        f.write(w.close())


def split(path, folder, *arguments):
    d7("split", path, "-o", os.path.join(folder, "s.photons"), *arguments)
    names = sorted(n for n in os.listdir(folder) if n.startswith("s."))
    return [os.path.join(folder, n) for n in names[-1:] + names[:-1]]


def damages(path):
    return json.loads(d7("verify", path, "--json"))["damages"]


def pages_of_any_size(folder):
    """The largest page size that a header may have: what is made of its values may be more than an entry takes."""
    path, out, whole = (os.path.join(folder, n) for n in ("in.photons", "out.photons", "whole.photons"))
    x, ms = [i % 4096 for i in range(30000)], list(range(0, 30000, 100))
    for page in (16 << 20, 8 << 20):
        write(path, [("/photons/x", U16, x), ("/photons/ms", U64, ms), ("/own", U64, [7] * 20)], {"a": "b"}, page)
        d7("copy", path, out, "--overwrite", "--from", "5", "--to", "20005")
        got = Model.read(out)
        assert got.column("/photons/x") == x[5:20005] and damages(out) == 0
        assert got.bytes_per_page == (16384 if page == 16 << 20 else page), got.bytes_per_page
        parts = split(path, folder, "--count", "11000")
        assert len(parts) == 3
        d7("merge", whole, *parts, "--overwrite")
        got = Model.read(whole)
        assert [got.column(n) for n in ("/photons/x", "/photons/ms", "/own")] == [x, ms, [7] * 20]
        assert got.attributes == {"a": "b"} and damages(whole) == 0
        for part in parts:
            os.unlink(part)
        d7("copy", path, out, "--overwrite", "--exclude", "/photons/x", "--exclude", "/photons/ms")
        assert Model.read(out).column("/own") == [7] * 20


def record(item, **of):
    return json.dumps({"item": item, "count": 2, "cause": "full", **of})


def records_of_other_datasets(folder):
    """Gaps and markers that count items of a dataset in no group go where its items go."""
    first, second, whole = (os.path.join(folder, n) for n in ("a.photons", "b.photons", "whole.photons"))
    own = {"dataset": "/own"}
    datasets = [("/photons/x", U16, [1, 2, 3, 4]), ("/own", U64, [5, 6, 7]), ("/more", U64, [8] * 9)]
    write(first, datasets, {"photond.part": "0", "photond.gap.00000000": record(3, **own), "photond.marker.00000000": record(4)})
    datasets = [("/more", U64, [8]), ("/photons/x", U16, [5, 6]), ("/own", U64, [10])]
    write(second, datasets, {"photond.part": "1", "photond.first_photon": "4", "photond.gap.00000000": record(1, **own),
                             "photond.marker.00000000": record(1), "photond.marker.00000001": record(0, dataset="/more"),
                             "photond.marker.00000002": record(1, dataset="/photons/x"),
                             "photond.marker.00000003": record(1, dataset="/nowhere")})
    d7("merge", whole, first, second)
    got = Model.read(whole)
    assert got.column("/own") == [5, 6, 7, 10]
    told = [(json.loads(v)["item"], json.loads(v).get("dataset")) for k, v in got.attributes.items() if k.startswith("photond.gap.")]
    assert told == [(3, "/own"), (4, "/own")], got.attributes
    told = [(json.loads(v)["item"], json.loads(v).get("dataset")) for k, v in got.attributes.items() if ".marker." in k]
    assert told == [(4, None), (5, None), (9, "/more"), (5, "/photons/x"), (1, "/nowhere")], got.attributes
    parts = split(whole, folder, "--count", "2")
    told = [sum("/own" in v for v in Model.read(p).attributes.values()) for p in parts]
    assert told == [2, 0, 0], told
    d7("merge", first, *parts, "--overwrite")
    assert Model.read(first).attributes == got.attributes and Model.read(first).datasets == got.datasets


def order_of_attributes(folder):
    """The recorded one; but of gaps and markers side by side those of an earlier part come first."""
    rng = random.Random(20261130)
    path, whole = os.path.join(folder, "in.photons"), os.path.join(folder, "whole.photons")
    for _ in range(6):
        of_part, attributes = {}, {}
        keys = ["a", "b", "photond.clock.00000000"] + ["photond.%s.%08d" % (k, i) for k in ("gap", "marker") for i in range(6)]
        rng.shuffle(keys)
        for key in keys:
            item = rng.randrange(1000)
            counts = ".gap." in key or ".marker." in key
            of_part[key] = item // 300 if counts else None
            attributes[key] = record(item) if counts else "{}"
        write(path, [("/photons/x", U16, list(range(1000)))], attributes)
        parts = split(path, folder, "--count", "300")
        d7("merge", whole, *parts, "--overwrite")
        got = Model.read(whole).attributes
        want = []
        for counts, run in itertools.groupby(keys, lambda k: of_part[k] is not None):
            want += sorted(run, key=of_part.get) if counts else list(run)
        assert got == attributes and list(got) == want, (list(got), want)
        for part in parts:
            os.unlink(part)


def parts_that_come_twice(folder):
    """Also one without photons, which fits behind itself."""
    path, whole = os.path.join(folder, "in.photons"), os.path.join(folder, "whole.photons")
    write(path, [("/photons/x", U16, list(range(100))), ("/photons/ms", U64, [0] + [50] * 19)])
    parts = split(path, folder, "--time", "5ms")
    assert [len(Model.read(p).column("/photons/x")) for p in parts] == [50, 0, 0, 50], parts
    for twice in (1, 2):
        d7("merge", whole, *parts, parts[twice], code=2)
        assert "is the same part as" in d7.err and not os.path.exists(whole), d7.err
    d7("merge", whole, parts[0], parts[1], parts[1], *parts[2:], "--force")
    d7("merge", whole, *reversed(parts), "--overwrite")
    assert Model.read(whole).datasets == Model.read(path).datasets
    a, b = os.path.join(folder, "a.photons"), os.path.join(folder, "b.photons")
    write(a, [("/photons/x", U16, [])], {"photond.part": "0"})
    write(b, [("/photons/x", U16, [])], {"photond.part": "1", "photond.first_photon": "0"})
    d7("merge", whole, a, b, "--overwrite")
    d7("merge", whole, a, b, b, "--overwrite", code=2)


TESTS = [pages_of_any_size, records_of_other_datasets, order_of_attributes, parts_that_come_twice]


def main():
    for test in TESTS:
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    return 0


sys.exit(main())
