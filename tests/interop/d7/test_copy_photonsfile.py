"""photonsfile, an independent reader from PyPI, reads what d7 copy, split and merge make."""
import os
import random
import sys
import tempfile

import require
from d7run import d7
from partsfile import Model, U16, U64, hazelnut

photonsfile = require.module("photonsfile")
numpy = require.module("numpy")

NAMES = ("x", "y", "dt", "ms")


def check(path):
    """What photonsfile reads is what the reference reads."""
    model, got = Model.read(path), photonsfile.read_photons(path)
    for name in NAMES:
        want = numpy.array(model.column("/photons/" + name), dtype=numpy.uint64)
        have = numpy.asarray(got.get(name, numpy.zeros(0)), dtype=numpy.uint64)
        assert numpy.array_equal(have, want), (path, name, len(have), len(want))
    attributes = photonsfile.read_attributes(path)
    for key, value in model.attributes.items():
        assert attributes[key] == value, (path, key)
    return got


def main():
    photons = hazelnut()
    with tempfile.TemporaryDirectory() as folder:
        path, out, whole = (os.path.join(folder, n) for n in ("in.photons", "out.photons", "whole.photons"))
        model = Model([("/photons/" + n, U64 if n == "ms" else U16, photons[n]) for n in NAMES],
                      {"/photons/PositionBits": "12", "/photons/TacBits": "12", "/photons/TacChannel": "96.97"})
        model.write(path, random.Random(1))
        d7("copy", path, out, "--from", "12345", "--to", "99999")
        assert numpy.array_equal(check(out)["x"], photons["x"][12345:99999])
        d7("split", path, "-o", os.path.join(folder, "s.photons"), "--count", "33333")
        parts = [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.startswith("s.")]
        assert len(parts) == 7
        for part in parts:
            check(part)
        d7("merge", whole, *parts)
        got = check(whole)
        for name in NAMES:
            assert numpy.array_equal(got[name], photons[name]), name


if __name__ == "__main__":
    sys.exit(main())
