#!/usr/bin/env python3
"""Our shards equal those of dafref.py byte for byte when both compress with the same library: zlib as Python links it,
libzstd through ctypes. Of blosc, whose frames may differ, the reference gets ours and makes the rest. The one difference is wanted: ours do not claim that the names of gzip chunks are UTF-8."""
import ctypes
import ctypes.util
import os
import random
import struct
import zlib

import require

require.module("numpy")
require.module("numcodecs")
import dafref  # noqa: E402
from support import TYPES, daf, dump, folder, random_values, rows_of, same  # noqa: E402


def system_zstd():
    """A compress(level, raw) of the libzstd that libdaf links, or None."""
    path = ctypes.util.find_library("zstd")
    if not path:
        return None
    library = ctypes.CDLL(path)
    library.ZSTD_compress.restype = library.ZSTD_compressBound.restype = ctypes.c_size_t
    library.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    library.ZSTD_compressBound.argtypes = [ctypes.c_size_t]

    def compress(level, raw):
        room = ctypes.create_string_buffer(library.ZSTD_compressBound(len(raw)))
        size = library.ZSTD_compress(room, len(room), raw, len(raw), level)
        return room.raw[:size]
    return compress


def without_utf8_flag(shard):
    """The shard with bit 11 of the flags clear in all local headers and directory entries."""
    data = bytearray(shard)
    offset, = struct.unpack_from("<Q", data, len(data) - 98 + 48)
    count, = struct.unpack_from("<Q", data, len(data) - 98 + 24)
    for _ in range(count):
        data[offset + 9] &= ~0x08 & 0xFF
        name, extra = struct.unpack_from("<HH", data, offset + 28)
        local, = struct.unpack_from("<Q", data, offset + 46 + name + 20)
        data[local + 7] &= ~0x08 & 0xFF
        offset += 46 + name + extra
    return bytes(data)


def frames_of(shard, count):
    """The chunks of a shard, by its leading index."""
    places = struct.unpack_from("<%dQ" % (2 * count), shard)
    return [shard[start:start + size] for start, size in zip(places[::2], places[1::2])]


def reference_shard(eltype, flat, shape, codec, level, ours):
    import numpy
    values = [dafref.from_model(eltype, value) for value in flat]
    if eltype != "String":
        values = numpy.array(values, dtype=dafref.NP[eltype])
    chunk = dafref.chunk_shape_for(eltype, shape, 1)
    plain = dafref.compress
    if codec.startswith("blosc_"):
        frames = iter(frames_of(ours, int(numpy.prod(dafref.grid_for(shape, chunk)))))

        def frame_of(codec, level, raw, typesize):
            frame = next(frames)
            same((frame[2] & 0xFD, frame[3]), (0x94 if "zstd" in codec else 0x34, typesize), "flags and element size")
            same(dafref.decompress(codec, frame), bytes(raw), "a frame")
            return frame
        dafref.compress = frame_of
    try:
        shard = dafref.encode_shard(eltype, values, shape, chunk, codec, level)
    finally:
        dafref.compress = plain
    return without_utf8_flag(shard) if codec == "gzip" else shard


def check(path, eltype, columns, codec, level):
    rows = len(columns[0])
    flat = [value for column in columns for value in column]
    matrix = len(columns) > 1
    target = ["matrix", "row", "column", "p"] if matrix else ["vector", "row", "p"]
    data = dump(rows_of(columns, rows) if matrix else flat)
    daf("set", path, *target, "--type", eltype, "--format", "json", "--packed", "--chunk-kb", "1", "--codec", codec,
        "--level", str(level), "--overwrite", data=data)
    with open(os.path.join(path, "matrices/row/column/p.zip" if matrix else "vectors/row/p.zip"), "rb") as source:
        ours = source.read()
    same(ours, reference_shard(eltype, flat, [rows, len(columns)] if matrix else [rows], codec, level,
                               ours), "%s %s of %d x %d" % (codec, eltype, rows, len(columns)))


def main():
    rng = random.Random(11)
    zstd = system_zstd()
    codecs = ["gzip", "blosc_zstd_bitshuffle", "blosc_lz4_bitshuffle"]
    if zstd:
        plain = dafref.compress
        dafref.compress = lambda codec, level, raw, size: zstd(level, raw) if codec == "zstd" else plain(
            codec, level, raw, size)
        codecs.append("zstd")
    compared = 0
    with folder() as base:
        for rows, n_columns in ((1500, 1), (1100, 12)):
            path = os.path.join(base, "%d.daf" % rows)
            daf("set", path, "axis", "row", "--create", data="".join("%d\n" % i for i in range(rows)).encode())
            daf("set", path, "axis", "column", data="".join("%d\n" % i for i in range(n_columns)).encode())
            for eltype in TYPES:
                columns = [random_values(rng, eltype, rows) for _ in range(n_columns)]
                for codec in codecs:
                    check(path, eltype, columns, codec, rng.randint(1, 9))
                    compared += 1
    if not zstd:
        require.missing("the shared library of zstd")
    print("%d shards are equal" % compared)


main()
