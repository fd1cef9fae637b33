#!/usr/bin/env python3
"""Ordinary ZIP tools on our shards: those of gzip test clean in unzip, 7z and Python's zipfile, which yields the raw
chunks; so do those of blosc, whose entries are frames; those of zstd test clean in a 7z that has the method, and are
listed by the others, which do not know it."""
import os
import random
import struct
import subprocess
import zipfile

import require

require.module("numcodecs")
from dafref import decompress  # noqa: E402
from support import daf, folder, same  # noqa: E402

UNZIP = require.program("unzip")
SEVEN = require.program("7z")
ROWS = 3000
METHODS = {"gzip": 8, "zstd": 93, "blosc_zstd_bitshuffle": 0, "blosc_lz4_bitshuffle": 0}
CODEC_JSON = ('[{"configuration":{"endian":"little"},"name":"bytes"},{"configuration":{"blocksize":0,"clevel":5,'
              '"cname":"%s","shuffle":"bitshuffle","typesize":4},"name":"blosc"}]')


def tests_clean(shard, codec):
    if codec != "zstd":
        result = subprocess.run([UNZIP, "-t", shard], capture_output=True, check=False)
        same(result.returncode, 0, "unzip -t: " + result.stdout.decode("utf-8", "replace"))
        assert b"No errors detected" in result.stdout, result.stdout
    result = subprocess.run([SEVEN, "t", shard], capture_output=True, check=False)
    text = result.stdout + result.stderr
    if codec == "zstd" and b"Unsupported Method" in text:
        print("this 7z does not know zstd")
        return
    same(result.returncode, 0, "7z t: " + text.decode("utf-8", "replace"))
    assert b"Everything is Ok" in text, text


def chunks_of(archive, codec):
    """The raw chunks as Python's zipfile sees them."""
    entries = archive.infolist()
    if METHODS[codec] == 0:
        same(entries[-1].filename, "codec.json", "the last entry")
        same(archive.read(entries.pop()).decode(), CODEC_JSON % codec.split("_")[1], "codec.json")
    same([entry.compress_type for entry in entries], [METHODS[codec]] * 2, "methods of " + codec)
    if codec != "gzip":
        same([entry.filename for entry in entries], ["c/0", "c/1"], "names of " + codec)
    if codec == "zstd":
        with open(archive.filename, "rb") as shard:
            data = shard.read()
        starts = [entry.header_offset + 30 + len(entry.filename) + 20 for entry in entries]
        return [decompress("zstd", data[at:at + entry.compress_size]) for at, entry in zip(starts, entries)]
    same(archive.testzip(), None, "testzip")
    return [archive.read(entry) if codec == "gzip" else decompress(codec, archive.read(entry)) for entry in entries]


def main():
    rng = random.Random(9)
    values = [rng.randint(0, 50) for _ in range(ROWS)]
    raw = struct.pack("<%dI" % ROWS, *values)
    with folder() as base:
        path = os.path.join(base, "a.daf")
        daf("set", path, "axis", "row", "--create", data="".join("%d\n" % i for i in range(ROWS)).encode())
        for codec in METHODS:
            daf("set", path, "vector", "row", codec, "--type", "UInt32", "--format", "raw", "--packed", "--codec", codec,
                data=raw)
            shard = os.path.join(path, "vectors/row/%s.zip" % codec)
            tests_clean(shard, codec)
            with zipfile.ZipFile(shard) as archive:
                chunks = b"".join(chunks_of(archive, codec))
            same(chunks[:len(raw)], raw, "chunks of " + codec)
            same(chunks[len(raw):], bytes(len(chunks) - len(raw)), "padding of " + codec)
    print("unzip, 7z and zipfile accept the shards of %d codecs" % len(METHODS))


main()
