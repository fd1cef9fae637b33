#!/usr/bin/env python3
"""Ordinary ZIP tools on our shards: gzip ones test clean in unzip and Python's zipfile, which yield the raw chunks; zstd
ones are listed by both (the method is unknown to them)."""
import os
import random
import struct
import subprocess
import zipfile

import require
from support import daf, folder, same

UNZIP = require.program("unzip")
ROWS = 3000


def main():
    rng = random.Random(9)
    values = [rng.randint(0, 50) for _ in range(ROWS)]
    raw = struct.pack("<%dI" % ROWS, *values)
    with folder() as base:
        path = os.path.join(base, "a.daf")
        daf("set", path, "axis", "row", "--create", data="".join("%d\n" % i for i in range(ROWS)).encode())
        for codec in ("gzip", "zstd"):
            daf("set", path, "vector", "row", codec, "--type", "UInt32", "--format", "raw", "--packed", "--codec", codec,
                data=raw)
        gzip = os.path.join(path, "vectors/row/gzip.zip")
        result = subprocess.run([UNZIP, "-t", gzip], capture_output=True, check=False)
        same(result.returncode, 0, "unzip -t: " + result.stdout.decode("utf-8", "replace"))
        assert b"No errors detected" in result.stdout, result.stdout
        with zipfile.ZipFile(gzip) as archive:
            same(archive.testzip(), None, "testzip")
            chunks = b"".join(archive.read(entry) for entry in archive.infolist())
            same(len(archive.infolist()), 2, "chunks")
        same(chunks[:len(raw)], raw, "chunks of the gzip shard")
        same(chunks[len(raw):], bytes(len(chunks) - len(raw)), "padding of the gzip shard")
        with zipfile.ZipFile(os.path.join(path, "vectors/row/zstd.zip")) as archive:
            same([entry.filename for entry in archive.infolist()], ["c/0", "c/1"], "names of the zstd shard")
            same([entry.compress_type for entry in archive.infolist()], [93, 93], "methods of the zstd shard")
    print("unzip and zipfile accept the shards")


main()
