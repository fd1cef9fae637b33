#!/usr/bin/env python3
"""daf verify: every fixture, and every code of its list provoked by a change of one thing; nothing is ever changed by it."""
import copy
import json
import os
import re
import shutil
import struct
import subprocess
import zipfile

import dafref
import require
from support import daf, files_of, fixtures, folder, random_model, same

FIXTURES = fixtures()

LENGTHS = {"bin": 700, "few": 3}
SEEN = set()


def problems(path, *more):
    """The problems that verify tells, as (code, place); checks what it prints in both forms, and that nothing changes."""
    run = subprocess.run([require.built("daf"), "verify", path, "--json", *more], capture_output=True, check=False)
    report = json.loads(run.stdout)
    found = [(p["code"], p["place"]) for p in report["problems"]]
    same(run.returncode, 1 if found else 0, "exit code of %s: %s" % (path, found))
    same(report["good"], not found, "good")
    lines = daf("verify", path, *more, code=run.returncode, errors=False).decode().splitlines()
    same(len(lines), len(found) + 1, "lines of %s" % path)
    for line, p in zip(lines, report["problems"]):
        assert line.startswith("%s: %s: %s: " % (path, p["class"], p["code"])), line
        assert p["text"] and "\n" not in p["text"], p
    SEEN.update(code for code, _ in found)
    return found


def repositories(name):
    base = os.path.join(FIXTURES, name)
    return sorted(os.path.join(base, n) for n in os.listdir(base) if n.endswith((".daf", ".daf.zip")))


def verifies_fixtures():
    bad = {"axis-duplicate": "axis-duplicate", "colptr-decreasing": "colptr", "data-long": "payload-long",
           "data-missing": "payload-missing", "data-short": "payload-short", "eltype-unknown": "eltype",
           "format-unknown": "format", "lines-short": "payload-short", "no-daf-json": "no-marker",
           "nzind-zero": "index-range", "rowval-out-of-range": "index-range", "shard-chunk-corrupt": "chunk",
           "shard-method-contradiction": "shard-method", "shard-truncated": "shard", "version-0.9": "version",
           "version-1.2": "version", "version-2.0": "version", "version-text": "version"}
    with open(os.path.join(FIXTURES, "invalid", "reasons.json"), encoding="utf-8") as f:
        same(sorted(bad), sorted(name[:-4] for name in json.load(f)), "fixtures of invalid")
    for name, code in bad.items():
        same([c for c, _ in problems(os.path.join(FIXTURES, "invalid", name + ".daf"))], [code], name)
    n_good = 0
    for name in sorted(os.listdir(FIXTURES)):
        if name in ("invalid", "zip-torn") or not os.path.isdir(os.path.join(FIXTURES, name)):
            continue
        for path in repositories(name):
            expected = {"reorder-crash": {"unfinished", "orphan"}, "metadata-stale": {"metadata-stale"}, "metadata-torn": {"metadata"}}.get(name, set())
            if path.endswith("unsupported-method.daf.zip"):
                expected = {"entry-method", "axis-unreadable"}
            if path.endswith(os.path.join("exact-bytes", "step-0.daf.zip")):
                expected = {"no-marker"}  # an archive without entries
            found = {c for c, _ in problems(path)}
            assert found <= expected and bool(found) == bool(expected), (path, found)
            problems(path, "--strict")
            n_good += not expected
    assert n_good >= 40, n_good
    for path in repositories("zip-torn"):
        torn = "tick1" not in path
        same(problems(path), [("torn", "")] if torn else [], path)
    for archive, group in (("dafr-zip", "one"), ("dafr-zip", "two"), ("zip-groups", "first"), ("zip-groups", "deep/second")):
        same(problems(os.path.join(FIXTURES, archive, "repo.dafs.zip#/" + group)), [], group)


# ---- one change at a time

def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def change(path, old, new, count=1):
    with open(path, "rb") as f:
        data = f.read()
    assert old in data, (path, old)
    write(path, data.replace(old, new, count))


def cut(path, n):
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) + n)


def poke(path, offset, data):
    with open(path, "r+b") as f:
        f.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
        f.write(data)


