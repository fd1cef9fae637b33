"""Zarr trees with plain zarr, which knows nothing of this format: it opens what we export, and we import what it writes."""
import os
import random
import subprocess
import sys
import warnings

import require

np = require.module("numpy")
zarr = require.module("zarr")
require.module("numcodecs")
import dafref  # noqa: E402
from support import fixtures, folder, random_model, same  # noqa: E402
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec  # noqa: E402

FIXTURES = fixtures()
REPOSITORIES = [
    "flat-all-types/repo.daf", "flat-v1.0/repo.daf", "flat-odd-names/repo.daf", "flat-mixed-schemas/repo.daf",
    "packed/zstd.daf", "packed/gzip.daf", "packed/blosc_zstd_bitshuffle.daf", "packed/blosc_lz4_bitshuffle.daf",
    "packed-all-types/zstd.daf", "packed-all-types/blosc_zstd_bitshuffle.daf", "packed-wide-chunks/zstd.daf",
    "packed-wide-chunks/gzip.daf", "zipped/zstd.daf", "zipped/gzip.daf", "zipped/blosc_zstd_bitshuffle.daf",
    "dafr-packed/zstd.daf"]
CODECS = [None, "zstd", "gzip", "blosc_zstd_bitshuffle", "blosc_lz4_bitshuffle"]


def convert(source, target, code=0):
    result = subprocess.run([sys.argv[1], source, target], capture_output=True)
    text = result.stderr.decode("utf-8", "replace")
    assert result.returncode == code, "%s to %s: %s" % (source, target, text)
    return text


# ---- a tree as a model

def type_of(array):
    if array.dtype.kind in "TOU":
        return "String"
    return dafref.canonical_type(array.dtype.name)


def values_of(array):
    eltype = type_of(array)
    return eltype, [dafref.to_model(eltype, str(v) if eltype == "String" else v) for v in array[...].ravel()]


def sparse_of(group, n_rows, n_columns):
    """Dense columns of a sparse property."""
    indices = group["nzind" if "nzind" in group else "rowval"][...]
    colptr = group["colptr"][...] if "colptr" in group else np.array([1, len(indices) + 1])
    eltype, stored = values_of(group["nzval"]) if "nzval" in group else ("Bool", [True] * len(indices))
    columns = [[dafref.to_model(eltype, 0)] * n_rows for _ in range(n_columns)]
    for c in range(n_columns):
        for k in range(int(colptr[c]) - 1, int(colptr[c + 1]) - 1):
            columns[c][int(indices[k]) - 1] = stored[k]
    return eltype, columns


def vector_of(node, n):
    if isinstance(node, zarr.Group):
        eltype, columns = sparse_of(node, n, 1)
        return {"eltype": eltype, "values": columns[0]}
    eltype, values = values_of(node)
    return {"eltype": eltype, "values": values}


def matrix_of(node, n_rows, n_columns):
    if isinstance(node, zarr.Group):
        eltype, columns = sparse_of(node, n_rows, n_columns)
        return {"eltype": eltype, "columns": columns}
    same(node.shape, (n_columns, n_rows), "shape of " + node.path)
    eltype, values = values_of(node)
    return {"eltype": eltype, "columns": [values[c * n_rows:(c + 1) * n_rows] for c in range(n_columns)]}


def model_of(root):
    same(root.attrs["daf"], [1, 0], "the attribute")
    model = {"scalars": {}, "axes": {}, "vectors": {}, "matrices": {}}
    for name, node in root["scalars"].members():
        eltype, values = values_of(node)
        model["scalars"][name] = {"type": eltype, "value": values[0]}
    for axis, node in root["axes"].members():
        model["axes"][axis] = values_of(node)[1]
    for axis, entries in model["axes"].items():
        vectors = {name: vector_of(node, len(entries)) for name, node in root["vectors"][axis].members()}
        if vectors:
            model["vectors"][axis] = vectors
        for other, others in model["axes"].items():
            members = root["matrices"][axis][other].members()
            matrices = {name: matrix_of(node, len(entries), len(others)) for name, node in members}
            if matrices:
                model["matrices"].setdefault(axis, {})[other] = matrices
    return model


def reference(path):
    return dafref.values_only(dafref.read_repository(dafref.open_any(path)))


def check_export(source, work, number):
    """By the index (required, if there, or ignored) zarr sees what the reference reads in the directory."""
    tree = os.path.join(work, "tree-%d.daf.zarr" % number)
    convert(source, tree)
    expected = reference(source)
    for index in (True, None, False):
        root = zarr.open_group(tree, mode="r", use_consolidated=index)
        got = model_of(root)
        for part in expected:
            same(got[part], expected[part], "%s of %s" % (part, source))
    back = os.path.join(work, "back-%d.daf" % number)
    convert(tree, back)
    same(reference(back), expected, "back from " + source)


