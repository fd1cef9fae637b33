#!/usr/bin/env python3
"""Frames that numcodecs makes, with every codec of blosc 1 it has, shuffle, block size, element width and length, are
read by us, and numcodecs reads ours. The frames travel in shards, whose writer and reader is dafref.py."""
import json
import os
import random

import require

np = require.module("numpy")
numcodecs = require.module("numcodecs")
import dafref  # noqa: E402
from support import daf, folder, same  # noqa: E402

WIDTHS = {1: "UInt8", 2: "UInt16", 4: "UInt32", 8: "UInt64"}
CODECS = ("blosclz", "lz4", "lz4hc", "zlib", "zstd")


def values_of(rng, width, count):
    kind = rng.randrange(4)
    if kind == 0:
        raw = rng.randbytes(count * width)
    elif kind == 1:
        raw = bytes(count * width)
    elif kind == 2:
        raw = np.cumsum(np.array([rng.randrange(3) for _ in range(count)])).astype("<u%d" % width).tobytes()
    else:
        word = rng.randbytes(rng.randint(1, 300))
        raw = (word * (count * width // len(word) + 1))[:count * width]
    return np.frombuffer(raw, dtype="<u%d" % width)


def write_shard(path, flat, chunk, codec, blosc):
    """Puts a shard with frames of `blosc` in the place of vector p."""
    eltype = WIDTHS[flat.dtype.itemsize]
    plain = dafref.compress
    dafref.compress = lambda codec, level, raw, typesize: bytes(blosc.encode(np.frombuffer(raw, dtype=flat.dtype)))
    try:
        shard = dafref.encode_shard(eltype, flat, [len(flat)], [chunk], codec, 5)
    finally:
        dafref.compress = plain
    os.makedirs(os.path.join(path, "vectors/row"), exist_ok=True)
    with open(os.path.join(path, "vectors/row/p.zip"), "wb") as out:
        out.write(shard)
    with open(os.path.join(path, "vectors/row/p.json"), "w", encoding="utf-8") as out:
        json.dump({"format": "dense", "eltype": eltype, "packed_format": "indexed+zipped", "chunk_shape": [chunk],
                   "compression": codec, "compression_level": 5, "index_location": "start"}, out)


def reads_theirs(base, rng):
    cases = 0
    for rows in (1, 15, 1000, 5000, 70001):
        path = os.path.join(base, "%d.daf" % rows)
        daf("set", path, "axis", "row", "--create", data="".join("%d\n" % i for i in range(rows)).encode())
        for cname in CODECS:
            for shuffle in (0, 1, 2):
                width = rng.choice(list(WIDTHS))
                flat = values_of(rng, width, rows)
                chunk = rng.choice([rows, min(rows, 2048), rng.randint(max(1, rows // 20), rows)])
                blosc = numcodecs.Blosc(cname=cname, clevel=rng.randint(0, 9), shuffle=shuffle,
                                        blocksize=rng.choice([0, 0, 128, 1000, 4096, 65536]))
                write_shard(path, flat, chunk, "blosc_%s_bitshuffle" % rng.choice(["zstd", "lz4"]), blosc)
                got = daf("get", path, "vector", "row", "p", "--format", "raw")
                same(got, flat.tobytes(), "%r of %d x %d bytes, chunks of %d" % (blosc, rows, width, chunk))
                cases += 1
    return cases


def gives_ours(base, rng):
    cases = 0
    path = os.path.join(base, "ours.daf")
    for rows in (1024, 1025, 1031, 9000):
        daf("set", path, "axis", "row%d" % rows, "--create", data="".join("%d\n" % i for i in range(rows)).encode())
        for width, eltype in WIDTHS.items():
            for codec in ("blosc_zstd_bitshuffle", "blosc_lz4_bitshuffle"):
                for level in (1, 5, 9):
                    flat = values_of(rng, width, rows)
                    daf("set", path, "vector", "row%d" % rows, "p", "--type", eltype, "--format", "raw", "--packed",
                        "--chunk-kb", "1", "--codec", codec, "--level", str(level), "--overwrite", data=flat.tobytes())
                    with open(os.path.join(path, "vectors/row%d/p.zip" % rows), "rb") as source:
                        shard = source.read()
                    chunk = 1024 // width
                    for via in ("zip", "index"):
                        back = dafref.decode_shard(shard, eltype, [rows], [chunk], codec, via)
                        same(np.asarray(back).tobytes(), flat.tobytes(), "%s level %d of %d" % (codec, level, rows))
                    cases += 1
    return cases


def main():
    rng = random.Random(21)
    with folder() as base:
        print("%d shards of numcodecs %s are read, %d of ours by it" % (
            reads_theirs(base, rng), numcodecs.__version__, gives_ours(base, rng)))


main()
