"""photonctl's commands on a running photond: runs that are stopped, exported, announced; a daemon that is drained."""
import json
import os
import socket

import ingest
import photond
import require
import stored
from ingest import pb

np = require.module("numpy")

CONFIG = {"sync_interval_ms": 50, "export_interval_s": 3600}


def producer(daemon, name):
    c = ingest.Connection(daemon.tcp)
    c.hello(name)
    return c


def photons(n=1000):
    return stored.photons(np.random.default_rng(1), n)


def stops_a_run():
    with photond.Daemon(config=CONFIG) as daemon:
        c = producer(daemon, "cam")
        run = c.open("scan")
        c.batch(run, photons())
        c.wait_ack(run, received=1)
        assert daemon.ctl("stop", "scan") == "scan: closed\n"
        assert c.wait(pb.Closed).last_sequence == 1
        assert stored.File(daemon.path("scan.photons")).state == "closed"
        assert "it was stopped by photonctl" in daemon.log()
        assert "there is no open run scan" in daemon.ctl_refused("stop", "scan")
        second = c.open("scan-two")  # the connection lives on
        assert json.loads(daemon.ctl("stop", "scan-two", "--no-wait", "--json"))["run"] == "scan-two"
        c.wait(pb.Closed)
        assert second.run != run.run


def a_failed_run_says_why():
    """Nothing but the stop is to find out."""
    with photond.Daemon(config=dict(CONFIG, sync_interval_ms=3600000)) as daemon:
        c = producer(daemon, "cam")
        run = c.open("lost")
        c.batch(run, photons())
        c.wait_ack(run, durable=1)  # the first is synced at once, the next one in an hour
        os.unlink(daemon.path("lost.photons"))
        said = daemon.ctl_refused("stop", "lost")
        assert "run lost failed" in said and "by another program" in said, said
        assert "the daemon is not OK" in daemon.ctl_refused("start", "next")
        assert daemon.ctl("start", "next", "--force") == "next: armed\n"


def exports_at_once():
    with photond.Daemon(config=CONFIG) as daemon:
        c = producer(daemon, "cam")
        run = c.open("shown")
        for n in (1, 2, 3):
            c.batch(run, photons())
            c.wait_ack(run, received=n)
            assert daemon.ctl("export", "shown") == "shown: running\n"
            got = photond.tool("daf", "get", daemon.path("shown.daf"), "scalar", "photons", "--format", "text")
            assert got.strip() == str(1000 * n), got
        c.open("bare", summary=pb.SummaryOptions(enabled=pb.SWITCH_OFF))
        assert "run bare has no summaries" in daemon.ctl_refused("export", "bare")


def flushes_and_notes():
    """Nothing is synced but by order."""
    with photond.Daemon(config=dict(CONFIG, sync_interval_ms=3600000, resume_timeout_s=3600)) as daemon:
        c = producer(daemon, "cam")
        run = c.open("kept")
        c.batch(run, photons())
        c.wait_ack(run, received=1)
        assert daemon.ctl("flush", "kept") == "kept: running\n"
        assert daemon.run_status("kept")["sequence_durable"] == 1
        daemon.ctl("flush", "kept")  # nothing has come since
        c.batch(run, photons())
        c.wait_ack(run, received=2)
        assert daemon.ctl("note", "kept", "buffer \u00e4\nexchanged") == "kept: running\n"
        assert daemon.run_status("kept")["sequence_durable"] == 2
        daemon.ctl("note", "kept", "and again")  # durable without any data
        daemon.kill()
        daemon.start()
        assert daemon.run_status("kept")["sequence_durable"] == 2
        assert daemon.ctl("note", "kept", "after the crash") == "kept: detached\n"
        daemon.ctl("stop", "kept")
        notes = [json.loads(v) for k, v in sorted(stored.File(daemon.path("kept.photons")).attributes.items())
                 if k.startswith("photond.marker.")]
        assert [(n["item"], n["text"]) for n in notes] == [(2000, "buffer \u00e4\nexchanged"), (2000, "and again"),
                                                           (2000, "after the crash")], notes
        assert "there is no open run kept" in daemon.ctl_refused("flush", "kept")
        producer(daemon, "two").open("more")
        assert "it is empty" in daemon.ctl_refused("note", "more", "")
        assert "longer than 2000 bytes" in daemon.ctl_refused("note", "more", "x" * 2001)


