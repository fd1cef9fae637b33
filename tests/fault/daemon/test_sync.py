"""A sync or a write of a run's file that fails once: what is not durable is asked for again, the run goes on in a new file, and all that was
sent is in its files together, once and in order."""
import errno
import json
import os
import subprocess
import threading

import faults
import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"sync_interval_ms": 50, "heartbeat_ms": 600000, "idle_timeout_s": 1200, "export_interval_s": 0.5, "ring_mb": 4, "max_runs": 4}


def batches(n, photons=3000, seed=0):
    """Milliseconds count on over all of them."""
    rng, all_, next_ms = np.random.default_rng(seed), [], 0
    for i in range(n):
        x, y, dt = (rng.integers(0, 4096, photons).astype("<u2") for _ in range(3))
        ms = []
        while next_ms < (i + 1) * photons:
            ms.append(next_ms)
            next_ms += int(rng.integers(0, 400))
        all_.append([x, y, dt, np.array(ms, "<u8")])
    return all_


class Producer:
    """Keeps what it has sent, and sends it again when it is asked to."""

    def __init__(self, daemon, name, sent, **fields):
        self.c = ingest.Connection(daemon.unix, timeout=240)
        self.c.hello(name, instance=name, epoch=fields.pop("epoch", 1))
        self.run = self.c.open(name, **fields)
        self.name, self.sent, self.next, self.resends = name, sent, self.run.next_sequence, []
        self.closed = None

    def _heard(self, body):
        assert body is not None, "the stream ended"
        assert not isinstance(body, pb.Error), body
        if isinstance(body, pb.Resend):
            assert body.run == self.run.run and 1 <= body.from_sequence <= self.next, (body, self.next)
            assert self.name in body.text, body
            self.resends.append(body.from_sequence)
            self.next = body.from_sequence
        elif isinstance(body, pb.Closed):
            self.closed = body

    def hear(self, seconds=240):
        self._heard(self.c.receive(seconds))

    def send(self, upto):
        """Until so many are sent, and acknowledged."""
        while self.next <= upto:
            self.c.batch(self.run, self.sent[self.next - 1], sequence=self.next)
            self.next += 1
            while self.next > upto and self.received() < upto:
                self.hear()

    def received(self):
        ack = self.c.acks.get(self.run.run)
        return ack.received if ack else 0

    def durable(self, sequence):
        """Sends and waits until so much is durable."""
        self.send(sequence)
        while not self.c.acks.get(self.run.run) or self.c.acks[self.run.run].durable < sequence:
            self.hear()
            self.send(sequence)

    def close(self):
        """Says it again when it had to send something again."""
        self.send(len(self.sent))
        asked = -1
        while not self.closed:
            if asked != len(self.resends):
                asked = len(self.resends)
                self.send(len(self.sent))
                self.c.send(pb.Close(run=self.run.run, last_sequence=len(self.sent)))
            self.hear()
        self.c.drop()
        assert self.closed.last_sequence == len(self.sent), self.closed
        return self.closed


def parts(daemon, name, n):
    paths = [daemon.path(name + ".photons")] + [daemon.path("%s.%04d.photons" % (name, k)) for k in range(1, n)]
    assert not os.path.exists(daemon.path("%s.%04d.photons" % (name, n)))
    return paths


def expect(daemon, name, n, sent, turned=None, restart=True):
    """After a restart, which ends the files that were given up: together they are what was sent."""
    if restart:
        daemon.kill()
        daemon.start()
    assert daemon.status()["recovery"]["failed"] == 0, daemon.status()["recovery"]
    paths = parts(daemon, name, n)
    for path in paths:
        assert not os.path.exists(path + ".tail"), path
        photond.tool("d7", "verify", path)
    merged = os.path.join(daemon.folder, "merged.photons")
    photond.tool("d7", "merge", "--overwrite", merged, *paths)
    whole = stored.File(merged)
    whole.expect(stored.joined(sent))
    assert sum(g["cause"] == "sync_failed" for g in stored.gaps(whole)) == (n - 1 if turned is None else turned), stored.gaps(whole)
    if os.path.exists(daemon.path(name + ".daf")):
        said = photond.tool("photonctl", "verify-summaries", daemon.path(name + ".daf"), *paths)
        assert "0 different" in said, said
    os.unlink(merged)


