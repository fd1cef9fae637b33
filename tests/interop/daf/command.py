#!/usr/bin/env python3
"""The daf command as a user meets it: forms, formats, exit codes, messages."""
import json
import os
import struct
import subprocess
import tempfile

import require
from support import daf, fixtures, same

IMAGE = [[1, 2, 3], [4, 5, 6]]
RAW_IMAGE = struct.pack("<6I", 1, 4, 2, 5, 3, 6)  # column by column


def npy(descr, shape, data, fortran=False):
    header = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, fortran, shape)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def make(path):
    daf("set", path, "scalar", "name", "--value", "first, \"set\"", "--create")
    daf("set", path, "scalar", "photons", "--type", "UInt64", data=b"18446744073709551615\n")
    daf("set", path, "axis", "y", data=b"0\n1\n")
    daf("set", path, "axis", "x", data=b"a,b\nc\nd\n")
    daf("set", path, "matrix", "y", "x", "image", "--type", "UInt32", data=b"1 2 3\n4\t5\t6\n")
    daf("set", path, "vector", "x", "label", "--type", "String", data="ä\n\"q\"\n\n".encode())
    daf("set", path, "vector", "x", "mean", "--type", "Float64", "--format", "json", data=b'[0.5, "NaN", -1e300]')
    daf("set", path, "vector", "x", "on", "--type", "bool", data=b"true\n0\n1\n")


def reads_in_every_format(path):
    image, label = ("matrix", "y", "x", "image"), ("vector", "x", "label")
    same(daf("get", path, *image), b"1\t2\t3\n4\t5\t6\n", "text")
    same(daf("get", path, *image, "--format", "csv"), b'y,"a,b",c,d\n0,1,2,3\n1,4,5,6\n', "csv")
    same(daf("get", path, *image, "--format", "raw"), RAW_IMAGE, "raw")
    same(json.loads(daf("get", path, *image, "--format", "json")), IMAGE, "json")
    array = daf("get", path, *image, "--format", "npy")
    assert array.endswith(RAW_IMAGE) and b"'<u4', 'fortran_order': True, 'shape': (2, 3)" in array, array
    same(daf("get", path, *label), "ä\n\"q\"\n\n".encode(), "texts")
    same(daf("get", path, *label, "--format", "raw"), "ä\n\"q\"\n\n".encode(), "raw texts")
    same(daf("get", path, *label, "--format", "csv"), 'x,label\n"a,b",ä\nc,"""q"""\nd,\n'.encode(), "csv texts")
    same(daf("get", path, *label, "--format", "json").decode(), '["ä","\\"q\\"",""]\n', "json texts")
    assert b"no npy form" in daf("get", path, *label, "--format", "npy", code=2)
    same(daf("get", path, "vector", "x", "mean"), b"0.5\nnan\n-1e+300\n", "floats")
    same(daf("get", path, "vector", "x", "mean", "--format", "json"), b'[0.5,"NaN",-1e+300]\n', "json floats")
    same(daf("get", path, "vector", "x", "on"), b"true\nfalse\ntrue\n", "bools")
    same(daf("get", path, "axis", "x", "--format", "csv"), b'x\n"a,b"\nc\nd\n', "axis")
    same(daf("get", path, "scalar", "name"), b'first, "set"\n', "scalar")
    same(daf("get", path, "scalar", "name", "--format", "csv"), b'name\n"first, ""set"""\n', "scalar")
    same(daf("get", path, "scalar", "photons"), b"18446744073709551615\n", "scalar")
    same(daf("get", path, "scalar", "photons", "--format", "raw"), b"\xff" * 8, "raw scalar")
    same(daf("get", path, "scalar", "photons", "--format", "json"), b"18446744073709551615\n", "json scalar")
    assert daf("get", path, "scalar", "photons", "--format", "npy").endswith(b"\xff" * 8)


