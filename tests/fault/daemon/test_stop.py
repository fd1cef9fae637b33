"""A disk that stands still, many connections, and a stop. The daemon stays within the memory that its configuration allows, ends after
stop_timeout_s without the disk, says so, and the next start has all that was durable."""
import os
import signal
import threading
import time

import faults
import ingest
import photond
import require
import stored

np = require.module("numpy")

MIB = 1 << 20
CONFIG = {"sync_interval_ms": 50, "heartbeat_ms": 600000, "idle_timeout_s": 1200, "hello_timeout_s": 1200, "stop_timeout_s": 2, "resume_timeout_s": 600,
          "ring_mb": 8, "receive_mb": 2, "message_bytes": MIB, "batch_bytes": 65536, "output_bytes": 65536, "max_connections": 300,
          "max_runs": 8, "summaries": {"enabled": False}}
RUNS, IDLE, HALF, MUTE = 8, 100, 60, 20
SENT, PHOTONS = 150, 8000  # batches that each producer tries to send: in all some nine times the ring
BASE_MB, RUN_MB, CONNECTION_KB = 16, 1, 32  # docs/configuration.md, "Memory and threads"


def bound_kb(connections):
    return 1024 * (CONFIG["ring_mb"] + CONFIG["receive_mb"] + BASE_MB + RUNS * RUN_MB) + connections * (CONNECTION_KB + 2 * 64)


class Producer(threading.Thread):
    """Sends until the daemon is gone."""

    def __init__(self, daemon, i):
        super().__init__(daemon=True)
        self.name, self.run_id = "held-%d" % i, bytes([i + 1]) * 16
        self.batches = [stored.photons(np.random.default_rng(i), PHOTONS, ms=1)] * 3
        self.c = ingest.Connection(daemon.unix, timeout=600)
        self.c.hello(self.name, instance=self.name)
        self.opened = self.c.open(self.name, run_id=self.run_id)
        self.c.batch(self.opened, self.batches[0])
        self.durable = self.c.wait_ack(self.opened, durable=1).durable

    def run(self):
        try:
            for _ in range(SENT):
                self.c.batch(self.opened, self.batches[0])
        except OSError:
            pass


