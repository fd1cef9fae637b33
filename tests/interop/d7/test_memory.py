"""No command of d7 needs more than 256 MB and 16 bytes a page, whatever the size of the file: here of a recording whose values are
more than that, whole, cut and damaged. With PHOTOND_TEST_LONG in the environment also of two and four million pages."""
import json
import os
import re
import struct
import sys
import tempfile
import time

import d7ref
import ptumake
from d7run import D7

TESTS = os.path.join(os.path.dirname(os.environ["PHOTOND_BIN"]), "tests")
BOUND, PAGE_BYTES = 256e6, 16
ROWS, RECORDS = 20000000, 30000000
MANY_PAGES = (2000000, 4000000)


def run(*arguments, code=0, keep=None):
    """Runs d7; returns the bytes it had at most. Standard output goes to `keep`, or nowhere."""
    out = os.open(keep or "/dev/null", os.O_WRONLY | os.O_CREAT, 0o644)
    pid = os.posix_spawn(D7, [D7, *arguments], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
    os.close(out)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == code, (arguments, status)
    return usage.ru_maxrss * 1024


def is_instrumented():
    with open(D7, "rb") as f:
        return re.search(b"__[at]san_init", f.read()) is not None


def remove(folder, *but):
    for name in os.listdir(folder):
        if name not in but:
            os.unlink(os.path.join(folder, name))


def check(folder, bound, commands, *files):
    """Each of the commands, and that it did something."""
    for arguments in commands:
        code, arguments = (arguments[0], arguments[1:]) if isinstance(arguments[0], int) else (0, arguments)
        begun = time.monotonic()
        used = run(*arguments, code=code)
        print("%6.1f MB %5.1f s  %s" % (used / 1e6, time.monotonic() - begun, " ".join(a.replace(folder + "/", "") for a in arguments)), flush=True)
        assert used < bound, (arguments, used, bound)
        remove(folder, *files)


def make(folder, *arguments):
    """A recording of so many rows (and bytes a page); what `d7 info` says of its datasets."""
    path, said = os.path.join(folder, "in.photons"), os.path.join(folder, "info.json")
    maker = os.path.join(TESTS, "d7_big_file")
    assert os.spawnv(os.P_WAIT, maker, [maker, path, *arguments]) == 0
    run("info", path, "--json", keep=said)
    with open(said) as f:
        return json.load(f)["datasets"]


def recordings(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out")
    datasets = make(folder, str(ROWS))
    sizes = {"uint16": 2, "uint64": 8}
    assert sum(d["items"] * sizes[d["type"]] for d in datasets) > 1.2 * BOUND, "a command that holds all has to be noticed"
    bound = BOUND + PAGE_BYTES * sum(d["pages"] for d in datasets)
    commands = [["info", path, "--full"], ["verify", path], ["verify", path, "--write-checksums"],
                ["cat", path, "/photons/aat", "--format", "npy"], ["cat", path, "/photons/x", "--count", "4000000"],
                ["copy", path, out], ["copy", path, out, "--from", "5"], ["split", path, "-o", out, "--size", "150MB"],
                ["merge", out, path], ["repair", path], ["follow", path, "--wait", "1ms"],
                ["follow", path, "/photons/x", "/photons/y", "--from", str(ROWS - 300000), "--wait", "1ms"],
                ["image", path, "-o", out + ".png"], ["image", path, "-o", out + ".npy", "--pixels", "2048"],
                ["decay", path, "-o", out + ".png"], ["rate", path, "-o", out + ".png"],
                ["rate", path, "-o", out + ".csv", "--bin", "10s"], ["export", path, "-o", out + ".npz"],
                ["export", path, "-o", out + ".csv", "--dataset", "/photons/aat"]]
    if b"libhdf5" in content(D7):
        commands.append(["export", path, "-o", out + ".h5"])
    check(folder, bound, commands, "in.photons")
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) * 9 // 10)
        for place in range(1, 9):  # and some damage on the way
            f.seek(os.path.getsize(path) * place // 10)
            f.write(b"\xff" * 100)
    check(folder, bound, [[1, "info", path], [1, "verify", path], ["repair", path, "-o", out], [1, "image", path, "-o", out + ".png"],
                          [1, "export", path, "-o", out + ".csv", "--dataset", "/photons/x"], [1, "copy", path, out],
                          [1, "copy", path, out, "--skip-damaged"]], "in.photons")


def cut(path):
    """Without its index, and damaged in the middle."""
    with open(path, "r+b") as f:
        f.truncate(os.path.getsize(path) * 5 // 10)
        f.seek(os.path.getsize(path) // 2)
        f.write(bytes(100))


def many_pages(folder):
    """Of 16 bytes each, so that what grows with their number shows."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out")
    for pages in MANY_PAGES:
        remove(folder)
        assert sum(d["pages"] for d in make(folder, str(pages), "16")) == pages
        commands = [["info", path], ["info", path, "--full"], ["verify", path], ["verify", path, "--write-checksums"],
                    ["cat", path, "/photons/aat", "--format", "npy"], ["copy", path, out], ["copy", path, out, "--from", "5"],
                    ["split", path, "-o", out, "--size", "60MB"], ["merge", out, path], ["repair", path],
                    ["follow", path, "--wait", "1ms"], ["image", path, "-o", out + ".png"], ["decay", path, "-o", out + ".png"],
                    ["rate", path, "-o", out + ".png"], ["export", path, "-o", out + ".npz"], ["export", path, "-o", out + ".csv"]]
        if b"libhdf5" in content(D7):
            commands.append(["export", path, "-o", out + ".h5"])
        check(folder, BOUND + PAGE_BYTES * pages, commands, "in.photons")
        cut(path)
        check(folder, BOUND + PAGE_BYTES * pages // 2,
              [[1, "info", path], [1, "info", path, "--full"], [1, "verify", path], ["repair", path, "-o", out],
               [1, "copy", path, out], [1, "copy", path, out, "--skip-damaged"]], "in.photons")


def imports(folder):
    path, out = os.path.join(folder, "in.ptu"), os.path.join(folder, "out.photons")
    record = struct.pack("<I", 1 << 25 | 5)  # a photon of channel 1
    with open(path, "wb") as f:
        f.write(ptumake.header("generic-t2", RECORDS, 1e-12))
        for _ in range(RECORDS // 1000000):
            f.write(record * 1000000)
    check(folder, BOUND, [["import", path, "-o", out]], "in.ptu")


def wide(folder, columns=4096, rows=5):
    """Many columns, of which each costs memory while a library has it open."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out")
    w = d7ref.Writer([("/photons/c%05d" % i, d7ref.TYPES.index("uint16")) for i in range(columns)] +
                     [("/photons/ms", d7ref.TYPES.index("uint64"))], 512, 16384)
    for i in range(columns):
        w.append(i, [i] * rows)
    w.append(columns, [0, rows])
    with open(path, "wb") as f:
        f.write(w.close())
    exports = [".npz", ".csv"] + ([".h5"] if b"libhdf5" in content(D7) else [])
    check(folder, BOUND + PAGE_BYTES * columns,
          [["verify", path], ["copy", path, out, "--from", "1"], ["split", path, "-o", out, "--count", "3"], ["repair", path]] +
          [["export", path, "-o", out + ending] for ending in exports], "in.photons")


def content(path):
    with open(path, "rb") as f:
        return f.read()


def main():
    if is_instrumented():
        print("SKIPPED: the memory of an instrumented program is not its own", file=sys.stderr)
        return 0
    for part in [wide, recordings, imports] + [many_pages] * ("PHOTOND_TEST_LONG" in os.environ):
        with tempfile.TemporaryDirectory() as folder:
            part(folder)
    return 0


sys.exit(main())