def writes_from_every_format(path):
    target = ("matrix", "y", "x", "again")
    ways = [("raw", RAW_IMAGE, ["--type", "UInt32"]),
            ("json", b" [ [1,2,3] ,\n[\"4\",5,6]]\n", ["--type", "UInt32"]),
            ("npy", npy("<u4", "(2, 3)", struct.pack("<6I", 1, 2, 3, 4, 5, 6)), []),
            ("npy", npy(">u4", "(2, 3)", struct.pack(">6I", 1, 4, 2, 5, 3, 6), True), ["--type", "UInt32"])]
    for form, data, more in ways:
        daf("set", path, *target, "--format", form, "--overwrite", *more, data=data)
        same(daf("get", path, *target, "--format", "raw"), RAW_IMAGE, form)
    daf("set", path, "matrix", "y", "x", "words", "--type", "String", "--format", "json",
        data='[["a","","\\u00fc"],["\\ud83e\\uddec","\\\\","c d"]]'.encode())
    same(daf("get", path, "matrix", "y", "x", "words"), "a\t\tü\n🧬\t\\\tc d\n".encode(), "words")
    daf("set", path, "matrix", "y", "x", "words", "--type", "String", "--overwrite",
        data="a\t\tü\n🧬\t\\\tc d\n".encode())
    same(daf("get", path, "matrix", "y", "x", "words"), "a\t\tü\n🧬\t\\\tc d\n".encode(), "words")
    daf("set", path, "scalar", "delta", "--type", "Float32", "--format", "json", data=b"0.1")
    same(daf("get", path, "scalar", "delta", "--format", "raw"), struct.pack("<f", 0.1), "Float32")
    file = path + ".txt"
    with open(file, "wb") as out:
        out.write(b"3\n2\n1\n")
    daf("set", path, "vector", "x", "fromfile", file, "--type", "Int8")
    same(daf("get", path, "vector", "x", "fromfile", "--format", "raw"), b"\3\2\1", "file")


def packs_when_asked(path):
    data = struct.pack("<3000H", *(i % 7 for i in range(3000)))
    daf("set", path, "axis", "bin", data=b"".join(b"%d\n" % i for i in range(3000)))
    for name, more, expected in (
            ("flat", [], (False, None, None)), ("packed", ["--packed"], (True, "blosc_zstd_bitshuffle", [3000])),
            ("gzip", ["--packed", "--codec", "gzip", "--level", "9", "--chunk-kb", "1"], (True, "gzip", [512])),
            ("small", ["--packed", "--chunk-kb", "64"], (False, None, None))):
        daf("set", path, "vector", "bin", name, "--type", "UInt16", "--format", "raw", *more, data=data,
            env={"DAF_PACKED_TARGET_CHUNK_KB": "4"} if name == "packed" else None)
        info = json.loads(daf("describe", path, "--json"))["vectors"]["bin"][name]
        if name == "packed":
            expected = (True, "blosc_zstd_bitshuffle", [2048])
        same((info["packed"], info.get("compression"), info.get("chunk_shape")), expected, name)
        same(daf("get", path, "vector", "bin", name, "--format", "raw"), data, name)


def lists_groups(folder):
    path = os.path.join(folder, "runs.dafs.zip")
    for group in ("b/c", "a"):
        daf("set", path + "#/" + group, "scalar", "n", "--type", "Int8", "--value", "1", "--create")
    same(daf("describe", path).decode(), path + "#/a\n" + path + "#/b/c\n", "groups")
    same(json.loads(daf("describe", path, "--json")), {"path": path, "groups": ["a", "b/c"]}, "groups as JSON")
    assert b"no such file" in daf("describe", os.path.join(folder, "none.dafs.zip"), code=2)


