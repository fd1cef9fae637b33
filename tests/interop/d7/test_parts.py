"""d7 copy, split and merge: pages of any size, the order of attributes, records of all kinds, parts that come twice."""
import json
import os
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
    return sorted(os.path.join(folder, n) for n in os.listdir(folder) if n.startswith("s."))


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


TESTS = [pages_of_any_size]


def main():
    for test in TESTS:
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    return 0


sys.exit(main())
