#!/usr/bin/env python3
"""What docs/daf-format.md lists is so: the repository that it spells out file by file is a good one, reads as it says, and has the
metadata.json that we would write; the bytes of the shard and of the archive are those that we write."""
import os
import re

from support import daf, files_of, folder

PAGE = os.path.join(os.environ["PHOTOND_SOURCE"], "docs", "daf-format.md")
TOKEN = r'(?:[0-9A-F]{2}|"[^"]*"|\'[^\']*\')'
LINE = re.compile(r"    ([0-9A-F]{4})  (%s(?: %s)*)(?:  |$)" % (TOKEN, TOKEN))
FILE = re.compile(r"    ([a-z][\w./]*) +(.*)")


def section(page, title):
    return page.split("\n%s\n" % title)[1].split("\n## ")[0].split("\n### ")[0]


def bytes_of(tokens):
    return b"".join(t[1:-1].encode() if t[0] in "\"'" else b"\n" if t == "LF" else bytes.fromhex(t) for t in tokens)


def listed_bytes(text):
    """[(offset, bytes)] of a listing."""
    found = (LINE.match(line) for line in text.splitlines())
    return [(int(m[1], 16), bytes_of(re.findall(TOKEN, m[2]))) for m in found if m]


def compare(name, data, listed):
    """How many bytes the listing covers."""
    assert listed, name
    for offset, want in listed:
        got = data[offset:offset + len(want)]
        assert got == want, "%s at %#x: %s, not %s" % (name, offset, got.hex(" "), want.hex(" "))
    return sum(len(want) for _, want in listed)


def listed_files(text):
    """{path: bytes} of the repository; a line that names no file goes on with the one before."""
    contents = {}
    for line in text.splitlines():
        m = FILE.match(line)
        if m:
            contents[m[1]] = m[2]
            last = m[1]
        elif line.startswith(" " * 35):
            contents[last] += line.strip()
        elif contents:
            break
    found = {}
    for path, content in contents.items():
        if content[0] == "{":
            json, end, _ = content.partition("} LF")
            found[path] = (json + "}\n" if end else content).encode()
        else:
            found[path] = bytes_of(re.findall(r'[0-9A-F]{2}|"[^"]*"|LF', content))
    return found


def check_repository(text, work):
    path = os.path.join(work, "page.daf")
    files = listed_files(text)
    axes = [f[len("axes/"):-len(".txt")] for f in files if f.startswith("axes/")]
    for made in ["scalars", "axes"] + ["vectors/" + a for a in axes] + ["matrices/%s/%s" % (a, b) for a in axes for b in axes]:
        os.makedirs(os.path.join(path, made))
    for name, content in files.items():
        with open(os.path.join(path, name), "wb") as f:
            f.write(content)
    daf("verify", path, "--strict")
    read = re.findall(r"^    ((?:vector|matrix) [\w ]*\w)  +(.*)$", text, flags=re.M)
    assert len(read) == 4, read
    for name, values in read:
        got = daf("get", path, *name.split()).decode().split("\n")[:-1]
        want = values.split(" / ") if name.startswith("matrix") else values.split()
        assert [line.split() for line in got] == [line.split() for line in want], (name, got)
    os.remove(os.path.join(path, "metadata.json"))
    daf("describe", path)  # makes the index anew
    assert files_of(path) == files


def check_shard(text, work):
    path = os.path.join(work, "shard.daf")
    daf("set", path, "axis", "i", "--create", data=b"".join(b"%d\n" % i for i in range(1500)))
    daf("set", path, "vector", "i", "v", "--type", "UInt8", "--packed", "--chunk-kb", "1", "--codec", "blosc_lz4_bitshuffle",
        data=b"7\n" * 1500)
    data = files_of(path)["vectors/i/v.zip"]
    assert compare("the shard", data, listed_bytes(text)) == len(data)


def check_archive(text, work):
    path = os.path.join(work, "page.daf.zip")
    daf("set", path, "scalar", "bins", "--type", "UInt16", "--value", "3", "--create")
    with open(path, "rb") as f:
        data = f.read()
    directory = data.index(b"PK\1\2")
    assert compare("the archive", data, listed_bytes(text)) > directory


def main():
    with open(PAGE) as f:
        page = f.read()
    with folder() as work:
        check_repository(section(page, "## A whole repository, file by file"), work)
        check_shard(section(page, "### A shard, byte by byte"), work)
        check_archive(section(page, "## Archives"), work)


if __name__ == "__main__":
    main()