def central(path):
    """Offset of the central directory and width of its first entry."""
    with open(path, "rb") as f:
        data = f.read()
    at = struct.unpack("<Q", data[-50:-42])[0]
    name, extra = struct.unpack("<HH", data[at + 28:at + 32])
    return at, 46 + name + extra


def poke_central(path, entry, offset, data):
    at, width = central(path)
    poke(path, at + entry * width + offset, data)


def forget_chunk(path, k):
    """Takes chunk k out of a shard, as writers do that leave chunks of zeros out: no entry, and none in the index."""
    at, width = central(path)
    with open(path, "rb") as f:
        data = f.read()
    entries = data[at:-98]
    n = len(entries) // width
    words = list(struct.unpack("<%dQ" % (2 * n), data[:16 * n]))
    words[2 * k:2 * k + 2] = [2**64 - 1] * 2
    index = struct.pack("<%dQ" % (2 * n), *words)
    left = entries[:k * width] + entries[(k + 1) * width:]
    write(path, index + struct.pack("<I", dafref.crc32c(index)) + data[16 * n + 4:at] + left + dafref.end_region(n - 1, len(left), at))


def without_frame_sizes(path):
    """The values of vector zstd in zstd frames, of one stored block each, that do not tell their content's size."""
    plain = dafref.compress
    dafref.compress = lambda codec, level, raw, typesize: b"\x28\xb5\x2f\xfd\0\x58" + struct.pack("<I", len(raw) << 3 | 1)[:3] + raw
    try:
        write(path, dafref.encode_shard("Int32", list(range(700)), [700], [256], "zstd", 5))
    finally:
        dafref.compress = plain


def set_all(base, names):
    for name, kind, value in names:
        daf("set", base, "scalar", name, "--type", kind, "--value", value)


