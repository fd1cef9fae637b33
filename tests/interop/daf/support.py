"""What the interop tests of libdaf share: the built command, temporary repositories, models."""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import require  # noqa: E402

TYPES = ["Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64", "String"]
WORDS = ["", "photon", "tab\there", "ünïcødé 🧬", "back\\slash", 'quote"d', "a longer text than the others"]
RANGES = {"Int8": (-2**7, 2**7 - 1), "Int16": (-2**15, 2**15 - 1), "Int32": (-2**31, 2**31 - 1),
          "Int64": (-2**63, 2**63 - 1), "UInt8": (0, 2**8 - 1), "UInt16": (0, 2**16 - 1), "UInt32": (0, 2**32 - 1),
          "UInt64": (0, 2**64 - 1)}


_copies = []


def fixtures():
    """A copy of the fixtures, to be written to: reading, too, makes the index of a repository that has none."""
    here = tempfile.TemporaryDirectory(prefix="daf-fixtures-")
    _copies.append(here)  # until the process ends
    return shutil.copytree(os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "fixtures", "daf"), os.path.join(here.name, "daf"))


def daf(*arguments, data=None, code=0, env=None, errors=True):
    """Runs the command; returns its standard output as bytes, or, when it fails and `errors` are asked for, what it says of
    them. `code`: the exit code it must have."""
    result = subprocess.run([require.built("daf"), *arguments], input=data, capture_output=True,
                            env=dict(os.environ, **(env or {})))
    if result.returncode != code:
        raise AssertionError("daf %s: exit code %d, not %d: %s" % (
            " ".join(arguments), result.returncode, code, result.stderr.decode("utf-8", "replace")))
    return result.stderr if code and errors else result.stdout


def files_of(path):
    """The content of every file beneath a folder."""
    found = {}
    for root, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(root, name), "rb") as f:
                found[os.path.relpath(os.path.join(root, name), path)] = f.read()
    return found


def folder():
    return tempfile.TemporaryDirectory(prefix="daf-interop-")


def random_values(rng, eltype, count):
    """`count` values in the form of a model (see dafref.py)."""
    if eltype == "String":
        return [rng.choice(WORDS) for _ in range(count)]
    if eltype == "Bool":
        return [rng.random() < 0.5 for _ in range(count)]
    if eltype in RANGES:
        low, high = RANGES[eltype]
        narrow = rng.random() < 0.5
        values = [rng.randint(max(low, -3), min(high, 200)) if narrow else rng.randint(low, high) for _ in range(count)]
        values[:2] = [low, high][:count]
        return [str(value) for value in values] if eltype.endswith("64") else values
    values = [rng.choice([0.5, -0.0, 1e-3, 3.25, 123456.0, 1e20]) * rng.randint(-8, 8) for _ in range(count)]
    values[:3] = ["NaN", "Infinity", "-Infinity"][:count]
    return values


def random_model(seed, lengths):
    """A model with scalars, axes, and a vector and matrix of every type on each axis and each (not too large) pair."""
    rng = random.Random(seed)
    model = {"version": [1, 1], "scalars": {}, "axes": {}, "vectors": {}, "matrices": {}}
    for eltype in TYPES:
        value = random_values(rng, eltype, 4)[3]
        model["scalars"]["s_" + eltype] = {"type": eltype, "value": value}
    for axis, length in lengths.items():
        model["axes"][axis] = ["%s-%d ü" % (axis, i) for i in range(length)]
    for axis, length in lengths.items():
        model["vectors"][axis] = {"v_" + t: {"eltype": t, "values": random_values(rng, t, length)} for t in TYPES}
        model["matrices"][axis] = {}
        for other, columns in lengths.items():
            if length * columns > 10000:
                continue
            model["matrices"][axis][other] = {
                "m_" + t: {"eltype": t, "columns": [random_values(rng, t, length) for _ in range(columns)]}
                for t in TYPES}
    return model


def exact(eltype, value):
    """A value read from our JSON (numbers are numbers) in the form of a model."""
    import dafref
    return dafref.to_model(eltype, dafref.from_model(eltype, value))


def rows_of(columns, n_rows):
    return [[column[r] for column in columns] for r in range(n_rows)]


def columns_of(rows, n_columns):
    return [[row[c] for row in rows] for c in range(n_columns)]


def same(got, expected, what):
    if got != expected:
        raise AssertionError("%s:\n%s\ninstead of\n%s" % (what, str(got)[:600], str(expected)[:600]))


def dump(values):
    return json.dumps(values).encode()


def set_model(model, path, packing, label):
    """Makes a repository of a model by `daf set`, with `label` as its name. Floats that no scalar can be are left out."""
    daf("set", path, "scalar", "name", "--value", label, "--create")
    for name, scalar in model["scalars"].items():
        if scalar["value"] in ("NaN", "Infinity", "-Infinity"):
            continue
        daf("set", path, "scalar", name, "--type", scalar["type"], "--format", "json", data=dump(scalar["value"]))
    for axis, entries in model["axes"].items():
        daf("set", path, "axis", axis, data="".join(entry + "\n" for entry in entries).encode())
    for axis, vectors in model["vectors"].items():
        for name, vector in vectors.items():
            daf("set", path, "vector", axis, name, "--type", vector["eltype"], "--format", "json", *packing,
                data=dump(vector["values"]))
    for rows, by_columns in model["matrices"].items():
        for columns, matrices in by_columns.items():
            for name, matrix in matrices.items():
                data = rows_of(matrix["columns"], len(model["axes"][rows]))
                daf("set", path, "matrix", rows, columns, name, "--type", matrix["eltype"], "--format", "json",
                    *packing, data=dump(data))
