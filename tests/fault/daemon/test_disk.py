"""A disk that is slow, stands still, fails, or does things by halves. Nothing that was acknowledged is lost, and what cannot go on
says so."""
import errno
import os
import threading

import faults
import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"sync_interval_ms": 50, "heartbeat_ms": 600000, "idle_timeout_s": 1200, "summaries": {"enabled": False}}
PAGE_BYTES = 16384  # of events in a slot of the ring
STALL_S, RING_S = 2, 2.5


def batches(n, photons=20000):
    return [stored.photons(np.random.default_rng(i), photons, ms=10) for i in range(n)]


def begin(daemon, name, **fields):
    c = ingest.Connection(daemon.unix, timeout=240)
    c.hello(name, instance=name, epoch=fields.pop("epoch", 1))
    return c, c.open(name, **fields)


def syncs_that_take_long():
    """5 ms and 20 ms go by unnoticed; with 1 s all is durable later."""
    with faults.Faulty(config=CONFIG) as daemon:
        c, run = begin(daemon, "slow")
        sent = batches(12)
        for k, ms in enumerate((5, 20, 1000)):
            daemon.fault("sync_ms", ms)
            for columns in sent[4 * k:4 * k + 4]:
                c.batch(run, columns)
            c.wait_ack(run, durable=4 * k + 4)
            assert daemon.status()["health"] != "not_ok", daemon.status()["reasons"]
        daemon.mend("sync_ms")
        assert c.close(run).last_sequence == 12
        stored.File(daemon.path("slow.photons")).expect(stored.joined(sent))


def calls_that_do_a_part_or_are_interrupted():
    """Also while it recovers."""
    with faults.Faulty(config=CONFIG) as daemon:
        daemon.fault("partial")
        c, run = begin(daemon, "halves", run_id=b"h" * 16)
        sent = batches(10)
        for columns in sent[:6]:
            c.batch(run, columns)
        c.wait_ack(run, durable=4)
        daemon.kill()
        assert daemon.met("partial")
        daemon.start()
        c, run = begin(daemon, "halves", run_id=b"h" * 16, epoch=2)
        assert 5 <= run.next_sequence <= 7, run
        for n in range(run.next_sequence, 11):
            c.batch(run, sent[n - 1], sequence=n)
        assert c.close(run).last_sequence == 10
        assert daemon.met("partial")
        stored.File(daemon.path("halves.photons")).expect(stored.joined(sent))
        assert daemon.status()["health"] == "ok", daemon.status()["reasons"]


def errors_of_the_disk():
    """Final for the run, which says so; what was durable is there after a restart, and the rest can be sent again."""
    with faults.Faulty(config=CONFIG) as daemon:
        sent = batches(6)
        for i, (call, code) in enumerate((c, e) for c in ("pwrite", "fdatasync") for e in (errno.EIO, errno.ESTALE)):
            name, run_id = "%s-%d" % (call, code), bytes([i + 1]) * 16
            c, run = begin(daemon, name, run_id=run_id)
            for columns in sent[:3]:
                c.batch(run, columns)
            c.wait_ack(run, durable=3)
            daemon.fault(call, code)
            for columns in sent[3:]:
                c.batch(run, columns)
            error = c.error()
            assert (error.code, error.scope) == (pb.ERROR_RUN_FAILED, pb.SCOPE_RUN), error
            assert os.strerror(code) in error.text and name + ".photons" in error.text, error.text
            assert daemon.met(call)
            daemon.mend(call)
            status = daemon.status()
            assert status["health"] == "not_ok" and any(name in r for r in status["reasons"]), status["reasons"]
            durable = c.acks[run.run].durable
            c.close(c.open("after-" + name))
            c.drop()
            daemon.kill()
            daemon.start()
            c, run = begin(daemon, name, run_id=run_id, epoch=2)
            assert durable < run.next_sequence <= 7, (durable, run)
            for n in range(run.next_sequence, 7):
                c.batch(run, sent[n - 1], sequence=n)
            assert c.close(run).last_sequence == 6
            c.drop()
            stored.File(daemon.path(name + ".photons")).expect(stored.joined(sent))


def a_writer_that_stands_still():
    """For 2 s of a load of which the ring holds 2.5 s: all is received meanwhile. For longer: the producer is held back. Told in bytes,
    which do not depend on how fast this machine is."""
    config = dict(CONFIG, ring_mb=4, max_runs=1)
    with faults.Faulty(config=config) as daemon:
        c, run = begin(daemon, "still")
        photons = int(run.batch_bytes) // 16
        sent = batches(1, photons)
        c.batch(run, sent[0])
        c.wait_ack(run, durable=1)
        daemon.fault("stall")
        more = int(daemon.status()["ring"]["slots"] * PAGE_BYTES / RING_S * STALL_S / sum(x.nbytes for x in sent[0]))
        assert more > 5, more
        for columns in batches(more, photons):
            sent.append(columns)
            c.batch(run, columns)
        c.wait_ack(run, received=len(sent))
        photond.wait_for(lambda: daemon.met("stall"))
        assert c.acks[run.run].durable == 1
        assert daemon.status()["runs"][0]["waits"] is None

        rest = batches(more, photons)
        sender = threading.Thread(target=lambda: [c.batch(run, columns) for columns in rest])
        sender.start()
        c.wait(pb.Paused)
        daemon.mend("stall")
        sender.join()
        assert c.close(run).last_sequence == len(sent) + more
        stored.File(daemon.path("still.photons")).expect(stored.joined(sent + rest))


if __name__ == "__main__":
    if not faults.unreachable():
        photond.run_cases([syncs_that_take_long, calls_that_do_a_part_or_are_interrupted, errors_of_the_disk, a_writer_that_stands_still])