CHANGES = [
    # code, place, strict, change
    ("no-marker", "daf.json", False, lambda p: os.remove(p + "/daf.json")),
    ("marker", "daf.json", False, lambda p: write(p + "/daf.json", b"{")),
    ("version", "daf.json", False, lambda p: write(p + "/daf.json", b'{"version":[1,7]}\n')),
    ("unreadable", "scalars/link.json", False, lambda p: write(p + "/scalars/link.json", b" " * (17 << 20))),
    ("json", "vectors/few/v_Int8.json", False, lambda p: write(p + "/vectors/few/v_Int8.json", b"{]\n")),
    ("json", "scalars/s_Int8.json", False, lambda p: write(p + "/scalars/s_Int8.json", b"[1]\n")),
    ("scalar", "scalars/s_Int8.json", False, lambda p: write(p + "/scalars/s_Int8.json", b'{"type":"Int8","value":300}\n')),
    ("text", "vectors/few/v_String.txt", False, lambda p: write(p + "/vectors/few/v_String.txt", b"a\n\xff\nb\n")),
    ("text", "axes/few.txt", False, lambda p: write(p + "/axes/few.txt", b"a\n\0\nb\n")),
    ("axis-duplicate", "axes/few.txt", False, lambda p: write(p + "/axes/few.txt", b"a\nb\na\n")),
    ("axis-duplicate", "axes/few.txt", False, lambda p: write(p + "/axes/few.txt", b"\na\n\n")),
    ("axis-empty", "axes/few.txt", False, lambda p: write(p + "/axes/few.txt", b"a\n\nb\n")),
    ("text-cr", "axes/few.txt", True, lambda p: write(p + "/axes/few.txt", b"a\nb\r\nc\n")),
    ("text-end", "axes/few.txt", True, lambda p: write(p + "/axes/few.txt", b"a\nb\nc")),
    ("format", "vectors/few/v_Int8.json", False, lambda p: change(p + "/vectors/few/v_Int8.json", b"dense", b"thick")),
    ("eltype", "vectors/few/sparse.json", False, lambda p: change(p + "/vectors/few/sparse.json", b"Float32", b"Float33")),
    ("packed-format", "vectors/bin/zstd.json", False, lambda p: change(p + "/vectors/bin/zstd.json", b"indexed+zipped", b"indexed+zapped")),
    ("codec", "vectors/bin/zstd.zip", False, lambda p: change(p + "/vectors/bin/zstd.json", b'"zstd"', b'"rar"')),
    ("descriptor", "vectors/bin/zstd.json", False, lambda p: change(p + "/vectors/bin/zstd.json", b"[256]", b"[0]")),
    ("descriptor", "vectors/few/sparse.json", False, lambda p: change(p + "/vectors/few/sparse.json", b"nzind", b"nzinn")),
    ("count", "matrices/few/few/sparse.json", False, lambda p: change(p + "/matrices/few/few/sparse.json", b'"n_elements":4', b'"n_elements":5')),
    ("payload-missing", "vectors/few/sparse.nzval", False, lambda p: os.remove(p + "/vectors/few/sparse.nzval")),
    ("payload-short", "vectors/few/v_Int16.data", False, lambda p: cut(p + "/vectors/few/v_Int16.data", -1)),
    ("payload-long", "matrices/bin/few/m_Int16.data", False, lambda p: cut(p + "/matrices/bin/few/m_Int16.data", 2)),
    ("payload-long", "vectors/few/v_String.txt", False, lambda p: cut(p + "/vectors/few/v_String.txt", 1) or poke(p + "/vectors/few/v_String.txt", -1, b"\n")),
    ("colptr", "matrices/few/few/sparse.colptr", False, lambda p: poke(p + "/matrices/few/few/sparse.colptr", 2, b"\x09\0")),
    ("index-range", "matrices/few/few/sparse.rowval", False, lambda p: poke(p + "/matrices/few/few/sparse.rowval", 0, b"\x04\0")),
    ("index-order", "vectors/few/sparse.nzind", False, lambda p: poke(p + "/vectors/few/sparse.nzind", 2, b"\x01\0")),
    ("shard", "vectors/bin/zstd.zip", False, lambda p: cut(p + "/vectors/bin/zstd.zip", -30)),
    ("shard-stride", "vectors/bin/zstd.zip", False, lambda p: poke_central(p + "/vectors/bin/zstd.zip", 1, 32, b"\1\0")),
    ("shard-method", "vectors/bin/zstd.zip", False, lambda p: poke_central(p + "/vectors/bin/zstd.zip", 1, 10, b"\0\0")),
    ("chunk", "vectors/bin/zstd.zip", False, lambda p: poke_central(p + "/vectors/bin/zstd.zip", 1, 16, b"\0\0\0\0")),
    ("chunk", "vectors/bin/packed_text.zip", False, lambda p: poke_central(p + "/vectors/bin/packed_text.zip", 0, 16, b"\0\0\0\0")),
    ("chunk", "matrices/bin/few/packed.zip", False, lambda p: poke_central(p + "/matrices/bin/few/packed.zip", 4, 16, b"\0\0\0\0")),
    ("shard-index", "vectors/bin/zstd.zip", False, lambda p: poke(p + "/vectors/bin/zstd.zip", 3, b"\1")),
    ("shard-order", "vectors/bin/zstd.zip", False, lambda p: poke_central(p + "/vectors/bin/zstd.zip", 1, 48, b"2")),
    ("local-header", "vectors/bin/zstd.zip", False, lambda p: poke(p + "/vectors/bin/zstd.zip", 52 + 8, b"\0")),
    ("name-hidden", "scalars/..", False, lambda p: write(p + "/scalars/...json", b'{"type":"Int8","value":1}\n')),
    ("name-hidden", "axes/.", False, lambda p: write(p + "/axes/..txt", b"a\n")),
    ("name", "vectors/few/x.nzind", False, lambda p: (write(p + "/vectors/few/x.nzind.json", b'{"format":"dense","eltype":"Int8"}\n'), write(p + "/vectors/few/x.nzind.data", b"123"))),
    ("name", "vectors/few/index", False, lambda p: (write(p + "/vectors/few/index.json", b'{"format":"dense","eltype":"Int8"}\n'), write(p + "/vectors/few/index.data", b"123"))),
    ("name-risky", "scalars/a:b", True, lambda p: daf("set", p, "scalar", "a:b", "--value", "1")),
    ("no-axis", "vectors/gone", False, lambda p: (os.mkdir(p + "/vectors/gone"), write(p + "/vectors/gone/x.json", b"{}"))),
    ("no-axis", "matrices/few/gone", False, lambda p: (os.mkdir(p + "/matrices/few/gone"), write(p + "/matrices/few/gone/x.json", b"{}"))),
    ("orphan", "vectors/few/gone.data", False, lambda p: write(p + "/vectors/few/gone.data", b"")),
    ("orphan", "vectors/few/v_Int8.zip", False, lambda p: write(p + "/vectors/few/v_Int8.zip", b"")),
    ("leftover", ".daf.new.1.2", False, lambda p: write(p + "/.daf.new.1.2", b"")),
    ("leftover", "metadata.json.new", False, lambda p: write(p + "/metadata.json.new", b"")),
    ("unfinished", ".daf.journal", False, lambda p: write(p + "/.daf.journal", b"x")),
    ("unfinished", ".reorder.backup", False, lambda p: os.mkdir(p + "/.reorder.backup")),
    ("metadata", "metadata.json", False, lambda p: cut(p + "/metadata.json", -1)),
    ("metadata-stale", "metadata.json", False, lambda p: change(p + "/metadata.json", b"scalars/s_Int8", b"scalars/s_Int9")),
    ("metadata-stale", "metadata.json", False, lambda p: change(p + "/metadata.json", b'"n_entries":3', b'"n_entries":4')),
    ("metadata-stale", "metadata.json", False, lambda p: change(p + "/metadata.json", b'{"', b'{"scalars/s_Int8":{"type":"Int8","value":1},"')),
    ("metadata-missing", "metadata.json", True, lambda p: os.remove(p + "/metadata.json")),
    ("metadata-form", "metadata.json", True, lambda p: change(p + "/metadata.json", b'}}', b'}}\n')),
    ("folder-missing", "vectors/bare", True, lambda p: (daf("set", p, "axis", "bare", data=b"1\n"), os.rmdir(p + "/vectors/bare"))),
    ("foreign", "notes.txt", True, lambda p: write(p + "/notes.txt", b"")),
    ("foreign", "vectors/few/notes.md", True, lambda p: write(p + "/vectors/few/notes.md", b"")),
    ("json-form", "scalars/s_Int8.json", True, lambda p: (write(p + "/scalars/s_Int8.json", b'{"value": 1, "type": "Int8"}'), os.remove(p + "/metadata.json"))),
    ("json-form", "vectors/few/v_Int8.json", True, lambda p: change(p + "/vectors/few/v_Int8.json", b"}", b"} ")),
    ("non-finite", "scalars/nan.json", True, lambda p: (write(p + "/scalars/nan.json", b'{"type":"Float32","value":"NaN"}\n'))),
    ("digits", "scalars/digits.json", True, lambda p: set_all(p, [("digits", "Float64", "0.1234567890123456")])),
    ("wide-integer", "scalars/wide.json", True, lambda p: set_all(p, [("wide", "UInt64", "9223372036854775808")])),
    ("wide-integer", "vectors/few/wide.data", True, lambda p: daf("set", p, "vector", "few", "wide", "--type", "UInt32", data=b"1\n2147483648\n2\n")),
    ("wide-integer", "vectors/bin/wide.zip", True, lambda p: daf("set", p, "vector", "bin", "wide", "--type", "UInt64", "--packed", "--chunk-kb", "1", data=b"9223372036854775808\n" * 700)),
    ("sparse-string", "matrices/few/few/words.json", True, lambda p: dafref.write_sparse_matrix(dafref.DirStore(p), "matrices/few/few/words", "String", [["a", "", "b"]] * 3, 3, None)),
    ("packed-index", "vectors/bin/packed_sparse.json", True, lambda p: dafref.write_sparse_vector(dafref.DirStore(p), "vectors/bin/packed_sparse", "Float32", [1.0] * 700, dafref.Packing("zstd", target_kb=1))),
    ("shard-extra", "vectors/bin/zstd.zip", True, None),
    ("shard-absent", "vectors/bin/zstd.zip", True, lambda p: forget_chunk(p + "/vectors/bin/zstd.zip", 1)),
    ("frame-size", "vectors/bin/zstd.zip", True, lambda p: without_frame_sizes(p + "/vectors/bin/zstd.zip")),
    ("gzip-trailer", "vectors/bin/gzip.zip", True, lambda p: poke(p + "/vectors/bin/gzip.zip", struct.unpack("<QQ", open(p + "/vectors/bin/gzip.zip", "rb").read(16))[0] + struct.unpack("<QQ", open(p + "/vectors/bin/gzip.zip", "rb").read(16))[1] - 1, b"\x55")),
]