def describes(path):
    about = json.loads(daf("describe", path, "--json"))
    same(about["name"], 'first, "set"', "name")
    same(about["version"], [1, 1], "version")
    same(about["scalars"]["photons"], {"type": "UInt64", "value": 18446744073709551615}, "scalar")
    same(about["axes"]["x"], {"entries": 3, "disk_bytes": 8}, "axis")
    same(about["matrices"]["y"]["x"]["image"],
         {"type": "UInt32", "format": "dense", "rows": 2, "columns": 3, "packed": False, "raw_bytes": 24,
          "disk_bytes": 24 + 37}, "matrix")
    same(about["problems"], [], "problems")
    text = daf("describe", path).decode()
    for part in ("FilesDaf 1.1", "y, x: image", "UInt32", "x: label", "photons", "18446744073709551615", "3 entries"):
        assert part in text, text


def looks_into_payloads(base):
    """Sizes, lines and directories of shards are looked at; of packed texts the ratio is that to their lines."""
    for name in ("data-long", "data-missing", "data-short", "lines-short", "shard-truncated", "shard-method-contradiction"):
        about = json.loads(daf("describe", os.path.join(fixtures(), "invalid", name + ".daf"), "--json", code=1, errors=False))
        same(len(about["problems"]), 1, name)
    path = os.path.join(base, "texts.daf")
    words = b"".join(b"photon %d\n" % (i % 50) * (i % 3) + b"\n" for i in range(3000))
    n = words.count(b"\n")
    daf("set", path, "axis", "bin", "--create", data=b"".join(b"%d\n" % i for i in range(n)))
    for codec in ("flat", "gzip", "zstd", "blosc_zstd_bitshuffle", "blosc_lz4_bitshuffle"):
        more = [] if codec == "flat" else ["--packed", "--codec", codec]
        daf("set", path, "vector", "bin", codec, "--type", "String", *more, data=words)
        info = json.loads(daf("describe", path, "--json"))["vectors"]["bin"][codec]
        same(info["raw_bytes"], len(words), codec)
        if more:
            same((info["stored_chunks"], info["chunks"]), (-(-n // 512), -(-n // 512)), codec)
            assert abs(info["ratio"] - len(words) / info["disk_bytes"]) < 0.01, info
    text = daf("describe", path).decode()
    assert "flat lines" in text and text.count("ratio") == 4, text


def refuses(path):
    def says(part, *arguments, code=2, data=b""):
        message = daf(*arguments, code=code, data=data).decode()
        assert part in message and message.startswith("daf"), message

    says("no scalar \"none\"", "get", path, "scalar", "none")
    says("no vector \"v\" on axis \"none\"", "get", path, "vector", "none", "v")
    says("not a daf directory", "get", path + "-none", "scalar", "a")
    says("not a daf directory", "set", path + "-none", "scalar", "a", "--value", "1")
    says("one property", "get", path, "scalar")
    says("are missing", "get", path)
    says("one property", "get", path, "tensor", "a")
    says("no format", "get", path, "scalar", "name", "--format", "xml")
    says("unrecognized option", "describe", path, "--jason")
    says("--type is needed", "set", path, "vector", "x", "new")
    says("no type", "set", path, "vector", "x", "new", "--type", "Int128")
    says("element 2, \"2.5\", is no Int8", "set", path, "vector", "x", "new", "--type", "Int8", data=b"1\n2.5\n3\n")
    says("element 1, \"300\", is no UInt8", "set", path, "vector", "x", "new", "--type", "UInt8", data=b"300\n1\n1\n")
    says("2 values, but 3 x 1", "set", path, "vector", "x", "new", "--type", "Int8", data=b"1\n2\n")
    says("3 x 2, but the axes", "set", path, "matrix", "y", "x", "new", "--type", "Int8", data=b"1 2\n3 4\n5 6\n")
    says("row 2 has 1 values", "set", path, "matrix", "y", "x", "new", "--type", "Int8", data=b"1 2 3\n4\n")
    says("different lengths", "set", path, "matrix", "y", "x", "new", "--type", "Int8", "--format", "json",
         data=b"[[1,2,3],[4]]")
    says("exists already", "set", path, "vector", "x", "label", "--type", "String", data=b"a\nb\nc\n")
    says("holds a /", "set", path, "scalar", "../up", "--value", "1")
    # what is refused makes no repository, of any kind
    for new in (path + "-new", path + "-new.daf.zip", path + "-new.dafs.zip#/g"):
        says("holds a /", "set", new, "scalar", "a/b", "--value", "1", "--create")
        says("given twice", "set", new, "axis", "a", "--create", data=b"x\nx\n")
        says("a new repository has no axis", "set", new, "vector", "x", "v", "--type", "Int8", "--create", data=b"1\n")
        says("is reserved", "set", path, "vector", "x", "name", "--type", "Int8", "--create", data=b"1\n1\n1\n")
        assert not os.path.exists(new.partition("#")[0]), new
    says("no whole number", "set", path, "vector", "x", "new", "--type", "Int32", "--format", "raw", data=b"12345")
    says("no NumPy array", "set", path, "vector", "x", "new", "--format", "npy", data=b"junk")
    says("has 2 dimensions, not 1", "set", path, "vector", "x", "new", "--format", "npy",
         data=npy("<u4", "(2, 3)", RAW_IMAGE))
    says("does not fit", "set", path, "vector", "x", "new", "--format", "npy", data=npy("<u4", "(9,)", RAW_IMAGE))
    says("level 10 of", "set", path, "vector", "bin", "new", "--type", "UInt8", "--packed",
         "--codec", "blosc_lz4_bitshuffle", "--level", "10", "--chunk-kb", "1", data=b"1\n" * 3000)
    says("NUL", "set", path, "vector", "x", "new", "--type", "String", data=b"a\0\nb\nc\n")
    says("cannot be overwritten", "set", path, "axis", "x", "--overwrite", data=b"1\n")
    says("there is no command", "verfy", path)
    assert not os.path.exists(os.path.join(path, "vectors/x/new.json"))


def problems_of(path):
    text = subprocess.run([require.built("daf"), "describe", path, "--json"], capture_output=True, check=False)
    same(text.returncode, 1, "exit code")
    return json.loads(text.stdout)["problems"]


def tells_damage(path):
    image = os.path.join(path, "matrices/y/x/image.data")
    with open(image, "ab") as out:
        out.write(b"x")
    with open(os.path.join(path, "vectors/x/label.json"), "wb") as out:
        out.write(b"{")
    assert b"25 bytes are more than 6 UInt32 values" in daf("get", path, "matrix", "y", "x", "image", code=1)
    label, size = problems_of(path)
    assert "label.json" in label and "image.data: 25 bytes are more than 6 UInt32 values" in size, (label, size)
    os.remove(image)
    assert "image.data: the payload is missing" in problems_of(path)[1]
    os.mkfifo(image)
    assert "image.data: not a regular file" in problems_of(path)[1]


def full_output_is_noticed(path):
    if not os.path.exists("/dev/full"):
        return
    with open("/dev/full", "wb") as full:
        result = subprocess.run([require.built("daf"), "get", path, "axis", "bin"], stdout=full, stderr=subprocess.PIPE,
                                check=False)
    same(result.returncode, 2, "exit code")
    assert b"could not be written" in result.stderr, result.stderr


def helps():
    assert b"describe" in daf("--help") and daf("--version").startswith(b"daf ")
    for command in ("copy", "delete", "describe", "get", "merge", "pack", "reorder", "set", "tree", "unpack", "unzip", "verify", "zip"):
        assert b"Examples:" in daf(command, "--help")
    assert b"Usage" in daf(code=2)


def main():
    with tempfile.TemporaryDirectory(prefix="daf-command-") as base:
        path = os.path.join(base, "a.daf")
        make(path)
        reads_in_every_format(path)
        writes_from_every_format(path)
        packs_when_asked(path)
        describes(path)
        looks_into_payloads(base)
        lists_groups(base)
        refuses(path)
        full_output_is_noticed(path)
        tells_damage(path)
        helps()
    print("the daf command does as its page says")


main()
