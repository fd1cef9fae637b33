#!/usr/bin/env python3
"""A packed image of 4096 x 4096 UInt32: seconds of writing and reading it by libdaf and by zarr-python, which gets the same
codec, chunks and shard, with 1 and 2 threads, measured by turns. Exit status 1: other values were read than written."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numcodecs.blosc
import numpy as np
import zarr

EDGE = 4096


def image_of(edge):
    """Photon counts: a bright cell on a dim ground."""
    rng = np.random.default_rng(1)
    x = np.arange(edge) / edge * 40
    ground = 4 + 3 * np.sin(x)[:, None] * np.cos(x)[None, :]
    ground[edge // 4:edge // 2, edge // 4:edge // 2] += 200
    return rng.poisson(ground).astype("<u4")


def codec_of(name):
    if name.startswith("blosc_"):
        return zarr.codecs.BloscCodec(typesize=4, cname=name.split("_")[1], clevel=5, shuffle="bitshuffle")
    return zarr.codecs.ZstdCodec(level=5) if name == "zstd" else zarr.codecs.GzipCodec(level=5)


def by_zarr(image, path, codec, chunk_rows, threads):
    """(seconds of writing, of reading). The matrix is column-major, so zarr sees it transposed, in C order."""
    numcodecs.blosc.set_nthreads(1)
    zarr.config.set({"threading.max_workers": threads, "async.concurrency": threads})
    shutil.rmtree(path, ignore_errors=True)
    start = time.perf_counter()
    array = zarr.create_array(path, shape=image.shape, dtype=image.dtype, chunks=(1, chunk_rows), shards=image.shape,
                              compressors=codec_of(codec))
    array[...] = image
    middle = time.perf_counter()
    got = zarr.open_array(path, mode="r")[...]
    end = time.perf_counter()
    if not np.array_equal(got, image):
        sys.exit("zarr read other values than it wrote")
    return middle - start, end - middle


def by_daf(tool, action, path, raw, codec, chunk_kb, threads, times):
    out = subprocess.run([tool, action, path, raw, str(EDGE), str(EDGE), codec, str(chunk_kb), str(threads), str(times)],
                         check=True, capture_output=True, text=True).stdout
    return min(float(line) for line in out.split())


def measure(a, work, codec, threads):
    image = image_of(EDGE)
    raw, path = os.path.join(work, "raw"), os.path.join(work, "run.daf")
    image.tofile(raw)
    writes, reads = [], []
    for _ in range(a.pairs):
        ours_write = by_daf(a.tool, "write", path, raw, codec, a.chunk_kb, threads, 2)
        ours_read = by_daf(a.tool, "read", path, raw, codec, a.chunk_kb, threads, 2)
        write, read = by_zarr(image, os.path.join(work, "run.zarr"), codec, a.chunk_kb * 256, threads)
        writes.append((ours_write, write))
        reads.append((ours_read, read))
    for what, pairs in (("write", writes), ("read", reads)):
        ours, theirs = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        print("%-24s %d thread%s  %-5s  libdaf %.3f s (%4.0f MB/s)  zarr %.3f s  ratio %5.1f" % (
            codec, threads, " " if threads == 1 else "s", what, ours, image.nbytes / ours / 1e6, theirs, theirs / ours))
    size = os.path.getsize(os.path.join(path, "matrices/r/c/image.zip"))
    shard = os.path.getsize(os.path.join(work, "run.zarr/c/0/0"))
    print("%-24s bytes: libdaf %d, zarr %d" % (codec, size, shard))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--tool", required=True, help="the program daf_bench")
    p.add_argument("--folder", required=True)
    p.add_argument("--pairs", type=int, default=3)
    p.add_argument("--chunk-kb", type=int, default=8)
    p.add_argument("--codecs", default="blosc_zstd_bitshuffle,blosc_lz4_bitshuffle,zstd,gzip")
    a = p.parse_args()
    work = tempfile.mkdtemp(prefix="photond-bench.", dir=a.folder)
    try:
        for codec in a.codecs.split(","):
            for threads in (1, 2):
                measure(a, work, codec, threads)
    finally:
        shutil.rmtree(work)


main()