def under_load(daemon):
    """One producer and two, a sync and a write; the other run goes on as if nothing were."""
    for fault in ("fdatasync", "pwrite"):
        names = ["%s-%d" % (fault, k) for k in range(2)]
        sent = [batches(40, seed=k) for k in range(2)]
        producers = [Producer(daemon, n, s, attributes=ingest.attributes({"Comment": n})) for n, s in zip(names, sent)]
        for p in producers:
            p.durable(10)
        daemon.fault(fault + "_once", errno.EIO)
        senders = [threading.Thread(target=p.durable, args=(30,)) for p in producers]
        for s in senders:
            s.start()
        for s in senders:
            s.join()
        assert daemon.met(fault + "_once")
        turned = [p for p in producers if p.resends]
        assert len(turned) == 1 and len(turned[0].resends) == 1 and turned[0].resends[0] >= 11, [p.resends for p in producers]
        status = daemon.status()
        assert status["health"] == "degraded" and any(turned[0].name + ".photons" in r for r in status["reasons"]), status["reasons"]
        for p in producers:
            assert p.close().parts == (2 if p.resends else 1)
        status = daemon.status()
        assert any(turned[0].name + ".photons" in r for r in status["reasons"]), status["reasons"]
        assert os.path.exists(daemon.path(turned[0].name + ".photons.tail"))
        counters = status["counters"]
        assert counters["gaps_failed_sync"] == 1 and counters["photons_rolled_back"] > 0, counters
        for i, p in enumerate(producers):
            expect(daemon, p.name, 2 if p.resends else 1, p.sent, restart=i == 0)


def twice_in_a_row(daemon):
    """The second before anything is durable in the new file."""
    p = Producer(daemon, "twice", batches(30))
    p.durable(7)
    for k in range(2):
        daemon.fault("fdatasync_once", errno.EIO)
        while len(p.resends) == k:
            if p.next <= 20:
                p.c.batch(p.run, p.sent[p.next - 1], sequence=p.next)
                p.next += 1
            p.hear()
        assert p.resends[-1] == 8, p.resends
        photond.wait_for(lambda: os.path.exists(parts(daemon, "twice", k + 2)[-1]))
    assert p.close().parts == 3
    expect(daemon, "twice", 3, p.sent)


def during_the_close(daemon):
    """The client's own close is asked for again; one by order is done when all has come again."""
    done = []
    for k, by_order in enumerate((False, True)):
        p = Producer(daemon, "close-%d" % k, batches(12, seed=k))
        p.durable(9)
        daemon.fault("hang")
        p.send(12)
        daemon.fault("fdatasync_once", errno.EIO)
        if by_order:
            stop = subprocess.Popen([require.built("photonctl"), "stop", p.name, "--control", daemon.control])
        else:
            p.c.send(pb.Close(run=p.run.run, last_sequence=12))
        photond.wait_for(lambda: daemon.run_status(p.name)["state"] in ("draining", "closing"))
        daemon.mend("hang")
        while not p.resends:
            p.hear()
        if by_order:
            p.send(12)
            while not p.closed:
                p.hear()
            p.c.drop()
            assert p.closed.last_sequence == 12 and stop.wait(240) == 0
        else:
            p.close()
        assert p.closed.parts == 2, p.closed
        done.append(p)
    for i, p in enumerate(done):
        expect(daemon, p.name, 2, p.sent, restart=i == 0)