def crowd(daemon):
    """Connections that say nothing, half a long message, or more than they read answers to."""
    connections = []
    for i in range(IDLE + HALF + MUTE):
        c = ingest.Connection(daemon.unix, timeout=600)
        c.hello()
        connections.append(c)
    for c in connections[:HALF]:
        c.socket.setblocking(False)
        try:
            c.socket.send(ingest.varint(MIB - 100) + bytes(MIB // 2))
        except BlockingIOError:
            pass
    pings = ingest.delimited(ingest.pb.Ping(id=1 << 63, monotonic_ns=1 << 63)) * 500
    for c in connections[HALF:HALF + MUTE]:
        c.socket.setblocking(False)
        try:
            for _ in range(20):
                c.socket.send(pings)
        except OSError:
            pass
    return connections


def stands_still(daemon):
    before = daemon.status()["counters"]["bytes_received"]
    time.sleep(0.5)
    return daemon.status()["counters"]["bytes_received"] == before


def goes_on(daemon, p):
    """The run has what was durable; what it does not have is sent again."""
    c = ingest.Connection(daemon.unix, timeout=600)
    c.hello(p.name, instance=p.name, epoch=2)
    run = c.open(p.name, run_id=p.run_id)
    n = run.next_sequence - 1
    assert p.durable <= n <= 1 + SENT, (p.durable, n)
    c.batch(run, p.batches[0], sequence=n + 1)
    assert c.close(run).last_sequence == n + 1
    c.drop()
    return n + 1


def a_disk_that_stands_still(fault):
    daemon = faults.Faulty(config=CONFIG).start()
    producers = [Producer(daemon, i) for i in range(RUNS)]
    daemon.fault(fault)
    for p in producers:
        p.start()
    photond.wait_for(lambda: daemon.met(fault))
    photond.wait_for(lambda: stands_still(daemon))
    if fault == "stall":
        assert all(r["waits"] for r in daemon.status()["runs"]), daemon.status()["runs"]
    others = crowd(daemon)
    photond.wait_for(lambda: stands_still(daemon))
    peak, most = daemon.peak_kb(), bound_kb(RUNS + len(others))
    print("%s: %d KiB of at most %d" % (fault, peak, most), flush=True)
    assert peak < most, daemon.status()
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(240) == 3, daemon.log()
    assert "the disk has not answered for 2 s (stop_timeout_s)" in daemon.log()
    for p in producers:
        p.join()
        p.c.drop()
    for c in others:
        c.drop()
    daemon.mend(fault)
    with daemon:
        assert daemon.status()["recovery"]["recovered"] == RUNS, daemon.status()["recovery"]
        n = [goes_on(daemon, p) for p in producers]
        daemon.stop()
        for p in producers:
            photond.tool("d7", "verify", daemon.path(p.name + ".photons"))
        if fault == "stall":  # those of the other are longer than the reference reader likes
            stored.File(daemon.path("held-0.photons")).expect(stored.joined(producers[0].batches[:1] * n[0]))
        assert not os.path.exists(daemon.path("held-0.photons.tail"))


def one_of_two_disks():
    """What the other records is durable, can be opened and closed meanwhile, and at a stop; the one that hangs loses nothing."""
    daemon = faults.Faulty(config=CONFIG)
    second = os.path.join(daemon.folder, "second")
    daemon.config = dict(CONFIG, volumes={"other": {"data_dir": second}})
    daemon.start()
    good = ingest.Connection(daemon.unix, timeout=600)
    good.hello("good")
    bad = ingest.Connection(daemon.unix, timeout=600)
    bad.hello("bad", instance="bad")
    columns = stored.photons(np.random.default_rng(1), PHOTONS, ms=1)
    runs = {c: c.open(name, run_id=name.encode() * 4, volume=volume) for c, name, volume in ((good, "good", ""), (bad, "hung", "other"))}
    for c, run in runs.items():
        c.batch(run, columns)
        c.wait_ack(run, durable=1)
    daemon.fault("only", second + "/")
    daemon.fault("hang")
    bad.batch(runs[bad], columns)
    photond.wait_for(lambda: daemon.met("hang"))
    for n in range(2, 6):
        good.batch(runs[good], columns)
        good.wait_ack(runs[good], durable=n)
    assert good.close(runs[good]).last_sequence == 5
    more = good.open("more")
    good.batch(more, columns)
    good.wait_ack(more, durable=1)
    assert bad.acks[runs[bad].run].durable == 1
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(240) == 3, daemon.log()
    for name, n in (("good", 5), ("more", 1)):
        stored.File(daemon.path(name + ".photons")).expect(stored.joined([columns] * n))
    for c in (good, bad):
        c.drop()
    daemon.mend("hang")
    with daemon:
        assert daemon.status()["recovery"]["recovered"] == 1, daemon.status()["recovery"]
        bad = ingest.Connection(daemon.unix, timeout=600)
        bad.hello("bad", instance="bad", epoch=2)
        run = bad.open("hung", run_id=b"hung" * 4, volume="other")
        assert run.next_sequence in (2, 3), run
        for n in range(run.next_sequence, 4):
            bad.batch(run, columns, sequence=n)
        assert bad.close(run).last_sequence == 3
        bad.drop()
        stored.File(os.path.join(second, "hung.photons")).expect(stored.joined([columns] * 3))


def while_it_writes():
    a_disk_that_stands_still("stall")


def while_it_syncs():
    a_disk_that_stands_still("hang")


if __name__ == "__main__":
    if not faults.unreachable():
        photond.run_cases([while_it_writes, while_it_syncs, one_of_two_disks])
