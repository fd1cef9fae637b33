"""d7 follow: beside a recording that grows, is closed, killed, recovered, replaced, and goes on in parts."""
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

import require
from d7run import D7, d7

WRITER = os.path.join(os.path.dirname(os.environ["PHOTOND_BIN"]), "tests", "d7_live_writer")
LONG = 60  # seconds after which something is not coming


def photons(first, end):
    return ["%d\t%d\t%d" % (7919 * i & 4095, 104729 * i & 4095, 31 * i & 4095) for i in range(first, end)]


COLUMNS = ("/photons/x", "/photons/y", "/photons/dt")


class Writer:
    def __init__(self, path, *mode):
        self.p = subprocess.Popen([WRITER, path, *mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answer()

    def answer(self):
        assert self.p.stdout.readline() == b"ok\n"

    def __call__(self, *lines):
        for line in lines:
            self.p.stdin.write(line.encode() + b"\n")
            self.p.stdin.flush()
            self.answer()

    def end(self):
        self.p.stdin.close()
        assert self.p.wait(LONG) == 0

    def kill(self):
        self.p.kill()
        self.p.wait(LONG)


class Follow:
    """The command, with the lines of both its outputs as they come."""

    def __init__(self, *arguments):
        self.p = subprocess.Popen([D7, "follow", "--interval", "10ms", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines, self.told = [], []
        self.news = queue.Queue()
        self.keepers = [threading.Thread(target=self.keep, args=two, daemon=True)
                        for two in ((self.p.stdout, self.lines), (self.p.stderr, self.told))]
        for keeper in self.keepers:
            keeper.start()

    def keep(self, stream, kept):
        for line in stream:
            kept.append(line.rstrip("\n"))
            self.news.put(1)
        self.news.put(1)

    def until(self, true, what):
        end = time.monotonic() + LONG
        while not true():
            assert time.monotonic() < end, (what, self.lines[-3:], self.told)
            try:
                self.news.get(timeout=0.05)
            except queue.Empty:
                assert self.p.poll() is None or true(), (what, self.p.returncode, self.lines[-3:], self.told)

    def until_lines(self, n):
        self.until(lambda: len(self.lines) >= n, "%d lines, not %d" % (n, len(self.lines)))

    def until_told(self, word, times=1):
        self.until(lambda: sum(word in t for t in self.told) >= times, word)

    def ends(self, code=0):
        assert self.p.wait(LONG) == code, (self.p.returncode, self.told)
        for keeper in self.keepers:
            keeper.join()


def items_come_as_they_are_marked(path):
    w = Writer(path, "tail")
    f = Follow(path, *COLUMNS, "--from", "start")
    n = 0
    for step in (1, 3, 50, 1000, 7, 2000):
        w("append %d" % step, "mark")
        n += step
        f.until_lines(n)
        assert f.lines == photons(0, n)
    w("append 5", "close")
    f.ends()
    assert f.lines == photons(0, n + 5)
    assert len(f.told) == 1 and "closed" in f.told[0], f.told
    w.end()


def only_new_items_are_printed(path):
    w = Writer(path)
    w("append 2000", "flush")  # pages of 512
    f = Follow(path, "/photons/x", "--wait", "0", "--json")
    f.until_lines(1)
    w("append 1000", "flush", "append 5", "close")
    f.ends()
    lines = [json.loads(line) for line in f.lines]
    assert lines[0]["event"] == "begin" and lines[0]["item"] == 1536
    assert sum((line["values"]["/photons/x"] for line in lines if line["event"] == "items"), []) == [7919 * i & 4095 for i in range(1536, 3005)]
    w.end()
    f = Follow(path, *COLUMNS, "--from", "3000", "--wait", "0")
    f.ends()
    assert f.lines == photons(3000, 3005)


def a_killed_recording_is_waited_for(path):
    w = Writer(path, "tail")
    w("append 700", "mark", "append 3000", "flush")
    f = Follow(path, *COLUMNS, "--from", "start")
    f.until_lines(3584)
    assert f.told == []
    w.kill()
    f.until_told("no writer holds it")
    assert f.p.poll() is None
    w = Writer(path, "resume")  # back to the mark: 700 photons
    f.until_told("taken back")
    assert "items from 700 on" in f.told[-1], f.told
    w("append 100", "mark")
    f.until_lines(3584 + 100)
    assert f.lines == photons(0, 3584) + photons(700, 800)
    w("close")
    f.ends()
    assert len(f.lines) == 3684
    w.end()


def a_recording_goes_on_in_parts(folder):
    parts = [os.path.join(folder, "run%s.photons" % p) for p in ("", ".0001", ".0002")]
    writers = [Writer(parts[0], "tail")]
    f = Follow(parts[0], *COLUMNS, "--from", "start")
    n = 0
    for i in range(3):
        writers[i]("append 1000", "mark")
        n += 1000
        f.until_lines(n)
        if i < 2:
            writers.append(Writer(parts[i + 1], "tail"))
        writers[i]("append 11", "close")
        n += 11
        f.until_lines(n)
        writers[i].end()
    f.ends()
    assert f.lines == photons(0, 1011) * 3
    assert [t.split()[2] for t in f.told] == [p + ":" for p in parts], f.told
    assert parts[1] in f.told[0] and parts[2] in f.told[1]
    # each part can be where it begins
    f = Follow(parts[1], *COLUMNS, "--from", "1000", "--wait", "0")
    f.ends()
    assert f.lines == photons(1000, 1011) + photons(0, 1011)


def a_late_part_is_waited_for(folder):
    first, second = (os.path.join(folder, "late%s.photons" % p) for p in ("", ".0001"))
    w = Writer(first)
    f = Follow(first, "/photons/x", "--wait", "30s", "--from", "start")
    w("append 10", "close")
    w.end()
    f.until_lines(10)
    with open(second, "wb"):  # what is there a moment before its header
        time.sleep(0.3)
    assert f.p.poll() is None, f.told
    os.unlink(second)
    w = Writer(second)
    f.until_told("goes on")
    w("append 3", "close")
    w.end()
    f.until_lines(13)
    f.p.send_signal(signal.SIGINT)
    f.ends()


def another_file_takes_its_place(folder):
    path, other = os.path.join(folder, "a.photons"), os.path.join(folder, "b.photons")
    w = Writer(path, "tail")
    w("append 20", "mark")
    f = Follow(path, *COLUMNS, "--from", "start")
    f.until_lines(20)
    v = Writer(other, "tail")
    v("append 7", "mark")
    os.rename(other, path)
    os.rename(other + ".tail", path + ".tail")
    f.until_told("another file lies at this path")
    w("append 1000", "flush")  # its writer is alive: it goes on with that one
    f.until_lines(512)
    assert f.lines == photons(0, 512)
    w.kill()
    f.until_told("took its place")
    f.until_lines(512 + 7)
    assert f.lines[512:] == photons(0, 7)
    v("close")
    f.ends()
    v.end()


def another_file_takes_the_place_of_a_closed_one(folder):
    path, other = os.path.join(folder, "former.photons"), os.path.join(folder, "latter.photons")
    w, v = Writer(path), Writer(other)
    w("append 600", "flush")
    f = Follow(path, *COLUMNS, "--from", "start", "--wait", "0")
    f.until_lines(512)
    os.rename(other, path)
    f.until_told("another file lies at this path")
    w("append 11", "close")  # the old one properly ends
    f.until_told("took its place")
    f.until_lines(611)
    v("append 520", "flush")
    f.until_lines(611 + 512)
    v("close")
    f.ends()
    assert f.lines == photons(0, 611) + photons(0, 520)
    w.end()
    v.end()


def a_file_that_is_gone_ends_it(folder):
    path = os.path.join(folder, "gone.photons")
    w = Writer(path)
    w("append 20", "flush")
    f = Follow(path)
    f.until_lines(1)
    os.unlink(path)
    f.until_told("another file lies at this path")
    w.kill()
    f.ends(code=1)
    assert any("gone" in t for t in f.told), f.told


def a_shortened_file_is_told(folder):
    path = os.path.join(folder, "short.photons")
    w = Writer(path)
    w("append 5000", "flush")
    w.end()
    f = Follow(path, *COLUMNS, "--from", "start")
    f.until_lines(4608)
    with open(path, "rb+") as file:
        file.truncate(os.path.getsize(path) // 2)
    f.until_told("taken back")
    f.p.send_signal(signal.SIGTERM)
    f.ends()


def json_lines_tell_all(folder):
    path = os.path.join(folder, "j.photons")
    w = Writer(path, "tail")
    f = Follow(path, "/photons/dt", "--json", "--from", "start")
    s = Follow(path, "--json")
    w("append 600", "mark")
    f.until(lambda: '"items"' in "".join(f.lines), "items")
    s.until(lambda: '"/photons/dt": 600' in "".join(s.lines), "status")
    w("append 1", "close")
    f.ends()
    s.ends()
    w.end()
    assert f.told == [] and s.told == []
    lines = [json.loads(line) for line in f.lines]
    values, at = [], 0
    for line in lines:
        assert line["file"] == path
        if line["event"] == "items":
            assert line["first"] == at and line["items"] == len(line["values"]["/photons/dt"])
            at += line["items"]
            values += line["values"]["/photons/dt"]
    assert values == [31 * i & 4095 for i in range(601)]
    assert lines[-1]["event"] == "closed"
    status = [json.loads(line) for line in s.lines]
    assert [x["event"] for x in status] == ["begin"] + ["status"] * (len(status) - 2) + ["closed"]
    last = status[-2]
    assert last["state"] == "closed" and last["bytes"] == os.path.getsize(path)
    assert last["items"] == {"/photons/x": 601, "/photons/y": 601, "/photons/dt": 601, "/photons/ms": 13}
    assert set(last) == {"event", "file", "time", "state", "held", "bytes", "rate", "items"}


def a_summary_is_a_line_when_something_came(folder):
    path = os.path.join(folder, "s.photons")
    w = Writer(path, "tail")
    f = Follow(path)
    f.until_lines(1)
    w("append 600", "mark")
    f.until(lambda: "600 photons" in f.lines[-1], "600 photons")
    assert "being written" in f.lines[-1] and "/photons/ms 12" in f.lines[-1] and path in f.lines[-1]
    n = len(f.lines)
    time.sleep(0.2)
    assert len(f.lines) == n
    w("close")
    f.ends()
    assert f.lines[-1].endswith("closed")
    w.end()


def it_ends_when_told(folder):
    path = os.path.join(folder, "idle.photons")
    w = Writer(path)
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        f = Follow(path, "--interval", "1h")
        f.until_lines(1)
        f.p.send_signal(signal_number)
        f.ends()
        assert f.told == []
    # whoever reads is gone: it does not go on for nobody
    f = subprocess.Popen([D7, "follow", path, "--interval", "10ms"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    f.stdout.readline()
    f.stdout.close()
    w("append 5000", "flush")
    assert f.wait(LONG) != 0
    w.end()


def wrong_use_is_told(folder):
    path = os.path.join(folder, "idle.photons")
    for arguments in ((), (path, "/none"), (path, "/photons/x", "/photons/ms"), (path, "--from", "x"), (path, "--interval", "0"),
                      (path, "--interval", "2h"), (path, "--wait", "x"), (path + "x",), (path, "--no")):
        assert d7("follow", *arguments, code=2) == b"" and d7.err, arguments


def main():
    require.built("d7")
    with tempfile.TemporaryDirectory() as folder:
        items_come_as_they_are_marked(os.path.join(folder, "marks.photons"))
        only_new_items_are_printed(os.path.join(folder, "new.photons"))
        a_killed_recording_is_waited_for(os.path.join(folder, "killed.photons"))
        a_recording_goes_on_in_parts(folder)
        a_late_part_is_waited_for(folder)
        another_file_takes_its_place(folder)
        another_file_takes_the_place_of_a_closed_one(folder)
        a_file_that_is_gone_ends_it(folder)
        a_shortened_file_is_told(folder)
        json_lines_tell_all(folder)
        a_summary_is_a_line_when_something_came(folder)
        it_ends_when_told(folder)
        wrong_use_is_told(folder)


sys.exit(main())
