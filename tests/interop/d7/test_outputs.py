"""What d7 may replace: never the file it reads, by whatever name; never one that a writer holds. What it leaves: nothing when it fails. And
how it shows that it is at work."""
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import d7ref
import ptumake

SOURCE = os.environ["PHOTOND_SOURCE"]
D7 = os.path.join(os.environ["PHOTOND_BIN"], "d7")
RECORDING = os.path.join(SOURCE, "tests", "fixtures", "d7", "lincam_islands.photons")
DAMAGED = os.path.join(SOURCE, "tests", "fixtures", "d7", "cut_4.photons")
MAKERS = {
    "copy": ["copy", "IN", "OUT", "--from", "5", "--to", "10"],
    "copy whole": ["copy", "IN", "OUT"],
    "merge": ["merge", "OUT", "IN"],
    "image": ["image", "IN", "-o", "OUT", "--format", "csv"],
    "decay": ["decay", "IN", "-o", "OUT", "--format", "csv"],
    "rate": ["rate", "IN", "-o", "OUT", "--format", "csv"],
    "export": ["export", "IN", "-o", "OUT", "--format", "npz"],
    "repair": ["repair", "IN", "-o", "OUT"],
}


def d7(*arguments, **options):
    return subprocess.run([D7, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **options)


def words(command, source, result):
    return [source if w == "IN" else result if w == "OUT" else w for w in MAKERS[command]] + ["--overwrite"]


def content(path):
    with open(path, "rb") as f:
        return f.read()


def check_sources_stay(folder):
    path = os.path.join(folder, "in.photons")
    for command in MAKERS:
        shutil.copy(DAMAGED if command == "repair" else RECORDING, path)
        before = content(path)
        os.symlink(path, os.path.join(folder, "symbolic"))
        os.link(path, os.path.join(folder, "hard"))
        for name in (path, os.path.join(folder, ".", "in.photons"), os.path.join(folder, "symbolic"), os.path.join(folder, "hard")):
            p = d7(*words(command, path, name))
            assert p.returncode in ((1, 2) if command == "repair" else (2,)), (command, name, p)
            assert b"the file that is read" in p.stderr + p.stdout or b"is the file" in p.stderr, (command, p.stderr)
            assert content(path) == before
        os.unlink(os.path.join(folder, "symbolic"))
        os.unlink(os.path.join(folder, "hard"))
        assert os.listdir(folder) == ["in.photons"], os.listdir(folder)


def check_held_files_stay(folder):
    """A writer's lock is a lock of the open file: another process of this test stands for the writer."""
    held, source = os.path.join(folder, "held.photons"), os.path.join(folder, "in.photons")
    shutil.copy(RECORDING, held)
    before = content(held)
    program = "import fcntl,sys,struct\nf=open(sys.argv[1],'r+b')\nfcntl.fcntl(f,38,struct.pack('hhqqi4x',fcntl.F_WRLCK,0,0,0,0))\nprint('held',flush=True)\nsys.stdin.read()"
    with subprocess.Popen(["python3", "-c", program, held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"held\n"
        for command in MAKERS:
            shutil.copy(DAMAGED if command == "repair" else RECORDING, source)
            p = d7(*words(command, source, held))
            assert p.returncode in (1, 2) and b"writer holds" in p.stderr + p.stdout, (command, p)
            assert content(held) == before
        writer.stdin.close()


def check_pipes_are_refused(folder):
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    for arguments in (["import", pipe, "-o", os.path.join(folder, "out")], ["info", pipe], ["copy", pipe, os.path.join(folder, "out")]):
        assert d7(*arguments).returncode == 2, arguments


def check_size_limits_are_errors(folder):
    """Writing past ulimit -f is an error like any: a message, nothing left."""
    for command in MAKERS:
        source = os.path.join(folder, "in.photons")
        shutil.copy(DAMAGED if command == "repair" else RECORDING, source)
        p = d7(*words(command, source, os.path.join(folder, "out")),
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        assert p.returncode in (1, 2) and p.returncode != -signal.SIGXFSZ and p.stderr, (command, p)
        assert os.listdir(folder) == ["in.photons"], (command, os.listdir(folder))


def check_follow_tells_a_lost_header(folder):
    path = os.path.join(folder, "live.photons")
    shutil.copy(os.path.join(SOURCE, "tests", "fixtures", "d7", "open.photons"), path)
    with subprocess.Popen([D7, "follow", path, "--interval", "50ms"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        time.sleep(0.3)
        os.truncate(path, 10)
        told = b""
        while b"cut" not in told and b"end" not in told:
            told = p.stderr.readline()
            assert told, "ended without a word"
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=20)


def is_caught(pid):
    """Does the process do something of its own at SIGTERM? None: it has ended."""
    try:
        with open("/proc/%d/status" % pid) as f:
            caught = [line.split()[1] for line in f if line.startswith("SigCgt")]
    except OSError:
        return None
    return bool(int(caught[0], 16) >> signal.SIGTERM - 1 & 1) if caught else None


def check_stopped_commands_leave_nothing(folder):
    """Stopped at any moment from its first on: exit status 2, a message, no file but the whole parts that a split names."""
    path, out = os.path.join(folder, "in.photons"), os.path.join(folder, "out")
    maker = os.path.join(os.path.dirname(os.environ["PHOTOND_BIN"]), "tests", "d7_big_file")
    subprocess.run([maker, path, "6000000"], check=True)
    cut = os.path.join(folder, "cut.photons")
    with open(path, "rb") as f, open(cut, "wb") as to:
        to.write(f.read()[:-20000])
    for arguments in (["copy", path, out], ["copy", path, out, "--from", "5"], ["split", path, "-o", out, "--size", "8MB"], ["merge", out, path],
                      ["export", path, "-o", out + ".npz"], ["repair", cut, "-o", out]):
        for delay in (0, 0.05, 0.12, 0.2):
            p = subprocess.Popen([D7, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            caught = False
            while caught is False:
                caught = is_caught(p.pid)
            time.sleep(delay)
            p.send_signal(signal.SIGTERM)
            said = p.communicate(timeout=60)[1]
            assert p.returncode in (0, 2), (arguments, p.returncode, said)
            assert p.returncode == 0 or b"stopped" in said, (arguments, said)
            rest = sorted(os.listdir(folder))
            made = [name for name in rest if name not in ("cut.photons", "in.photons")]
            assert all(name.startswith("out") for name in made), (arguments, rest)
            assert not made or p.returncode == 0 or b"complete and" in said, (arguments, rest, said)
            for name in made:
                if p.returncode != 0:
                    assert subprocess.run([D7, "verify", os.path.join(folder, name)], capture_output=True).returncode == 0, name
                os.unlink(os.path.join(folder, name))


# ---- what lies beside ----

WRITER = os.path.join(os.path.dirname(os.environ["PHOTOND_BIN"]), "tests", "d7_live_writer")


def check_links_show_what_is_beside_the_file(folder):
    """The tail, checksums and what is cut off lie where the file does, not where a link to it does."""
    real, links = os.path.join(folder, "real"), os.path.join(folder, "links")
    os.mkdir(real)
    os.mkdir(links)
    path, link = os.path.join(real, "run.photons"), os.path.join(links, "other.photons")
    os.symlink("../real/run.photons", link)
    with subprocess.Popen([WRITER, path, "tail"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        for line in (None, b"append 5000\n", b"flush\n", b"mark\n"):
            if line:
                writer.stdin.write(line)
                writer.stdin.flush()
            assert writer.stdout.readline() == b"ok\n"
        writer.kill()
    assert b"  5000 " in d7("info", path).stdout and b"  5000 " in d7("info", link).stdout
    p = d7("repair", "--in-place", link)
    assert p.returncode == 1 and b"a tail beside it" in p.stderr, p.stderr
    p = d7("repair", link, "-o", path + ".repaired")
    assert p.returncode == 0 and len(d7ref.File(content(path + ".repaired")).values[0]) == 5000
    os.unlink(path + ".tail")
    with open(path, "ab") as f:
        f.write(b"\x05\x80torn")
    assert d7("repair", "--in-place", link).returncode == 0
    assert sorted(os.listdir(real)) == ["run.photons", "run.photons.cut.0", "run.photons.repaired"], os.listdir(real)
    assert d7("verify", link, "--write-checksums").returncode == 0 and os.path.exists(path + ".crc")
    data = bytearray(content(path))
    page = next(at for at, dataset, _ in d7ref.File(bytes(data)).pages if dataset == 0)
    data[page + 20] ^= 1
    with open(path, "r+b") as f:
        f.write(data)
    for ask in (path, link):
        assert b"CHECKSUM" in d7("verify", ask).stdout, ask
    assert d7("copy", link, os.path.join(folder, "copy.photons")).returncode == 1
    assert os.listdir(links) == ["other.photons"]
    shutil.rmtree(real)
    shutil.rmtree(links)


def check_read_only_folders_can_be_looked_through(folder):
    """A file that is fine needs no place for a result."""
    closed, command = os.path.join(folder, "closed"), os.path.join(folder, "d7")
    os.mkdir(closed)
    shutil.copy(RECORDING, os.path.join(closed, "fine.photons"))
    shutil.copy(D7, command)
    os.chmod(folder, 0o755)
    os.chmod(closed, 0o555)
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []

    def repair(*arguments):
        p = subprocess.run([*nobody, command, "repair", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        return p.returncode, p.stdout + p.stderr

    for arguments in ([os.path.join(closed, "fine.photons")], [closed, "--recursive"]):
        code, said = repair(*arguments)
        assert code == 0 and b"fine" in said, said
    os.chmod(closed, 0o755)
    shutil.copy(DAMAGED, os.path.join(closed, "cut.photons"))
    os.chmod(closed, 0o555)
    code, said = repair(closed, "--recursive")
    assert code == 2 and b"Permission denied" in said and b"fine" in said, said
    assert sorted(os.listdir(closed)) == ["cut.photons", "fine.photons"]
    os.chmod(closed, 0o755)


def check_names_may_be_long(folder):
    """Where no name of a tail or of checksums can be, there is none."""
    path = os.path.join(folder, "n" * 247 + ".photons")
    for source in (RECORDING, DAMAGED):
        shutil.copy(source, path)
        for command in (["info"], ["verify"], ["copy", path, os.path.join(folder, "copy.photons"), "--overwrite"]):
            p = d7(*(command if len(command) > 1 else command + [path]))
            assert p.returncode in ((0,) if source == RECORDING else (0, 1)) and b"too long" not in p.stderr, p.stderr
        os.unlink(path)


# ---- progress ----

LONG_WORK = dict(MAKERS, **{
    "info": ["info", "IN", "--full"],
    "cat": ["cat", "IN", "/photons/x"],
    "verify": ["verify", "IN"],
    "sums": ["verify", "IN", "--write-checksums"],
    "repair": ["repair", "IN"],
    "repair in place": ["repair", "CUT", "--in-place"],
    "split": ["split", "IN", "-o", "OUT.photons", "--count", "9000"],
    "import": ["import", "PTU", "-o", "OUT"],
})


def on_a_terminal(*arguments):
    """What the command says on standard error where that is a terminal."""
    ours, its = os.openpty()
    with subprocess.Popen([D7, *arguments], stdout=subprocess.DEVNULL, stderr=its) as p:
        os.close(its)
        said = b""
        try:
            while piece := os.read(ours, 65536):
                said += piece
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert p.returncode == 0, (arguments, said)
    return said.decode()


def check_long_work_shows_a_bar(folder):
    for name, command in LONG_WORK.items():
        for ask in (on_a_terminal, lambda *a: d7(*a).stderr.decode()):
            paths = {what: os.path.join(folder, what) for what in ("IN", "OUT", "OUT.photons", "CUT", "PTU")}
            shutil.copy(RECORDING, paths["IN"])
            shutil.copy(DAMAGED, paths["CUT"])
            with open(paths["PTU"], "wb") as f:
                f.write(ptumake.header("generic-t2", 1000, 1e-12) + struct.pack("<I", 1 << 25 | 5) * 1000)
            said = ask(*[paths.get(w, w) for w in command])
            bar = re.search(r"\r[a-z]+ .*(\[#{30}\] 100 %|B/s)", said)
            assert bool(bar) == (ask == on_a_terminal), (name, said)
            for left in os.listdir(folder):
                os.unlink(os.path.join(folder, left))


def main():
    for check in (check_sources_stay, check_held_files_stay, check_pipes_are_refused, check_size_limits_are_errors,
                  check_follow_tells_a_lost_header, check_stopped_commands_leave_nothing, check_links_show_what_is_beside_the_file, check_names_may_be_long,
                  check_read_only_folders_can_be_looked_through, check_long_work_shows_a_bar):
        with tempfile.TemporaryDirectory() as folder:
            check(folder)


main()
