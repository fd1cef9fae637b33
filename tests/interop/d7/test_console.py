"""What the d7 command says: on one line and printable, whatever files and datasets are called; about the file that was asked for;
once, with the right reason, when standard output fails. And with which exit status it ends."""
import errno
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import d7ref
import ptumake
from d7run import D7, d7, info

FIXTURES = os.path.join(os.environ["PHOTOND_SOURCE"], "tests", "fixtures", "d7")
RECORDING = os.path.join(FIXTURES, "lincam_islands.photons")
FULL = os.strerror(errno.ENOSPC)


def content(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def run(*arguments, **options):
    return subprocess.run([D7, *arguments], stderr=subprocess.PIPE, timeout=60, **options)


# ---- names ----

EVIL = b"/photons/a\nb\x1b[31m\x7f\xc2\x9b\xff\xc3"
SHOWN = "/photons/a\\nb\\x1b[31m\\x7f\\xc2\\x9b\\xff\\xc3"
JSON = EVIL.decode("utf-8", "replace")


def evil_file(path, damaged):
    """Three columns, one of a name that is no text; a page of it is damaged."""
    place_holder = "/photons/" + "?" * (len(EVIL) - 9)
    w = d7ref.Writer([("/photons/x", 5), (place_holder, 5), ("/own", 5)])
    for d in range(3):
        w.append(d, list(range(20000)))
    data = bytearray(w.close())
    if damaged:
        at = d7ref.File(bytes(data)).pages
        at = [p[0] for p in at if p[1] == 1][1]
        data[at + 40:at + 52] = b"\xff" * 12
    assert data.count(place_holder.encode()) == 1
    write(path, bytes(data).replace(place_holder.encode(), EVIL).replace(b"/own", b"/o\x1bn"))


def is_printable(text):
    """No control character but the ends of lines, and all of it UTF-8."""
    return all(c == "\n" or c.isprintable() for c in text.decode("utf-8", "strict"))


def names_are_printable(folder):
    path = os.path.join(folder, "in\n\x1b[2J\u009b.photons")
    out = os.path.join(folder, "out\n\x1b.photons")
    for damaged in (True, False):
        evil_file(path, damaged)
        for arguments, shows in ((["info", path], True), (["verify", path], damaged), (["info", path, "--full"], True),
                                 (["cat", path, EVIL], damaged), (["cat", path, "/nothing\n\x1b"], False),
                                 (["copy", path, out], False), (["copy", path, out, "--skip-damaged"], False),
                                 (["copy", path, out, "--from", "2", "--dataset", EVIL], damaged),
                                 (["split", path, "-o", out, "--count", "10k"], damaged), (["merge", out, path], damaged),
                                 (["merge", out, path, RECORDING], False), (["repair", path, "-o", out], damaged),
                                 (["image", path, "-o", out + ".csv"], False), (["export", path, "-o", out + ".csv"], damaged),
                                 (["follow", path, "--wait", "1ms"], False), (["follow", path, "--from", "start", "--wait", "1ms", "/photons/x", "/o\x1bn"], False),
                                 (["import", path, "-o", out], False), (["nothing\n\x1b"], False)):
            p = run(*arguments, stdout=subprocess.PIPE)
            said = p.stderr if arguments[0] in ("cat",) else p.stdout + p.stderr
            assert is_printable(said), (arguments, said)
            said = said.decode()
            shown = SHOWN if arguments[0] != "repair" else SHOWN[:-8] + "\ufffd\ufffd"  # which is what the result holds
            assert not shows or shown in said, (arguments, said)
            assert all("d7" in line or "photons" in line or line.startswith((" ", "usage", "Looks", "Exit")) or not line
                       for line in p.stderr.decode().split("\n")), (arguments, p.stderr)
            for name in os.listdir(folder):
                if os.path.join(folder, name) != path:
                    os.unlink(os.path.join(folder, name))
        got = info(path, code=1)  # a name that is no UTF-8 is damage
        assert [d["name"] for d in got["datasets"]] == ["/photons/x", JSON, "/o\x1bn"]
        verified = json.loads(d7("verify", path, "--json", code=1))
        assert verified["file"] == path
        assert not damaged or JSON in [p["dataset"] for p in verified["problems"]]
        said = json.loads(d7("repair", path, "-o", out, "--json"))
        assert said["written"] == out and JSON in [d["name"] for d in said["datasets"]], said
        os.unlink(out)


# ---- standard output ----

WRITERS = {
    "info": ["info", "IN"], "info --json": ["info", "IN", "--json"], "cat": ["cat", "IN", "/photons/x"],
    "cat npy": ["cat", "IN", "/photons/x", "--format", "npy"], "verify": ["verify", "IN"],
    "verify --json": ["verify", "IN", "--json"], "repair": ["repair", "IN"], "follow": ["follow", "IN", "--wait", "1ms"],
    "follow items": ["follow", "IN", "/photons/x", "--from", "start", "--wait", "1ms"], "copy --json": ["copy", "IN", "OUT", "--json"],
    "split": ["split", "IN", "-o", "OUT", "--count", "3k"], "split --json": ["split", "IN", "-o", "OUT", "--count", "3k", "--json"],
    "merge --json": ["merge", "OUT", "IN", "--json"], "image": ["image", "IN", "-o", "-"],
    "image npy": ["image", "IN", "-o", "-", "--format", "npy"], "image png": ["image", "IN", "-o", "-", "--format", "png"],
    "decay": ["decay", "IN", "-o", "-"], "rate": ["rate", "IN", "-o", "-"], "export": ["export", "IN", "-o", "-"],
    "import": ["import", "PTU", "-o", "OUT"], "help": ["--help"], "help of one": ["rate", "--help"], "version": ["--version"],
}


def writers(folder):
    places = {"IN": RECORDING, "OUT": os.path.join(folder, "out.photons"), "PTU": os.path.join(folder, "t.ptu")}
    write(places["PTU"], ptumake.make("generic-t2", [("photon", 1, 1)] * 99, 1e-12))
    for name, arguments in WRITERS.items():
        yield name, [places.get(a, a) for a in arguments]
        for left in os.listdir(folder):
            if left != "t.ptu":
                os.unlink(os.path.join(folder, left))


def full_outputs_are_told_once(folder):
    for name, arguments in writers(folder):
        with open("/dev/full", "wb") as full:
            p = run(*arguments, stdout=full)
        lines = p.stderr.decode().splitlines()
        told = [line for line in lines if "standard output" in line or "written" in line or "writing" in line]
        assert p.returncode == 2 and told == ["d7: standard output could not be written whole: " + FULL], (name, p)
        assert not [f for f in os.listdir(folder) if f.startswith(".")], os.listdir(folder)


def closed_outputs_are_told_once(folder):
    """No file gets the number of a stream that is closed, and with it what is printed."""
    for name, arguments in writers(folder):
        p = run(*arguments, preexec_fn=lambda: os.close(1))
        assert p.returncode == 2 and p.stderr.count(b"standard output could not be written whole") == 1, (name, p)
        for left in os.listdir(folder):
            if left.endswith(".photons"):
                clean(os.path.join(folder, left))
        subprocess.run([D7, *arguments, "--overwrite"][:len(arguments) + (name.split()[0] in ("split", "merge", "copy"))],
                       stdout=subprocess.DEVNULL, preexec_fn=lambda: [os.close(fd) for fd in (0, 2)], timeout=60)
        for left in os.listdir(folder):
            if left.endswith(".photons"):
                clean(os.path.join(folder, left))


def closed_pipes_end_the_command(folder):
    """Also where the one that started it ignores SIGPIPE; not a word, since nobody misses what follows."""
    for name, arguments in writers(folder):
        back, front = os.pipe()
        os.close(back)
        p = run(*arguments, stdout=front, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
        os.close(front)
        assert p.returncode == 2 and b"standard output" not in p.stderr, (name, p)


def clean(path):
    assert json.loads(d7("verify", path, "--json"))["damages"] == 0


# ---- results ----

def results_are_named(folder):
    """Messages name the file that was asked for, never the hidden one that it is made as."""
    source = os.path.join(folder, "in.photons")
    shutil.copy(RECORDING, source)
    damaged = os.path.join(folder, "damaged.photons")
    shutil.copy(os.path.join(FIXTURES, "cut_4.photons"), damaged)
    makers = {"copy": ["copy", source, "OUT"], "part": ["copy", source, "OUT", "--to", "9"], "merge": ["merge", "OUT", source],
              "split": ["split", source, "-o", "OUT", "--count", "20k"], "repair": ["repair", damaged, "-o", "OUT"],
              "npz": ["export", source, "-o", "OUT", "--format", "npz"], "csv": ["export", source, "-o", "OUT", "--format", "csv"],
              "image": ["image", source, "-o", "OUT", "--format", "csv"], "png": ["image", source, "-o", "OUT", "--format", "png"],
              "rate": ["rate", source, "-o", "OUT", "--format", "npy"], "decay": ["decay", source, "-o", "OUT", "--format", "csv"]}
    before = sorted(os.listdir(folder))
    limit = "import resource,os,sys;resource.setrlimit(resource.RLIMIT_FSIZE,(%d,%d));os.execv(sys.argv[1],sys.argv[1:])"
    for name, arguments in makers.items():
        for out in (os.path.join(folder, "nowhere", "out.file"), "/dev/full", os.path.join(folder, "out.file")):
            words = [out if a == "OUT" else a for a in arguments]
            p = subprocess.run(["python3", "-c", limit % (10, 10), D7, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            assert p.returncode == 2 and out.encode() in p.stderr and b".new" not in p.stderr, (name, out, p)
            assert sorted(os.listdir(folder)) == before, os.listdir(folder)
        assert os.path.exists("/dev/full") and not os.path.isfile("/dev/full")
        p = run(*[os.path.join(folder, "n" * 250) if a == "OUT" else a for a in arguments], stdout=subprocess.DEVNULL)
        if name != "split":  # whose later parts have longer names
            assert p.returncode in (0, 1), (name, p)
        for left in set(os.listdir(folder)) - set(before):
            os.unlink(os.path.join(folder, left))
    said = json.loads(run("repair", damaged, "-o", os.path.join(folder, "nowhere", "out"), "--json", stdout=subprocess.PIPE).stdout)
    assert said["result"] == "failed" and os.path.join(folder, "nowhere", "out") in said["reason"] and ".new" not in said["reason"], said


def big_damaged_file(path):
    w = d7ref.Writer([("/photons/x", 5), ("/photons/y", 5)])
    for _ in range(40):
        w.append(0, [1] * 8192)
        w.append(1, [2] * 8192)
    write(path, w.unfinished() + b"torn")


def stopped_repairs_leave_nothing(folder):
    path = os.path.join(folder, "in.photons")
    big_damaged_file(path)
    before = content(path)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for delay in (0.0, 0.002, 0.005, 0.01, 0.02):
            p = subprocess.Popen([D7, "repair", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            deadline = time.monotonic() + 10
            while not [f for f in os.listdir(folder) if f.startswith(".")] and p.poll() is None and time.monotonic() < deadline:
                pass
            time.sleep(delay)
            p.send_signal(number)
            said = p.communicate(timeout=60)[1]
            left = sorted(os.listdir(folder))
            assert (p.returncode, left) in ((2, ["in.photons"]), (0, ["in.photons", "in.repaired.photons"])), (p.returncode, left)
            assert p.returncode == 0 or b"stopped" in said, said
            assert content(path) == before
            if p.returncode == 0:
                os.unlink(os.path.join(folder, "in.repaired.photons"))


# ---- exit status ----

def unreadable_files_are_no_damage(folder):
    """2: there is nothing to judge; of every command, repair among them."""
    data = content(RECORDING)
    many = d7ref.Framer()
    many.append(d7ref.header_entry([("/d%d" % i, 5) for i in range(65537)]))
    cases = {"empty": b"", "header": data[:10], "not": b"nothing of this kind" * 99, "many": bytes(many.out)}
    for name, bad in cases.items():
        path, out = os.path.join(folder, name + ".photons"), os.path.join(folder, "out")
        write(path, bad)
        for arguments in (["info"], ["verify"], ["repair"], ["repair", "--in-place"], ["repair", "--json"], ["follow"],
                          ["copy", "OUT"], ["split", "-o", out, "--count", "5"], ["merge", "OUT"], ["image", "-o", out + ".csv"],
                          ["export", "-o", out + ".npz"], ["cat", "/photons/x"]):
            words = [arguments[0], path, *arguments[1:]]
            words = [out if a == "OUT" else a for a in words]
            if arguments[0] == "merge":
                words = ["merge", out, path]
            p = run(*words, stdout=subprocess.PIPE)
            assert p.returncode == 2 and path.encode() in p.stderr, (words, p)
            assert content(path) == bad and sorted(os.listdir(folder)) == [name + ".photons"], (words, os.listdir(folder))
        os.unlink(path)


def files_without_datasets(folder):
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out")
    w = d7ref.Writer([])
    w.attribute("k", "v")
    write(path, w.close())
    d7("copy", path, out)
    assert content(out) == content(path)
    os.unlink(out)
    assert b"fine" in d7("repair", path, "-o", out)
    for arguments in (["split", path, "-o", out, "--count", "5"], ["merge", out, path], ["image", path, "-o", out + ".csv"]):
        d7(*arguments, code=2)
        assert path in d7.err, d7.err
    d7("export", path, "-o", out + ".npz")
    os.unlink(out + ".npz")
    write(path, w.unfinished()[:-9])
    d7("copy", path, out, code=2)
    assert "no datasets" in d7.err
    d7("repair", path, "--in-place")
    d7("copy", path, out)
    assert content(out) == content(path) and info(out)["state"] == "closed"


def reading_commands_know_unframed(folder):
    """The same explicit flag for all of them."""
    path, out = os.path.join(FIXTURES, "unframed.photons"), os.path.join(folder, "out.npz")
    for command in ("info", "cat", "follow", "copy", "split", "merge", "image", "decay", "rate", "export"):
        assert b"--unframed" in d7(command, "--help"), command
    d7("export", path, "-o", out, code=2)
    assert "begin and end bits" in d7.err or "unframed" in d7.err, d7.err
    d7("export", path, "-o", out, "--unframed")
    assert content(out).startswith(b"PK")


def odd_words_are_refused(folder):
    """With a message, and without a file."""
    out = os.path.join(folder, "out")
    for words in (["copy", RECORDING, ""], ["image", RECORDING, "-o", "", "--format", "csv"], ["split", RECORDING, "-o", "", "--count", "99"],
                  ["merge", "", RECORDING], ["copy", RECORDING, out, "--from", "999999999"],
                  ["image", RECORDING, "-o", out + ".csv", "--from", "999999999"], ["export", RECORDING, "-o", out + ".npz", "--from", "999999999"],
                  ["follow", RECORDING, "/photons/x", "/photons/x"], ["copy", RECORDING, folder + "/"], ["info", ""]):
        assert d7(*words, code=2) == b"" and d7.err, words
        assert os.listdir(folder) == [], words


def main():
    for check in (names_are_printable, full_outputs_are_told_once, closed_outputs_are_told_once, closed_pipes_end_the_command,
                  results_are_named, reading_commands_know_unframed, odd_words_are_refused,
                  stopped_repairs_leave_nothing, unreadable_files_are_no_damage, files_without_datasets):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)


main()
