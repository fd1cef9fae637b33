"""What a run left behind, read by the independent reference implementation (tests/interop/d7/d7ref.py), and columns to send."""
import json
import os
import sys

import require

np = require.module("numpy")
sys.path.insert(0, os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "interop", "d7"))
import d7ref  # noqa: E402

DTYPES = ["<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f4", "<f8"]


class File:
    """A .photons file: `state`, `attributes`, and the columns by name. It must be clean by the reference, but for what a
    file that was cut short lacks."""

    def __init__(self, path):
        with open(path, "rb") as f:
            read = d7ref.File(f.read())
        self.state = read.state
        self.attributes = read.public_attributes()
        self.problems = read.check()
        assert not self.problems, "%s: %s" % (path, self.problems)
        self.columns = {name: np.array(values, DTYPES[type_code])
                        for (name, type_code), values in zip(read.datasets, read.values)}

    def expect(self, columns, state="closed"):
        """Holds names and values against {name: array}."""
        assert self.state == state, self.state
        assert list(self.columns) == list(columns), list(self.columns)
        for name, values in columns.items():
            assert np.array_equal(self.columns[name], values), "%s differs: %d items, %d expected" % (
                name, len(self.columns[name]), len(values))


LINCAM = ("/photons/x", "/photons/y", "/photons/dt", "/photons/ms")


def gaps(file):
    """Its gap records, in order."""
    return [json.loads(value) for key, value in sorted(file.attributes.items()) if key.startswith("photond.gap.")]


def photons(rng, n, ms=None):
    """A batch of n LINCam photons: x, y, dt, ms."""
    xyz = [rng.integers(0, 4096, n).astype("<u2") for _ in range(3)]
    return xyz + [rng.integers(0, 1 << 40, n // 100 if ms is None else ms).astype("<u8")]


def joined(batches, names=LINCAM):
    """The columns of several batches, one after the other, by name."""
    return {name: np.concatenate([b[i] for b in batches]) for i, name in enumerate(names)}
