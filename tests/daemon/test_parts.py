"""A run in several files: each stands alone, and put together they are what was sent, whatever happens in between."""
import glob
import json
import os
import random
import subprocess
import sys
import time
import uuid

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")
photonsfile = require.module("photonsfile")

COLUMNS = ("x", "y", "dt", "ms")
CONFIG = {"sync_interval_ms": 50, "resume_timeout_s": 60, "export_interval_s": 0.5}
PATIENCE = 120
ATTRIBUTES = {"/photons/PositionBits": "12", "/photons/TacBits": "12", "/photons/TacChannel": "6.1", "Comment": "of the opening"}


class Sender:
    """Batches of LINCam photons whose milliseconds rise as the protocol wants, ending anywhere within one."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.n, self.next_ms, self.sent = 0, 0, []

    def make(self, n):
        x, y, dt = (self.rng.integers(0, 4096, n).astype("<u2") for _ in range(3))
        ms = []
        while self.next_ms < self.n + n:
            ms.append(self.next_ms)
            self.next_ms += int(self.rng.integers(0, 200))
        self.n += n
        self.sent.append([x, y, dt, np.array(ms, "<u8")])
        return self.sent[-1]


def part_paths(daemon, name):
    later = sorted(glob.glob(daemon.path(name + ".[0-9]*.photons")))
    return [daemon.path(name + ".photons")] + later


def expect_parts(daemon, name, sent, at_least=2, attributes=None):
    """Every part is a clean file with all attributes; merged, they are what was sent."""
    paths = part_paths(daemon, name)
    assert len(paths) >= at_least, paths
    whole = stored.joined(sent)
    first, first_sequence, n_photons = 0, 0, 0
    for number, path in enumerate(paths):
        file = stored.File(path)
        assert file.state == "closed" and file.attributes["photond.part"] == str(number), (path, file.attributes)
        for key, value in (attributes or {}).items():
            assert file.attributes[key] == value, (path, key)
        x, ms = file.columns["/photons/x"], file.columns["/photons/ms"].astype("i8")
        assert np.array_equal(x, whole["/photons/x"][n_photons:n_photons + len(x)]), path
        first = int(file.attributes.get("photond.first_ms", "0"))
        assert int(file.attributes.get("photond.first_photon", "0")) == n_photons, path
        assert int(file.attributes.get("photond.first_sequence", "0")) == first_sequence, path
        expected = np.maximum(whole["/photons/ms"][first:first + len(ms)].astype("i8") - n_photons, 0)
        assert np.array_equal(ms, expected), (path, ms[:5], expected[:5])
        n_photons += len(x)
        first_sequence = int(file.attributes["photond.sequence"])
        assert not os.path.exists(path + ".tail"), path
        photond.tool("d7", "verify", path)
        read = photonsfile.read_photons(path, COLUMNS)
        for column in COLUMNS:
            assert np.array_equal(np.asarray(read.get(column, [])), file.columns["/photons/" + column]), (path, column)
    assert n_photons == len(whole["/photons/x"])
    merged = os.path.join(daemon.folder, "merged.photons")
    photond.tool("d7", "merge", "--overwrite", merged, *paths)
    stored.File(merged).expect(whole)
    if os.path.exists(daemon.path(name + ".daf")):
        said = photond.tool("photonctl", "verify-summaries", daemon.path(name + ".daf"), *paths)
        assert "0 different" in said, said
    return paths


def follower(daemon, name):
    """`d7 follow` beside the recording, into a file (a pipe that nobody reads would hold it up)."""
    out = os.path.join(daemon.folder, "followed")
    return out, subprocess.Popen(
        [require.built("d7"), "follow", daemon.path(name + ".photons"), "/photons/x", "/photons/dt", "--from", "start",
         "--interval", "20ms", "--wait", "20s"], stdout=open(out, "w"), stderr=subprocess.DEVNULL)


def expect_followed(followed, sent):
    """Every row of all parts once and in order; `d7 follow` waits for a next part, so it is stopped."""
    out, process = followed
    whole = stored.joined(sent)
    wanted = np.stack([whole["/photons/x"], whole["/photons/dt"]], axis=1)
    end = time.monotonic() + PATIENCE
    while sum(1 for _ in open(out)) < len(wanted) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(PATIENCE) == 0
    rows = np.loadtxt(out, dtype="u4", ndmin=2)
    assert np.array_equal(rows, wanted), (rows.shape, wanted.shape)


def by_size(daemon):
    """Full pages, several parts; attributes and records of before and in between; followed over all of them."""
    sender = Sender(1)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="size")
        run = c.open("size", attributes=ingest.attributes(ATTRIBUTES))
        assert run.part == 0
        followed = follower(daemon, "size")
        while len(part_paths(daemon, "size")) < 3:
            c.batch(run, sender.make(7011))
            c.wait_ack(run, received=c.sequence[run.run])
            if len(sender.sent) == 5:
                c.attributes(run, {"later": "in all parts from here on"})
                c.send(pb.Marker(run=run.run, sequence=c._next(run.run, None), group="photons", item=sender.n, text="here"))
        closed = c.close(run)
        assert closed.parts == len(part_paths(daemon, "size")) and closed.path == daemon.path("size.photons"), closed
        assert {d.name: d.items for d in closed.datasets}["/photons/x"] == sender.n
    expect_followed(followed, sender.sent)
    paths = expect_parts(daemon, "size", sender.sent, at_least=3, attributes=ATTRIBUTES)
    assert stored.File(paths[-1]).attributes["later"] == "in all parts from here on"
    merged = stored.File(os.path.join(daemon.folder, "merged.photons")).attributes
    assert json.loads(merged["photond.marker.00000000"])["item"] == sum(len(b[0]) for b in sender.sent[:5]), merged
    assert merged["later"] == "in all parts from here on" and merged["photond.part"] == "0"


def by_order(daemon):
    sender = Sender(2)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="order")
        run = c.open("order", attributes=ingest.attributes(ATTRIBUTES))
        done = subprocess.run([require.built("photonctl"), "rotate", "order", "--control", daemon.control], stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "nothing in its file" in done.stderr, done
        for number in range(3):
            for n in (1, 7, 500):
                c.batch(run, sender.make(n))
            c.wait_ack(run, received=len(sender.sent))
            photond.tool("photonctl", "rotate", "order", "--control", daemon.control)
            assert not os.path.exists(daemon.path("order%s.photons.tail" % (".%04d" % number if number else "")))
            assert os.path.exists(daemon.path("order.%04d.photons.tail" % (number + 1)))
            assert c.wait_ack(run, durable=len(sender.sent)).durable == len(sender.sent)
            assert daemon.status()["runs"][0]["part"] == number + 1
        closed = c.close(run)  # the last part has no batch
        assert closed.parts == 4, closed
    expect_parts(daemon, "order", sender.sent, at_least=4, attributes=ATTRIBUTES)


def by_time(daemon):
    sender = Sender(3)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="time")
        run = c.open("time", attributes=ingest.attributes(ATTRIBUTES))
        while len(part_paths(daemon, "time")) < 3:
            c.batch(run, sender.make(3))
            c.wait_ack(run, received=len(sender.sent))
            time.sleep(0.02)
        c.close(run)
    expect_parts(daemon, "time", sender.sent, at_least=3, attributes=ATTRIBUTES)


def answered_again(daemon):
    """The Closed of a run in parts, after a restart."""
    sender = Sender(4)
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="again")
        run = c.open("again")
        for _ in range(2):
            c.batch(run, sender.make(50))
            c.wait_ack(run, durable=len(sender.sent))
            photond.tool("photonctl", "rotate", "again", "--control", daemon.control)
        c.batch(run, sender.make(60))
        closed = c.close(run)
        assert closed.parts == 3
    daemon.kill()
    daemon.start()
    with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
        c.hello(instance="again")
        c.send(pb.Open(run_id=run.run_id, name="again", profile="lincam"))
        told = c.wait(pb.Closed)
        told.run = closed.run
        assert told == closed, (told, closed)


def killed(daemon, name, seed, rounds, photons, pause=0):
    """kill -9 again and again while the run changes from file to file; the producer goes on where it is told to."""
    sender, chance = Sender(seed), random.Random(seed)
    run_id, durable = uuid.uuid4().bytes, 0
    for last in [False] * rounds + [True]:
        with ingest.Connection(daemon.tcp, timeout=PATIENCE) as c:
            c.hello(instance=name)
            run = c.open(name, run_id=run_id, attributes=ingest.attributes(ATTRIBUTES))
            assert durable < run.next_sequence <= len(sender.sent) + 1, (durable, run.next_sequence)
            for i in range(run.next_sequence - 1, len(sender.sent)):
                c.batch(run, sender.sent[i], sequence=i + 1)
            for _ in range(1 if last else chance.randint(2, 9)):
                c.batch(run, sender.make(chance.randint(1, photons)))
                time.sleep(pause * chance.random())
            if last:
                assert c.close(run, last_sequence=len(sender.sent)).last_sequence == len(sender.sent)
                break
            wait = chance.random()
            if wait < 0.5:
                durable = c.wait_ack(run, durable=max(1, len(sender.sent) - 3)).durable
            elif wait < 0.8:
                c.wait_ack(run, received=len(sender.sent) - 1)
            daemon.kill()
        daemon.start()
    expect_parts(daemon, name, sender.sent, attributes=ATTRIBUTES)
    photond.tool("photonctl", "status", "--check", "--control", daemon.control)


def with_config(daemon, **keys):
    daemon.stop()
    daemon.config.update({"part_max_bytes": 0, "part_max_s": 0, **keys})
    daemon.start()


def main():
    rounds = int(os.environ.get("PHOTOND_PARTS_ROUNDS", "4"))
    with photond.Daemon(config=dict(CONFIG)) as daemon:
        for case in (by_order, answered_again):
            photond.run_cases([case], daemon)
        with_config(daemon, part_max_bytes=1 << 16)
        photond.run_cases([by_size], daemon)
        with_config(daemon, part_max_s=0.1)
        photond.run_cases([by_time], daemon)
        print("killed by time", flush=True)
        killed(daemon, "killed-slow", 5, rounds, 40, pause=0.1)
        with_config(daemon, part_max_bytes=1 << 17)
        print("killed by size", flush=True)
        killed(daemon, "killed-fast", 6, rounds, 9000)


if __name__ == "__main__":
    sys.exit(main())
