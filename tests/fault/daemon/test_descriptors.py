"""64 descriptors and 200 who want to connect: the daemon does not spin, who is there goes on undisturbed, and when the crowd has gone
the next one is taken. What has begun never lacks a descriptor: as many runs are open as there are some for, the next is refused, and a
new part of each can still begin."""
import os
import socket
import time

import ingest
import photond
import require
import stored

np = require.module("numpy")

N_FILES, N_CROWD, WINDOW_S = 64, 200, 2


class Limited(photond.Daemon):
    def command(self):
        return ["sh", "-c", 'ulimit -n %d && exec "$@"' % N_FILES, "sh", *super().command()]


def cpu_s(daemon):
    with open("/proc/%d/stat" % daemon.process.pid) as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rests(daemon):
    """Whether it leaves the processor to others: who spins never does."""
    before = cpu_s(daemon)
    time.sleep(WINDOW_S)
    return cpu_s(daemon) - before < 0.3 * WINDOW_S


def crowd(address):
    host, port = address[6:].rsplit(":", 1)
    made = []
    for _ in range(N_CROWD):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex((host, int(port)))
        made.append(s)
    return made


def main():
    with Limited(config={"sync_interval_ms": 50, "export_interval_s": 0.2, "hello_timeout_s": 600}) as daemon:
        assert "file descriptors are allowed" in daemon.log()
        c = ingest.Connection(daemon.unix, timeout=120)
        c.hello("cam")
        run = c.open("steady")
        there = crowd(daemon.tcp)
        runs = open_all(c)
        assert 1 <= len(runs) < 8, runs
        photond.wait_for(lambda: rests(daemon), 120)

        for n in range(1, 51):
            for r in [run, *runs]:
                c.batch(r, stored.photons(np.random.default_rng(n), 2000))
            c.wait_ack(run, received=n)
            if n == 25:
                for r in [run, *runs]:
                    photond.tool("photonctl", "rotate", r.name, "--control", daemon.control)
        photond.wait_for(lambda: all(r["counters"]["exports"] > 1 for r in daemon.status()["runs"]), 120)
        for r in runs:
            assert [d.items for d in c.close(r).datasets][:3] == [100000] * 3
        assert [d.items for d in c.close(run).datasets][:3] == [100000] * 3
        again = c.open("another")  # files can be made as well
        c.close(again)
        for s in there:
            s.close()
        c.drop()
        photond.wait_for(lambda: taken(daemon), 120)
        for part in ("steady.photons", "steady.0001.photons"):
            assert stored.File(daemon.path(part)).state == "closed"
        assert "Too many open files" not in daemon.log() and "too many open files" not in daemon.log(), daemon.log()


def open_all(c):
    """Runs until the next is refused for want of descriptors."""
    runs = []
    try:
        while True:
            runs.append(c.open("beside-%d" % len(runs)))
    except ingest.Refused as e:
        assert e.error.code == ingest.pb.ERROR_NO_ROOM and "more are not allowed" in e.error.text, e
    return runs


def taken(daemon):
    """Whether a new producer gets in."""
    try:
        with ingest.Connection(daemon.tcp) as c:
            c.hello("next")
            return True
    except (ingest.Refused, AssertionError, OSError):
        return False


if __name__ == "__main__":
    main()
