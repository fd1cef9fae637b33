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
        err = d7.err
        got = Model.read(out)
        assert got.column("/photons/x") == x[5:20005] and damages(out) == 0
        assert got.bytes_per_page == (16384 if page == 16 << 20 else page), got.bytes_per_page
        warned = int(got.bytes_per_page != 16384)
        assert err.count("pages are not of 16384 bytes") == warned, err
        parts = split(path, folder, "--count", "11000")
        assert len(parts) == 3 and d7.err.count("pages are not of 16384 bytes") == warned, d7.err
        d7("merge", whole, *parts, "--overwrite")
        got = Model.read(whole)
        assert [got.column(n) for n in ("/photons/x", "/photons/ms", "/own")] == [x, ms, [7] * 20]
        assert got.attributes == {"a": "b"} and damages(whole) == 0
        for part in parts:
            os.unlink(part)
        d7("copy", path, out, "--overwrite", "--exclude", "/photons/x", "--exclude", "/photons/ms")
        assert Model.read(out).column("/own") == [7] * 20


def files_beyond_some_readers(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out.photons")
    for n, told in ((129, 0), (130, 1), (1500, 2)):
        write(path, [("/%04d" % i, U16, [i]) for i in range(n)])
        d7("copy", path, out, "--exclude", "/0000", "--overwrite")
        lines = [line for line in d7.err.splitlines() if "some readers" in line]
        assert len(lines) == told and all(out in line for line in lines), d7.err


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


def records_with_numbers_of_datasets(folder):
    """In another file another dataset may have the number: they tell the name then."""
    path, out, whole = (os.path.join(folder, n) for n in ("in.photons", "out.photons", "whole.photons"))
    datasets = [("/more", U64, [8] * 9), ("/own", U64, [5, 6, 7]), ("/photons/x", U16, list(range(100)))]
    write(path, datasets, {"photond.gap.00000000": record(3, dataset=1), "photond.marker.00000000": record(60, dataset=2),
                           "photond.marker.00000001": record(5, dataset=3)})
    want = [(3, "/own"), (60, "/photons/x"), (5, 3)]
    d7("copy", path, out, "--exclude", "/more")
    assert told(out) == want, told(out)
    d7("copy", path, out, "--from", "50", "--overwrite")
    assert told(out) == [(3, "/own"), (10, "/photons/x"), (5, 3)], told(out)
    d7("copy", path, out, "--overwrite")  # all of it: byte for byte
    assert told(out) == [(3, 1), (60, 2), (5, 3)], told(out)
    parts = split(path, folder, "--count", "40")
    d7("merge", whole, *parts)
    assert told(whole) == [want[0], want[2], want[1]] and Model.read(whole).datasets == Model.read(path).datasets, told(whole)
    write(out, [datasets[1], datasets[2], datasets[0]], {"photond.marker.00000002": record(1, dataset=0)})
    d7("merge", whole, path, out, "--overwrite", "--force")
    assert told(whole) == want + [(4, "/own")], told(whole)


def told(path):
    values = [json.loads(v) for k, v in Model.read(path).attributes.items() if k.startswith(("photond.gap.", "photond.marker."))]
    return [(v["item"], v["dataset"]) for v in values]


def parts_that_only_have_numbers(folder):
    """Without photons, tags and milliseconds only the numbers of the parts tell that one is missing."""
    whole = os.path.join(folder, "whole.photons")
    paths = [os.path.join(folder, "%d.photons" % i) for i in range(4)]
    for i, path in enumerate(paths):
        write(path, [("/a", U16, [i] * 5), ("/b", U64, [i] * (i + 1))], {"photond.run": "r", "photond.part": str(i)})
    d7("merge", whole, *reversed(paths))
    assert Model.read(whole).column("/a") == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5
    os.unlink(whole)
    for missing in (1, 2):
        given = [p for i, p in enumerate(paths) if i != missing]
        d7("merge", whole, *given, code=2)
        assert "is missing" in d7.err and not os.path.exists(whole), d7.err
    d7("merge", whole, paths[0], paths[1], paths[3], "--force")
    write(paths[2], [("/a", U16, [9]), ("/b", U64, [9])], {"photond.run": "r", "photond.part": "1", "photond.cut": "2/2"})
    d7("merge", whole, *paths[:3], "--overwrite", code=2)
    assert "nothing tells" in d7.err, d7.err


def parts_merged_in_two_steps(folder):
    """A part that was merged of several says so, and where nothing but its number tells the place the next follows the last of them."""
    path, some, whole = (os.path.join(folder, n) for n in ("in.photons", "some.photons", "whole.photons"))
    write(path, [("/a", U16, list(range(90))), ("/b", U64, list(range(90)))])
    parts = split(path, folder, "--count", "20")
    assert len(parts) == 5
    d7("merge", some, *parts[1:4], "--partial")
    assert Model.read(some).attributes["photond.cut"] == "2-4/more photond.part"
    d7("merge", whole, parts[4], some, parts[0])
    assert Model.read(whole).datasets == Model.read(path).datasets and Model.read(whole).attributes == {}
    d7("merge", some, *parts[1:3], "--partial", "--overwrite")
    d7("merge", whole, parts[4], some, parts[0], "--overwrite", code=2)
    assert "is missing" in d7.err, d7.err


def parts_of_parts(folder):
    """Their numbers run into those of the parts after them, but photons tell their places."""
    path, whole = os.path.join(folder, "in.photons"), os.path.join(folder, "whole.photons")
    write(path, [("/photons/x", U16, list(range(90))), ("/own", U16, [1, 2])])
    parts = split(path, folder, "--count", "30")
    inner = os.path.join(folder, "inner")
    os.mkdir(inner)
    again = split(parts[1], inner, "--count", "8")
    d7("merge", whole, parts[2], *again, parts[0])
    assert Model.read(whole).datasets == Model.read(path).datasets
    for missing in range(1, 3):
        d7("merge", whole, parts[0], *[p for i, p in enumerate(again) if i != missing], parts[2], "--overwrite", code=2)
        assert "missing" in d7.err, d7.err


TESTS = [pages_of_any_size, files_beyond_some_readers, records_of_other_datasets, order_of_attributes, parts_that_come_twice,
         records_with_numbers_of_datasets, parts_that_only_have_numbers, parts_merged_in_two_steps, parts_of_parts]


def main():
    for test in TESTS:
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    return 0


sys.exit(main())
