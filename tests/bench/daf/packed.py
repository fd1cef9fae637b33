#!/usr/bin/env python3
"""A packed image of 4096 x 4096 UInt32, or (--sparse) a sparse matrix of 1 M x 1 M with 10 M values as its three packed arrays:
seconds of writing and reading it by libdaf and by zarr-python, which gets the same codec, chunks and shards, with 1 and 2
threads, measured by turns. Exit status 1: other values were read than written."""
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
SPARSE_EDGE, N_VALUES = 1000000, 10000000


def image_of(edge):
    """Photon counts: a bright cell on a dim ground."""
    rng = np.random.default_rng(1)
    x = np.arange(edge) / edge * 40
    ground = 4 + 3 * np.sin(x)[:, None] * np.cos(x)[None, :]
    ground[edge // 4:edge // 2, edge // 4:edge // 2] += 200
    return rng.poisson(ground).astype("<u4")


def sparse_of(edge, n):
    """Column pointers and row indices from 1, rising within a column, and counts: one after the other, as UInt32."""
    rng = np.random.default_rng(2)
    places = np.unique(rng.integers(0, edge * edge, n + n // 1000, dtype=np.int64))
    places = np.sort(rng.permutation(places)[:n])
    colptr = np.searchsorted(places, np.arange(edge + 1, dtype=np.int64) * edge) + 1
    return [colptr.astype("<u4"), (places % edge + 1).astype("<u4"), rng.poisson(3, n).astype("<u4") + np.uint32(1)]


def codec_of(name):
    if name.startswith("blosc_"):
        return zarr.codecs.BloscCodec(typesize=4, cname=name.split("_")[1], clevel=5, shuffle="bitshuffle")
    return zarr.codecs.ZstdCodec(level=5) if name == "zstd" else zarr.codecs.GzipCodec(level=5)


def by_zarr(arrays, path, codec, chunk_values, threads):
    """(seconds of writing, of reading) of [(name, array)]. A matrix is column-major, so zarr sees it
    transposed, in C order."""
    numcodecs.blosc.set_nthreads(1)
    zarr.config.set({"threading.max_workers": threads, "async.concurrency": threads})
    shutil.rmtree(path, ignore_errors=True)
    start = time.perf_counter()
    group = zarr.create_group(path)
    for name, values in arrays:
        chunks = (1,) * (values.ndim - 1) + (chunk_values,)
        shards = tuple(-(-n // c) * c for n, c in zip(values.shape, chunks))
        array = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks, shards=shards,
                                   compressors=codec_of(codec))
        array[...] = values
    middle = time.perf_counter()
    group = zarr.open_group(path, mode="r")
    got = [group[name][...] for name, _ in arrays]
    end = time.perf_counter()
    if not all(np.array_equal(g, values) for g, (_, values) in zip(got, arrays)):
        sys.exit("zarr read other values than it wrote")
    return middle - start, end - middle


def by_daf(a, action, path, raw, codec, threads):
    action, edge = ("sparse-" + action, SPARSE_EDGE) if a.sparse else (action, EDGE)
    out = subprocess.run([a.tool, action, path, raw, str(edge), str(edge), codec, str(a.chunk_kb), str(threads), "2"],
                         check=True, capture_output=True, text=True).stdout
    return min(float(line) for line in out.split())


def measure(a, work, arrays, codec, threads):
    raw, path, tree = (os.path.join(work, name) for name in ("raw", "run.daf", "run.zarr"))
    n_bytes = sum(values.nbytes for _, values in arrays)
    writes, reads = [], []
    for _ in range(a.pairs):
        ours_write = by_daf(a, "write", path, raw, codec, threads)
        ours_read = by_daf(a, "read", path, raw, codec, threads)
        write, read = by_zarr(arrays, tree, codec, a.chunk_kb * 256, threads)
        writes.append((ours_write, write))
        reads.append((ours_read, read))
    for what, pairs in (("write", writes), ("read", reads)):
        ours, theirs = (statistics.median(p[i] for p in pairs) for i in (0, 1))
        print("%-24s %d thread%s  %-5s  libdaf %.3f s (%4.0f MB/s)  zarr %.3f s  ratio %5.1f" % (
            codec, threads, " " if threads == 1 else "s", what, ours, n_bytes / ours / 1e6, theirs, theirs / ours))
    sizes = [sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(top) for f in files)
             for top in (os.path.join(path, "matrices", "r", "c"), tree)]
    print("%-24s bytes: libdaf %d, zarr %d" % (codec, *sizes))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--tool", required=True, help="the program daf_bench")
    p.add_argument("--folder", required=True)
    p.add_argument("--pairs", type=int, default=3)
    p.add_argument("--chunk-kb", type=int, default=8)
    p.add_argument("--codecs", default="blosc_zstd_bitshuffle,blosc_lz4_bitshuffle,zstd,gzip")
    p.add_argument("--sparse", action="store_true")
    a = p.parse_args()
    work = tempfile.mkdtemp(prefix="photond-bench.", dir=a.folder)
    try:
        if a.sparse:
            arrays = list(zip(("colptr", "rowval", "nzval"), sparse_of(SPARSE_EDGE, N_VALUES)))
        else:
            arrays = [("image", image_of(EDGE))]
        with open(os.path.join(work, "raw"), "wb") as file:
            for _, values in arrays:
                values.tofile(file)
        for codec in a.codecs.split(","):
            for threads in (1, 2):
                measure(a, work, arrays, codec, threads)
    finally:
        shutil.rmtree(work)


main()
