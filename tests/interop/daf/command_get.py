#!/usr/bin/env python3
"""daf get and set: slices of every form from flat, packed, sparse, String data in both layouts; npz and csv both ways."""
import csv
import io
import json
import os
import resource
import struct
import subprocess
import zipfile

import numpy as np

import dafref
import require
from support import TYPES, daf, dump, fixtures, folder, random_model, random_values, same

FIXTURES = fixtures()

KINDS = {"Bool": "?", "Int8": "i1", "Int16": "<i2", "Int32": "<i4", "Int64": "<i8", "UInt8": "u1", "UInt16": "<u2", "UInt32": "<u4",
         "UInt64": "<u8", "Float32": "<f4", "Float64": "<f8"}


def npy(data):
    return np.load(io.BytesIO(data), allow_pickle=False)


def numbers(eltype, values):
    return np.array([dafref.from_model(eltype, v) for v in values], dtype=KINDS[eltype])


def dense(eltype, columns, n_rows):
    if eltype == "String":
        return [[c[r] for c in columns] for r in range(n_rows)]
    return np.array([numbers(eltype, c) for c in columns]).reshape(len(columns), n_rows).T


def equal(got, expected, what):
    if not np.array_equal(got, expected, equal_nan=got.dtype.kind == "f"):
        raise AssertionError("%s:\n%s\ninstead of\n%s" % (what, got, expected))


# ---- slices

def slices_everything(base):
    model = random_model(71, {"bin": 300, "few": 4, "none": 0})
    path = os.path.join(base, "s.daf")
    dafref.write_repository(dafref.DirStore(path), model, None)
    for state in ("flat", "packed", "wide", "sparse"):
        if state == "packed":
            daf("pack", path, "--chunk-kb", "1")
        if state == "wide":
            path = wide(base, model)
        if state == "sparse":
            path = sparse(base, model)
        for eltype in TYPES:
            check_matrix(path, model, "bin", "few", "m_" + eltype, eltype, state)
            check_vector(path, model, "bin", "v_" + eltype, eltype, state)
    check_empty(path if state == "flat" else os.path.join(base, "s.daf"))


def wide(base, model):
    """Chunks of several columns, which only other writers make."""
    path = os.path.join(base, "w.daf")
    packing = dafref.Packing("zstd")
    packing.shape = lambda eltype, shape: [7] if len(shape) == 1 else [7, 3]
    dafref.write_repository(dafref.DirStore(path), {**model, "axes": {k: v for k, v in model["axes"].items()}}, packing)
    return path


def sparse(base, model):
    path = os.path.join(base, "p.daf")
    daf("set", path, "axis", "bin", "--create", data="".join(e + "\n" for e in model["axes"]["bin"]).encode())
    daf("set", path, "axis", "few", data="".join(e + "\n" for e in model["axes"]["few"]).encode())
    for t in TYPES:
        columns = model["matrices"]["bin"]["few"]["m_" + t]["columns"]
        rows = [[c[r] for c in columns] for r in range(300)]
        daf("set", path, "matrix", "bin", "few", "m_" + t, "--type", t, "--format", "json", "--form", "sparse", "--index-type", "UInt32", data=dump(rows))
        daf("set", path, "vector", "bin", "v_" + t, "--type", t, "--format", "json", "--form", "sparse", data=dump(model["vectors"]["bin"]["v_" + t]["values"]))
    about = json.loads(daf("describe", path, "--json"))
    assert all(v["format"] == "sparse" for v in about["vectors"]["bin"].values())
    same(about["matrices"]["bin"]["few"]["m_Int8"]["index_type"], "UInt32", "index type")
    return path


def in_json(eltype, rows):
    return [[dafref.to_model(eltype, dafref.from_model(eltype, v)) for v in row] for row in rows]


