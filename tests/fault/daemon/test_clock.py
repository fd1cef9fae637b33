"""The wall clock is stepped by an hour and by a year, both ways: rates, intervals and times-out go by the other clock, and no name is
given twice."""
import signal
import time

import faults
import ingest
import photond
import require
import stored

np = require.module("numpy")

HOUR, YEAR = 3600, 365 * 86400
CONFIG = {"sync_interval_ms": 50, "export_interval_s": 0.2, "export_grace_s": 0.2, "heartbeat_ms": 600000, "idle_timeout_s": 1200,
          "resume_timeout_s": 600}


def step(daemon, c, run, n, seconds):
    """All goes on as before, at once."""
    daemon.clock(seconds)
    exports = own(daemon, run)["counters"]["exports"]
    seen = n // 3 + 1
    photond.wait_for(lambda: daemon.status()["counters"]["gaps_clock_step"] >= 2 * seen, 60)  # of both runs
    for i in range(3):
        c.batch(run, stored.photons(np.random.default_rng(n + i), 5000))
        c.wait_ack(run, durable=0, received=n + i)
    photond.wait_for(lambda: own(daemon, run)["counters"]["exports"] > exports, 60)
    status = daemon.status()
    told = own(daemon, run)
    assert status["health"] == "ok", status["reasons"]
    assert 0 <= status["uptime_s"] < 3000 and 0 <= told["age_s"] < 3000, status
    assert 0 <= told["photons_per_s"] < 1e9 and 0 <= (told["durable_age_s"] or 0) < 3000, told
    assert all(0 <= peer["age_s"] < 3000 and 0 <= peer["silent_s"] < 3000 for peer in status["connections"]), status
    return n + 3


def own(daemon, run):
    return next(r for r in daemon.status()["runs"] if r["name"] == run.name)


def steps():
    with faults.Faulty(config=CONFIG) as daemon:
        c = ingest.Connection(daemon.tcp)
        c.hello("cam")
        run = c.open("steps")
        waiting = ingest.Connection(daemon.tcp)
        waiting.hello("gone")
        waiting.open("detached")
        waiting.drop()
        photond.wait_for(lambda: any(r["state"] == "detached" for r in daemon.status()["runs"]), 60)
        n = 1
        for seconds in (HOUR, YEAR, 0, -HOUR, -YEAR, 0):
            n = step(daemon, c, run, n, seconds)
        daemon.clock(YEAR)
        daemon.process.send_signal(signal.SIGHUP)  # the log has the wrong time: the step did reach the daemon
        year = time.gmtime(time.time() + YEAR).tm_year
        photond.wait_for(lambda: any(line.startswith("%d-" % year) for line in daemon.log().splitlines()), 60)
        assert any(r["name"] == "detached" for r in daemon.status()["runs"])  # not timed out by a step
        assert c.close(run).last_sequence == n - 1
        steps = [round(g["seconds"]) for g in stored.gaps(stored.File(daemon.path("steps.photons"))) if g["cause"] == "clock_step" and abs(g["seconds"]) > 60]
        assert steps[:6] == [HOUR, YEAR - HOUR, -YEAR, -HOUR, HOUR - YEAR, YEAR], steps


def names_are_never_given_twice():
    with faults.Faulty(config=CONFIG) as daemon:
        c = ingest.Connection(daemon.tcp)
        c.hello("cam")
        given = set()
        for seconds in (0, HOUR, 0, -HOUR, -YEAR, YEAR):
            daemon.clock(seconds)
            run = c.open("scan", mode=ingest.pb.MODE_COUNTER)
            assert run.name not in given
            given.add(run.name)
            c.batch(run, stored.photons(np.random.default_rng(1), 100))
            c.close(run)
            ingest.refused(lambda: c.open(run.name), ingest.pb.ERROR_NAME_TAKEN)
        assert len(given) == 6
        for name in given:
            assert stored.File(daemon.path(name + ".photons")).state == "closed"


def main():
    if faults.unreachable():
        return
    photond.run_cases((steps, names_are_never_given_twice))


if __name__ == "__main__":
    main()
