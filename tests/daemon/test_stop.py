"""SIGTERM and SIGINT under load: what was acknowledged is in closed files, the clients are told, the exit status is 0."""
import signal
import threading
import time

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")


class Sender(threading.Thread):
    """Sends as fast as it can until the daemon says that it stops."""

    def __init__(self, address, number):
        super().__init__()
        self.address, self.number, self.failure = address, number, None
        self.batches, self.acknowledged, self.closed = [], 0, None
        self.started = threading.Event()

    def run(self):
        try:
            rng = np.random.default_rng(self.number)
            with ingest.Connection(self.address) as c:
                c.hello("sender-%d" % self.number)
                run = c.open("sender-%d" % self.number)
                while not self.closed:
                    self.batches.append(stored.photons(rng, int(rng.integers(1, run.batch_bytes // 8))))
                    self.send(c, run)
                    self.started.set()
                last = c.wait_ended()[-1]
                assert isinstance(last, pb.Error) and last.code == pb.ERROR_SHUTTING_DOWN, last
        except Exception as e:
            self.failure = e

    def send(self, c, run):
        try:
            c.batch(run, self.batches[-1])
        except OSError:
            pass  # it does not read any more; what it said before can still be read
        while True:
            try:
                body = c.receive(0)
            except TimeoutError:
                return
            if isinstance(body, pb.Ack):
                self.acknowledged = body.received
            elif isinstance(body, pb.Closed):
                self.closed = body
                return
            else:
                assert isinstance(body, (pb.Paused, pb.Resumed)), body


def stop_under_load(number):
    with photond.Daemon(config={"ring_mb": 8, "export_interval_s": 0.1}) as daemon:
        senders = [Sender(daemon.tcp, i) for i in range(4)]
        for s in senders:
            s.start()
        for s in senders:
            assert s.started.wait(240)
        time.sleep(0.5)
        daemon.process.send_signal(number)
        assert daemon.process.wait(240) == 0, daemon.log()
        for s in senders:
            s.join()
            assert s.failure is None, repr(s.failure)
            assert s.closed.text and s.closed.last_sequence >= s.acknowledged > 0, (s.closed, s.acknowledged)
            file = stored.File(daemon.path("sender-%d.photons" % s.number))
            file.expect(stored.joined(s.batches[:s.closed.last_sequence]))
            assert file.attributes["photond.sequence"] == str(s.closed.last_sequence)
        assert "stopped" in daemon.log().splitlines()[-1]
        print("%s: %s batches" % (signal.Signals(number).name, [s.closed.last_sequence for s in senders]))


def stop_with_nothing_to_do():
    with photond.Daemon() as daemon:
        with ingest.Connection(daemon.unix) as c:
            c.hello()
            daemon.stop()
            assert c.wait_ended()[-1].code == pb.ERROR_SHUTTING_DOWN


def stop_with_detached_and_empty_runs():
    with photond.Daemon() as daemon:
        batch = stored.photons(np.random.default_rng(1), 5)
        with ingest.Connection(daemon.tcp) as c:
            c.hello()
            run = c.open("detached")
            c.batch(run, batch)
            c.wait_ack(run, received=1)
            c.open("empty")
        daemon.stop()
        stored.File(daemon.path("detached.photons")).expect(stored.joined([batch]))
        assert all(len(v) == 0 for v in stored.File(daemon.path("empty.photons")).columns.values())


def hang_up_is_no_end():
    with photond.Daemon() as daemon:
        daemon.process.send_signal(signal.SIGHUP)
        with ingest.Connection(daemon.tcp) as c:
            c.hello()
            c.close(c.open("still-there"))
        assert "SIGHUP" in daemon.log()


def main():
    stop_under_load(signal.SIGTERM)
    stop_under_load(signal.SIGINT)
    stop_with_nothing_to_do()
    stop_with_detached_and_empty_runs()
    hang_up_is_no_end()


if __name__ == "__main__":
    main()
