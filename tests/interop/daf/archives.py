#!/usr/bin/env python3
"""Archives both ways. What we write: zipfile, unzip and 7z find no fault in it, dafref.py reads it, its bytes are those that
dafref.py appends, and unzip makes a directory of it that is the repository. What zip, 7z and dafref.py make: we read it,
append to it, and the same programs accept the result."""
import json
import os
import shutil
import subprocess
import zipfile

import require

require.module("numpy")
require.module("numcodecs")
import dafref  # noqa: E402
from support import columns_of, daf, exact, folder, random_model, same, set_model  # noqa: E402

ZIP = require.program("zip")
UNZIP = require.program("unzip")
SEVEN = require.program("7z")
LENGTHS = {"few": 3, "many": 60}
TYPES = ["Bool", "Int64", "UInt16", "Float32", "String"]


def small_model():
    """A few types are enough here: all of them are gone through elsewhere."""
    model = random_model(11, LENGTHS)
    for vectors in model["vectors"].values():
        for name in [name for name, vector in vectors.items() if vector["eltype"] not in TYPES]:
            del vectors[name]
    for by_columns in model["matrices"].values():
        for matrices in by_columns.values():
            for name in [name for name, matrix in matrices.items() if matrix["eltype"] not in TYPES[:2]]:
                del matrices[name]
    model["scalars"] = {"s": {"type": "String", "value": "ünïcødé"}, "n": {"type": "Int64", "value": "-7"}}
    return model


def content(path):
    model = dafref.values_only(dafref.read_repository(dafref.open_any(path)))
    model["scalars"].pop("added", None)
    return model


def read_by_ours(path, model):
    """Every property, by the command, against a model that dafref.py has read."""
    for name, scalar in model["scalars"].items():
        got = json.loads(daf("get", path, "scalar", name, "--format", "json"))
        same(exact(scalar["type"], got), scalar["value"], "scalar " + name)
    for axis, entries in model["axes"].items():
        same(json.loads(daf("get", path, "axis", axis, "--format", "json")), entries, "axis " + axis)
    for axis, vectors in model["vectors"].items():
        for name, vector in vectors.items():
            got = json.loads(daf("get", path, "vector", axis, name, "--format", "json"))
            same([exact(vector["eltype"], value) for value in got], vector["values"], "vector " + name)
    for rows, by_columns in model["matrices"].items():
        for columns, matrices in by_columns.items():
            for name, matrix in matrices.items():
                got = json.loads(daf("get", path, "matrix", rows, columns, name, "--format", "json"))
                got = columns_of(got, len(model["axes"][columns]))
                got = [[exact(matrix["eltype"], value) for value in column] for column in got]
                same(got, matrix["columns"], "matrix " + name)


def run(*arguments, cwd=None):
    result = subprocess.run(arguments, capture_output=True, check=False, cwd=cwd)
    text = (result.stdout + result.stderr).decode("utf-8", "replace")
    same(result.returncode, 0, " ".join(arguments) + ": " + text)
    return text


def tests_clean(path, old_methods_only=True):
    if old_methods_only:
        with zipfile.ZipFile(path) as archive:
            same(archive.testzip(), None, "testzip of " + path)
        assert "No errors detected" in run(UNZIP, "-t", path)
    assert "Everything is Ok" in run(SEVEN, "t", path)


def ours_by_others(model, base):
    for number, packing in enumerate([[], ["--packed", "--chunk-kb", "1"]]):
        tree = os.path.join(base, "tree%d.daf" % number)
        single = os.path.join(base, "single%d.daf.zip" % number)
        plural = os.path.join(base, "plural%d.dafs.zip" % number)
        set_model(model, tree, packing, "x")
        expected = content(tree)
        for path, archive in [(single, single), (plural + "#/one", plural), (plural + "#/a/b", plural)]:
            set_model(model, path, packing, "x")
            tests_clean(archive)
            same(content(path), expected, path)
            read_by_ours(path, expected)
        with zipfile.ZipFile(single) as archive:
            names = archive.namelist()
            data = {name: archive.read(name) for name in names}
            same({info.compress_type for info in archive.infolist()}, {0}, "methods")
            for info in archive.infolist():
                same((info.header_offset + 30 + len(info.filename.encode()) + local_extra(single, info)) % 8, 0, "alignment")
        same(names[0], "daf.json", "the first entry")
        reference = dafref.ZipWriter(os.path.join(base, "reference%d.daf.zip" % number))
        for name in names[1:]:
            reference.put(name, data[name])
        with open(single, "rb") as ours, open(reference.path, "rb") as theirs:
            assert ours.read() == theirs.read(), "the bytes of %s are not those that dafref.py appends" % single
        unpacked = os.path.join(base, "unpacked%d.daf" % number)
        run(UNZIP, "-q", single, "-d", unpacked)
        same(content(unpacked), expected, "unzip of " + single)
        read_by_ours(unpacked, expected)
        daf("set", unpacked, "scalar", "added", "--value", "1")


def local_extra(path, info):
    with open(path, "rb") as source:
        source.seek(info.header_offset + 28)
        return int.from_bytes(source.read(2), "little")


def others_by_ours(base):
    tree = os.path.join(base, "tree0.daf")
    expected = content(tree)
    makers = {
        "plain": lambda path: run(ZIP, "-q", "-r", path, ".", cwd=tree),
        "folder": lambda path: run(ZIP, "-q", "-r", path, "tree0.daf", cwd=base),
        "stored": lambda path: run(ZIP, "-q", "-0", "-r", path, ".", cwd=tree),
        "bzip2": lambda path: run(ZIP, "-q", "-Z", "bzip2", "-r", path, ".", cwd=tree),
        "zip64": lambda path: run(ZIP, "-q", "-fz", "-r", path, ".", cwd=tree),
        "descriptors": lambda path: run(ZIP, "-q", "-fd", "-r", path, ".", cwd=tree),
        "deflate64": lambda path: run(SEVEN, "a", "-tzip", "-mm=Deflate64", path, ".", cwd=tree),
        "python": lambda path: shutil.make_archive(path[:-4], "zip", tree),
    }
    for name, make in makers.items():
        path = os.path.join(base, name + ".daf.zip")
        make(path)
        read_by_ours(path, expected)
        with zipfile.ZipFile(path) as archive:
            before = [info for info in archive.infolist() if not info.filename.endswith("metadata.json")]
        daf("set", path, "scalar", "added", "--value", "more")
        read_by_ours(path, expected)
        tests_clean(path, name != "deflate64")
        with zipfile.ZipFile(path) as archive:
            after = archive.infolist()
        same([facts(info) for info in after[:-1]], [facts(info) for info in before], "entries of " + name)
        assert after[-1].filename.endswith("scalars/added.json"), after[-1]
    model = small_model()
    path = os.path.join(base, "theirs.daf.zip")
    for packing in [None, dafref.Packing(codec="zstd", target_kb=1)]:
        if os.path.exists(path):
            os.unlink(path)
        dafref.write_repository(dafref.ZipWriter(path), model, packing)
        read_by_ours(path, content(path))


def facts(info):
    return (info.filename, info.date_time, info.compress_type, info.comment, info.extra, info.create_system,
            info.create_version, info.extract_version, info.flag_bits, info.internal_attr, info.external_attr,
            info.header_offset, info.CRC, info.compress_size, info.file_size)


def main():
    with folder() as base:
        ours_by_others(small_model(), base)
        others_by_ours(base)
    print("zipfile, unzip, zip, 7z and dafref.py agree with us on archives")


main()
