"""Eight producers at once with two runs each, in random batches of 1 to 100,000 photons, on a ring that holds a fraction of it:
every file is right, none is mixed with another, and memory stays within the ring and a fixed amount."""
import threading

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

PRODUCERS, RUNS, PHOTONS, LARGEST = 8, 2, 250000, 100000
RING_MB, FIXED_MB = 32, 64
TAGS = [pb.Dataset(name="/tags/channel", type=pb.TYPE_UINT8, group="tags", role=pb.ROLE_CHANNEL),
        pb.Dataset(name="/tags/time", type=pb.TYPE_UINT64, group="tags", role=pb.ROLE_TIME_STAMP)]


def tags(rng, n):
    return [rng.integers(0, 16, n).astype("<u1"), np.cumsum(rng.integers(0, 1 << 20, n)).astype("<u8")]


class Producer(threading.Thread):
    """Two runs, one of each kind, batch by batch in turn."""

    def __init__(self, address, number):
        super().__init__()
        self.address, self.number, self.failure = address, number, None
        self.sent = {}

    def run(self):
        try:
            with ingest.Connection(self.address, timeout=120) as c:
                c.hello("producer-%d" % self.number)
                self.conversation(c)
        except Exception as e:
            self.failure = e

    def conversation(self, c):
        rng = np.random.default_rng(self.number)
        makers = {"photons-%d" % self.number: stored.photons, "tags-%d" % self.number: tags}
        runs = {"photons-%d" % self.number: c.open("photons-%d" % self.number),
                "tags-%d" % self.number: c.open("tags-%d" % self.number, datasets=TAGS)}
        left = {name: PHOTONS for name in runs}
        self.sent = {name: [] for name in runs}
        while any(left.values()):
            name = str(rng.choice([n for n in left if left[n]]))
            run, width = runs[name], sum(ingest.TYPE_BYTES[d.type] for d in runs[name].datasets)
            n = int(min(np.exp(rng.uniform(0, np.log(LARGEST))), left[name], run.batch_bytes // width))
            columns = makers[name](rng, n)
            c.batch(run, columns)
            self.sent[name].append(columns)
            left[name] -= n
            self.read_answers(c)
        for name, run in runs.items():
            closed = c.close(run)
            assert closed.last_sequence == len(self.sent[name])
            assert closed.datasets[0].items == PHOTONS, closed

    def read_answers(self, c):
        while True:
            try:
                body = c.receive(0)
            except TimeoutError:
                return
            assert isinstance(body, (pb.Ack, pb.Paused, pb.Resumed)), body


def main():
    config = {"ring_mb": RING_MB, "sync_interval_ms": 100, "export_interval_s": 0.2, "export_grace_s": 0.2}
    with photond.Daemon(config=config) as daemon:
        producers = [Producer(daemon.tcp if i % 2 else daemon.unix, i) for i in range(PRODUCERS)]
        for p in producers:
            p.start()
        for p in producers:
            p.join()
        for p in producers:
            assert p.failure is None, (p.number, repr(p.failure))
        peak, status = daemon.peak_kb() / 1024, daemon.status()
        for p in producers:
            for name, batches in p.sent.items():
                names = stored.LINCAM if name.startswith("photons") else [d.name for d in TAGS]
                stored.File(daemon.path(name + ".photons")).expect(stored.joined(batches, names))
        counters = status["counters"]
        n = PRODUCERS * RUNS
        assert counters["photons_received"] == counters["photons_durable"] == n * PHOTONS, counters
        assert counters["runs_opened"] == counters["runs_closed"] == n and counters["runs_failed"] == 0, counters
        assert counters["pages_encoded"] == counters["pages_written"], counters
        assert status["ring"]["used"] == status["ring"]["reserved"] == 0, status["ring"]
    print("%d runs, %d photons each, %d stalls, %d exports; peak %.0f MB with a ring of %d MB" % (
        n, PHOTONS, counters["stalls"], counters["exports"], peak, RING_MB))
    if not require.sanitized():
        assert peak < RING_MB + FIXED_MB, peak


if __name__ == "__main__":
    main()
