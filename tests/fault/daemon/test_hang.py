"""A disk that does not answer: slow after a second, not OK after ten, and the watchdog is not fed; all is well when it answers again."""
import subprocess

import faults
import ingest
import photond
import require
import stored

np = require.module("numpy")


def check(daemon):
    done = subprocess.run([require.built("photonctl"), "status", "--check", "--control", daemon.control], stdout=subprocess.PIPE, text=True)
    return done.returncode, done.stdout


def main():
    if faults.unreachable():
        return
    with faults.Faulty(config={"sync_interval_ms": 50, "heartbeat_ms": 600000, "idle_timeout_s": 1200}, environment={"WATCHDOG_USEC": "600000"}) as daemon:
        told = daemon.manager
        c = ingest.Connection(daemon.tcp, timeout=120)
        c.hello("cam")
        run = c.open("held")
        c.batch(run, stored.photons(np.random.default_rng(1), 10000, ms=4000))
        daemon.hang(True)
        c.batch(run, stored.photons(np.random.default_rng(2), 10000, ms=4000))
        photond.wait_for(lambda: check(daemon) == (0, "ok\n") or "degraded: the disk has not answered" in check(daemon)[1], 60)
        photond.wait_for(lambda: "degraded: the disk has not answered for" in check(daemon)[1], 60)
        c.batch(run, stored.photons(np.random.default_rng(3), 10000, ms=4000))  # still taken
        c.wait_ack(run, received=3)
        photond.wait_for(lambda: check(daemon)[0] == 1, 120)
        assert "not_ok: the disk has not answered for" in check(daemon)[1], check(daemon)
        photond.wait_for(lambda: "; the watchdog is not fed any more" in daemon.log(), 60)
        told.wait(lambda n: "not_ok" in n.get("STATUS", ""))
        photond.wait_for(told.starves, 120)
        fed = told.count("WATCHDOG")
        daemon.hang(False)
        photond.wait_for(lambda: told.count("WATCHDOG") > fed, 120)
        photond.wait_for(lambda: check(daemon) == (0, "ok\n"), 60)
        assert "the threads of the disk answer again" in daemon.log()
        assert [d.items for d in c.close(run).datasets][:3] == [30000] * 3


if __name__ == "__main__":
    main()