def a_producer_joins_an_announced_run():
    with photond.Daemon(config=CONFIG) as daemon:
        c = producer(daemon, "cam")
        assert "announced" in ingest.refused(lambda: c.open(""), pb.ERROR_BAD_NAME).text
        assert daemon.ctl("start", "tags-only", "--profile", "lintag") == "tags-only: armed\n"
        daemon.ctl("start", "tonight")
        daemon.ctl("start", "tomorrow")
        daemon.ctl("start", "never")
        assert "tonight                  armed, for a producer with profile -" in daemon.ctl("runs")
        assert [a["name"] for a in daemon.status()["armed"]] == ["tags-only", "tonight", "tomorrow", "never"]
        assert "waits for its producer already" in daemon.ctl_refused("start", "tonight")
        assert daemon.ctl("stop", "never") == "never: disarmed\n"
        assert c.open("").name == "tonight"
        assert "run tonight is open already" in daemon.ctl_refused("start", "tonight")
        own = c.open("tomorrow")  # by its name: the announcement is fulfilled as well
        assert [a["name"] for a in daemon.status()["armed"]] == ["tags-only"]
        c.batch(own, photons())
        c.close(own)
        assert c.open("", profile="lintag").name == "tags-only"
        assert daemon.status()["armed"] == []
        assert "no profile \"nikon\" is configured" in daemon.ctl_refused("start", "x", "--profile", "nikon")
        for name in ("", "a/b", ".hidden", "x.photons", "y" * 200):
            assert "the name: " in daemon.ctl_refused("start", name), name
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(60)
            s.connect(daemon.control[5:])
            answers = s.makefile("rw")
            for i in range(64):
                answers.write('{"command": "start", "run": "many-%d"}\n' % i)
                answers.flush()
                assert json.loads(answers.readline())["ok"], i
        assert "more are not allowed" in daemon.ctl_refused("start", "one-more")


def drains():
    with photond.Daemon(config=CONFIG) as daemon:
        c = producer(daemon, "cam")
        run = c.open("on")
        assert daemon.ctl("drain") == "new runs are refused; 1 are open\n"
        assert "drained" in ingest.refused(lambda: c.open("off"), pb.ERROR_SHUTTING_DOWN).text
        assert "drained" in daemon.ctl_refused("start", "off")
        c.batch(run, photons())
        c.wait_ack(run, received=1)  # what is open goes on
        assert daemon.status()["draining"] and "takes no new runs" in daemon.ctl("status")
        daemon.ctl("drain", "--off")
        assert not daemon.status()["draining"]
        c.open("again")


def requests_that_are_none():
    """Straight to the socket."""
    with photond.Daemon(config=CONFIG) as daemon:
        for request in ('{"command": "stop"}', '{"command": "stop", "run": 5}', '{"command": "start", "run": "a", "profile": []}',
                        '{"command": "run"}', '{"command": "run", "id": "00"}', '{"command": "export", "run": null}'):
            answer = json.loads(talk(daemon, request))
            assert not answer["ok"] and answer["code"] == "failed" and answer["error"], (request, answer)


def talk(daemon, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(daemon.control[5:])
        s.sendall(line.encode() + b"\n")
        return s.makefile().readline()


CASES = [stops_a_run, a_failed_run_says_why, exports_at_once, flushes_and_notes, a_producer_joins_an_announced_run, drains, requests_that_are_none]


if __name__ == "__main__":
    photond.run_cases(CASES)