def make(path):
    dafref.write_repository(dafref.DirStore(path), random_model(21, LENGTHS), None)
    store = dafref.DirStore(path)
    dafref.write_sparse_vector(store, "vectors/few/sparse", "Float32", [1.5, 0.0, 2.5], None)
    dafref.write_sparse_matrix(store, "matrices/few/few/sparse", "Int16", [[1, 0, 2], [0, 3, 0], [0, 0, 0]], 3, None)
    numbers = struct.pack("<700i", *range(700))
    daf("set", path, "vector", "bin", "zstd", "--type", "Int32", "--format", "raw", "--packed", "--codec", "zstd", "--chunk-kb", "1", data=numbers)
    daf("set", path, "vector", "bin", "gzip", "--type", "Int32", "--format", "raw", "--packed", "--codec", "gzip", "--chunk-kb", "1", data=numbers)
    daf("set", path, "vector", "bin", "packed_text", "--type", "String", "--packed", "--codec", "zstd", "--chunk-kb", "1", data=b"word\n" * 700)
    daf("set", path, "matrix", "bin", "few", "packed", "--type", "Int32", "--format", "raw", "--packed", "--chunk-kb", "1", "--codec", "zstd", data=numbers * 3)
    daf("pack", path, "vector", "bin", "v_Float64", "--chunk-kb", "1")


