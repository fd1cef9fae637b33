#!/usr/bin/env python3
"""Sparse data of every type and index type both ways: dafref.py writes a repository, ours (daf_resparse) reads it and writes
it anew with indices of each type, flat and packed, and dafref.py reads that."""
import os
import random
import subprocess
import sys

import require

require.module("numpy")
require.module("numcodecs")
import dafref  # noqa: E402
from support import TYPES, folder, random_values, same  # noqa: E402

INDEX_TYPES = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
NARROW = ("Int8", "UInt8")


def thinned(rng, eltype, values, keep):
    zero = "" if eltype == "String" else False if eltype == "Bool" else "0" if eltype.endswith("64") and "Int" in eltype else 0
    return [value if rng.random() < keep else zero for value in values]


def model_of(seed, lengths, indtype, legacy):
    rng = random.Random(seed)
    model = {"version": [1, 1], "axes": {a: ["%s%d" % (a, i) for i in range(n)] for a, n in lengths.items()},
             "vectors": {}, "matrices": {}}
    hints = {"format": "sparse", "indtype": indtype, "legacy": legacy}
    for axis, length in lengths.items():
        model["vectors"][axis] = {
            "v_" + t: dict(hints, eltype=t, values=thinned(rng, t, random_values(rng, t, length), 0.3),
                           explicit=[] if legacy else [0, length - 1][:length]) for t in TYPES}
    for rows in lengths:
        for columns in lengths:
            # Few enough values for colptr of the narrowest indices.
            keep = min(0.3, 80 / max(1, lengths[rows] * lengths[columns]) if indtype in NARROW else 0.3)
            if lengths[rows] * lengths[columns] > 10000:
                continue
            model["matrices"].setdefault(rows, {})[columns] = {
                "m_" + t: dict(hints, eltype=t, columns=[
                    thinned(rng, t, random_values(rng, t, lengths[rows]), keep) for _ in range(lengths[columns])])
                for t in TYPES}
    return model


def properties(model):
    for axis, vectors in model["vectors"].items():
        for name, vector in vectors.items():
            yield "vector %s on %s" % (name, axis), vector, lambda r, a=axis, n=name: r["vectors"][a][n]
    for rows, by_columns in model["matrices"].items():
        for columns, matrices in by_columns.items():
            for name, matrix in matrices.items():
                yield ("matrix %s on %s, %s" % (name, rows, columns), matrix,
                       lambda r, a=rows, b=columns, n=name: r["matrices"][a][b][n])


def exact(eltype, values):
    return [dafref.to_model(eltype, dafref.from_model(eltype, value)) for value in values]


def check(model, got, indtype, what):
    for name, wanted, find in properties(model):
        found = find(got)
        same(found["format"], "sparse", what + name)
        same(found["indtype"], indtype, what + name)
        for key in ("values", "columns"):
            if key not in wanted:
                continue
            expected = wanted[key] if key == "columns" else [wanted[key]]
            values = found[key] if key == "columns" else [found[key]]
            same(values, [exact(wanted["eltype"], column) for column in expected], what + name)


def main():
    tool = sys.argv[1]
    packings = [(None, "flat"), (dafref.Packing("zstd"), "gzip"), (dafref.Packing("gzip", kind="zipped"), "zstd"),
                (dafref.Packing("blosc_zstd_bitshuffle"), "blosc_lz4_bitshuffle")]
    n_packed = 0
    with folder() as base:
        for number, indtype in enumerate(INDEX_TYPES + ["smallest"]):
            theirs = "UInt16" if indtype == "smallest" else indtype
            lengths = {"none": 0, "few": 3, "many": 30 if indtype in NARROW else 450}
            for turn, (packing, codec) in enumerate([packings[number % 4], (None, packings[(number + 1) % 4][1])]):
                legacy = packing is None and number % 3 == 0
                model = model_of(100 * number + turn, lengths, theirs, legacy)
                one, two = (os.path.join(base, "%s-%d-%s.daf" % (indtype, turn, x)) for x in ("theirs", "ours"))
                dafref.write_repository(dafref.DirStore(one), model, packing, legacy)
                subprocess.run([tool, one, two, indtype, codec], check=True)
                got = dafref.read_repository(dafref.open_any(two))
                what = "%s, %s: " % (indtype, codec)
                check(model, got, theirs, what)
                n_packed += sum(bool(find(got).get("packed")) for _, _, find in properties(model))
    if n_packed < 100:
        raise AssertionError("only %d properties were packed" % n_packed)
    print("sparse data of %d types with %d types of indices, both ways" % (len(TYPES), len(INDEX_TYPES)))


main()
