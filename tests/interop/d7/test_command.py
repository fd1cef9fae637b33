"""The d7 command from outside: formats, ranges, exit codes, help, files that are being written, output that fails."""
import array
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

import d7ref
from d7run import D7, d7, info
from d7script import PROGRAM, Script, hexed

SOURCE = os.environ["PHOTOND_SOURCE"]
FIXTURES = os.path.join(SOURCE, "tests", "fixtures", "d7")


def fixture(name):
    return os.path.join(FIXTURES, name + ".photons")


def help_and_usage():
    assert b"info" in d7("--help") and b"verify" in d7("--help")
    assert d7("--version").startswith(b"d7 ")
    for command in ("info", "cat", "verify"):
        text = d7(command, "--help").decode()
        assert text.startswith("usage: d7 " + command) and "Examples:" in text and "Exit status:" in text
    for arguments in ([], ["nothing"], ["info"], ["cat", "x"], ["verify"], ["info", "a", "b"], ["info", "--what", "a"],
                      ["cat", fixture("minimal"), "/photons/x", "--from", "-1"],
                      ["cat", fixture("minimal"), "/photons/x", "--from", "1x"],
                      ["cat", fixture("minimal"), "/photons/x", "--count", ""],
                      ["cat", fixture("minimal"), "/photons/x", "--format", "xml"],
                      ["cat", fixture("minimal"), "/photons/z"],
                      ["cat", fixture("minimal"), "/photons/x", "--from", "6"]):
        assert d7(*arguments, code=2) == b"" and d7.err, arguments


def unreadable_files():
    for command in (["info"], ["verify"], ["info", "--json"]):
        assert d7(*command, "/nonexistent/run.photons", code=2) == b""
        assert "/nonexistent/run.photons" in d7.err and "No such file" in d7.err
        assert d7(*command, "/", code=2) == b"" and "directory" in d7.err
        assert d7(*command, __file__, code=2) == b"" and "no D7 file" in d7.err
        assert d7(*command, "/dev/null", code=2) == b""


def manual_names_all():
    with open(os.path.join(SOURCE, "docs", "man", "d7.1")) as f:
        manual = f.read()
    with open(os.path.join(SOURCE, "libd7", "include", "d7", "d7.h")) as f:
        header = f.read()
    codes = header.split("#define D7_PROBLEM_MAP(X)")[1].split("typedef enum d7_problem_code")[0]
    names = [line.split("X(")[1].split(",")[0] for line in codes.splitlines() if "X(" in line]
    assert len(names) > 10
    for name in names:
        assert ".It Li %s\n" % name in manual, name + " is not in the manual"
    for command in ("info", "cat", "verify"):
        for word in d7(command, "--help").decode().split():
            option = word.strip("[],|()")
            if option.startswith("--") and option != "--help":
                assert "Fl -" + option[2:] in manual, option + " is not in the manual"


def formats():
    path = fixture("all_types")
    with open(path, "rb") as f:
        f = d7ref.File(f.read())
    for (name, t), values in zip(f.datasets, f.values):
        raw = array.array(d7ref.ARRAY_CODE[t], values).tobytes()
        size = d7ref.ITEM[t]
        assert d7("cat", path, name, "--format", "raw") == raw
        lines = d7("cat", path, name).decode().split("\n")
        assert lines.pop() == "" and len(lines) == len(values)
        parse = float if t > 7 else int
        back = array.array(d7ref.ARRAY_CODE[t], [parse(v) for v in lines])
        assert back.tobytes() == raw, name
        csv = d7("cat", path, name, "--format", "csv").decode().split("\n")
        assert csv[0] == '"%s"' % name and csv[1:-1] == lines
        npy = d7("cat", path, name, "--format", "npy")
        head = struct.unpack_from("<H", npy, 8)[0]
        described = eval(npy[10:10 + head].decode())  # a literal, by NumPy's definition
        kind = "f" if t > 7 else "i" if t < 4 else "u"
        assert npy[:8] == b"\x93NUMPY\x01\x00" and (10 + head) % 64 == 0
        assert described == {"descr": ("|" if size == 1 else "<") + "%s%d" % (kind, size), "fortran_order": False,
                             "shape": (len(values),)}, described
        assert npy[10 + head:] == raw
        for start, count in ((0, 0), (0, 1), (5, 3), (len(values) - 2, 9), (len(values), 1), (4000, 5000)):
            got = d7("cat", path, name, "--format", "raw", "--from", str(start), "--count", str(count))
            assert got == raw[start * size:(start + count) * size], (name, start, count)