def check_matrix(path, model, rows, columns, name, eltype, state):
    whole = dense(eltype, model["matrices"][rows][columns][name]["columns"], len(model["axes"][rows]))
    target = ("matrix", rows, columns, name)
    names = [model["axes"][rows][i] for i in (5, 6, 299, 0)]
    for more, r, c in ((["--rows", "10:13", "--columns", "1:3"], range(10, 13), (1, 2)), (["--rows", "299"], [299], range(4)),
                       (["--rows", ":2"], [0, 1], range(4)), (["--columns", "2:"], range(300), [2, 3]), (["--rows", "4:4"], [], range(4)),
                       ([x for n in names for x in ("--row", n)] + ["--column", model["axes"][columns][3], "--column", model["axes"][columns][0]],
                        [5, 6, 299, 0], [3, 0])):
        what = "%s %s %s" % (state, name, more)
        if eltype == "String":
            expected = [[whole[i][j] for j in c] for i in r]
            same(json.loads(daf("get", path, *target, "--format", "json", *more)), expected, what)
            raw = "".join(whole[i][j] + "\n" for j in c for i in r)
            same(daf("get", path, *target, "--format", "raw", *more).decode(), raw, what)
            continue
        expected = whole[np.ix_(list(r), list(c))]
        equal(npy(daf("get", path, *target, "--format", "npy", *more)), expected, what)
        same(daf("get", path, *target, "--format", "raw", *more), expected.T.tobytes(), what)
        got = json.loads(daf("get", path, *target, "--format", "json", *more))
        same(in_json(eltype, got), in_json(eltype, [[v.item() if eltype[0] != "F" or np.isfinite(v) else dafref.to_model(eltype, v) for v in row] for row in expected]), what)
        lines = daf("get", path, *target, *more).decode().splitlines()
        same(len(lines), len(r), what)


def check_vector(path, model, axis, name, eltype, state):
    values = model["vectors"][axis][name]["values"]
    for more, r in ((["--rows", "250:260"], range(250, 260)), (["--row", model["axes"][axis][7]], [7])):
        if eltype == "String":
            same(json.loads(daf("get", path, "vector", axis, name, "--format", "json", *more)), [values[i] for i in r], state)
        else:
            equal(npy(daf("get", path, "vector", axis, name, "--format", "npy", *more)), numbers(eltype, [values[i] for i in r]), state)
    same(daf("get", path, "axis", axis, "--rows", "1:3").decode().splitlines(), model["axes"][axis][1:3], "axis")


def check_empty(path):
    same(npy(daf("get", path, "vector", "none", "v_Int32", "--format", "npy")).shape, (0,), "empty")
    same(npy(daf("get", path, "matrix", "none", "few", "m_Int32", "--format", "npy")).shape, (0, 4), "empty")
    same(npy(daf("get", path, "matrix", "few", "none", "m_Int32", "--format", "npy")).shape, (4, 0), "empty")
    same(daf("get", path, "matrix", "few", "none", "m_Int32", "--format", "json").replace(b"\n", b""), b"[[],[],[],[]]", "empty")


def reads_the_other_layout(base):
    path = os.path.join(base, "l.daf")
    daf("set", path, "axis", "y", "--create", data=b"a\nb\n")
    daf("set", path, "axis", "x", data=b"1\n2\n3\n")
    daf("set", path, "matrix", "y", "x", "m", "--type", "Int16", data=b"1 2 3\n4 5 6\n")
    daf("set", path, "matrix", "y", "x", "s", "--type", "Int16", "--form", "sparse", data=b"0 2 0\n4 0 6\n")
    daf("set", path, "matrix", "y", "x", "both", "--type", "Int16", "--both-layouts", data=b"1 2 3\n4 5 6\n")
    message = daf("get", path, "matrix", "x", "y", "m", code=2)
    assert b"--relayout" in message, message
    same(daf("get", path, "matrix", "x", "y", "m", "--relayout"), b"1\t4\n2\t5\n3\t6\n", "text")
    same(daf("get", path, "matrix", "x", "y", "both"), b"1\t4\n2\t5\n3\t6\n", "both layouts")
    same(daf("get", path, "matrix", "x", "y", "s", "--relayout", "--rows", "1:", "--format", "csv"), b"x,a,b\n2,2,0\n3,0,6\n", "csv")
    same(daf("get", path, "matrix", "x", "y", "m", "--relayout", "--format", "raw"), struct.pack("<6h", 1, 2, 3, 4, 5, 6), "raw")
    equal(npy(daf("get", path, "matrix", "x", "y", "s", "--relayout", "--format", "npy", "--columns", "1")), np.array([[4], [0], [6]], "<i2"), "npy")
    with zipfile.ZipFile(io.BytesIO(daf("get", path, "matrix", "x", "y", "s", "--relayout", "--format", "npz"))) as z:
        assert z.testzip() is None and npy(z.read("format.npy")).item() == b"csr"
        same(npy(z.read("shape.npy")).tolist(), [3, 2], "shape")
    daf("set", path, "matrix", "x", "y", "again", "--format", "npz", data=daf("get", path, "matrix", "x", "y", "s", "--relayout", "--format", "npz"))
    same(daf("get", path, "matrix", "x", "y", "again"), b"0\t4\n2\t0\n0\t6\n", "npz of the other layout")