def check_random(work):
    for number, codec in enumerate(CODECS):
        model = random_model(number + 1, {"few": 3, "many": 700, "none": 0 if codec is None else 1})
        source = os.path.join(work, "random-%d.daf" % number)
        packing = codec and dafref.Packing(codec, 5, 1)
        dafref.write_repository(dafref.DirStore(source), model, packing)
        check_export(source, work, 100 + number)


# ---- trees that zarr writes

def random_layout(rng, shape):
    """Chunks, and perhaps shards, of sizes that seldom divide."""
    chunks = tuple(rng.randint(1, n + 2) for n in shape)
    shards = tuple(c * rng.randint(1, 3) for c in chunks) if rng.random() < 0.5 else None
    return chunks, shards


def random_compressors(rng):
    return rng.choice([None, ZstdCodec(level=3, checksum=True), GzipCodec(level=6), BloscCodec(cname="lz4", shuffle="shuffle"),
                       BloscCodec(cname="zstd", shuffle="bitshuffle"), BloscCodec(cname="zlib", shuffle="noshuffle"),
                       [ZstdCodec(level=1), GzipCodec(level=1)]])


def put_array(rng, group, name, array):
    shape = array.shape
    chunks, shards = random_layout(rng, shape)
    options = {"name": name, "chunks": chunks, "shards": shards, "compressors": random_compressors(rng),
               "config": {"write_empty_chunks": rng.random() < 0.5}}
    if array.dtype.kind == "T":
        created = group.create_array(shape=shape, dtype="string", **options)
    else:
        if array.dtype.itemsize > 1 and rng.random() < 0.3:
            options["serializer"] = BytesCodec(endian="big")
        if rng.random() < 0.3:
            options["chunk_key_encoding"] = {"name": "v2", "separator": rng.choice("./")}
        created = group.create_array(shape=shape, dtype=array.dtype, **options)
    created[...] = array


def numpy_of(eltype, values):
    if eltype == "String":
        return np.array(values, dtype=np.dtypes.StringDType())
    array = np.array([dafref.from_model(eltype, v) for v in values], dtype=dafref.NP[eltype])
    return array.astype(bool) if eltype == "Bool" else array


def write_tree(rng, model, path):
    root = zarr.create_group(path, attributes={"daf": [1, 0]})
    groups = {name: root.create_group(name) for name in ("scalars", "axes", "vectors", "matrices")}
    for name, scalar in model["scalars"].items():
        put_array(rng, groups["scalars"], name, numpy_of(scalar["type"], [scalar["value"]]))
    for axis, entries in model["axes"].items():
        put_array(rng, groups["axes"], axis, numpy_of("String", entries))
        vectors = groups["vectors"].create_group(axis)
        for name, vector in model["vectors"][axis].items():
            put_array(rng, vectors, name, numpy_of(vector["eltype"], vector["values"]))
    for rows, by_columns in model["matrices"].items():
        for columns, matrices in by_columns.items():
            group = groups["matrices"].create_group(rows + "/" + columns)
            for name, matrix in matrices.items():
                flat = numpy_of(matrix["eltype"], [v for column in matrix["columns"] for v in column])
                put_array(rng, group, name, flat.reshape(len(matrix["columns"]), -1))


def check_import(work):
    for seed in range(4):
        rng = random.Random(seed)
        model = random_model(seed + 50, {"few": 3, "many": 90})
        tree, target = os.path.join(work, "zarr-%d.daf.zarr" % seed), os.path.join(work, "zarr-%d.daf" % seed)
        write_tree(rng, model, tree)
        convert(tree, target)
        expected = model_of(zarr.open_group(tree, mode="r"))
        got = reference(target)
        for part in expected:
            same(got[part], expected[part], "%s of tree %d" % (part, seed))


# ---- xarray

def check_xarray(work):
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path = [p for p in sys.path if os.path.abspath(p) != here]  # our scripts are not the modules it looks for
    xarray = require.module("xarray")
    tree = os.path.join(work, "tree-4.daf.zarr")
    expected = model_of(zarr.open_group(tree, mode="r"))
    rows = next(iter(expected["matrices"]))
    columns = next(c for c in expected["matrices"][rows] if c != rows)
    data = xarray.open_zarr(tree, group="matrices/%s/%s" % (rows, columns))
    assert len(data.data_vars) > 0
    for name, array in data.data_vars.items():
        same(array.dims, (columns, rows), "dimensions of " + name)
        got = [[dafref.to_model(type_of(array), v) for v in column] for column in array.values]
        same(got, expected["matrices"][rows][columns][name]["columns"], "xarray's " + name)
    axes = xarray.open_zarr(tree, group="axes")
    same([str(v) for v in axes[rows].values], expected["axes"][rows], "the axis")


def main():
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", message=".*does not have a Zarr V3 specification.*")
    with folder() as work:
        for number, path in enumerate(REPOSITORIES):
            check_export(os.path.join(FIXTURES, path), work, number)
        check_random(work)
        check_import(work)
        warnings.simplefilter("default")
        check_xarray(work)


if __name__ == "__main__":
    main()