def finds_each(base):
    good = os.path.join(base, "good.daf")
    make(good)
    same(problems(good), [], "a good repository")
    before_style = set(problems(good, "--strict"))
    for code, place, strict, act in CHANGES:
        if act is None:
            continue
        path = os.path.join(base, "one.daf")
        shutil.copytree(good, path)
        act(path)
        files = files_of(path)
        found = problems(path, *(["--strict"] if strict else []))
        new = [p for p in found if p not in before_style]
        assert (code, place) in found, (code, place, found)
        # a payload that changes may be described by metadata.json as before; what is written without it is not listed
        others = [p for p in new if p != (code, place) and p != ("metadata-stale", "metadata.json")]
        allowed = {"axis-duplicate": 0, "marker": 0, "no-axis": 2}.get(code, 2)
        assert len(others) <= allowed, (code, others)
        if strict:
            assert code not in [c for c, _ in problems(path)], code
        same(files_of(path), files, "the files")
        shutil.rmtree(path)
    for name, style in (("packed-wide-chunks/zstd.daf", {"wide-chunks"}), ("zipped/zstd.daf", {"zipped"}),
                        ("zipped-plain/gzip.daf", {"zipped", "shard-end", "shard-name", "shard-extra"})):
        codes = {c for c, _ in problems(os.path.join(FIXTURES, name), "--strict")}
        assert style <= codes, (name, codes)


# ---- archives

