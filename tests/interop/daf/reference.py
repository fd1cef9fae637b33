#!/usr/bin/env python3
"""Whole repositories both ways with dafref.py, which shares no code with libdaf: it reads what we write, we read what
it writes."""
import json
import os

import require

require.module("numpy")
require.module("numcodecs")
import dafref  # noqa: E402
from support import columns_of, daf, exact, folder, random_model, same, set_model  # noqa: E402

LENGTHS = {"few": 3, "many": 400}
PACKED = ["--packed", "--chunk-kb", "1"]


def check_ours_by_reference(model, path):
    got = dafref.values_only(dafref.read_repository(dafref.open_any(path)))
    expected = dafref.values_only(model)
    same(got["scalars"].pop("name"), {"type": "String", "value": "made by daf"}, "scalar name")
    scalars = {n: {"type": s["type"], "value": exact(s["type"], s["value"])} for n, s in model["scalars"].items()
               if s["value"] not in ("NaN", "Infinity", "-Infinity")}
    same(got["scalars"], scalars, "scalars")
    same(got["axes"], expected["axes"], "axes")
    for axis, vectors in expected["vectors"].items():
        for name, vector in vectors.items():
            values = [exact(vector["eltype"], value) for value in vector["values"]]
            same(got["vectors"][axis][name]["values"], values, "vector %s" % name)
    for rows, by_columns in expected["matrices"].items():
        for columns, matrices in by_columns.items():
            for name, matrix in matrices.items():
                data = [[exact(matrix["eltype"], value) for value in column] for column in matrix["columns"]]
                same(got["matrices"][rows][columns][name]["columns"], data, "matrix %s" % name)
    check_index(path)


def check_index(path):
    """metadata.json says what the descriptors say."""
    with open(os.path.join(path, "metadata.json"), encoding="utf-8") as source:
        index = json.load(source)
    found = set()
    for key in dafref.open_any(path).keys():
        if key.endswith(".json") and "/" in key:
            with open(os.path.join(path, key), encoding="utf-8") as source:
                same(index[key[:-5]], json.load(source), key)
            found.add(key[:-5])
        if key.startswith("axes/"):
            found.add(key[:-4])
    same(set(index), found, "keys of metadata.json")


def read_json(path, *target):
    return json.loads(daf("get", path, *target, "--format", "json"))


def check_reference_by_ours(model, path):
    for name, scalar in model["scalars"].items():
        same(exact(scalar["type"], read_json(path, "scalar", name)), exact(scalar["type"], scalar["value"]), name)
    for axis, entries in model["axes"].items():
        same(read_json(path, "axis", axis), entries, axis)
    for axis, vectors in model["vectors"].items():
        for name, vector in vectors.items():
            eltype = vector["eltype"]
            got = [exact(eltype, value) for value in read_json(path, "vector", axis, name)]
            same(got, [exact(eltype, value) for value in vector["values"]], "vector %s" % name)
    for rows, by_columns in model["matrices"].items():
        for columns, matrices in by_columns.items():
            for name, matrix in matrices.items():
                eltype = matrix["eltype"]
                got = columns_of(read_json(path, "matrix", rows, columns, name), len(model["axes"][columns]))
                same([[exact(eltype, v) for v in column] for column in got],
                     [[exact(eltype, v) for v in column] for column in matrix["columns"]], "matrix %s" % name)


def main():
    with folder() as base:
        for seed, packing in ((1, ["--flat"]), (2, PACKED), (3, PACKED + ["--codec", "gzip"])):
            model = random_model(seed, LENGTHS if seed > 1 else {"few": 3, "none": 0})
            path = os.path.join(base, "ours-%d.daf" % seed)
            set_model(model, path, packing, "made by daf")
            check_ours_by_reference(model, path)
        for seed, packing in ((4, None), (5, dafref.Packing("zstd")), (6, dafref.Packing("gzip")),
                              (7, dafref.Packing("zstd", kind="zipped"))):
            model = random_model(seed, LENGTHS)
            path = os.path.join(base, "theirs-%d.daf" % seed)
            dafref.write_repository(dafref.DirStore(path), model, packing)
            check_reference_by_ours(model, path)
    print("dafref.py reads ours, and we read its repositories")


main()