# ---- npz

def arrays(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        assert z.testzip() is None
        return {n[:-4]: npy(z.read(n)) for n in z.namelist()}


def save(kind, data, indices, indptr, shape, compress=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compress) as z:
        for name, value in (("indices", indices), ("indptr", indptr), ("format", np.array(kind.encode())), ("shape", np.array(shape)), ("data", data)):
            member = io.BytesIO()
            np.save(member, value)
            z.writestr(name + ".npy", member.getvalue())
    return out.getvalue()


def npz_parts(path, name, whole):
    """Ranges, and entries apart, in any order and more than once; of what is stored, and of its transpose."""
    def entries(option, letter, numbers):
        return [x for n in numbers for x in ("--" + option, "%s%d" % (letter, n))]
    for more, rows, columns in ((["--rows", "10:20", "--columns", "2:5"], range(10, 20), range(2, 5)),
                                (entries("row", "r", (1, 5, 6, 30)), (1, 5, 6, 30), range(9)),
                                (entries("row", "r", (30, 2, 30, 7)) + entries("column", "c", (8, 0, 8)), (30, 2, 30, 7), (8, 0, 8)),
                                (entries("column", "c", (3, 1)) + ["--rows", "5:5"], (), (3, 1))):
        for target, given, flip in ((["r", "c"], more, False), (["c", "r", name, "--relayout"], [swapped(m) for m in more], True)):
            target = target if flip else target + [name]
            part = arrays(daf("get", path, "matrix", *target, "--format", "npz", *given))
            same(part["format"].item(), b"csr" if flip else b"csc", "format")
            same(part["shape"].tolist(), [len(columns), len(rows)] if flip else [len(rows), len(columns)], "shape")
            back = np.zeros((len(rows), len(columns)), whole.dtype)
            for j in range(len(columns)):
                k = slice(part["indptr"][j], part["indptr"][j + 1])
                assert (np.diff(part["indices"][k]) > 0).all()
                back[part["indices"][k], j] = part["data"][k]
            equal(back, whole[np.ix_(np.array(rows, int), np.array(columns, int))], "%s %s" % (name, more))


def swapped(option):
    return {"--row": "--column", "--column": "--row", "--rows": "--columns", "--columns": "--rows"}.get(option, option)


def npz_both_ways(base):
    path = os.path.join(base, "n.daf")
    rng = np.random.default_rng(5)
    daf("set", path, "axis", "r", "--create", data=b"".join(b"r%d\n" % i for i in range(40)))
    daf("set", path, "axis", "c", data=b"".join(b"c%d\n" % i for i in range(9)))
    for eltype, kind in KINDS.items():
        whole = np.where(rng.random((40, 9)) < 0.3, rng.integers(1, 100, (40, 9)), 0).astype(kind)
        columns = [np.flatnonzero(whole[:, j]) for j in range(9)]
        indptr = np.cumsum([0] + [len(c) for c in columns]).astype("<i4")
        indices = np.concatenate(columns).astype("<i4")
        data = np.concatenate([whole[c, j] for j, c in enumerate(columns)])
        for how, content in (("csc", save("csc", data, indices, indptr, (40, 9))),
                             ("shuffled", shuffled(rng, data, indices, indptr)),
                             ("csr", csr(whole)), ("big-endian", save("csc", data.astype(data.dtype.newbyteorder(">")), indices.astype(">i8"), indptr.astype(">i8"), (40, 9), zipfile.ZIP_STORED))):
            name = "%s_%s" % (eltype, how)
            daf("set", path, "matrix", "r", "c", name, "--format", "npz", data=content)
            equal(npy(daf("get", path, "matrix", "r", "c", name, "--format", "npy")), whole, name)
            got = arrays(daf("get", path, "matrix", "r", "c", name, "--format", "npz"))
            same(got["format"].item(), b"csc", "format")
            equal(got["indices"], indices, name)
            equal(got["indptr"], indptr, name)
            equal(got["data"], data, name)
            same(got["shape"].tolist(), [40, 9], "shape")
        npz_parts(path, name, whole)
        daf("set", path, "vector", "r", eltype, "--format", "npz", data=save("csc", whole[columns[0], 0], columns[0].astype("<i4"), np.array([0, len(columns[0])], "<i4"), (40, 1)))
        equal(npy(daf("get", path, "vector", "r", eltype, "--format", "npy")), whole[:, 0], eltype)
        same(arrays(daf("get", path, "vector", "r", eltype, "--format", "npz"))["shape"].tolist(), [40, 1], "shape")
    daf("set", path, "matrix", "r", "c", "dense", "--format", "npz", "--form", "dense", data=content)
    same(json.loads(daf("describe", path, "--json"))["matrices"]["r"]["c"]["dense"]["format"], "dense", "form")
    equal(arrays(daf("get", path, "matrix", "r", "c", "dense", "--format", "npz"))["indptr"], indptr, "of a dense one")
    refuse_npz(path, data, indices, indptr, content)


def shuffled(rng, data, indices, indptr):
    """Rows of a column in any order, as SciPy allows."""
    data, indices = data.copy(), indices.copy()
    for j in range(len(indptr) - 1):
        order = rng.permutation(indptr[j + 1] - indptr[j]) + indptr[j]
        data[indptr[j]:indptr[j + 1]], indices[indptr[j]:indptr[j + 1]] = data[order], indices[order]
    return save("csc", data, indices, indptr, (40, 9))


def csr(whole):
    rows = [np.flatnonzero(whole[i]) for i in range(40)]
    return save("csr", np.concatenate([whole[i, r] for i, r in enumerate(rows)]), np.concatenate(rows).astype("<i8"),
                np.cumsum([0] + [len(r) for r in rows]).astype("<i8"), (40, 9))


def refuse_npz(path, data, indices, indptr, good):
    twice = indices.copy()
    twice[1] = twice[0]
    far = indices.copy()
    far[0] = 40
    short = indptr.copy()
    short[-1] -= 1
    for part, content in (("no ZIP archive", b"junk"), ("has two values", save("csc", data, twice, indptr, (40, 9))), ("out of its range", save("csc", data, far, indptr, (40, 9))),
                          ("contradict each other", save("csc", data, indices, short, (40, 9))), ("neither in compressed", save("coo", data, indices, indptr, (40, 9))),
                          ("is missing", save("csc", data, indices, indptr, (40, 9)).replace(b"indptr", b"indptx")),
                          ("contradict", save("csc", data, indices, indptr, (40, 10)))):
        message = daf("set", path, "matrix", "r", "c", "bad", "--format", "npz", data=content, code=2).decode()
        assert part in message, (part, message)
    for n in range(0, len(good), 97):
        daf("set", path, "matrix", "r", "c", "bad", "--format", "npz", data=good[:n], code=2)
    assert b"but the axes" in daf("set", path, "matrix", "c", "r", "bad", "--format", "npz", data=good, code=2)
    assert "bad" not in json.loads(daf("describe", path, "--json"))["matrices"]["r"]["c"]


# ---- csv

def csv_both_ways(base):
    path = os.path.join(base, "c.daf")
    model = random_model(73, {"bin": 12, "few": 3})
    rows = model["axes"]["bin"] = ["plain", "with, comma", 'with "quotes"', " blanks ", "ü"] + ["e%d" % i for i in range(7)]
    dafref.write_repository(dafref.DirStore(path), model, None)
    for eltype in TYPES:
        for target, name in ((("matrix", "bin", "few"), "m_" + eltype), (("vector", "bin"), "v_" + eltype)):
            text = daf("get", path, *target, name, "--format", "csv")
            table = list(csv.reader(io.StringIO(text.decode())))
            same([r[0] for r in table], ["bin"] + rows, "entries")
            daf("set", path, *target, "again", "--type", eltype, "--format", "csv", "--overwrite", data=text)
            same(daf("get", path, *target, "again", "--format", "csv").replace(b"again", name.encode()), text, name)
            # rows and columns in another order, all quoted, lines ending in CRLF
            body = table[1:][::-1]
            order = [0] + list(range(1, len(table[0])))[::-1]
            out = io.StringIO()
            csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows([[r[i] for i in order] for r in [table[0]] + body])
            daf("set", path, *target, "again", "--type", eltype, "--format", "csv", "--overwrite", data=out.getvalue().encode())
            same(daf("get", path, *target, "again", "--format", "csv").replace(b"again", name.encode()), text, name)
    daf("set", path, "axis", "copy", "--format", "csv", data=daf("get", path, "axis", "bin", "--format", "csv"))
    same(daf("get", path, "axis", "copy"), daf("get", path, "axis", "bin"), "axis")
    good = daf("get", path, "vector", "few", "v_Int8", "--format", "csv").decode().splitlines()
    for part, lines in (("is no entry of axis", good[:3] + ["x,1"]), ("stands twice", good[:3] + good[2:3]), ("2 entries of axis", good[:3]),
                        ("has 3 cells, the heading has 2", good[:3] + [good[3] + ",1"]), ("is no Int8", good[:3] + [good[3].split(",")[0] + ",x"]),
                        ("does not end", good[:3] + ['"x,1']), ("a vector has one", [good[0] + ",more"] + good[1:])):
        message = daf("set", path, "vector", "few", "bad", "--type", "Int8", "--format", "csv", data="\n".join(lines).encode(), code=2).decode()
        assert part in message, (part, message)


# ---- the rest

def refuses(base):
    path = os.path.join(FIXTURES, "packed", "zstd.daf")
    vector = ("vector", "item", "v_int32")
    for part, arguments in (("no range", [*vector, "--rows", "5:401"]), ("no range", [*vector, "--rows", "7:5"]), ("no range", [*vector, "--rows", "400"]),
                            ("no range", [*vector, "--rows", "-1"]), ("no range", [*vector, "--rows", ""]), ("no range", [*vector, "--rows", "a:b"]),
                            ("has no entry", [*vector, "--row", "nobody"]), ("goes without the names", [*vector, "--row", "x", "--rows", "1:2"]),
                            ("are for a matrix", [*vector, "--columns", "1:2"]), ("are for a matrix", [*vector, "--relayout"]),
                            ("no npz form", ["vector", "item", "v_string", "--format", "npz"]), ("no npz form", ["axis", "item", "--format", "npz"])):
        message = daf("get", path, *arguments, code=2).decode()
        assert part in message, (part, message)
    for part, arguments in (("no form", ["vector", "item", "x", "--form", "thick"]), ("no index type", ["vector", "item", "x", "--index-type", "Bool"]),
                            ("npz is for", ["scalar", "x", "--format", "npz"]), ("no csv form", ["scalar", "x", "--format", "csv"])):
        message = daf("set", path, *arguments, code=2).decode()
        assert part in message, (part, message)


def needs_little_memory(base):
    """A packed matrix of 256 MB goes through a process of 192 MB, row by row and column by column."""
    if require.sanitized("daf"):
        return
    path = os.path.join(base, "big.daf")
    daf("set", path, "axis", "y", "--create", data=b"".join(b"%d\n" % i for i in range(1 << 13)))
    daf("set", path, "axis", "x", data=b"".join(b"%d\n" % i for i in range(1 << 13)))
    plain = np.zeros((1 << 13, 1 << 13), "<u4")
    plain[::97, ::89] = 5
    file = os.path.join(base, "big.npy")
    np.save(file, plain)
    daf("set", path, "matrix", "y", "x", "m", file, "--format", "npy", "--packed", "--codec", "zstd", "--level", "1", "--chunk-kb", "32")
    limit = 192 << 20

    def limited():
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    for form, expected in (("raw", 1 << 28), ("text", (1 << 27))):
        run = subprocess.Popen([require.built("daf"), "get", path, "matrix", "y", "x", "m", "--format", form], stdout=subprocess.PIPE, preexec_fn=limited)
        total = 0
        while chunk := run.stdout.read(1 << 20):
            total += len(chunk)
        same((run.wait(), total), (0, expected), form)


def survives_a_file_that_shrinks(base):
    """Another program cuts the file while its values are printed: an error, never a signal."""
    n = 10000000
    for form in ("raw", "csv"):
        path = os.path.join(base, "shrinks-%s.daf" % form)
        daf("set", path, "axis", "n", "--create", data=b"".join(b"%d\n" % i for i in range(1000)))
        daf("set", path, "axis", "m", data=b"".join(b"%d\n" % i for i in range(n // 1000)))
        daf("set", path, "matrix", "n", "m", "v", "--type", "Float64", "--format", "raw", data=bytes(8 * n))
        run = subprocess.Popen([require.built("daf"), "get", path, "matrix", "n", "m", "v", "--format", form], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        assert len(run.stdout.read(4096)) == 4096
        os.truncate(os.path.join(path, "matrices", "n", "m", "v.data"), 100)
        message = run.communicate()[1]
        assert run.returncode == 1 and b"v.data" in message, (run.returncode, message)


def main():
    with folder() as base:
        slices_everything(base)
        reads_the_other_layout(base)
        npz_both_ways(base)
        csv_both_ways(base)
        refuses(base)
        needs_little_memory(base)
        survives_a_file_that_shrinks(base)
    print("get and set agree on every form and every slice")


main()