def json_is_complete(folder):
    path = os.path.join(folder, "f.photons")
    s = Script([("/a \"quoted\"\\", 5), ("/ü", 8)], index_step=7, bytes_per_page=1000, early={"first": "1"})
    s.set("line\nbreak", "tab\t\x01 \"and\" \\ µ")
    s.set("first", "2")
    s.append(0, list(range(700)))
    s.run(path)
    got = info(path)
    assert set(got) == {"file", "certificate", "bytes", "state", "held", "unframed", "version", "index_step", "bytes_per_page", "attributes",
                        "datasets", "problems", "notes", "pages_checked"}
    assert got["state"] == "closed" and got["held"] is False and got["version"] == [1, 0, 1]
    assert got["index_step"] == 7 and got["bytes_per_page"] == 1000 and got["bytes"] == os.path.getsize(path)
    assert list(got["attributes"].items()) == [("first", "2"), ("line\nbreak", "tab\t\x01 \"and\" \\ µ")]
    assert got["datasets"] == [
        {"name": "/a \"quoted\"\\", "type": "uint16", "items": 700, "paged_items": 700, "pages": 2, "shape": [0]},
        {"name": "/ü", "type": "float", "items": 0, "paged_items": 0, "pages": 0, "shape": [0]}]
    assert got["problems"] == [] and got["notes"] == [] and got["pages_checked"] is True
    text = d7("info", path).decode()
    assert "line\\nbreak = tab\\x09\\x01" in text and "700" in text
    verified = json.loads(d7("verify", path, "--json"))
    assert verified["damages"] == 0 and verified["pages"] == 2 and verified["good"] is True
    assert [(p["code"], p["severity"], p["offset"]) for p in verified["problems"]] == [("NARROW_READERS", "style", None)]
    verified = json.loads(d7("verify", fixture("bad_varints"), "--json", code=1))
    assert [p["code"] for p in verified["problems"]] == ["BAD_PAGE"]
    assert verified["problems"][0]["dataset"] == "/photons/x" and verified["problems"][0]["items"] == 8192