def during_a_roll_over(daemon):
    """The old file's last sync, the new one's first, the old one's end: one after the other. A file that was filled already when the one
    before failed follows what is lost."""
    producers = []
    for skip in (0, 7, 8):
        p = Producer(daemon, "roll-%d" % skip, batches(14, seed=skip))
        producers.append(p)
        p.durable(5)
        daemon.fault("hang")
        p.send(8)
        rotate = subprocess.Popen([require.built("photonctl"), "rotate", p.name, "--control", daemon.control])
        photond.wait_for(lambda: daemon.run_status(p.name)["part"] == 1)
        daemon.fault("fdatasync_once", 1000 * skip + errno.EIO)
        p.c.batch(p.run, p.sent[8], sequence=9)
        p.next = 10
        daemon.mend("hang")
        p.durable(12)
        assert rotate.wait(240) == 0
        p.close()
        assert len(p.resends) <= 1, p.resends
        if not daemon.met("fdatasync_once"):
            daemon.mend("fdatasync_once")
    assert any(p.resends for p in producers)
    daemon.kill()
    daemon.start()
    for p in producers:
        expect(daemon, p.name, p.closed.parts, p.sent, len(p.resends), restart=False)


def a_producer_that_drops(daemon):
    sent = batches(120, photons=8000)
    p = Producer(daemon, "drop", sent, overflow=pb.OVERFLOW_DROP)
    p.durable(10)
    daemon.fault("stall")
    p.send(60)
    daemon.fault("fdatasync_once", errno.EIO)
    daemon.mend("stall")
    p.durable(100)
    assert p.resends and daemon.met("fdatasync_once")
    status = daemon.run_status("drop")
    p.close()
    dropped = status["counters"]["dropped_photons"]
    assert dropped > 0, status
    daemon.kill()
    daemon.start()
    paths = parts(daemon, "drop", 2)
    merged = os.path.join(daemon.folder, "merged.photons")
    photond.tool("d7", "merge", "--overwrite", merged, *paths)
    file = stored.File(merged)
    gaps = [g for g in stored.gaps(file) if g["cause"] == "overflow" and g.get("group") == "photons"]
    assert sum(g["count"] for g in gaps) >= dropped, (gaps, dropped)
    x, at, missing = stored.joined(sent)["/photons/x"], 0, 0
    for g in sorted(gaps, key=lambda g: g["item"]):
        assert np.array_equal(file.columns["/photons/x"][at:g["item"]], x[at + missing:g["item"] + missing]), g
        at, missing = g["item"], missing + g["count"]
    assert np.array_equal(file.columns["/photons/x"][at:], x[at + missing:])
    assert len(file.columns["/photons/ms"]) == len(stored.joined(sent)["/photons/ms"])
    os.unlink(merged)


def the_library_sends_again(daemon):
    """photon-send, which does by itself what is asked of it."""
    folder = os.path.join(daemon.folder, "recording")
    os.makedirs(folder)
    n = 300000
    rng = np.random.default_rng(5)
    columns = {c: rng.integers(0, 4096, n).astype("<u2") for c in ("x", "y", "dt")}
    columns["ms"] = np.arange(0, n, 97).astype("<u8")
    for name, values in columns.items():
        values.tofile(os.path.join(folder, name + (".u64" if name == "ms" else ".u16")))
    with open(os.path.join(folder, "manifest.json"), "w") as f:
        json.dump({"position_bits": 12, "tac_bits": 12, "tac_channel_ps": 12.3}, f)
    sender = subprocess.Popen([require.built("photon-send"), "--to", daemon.unix, "--run", "library", "--json", "--batch", "500",
                               "--speed", "real", folder], stdout=subprocess.PIPE, text=True)
    photond.wait_for(lambda: any(r["counters"]["photons_durable"] > 20000 for r in daemon.status()["runs"]))
    daemon.fault("fdatasync_once", errno.EIO)
    report = json.loads(sender.communicate(timeout=240)[0])
    assert sender.returncode == 0 and report["complete"] and report["durable"] == n and report["resent"] > 0, report
    expect(daemon, "library", 2, [[columns[c] for c in ("x", "y", "dt", "ms")]])


CASES = [under_load, twice_in_a_row, during_the_close, during_a_roll_over, a_producer_that_drops, the_library_sends_again]

if __name__ == "__main__":
    if not faults.unreachable():
        for case in CASES:
            print("%s" % case.__name__)
            with faults.Faulty(config=CONFIG) as faulty:
                case(faulty)
