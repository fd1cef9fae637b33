"""How runs are named and when they end: names by pattern, stop conditions, also announced ones and through a restart."""
import os
import re
import time

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"sync_interval_ms": 50, "export_interval_s": 3600, "resume_timeout_s": 300}


def producer(daemon, name="cam"):
    c = ingest.Connection(daemon.tcp)
    c.hello(name, instance=name)
    return c


def photons(n=100):
    return stored.photons(np.random.default_rng(1), n)


def wait_closed(c, text):
    """Batches that came when it was being closed already are refused meanwhile."""
    closed = None
    while closed is None:
        try:
            closed = c.wait(pb.Closed)
        except ingest.Refused as refused:
            assert refused.error.code == pb.ERROR_RUN_CLOSED, refused
    assert text in closed.text, closed
    return closed


def names_by_pattern():
    with photond.Daemon(config=dict(CONFIG, name_pattern="{profile}-{counter}")) as daemon:
        c = producer(daemon)
        given = [c.open(name, profile="lincam").name for name in
                 ("{date}-{time}-scan", "cells-{counter}", "cells-{counter}", "plain", "", "a{counter}b-{profile}")]
        assert re.fullmatch(r"20\d{6}-\d{6}-scan", given[0]), given
        assert given[1:] == ["cells-0001", "cells-0002", "plain", "lincam-0001", "a0001b-lincam"], given
        for name in given:
            assert os.path.exists(daemon.path(name + ".photons"))
        # what is taken is never overwritten, also when it is not open any more
        for name in ("plain", "cells-0002"):
            daemon.ctl("stop", name)
            c.wait(pb.Closed)
        assert c.open("cells-{counter}", profile="lincam").name == "cells-0003"
        daemon.ctl("start", "night-{counter}")
        assert c.open("", profile="lincam").name == "night-0001"
        for name, reason in (("a-{month}", "braces"), ("{counter}{counter}", "twice"), ("x.{counter}", "parts of a run"),
                             ("{date", "braces"), ("../{date}", "letter or a digit"), ("a" * 120 + "{date}{time}", "too long")):
            c.send(pb.Open(run_id=os.urandom(16), name=name, profile="lincam"))
            error = c.wait(pb.Error)
            assert error.code == pb.ERROR_BAD_NAME and reason in error.text, (name, error)
        assert "braces" in daemon.ctl_refused("start", "x-{counter")


def the_same_second_makes_two_names():
    with photond.Daemon(config=CONFIG) as daemon:
        c = producer(daemon)
        given = [c.open("{date}", profile="lincam").name for _ in range(3)]
        day = given[0]
        assert len(set(given)) == 3 and set(given) <= {day} | {"%s-%d" % (d[:8], n) for d in given for n in (2, 3)}, given


def stops_at_a_count():
    """Whole batches: the one that reaches it is the last."""
    with photond.Daemon(config=CONFIG) as daemon:
        c = producer(daemon)
        run = c.open("count", stop=pb.StopCondition(photons=250))
        for n in range(1, 7):
            c.batch(run, photons(100), sequence=n)
        closed = wait_closed(c, "its photons")
        assert closed.last_sequence == 3 and closed.datasets[0].items == 300, closed
        photond.tool("d7", "verify", daemon.path("count.photons"))
        assert len(stored.File(daemon.path("count.photons")).columns["/photons/x"]) == 300
        exact = c.open("exact", stop=pb.StopCondition(photons=100, seconds=3600))
        c.batch(exact, photons(100))
        assert wait_closed(c, "its photons").last_sequence == 1
        size = c.open("size", stop=pb.StopCondition(bytes=1))
        c.batch(size, photons(10))
        assert wait_closed(c, "its size").last_sequence == 1
        assert daemon.status()["health"] == "ok"


def stops_after_a_time():
    with photond.Daemon(config=CONFIG) as daemon:
        c = producer(daemon)
        run = c.open("time", stop=pb.StopCondition(seconds=0.5))
        c.batch(run, photons())
        assert wait_closed(c, "its time is over").last_sequence == 1
        assert stored.File(daemon.path("time.photons")).state == "closed"


def an_announced_run_stops():
    """What the operator sets goes before what the producer asks for."""
    with photond.Daemon(config=CONFIG) as daemon:
        c = producer(daemon)
        daemon.ctl("start", "few", "--stop-photons", "150", "--stop-seconds", "3600", "--stop-bytes", "1000000000")
        run = c.open("", profile="lincam", stop=pb.StopCondition(photons=1))
        c.batch(run, photons(100))
        c.batch(run, photons(100), sequence=2)
        assert wait_closed(c, "its photons").last_sequence == 2
        for wrong in (("--stop-photons", "0"), ("--stop-photons", "1k"), ("--stop-seconds", "-1"), ("--stop-bytes", "")):
            daemon.ctl("start", "wrong", *wrong, expect=2)


def goes_on_through_a_restart():
    """The conditions stand in the file. Time in which the daemon was down does not count."""
    with photond.Daemon(config=CONFIG) as daemon:
        ids = [os.urandom(16), os.urandom(16)]
        c = producer(daemon)
        c.open("count", run_id=ids[0], stop=pb.StopCondition(photons=250))
        timed = c.open("timed", run_id=ids[1], stop=pb.StopCondition(seconds=3))
        began = time.monotonic()
        count = c.open("count", run_id=ids[0])
        for run in (count, timed):
            c.batch(run, photons(100))
            c.wait_ack(run, durable=1)
        daemon.kill()
        daemon.start()
        c = producer(daemon)
        count = c.open("count", run_id=ids[0])
        for n in (2, 3, 4):
            c.batch(count, photons(100), sequence=n)
        assert wait_closed(c, "its photons").last_sequence == 3
        c.open("timed", run_id=ids[1])
        wait_closed(c, "its time is over")
        assert time.monotonic() - began >= 2.9


photond.run_cases((names_by_pattern, the_same_second_makes_two_names, stops_at_a_count, stops_after_a_time, an_announced_run_stops,
                   goes_on_through_a_restart))