def classes_and_exit_codes(folder):
    """Style and data are problems with --strict only; damage always is."""
    path = os.path.join(folder, "f.photons")
    s = Script([("/photons/x", 5), ("/photons/y", 5), ("/photons/ms", 7)], early={"/photons/PositionBits": "12"})
    s.append(0, [4095, 4096, 5000, 1])
    s.append(1, [1, 2, 3])
    s.append(2, [0, 3, 2, 9])
    s.run(path)
    text = d7("verify", path).decode().splitlines()
    assert d7("verify", path, "--strict", code=1).decode().splitlines() == text
    assert [line.split(": ")[1:3] for line in text[:-1]] == [
        ["data", "VALUE_RANGE at byte %d, dataset /photons/x, items 1 to 2" % offset_of(path, 0)],
        ["data", "MS_ORDER at byte %d, dataset /photons/ms, items 2 to 2" % offset_of(path, 2)],
        ["data", "RAGGED, dataset /photons/y, items 3 to 3"], ["data", "MS_RANGE, dataset /photons/ms, items 3 to 3"]], text
    assert text[-1].startswith(path + ": no damage, but see the notes: closed") and "data notes: 4" in text[-1]
    got = json.loads(d7("verify", path, "--json"))
    assert got["good"] is True and got["data_notes"] == 4 and got["style_notes"] == got["damages"] == 0
    assert json.loads(d7("verify", path, "--json", "--strict", code=1))["good"] is False
    assert [p["severity"] for p in got["problems"]] == ["data"] * 4
    assert set(got) == {"file", "problems", "state", "held", "bytes", "entries", "pages", "checked_entries", "certified", "signed", "damages",
                        "data_notes", "style_notes", "good"} and got["checked_entries"] is None
    got = json.loads(d7("verify", fixture("other_writer"), "--json", "--strict", code=1))
    assert got["style_notes"] == 3 and {p["severity"] for p in got["problems"]} == {"style", "data"}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def sums_in(path):
    """{offset: (length, checksum)}, read as docs/d7-checksums.md says."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"d7 sums\n" and struct.unpack_from("<II", data, 8) == (1, crc32c(data[:12]))
    at, sums = 16, {}
    while at < len(data):
        n, crc, zero, own = struct.unpack_from("<IIII", data, at)
        records = data[at + 16:at + 16 + 16 * n]
        assert own == crc32c(data[at:at + 12]) and crc == crc32c(records) and zero == 0 and len(records) == 16 * n
        sums.update((o, (length, c)) for o, length, c in struct.iter_unpack("<QII", records))
        at += 16 + 16 * n
    return sums


def checksums(folder):
    """Those that the writer keeps and those that are made later are the same, and what the document says."""
    path = os.path.join(folder, "c.photons")
    s = Script([("/x", 5), ("/b", 4)], index_step=1, early={"k": "v"})
    s.append(0, [(i * 7919) % 4096 for i in range(20000)])
    s.append(1, [i % 251 for i in range(100)])
    data = s.run(path, checksums=True)
    kept = sums_in(path + ".crc")
    assert kept == {at: (len(e), crc32c(e)) for at, e in d7ref.entries(data)}
    got = json.loads(d7("verify", path, "--json", "--strict"))
    assert got["checked_entries"] == got["entries"] == len(kept)
    os.unlink(path + ".crc")
    assert b"checksums" not in d7("verify", path)
    d7("verify", path, "--write-checksums")
    assert sums_in(path + ".crc") == kept and sorted(os.listdir(folder)).count("c.photons.crc") == 1
    assert b"checksums that agree: %d" % len(kept) in d7("verify", path)
    at = data.index(bytes(range(100)))  # a value of /b: it decodes as well as before
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(b"\x07")
    text = d7("verify", path, "--write-checksums", code=1)
    assert b"damage: CHECKSUM at byte" in text and b"dataset /b, items 0 to 99" in text and "no checksums are written" in d7.err
    assert sums_in(path + ".crc") == kept
    d7("verify", fixture("zeroed_block"), "--write-checksums", code=1)
    assert not os.path.exists(fixture("zeroed_block") + ".crc")


def offset_of(path, dataset):
    """The first page of a dataset."""
    with open(path, "rb") as f:
        return next(at for at, d, _ in d7ref.File(f.read()).pages if d == dataset)


def bad_text_stays_json(folder):
    """Attributes that are no UTF-8, or hold NULs, as other programs may write them."""
    path = os.path.join(folder, "f.photons")
    w = d7ref.Writer([("/a", 5)])
    entry = d7ref.ld(3, d7ref.ld(2, d7ref.ld(1, b"k\xff") + d7ref.ld(2, b"v\x00w\xc3")))
    w.f.append(entry)
    with open(path, "wb") as f:
        f.write(w.unfinished())
    got = info(path, code=1)
    assert got["attributes"] == {"k\ufffd": "v\x00w\ufffd"}
    assert got["problems"][0]["code"] == "BAD_ATTRIBUTE"


def uneven_pages(folder):
    """Another writer's pages: 20 items where 32 are a full page's, in the middle, so that only reading finds out."""
    path = os.path.join(folder, "f.photons")
    w = d7ref.Writer([("/a", 5)], bytes_per_page=64)
    values = list(range(1000, 1000 + 32 * 3 + 20 + 7))
    for at, n in ((0, 32), (32, 32), (64, 20), (84, 32), (116, 7)):
        w._page(0, values[at:at + n])
    with open(path, "wb") as f:
        f.write(w.close())
    want = array.array("H", values).tobytes()
    assert d7("cat", path, "/a", "--format", "raw") == want and "PAGE_LENGTH" in d7.err
    npy = d7("cat", path, "/a", "--format", "npy")
    assert npy.endswith(want) and b"(123,)" in npy[:128]
    assert info(path)["datasets"][0]["items"] == 123
    assert b"PAGE_LENGTH" in d7("verify", path)
    d7("cat", path, "/a", "--from", "40", code=1)  # places before the odd page were not looked at


class Recorder:
    """A writer that holds its file until told otherwise."""

    def __init__(self, path, values):
        with open(path + ".values", "wb") as f:
            array.array("H", values).tofile(f)
        self.path = path
        self.p = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE)
        self.say("values %s.values" % path, "dataset uint16 /x", "step 2", "create " + path,
                 "set %s %s" % (hexed("k"), hexed("v")), "append 0 %d" % len(values), "flush")
        for _ in range(500):  # until the last flush is there
            if os.path.exists(path) and os.path.getsize(path) > len(values):
                break
            time.sleep(0.02)

    def say(self, *lines):
        self.p.stdin.write(("\n".join(lines) + "\n").encode())
        self.p.stdin.flush()

    def end(self, *lines):
        if lines:
            self.say(*lines)
        self.p.stdin.close()
        assert self.p.wait() == 0


def held_files(folder):
    path = os.path.join(folder, "held.photons")
    values = [(i * 7919) % 4096 for i in range(8192 * 9)]
    r = Recorder(path, values)
    got = info(path)
    assert (got["state"], got["held"], got["problems"]) == ("open", True, []), got
    assert got["datasets"][0]["items"] == len(values) and got["attributes"] == {"k": "v"}
    size = os.path.getsize(path)
    with open(path, "r+b") as f:  # as if the reader had come in the middle of a write
        f.truncate(size - 100)
    got = info(path)
    assert got["held"] and got["problems"] == [] and [n["code"] for n in got["notes"]] == ["BEING_WRITTEN"], got
    assert b"notice: BEING_WRITTEN" in d7("verify", path, "--strict")
    data = d7("cat", path, "/x", "--format", "raw")
    assert data == array.array("H", values[:8192 * 8]).tobytes()

    r.p.send_signal(signal.SIGKILL)
    r.p.wait()
    got = info(path, code=1)
    assert not got["held"] and [n["code"] for n in got["problems"]] == ["TORN_TAIL"], got
    assert d7("cat", path, "/x", "--format", "raw", code=1) == data
    d7("verify", path, code=1)

    os.unlink(path)
    r = Recorder(path, values)
    r.end("close")
    got = info(path)
    assert (got["state"], got["held"], got["problems"]) == ("closed", False, []), got
    d7("verify", path)


def output_that_fails(folder):
    path = os.path.join(folder, "f.photons")
    s = Script([("/x", 5)])
    s.append(0, [i & 4095 for i in range(300000)])
    s.run(path)
    for command in (["cat", path, "/x"], ["cat", path, "/x", "--format", "raw"], ["info", path, "--json"], ["verify", path],
                    ["--help"], ["cat", "--help"]):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([D7, *command], stdout=full, stderr=subprocess.PIPE)
        assert p.returncode == 2 and b"No space left" in p.stderr, (command, p)
    p = subprocess.Popen([D7, "cat", path, "/x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"0\n"
    p.stdout.close()  # as `head -1` does
    assert p.wait() in (2, -signal.SIGPIPE)
    assert p.stderr.read() == b""


def numbers_read_back(folder):
    path = os.path.join(folder, "f.photons")
    numbers = [0.1, 1 / 3, 1e300, 5e-324, -0.0, math.inf, -math.inf, math.nan, 123456789.125]
    s = Script([("/d", 9), ("/f", 8), ("/i", 3)])
    s.append(0, numbers)
    s.append(1, [0.1, 1 / 3, 3.4e38, 1e-45])
    s.append(2, [-2 ** 63, 2 ** 63 - 1, 0])
    s.run(path)
    back = [float(v) for v in d7("cat", path, "/d").split()]
    assert [struct.pack("<d", v) for v in back] == [struct.pack("<d", v) for v in numbers]
    assert d7("cat", path, "/i").split() == [b"-9223372036854775808", b"9223372036854775807", b"0"]
    back = [float(v) for v in d7("cat", path, "/f").split()]
    assert array.array("f", back) == array.array("f", [0.1, 1 / 3, 3.4e38, 1e-45])


def main():
    help_and_usage()
    unreadable_files()
    manual_names_all()
    formats()
    with tempfile.TemporaryDirectory() as folder:
        json_is_complete(folder)
        classes_and_exit_codes(folder)
        checksums(folder)
        bad_text_stays_json(folder)
        uneven_pages(folder)
        held_files(folder)
        output_that_fails(folder)
        numbers_read_back(folder)


if __name__ == "__main__":
    sys.exit(main())
