"""kill -9 at random moments, over and over, while producers send: at 1 event a time, at a moderate and at full rate, with one
producer and with eight. They reconnect and send again what they are told to. At the end every file equals what was sent, and
no acknowledged number was ever taken back.

24 rounds; PHOTOND_TORTURE_MINUTES=N goes on for so long. PHOTOND_TORTURE_SEED=N repeats the moments of an earlier run."""
import os
import random
import threading
import time
import uuid

import ingest
import photond
import require
import torture
from ingest import pb

np = require.module("numpy")

PATTERNS = 61
PATIENCE = 120
CONFIG = {"sync_interval_ms": 40, "resume_timeout_s": 600, "export_interval_s": 0.2, "ring_mb": 16, "log_level": "info"}


class Source:
    """What one producer sends: batch i is always the same."""

    def __init__(self, seed, photons):
        rng = np.random.default_rng(seed)
        self.photons = photons
        self.columns = []
        for _ in range(PATTERNS):
            self.columns.append([rng.integers(0, 4096, photons).astype("<u2") for _ in range(3)] +
                                [rng.integers(0, 1 << 40, 1 + photons // 100).astype("<u8")])
        self.crcs = []
        for columns in self.columns:
            crc = 0
            for c in columns:
                crc = ingest.crc32c(c.tobytes(), crc)
            self.crcs.append(crc)

    def bytes_of(self, n):
        return n * sum(c.nbytes for c in self.columns[0])

    def expected(self, n, column):
        if n == 0:
            return self.columns[0][column][:0]
        return np.concatenate([self.columns[i % PATTERNS][column] for i in range(n)])


class Producer(threading.Thread):
    def __init__(self, daemon, name, source, pause):
        super().__init__(name=name)
        self.daemon_process, self.source, self.pause = daemon, source, pause
        self.run_id, self.instance = uuid.uuid4().bytes, "instrument-" + name
        self.sent = self.durable = self.resent = self.connections = 0
        self.finish = threading.Event()
        self.closed = None
        self.fault = None

    def run(self):
        while self.closed is None and self.fault is None:
            try:
                self.connect()
            except (OSError, ConnectionError, EOFError):
                time.sleep(0.02)
            except Exception as e:  # noqa: B902
                self.fault = e

    def connect(self):
        with ingest.Connection(self.daemon_process.unix, preamble=False, timeout=PATIENCE) as c:
            c.send_raw(ingest.PREAMBLE)
            if len(c.receive_raw(len(ingest.PREAMBLE))) < len(ingest.PREAMBLE):
                raise ConnectionError
            c.hello(instance=self.instance, epoch=1)
            c.send(pb.Open(run_id=self.run_id, name=self.name, profile="lincam"))
            answer = c.receive()
            while answer is not None and not isinstance(answer, (pb.Opened, pb.Closed, pb.Error)):
                answer = c.receive()
            if isinstance(answer, pb.Closed):
                self.closed = answer
            elif isinstance(answer, pb.Error):
                raise AssertionError(str(answer))
            elif answer is not None:
                self.connections += 1
                self.stream(c, answer)

    def stream(self, c, opened):
        at = opened.next_sequence - 1
        assert self.durable <= at <= self.sent, "told to go on with %d; durable %d, sent %d" % (at + 1, self.durable, self.sent)
        self.resent += self.sent - at
        while not (self.finish.is_set() and at >= self.sent):
            pattern = at % PATTERNS
            c.batch(opened, self.source.columns[pattern], sequence=at + 1, crc32c=self.source.crcs[pattern])
            at += 1
            self.sent = max(self.sent, at)
            self.listen(c, opened, at)
            if self.pause:
                time.sleep(self.pause)
        c.send(pb.Close(run=opened.run, last_sequence=at))
        self.closed = c.wait(pb.Closed)

    def listen(self, c, opened, at):
        """Takes what has been answered; never more than some batches ahead of that."""
        while True:
            ack = c.acks.get(opened.run)
            if ack:
                assert ack.durable >= self.durable and at >= ack.received >= ack.durable, ack
                self.durable = ack.durable
            behind = at - (ack.received if ack else opened.next_sequence - 1)
            try:
                body = c.receive(timeout=PATIENCE if behind > 16 else 1e-4)
            except TimeoutError:
                assert behind <= 16
                return
            if body is None:
                raise ConnectionError
            if isinstance(body, pb.Ping):
                c.send(pb.Pong(id=body.id))
            assert not isinstance(body, pb.Error), body


def check(daemon, producer):
    closed, source = producer.closed, producer.source
    assert closed.last_sequence == producer.sent, (closed.last_sequence, producer.sent)
    path = daemon.path(producer.name + ".photons")
    photond.tool("d7", "verify", path)
    out = os.path.join(daemon.folder, "out.npz")
    photond.tool("d7", "export", path, "-o", out, "--overwrite")
    with np.load(out) as z:
        for column, name in enumerate(("/photons/x", "/photons/y", "/photons/dt", "/photons/ms")):
            key = next(k for k in z.files if k.strip("/") == name.strip("/"))
            assert np.array_equal(z[key], source.expected(producer.sent, column)), "%s %s" % (producer.name, name)
    assert not os.path.exists(path + ".tail")
    photons = photond.tool("daf", "get", daemon.path(producer.name + ".daf"), "scalar", "photons", "--format", "text")
    assert int(photons) == producer.sent * source.photons, photons


def torment(daemon, chance, name, n_producers, photons, pause, rounds, until):
    producers = [Producer(daemon, "%s-%d" % (name, i), Source(i, photons), pause) for i in range(n_producers)]
    for p in producers:
        p.start()
    killed = 0
    while killed < rounds or time.monotonic() < until:
        time.sleep(chance.uniform(0.02, 0.5))
        daemon.kill()
        killed += 1
        daemon.start(seconds=PATIENCE)
        if any(p.fault for p in producers):
            break
    for p in producers:
        p.finish.set()
    for p in producers:
        p.join()
        if p.fault:
            raise p.fault
        check(daemon, p)
    print("%s: killed %d times: %d batches, %d photons, %d sent again, %d connections: nothing lost" % (
        name, killed, sum(p.sent for p in producers), sum(p.sent for p in producers) * photons,
        sum(p.resent for p in producers), sum(p.connections for p in producers)), flush=True)
    torture.report(kills=killed, producers=n_producers, batches=sum(p.sent for p in producers),
                   events=sum(p.sent for p in producers) * photons, bytes=sum(p.source.bytes_of(p.sent) for p in producers),
                   batches_sent_again=sum(p.resent for p in producers))


def main():
    seed = int(os.environ.get("PHOTOND_TORTURE_SEED", random.SystemRandom().randrange(1 << 32)))
    minutes = float(os.environ.get("PHOTOND_TORTURE_MINUTES", 0))
    print("seed", seed, flush=True)
    chance = random.Random(seed)
    # name, producers, photons a batch, pause between batches, rounds
    parts = [("single", 1, 1, 0.05, 4), ("singles", 8, 1, 0.1, 4), ("steady", 1, 500, 0.05, 4), ("many", 8, 200, 0.16, 4),
             ("full", 1, 7000, 0, 4), ("fulls", 8, 2000, 0, 4)]
    for name, n_producers, photons, pause, rounds in parts:
        with photond.Daemon(config=CONFIG) as daemon:
            until = time.monotonic() + minutes * 60 / len(parts)
            torment(daemon, chance, name, n_producers, photons, pause, rounds, until)


if __name__ == "__main__":
    main()
