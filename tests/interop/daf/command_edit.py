#!/usr/bin/env python3
"""daf delete, pack, unpack and tree: right values afterwards, as dafref.py reads them, and refusals that change nothing."""
import json
import os
import shutil

import dafref
from support import daf, files_of, fixtures, folder, random_model, same

FIXTURES = fixtures()

LENGTHS = {"bin": 700, "few": 3, "none": 0}


def model_of(path):
    return dafref.values_only(dafref.read_repository(dafref.open_any(path)))


def make(path, seed):
    dafref.write_repository(dafref.DirStore(path), random_model(seed, LENGTHS), None)
    return model_of(path)


def packs_and_unpacks(base):
    path = os.path.join(base, "pack.daf")
    model = make(path, 11)
    flat = files_of(path)
    for more in ([], ["--codec", "zstd", "--level", "9"], ["--codec", "gzip"], ["--codec", "blosc_lz4_bitshuffle"]):
        report = json.loads(daf("pack", path, "--chunk-kb", "1", "--json", *more))
        same(report["done"], True, "done")
        same(len(report["properties"]), sum(len(v) for v in model["vectors"].values()) +
             sum(len(m) for r in model["matrices"].values() for m in r.values()), "properties")
        same(report["after_bytes"], sum(p["after_bytes"] for p in report["properties"]), "sum")
        same(model_of(path), model, "values after pack")
        about = json.loads(daf("describe", path, "--json"))
        codec = more[1] if more else "blosc_zstd_bitshuffle"
        info = about["vectors"]["bin"]["v_UInt32"]
        same((info["packed"], info["compression"], info["chunk_shape"]), (True, codec, [256]), "packing")
        same(about["vectors"]["few"]["v_UInt32"]["packed"], False, "a small one")
        same(about["matrices"]["bin"]["few"]["m_Int16"]["chunk_shape"], [512, 1], "packing")
    line = daf("unpack", path, "vector", "bin", "v_UInt32").decode()
    assert line.startswith("vectors/bin/v_UInt32: ") and "2800" not in line.split("->")[0], line
    assert b"all: " in daf("unpack", path)
    after = files_of(path)
    del flat["metadata.json"], after["metadata.json"]
    same(after, flat, "files after unpack")


def deletes(base):
    path = os.path.join(base, "delete.daf")
    model = make(path, 12)
    daf("pack", path, "vector", "bin", "v_Int64", "--chunk-kb", "1")
    for target in (("scalar", "s_Bool"), ("vector", "bin", "v_Int64"), ("vector", "few", "v_String"),
                   ("matrix", "bin", "few", "m_Int8"), ("axis", "none")):
        daf("delete", path, *target)
        message = daf("delete", path, *target, code=2).decode()
        assert message.startswith("daf delete: "), message
        daf("delete", path, *target, "--if-exists")
    del model["scalars"]["s_Bool"], model["vectors"]["bin"]["v_Int64"], model["vectors"]["few"]["v_String"]
    del model["matrices"]["bin"]["few"]["m_Int8"], model["matrices"]["few"]["bin"]["m_Int8"]
    del model["axes"]["none"], model["vectors"]["none"], model["matrices"]["none"]
    for row in model["matrices"].values():
        row.pop("none", None)
    same(model_of(path), model, "what is left")
    assert not os.path.exists(os.path.join(path, "vectors", "none"))


def shows_trees(base):
    path = os.path.join(FIXTURES, "packed", "zstd.daf")
    text = daf("tree", path).decode().splitlines()
    names = [line.split("-- ")[1].split("  ")[0] for line in text[1:]]
    same(names, ["axes", "item", "kind", "vectors", "item", "sp_float32", "v_float64", "v_int32", "v_string", "matrices",
                 "item", "kind", "m_float32", "m_int64"], "names")
    assert text[1] == "|-- axes" and text[-1].startswith("            `-- m_int64  Int64"), text
    path = os.path.join(base, "odd.daf")
    daf("set", path, "scalar", "a\x1b[2Jb\nc", "--value", "x\x1b\ny", "--create")
    for command in (["tree", path], ["describe", path]):
        text = daf(*command)
        assert b"\x1b" not in text and b"a\\x1b[2Jb\\nc" in text, text
    daf("delete", path, "scalar", "a\x1b[2Jb\nc")
    message = daf("delete", path, "scalar", "a\x1b[2Jb\nc", code=2)
    assert b"\x1b" not in message and b"a\\x1b[2Jb" in message, message


def refuses(base):
    archive = os.path.join(base, "a.daf.zip")
    shutil.copy(os.path.join(FIXTURES, "zip-packed", "repo.daf.zip"), archive)
    with open(archive, "rb") as f:
        before = f.read()
    about = json.loads(daf("describe", archive, "--json"))
    axis = sorted(about["vectors"])[0]
    name = sorted(about["vectors"][axis])[0]
    for command in (("delete", archive, "vector", axis, name), ("delete", archive, "axis", axis),
                    ("pack", archive), ("unpack", archive, "vector", axis, name)):
        assert b"append-only" in daf(*command, code=2), command
    with open(archive, "rb") as f:
        same(f.read(), before, "the archive")
    path = os.path.join(base, "refuse.daf")
    make(path, 13)
    before = files_of(path)
    for part, command in (("one property", ["delete", path, "scalar"]), ("missing", ["delete", path]),
                          ("too many", ["delete", path, "matrix", "a", "b", "c", "d"]), ("not a daf", ["delete", path + "x", "axis", "a"]),
                          ("at most one vector", ["pack", path, "scalar", "s_Bool"]), ("no codec", ["pack", path, "--codec", "rar"]),
                          ("from 1 to 22", ["pack", path, "--level", "0"]), ("level 12 of", ["pack", path, "--codec", "gzip", "--level", "12", "--chunk-kb", "1"]),
                          ("no vector", ["unpack", path, "vector", "bin", "x"]), ("unrecognized", ["unpack", path, "--codec", "zstd"])):
        message = daf(*command, code=2).decode()
        assert part in message, message
    after = files_of(path)
    del before["metadata.json"], after["metadata.json"]  # listed anew, since small properties were stored again
    same(after, before, "the repository")
    with open(os.path.join(path, "vectors/bin/v_Int32.data"), "ab") as f:
        f.write(b"!")
    report = json.loads(daf("pack", path, "--json", "--chunk-kb", "1", code=1, errors=False))
    same(report["done"], False, "done")


def main():
    with folder() as base:
        packs_and_unpacks(base)
        deletes(base)
        shows_trees(base)
        refuses(base)
    print("delete, pack, unpack and tree do as their page says")


main()
