"""What the attacks on a photond share: a conversation to spoil, and a producer beside it that must not notice anything."""
import contextlib
import re
import threading
import time

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

# Runs of connections that were cut off are closed at once; a run is promised little of the ring, so that there may be many.
CONFIG = {"batch_bytes": 65536, "resume_timeout_s": 0.05, "sync_interval_ms": 50, "max_connections": 256, "max_runs": 512,
          "log_level": "error", "summaries": {"enabled": False}}
SPARE_KB = (64 + 32) * 1024  # more memory than at the start, at most: receive_mb, and some for runs and connections


class Witness(threading.Thread):
    """Sends small batches until `enough` is set. What went wrong is in `failure`."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.photond = daemon
        self.batches, self.failure = [], None
        self.enough = threading.Event()

    def run(self):
        try:
            rng = np.random.default_rng(1)
            with ingest.Connection(self.photond.unix) as c:
                c.hello("witness")
                run = c.open("witness")
                while not self.enough.wait(0.005):
                    self.batches.append(stored.photons(rng, 2000))
                    c.batch(run, self.batches[-1])
                    c.wait_ack(run, received=len(self.batches))
                assert c.close(run).last_sequence == len(self.batches)
        except Exception as e:
            self.failure = e

    def check(self):
        self.enough.set()
        self.join()
        if self.failure:
            raise AssertionError("the producer beside the attack: %r" % self.failure) from self.failure
        assert self.batches
        for dataset, values in stored.joined(self.batches).items():
            read = photond.tool("d7", "cat", "--format", "raw", self.photond.path("witness.photons"), dataset, text=False)
            assert read == values.tobytes(), "%s of the producer beside the attack is not what it sent" % dataset


@contextlib.contextmanager
def attacked(**config):
    """A photond with a witness. On leaving: it is still there, the witness has lost nothing, no run is left open, memory is
    what it should be, and it stops as asked (the sanitizers, where it is built with them, have their say then)."""
    with photond.Daemon(config=dict(CONFIG, **config)) as daemon:
        witness = Witness(daemon)
        witness.start()
        while not witness.batches and witness.is_alive():
            time.sleep(0.01)
        daemon.peak_before_kb = daemon.peak_kb()
        yield daemon
        wait_closed(daemon)
        witness.check()
        assert not daemon.log(), daemon.log()
        spare_kb = daemon.peak_kb() - daemon.peak_before_kb
        assert sanitized() or spare_kb < SPARE_KB, "%d KiB of memory more than before" % spare_kb


def wait_closed(daemon, seconds=60):
    """Until no run but the witness's is open."""
    deadline = time.monotonic() + seconds
    while True:
        runs = [run for run in daemon.status()["runs"] if run["name"] != "witness"]
        if not runs:
            return
        assert time.monotonic() < deadline, "runs are left open: %s" % runs
        time.sleep(0.02)


def sanitized():
    """The sanitizers keep freed memory."""
    with open(require.built("photond"), "rb") as f:
        return re.search(rb"__[at]san_init", f.read()) is not None


# ---- a conversation ------------------------------------------------------------------------------------------------


def batch(sequence, n, n_ms, run=1):
    """A lincam Batch whose items tell its number."""
    columns = [np.full(n, 100 * sequence + i, "<u2") for i in range(3)] + [np.full(n_ms, sequence, "<u8")]
    raw = [c.tobytes() for c in columns]
    crc = 0
    for c in raw:
        crc = ingest.crc32c(c, crc)
    return pb.Batch(run=run, sequence=sequence, counts=[n, n_ms], crc32c=crc, columns=raw)


def beginning(name, instance, run_id):
    """(Hello, Open), delimited."""
    return (ingest.delimited(pb.Hello(client_name="attack", instance=instance, epoch=1, software="attack")),
            ingest.delimited(pb.Open(run_id=run_id, name=name, profile="lincam",
                                     attributes=ingest.attributes({"/photons/PositionBits": "12"}))))


def data_messages():
    """What is said to the run: (message delimited, items of photons, items of ms, numbers used)."""
    said = [(batch(1, 7, 1), 7, 1, 1), (batch(2, 0, 0), 0, 0, 1), (pb.Ping(id=1, run=1), 0, 0, 0),
            (pb.Attributes(run=1, sequence=3, attributes=ingest.attributes({"Comment": "spoilt"})), 0, 0, 1),
            (batch(4, 11, 3), 11, 3, 1), (batch(4, 11, 3), 0, 0, 0), (pb.Pong(id=1), 0, 0, 0), (batch(5, 1, 0), 1, 0, 1),
            (pb.Close(run=1, last_sequence=5), 0, 0, 0)]
    return [(ingest.delimited(m), *rest) for m, *rest in said]