def rewrite(source, target, edit):
    """Copies an archive entry by entry; edit(info, data) may change them, or give None to leave one out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            kept = edit(info, old.read(info))
            if kept is not None:
                fresh = zipfile.ZipInfo(kept[0])
                fresh.compress_type = kept[2] if len(kept) > 2 else zipfile.ZIP_STORED
                new.writestr(fresh, kept[1])


def finds_in_archives(base):
    source = os.path.join(FIXTURES, "zip-packed", "repo.daf.zip")
    same(problems(source), [], "a good archive")
    path = os.path.join(base, "a.daf.zip")

    def codes_after(edit, *more):
        rewrite(source, path, edit)
        return {c for c, _ in problems(path, *more)}

    plain = lambda info, data: (info.filename, data)  # noqa: E731
    same(codes_after(plain), set(), "a foreign archive")
    assert "entry-unaligned" in codes_after(plain, "--strict")
    assert "entry-compressed" in codes_after(lambda i, d: (i.filename, d, zipfile.ZIP_DEFLATED), "--strict")
    same(codes_after(lambda i, d: None if i.filename.endswith("v_int32.zip") else (i.filename, d)), {"payload-missing"}, "missing")
    with open(source, "rb") as f:
        data = bytearray(f.read())
    with zipfile.ZipFile(source) as z:
        info = {i.filename: i for i in z.infolist()}
    text = next(n for n in info if n.startswith("axes/"))
    at = data.index(b"\n", info[text].header_offset + 60)
    data[at - 1] ^= 1
    write(path, bytes(data))
    assert ("entry-checksum", text) in problems(path), "checksum"
    data[at - 1] ^= 1
    unknown = bytearray(data)  # another way of compression, in the directory alone
    unknown[data.rindex(text.encode()) - 36] = 14
    write(path, bytes(unknown))
    found = problems(path)
    assert ("entry-method", text) in found and "axis-unreadable" in [c for c, _ in found], found
    data[info[text].header_offset + 30] ^= 1  # its name in the local header alone
    write(path, bytes(data))
    assert ("local-header", text) in problems(path), "local header"
    data[info[text].header_offset + 30] ^= 1
    for field, width in ((14, 4), (18, 4), (22, 4), (30 + len(text) + 4, 8), (30 + len(text) + 12, 8)):  # checksum; sizes, and those of ZIP64
        for bit in range(0, 8 * width, 7):
            at = info[text].header_offset + field + bit // 8
            data[at] ^= 1 << bit % 8
            write(path, bytes(data))
            assert ("local-header", text) in problems(path), (field, bit)
            data[at] ^= 1 << bit % 8
    hidden = bytearray(data)
    hidden[data.rindex(text.encode()) + 2] = 0  # in the directory: no file has such a name
    write(path, bytes(hidden))
    found = problems(path)
    assert ("name-hidden", text[:2]) in found and ("local-header", text[:2]) in found, found
    write(path, bytes(data[:50]))
    same(problems(path), [("archive", "")], "no directory")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for i in old.infolist():
            new.writestr(i.filename, old.read(i))
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            new.writestr(text, old.read(text))
        new.writestr("metadata.json", b"{}")
        new.writestr("scalars/", b"")
    found = problems(path, "--strict")
    for expected in (("entry-twice", text), ("entry-surplus", "metadata.json"), ("entry-surplus", "scalars/")):
        assert expected in found, (expected, found)
    # every property of one vector's bytes, as a bomb has them
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("daf.json", b'{"version":[1,1]}\n')
        new.writestr("axes/n.txt", b"".join(b"%d\n" % i for i in range(1000)))
        for i in range(50):
            new.writestr("vectors/n/v%d.json" % i, b'{"format":"dense","eltype":"String"}\n')
        new.writestr("vectors/n/v0.txt", b"word\n" * 1000)
        for i in range(1, 50):
            new.filelist.append(copy.copy(new.getinfo("vectors/n/v0.txt")))
            new.filelist[-1].filename = "vectors/n/v%d.txt" % i
    found = problems(path)
    same([c for c, _ in found].count("entry-overlap"), 49, "overlaps")
    assert ("entry-overlap", "vectors/n/v49.txt") not in found and not [p for p in found if p[0] not in ("entry-overlap", "local-header")], found
    # what is too long to be read, and names that are empty
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("daf.json", b'{"version":[1,1]}\n')
        new.writestr("axes/.txt", b"a\n")
        new.writestr("scalars/s.json", b'{"type":"Int64","value":1,"x":"' + b"a" * 17000000 + b'"}\n')
    same(sorted(problems(path)), [("name-hidden", "axes/.txt"), ("unreadable", "scalars/s.json")], "too long")
    # more stored values than there are elements
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("daf.json", b'{"version":[1,1]}\n')
        new.writestr("axes/a.txt", b"a\nb\n")
        new.writestr("vectors/a/new.json", b'{"format":"sparse","nzind":{"format":"dense","eltype":"UInt64","n_elements":30000}}\n')
        new.writestr("vectors/a/old.json", b'{"format":"sparse","eltype":"Bool","indtype":"UInt64"}\n')
        for name in ("new", "old"):
            new.writestr("vectors/a/%s.nzind" % name, bytes(240000))
        for name in ("scalars//1.json", "axes/./b.txt", "vectors/a/../v.txt", "other/../x"):  # which nothing lists
            new.writestr(name, b"{}")
    hidden = [("name-hidden", n) for n in ("axes/./b.txt", "scalars//1.json", "vectors/a/../v.txt")]
    same(sorted(problems(path)), [("count", "vectors/a/new.json")] + hidden + [("payload-long", "vectors/a/old.nzind")], "too many")
    assert ("foreign", "other/../x") in problems(path, "--strict")
    assert b"30000 stored values are more than 2 x 1" in daf("get", path, "vector", "a", "new", code=1)
    same(daf("describe", path, code=1, errors=False).count(b"stored values are more than 2 x 1"), 2, "described")
    # strings packed, and Bool in the 1.0 form, are of the kinds that others cannot read in archives
    daf("set", path.replace("a.daf", "b.daf"), "axis", "n", "--create", data=b"".join(b"%d\n" % i for i in range(70)))
    tree = os.path.join(base, "old.daf")
    dafref.write_repository(dafref.DirStore(tree), {"version": [1, 0], "scalars": {}, "axes": {"n": ["a", "b"]}, "vectors": {}, "matrices": {}}, None, legacy=True)
    dafref.write_sparse_vector(dafref.DirStore(tree), "vectors/n/flags", "Bool", [True, False], None, legacy=True)
    with zipfile.ZipFile(path, "w") as new:
        for name, content in files_of(tree).items():
            new.writestr(name, content)
        new.writestr("vectors/n/ä.json".encode("cp437").decode("cp437"), b"{}")
    codes = {c for c, _ in problems(path, "--strict")}
    assert "old-bool" in codes and "entry-name" not in codes, codes
    with open(path, "rb") as f:
        data = bytearray(f.read())
    name, flags = "vectors/n/ä.json".encode(), []
    for start, width in ((b"PK\3\4", 30), (b"PK\1\2", 46)):
        at = data.index(name, data.index(start)) if width == 30 else data.rindex(name)
        flags.append(at - width + (6 if width == 30 else 8))
    for at in flags:
        data[at + 1] &= ~0x08
    write(path, bytes(data))
    assert ("entry-name", name.decode()) in problems(path, "--strict"), problems(path, "--strict")
    strings = os.path.join(base, "strings.daf.zip")
    daf("copy", os.path.join(base, "good.daf"), strings)
    assert ("packed-string", "vectors/bin/packed_text.json") in problems(strings, "--strict"), problems(strings, "--strict")
    same([c for c, _ in problems(strings)], [], "style is told only when asked for")


def refuses(base):
    for part, command in (("not a daf", ["verify", base + "/none.daf"]), ("no such file", ["verify", base + "/none.daf.zip"]),
                          ("missing", ["verify"]), ("too many", ["verify", "a", "b"]), ("unrecognized", ["verify", "--fix", "a"]),
                          ("not a directory", ["verify", __file__])):
        message = daf(*command, code=2).decode()
        assert part in message and message.startswith("daf"), message
    report = json.loads(daf("verify", "--json", base + "/none.daf", code=2, errors=False))
    assert report["good"] is False and "not a daf" in report["error"], report


def codes_are_listed():
    listed = dict(line.split(None, 1) for line in daf("verify", "--codes").decode().splitlines())
    with open(os.path.join(os.environ["PHOTOND_SOURCE"], "docs", "man", "daf.1"), encoding="utf-8") as f:
        page = f.read()
    for code in listed:
        assert re.search(r"^\.It Li %s\b" % re.escape(code), page, flags=re.M), "%s is not in the page" % code
    same(set(listed) - SEEN, set(), "codes that no test provokes")


def main():
    with folder() as base:
        verifies_fixtures()
        finds_each(base)
        finds_in_archives(base)
        refuses(base)
        codes_are_listed()
    print("verify finds what is wrong, and says so")


main()
