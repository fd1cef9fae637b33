#!/usr/bin/env python3
"""Each packed shard we write opens in zarr 3 as the one chunk of a sharded array, for every element type and codec.
The outer chunk is declared rounded up to whole inner chunks, as zarr-python wants it; the bytes are the same."""
import json
import os
import random
import shutil

import require

np = require.module("numpy")
zarr = require.module("zarr")
require.module("numcodecs")
import dafref  # noqa: E402
from support import TYPES, daf, dump, folder, random_values, rows_of, same  # noqa: E402

ZARR_TYPES = dict({t: t.lower() for t in TYPES}, **{"Bool": "bool", "String": "string"})


def array_json(eltype, shape, chunk, codec, level):
    """zarr.json for a shard; shapes in zarr's order, which is the reverse of ours."""
    outer = [-(-size // piece) * piece for size, piece in zip(shape, chunk)]
    first = {"name": "vlen-utf8"} if eltype == "String" else {"name": "bytes", "configuration": {"endian": "little"}}
    if codec.startswith("blosc_"):
        width = 1 if eltype == "String" else dafref.NP[eltype].itemsize
        second = {"name": "blosc", "configuration": {"cname": codec.split("_")[1], "clevel": level, "blocksize": 0,
                                                     "shuffle": "bitshuffle", "typesize": width}}
    else:
        second = {"name": codec, "configuration": {"level": level} if codec == "gzip" else {
            "level": level, "checksum": False}}
    return {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": ZARR_TYPES[eltype],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": outer}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "" if eltype == "String" else False if eltype == "Bool" else 0,
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": chunk, "codecs": [first, second],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
            "index_location": "start"}}],
        "attributes": {"daf_packed_format": "indexed+zipped"}}


def check(base, path, eltype, columns, codec):
    rows, matrix = len(columns[0]), len(columns) > 1
    target = ["matrix", "row", "column", "p"] if matrix else ["vector", "row", "p"]
    data = dump(rows_of(columns, rows) if matrix else columns[0])
    daf("set", path, *target, "--type", eltype, "--format", "json", "--packed", "--chunk-kb", "1", "--codec", codec,
        "--overwrite", data=data)
    about = json.loads(daf("describe", path, "--json"))
    info = about["matrices"]["row"]["column"]["p"] if matrix else about["vectors"]["row"]["p"]
    assert info["packed"] and info["indexed"] and info["compression"] == codec, info
    shape = [len(columns), rows] if matrix else [rows]
    array = os.path.join(base, "array")
    shutil.rmtree(array, ignore_errors=True)
    chunk = os.path.join(array, "c/0/0" if matrix else "c/0")
    os.makedirs(os.path.dirname(chunk))
    shutil.copyfile(os.path.join(path, "matrices/row/column/p.zip" if matrix else "vectors/row/p.zip"), chunk)
    with open(os.path.join(array, "zarr.json"), "w", encoding="utf-8") as out:
        json.dump(array_json(eltype, shape, info["chunk_shape"][::-1], codec, info["level"]), out)
    got = zarr.open_array(array, mode="r")[...]
    got = got.reshape(len(columns), rows)
    for c, column in enumerate(columns):
        values = [dafref.from_model(eltype, value) for value in column]
        if eltype == "String":
            same([str(value) for value in got[c]], values, "%s %s" % (codec, eltype))
        else:
            expected = np.array(values, dtype=dafref.NP[eltype])
            same(got[c].astype(dafref.NP[eltype]).tobytes(), expected.tobytes(), "%s %s" % (codec, eltype))


def main():
    rng = random.Random(5)
    with folder() as base:
        for rows, n_columns in ((1500, 1), (300, 7)):
            path = os.path.join(base, "%d.daf" % rows)
            daf("set", path, "axis", "row", "--create", data="".join("%d\n" % i for i in range(rows)).encode())
            daf("set", path, "axis", "column", data="".join("%d\n" % i for i in range(n_columns)).encode())
            for eltype in TYPES:
                columns = [random_values(rng, eltype, rows) for _ in range(n_columns)]
                for codec in dafref.CODECS:
                    check(base, path, eltype, columns, codec)
    print("zarr %s reads the shards of all %d types and %d codecs" % (zarr.__version__, len(TYPES), len(dafref.CODECS)))


main()
